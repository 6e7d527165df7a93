"""The MCP function: the protocol in front, each tool behind it in a function of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import pulse_kg
from pulse_kg.errors import PayloadTooLarge, StoreUnavailable
from pulse_kg.lambda_edge.catalogue import FILE, catalogue
from pulse_kg.lambda_edge.catalogue_file import declared
from pulse_kg.lambda_edge.mcp import FUNCTION_PREFIX, mcp_function
from pulse_kg.lambda_edge.tool import tool_function
from pulse_kg.mcp.tools import TOOL_NAMES, all_tools
from pulse_kg.ports.functions import FunctionFailed, FunctionTimeout
from tests.support.lambda_calls import Context, Handler, Request, content, json_request, package_logger_restored
from tests.support.world import Agent, World, opened

ARGUMENTS = {"board_id": "alpha", "source_type": "spec", "source_id": "spec_007", "source_version": 1}
HEAVY = {"pydantic", "boto3", "gremlin_python", "opensearchpy", "numpy", "onnxruntime", "tokenizers", "asyncio", "starlette"}


class Functions:
    """The tools' functions over one world, each called as Lambda would; keeps what it was sent."""

    def __init__(self, world: World) -> None:
        self._handlers = {f"kg-{name}": tool_function(name, container=lambda: world.container) for name in TOOL_NAMES}
        self.sent: list[tuple[str, Mapping[str, Any]]] = []
        self.failure: Exception | None = None

    def invoke(self, function: str, payload: Mapping[str, Any]) -> Any:
        self.sent.append((function, payload))
        if self.failure is not None:
            raise self.failure
        return json.loads(json.dumps(self._handlers[function](json.loads(json.dumps(payload)), Context())))


@pytest.fixture
def world() -> Iterator[World]:
    with package_logger_restored(), opened() as made:
        made.board("alpha")
        made.board("default")
        yield made


@pytest.fixture
def agent(world: World) -> Agent:
    return world.agent()


@pytest.fixture
def functions(world: World, monkeypatch: pytest.MonkeyPatch) -> Functions:
    monkeypatch.setenv(FUNCTION_PREFIX, "kg-")
    return Functions(world)


@pytest.fixture
def endpoint(world: World, functions: Functions) -> Handler:
    return mcp_function(container=lambda: world.container, authenticate=world.container.authenticate, invoker=lambda: functions)


