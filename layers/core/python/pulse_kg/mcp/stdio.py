"""MCP over standard input and output: one JSON message a line, the same dispatch as over HTTP.

The key is given at the start and checked again for each request, so a revoked one stops working while the process lives.
Requests run in threads and are answered as they finish. Cancelling a request drops its answer, not its work: a commit
that has begun is better finished.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import BinaryIO, Final

from pulse_kg.errors import PulseError
from pulse_kg.mcp import envelope, jsontext, modern
from pulse_kg.mcp.calls import About
from pulse_kg.mcp.dispatch import Dispatcher, internal_error
from pulse_kg.mcp.host import ToolHost
from pulse_kg.mcp.http import DEFAULT_MAX_BODY_BYTES
from pulse_kg.mcp.jsonrpc import PARSE_ERROR, Call, Notification, RequestId, RpcError, error_response, parse
from pulse_kg.mcp.revisions import NEWEST_BY_INITIALIZE, Revision, by_initialize

logger = logging.getLogger(__name__)

_THREADS: Final = 8
"""Requests that run at once for the one client there is."""

_QUEUE: Final = 64
"""Requests read ahead of the threads; then reading waits, and so does the client's pipe."""


class StdioServer:
    """Serves one client over a pair of streams.

    Args:
        host: Knows the key and runs the tools.
        about: What the server says of itself.
        api_key: The client's key; `None` is refused for each request.
        output: Where responses go, each in one write.
        max_line_bytes: The longest message.
        new_correlation_id: Called once a request.
        waiting: Entered around each wait for input, which it may end by an exception.
    """

    def __init__(
        self,
        host: ToolHost,
        about: About,
        *,
        api_key: str | None,
        output: BinaryIO,
        max_line_bytes: int = DEFAULT_MAX_BODY_BYTES,
        new_correlation_id: Callable[[], str] = envelope.new_correlation_id,
        waiting: contextlib.AbstractContextManager[None] | None = None,
    ) -> None:
        self._host = host
        self._dispatcher = Dispatcher(host, about)
        self._api_key = api_key
        self._output = output
        self._max_line_bytes = max_line_bytes
        self._new_correlation_id = new_correlation_id
        self._waiting = contextlib.nullcontext() if waiting is None else waiting
        self._writing = threading.Lock()
        self._pending = _Pending()
        self._revision = NEWEST_BY_INITIALIZE

    def serve(self, source: BinaryIO) -> None:
        """Answers line after line until the input ends, then the requests that still run, and returns."""
        room = threading.BoundedSemaphore(_QUEUE)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="mcp-stdio") as threads:
            for line in self._lines(source):
                call = self._read(line)
                if call is None:
                    continue
                if call.method == "initialize":
                    # Answered before the next line is read, whose revision it decides.
                    self._run(call, self._pending.add(call.id))
                    continue
                room.acquire()
                threads.submit(self._run, call, self._pending.add(call.id)).add_done_callback(lambda _: room.release())

    def _lines(self, source: BinaryIO) -> Iterator[bytes]:
        while line := self._next(source, self._max_line_bytes + 1):
            if len(line) > self._max_line_bytes:
                while line and not line.endswith(b"\n"):
                    line = self._next(source, self._max_line_bytes)
                self._write(error_response(None, RpcError(PARSE_ERROR, f"A message is longer than {self._max_line_bytes} bytes.")))
            elif line.strip():
                yield line

    def _next(self, source: BinaryIO, most: int) -> bytes:
        with self._waiting:
            return source.readline(most)

    def _read(self, line: bytes) -> Call | None:
        """The request of a line; anything else is dealt with here."""
        try:
            message = parse(line)
        except RpcError as error:
            self._write(error_response(error.id, error))
            return None
        if isinstance(message, Notification) and message.method == "notifications/cancelled":
            self._pending.cancel(message.params.get("requestId"))
        return message if isinstance(message, Call) else None

    def _run(self, call: Call, ticket: _Ticket) -> None:
        correlation_id = self._new_correlation_id()
        try:
            payload = self._answer(call, correlation_id)
        except Exception:
            logger.exception("request failed: correlation_id=%s", correlation_id)
            payload = error_response(call.id, internal_error(correlation_id))
        if self._pending.remove(ticket):
            self._write(payload)

    def _answer(self, call: Call, correlation_id: str) -> dict[str, object]:
        try:
            caller = self._host.authenticate(self._api_key)
        except PulseError as error:
            # Codes of one's own lie outside the range that JSON-RPC reserves: this one is the HTTP status.
            shown = RpcError(error.status, error.message, data=envelope.envelope(error, correlation_id))
            return error_response(call.id, shown)
        # `initialize` is always the older era's here: it has no header by which it could claim another.
        if call.method != "initialize" and modern.has_envelope(call.params):
            return self._dispatcher.stateless(call, caller, None, correlation_id=correlation_id).payload
        payload = self._dispatcher.legacy(call, caller, self._revision, correlation_id=correlation_id).payload
        if call.method == "initialize":
            self._revision = _negotiated(payload) or self._revision
        return payload

    def _write(self, payload: object) -> None:
        line = jsontext.encode(payload)
        # Line separators of Unicode are plain characters to JSON, and ends of line to some readers.
        for separator, escape in ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085")):
            line = line.replace(separator, escape)
        with self._writing, contextlib.suppress(BrokenPipeError, ValueError):
            self._output.write(line + b"\n")
            self._output.flush()


