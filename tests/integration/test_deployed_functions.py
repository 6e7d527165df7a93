"""The template, deployed into the local emulator of AWS and called over HTTP: by hand, by the official SDK, by the MCP Inspector."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from infra.deploy.emulator import running
from infra.deploy.events import FOLDER as EVENTS
from infra.deploy.events import event_of
from infra.deploy.layers import ROOT
from infra.deploy.stack import client_of
from infra.deploy.trial import STACK, TRIAL_LAYERS, Agent, Trial
from pulse_kg.mcp.host import TOOL_PREFIX
from pulse_kg.mcp.tools import TOOL_NAMES
from tests.protocol.requirements import LEGACY
from tests.support.deployment import deployed as deployment
from tests.support.deployment import need
from tests.support.keyed_proxy import keyed_proxy
from tests.support.story import STEPS, Told, check

pytestmark = [pytest.mark.served, pytest.mark.slow, pytest.mark.timeout(600)]  # layers are fetched and built by the first run

INSPECTOR = ROOT / ".local" / "tools" / "node_modules" / "@modelcontextprotocol" / "inspector" / "cli" / "build" / "cli.js"
FUNCTIONS = {path.stem for path in EVENTS.glob("*.json")}
PREFIXED = sorted(TOOL_PREFIX + name for name in TOOL_NAMES)


@pytest.fixture(scope="module")
def deployed() -> Iterator[Trial]:
    with deployment() as trial:
        yield trial


def test_every_tool_of_the_catalogue_is_called_by_the_story() -> None:
    assert {step.tool for step in STEPS} == set(TOOL_NAMES)


# ------------------------------------------------------------------------------------------------------------------------------- by hand


def test_a_consolidation_runs_from_the_endpoint_to_the_event_in_the_queue(deployed: Trial) -> None:
    agent = deployed.agent("by_hand")

    def call(tool: str, arguments: dict[str, Any]) -> Any:
        params = {"name": TOOL_PREFIX + tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        status, message = deployed.post("/mcp", request, agent.key, MCP_Protocol_Version="2025-11-25")
        assert status == 200, message
        assert message["result"]["isError"] is False, message
        return message["result"]["structuredContent"]

    told = Told(agent.board, "spec_by_hand")
    for step in STEPS:
        told.note(step, call(step.tool, step.arguments(told)))
    check(told)
    queue = client_of("sqs", deployed.variables)
    messages = queue.receive_message(QueueUrl=deployed.queue, WaitTimeSeconds=10, MaxNumberOfMessages=10)["Messages"]
    assert [json.loads(message["Body"])["type"] for message in messages if agent.board in message["Body"]] == ["kg.consolidated.v1"]


def test_a_tool_answers_on_its_own_route(deployed: Trial) -> None:
    agent = deployed.agent("by_route")
    assert deployed.post("/tools/begin_consolidation", {}, agent.key)[1]["error"]["code"] == "invalid_argument"
    assert deployed.post("/tools/begin_consolidation", {}, "pk_aaaaaaaa_" + "a" * 52)[0] == 401
    assert deployed.post("/tools/nothing", {}, agent.key)[1]["error"]["code"] == "tool_not_found"


def test_a_direct_call_without_a_key_is_refused_by_the_tool_itself(deployed: Trial) -> None:
    payload = json.dumps({"arguments": {"board_id": "by_hand"}, "agent_id": "agt_1"})
    answer = client_of("lambda", deployed.variables).invoke(FunctionName=f"{STACK}-begin_consolidation", Payload=payload)
    assert json.loads(answer["Payload"].read())["status"] == 401


def test_the_relay_runs_and_reports(deployed: Trial) -> None:
    answer = client_of("lambda", deployed.variables).invoke(FunctionName=f"{STACK}-outbox_relay")
    assert json.loads(answer["Payload"].read())["failed"] == {}


def test_the_decay_tick_writes_what_was_counted_into_the_nodes(deployed: Trial) -> None:
    agent = deployed.agent("by_tick")
    session = deployed.call("begin_consolidation", _source(agent, 1), agent.key)["session_id"]
    node = {"session_id": session, "node_type": "Decision", "title": "The car is fast"}
    deployed.call("add_node_candidate", node, agent.key)
    (added,) = deployed.call("commit_consolidation", {"session_id": session}, agent.key)["applied"]["added"]
    node_id, store = added["node_id"], deployed.container.store
    deadline = time.monotonic() + 60
    while not (counted := store.hits.counted(agent.board)):  # a count that the store does not take at once is lost, and no fault
        assert time.monotonic() < deadline
        found = deployed.call("query_natural", {"board_id": agent.board, "query": "Is the car fast?"}, agent.key)
        assert [one["node_id"] for one in found["answer_nodes"]] == [node_id]

    first, second = (invoke_by_schedule(deployed, "decay_tick") for _ in range(2))

    assert (first["running"], first["failed"], first["left"]) == (False, {}, 0)
    assert first["hits"] >= counted[node_id][0] > 0
    ticked = store.graph.nodes(agent.board, [node_id])[node_id]
    assert (ticked.query_hits, ticked.last_queried_at) == counted[node_id]
    assert (ticked.last_recomputed_at or 0) > ticked.created_at
    assert (second["hits"], second["boards"]) == (0, first["boards"])


def invoke_by_schedule(deployed: Trial, function: str) -> Any:
    """What a function reports when the scheduler starts it."""
    answer = client_of("lambda", deployed.variables).invoke(FunctionName=f"{STACK}-{function}", Payload=json.dumps(event_of(function)))
    assert "FunctionError" not in answer
    return json.loads(answer["Payload"].read())


def test_texts_are_compared_by_the_model_of_the_embedding_function(deployed: Trial) -> None:
    """Words that share no stem are near in the model, and far apart in anything simpler."""
    agent = deployed.agent("by_model")
    session = deployed.call("begin_consolidation", _source(agent, 1), agent.key)["session_id"]
    for title in ("The car is fast", "Passwords are hashed with salt"):
        deployed.call("add_node_candidate", {"session_id": session, "node_type": "Decision", "title": title}, agent.key)
    deployed.call("commit_consolidation", {"session_id": session}, agent.key)
    session = deployed.call("begin_consolidation", _source(agent, 2), agent.key)["session_id"]
    added = deployed.call(
        "add_node_candidate", {"session_id": session, "node_type": "Decision", "title": "This vehicle goes quickly"}, agent.key
    )
    near = deployed.call("get_similar_nodes", {"session_id": session, "candidate_id": added["candidate_id"], "k": 2}, agent.key)
    first, second = near["matches"]
    assert first["title"] == "The car is fast"
    assert first["score"] > 0.5
    assert second["score"] < 0.2


def _source(agent: Agent, version: int) -> dict[str, Any]:
    return {"board_id": agent.board, "source_type": "spec", "source_id": "spec_cars", "source_version": version}


# ------------------------------------------------------------------------------------------------------------------------ the official SDK


@asynccontextmanager
async def negotiated(deployed: Trial, key: str, revision: str) -> AsyncIterator[Any]:
    """The SDK's client in a revision; it asks for its newest by itself, so an older one is asked for by hand."""
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=60) as http_client:
        transport = streamable_http_client(f"{deployed.url}/mcp", http_client=http_client)
        if revision not in LEGACY:
            async with Client(transport, mode=revision) as client:
                yield client
            return
        async with transport as streams, ClientSession(*streams) as session:
            info = types.Implementation(name="tests", version="0")
            params = types.InitializeRequestParams(protocol_version=revision, capabilities=types.ClientCapabilities(), client_info=info)
            session.adopt(await session.send_request(types.InitializeRequest(params=params), types.InitializeResult))
            await session.send_notification(types.InitializedNotification())
            assert session.protocol_version == revision
            yield session


