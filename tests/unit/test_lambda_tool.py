"""A tool's function: every shape of event, its own check of the key, and what it says when it can't."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pulse_kg.bootstrap import Container
from pulse_kg.errors import StoreUnavailable
from pulse_kg.lambda_edge import bound_key, tool_function
from pulse_kg.lambda_edge.tool import tool_function as function_over
from tests.support.lambda_calls import (
    Context,
    Handler,
    Request,
    base64_body,
    content,
    json_request,
    package_logger_restored,
    through_gateway,
)
from tests.support.world import Agent, World, opened

ARGUMENTS = {"board_id": "alpha", "source_type": "spec", "source_id": "spec_007", "source_version": 1}
TOOL = "begin_consolidation"
PATH = f"/tools/{TOOL}"


@pytest.fixture
def world() -> Iterator[World]:
    with package_logger_restored(), opened() as made:
        made.board("alpha")
        yield made


@pytest.fixture
def agent(world: World) -> Agent:
    return world.agent()


@pytest.fixture
def function(world: World) -> Handler:
    return function_over(TOOL, container=lambda: world.container)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_an_http_event_is_answered_by_an_http_response(function: Handler, agent: Agent, version: str) -> None:
    request = json_request(PATH, agent.api_key, ARGUMENTS)
    answer = function(getattr(request, version)(), Context())
    assert answer["statusCode"] == 200
    assert answer["isBase64Encoded"] is False
    assert answer["headers"]["content-type"] == "application/json"
    assert content(answer)["session_id"].startswith("kgs_")


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_body_in_base64_is_read(function: Handler, agent: Agent, version: str) -> None:
    event = base64_body(getattr(json_request(PATH, agent.api_key, ARGUMENTS), version)())
    assert function(event, Context())["statusCode"] == 200


def test_what_is_said_to_be_base64_and_is_not_is_an_invalid_request(function: Handler, agent: Agent) -> None:
    event = json_request(PATH, agent.api_key, ARGUMENTS).v1(body="%%%", isBase64Encoded=True)
    answer = function(event, Context())
    assert (answer["statusCode"], content(answer)["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("missing", ["headers", "multiValueHeaders", "body"])
def test_null_parts_of_an_event_are_read_as_empty(function: Handler, agent: Agent, version: str, missing: str) -> None:
    event = getattr(json_request(PATH, agent.api_key, ARGUMENTS), version)(**{missing: None})
    answer = function(event, Context())
    assert answer["statusCode"] in {200, 401, 422}
    assert content(answer)


def test_without_any_header_the_caller_is_unknown(function: Handler) -> None:
    answer = function(Request(PATH).v1(headers=None, multiValueHeaders=None), Context())
    assert answer["statusCode"] == 401
    assert answer["headers"]["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("name", ["authorization", "AUTHORIZATION", "Authorization"])
def test_a_header_counts_whatever_its_case(function: Handler, agent: Agent, name: str) -> None:
    request = Request(PATH, headers={"content-TYPE": "application/json", name: f"Bearer {agent.api_key}"}, body=json.dumps(ARGUMENTS))
    assert function(request.v1(), Context())["statusCode"] == 200


def test_headers_that_come_only_as_lists_are_read(function: Handler, agent: Agent) -> None:
    assert function(json_request(PATH, agent.api_key, ARGUMENTS).v1(headers=None), Context())["statusCode"] == 200


def test_two_keys_in_one_request_open_nothing(function: Handler, agent: Agent) -> None:
    event = json_request(PATH, agent.api_key, ARGUMENTS).v1()
    event["multiValueHeaders"]["Authorization"] = [f"Bearer {agent.api_key}", f"Bearer {agent.api_key}"]
    assert function(event, Context())["statusCode"] == 401


def test_a_get_is_refused_at_once(function: Handler) -> None:
    answer = function(Request(PATH, "GET", body=None).v1(), Context())
    assert (answer["statusCode"], answer["headers"]["allow"]) == (405, "POST")


def test_the_function_runs_its_tool_whatever_the_path(function: Handler, agent: Agent) -> None:
    answer = function(json_request("/elsewhere", agent.api_key, ARGUMENTS).v2(), Context())
    assert content(answer)["session_id"].startswith("kgs_")


def test_a_direct_call_is_answered_by_status_and_body(function: Handler, agent: Agent) -> None:
    answer = function({"tool": TOOL, "arguments": ARGUMENTS, "api_key": agent.api_key}, Context())
    assert (answer["status"], answer["is_error"]) == (200, False)
    assert answer["body"]["session_id"].startswith("kgs_")


def test_a_direct_call_may_leave_out_the_tool_or_prefix_it(function: Handler, agent: Agent) -> None:
    for tool in ({}, {"tool": None}, {"tool": f"okto_pulse_kg_{TOOL}"}):
        assert function({**tool, "arguments": ARGUMENTS, "api_key": agent.api_key}, Context())["status"] == 200


def test_a_direct_call_of_another_tool_is_refused(function: Handler, agent: Agent) -> None:
    answer = function({"tool": "abort_consolidation", "arguments": {}, "api_key": agent.api_key}, Context())
    assert (answer["status"], answer["body"]["error"]["code"]) == (404, "tool_not_found")


@pytest.mark.parametrize(
    "event",
    [
        {},
        None,
        [],
        "text",
        ARGUMENTS,
        {"agent_id": "agt_1", "arguments": ARGUMENTS},
        {"caller": {"agent_id": "agt_1", "flags": ["kg.*"]}, "arguments": ARGUMENTS},
        {"arguments": ARGUMENTS, "api_key": None},
        {"arguments": ARGUMENTS, "api_key": ""},
        {"arguments": ARGUMENTS, "api_key": {"agent_id": "agt_1"}},
        {"arguments": ARGUMENTS, "api_key": "pk_aaaaaaaa_" + "a" * 52},
    ],
    ids=str,
)
def test_a_principal_without_a_good_key_is_nobody(function: Handler, event: Any) -> None:
    answer = function(event, Context())
    assert (answer["status"], answer["is_error"], answer["body"]["error"]["code"]) == (401, True, "unauthorized")


def test_a_direct_call_with_a_principal_beside_the_key_is_refused(function: Handler, agent: Agent) -> None:
    answer = function({"arguments": ARGUMENTS, "api_key": agent.api_key, "agent_id": "agt_other"}, Context())
    assert answer["body"]["error"]["code"] == "invalid_argument"
    assert answer["body"]["error"]["details"]["problems"][0]["path"] == "agent_id"


def test_the_function_checks_the_agent_s_flags_itself(world: World, function: Handler) -> None:
    reader = world.agent("reader", preset="Reporter")
    answer = function({"arguments": ARGUMENTS, "api_key": reader.api_key}, Context())
    assert (answer["status"], answer["body"]["error"]["code"]) == (403, "permission_denied")


def test_the_correlation_id_of_the_caller_is_kept(function: Handler) -> None:
    answer = function({"api_key": "none", "correlation_id": "0123456789abcdef"}, Context())
    assert answer["body"]["error"]["correlation_id"] == "0123456789abcdef"


def test_a_correlation_id_of_another_form_is_replaced(function: Handler) -> None:
    shown = function({"api_key": "none", "correlation_id": "<script>"}, Context())["body"]["error"]["correlation_id"]
    assert shown != "<script>"
    assert len(shown) == 16


def test_a_gateway_s_call_is_answered_by_the_answer_alone(function: Handler, agent: Agent) -> None:
    context = through_gateway(f"kg-target___{TOOL}", {"X-Api-Key": agent.api_key})
    assert function(ARGUMENTS, context)["session_id"].startswith("kgs_")


def test_the_target_s_name_ends_at_the_first_mark(function: Handler, agent: Agent) -> None:
    context = through_gateway(f"target___okto_pulse_kg_{TOOL}", {"authorization": f"Bearer {agent.api_key}"})
    assert "session_id" in function(ARGUMENTS, context)
    context = through_gateway(f"target___more___{TOOL}", {"authorization": f"Bearer {agent.api_key}"})
    assert function(ARGUMENTS, context)["error"]["code"] == "tool_not_found"


def test_a_gateway_s_own_token_does_not_hide_the_key(function: Handler, agent: Agent) -> None:
    context = through_gateway(f"t___{TOOL}", {"Authorization": "Bearer eyJhbGciOi", "x-api-key": agent.api_key})
    assert "session_id" in function(ARGUMENTS, context)


@pytest.mark.parametrize("headers", [None, {}, {"X-Other": "1"}])
def test_a_gateway_s_call_without_a_key_is_nobody_s(function: Handler, headers: dict[str, str] | None) -> None:
    assert function(ARGUMENTS, through_gateway(f"t___{TOOL}", headers))["error"]["code"] == "unauthorized"


def test_the_key_of_the_arguments_opens_nothing_through_a_gateway(function: Handler, agent: Agent) -> None:
    answer = function({**ARGUMENTS, "api_key": agent.api_key}, through_gateway(f"t___{TOOL}", {}))
    assert answer["error"]["code"] == "unauthorized"


def test_a_bound_deployment_calls_as_its_one_agent(function: Handler, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    from aws_lambda_powertools.utilities import parameters

    monkeypatch.setenv(bound_key.VARIABLE, "/pulse-kg/bound-key")
    monkeypatch.setattr(parameters, "get_parameter", lambda name, **_: {"/pulse-kg/bound-key": agent.api_key}[name])
    assert "session_id" in function(ARGUMENTS, through_gateway(f"t___{TOOL}", {}))


def test_a_binding_opens_no_other_shape(function: Handler, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    from aws_lambda_powertools.utilities import parameters

    monkeypatch.setenv(bound_key.VARIABLE, "/pulse-kg/bound-key")
    monkeypatch.setattr(parameters, "get_parameter", lambda *_, **__: agent.api_key)
    assert function({"arguments": ARGUMENTS}, Context())["status"] == 401
    assert function(Request(PATH).v1(), Context())["statusCode"] == 401


def test_a_wrong_key_in_the_header_is_not_replaced_by_the_bound_one(
    function: Handler, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aws_lambda_powertools.utilities import parameters

    monkeypatch.setenv(bound_key.VARIABLE, "/pulse-kg/bound-key")
    monkeypatch.setattr(parameters, "get_parameter", lambda *_, **__: agent.api_key)
    context = through_gateway(f"t___{TOOL}", {"x-api-key": "pk_wrong"})
    assert function(ARGUMENTS, context)["error"]["code"] == "unauthorized"


def test_with_no_time_left_nothing_is_begun(function: Handler, agent: Agent) -> None:
    event = {"arguments": ARGUMENTS, "api_key": agent.api_key}
    answer = function(event, Context(remaining_ms=600))
    assert (answer["status"], answer["body"]["error"]["retryable"]) == (503, True)
    http = function(json_request(PATH, agent.api_key, ARGUMENTS).v1(), Context(remaining_ms=0))
    assert (http["statusCode"], content(http)["error"]["code"]) == (503, "store_unavailable")


def test_the_time_left_bounds_the_use_case_and_the_adapters(world: World, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulse_kg.adapters.budget import seconds_left
    from pulse_kg.mcp import local_host

    seen: list[tuple[float, float]] = []

    class Spy(local_host.LocalToolHost):
        def call(self, *args: Any, **kwargs: Any) -> Any:
            seen.append((self._services.limits.call_seconds, seconds_left()))
            return super().call(*args, **kwargs)

    monkeypatch.setattr("pulse_kg.mcp.local_host.LocalToolHost", Spy)
    function = function_over(TOOL, container=lambda: world.container)
    event = {"arguments": ARGUMENTS, "api_key": agent.api_key}
    function(event, Context(remaining_ms=5_000))
    function(event, Context(remaining_ms=900_000))
    assert seen[0][0] == pytest.approx(4.5)
    assert 4.0 < seen[0][1] <= 4.5
    assert seen[1][0] == pytest.approx(28.0)


@pytest.mark.parametrize("shape", ["http", "direct", "gateway"])
def test_what_nobody_foresaw_is_an_internal_error_without_its_text(shape: str, agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> Container:
        raise RuntimeError("secret of the driver")

    function = function_over(TOOL, container=broken)
    if shape == "http":
        answer = function(json_request(PATH, agent.api_key, ARGUMENTS).v1(), Context())
        assert answer["statusCode"] == 500
        body = content(answer)
    elif shape == "direct":
        body = function({"arguments": ARGUMENTS, "api_key": agent.api_key}, Context())["body"]
    else:
        body = function(ARGUMENTS, through_gateway(f"t___{TOOL}", {"x-api-key": agent.api_key}))
    assert body["error"]["code"] == "internal_error"
    assert "secret" not in json.dumps(body)
    assert body["error"]["correlation_id"] in capsys.readouterr().out


def test_a_store_that_is_down_is_told_as_such_and_tried_again(world: World, agent: Agent) -> None:
    states: list[Exception | None] = [StoreUnavailable("identity"), None]

    def container() -> Container:
        failure = states.pop(0) if states else None
        if failure is not None:
            raise failure
        return world.container

    function = function_over(TOOL, container=container)
    event = {"arguments": ARGUMENTS, "api_key": agent.api_key}
    assert function(event, Context())["status"] == 503
    assert function(event, Context())["status"] == 200


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_neither_log_nor_metrics_hold_a_key_or_a_payload(
    function: Handler, agent: Agent, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_KG_LOG_LEVEL", "DEBUG")
    function({"arguments": {**ARGUMENTS, "source_id": "canary_artifact"}, "api_key": agent.api_key}, Context())
    function(json_request(PATH, agent.api_key, {"board_id": "canary_board"}).v1(), Context())
    out = capsys.readouterr().out
    assert agent.api_key not in out
    assert agent.api_key.split("_")[2] not in out
    assert "canary" not in out


def test_each_call_writes_one_line_with_its_outcome(
    function: Handler, agent: Agent, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_KG_LOG_LEVEL", "INFO")
    answer = function(json_request(PATH, agent.api_key, {}).v1(), Context())
    calls = [line for line in lines(capsys.readouterr().out) if line.get("message") == "call"]
    assert [(c["function"], c["code"], c["correlation_id"]) for c in calls] == [
        (TOOL, "invalid_argument", content(answer)["error"]["correlation_id"])
    ]


def test_calls_errors_and_durations_are_metrics(function: Handler, agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    function({"arguments": {}, "api_key": agent.api_key}, Context())
    emitted = [line for line in lines(capsys.readouterr().out) if "_aws" in line]
    assert all(line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "PulseKG" for line in emitted)
    assert emitted[0]["service"] == TOOL
    assert (emitted[0]["Calls"], emitted[0]["Errors"]) == ([1.0], [1.0])
    assert (emitted[1]["code"], emitted[1]["ErrorsByCode"]) == ("invalid_argument", [1.0])


def test_there_is_no_function_for_a_tool_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="no_such_tool"):
        tool_function("no_such_tool")
