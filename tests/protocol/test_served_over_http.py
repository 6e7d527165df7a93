"""The routes under a real server: what only a socket can show."""

from __future__ import annotations

import http.client
import json
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlsplit

import httpx
import pytest

from pulse_kg.mcp.asgi import create_app
from tests.protocol.fakes import ECHO, KEY, SLOW, FakeHost, fake_edge, rpc
from tests.support.http_server import serve_in_thread

LIMIT = 10_000


@pytest.fixture
def url(host: FakeHost) -> Iterator[str]:
    with serve_in_thread(create_app(fake_edge(host, max_body_bytes=LIMIT), threads=2)) as base:
        yield base
        host.gate.set()


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {KEY}"}, timeout=30) as client:
        yield client


def test_a_call_goes_through(client: httpx.Client) -> None:
    response = client.post("/mcp", json=rpc("tools/call", {"name": ECHO, "arguments": {"text": "grüße"}}))
    assert response.status_code == 200
    assert json.loads(response.json()["result"]["content"][0]["text"]) == {"text": "grüße", "length": 5}
    assert response.headers["content-length"] == str(len(response.content))


@pytest.mark.requirement("2026-07-28/headers")
def test_header_names_are_compared_without_regard_to_case(client: httpx.Client) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {"MCP-PROTOCOL-VERSION": "2026-07-28", "Mcp-Method": "tools/call", "mCP-nAME": ECHO}
    assert client.post("/mcp", json=rpc("tools/call", {"_meta": meta, "name": ECHO}), headers=headers).status_code == 200


@pytest.mark.requirement("2026-07-28/headers")
def test_a_header_that_comes_twice_equals_no_body(client: httpx.Client) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list"), ("mcp-method", "tools/list")]
    response = client.post("/mcp", json=rpc("tools/list", {"_meta": meta}), headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)


@pytest.mark.requirement("http/405")
@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
def test_a_stream_is_refused_at_once_even_while_all_calls_wait(client: httpx.Client, host: FakeHost, method: str) -> None:
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(client.post, "/tools/slow") for _ in range(2)]
        for _ in waiting:
            assert host.arrived.acquire(timeout=30)
        response = client.request(method, "/mcp", headers={"accept": "text/event-stream"})
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        assert client.get("/healthz").status_code == 200
        host.gate.set()
        assert [future.result().status_code for future in waiting] == [200, 200]


@pytest.mark.requirement("http/413")
def test_a_large_body_is_413_and_the_connection_lives(client: httpx.Client) -> None:
    for content in (b"x" * (LIMIT + 1), b"x" * 2_000_000):
        assert client.post("/mcp", content=content, headers={"content-type": "application/json"}).status_code == 413
    assert client.post("/mcp", json=rpc("ping")).status_code == 200


@pytest.mark.requirement("http/413")
def test_a_body_of_unknown_length_is_read_to_the_limit_only(url: str) -> None:
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)) as connection:
        connection.putrequest("POST", "/mcp")
        for name, value in (("Authorization", f"Bearer {KEY}"), ("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")):
            connection.putheader(name, value)
        connection.endheaders()
        chunk = b"x" * 4096
        for _ in range(4):
            connection.send(b"1000\r\n" + chunk + b"\r\n")
        # The last chunk never comes: an answer shows that nobody waits for it.
        assert connection.getresponse().status == 413


@pytest.mark.requirement("2025/initialized")
def raw(url: str, head: str) -> tuple[int, dict[str, object]]:
    """The status and the JSON body of a request that no client library would send."""
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=30) as connection:
        connection.sendall(f"{head}\r\nHost: x\r\nX-API-Key: {KEY}\r\nConnection: close\r\n\r\n".encode())
        with connection.makefile("rb") as stream:
            answer = stream.read()
    lines, _, body = answer.partition(b"\r\n\r\n")
    return int(lines.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    "head",
    [
        "GET /nowhere HTTP/1.1",
        "GET /no%0d%0awhere HTTP/1.1",
        "POST /mcp%0d%0ax HTTP/1.1",
        "GET nowhere HTTP/1.1",
        "GET http://host/nowhere HTTP/1.1",
        "GET http://host HTTP/1.1",
        "CONNECT host:443 HTTP/1.1",
        "OPTIONS * HTTP/1.1",
    ],
)
def test_whatever_is_not_served_is_our_404(url: str, head: str) -> None:
    status, body = raw(url, head)
    assert (status, body["error"]["code"]) == (404, "invalid_request")  # type: ignore[index]


def test_a_target_may_name_the_host_as_for_a_proxy(url: str) -> None:
    assert raw(url, "GET http://host/healthz?x=1 HTTP/1.1") == (200, {"status": "ok"})
    assert raw(url, "POST HTTPS://host:1/tools/echo HTTP/1.1\r\nContent-Length: 0")[0] == 200
    assert raw(url, "POST http://host/mcp HTTP/1.1\r\nContent-Length: 0")[0] == 415


@pytest.mark.requirement("http/405")
def test_a_websocket_is_refused_like_any_other_get_and_its_key_is_not_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    asks = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    with caplog.at_level(logging.DEBUG):
        parts = urlsplit(url)
        with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=30) as connection:
            connection.sendall(f"GET /mcp HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nConnection: Upgrade\r\n{asks}\r\n\r\n".encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 405 ")
    assert KEY not in caplog.text


def test_a_notification_is_202_without_content(client: httpx.Client) -> None:
    response = client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (response.status_code, response.content, response.headers["content-length"]) == (202, b"", "0")
    assert "content-type" not in response.headers


def test_a_preflight_is_204_without_a_length(client: httpx.Client) -> None:
    response = client.options("/mcp", headers={"origin": "http://localhost"})
    assert response.status_code == 204
    assert "content-length" not in response.headers


def test_a_client_that_goes_away_does_not_stop_its_call(client: httpx.Client, url: str, host: FakeHost) -> None:
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port or 0)) as plain:
        body = json.dumps(rpc("tools/call", {"name": SLOW})).encode()
        head = f"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
        plain.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert host.arrived.acquire(timeout=30)
    host.gate.set()
    assert client.post("/tools/echo").status_code == 200


def test_calls_run_at_once(client: httpx.Client, host: FakeHost) -> None:
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(client.post, "/tools/slow")
        assert host.arrived.acquire(timeout=30)
        assert client.post("/tools/echo").status_code == 200
        assert not slow.done()
        host.gate.set()
        assert slow.result().status_code == 200
