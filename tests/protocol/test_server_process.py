"""The HTTP server as a process: where it listens and how it stops."""

from __future__ import annotations

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from pulse_kg.mcp.server import bound_socket
from tests.protocol.fakes import KEY
from tests.protocol.processes import program

HEADERS = {"authorization": f"Bearer {KEY}"}


def refuses_connections(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=5):
            return False
    except (ConnectionRefusedError, ConnectionResetError):
        return True


@pytest.mark.requirement("http/shutdown")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_running_call_and_ends_with_0(number: signal.Signals, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with program("http", "0") as process, ThreadPoolExecutor(1) as threads:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        call = threads.submit(httpx.post, f"{url}/tools/slow", json={"pipe": str(pipe)}, headers=HEADERS, timeout=60)
        # Opens only when the call has opened its end: it is running.
        with pipe.open("wb"):
            process.send_signal(number)
            while not refuses_connections(url):
                pass
            assert process.poll() is None
        assert call.result().json() == {"text": "waited", "length": 0}
        assert process.wait(30) == 0
        assert process.stdout.read() == b""


@pytest.mark.requirement("http/shutdown")
def test_the_line_is_printed_when_connections_are_accepted_and_an_idle_server_stops_at_once() -> None:
    with program("http", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().decode().strip()
        with httpx.Client(base_url=url) as client:
            assert client.get("/healthz").json() == {"status": "ok"}
            # The connection stays open, idle.
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert b"GET" not in process.stderr.read()


@pytest.mark.requirement("http/shutdown")
def test_a_request_that_never_comes_to_its_end_does_not_keep_the_process() -> None:
    with program("http", "0", GRACE_SECONDS="1") as process:
        assert process.stdout is not None
        parts = urlsplit(process.stdout.readline().decode().strip())
        with socket.create_connection((str(parts.hostname), parts.port or 0)) as stalled:
            stalled.sendall(b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
            # The server asks for the body, so it has begun with the request.
            assert stalled.recv(100).startswith(b"HTTP/1.1 100")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


@pytest.mark.requirement("http/405")
def test_the_process_answers_a_websocket_as_a_get() -> None:
    with program("http", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        parts = urlsplit(process.stdout.readline().decode().strip())
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        with socket.create_connection((str(parts.hostname), parts.port or 0)) as connection:
            connection.sendall(f"GET /mcp HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\n{upgrade}\r\n\r\n".encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 405 ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert KEY.encode() not in process.stderr.read()


@pytest.mark.requirement("http/port-in-use")
def test_a_port_in_use_is_refused_before_anything_is_served() -> None:
    with bound_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with program("http", str(port)) as process:
            assert process.wait(30) == 1
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read() == b""
            assert b"refused: Address already in use" in process.stderr.read()


def test_a_name_of_this_machine_is_bound_at_its_older_address() -> None:
    with bound_socket("localhost", 0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