@pytest.mark.parametrize("revision", [*LEGACY, "2026-07-28", "legacy", "auto"])
def test_the_official_client_lists_and_calls_every_tool_in_every_revision(deployed: Trial, revision: str) -> None:
    agent = deployed.agent("sdk_" + revision.replace("-", "_"))
    told = Told(agent.board, f"spec_{revision}")

    async def run() -> None:
        async with negotiated(deployed, agent.key, revision) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == PREFIXED
            for step in STEPS:
                result = await client.call_tool(TOOL_PREFIX + step.tool, step.arguments(told))
                (block,) = result.content
                assert isinstance(block, types.TextContent)
                assert result.is_error is False, block.text
                assert result.structured_content in (None, json.loads(block.text))
                told.note(step, json.loads(block.text))

    anyio.run(run)
    check(told)


# ------------------------------------------------------------------------------------------------- one function, in Lambda's own emulator


def invoked(deployed: Trial, function: str, event: Any, log: Path) -> Any:
    """The answer of a function that was just started; its log is added to the file."""
    own = log.with_suffix(".one")
    with running(function, deployed.environment(function), log=own, layers=TRIAL_LAYERS) as started:
        answer = started.invoke(event)
    with log.open("ab") as whole:
        whole.write(own.read_bytes())
    return answer


