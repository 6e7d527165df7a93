"""What is checked before a message is looked at: method, origin, key, size, content type, Accept."""

from __future__ import annotations

import json

import pytest

from pulse_kg.errors import StoreUnavailable
from tests.protocol.fakes import ECHO, KEY, SECRET_OF_A_BUG, FakeHost, Wire, rpc

PING = json.dumps(rpc("ping")).encode()
PATHS = ["/mcp", "/tools/echo"]


@pytest.mark.requirement("http/405")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "PATCH", "TRACE", "BREW"])
@pytest.mark.parametrize("headers", [{}, {"authorization": None}, {"origin": "https://evil.example"}])
def test_any_method_but_post_is_refused_before_authentication(wire: Wire, method: str, path: str, headers: dict[str, str | None]) -> None:
    answer = wire.send(method, path, headers=headers)
    assert answer.status == 405
    assert answer.response.headers["allow"] == "POST"
    assert answer.error["code"] == "invalid_request"


@pytest.mark.requirement("http/options")
def test_options_does_not_name_get(wire: Wire) -> None:
    answer = wire.send("OPTIONS", "/mcp", headers={"authorization": None})
    assert answer.status == 204
    assert answer.response.headers["allow"] == "POST"
    assert "GET" not in str(answer.response.headers)


@pytest.mark.requirement("http/options")
def test_a_preflight_of_an_allowed_origin_is_answered(wire: Wire) -> None:
    headers = {"origin": "http://localhost:5173", "access-control-request-method": "POST", "authorization": None}
    answer = wire.send("OPTIONS", "/mcp", headers=headers)
    assert answer.status == 204
    assert answer.response.headers["access-control-allow-origin"] == "http://localhost:5173"
    assert answer.response.headers["access-control-allow-methods"] == "POST"
    allowed = answer.response.headers["access-control-allow-headers"]
    assert {"authorization", "mcp-method", "mcp-name", "mcp-protocol-version", "content-type"} <= set(allowed.split(", "))
    assert answer.response.headers["vary"] == "origin"


@pytest.mark.requirement("http/options", "http/origin", "2025-11-25/origin-403")
@pytest.mark.parametrize("method", ["OPTIONS", "POST"])
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "http://localhost.evil.example",
        "http://localhost:80@evil.example",
        "http://localhost:",
        "http://127.0.0.1.evil.example:80",
        "ftp://localhost",
    ],
)
def test_a_foreign_origin_is_403_and_gets_no_permission(wire: Wire, method: str, origin: str) -> None:
    answer = wire.send(method, "/mcp", PING, {"origin": origin})
    assert answer.status == 403
    assert answer.error["code"] == "permission_denied"
    assert "access-control-allow-origin" not in answer.response.headers


@pytest.mark.requirement("http/origin")
@pytest.mark.parametrize(
    "origin", [None, "http://localhost", "http://LOCALHOST:3000", "https://127.0.0.1:8443", "http://[::1]:9", "http://[::1]"]
)
def test_no_origin_and_those_of_this_machine_pass(wire: Wire, origin: str | None) -> None:
    answer = wire.send("POST", "/mcp", PING, {"origin": origin})
    assert answer.status == 200
    assert answer.response.headers.get("access-control-allow-origin") == origin


@pytest.mark.requirement("http/origin")
def test_configured_origins_replace_the_default(host: FakeHost) -> None:
    wire = Wire(host, allowed_origins=["https://app.example"])
    assert wire.send("POST", "/mcp", PING, {"origin": "https://app.example"}).status == 200
    assert wire.send("POST", "/mcp", PING, {"origin": "https://app.example:444"}).status == 403
    assert wire.send("POST", "/mcp", PING, {"origin": "http://localhost"}).status == 403


@pytest.mark.requirement("http/401")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", [{"authorization": None}, {"authorization": "Bearer pk_wrong"}, {"authorization": "Bearer"}])
@pytest.mark.parametrize("body", [PING, b"not json", b"[]", b"x" * 5_000_000])
def test_without_a_good_key_nothing_of_the_body_matters(
    wire: Wire, host: FakeHost, path: str, headers: dict[str, str | None], body: bytes
) -> None:
    answer = wire.send("POST", path, body, headers)
    assert answer.status == 401
    assert answer.response.headers["www-authenticate"] == "Bearer"
    assert answer.error["code"] == "unauthorized"
    assert answer.error["retryable"] is False
    assert answer.error["correlation_id"] == answer.response.headers["x-correlation-id"]
    assert host.calls == []


@pytest.mark.requirement("http/key-headers")
@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer   {KEY} "},
        {"authorization": None, "x-api-key": KEY},
        {"authorization": "Basic dXNlcjpwdw==", "x-api-key": KEY},
        {"authorization": "Bearer ", "x-api-key": KEY},
        {"authorization": f"Bearer {KEY}", "x-api-key": "a-gateway's-own"},
    ],
)
def test_the_key_comes_by_either_header(wire: Wire, headers: dict[str, str | None]) -> None:
    assert wire.send("POST", "/mcp", PING, headers).status == 200


