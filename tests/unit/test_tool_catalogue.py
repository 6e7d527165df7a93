"""What every tool's declaration must be, so that no client drops it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from pulse_kg.domain.permissions import FLAGS
from pulse_kg.mcp.host import TOOL_PREFIX
from pulse_kg.mcp.tools import INSTRUCTIONS, TOOL_NAMES, all_tools
from pulse_kg.mcp.tools.base import Tool
from tests.support.story_board import retry_story
from tests.support.world import Agent, World, opened

tools = pytest.mark.parametrize("tool", all_tools(), ids=lambda t: t.name)


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema."""
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            yield from parts(list(value.values()) if key == "properties" else value)
    elif isinstance(schema, list):
        for value in schema:
            yield from parts(value)


@tools
def test_names_fit_the_longest_prefix_of_a_gateway(tool: Tool[Any]) -> None:
    assert len(tool.name) <= 30
    assert "___" not in tool.spec.name
    assert tool.spec.name == TOOL_PREFIX + tool.name


@tools
def test_the_permission_is_one_that_presets_can_give(tool: Tool[Any]) -> None:
    assert tool.flag in FLAGS


@tools
def test_both_schemas_are_closed_objects_in_the_subset_that_every_client_reads(tool: Tool[Any]) -> None:
    for schema in (tool.spec.input_schema, tool.spec.output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert schema["properties"]
        assert schema["additionalProperties"] is False
        for part in parts(schema):
            assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf", "ge", "le", "title"} & part.keys()
            assert part != {}
        assert set(schema.get("required", [])) <= set(schema["properties"])


@tools
def test_every_argument_is_described(tool: Tool[Any]) -> None:
    for name, schema in tool.spec.input_schema["properties"].items():
        assert schema.get("description"), name


@tools
def test_the_description_is_written_for_a_model(tool: Tool[Any]) -> None:
    assert 80 <= len(tool.description) <= 1_000
    assert tool.title


def test_the_catalogue_is_sorted_and_the_same_each_time() -> None:
    with opened() as world:
        names = [spec.name for spec in world.host.tools()]
        assert names == sorted(names)
        assert world.host.tools() == world.container.tool_host().tools()
        assert len(names) == len(TOOL_NAMES) == 21


def test_only_reading_tools_say_that_they_only_read() -> None:
    writing = {"begin_consolidation", "add_node_candidate", "add_edge_candidate", "propose_reconciliation", "commit_consolidation"}
    assert {t.name for t in all_tools() if not t.annotations.read_only} == writing | {"abort_consolidation"}
    assert [t.name for t in all_tools() if t.annotations.destructive] == ["abort_consolidation"]
    assert not any(t.annotations.open_world for t in all_tools())


def test_the_instructions_name_the_tools_of_the_flow() -> None:
    for name in ("begin_consolidation", "propose_reconciliation", "commit_consolidation", "abort_consolidation"):
        assert name in INSTRUCTIONS


@pytest.fixture
def answers() -> dict[str, dict[str, Any]]:
    """An answer of each tool."""
    with opened() as world:
        return _one_of_each(world)


def _one_of_each(world: World) -> dict[str, dict[str, Any]]:
    world.board("alpha")
    agent = world.agent()
    session = agent.begin()
    of = {"session_id": session.session_id}
    found = {"begin_consolidation": dict(session.begun)}
    found["add_node_candidate"] = agent.call("add_node_candidate", **of, node_type="Decision", title="One", attributes={"mood": 1})
    session.decide("Two")
    ends = {"src": {"candidate_id": "cand_001"}, "dst": {"candidate_id": "cand_002"}}
    found["add_edge_candidate"] = agent.call("add_edge_candidate", **of, **ends, rel_type="supersedes", attributes={"mood": 1})
    found["propose_reconciliation"] = agent.call("propose_reconciliation", **of)
    found["commit_consolidation"] = agent.call("commit_consolidation", **of)
    again = agent.begin("spec_007", 2)
    again.decide("Three")
    found["get_similar_nodes"] = agent.call("get_similar_nodes", session_id=again.session_id, candidate_id="cand_001")
    found["abort_consolidation"] = again.abort()
    return found | _one_of_each_reading_one(world, agent)


def _one_of_each_reading_one(world: World, agent: Agent) -> dict[str, dict[str, Any]]:
    story = retry_story(world)
    board = {"board_id": "alpha"}
    decided = {**board, "node_id": story["backoff"]}
    questions: dict[str, dict[str, Any]] = {
        "get_decision_history": {**board, "topic": "webhook retries"},
        "get_related_context": decided,
        "get_supersedence_chain": decided,
        "find_contradictions": board,
        "find_similar_decisions": {**board, "query": "webhook retries"},
        "explain_constraint": {**board, "node_id": story["timeout"]},
        "list_alternatives": decided,
        "get_learning_from_bugs": {**board, "area": "webhook delivery"},
        "query_global": {"query": "webhook retries"},
        "query_cypher": {**board, "cypher": "MATCH (d:Decision) RETURN d ORDER BY d.title LIMIT 2"},
        "query_natural": {**board, "query": "Why do webhook retries wait?"},
        "schema_info": board,
        "verify_grounding": {**board, "answer_text": "Retries wait with jitter.", "retrieved_nodes": [story["backoff"]]},
        "query_reflective": {**board, "query": "Why do webhook retries wait?"},
    }
    return {name: agent.call(name, **arguments) for name, arguments in questions.items()}


@tools
def test_an_answer_fits_the_schema_that_is_advertised(tool: Tool[Any], answers: dict[str, dict[str, Any]]) -> None:
    jsonschema.validate(answers[tool.name], tool.spec.output_schema)
