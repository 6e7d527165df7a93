"""The stateless revision."""

from __future__ import annotations

import base64
import json
from typing import Any

import jsonschema
import pytest

from tests.protocol.fakes import BROKEN, ECHO, META, REFUSE, SECRET_OF_A_BUG, SLOW, FakeHost, Wire, rpc, stateless_headers

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
SUPPORTED = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in META.items() if name != key}


@pytest.mark.requirement("2026-07-28/discover", "2026-07-28/cache-hints", "2026-07-28/result-type", "2026-07-28/server-info")
def test_discovery_states_versions_capabilities_and_instructions(wire: Wire) -> None:
    assert wire.stateless("server/discover").result == {
        "resultType": "complete",
        "supportedVersions": SUPPORTED,
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": "Call echo.",
        "ttlMs": 300_000,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "1.2.3", "title": "A fake"}},
    }


@pytest.mark.requirement("2026-07-28/list-order", "2026-07-28/cache-hints", "2026-07-28/annotations", "2026-07-28/result-type")
def test_the_list_is_sorted_the_same_each_time_and_says_how_long_it_keeps(wire: Wire) -> None:
    first, second = (wire.stateless("tools/list") for _ in range(2))
    assert first.response.body == second.response.body
    result = first.result
    assert [tool["name"] for tool in result["tools"]] == sorted([BROKEN, ECHO, REFUSE, SLOW])
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 300_000, "private")
    for tool in result["tools"]:
        assert tool.keys() == {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
        assert tool["annotations"].keys() == {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


@pytest.mark.requirement("2026-07-28/list-cursor")
@pytest.mark.parametrize("cursor", ["", "page2", 5], ids=repr)
def test_a_cursor_that_was_never_given_out_is_refused(wire: Wire, cursor: object) -> None:
    answer = wire.stateless("tools/list", {"cursor": cursor})
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.requirement("2026-07-28/structured", "2026-07-28/result-type", "2026-07-28/server-info")
def test_a_success_has_structured_content_that_equals_its_text(wire: Wire) -> None:
    schemas = {tool["name"]: tool["outputSchema"] for tool in wire.stateless("tools/list").result["tools"]}
    result = wire.stateless("tools/call", {"name": ECHO, "arguments": {"text": "grüße"}}).result
    assert result["resultType"] == "complete"
    assert result["isError"] is False
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "fake"
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"] == {"text": "grüße", "length": 5}
    jsonschema.validate(result["structuredContent"], schemas[ECHO])


@pytest.mark.requirement("2026-07-28/call-error")
def test_a_refusal_is_a_result_with_the_envelope_as_text(wire: Wire) -> None:
    result = wire.stateless("tools/call", {"name": REFUSE}).result
    assert result["isError"] is True
    assert result["resultType"] == "complete"
    assert "structuredContent" not in result
    assert json.loads(result["content"][0]["text"])["error"]["code"] == "session_not_found"


@pytest.mark.requirement("2026-07-28/argument-errors")
@pytest.mark.parametrize("arguments", [{"unknown": 1}, [], "text", 5, False], ids=repr)
def test_wrong_arguments_are_a_refusal_that_a_model_can_read(wire: Wire, arguments: object) -> None:
    result = wire.stateless("tools/call", {"name": ECHO, "arguments": arguments}).result
    assert result["isError"] is True
    assert json.loads(result["content"][0]["text"])["error"]["code"] == "invalid_argument"


@pytest.mark.requirement("2026-07-28/unknown-tool")
@pytest.mark.parametrize("name", ["nope", "echo", ""])
def test_an_unknown_tool_is_a_protocol_error(wire: Wire, host: FakeHost, name: str) -> None:
    answer = wire.stateless("tools/call", {"name": name})
    assert (answer.status, answer.error["code"]) == (400, -32602)
    assert host.calls == []


@pytest.mark.requirement("2026-07-28/absent-arguments")
@pytest.mark.parametrize("params", [{}, {"arguments": None}, {"arguments": {}}], ids=repr)
def test_absent_arguments_are_an_empty_object(wire: Wire, host: FakeHost, params: dict[str, Any]) -> None:
    assert wire.stateless("tools/call", {"name": ECHO, **params}).result["isError"] is False
    assert host.calls == [(ECHO, {})]


@pytest.mark.requirement("2026-07-28/envelope")
@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        [],
        "x",
        {"_meta": None},
        {"_meta": []},
        {"_meta": {}},
        {"_meta": without(VERSION)},
        {"_meta": without(CAPABILITIES)},
        {"_meta": {"progressToken": 1}},
    ],
    ids=repr,
)
def test_a_request_without_the_envelope_is_invalid(wire: Wire, params: Any) -> None:
    answer = wire.post(rpc("tools/list", params), {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"})
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.requirement("2026-07-28/envelope")
@pytest.mark.parametrize("version", [None, "2025-11-25"])
@pytest.mark.parametrize("key", [VERSION, CAPABILITIES, CLIENT])
def test_a_half_built_envelope_is_not_served_as_another_revision(wire: Wire, key: str, version: str | None) -> None:
    answer = wire.post(rpc("tools/list", {"_meta": {key: META[key]}}), {"mcp-protocol-version": version})
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.requirement("2026-07-28/envelope")
def test_client_info_may_be_absent_or_null(wire: Wire) -> None:
    assert wire.stateless("tools/list", {"_meta": without(CLIENT)}).status == 200
    assert wire.stateless("tools/list", {"_meta": {**META, CLIENT: None}}).status == 200


@pytest.mark.requirement("2026-07-28/envelope-shape")
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
@pytest.mark.parametrize(
    "change",
    [{CAPABILITIES: None}, {CAPABILITIES: []}, {CAPABILITIES: "x"}, {CLIENT: "x"}, {CLIENT: {}}, {CLIENT: {"name": "x", "version": 1}}],
    ids=repr,
)
def test_an_envelope_of_the_wrong_shape_is_invalid(wire: Wire, method: str, change: dict[str, Any]) -> None:
    answer = wire.stateless(method, {"_meta": {**META, **change}, "name": ECHO})
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.requirement("2026-07-28/headers")
@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-protocol-version": None},
        {"mcp-protocol-version": "2025-11-25"},
        {"mcp-protocol-version": "2099-01-01"},
        {"mcp-protocol-version": "2026-07-28, 2026-07-28"},
        {"mcp-method": None},
        {"mcp-method": "tools/list"},
        {"mcp-method": "Tools/Call"},
        {"mcp-name": None},
        {"mcp-name": REFUSE},
        {"mcp-name": ECHO.upper()},
        {"mcp-name": "=?base64?not base64?="},
        {"mcp-name": "=?base64?/w==?="},
        {"mcp-name": "=?base64?é?="},  # the SDK's own decoder fails at this one
        {"mcp-name": f"{ECHO}, {ECHO}"},
    ],
    ids=repr,
)
def test_headers_must_equal_the_body(wire: Wire, host: FakeHost, headers: dict[str, str | None]) -> None:
    answer = wire.stateless("tools/call", {"name": ECHO}, headers)
    assert (answer.status, answer.error["code"]) == (400, -32020)
    assert host.calls == []


