"""MCP over standard streams: a process for what only a process can show, pipes in memory for the rest."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.mcp import stdio
from pulse_kg.mcp.calls import About
from pulse_kg.mcp.stdio import StdioServer
from tests.protocol.fakes import BROKEN, ECHO, KEY, META, SECRET_OF_A_BUG, SLOW, FakeHost, rpc
from tests.protocol.processes import program

ABOUT = About("fake", "1.2.3", "Call echo.", "A fake")


def converse(host: FakeHost, *lines: object, api_key: str | None = KEY, limit: int = 1_000_000) -> list[Any]:
    """The messages that lines are answered with, after the input has ended; bytes go as they are."""
    source = io.BytesIO(b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines))
    output = io.BytesIO()
    StdioServer(host, ABOUT, api_key=api_key, output=output, max_line_bytes=limit).serve(source)
    return [json.loads(line) for line in output.getvalue().split(b"\n")[:-1]]


class Session:
    """A running server, spoken to line by line."""

    def __init__(self, write: Any, read: Any) -> None:
        self._write, self._read = write, read

    def send(self, message: object) -> None:
        self._write.write(json.dumps(message).encode() + b"\n")
        self._write.flush()

    def receive(self) -> Any:
        return json.loads(self._read.readline())

    def end(self) -> None:
        self._write.close()


@contextmanager
def session(host: FakeHost) -> Iterator[Session]:
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    with (
        os.fdopen(their_in, "rb") as source,
        os.fdopen(our_out, "wb") as write,
        os.fdopen(our_in, "rb") as read,
        os.fdopen(their_out, "wb") as output,
    ):
        server = StdioServer(host, ABOUT, api_key=KEY, output=output)
        thread = threading.Thread(target=server.serve, args=(source,))
        thread.start()
        try:
            yield Session(write, read)
        finally:
            host.gate.set()
            write.close()
            thread.join(30)
            assert not thread.is_alive()


def initialize(version: str, request_id: int = 0) -> dict[str, Any]:
    return rpc("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}, id=request_id)


@pytest.mark.requirement("stdio/legacy")
@pytest.mark.parametrize(("version", "structured"), [("2025-03-26", False), ("2025-06-18", True), ("2025-11-25", True)])
def test_the_negotiated_revision_holds_for_what_follows(host: FakeHost, version: str, structured: bool) -> None:
    answers = converse(
        host, initialize(version), {"jsonrpc": "2.0", "method": "notifications/initialized"}, rpc("tools/call", {"name": ECHO}, id=2)
    )
    assert [answer["id"] for answer in answers] == [0, 2]
    assert answers[0]["result"]["protocolVersion"] == version
    assert ("structuredContent" in answers[1]["result"]) is structured


@pytest.mark.requirement("stdio/legacy")
def test_initialize_negotiates_even_if_it_carries_an_envelope(host: FakeHost) -> None:
    (answer,) = converse(host, rpc("initialize", {"protocolVersion": "2025-06-18", "_meta": META}))
    assert answer["result"]["protocolVersion"] == "2025-06-18"


@pytest.mark.requirement("stdio/stateless")
def test_requests_with_an_envelope_need_no_headers(host: FakeHost) -> None:
    messages = [
        rpc("server/discover", {"_meta": META}, id=1),
        rpc("tools/call", {"_meta": META, "name": ECHO}, id=2),
        rpc("nope", {"_meta": META}, id=3),
        rpc("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}, id=4),
        rpc("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": 5}}, id=5),
    ]
    answers = {answer["id"]: answer for answer in converse(host, *messages)}
    assert answers[1]["result"]["supportedVersions"][0] == "2026-07-28"
    assert answers[2]["result"]["resultType"] == "complete"
    assert [answers[number]["error"]["code"] for number in (3, 4, 5)] == [-32601, -32022, -32602]


@pytest.mark.requirement("stdio/parse-error")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense\n", -32700),
        (b"\xff\n", -32700),
        (b"[" * 50_000 + b"\n", -32700),
        (b"[]\n", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}\n', -32600),
    ],
)
def test_an_invalid_line_is_answered_and_the_next_one_served(host: FakeHost, line: bytes, code: int) -> None:
    answers = converse(host, line, b"\n", b"  \r\n", rpc("ping", id=2))
    assert (answers[0]["id"], answers[0]["error"]["code"]) == (None, code)
    assert answers[1:] == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


@pytest.mark.requirement("stdio/long-line")
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_over_the_limit_is_refused_and_the_next_one_served(host: FakeHost, end: bytes) -> None:
    answers = converse(host, b"x" * 100 + end, b"x" * 101 + end, b"x" * 1000 + end, rpc("ping", id=2), limit=102)
    assert [answer.get("error", {}).get("code") for answer in answers] == [-32700, -32700, -32700, None]


def test_a_last_line_without_an_end_is_served(host: FakeHost) -> None:
    assert converse(host, json.dumps(rpc("ping")).encode()) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@pytest.mark.requirement("stdio/concurrent")
def test_a_slow_request_holds_up_no_other(host: FakeHost) -> None:
    with session(host) as client:
        client.send(rpc("tools/call", {"name": SLOW}, id="slow"))
        assert host.arrived.acquire(timeout=30)
        client.send(rpc("tools/call", {"name": ECHO}, id="quick"))
        assert client.receive()["id"] == "quick"
        host.gate.set()
        assert client.receive()["id"] == "slow"


@pytest.mark.requirement("stdio/cancelled")
def test_a_cancelled_request_is_not_answered(host: FakeHost) -> None:
    with session(host) as client:
        for request_id in (1, "1"):
            client.send(rpc("tools/call", {"name": SLOW}, id=request_id))
            assert host.arrived.acquire(timeout=30)
        named: list[object] = [2, None, {}, 1]
        for unknown in named:
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": unknown}})
        # Read after the cancellation: its answer shows that it was seen.
        client.send(rpc("ping", id="seen"))
        assert client.receive()["id"] == "seen"
        host.gate.set()
        assert client.receive()["id"] == "1"
        client.send(rpc("ping", id="next"))
        assert client.receive()["id"] == "next"


@pytest.mark.requirement("stdio/eof")
def test_the_end_of_input_lets_a_running_request_finish(host: FakeHost) -> None:
    with session(host) as client:
        client.send(rpc("tools/call", {"name": SLOW}, id=1))
        assert host.arrived.acquire(timeout=30)
        client.end()
        host.gate.set()
        assert client.receive()["id"] == 1


@pytest.mark.requirement("stdio/key")
@pytest.mark.parametrize("api_key", [None, "pk_wrong"])
def test_each_request_without_a_good_key_is_refused(host: FakeHost, api_key: str | None) -> None:
    messages = [initialize("2025-11-25"), rpc("tools/list", id=1), rpc("tools/call", {"name": ECHO}, id=2)]
    for answer in converse(host, *messages, api_key=api_key):
        assert answer["error"]["code"] == 401
        assert answer["error"]["data"]["error"]["code"] == "unauthorized"
    assert host.calls == []


@pytest.mark.requirement("stdio/key")
def test_a_key_that_is_revoked_stops_working_while_the_process_lives(host: FakeHost) -> None:
    with session(host) as client:
        client.send(rpc("tools/call", {"name": ECHO}))
        assert "result" in client.receive()
        host.keys.clear()
        client.send(rpc("tools/call", {"name": ECHO}))
        assert client.receive()["error"]["code"] == 401


@pytest.mark.requirement("stdio/utf-8")
@pytest.mark.parametrize("text", ["grüße", "\u2028\u2029\x85", "\ud83d", "line\nbreak\r", "😀"])
def test_text_beyond_ascii_goes_through_in_one_line(host: FakeHost, text: str) -> None:
    output = io.BytesIO()
    source = io.BytesIO(json.dumps(rpc("tools/call", {"name": ECHO, "arguments": {"text": text}})).encode() + b"\n")
    StdioServer(host, ABOUT, api_key=KEY, output=output).serve(source)
    lines = output.getvalue().decode("utf-8").splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["result"]["structuredContent"]["text"] == text


def test_a_bug_is_an_internal_error_without_its_text(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    (answer,) = converse(host, rpc("tools/call", {"name": BROKEN}))
    assert answer["error"]["code"] == -32603
    assert SECRET_OF_A_BUG not in json.dumps(answer)
    host.failure = RuntimeError(SECRET_OF_A_BUG)
    (answer,) = converse(host, rpc("ping"))
    assert answer["error"]["code"] == -32603
    assert SECRET_OF_A_BUG not in json.dumps(answer)
    assert answer["error"]["data"]["correlation_id"] in caplog.text


@pytest.mark.requirement("stdio/clean-stdout", "stdio/eof")
def test_stray_output_does_not_reach_the_client_and_the_end_of_input_ends_with_0() -> None:
    with program("stdio") as process:
        messages = [initialize("2025-11-25"), rpc("tools/list", id=1), rpc("tools/call", {"name": ECHO}, id=2)]
        output, errors = process.communicate("".join(json.dumps(message) + "\n" for message in messages).encode(), timeout=60)
        assert sorted(json.loads(line)["id"] for line in output.splitlines()) == [0, 1, 2]
        assert b"stray print" in errors
        assert b"stray write" in errors
        assert process.returncode == 0


@pytest.mark.requirement("stdio/sigterm")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_running_request_and_ends_with_0(number: signal.Signals, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with program("stdio") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(rpc("tools/call", {"name": SLOW, "arguments": {"pipe": str(pipe)}}, id=7)).encode() + b"\n")
        process.stdin.flush()
        with pipe.open("wb"):
            process.send_signal(number)
        assert json.loads(process.stdout.readline())["id"] == 7
        assert process.wait(30) == 0


@pytest.mark.requirement("stdio/sigterm")
def test_a_signal_between_a_request_and_the_start_of_its_thread_loses_no_answer(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def started_and_signalled(thread: threading.Thread) -> None:
        start(thread)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(threading.Thread, "start", started_and_signalled)
    output = io.BytesIO()
    source = io.BytesIO(b"".join(json.dumps(rpc("tools/call", {"name": ECHO}, id=n)).encode() + b"\n" for n in (1, 2)))

    with suppress(stdio._Stopped), stdio._stopping_on_signal() as waiting:
        StdioServer(host, ABOUT, api_key=KEY, output=output, waiting=waiting).serve(source)

    assert [json.loads(line)["id"] for line in output.getvalue().splitlines()] == [1]  # and the second one was not begun


def test_a_client_that_goes_away_ends_it_without_a_trace() -> None:
    with program("stdio") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(rpc("ping")).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(json.dumps(rpc("ping")).encode() + b"\n")
        process.stdin.close()
        assert process.wait(30) == 0
        assert b"Traceback" not in process.stderr.read()
