"""The plain routes: one a tool, and health."""

from __future__ import annotations

import pytest

from pulse_kg.errors import StoreUnavailable
from tests.protocol.fakes import BROKEN, ECHO, SECRET_OF_A_BUG, FakeHost, Wire

pytestmark = pytest.mark.requirement("http/routes")


@pytest.mark.parametrize("path", ["/tools/echo", "/tools/okto_pulse_kg_echo", "/tools/echo/"])
def test_a_tool_answers_by_either_name(wire: Wire, path: str) -> None:
    answer = wire.send("POST", path, b'{"text": "hi"}')
    assert answer.status == 200
    assert answer.json == {"text": "hi", "length": 2}
    assert answer.response.headers["content-type"] == "application/json"
    assert answer.response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("content_type", [None, "application/json", "text/plain"])
@pytest.mark.parametrize("body", [b"", b"{}"])
def test_an_empty_body_is_no_arguments(wire: Wire, host: FakeHost, body: bytes, content_type: str | None) -> None:
    answer = wire.send("POST", "/tools/echo", body, {"content-type": content_type})
    assert answer.status == (200 if not body or content_type == "application/json" else 415)
    assert host.calls == ([(ECHO, {})] if answer.status == 200 else [])


def test_a_refusal_is_the_envelope_with_its_status(wire: Wire) -> None:
    answer = wire.send("POST", "/tools/refuse", b"{}")
    assert answer.status == 404
    assert answer.error["code"] == "session_not_found"
    assert answer.error.keys() == {"code", "status", "message", "details", "retryable", "correlation_id"}
    assert answer.error["correlation_id"] == answer.response.headers["x-correlation-id"]


def test_wrong_arguments_are_422(wire: Wire) -> None:
    answer = wire.send("POST", "/tools/echo", b'{"colour": "red"}')
    assert (answer.status, answer.error["code"]) == (422, "invalid_argument")
    assert answer.error["details"]["problems"][0]["path"] == "colour"


@pytest.mark.parametrize("name", ["nope", "okto_pulse_kg_nope", "%2e%2e", "ECHO"])
def test_an_unknown_tool_is_404(wire: Wire, name: str) -> None:
    answer = wire.send("POST", f"/tools/{name}", b"{}")
    assert (answer.status, answer.error["code"]) == (404, "tool_not_found")


@pytest.mark.parametrize("body", [b"{", b"not json", b'{"a": NaN}', b'{"a":1,"a":2}', b"\xff", b"[]", b"null", b'"x"', b"[" * 100_000])
def test_a_body_that_is_no_object_is_400(wire: Wire, host: FakeHost, body: bytes) -> None:
    answer = wire.send("POST", "/tools/echo", body)
    assert (answer.status, answer.error["code"]) == (400, "invalid_request")
    assert host.calls == []


def test_a_lone_surrogate_comes_back_as_it_was(wire: Wire) -> None:
    assert wire.send("POST", "/tools/echo", b'{"text": "x\\ud83d"}').json["text"] == "x\ud83d"


@pytest.mark.requirement("http/internal-error")
def test_a_bug_is_500_without_its_text(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    answer = wire.send("POST", "/tools/broken", b"{}")
    assert (answer.status, answer.error["code"]) == (500, "internal_error")
    assert SECRET_OF_A_BUG not in answer.response.body.decode()
    assert answer.error["correlation_id"] in caplog.text
    assert BROKEN not in answer.response.body.decode()


@pytest.mark.parametrize(
    "path", ["/", "", "/mcp/x", "/tools", "/tools/", "/tools/a/b", "/healthz/x", "/.well-known/oauth-protected-resource", "/MCP"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_is_404(wire: Wire, method: str, path: str) -> None:
    answer = wire.send(method, path, b"{}", {"authorization": None})
    assert (answer.status, answer.error["code"]) == (404, "invalid_request")


@pytest.mark.requirement("http/healthz")
def test_health_needs_no_key(wire: Wire) -> None:
    answer = wire.send("GET", "/healthz", headers={"authorization": None})
    assert (answer.status, answer.json) == (200, {"status": "ok"})


@pytest.mark.requirement("http/healthz")
def test_health_says_503_while_a_store_fails(wire: Wire, host: FakeHost) -> None:
    host.failure = StoreUnavailable("graph")
    answer = wire.send("GET", "/healthz")
    assert (answer.status, answer.error["code"], answer.error["retryable"]) == (503, "store_unavailable", True)


@pytest.mark.requirement("http/healthz")
def test_health_is_only_read(wire: Wire) -> None:
    answer = wire.send("POST", "/healthz")
    assert (answer.status, answer.response.headers["allow"]) == (405, "GET")