@pytest.mark.requirement("2026-07-28/name-sentinel")
@pytest.mark.parametrize("name", [ECHO, "värktyg", " padded ", "=?base64?x?=", "two\nlines"])
def test_a_wrapped_name_is_decoded_before_it_is_compared(wire: Wire, name: str) -> None:
    wrapped = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    answer = wire.stateless("tools/call", {"name": name}, {"mcp-name": wrapped})
    assert answer.json.get("error", {}).get("code") == (None if name == ECHO else -32602)


@pytest.mark.requirement("2026-07-28/unsupported-version")
@pytest.mark.parametrize("version", ["2099-01-01", "1900-01-01", "2025-11-25", "2024-11-05", "", "draft"])
def test_an_unsupported_version_is_told_what_is_supported(wire: Wire, version: str) -> None:
    answer = wire.stateless("tools/list", {"_meta": {**META, VERSION: version}}, {"mcp-protocol-version": version})
    assert (answer.status, answer.error["code"]) == (400, -32022)
    assert answer.error["data"] == {"supported": SUPPORTED, "requested": version}


@pytest.mark.requirement("2026-07-28/ladder-order")
@pytest.mark.parametrize(
    ("meta", "headers", "code"),
    [
        ({VERSION: "2099-01-01"}, {"mcp-protocol-version": "1999-01-01", "mcp-method": "x"}, -32602),
        ({VERSION: "2099-01-01", CAPABILITIES: {}}, {"mcp-protocol-version": "2026-07-28", "mcp-method": "nope"}, -32020),
        ({VERSION: "2099-01-01", CAPABILITIES: {}}, {"mcp-protocol-version": "2099-01-01", "mcp-method": "x"}, -32020),
        ({VERSION: "2099-01-01", CAPABILITIES: {}}, {"mcp-protocol-version": "2099-01-01", "mcp-method": "nope"}, -32022),
        ({VERSION: "2026-07-28", CAPABILITIES: 5}, {"mcp-protocol-version": "2026-07-28", "mcp-method": "nope"}, -32601),
    ],
    ids=["envelope-first", "then-version-header", "then-method-header", "then-version", "then-method"],
)
def test_the_first_failing_check_of_several_is_told(wire: Wire, meta: dict[str, Any], headers: dict[str, str | None], code: int) -> None:
    assert wire.post(rpc("nope", {"_meta": meta}), headers).error["code"] == code