def rpc(endpoint: Handler, agent: Agent | None, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = json_request("/mcp", agent.api_key if agent else None, message, mcp_protocol_version="2025-11-25")
    return content(endpoint(request.v1(), Context()))


def call(endpoint: Handler, agent: Agent, tool: str, arguments: object) -> Any:
    return rpc(endpoint, agent, "tools/call", name=f"okto_pulse_kg_{tool}", arguments=arguments)["result"]


def test_the_list_shows_every_tool_and_calls_no_function(endpoint: Handler, agent: Agent, functions: Functions, world: World) -> None:
    listed = rpc(endpoint, agent, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in listed] == [spec.name for spec in world.host.tools()]
    assert functions.sent == []


def test_the_file_of_the_catalogue_is_what_the_tools_declare() -> None:
    assert FILE.read_text(encoding="utf-8") == declared(), "run: python -m pulse_kg.lambda_edge.catalogue_file"
    assert catalogue() == tuple(sorted((tool.spec for tool in all_tools()), key=lambda spec: spec.name))


def test_a_call_goes_to_the_tool_s_own_function_with_the_caller_s_key(endpoint: Handler, agent: Agent, functions: Functions) -> None:
    result = call(endpoint, agent, "begin_consolidation", ARGUMENTS)
    assert result["isError"] is False
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    [(name, payload)] = functions.sent
    assert name == "kg-begin_consolidation"
    assert payload["api_key"] == agent.api_key
    assert "agent_id" not in payload


def test_a_whole_consolidation_runs_through_the_functions(endpoint: Handler, agent: Agent, functions: Functions) -> None:
    session = {"session_id": call(endpoint, agent, "begin_consolidation", ARGUMENTS)["structuredContent"]["session_id"]}
    node = {**session, "node_type": "Decision", "title": "Retry with jitter", "body": "Because clients retry together."}
    call(endpoint, agent, "add_node_candidate", node)
    call(endpoint, agent, "propose_reconciliation", session)
    committed = call(endpoint, agent, "commit_consolidation", session)["structuredContent"]
    assert len(committed["applied"]["added"]) == 1
    assert len(functions.sent) == 4


def test_a_refusal_of_the_tool_is_told_with_the_request_s_correlation_id(endpoint: Handler, agent: Agent, functions: Functions) -> None:
    result = call(endpoint, agent, "abort_consolidation", {"session_id": "kgs_0000000000000000000000000000"})
    error = json.loads(result["content"][0]["text"])["error"]
    assert result["isError"] is True
    assert error["correlation_id"] == functions.sent[0][1]["correlation_id"]


def test_an_unknown_key_reaches_no_function(endpoint: Handler, functions: Functions) -> None:
    answer = endpoint(json_request("/mcp", "pk_aaaaaaaa_" + "a" * 52, {}).v1(), Context())
    assert answer["statusCode"] == 401
    assert functions.sent == []


@pytest.mark.parametrize(
    ("failure", "code", "retryable"),
    [
        (StoreUnavailable("function"), "store_unavailable", True),
        (FunctionTimeout(), "store_unavailable", True),
        (PayloadTooLarge("too large"), "payload_too_large", False),
        (FunctionFailed("kg-x", "Runtime.ExitError"), "internal_error", False),
    ],
)
def test_what_befalls_the_function_is_an_envelope(
    endpoint: Handler, agent: Agent, functions: Functions, failure: Exception, code: str, *, retryable: bool
) -> None:
    functions.failure = failure
    error = json.loads(call(endpoint, agent, "begin_consolidation", ARGUMENTS)["content"][0]["text"])["error"]
    assert (error["code"], error["retryable"]) == (code, retryable)
    assert "Runtime" not in json.dumps(error)


@pytest.mark.parametrize("answer", [None, [], {}, {"status": "200", "is_error": False, "body": {}}, {"errorMessage": "x"}])
def test_an_answer_that_is_none_of_a_tool_is_an_internal_error(
    world: World, agent: Agent, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    class Odd:
        def invoke(self, function: str, payload: Mapping[str, Any]) -> Any:
            return answer

    monkeypatch.setenv(FUNCTION_PREFIX, "kg-")
    endpoint = mcp_function(container=lambda: world.container, authenticate=world.container.authenticate, invoker=Odd)
    error = json.loads(call(endpoint, agent, "begin_consolidation", ARGUMENTS)["content"][0]["text"])["error"]
    assert error["code"] == "internal_error"


def test_an_unknown_tool_is_refused_without_a_call(endpoint: Handler, agent: Agent, functions: Functions) -> None:
    assert rpc(endpoint, agent, "tools/call", name="okto_pulse_kg_nothing", arguments={})["error"]["code"] == -32602
    answer = endpoint(json_request("/tools/nothing", agent.api_key, {}).v1(), Context())
    assert (answer["statusCode"], content(answer)["error"]["code"]) == (404, "tool_not_found")
    assert functions.sent == []


def test_a_route_with_a_parameter_is_the_path_that_was_called(endpoint: Handler, agent: Agent, functions: Functions) -> None:
    event = json_request("/tools/okto_pulse_kg_begin_consolidation", agent.api_key, ARGUMENTS).v1(
        resource="/tools/{tool}", pathParameters={"tool": "okto_pulse_kg_begin_consolidation"}
    )
    assert content(endpoint(event, Context()))["session_id"].startswith("kgs_")


def test_without_a_prefix_the_tools_run_in_the_endpoint_itself(world: World, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FUNCTION_PREFIX, raising=False)
    endpoint = mcp_function(container=lambda: world.container, authenticate=world.container.authenticate)
    assert call(endpoint, agent, "begin_consolidation", ARGUMENTS)["isError"] is False


def test_health_needs_no_key(endpoint: Handler) -> None:
    answer = endpoint(Request("/healthz", "GET", body=None).v1(), Context())
    assert (answer["statusCode"], content(answer)) == (200, {"status": "ok"})


def test_what_is_not_served_is_told_so(endpoint: Handler) -> None:
    answer = endpoint(Request("/nowhere", "GET", body=None).v1(resource="/{proxy+}", pathParameters={"proxy": "nowhere"}), Context())
    assert answer["statusCode"] == 404


def test_a_call_without_http_is_refused(endpoint: Handler, agent: Agent) -> None:
    answer = endpoint({"tool": "begin_consolidation", "arguments": ARGUMENTS, "api_key": agent.api_key}, Context())
    assert (answer["status"], answer["body"]["error"]["code"]) == (400, "invalid_request")


def test_an_answer_that_lambda_would_refuse_for_its_size_is_a_clear_error(
    endpoint: Handler, agent: Agent, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"status": 200, "is_error": False, "body": {"text": '"' * 1_500_000}}
    monkeypatch.setattr(functions, "invoke", lambda *_: answer)
    response = endpoint(json_request("/tools/begin_consolidation", agent.api_key, ARGUMENTS).v1(), Context())
    assert (response["statusCode"], content(response)["error"]["code"]) == (422, "resource_exhausted")


def test_the_largest_answer_of_a_tool_fits_through_the_endpoint(
    endpoint: Handler, agent: Agent, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": f"dec_{n:016x}", "title": "What was decided here, and why it still holds"} for n in range(22_000)]
    assert 1_900_000 < len(json.dumps(rows)) < 2_000_000
    monkeypatch.setattr(functions, "invoke", lambda *_: {"status": 200, "is_error": False, "body": {"rows": rows}})
    assert len(call(endpoint, agent, "get_similar_nodes", {})["structuredContent"]["rows"]) == 22_000


def test_the_endpoint_loads_no_tool_and_no_driver_before_it_is_asked() -> None:
    package = Path(pulse_kg.__file__).parents[1]
    code = "import sys; from pulse_kg.lambda_edge.mcp import mcp_function; mcp_function(); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(package)}, capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(ran.stdout.split())


@pytest.mark.parametrize(("variables", "before"), [({"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001"}, False), ({}, True)])
def test_garbage_is_not_looked_for_before_the_first_call_on_lambda_is_over(variables: dict[str, str], before: bool) -> None:
    code = (
        "import gc; from pulse_kg.lambda_edge.observed import observed; before = gc.isenabled()\n"
        "with observed('mcp', None): print(before, gc.isenabled())\n"
        "print(gc.isenabled())"
    )
    package = Path(pulse_kg.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(package), **variables}, capture_output=True, text=True, check=True
    )
    lines = [line for line in ran.stdout.splitlines() if not line.startswith("{")]
    assert lines == [f"{before} {before}", "True"]
