"""The three revisions that begin with `initialize`."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tests.protocol.fakes import BROKEN, ECHO, REFUSE, SECRET_OF_A_BUG, SLOW, FakeHost, Wire, rpc
from tests.protocol.requirements import LEGACY

every_revision = pytest.mark.parametrize("revision", LEGACY)


def hello(version: object) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "tests", "version": "0"}}


@every_revision
class TestAllThree:
    @pytest.mark.requirement("2025/negotiation-echo", "2025/server-info", "2025/tools-capability")
    def test_initialize_answers_the_requested_revision(self, wire: Wire, revision: str) -> None:
        result = wire.legacy(None, "initialize", hello(revision)).result
        assert result["protocolVersion"] == revision
        assert result["capabilities"] == {"tools": {"listChanged": False}}
        assert result["serverInfo"]["name"] == "fake"
        assert result["serverInfo"]["version"] == "1.2.3"
        assert result["instructions"] == "Call echo."

    @pytest.mark.requirement("2025/no-session")
    @pytest.mark.parametrize("method", ["initialize", "ping", "tools/list"])
    def test_no_session_is_issued_and_one_that_comes_is_ignored(self, wire: Wire, revision: str, method: str) -> None:
        headers = {"mcp-protocol-version": revision, "mcp-session-id": "left over", "last-event-id": "7"}
        answer = wire.post(rpc(method, hello(revision)), headers)
        assert answer.status == 200
        assert "mcp-session-id" not in answer.response.headers

    @pytest.mark.requirement("2025/initialized")
    @pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "notifications/unheard-of", "tools/call"])
    def test_a_notification_is_202_without_a_body(self, wire: Wire, host: FakeHost, revision: str, method: str) -> None:
        answer = wire.post({"jsonrpc": "2.0", "method": method}, {"mcp-protocol-version": revision})
        assert (answer.status, answer.response.body) == (202, b"")
        assert host.calls == []

    @pytest.mark.requirement("2025/posted-response")
    @pytest.mark.parametrize("outcome", [{"result": {}}, {"error": {"code": 1, "message": "no"}}], ids=str)
    def test_a_posted_response_is_202_without_a_body(self, wire: Wire, revision: str, outcome: dict[str, Any]) -> None:
        answer = wire.post({"jsonrpc": "2.0", "id": 1, **outcome}, {"mcp-protocol-version": revision})
        assert (answer.status, answer.response.body) == (202, b"")

    @pytest.mark.requirement("2025/ping")
    def test_ping_is_answered_with_nothing(self, wire: Wire, revision: str) -> None:
        assert wire.legacy(revision, "ping").json == {"jsonrpc": "2.0", "id": 1, "result": {}}

    @pytest.mark.requirement("2025/unknown-method")
    @pytest.mark.parametrize("method", ["resources/list", "prompts/list", "logging/setLevel", "server/discover", "", "Ping", "tools/List"])
    def test_an_unknown_method_is_an_error_in_a_delivered_response(self, wire: Wire, revision: str, method: str) -> None:
        answer = wire.legacy(revision, method)
        assert (answer.status, answer.error["code"]) == (200, -32601)

    @pytest.mark.requirement("2025/bad-params")
    @pytest.mark.parametrize("method", ["initialize", "ping", "tools/list", "tools/call"])
    @pytest.mark.parametrize("params", [[], [1], "x", 5, True], ids=repr)
    def test_parameters_must_be_an_object(self, wire: Wire, revision: str, method: str, params: object) -> None:
        answer = wire.legacy(revision, method, params)
        assert (answer.status, answer.error["code"]) == (200, -32602)

    @pytest.mark.requirement("2025/list-order", "2025/annotations")
    def test_the_list_is_sorted_and_the_same_each_time(self, wire: Wire, revision: str) -> None:
        first, second = (wire.legacy(revision, "tools/list", {}).response.body for _ in range(2))
        assert first == second
        tools = json.loads(first)["result"]["tools"]
        assert [tool["name"] for tool in tools] == sorted([BROKEN, ECHO, REFUSE, SLOW])
        for tool in tools:
            assert tool["description"]
            assert tool["inputSchema"]["type"] == "object"
            assert tool["annotations"] == {
                "title": tool["name"].removeprefix("okto_pulse_kg_").capitalize(),
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            }

    @pytest.mark.requirement("2025/list-cursor")
    @pytest.mark.parametrize("cursor", ["", "page2", 5, {}], ids=repr)
    def test_a_cursor_that_was_never_given_out_is_refused(self, wire: Wire, revision: str, cursor: object) -> None:
        assert wire.legacy(revision, "tools/list", {"cursor": cursor}).error["code"] == -32602
        assert wire.legacy(revision, "tools/list", {"cursor": None}).result["tools"]

    @pytest.mark.requirement("2025/call-text")
    def test_an_answer_is_text_that_holds_json(self, wire: Wire, revision: str) -> None:
        result = wire.legacy(revision, "tools/call", {"name": ECHO, "arguments": {"text": "grüße"}}).result
        assert result["isError"] is False
        assert [block["type"] for block in result["content"]] == ["text"]
        assert json.loads(result["content"][0]["text"]) == {"text": "grüße", "length": 5}
        assert "grüße" in result["content"][0]["text"]

    @pytest.mark.requirement("2025/call-error")
    def test_a_refusal_is_a_result_with_the_envelope_as_text(self, wire: Wire, revision: str) -> None:
        answer = wire.legacy(revision, "tools/call", {"name": REFUSE})
        assert answer.result["isError"] is True
        assert "structuredContent" not in answer.result
        error = json.loads(answer.result["content"][0]["text"])["error"]
        assert error["code"] == "session_not_found"
        assert error["correlation_id"] == answer.response.headers["x-correlation-id"]

    @pytest.mark.requirement("2025/unknown-tool")
    @pytest.mark.parametrize("name", ["nope", "echo", "", "okto_pulse_kg_ECHO", "x" * 5000])
    def test_an_unknown_tool_is_a_protocol_error(self, wire: Wire, host: FakeHost, revision: str, name: str) -> None:
        answer = wire.legacy(revision, "tools/call", {"name": name, "arguments": {}})
        assert (answer.status, answer.error["code"]) == (200, -32602)
        assert len(answer.error["message"]) < 300
        assert host.calls == []

    @pytest.mark.requirement("2025/unknown-tool")
    @pytest.mark.parametrize("params", [{}, {"name": None}, {"name": 5}, {"name": [ECHO]}], ids=repr)
    def test_a_name_must_be_a_string(self, wire: Wire, revision: str, params: dict[str, Any]) -> None:
        assert wire.legacy(revision, "tools/call", params).error["code"] == -32602

    @pytest.mark.requirement("2025/absent-arguments")
    @pytest.mark.parametrize("params", [{}, {"arguments": None}, {"arguments": {}}], ids=repr)
    def test_absent_arguments_are_an_empty_object(self, wire: Wire, host: FakeHost, revision: str, params: dict[str, Any]) -> None:
        assert wire.legacy(revision, "tools/call", {"name": ECHO, **params}).result["isError"] is False
        assert host.calls == [(ECHO, {})]

    def test_a_progress_token_makes_no_request_stateless(self, wire: Wire, revision: str) -> None:
        result = wire.legacy(revision, "tools/call", {"name": ECHO, "_meta": {"progressToken": 1}}).result
        assert "resultType" not in result

    def test_a_bug_is_an_internal_error_without_its_text(self, wire: Wire, revision: str, caplog: pytest.LogCaptureFixture) -> None:
        answer = wire.legacy(revision, "tools/call", {"name": BROKEN})
        assert (answer.status, answer.error["code"], answer.json["id"]) == (200, -32603, 1)
        assert SECRET_OF_A_BUG not in answer.response.body.decode()
        assert answer.error["data"]["correlation_id"] in caplog.text


@pytest.mark.requirement("2025/negotiation-fallback")
@pytest.mark.parametrize("requested", ["2024-11-05", "2026-07-28", "1.0", "", "2099-01-01", "2025-06-18 "])
def test_initialize_answers_the_newest_of_its_era_to_an_unknown_revision(wire: Wire, requested: str) -> None:
    assert wire.legacy(None, "initialize", hello(requested)).result["protocolVersion"] == "2025-11-25"


@pytest.mark.requirement("2025/negotiation-fallback")
@pytest.mark.parametrize("params", [{}, {"protocolVersion": None}, {"protocolVersion": 20250618}], ids=repr)
def test_initialize_must_name_a_revision(wire: Wire, params: dict[str, Any]) -> None:
    assert wire.legacy(None, "initialize", params).error["code"] == -32602


@pytest.mark.requirement("2025/version-header")
@pytest.mark.parametrize("version", ["2024-11-05", "1999-01-01", "2099-01-01", "", "2025-06-18, 2025-06-18", "latest"])
@pytest.mark.parametrize(
    "body", [rpc("tools/list"), rpc("initialize", hello("2025-06-18")), {"jsonrpc": "2.0", "method": "notifications/x"}], ids=str
)
def test_an_unsupported_version_header_is_400(wire: Wire, version: str, body: dict[str, Any]) -> None:
    answer = wire.post(body, {"mcp-protocol-version": version})
    assert answer.status == 400
    assert answer.error["code"] in (-32022, -32602)


@pytest.mark.requirement("2025-03-26/assumed", "2025-03-26/no-later-fields")
@pytest.mark.parametrize("version", [None, "2025-03-26"])
def test_without_a_header_and_in_the_first_revision_later_fields_are_left_out(wire: Wire, version: str | None) -> None:
    for tool in wire.legacy(version, "tools/list").result["tools"]:
        assert tool.keys() == {"name", "description", "inputSchema", "annotations"}
    assert "structuredContent" not in wire.legacy(version, "tools/call", {"name": ECHO}).result
    assert wire.legacy(version, "initialize", hello("2025-03-26")).result["serverInfo"] == {"name": "fake", "version": "1.2.3"}


@pytest.mark.requirement("2025-06-18/titles", "2025-11-25/titles")
@pytest.mark.parametrize("revision", LEGACY[1:])
def test_later_revisions_have_titles(wire: Wire, revision: str) -> None:
    assert [tool["title"] for tool in wire.legacy(revision, "tools/list").result["tools"]] == ["Broken", "Echo", "Refuse", "Slow"]
    assert wire.legacy(None, "initialize", hello(revision)).result["serverInfo"]["title"] == "A fake"


@pytest.mark.requirement("2025-06-18/structured", "2025-11-25/structured")
@pytest.mark.parametrize("revision", LEGACY[1:])
def test_structured_content_equals_its_text_and_fits_the_schema(wire: Wire, revision: str) -> None:
    schemas = {tool["name"]: tool["outputSchema"] for tool in wire.legacy(revision, "tools/list").result["tools"]}
    result = wire.legacy(revision, "tools/call", {"name": ECHO, "arguments": {"text": "x"}}).result
    jsonschema.validate(result["structuredContent"], schemas[ECHO])
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


@pytest.mark.requirement("2025-11-25/argument-errors")
@pytest.mark.parametrize("arguments", [{"unknown": 1}, [], "text", 5, False], ids=repr)
def test_wrong_arguments_are_a_refusal_that_a_model_can_read(wire: Wire, arguments: object) -> None:
    result = wire.legacy("2025-11-25", "tools/call", {"name": ECHO, "arguments": arguments}).result
    assert result["isError"] is True
    error = json.loads(result["content"][0]["text"])["error"]
    assert error["code"] == "invalid_argument"
    assert error["details"]["problems"]