@pytest.mark.requirement("2026-07-28/unknown-method")
@pytest.mark.parametrize("method", ["nope", "", "tools/List", "notifications/initialized"])
def test_an_unknown_method_is_404(wire: Wire, method: str) -> None:
    answer = wire.stateless(method)
    assert (answer.status, answer.error["code"], answer.json["id"]) == (404, -32601, 1)


@pytest.mark.requirement("2026-07-28/gone")
@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"])
def test_what_the_revision_dropped_is_an_unknown_method(wire: Wire, method: str) -> None:
    answer = wire.stateless(method, {"protocolVersion": "2025-11-25", "uri": "x:y"})
    assert (answer.status, answer.error["code"]) == (404, -32601)


@pytest.mark.requirement("2026-07-28/gone")
def test_initialize_under_this_revisions_header_alone_is_not_served_as_an_older_one(wire: Wire) -> None:
    answer = wire.post(rpc("initialize", {"protocolVersion": "2025-11-25"}), {"mcp-protocol-version": "2026-07-28"})
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.requirement("2026-07-28/unsupported-features")
@pytest.mark.parametrize(
    "method", ["resources/list", "resources/templates/list", "prompts/list", "subscriptions/listen", "completion/complete", "tasks/get"]
)
def test_features_that_are_not_served_are_unknown_methods(wire: Wire, method: str) -> None:
    answer = wire.stateless(method)
    assert (answer.status, answer.error["code"]) == (404, -32601)


@pytest.mark.requirement("2026-07-28/notification")
@pytest.mark.parametrize("version", ["2026-07-28", None])
def test_a_notification_is_202_without_a_body(wire: Wire, version: str | None) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    answer = wire.post(body, {"mcp-protocol-version": version})
    assert (answer.status, answer.response.body) == (202, b"")


@pytest.mark.requirement("2026-07-28/notification")
def test_a_notification_of_an_unknown_version_is_refused(wire: Wire) -> None:
    answer = wire.post({"jsonrpc": "2.0", "method": "notifications/cancelled"}, {"mcp-protocol-version": "2099-01-01"})
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32022, None)


@pytest.mark.requirement("2026-07-28/posted-response")
def test_a_posted_response_is_refused(wire: Wire) -> None:
    answer = wire.post({"jsonrpc": "2.0", "id": 1, "result": {}}, {"mcp-protocol-version": "2026-07-28"})
    assert (answer.status, answer.error["code"]) == (400, -32600)


@pytest.mark.requirement("2026-07-28/internal-error")
def test_a_bug_is_an_internal_error_without_its_text(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    answer = wire.stateless("tools/call", {"name": BROKEN})
    assert (answer.status, answer.error["code"], answer.json["id"]) == (200, -32603, 1)
    assert SECRET_OF_A_BUG not in answer.response.body.decode()
    assert answer.error["data"]["correlation_id"] == answer.response.headers["x-correlation-id"]
    assert answer.error["data"]["correlation_id"] in caplog.text


@pytest.mark.requirement("2026-07-28/no-session")
def test_no_session_is_issued_and_one_that_comes_is_ignored(wire: Wire) -> None:
    answer = wire.stateless("tools/list", headers={"mcp-session-id": "left over", "last-event-id": "7"})
    assert answer.status == 200
    assert "mcp-session-id" not in answer.response.headers


def test_both_eras_are_served_side_by_side(wire: Wire) -> None:
    assert "resultType" in wire.stateless("tools/list").result
    assert "resultType" not in wire.legacy("2025-11-25", "tools/list").result
    assert "resultType" in wire.stateless("tools/list").result


def test_input_responses_of_a_retry_are_passed_over(wire: Wire, host: FakeHost) -> None:
    params = {"name": ECHO, "inputResponses": {}, "requestState": "s", "arguments": {}}
    assert wire.stateless("tools/call", params).result["isError"] is False
    assert stateless_headers(rpc("tools/call", params))["mcp-name"] == ECHO