def serve_stdio(
    host: ToolHost,
    *,
    api_key: str | None,
    server_name: str,
    server_version: str,
    instructions: str,
    server_title: str | None = None,
    max_line_bytes: int = DEFAULT_MAX_BODY_BYTES,
) -> None:
    """Serves the client at this process's standard streams until its input ends, or SIGTERM or SIGINT comes.

    While it serves, standard output is standard error to everybody else, so that a stray print can't break the protocol.
    Main thread only: it gets the signals.

    Args:
        host: Knows the key and runs the tools.
        api_key: The client's key.
        server_name: For programs.
        server_version: The program's version.
        instructions: How to use the server, for a model.
        server_title: For people; the name will do if it is `None`.
        max_line_bytes: The longest message.
    """
    about = About(server_name, server_version, instructions, server_title)
    with _claimed_streams() as (source, output), contextlib.suppress(_Stopped), _stopping_on_signal() as waiting:
        server = StdioServer(host, about, api_key=api_key, output=output, max_line_bytes=max_line_bytes, waiting=waiting)
        server.serve(source)


class _Ticket:
    """One pending request; the same id may be in use twice, by a client's mistake."""

    def __init__(self, key: tuple[type, RequestId]) -> None:
        self.key = key


class _Pending:
    """The requests that run, by id, so that a cancelled one is not answered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tickets: dict[tuple[type, RequestId], _Ticket] = {}
        self._cancelled: set[_Ticket] = set()

    def add(self, request_id: RequestId) -> _Ticket:
        """Notes a request."""
        # By type too: 1 and "1" are two ids.
        ticket = _Ticket((type(request_id), request_id))
        with self._lock:
            self._tickets[ticket.key] = ticket
        return ticket

    def cancel(self, request_id: object) -> None:
        """Drops the answer of a request, if it runs."""
        if not isinstance(request_id, str | int):
            return
        with self._lock:
            ticket = self._tickets.get((type(request_id), request_id))
            if ticket is not None:
                self._cancelled.add(ticket)

    def remove(self, ticket: _Ticket) -> bool:
        """Forgets a request; whether it is still to be answered."""
        with self._lock:
            if self._tickets.get(ticket.key) is ticket:
                del self._tickets[ticket.key]
            wanted = ticket not in self._cancelled
            self._cancelled.discard(ticket)
            return wanted


class _Stopped(BaseException):
    """A signal came; not an Exception, so that nothing on the way takes it for a failure."""


class _Waiting:
    """The wait for input: the only place that a signal breaks off.

    Anywhere else the exception could come between a request and the list of those that are waited for at the end.
    """

    def __init__(self) -> None:
        self._stopped = False
        self._inside = False

    def stop(self) -> None:
        """Ends the wait for input, or the next one."""
        self._stopped = True
        if self._inside:
            raise _Stopped

    def __enter__(self) -> None:
        self._inside = True
        if self._stopped:
            self._inside = False
            raise _Stopped

    def __exit__(self, *_: object) -> None:
        self._inside = False


@contextlib.contextmanager
def _stopping_on_signal() -> Iterator[_Waiting]:
    """Ends the wait for input by an exception: a read that a signal interrupts is otherwise resumed."""
    waiting = _Waiting()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        # Once is enough; a second signal must not break the wait for the running requests.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        waiting.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield waiting
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _claimed_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The standard streams, for the protocol alone: others read an empty input and write to standard error."""
    sys.stdout.flush()
    source, output = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    reader, writer = os.fdopen(source, "rb"), os.fdopen(output, "wb")
    try:
        yield reader, writer
    finally:
        sys.stdout.flush()
        os.dup2(source, 0)
        os.dup2(output, 1)
        reader.close()
        # What a client that went away did not read can't be flushed.
        with contextlib.suppress(BrokenPipeError):
            writer.close()


def _negotiated(payload: dict[str, object]) -> Revision | None:
    result = payload.get("result")
    return by_initialize(result.get("protocolVersion")) if isinstance(result, dict) else None
