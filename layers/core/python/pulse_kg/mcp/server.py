"""Serves an ASGI application on a port until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

OnListening = Callable[[str, int], None]
"""Gets the host as given and the port that was bound."""


DEFAULT_GRACE_SECONDS: Final = 40
"""Longer than any tool may run. Without an end to it, one client that never finishes its request would keep the process."""


def run_http(app: ASGIApp, host: str, port: int, on_listening: OnListening, *, grace_seconds: int = DEFAULT_GRACE_SECONDS) -> None:
    """Serves until SIGTERM or SIGINT, then finishes the running calls and returns. Main thread only: it gets the signals.

    Args:
        app: The application.
        host: An address or a name of this machine.
        port: 0 for any free one.
        on_listening: Called once, when connections are accepted.
        grace_seconds: How long running calls may take to finish; requests that are not complete by then are dropped.

    Raises:
        OSError: The address can't be bound: the port is in use, or the host is none of this machine. Nothing was served.
    """
    with bound_socket(host, port) as listener:
        # Logging is the program's: no configuration here, and no line for each request. A WebSocket is refused like any other
        # GET: its protocol would answer in plain text, and log the headers with the key in them.
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", ws="none", server_header=False, timeout_graceful_shutdown=grace_seconds
        )
        server = _Server(config, lambda: on_listening(host, listener.getsockname()[1]))
        with _returning_on_signal(server):
            asyncio.run(server.serve(sockets=[listener]))


@contextmanager
def bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens, so that a port in use is known before anything else starts.

    Raises:
        OSError: The address can't be bound.
    """
    # A name may stand for addresses of both families; the older one is what local clients try without fail.
    found = sorted(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, address = found[0]
    with socket.create_server((str(address[0]), int(address[1])), family=family) as listener:
        # The event loop sets it only on sockets whose protocol number it knows, and accepted ones inherit it from here. Without
        # it the head of each answer waits some 40 ms for the client's acknowledgement of the one before.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._on_started()


@contextmanager
def _returning_on_signal(server: uvicorn.Server) -> Iterator[None]:
    """Makes a stop by signal a normal return.

    The server handles the signals itself while it runs, and raises them again when it is done, which would end the
    process with their status. Before it begins to run, the handler here tells it to stop.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