def test_every_function_does_its_work_from_its_event_and_tells_nobody_what_was_in_it(deployed: Trial, tmp_path: Path) -> None:
    agent, log = deployed.agent("emulator"), tmp_path / "log"
    told = Told(agent.board, "spec_emulator")
    for step in STEPS:
        event = event_of(step.tool, agent.key) | {"body": json.dumps(step.arguments(told))}
        answer = invoked(deployed, step.tool, event, log)
        assert answer["statusCode"] == 200, answer
        told.note(step, json.loads(answer["body"]))
    check(told)
    listed = invoked(deployed, "mcp", event_of("mcp", agent.key), log)
    assert [tool["name"] for tool in json.loads(listed["body"])["result"]["tools"]] == PREFIXED
    jobs = sorted(FUNCTIONS - set(TOOL_NAMES) - {"mcp"})
    answers = {job: invoked(deployed, job, event_of(job), log) for job in jobs}
    assert [job for job in jobs if {"error", "errorType"} & answers[job].keys()] == [], answers
    assert len(answers["embed"]["vectors"]) == len(event_of("embed")["texts"])
    assert answers["outbox_relay"]["failed"] == {}
    assert answers["dead_letters"] == {"batchItemFailures": []}

    written = log.read_text(encoding="utf-8")
    calls = [json.loads(line) for line in written.splitlines() if line.startswith("{") and '"message":"call"' in line]
    assert {call["code"] for call in calls} == {"ok"}
    assert {call["function"] for call in calls} == FUNCTIONS
    for secret in (agent.key, "Retries wait", "come back together", *event_of("embed")["texts"]):
        assert secret not in written


# ----------------------------------------------------------------------------------------------------------------------- the MCP Inspector


def inspected(url: str, *arguments: str) -> Any:
    """What the Inspector's command line prints."""
    node = shutil.which("node")
    need(there=node is not None and INSPECTOR.is_file(), missing="the MCP Inspector is not installed (Node.js 20): make tools-setup")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    command = [str(node), str(INSPECTOR), "--cli", f"{url}/mcp", "--transport", "http", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=kept, cwd=Path(INSPECTOR).parent)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def as_options(arguments: dict[str, Any]) -> Iterator[str]:
    for name, value in arguments.items():
        yield from ("--tool-arg", f"{name}={value if isinstance(value, str) else json.dumps(value)}")


def test_the_inspector_lists_and_calls_every_tool(deployed: Trial) -> None:
    agent = deployed.agent("inspector")
    told = Told(agent.board, "spec_inspector")
    with keyed_proxy(deployed.url, agent.key) as url:
        assert [tool["name"] for tool in inspected(url, "--method", "tools/list")["tools"]] == PREFIXED
        for step in STEPS:
            call = ["--method", "tools/call", "--tool-name", TOOL_PREFIX + step.tool, *as_options(step.arguments(told))]
            result = inspected(url, *call)
            assert result.get("isError", False) is False, result
            told.note(step, result["structuredContent"])
    check(told)