@pytest.mark.requirement("http/key-headers")
def test_a_key_in_the_url_is_no_key(wire: Wire) -> None:
    headers = {"authorization": None}
    assert wire.send("POST", f"/mcp?api_key={KEY}", PING, headers).status in (401, 404)
    assert wire.send("POST", f"/tools/{KEY}", PING, headers).status == 401


@pytest.mark.requirement("http/identity-down")
@pytest.mark.parametrize("path", PATHS)
def test_an_identity_store_that_is_down_is_503(wire: Wire, host: FakeHost, path: str) -> None:
    host.failure = StoreUnavailable("identity")
    answer = wire.send("POST", path, PING)
    assert answer.status == 503
    assert answer.error["code"] == "store_unavailable"
    assert answer.error["retryable"] is True


@pytest.mark.requirement("http/internal-error")
@pytest.mark.parametrize("path", PATHS)
def test_a_bug_in_authentication_is_500_without_its_text(wire: Wire, host: FakeHost, path: str, caplog: pytest.LogCaptureFixture) -> None:
    host.failure = RuntimeError(SECRET_OF_A_BUG)
    answer = wire.send("POST", path, PING)
    assert answer.status == 500
    assert answer.error["code"] == "internal_error"
    assert SECRET_OF_A_BUG not in answer.response.body.decode()
    assert answer.error["correlation_id"] in caplog.text
    assert SECRET_OF_A_BUG in caplog.text
    assert KEY not in caplog.text


@pytest.mark.requirement("http/413")
@pytest.mark.parametrize("path", PATHS)
def test_a_body_over_the_limit_is_413_and_one_at_the_limit_is_not(host: FakeHost, path: str) -> None:
    wire = Wire(host, max_body_bytes=200)
    small = json.dumps(rpc("ping")).encode() if path == "/mcp" else b'{"text": "x"}'
    assert wire.send("POST", path, small.ljust(200)).status == 200
    answer = wire.send("POST", path, small.ljust(201))
    assert answer.status == 413
    assert answer.error["code"] == "payload_too_large"
    assert answer.error["details"] == {"max_bytes": 200}


@pytest.mark.requirement("http/413")
def test_a_declared_length_over_the_limit_is_enough(host: FakeHost) -> None:
    wire = Wire(host, max_body_bytes=200)
    assert wire.send("POST", "/mcp", b"", {"content-length": "201"}).status == 413
    assert wire.send("POST", "/mcp", PING, {"content-length": "nonsense"}).status == 200


@pytest.mark.requirement("http/415")
@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'Application/JSON; Charset="utf-8"',
        "application/json; profile=x",
    ],
)
def test_json_in_utf_8_is_understood_however_it_is_spelt(wire: Wire, content_type: str) -> None:
    assert wire.send("POST", "/mcp", PING, {"content-type": content_type}).status == 200


@pytest.mark.requirement("http/415")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonl", "application/json; charset=latin-1", "json"],
)
def test_another_content_type_is_415(wire: Wire, path: str, content_type: str | None) -> None:
    answer = wire.send("POST", path, PING, {"content-type": content_type})
    assert answer.status == 415
    assert answer.error["code"] == "invalid_request"


@pytest.mark.requirement("http/406")
@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        "application/json",
        "application/json, text/event-stream",
        "text/event-stream, application/json",
        "text/event-stream",
        "*/*",
        "application/*",
        "text/html, */*;q=0.1",
        "text/event-stream;q=0.9, APPLICATION/JSON;q=0.1",
        "application/json; charset=utf-8",
        "application/json;q=oops",
    ],
)
def test_common_accept_headers_are_accepted(wire: Wire, accept: str | None) -> None:
    answer = wire.send("POST", "/mcp", PING, {"accept": accept})
    assert answer.status == 200
    assert answer.response.headers["content-type"] == "application/json"


@pytest.mark.requirement("http/406")
@pytest.mark.parametrize(
    "accept",
    ["text/html", "application/json;q=0", "application/json;q=0.0, */*", "application/json;q=0, text/event-stream", "image/png, text/*"],
)
def test_accept_is_refused_if_it_excludes_json(wire: Wire, accept: str) -> None:
    assert wire.send("POST", "/mcp", PING, {"accept": accept}).status == 406


@pytest.mark.requirement("http/headers", "http/json-only")
@pytest.mark.parametrize("method", ["ping", "tools/list", "initialize", "nonsense"])
def test_answers_are_json_that_is_not_stored_and_has_a_correlation_id(wire: Wire, method: str) -> None:
    first, second = (wire.post(rpc(method), {"accept": "text/event-stream, application/json"}) for _ in range(2))
    for answer in (first, second):
        assert answer.response.headers["content-type"] == "application/json"
        assert answer.response.headers["cache-control"] == "no-store"
    assert first.response.headers["x-correlation-id"] != second.response.headers["x-correlation-id"]


@pytest.mark.requirement("http/headers")
def test_the_correlation_id_is_the_one_that_was_made(host: FakeHost) -> None:
    wire = Wire(host, new_correlation_id=lambda: "abc123")
    answer = wire.legacy(None, "tools/call", {"name": ECHO, "arguments": {"unknown": 1}})
    assert answer.response.headers["x-correlation-id"] == "abc123"
    assert json.loads(answer.result["content"][0]["text"])["error"]["correlation_id"] == "abc123"
