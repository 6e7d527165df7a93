"""The template, deployed into the local emulator of AWS and called over HTTP: a minute, and `pulse-kg up` must have been run.

PULSE_TEST_DEPLOYMENT=1 .venv/bin/python -m pytest tests/integration/test_deployed_functions.py
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from infra.deploy.invoke import STACK_FILE
from infra.deploy.stack import client_of, deploy_local, local_variables, url_of
from pulse_kg.adapters.dynamodb.tables import TABLES
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import open_container
from pulse_kg.settings import Settings
from pulse_kg.usecases.boards import create_board
from pulse_kg.usecases.identity import create_agent

pytestmark = [
    pytest.mark.local_stack,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        os.environ.get("PULSE_TEST_DEPLOYMENT") != "1" or not STACK_FILE.is_file(),
        reason="deploys into the local servers; to run it: make up, then PULSE_TEST_DEPLOYMENT=1 .venv/bin/python -m pytest "
        "tests/integration/test_deployed_functions.py",
    ),
]

STACK = "pulse-kg-test"


@dataclass
class Deployed:
    """The deployed API, with a key of an agent on a board of its own."""

    url: str
    key: str
    board: str
    queue: str
    variables: dict[str, str]

    def post(self, path: str, body: object, *, key: str | None = None) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key or self.key}", "MCP-Protocol-Version": "2025-11-25"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - our own URL
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def call(self, tool: str, **arguments: Any) -> Any:
        params = {"name": f"okto_pulse_kg_{tool}", "arguments": arguments}
        status, message = self.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert status == 200, message
        assert message["result"]["isError"] is False, message
        return message["result"]["structuredContent"]


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    prefix = f"test_{int(time.time())}_"
    variables = {**local_variables(STACK_FILE.read_text(encoding="utf-8")), "PULSE_KG_TABLE_PREFIX": prefix}
    outputs = deploy_local({"PULSE_KG_TABLE_PREFIX": prefix}, stack=STACK)
    container = open_container(Settings(store="aws"), embedder=HashingEmbedder(), environment=variables)
    board, now = prefix.rstrip("_"), container.clock.now()
    create_board(board, None, boards=container.boards, now=now)
    issued = create_agent(
        "ada", "Full Control", [board], (), identity=container.identity, boards=container.boards, ids=container.ids, now=now
    )
    container.close()
    url = url_of(variables["AWS_ENDPOINT_URL"], outputs["ApiId"]).removesuffix("/mcp")
    yield Deployed(url, issued.api_key, board, outputs["EventsQueueUrl"], variables)
    client_of("cloudformation", variables).delete_stack(StackName=STACK)
    tables = client_of("dynamodb", variables)
    for table in TABLES:
        tables.delete_table(TableName=prefix + table.name)
    index = urllib.request.Request(f"{variables['PULSE_KG_OPENSEARCH_URL']}/{prefix}nodes_1", method="DELETE")  # noqa: S310 - our own URL
    urllib.request.urlopen(index, timeout=60).close()  # noqa: S310


def test_a_consolidation_runs_from_the_endpoint_to_the_event_in_the_queue(deployed: Deployed) -> None:
    begun = deployed.call("begin_consolidation", board_id=deployed.board, source_type="spec", source_id="spec_007", source_version=1)
    session = begun["session_id"]
    deployed.call(
        "add_node_candidate", session_id=session, node_type="Decision", title="Retries wait with jitter", body="They would collide."
    )
    proposed = deployed.call("propose_reconciliation", session_id=session)
    committed = deployed.call("commit_consolidation", session_id=session)

    assert [proposal["hint"] for proposal in proposed["proposals"]] == ["ADD"]
    assert len(committed["applied"]["added"]) == 1
    events = client_of("sqs", deployed.variables).receive_message(QueueUrl=deployed.queue, WaitTimeSeconds=10)["Messages"]
    assert [json.loads(event["Body"])["type"] for event in events] == ["kg.consolidated.v1"]


def test_a_tool_answers_on_its_own_route(deployed: Deployed) -> None:
    assert deployed.post("/tools/begin_consolidation", {})[1]["error"]["code"] == "invalid_argument"
    assert deployed.post("/tools/begin_consolidation", {}, key="pk_aaaaaaaa_" + "a" * 52)[0] == 401
    assert deployed.post("/tools/nothing", {})[1]["error"]["code"] == "tool_not_found"


def test_a_direct_call_without_a_key_is_refused_by_the_tool_itself(deployed: Deployed) -> None:
    payload = json.dumps({"arguments": {"board_id": deployed.board}, "agent_id": "agt_1"})
    answer = client_of("lambda", deployed.variables).invoke(FunctionName=f"{STACK}-begin_consolidation", Payload=payload)
    assert json.loads(answer["Payload"].read())["status"] == 401


def test_the_relay_runs_and_reports(deployed: Deployed) -> None:
    answer = client_of("lambda", deployed.variables).invoke(FunctionName=f"{STACK}-outbox_relay")
    assert json.loads(answer["Payload"].read())["failed"] == {}
