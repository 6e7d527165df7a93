"""Each problem of an input is told in our own words, with what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from pulse_kg.errors import InvalidArgument
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools import find_tool

SESSION = {"session_id": "kgs_1"}
NODE = {**SESSION, "node_type": "Decision", "title": "One"}
EDGE = {**SESSION, "src": {"candidate_id": "cand_001"}, "dst": {"node_id": "dec_1"}, "rel_type": "supersedes"}
BEGIN = {"board_id": "alpha", "source_type": "spec", "source_id": "spec_007", "source_version": 1}

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("begin_consolidation", {**BEGIN, "board_id": "A b"}, "board_id", "must be 1 to 64 characters of a-z"),
    ("begin_consolidation", {**BEGIN, "source_type": "9"}, "source_type", "must be 1 to 32 characters of a-z"),
    ("begin_consolidation", {**BEGIN, "payload_hash": "x"}, "payload_hash", "must be 'sha256:' and 64 hex digits"),
    ("begin_consolidation", {**BEGIN, "source_version": -1}, "source_version", "must be 0 or more"),
    ("begin_consolidation", {**BEGIN, "source_version": 2**60}, "source_version", "must be 9007199254740991 or less"),
    ("begin_consolidation", {**BEGIN, "source_version": "4"}, "source_version", "must be a whole number"),
    ("begin_consolidation", {**BEGIN, "source_version": True}, "source_version", "must be a whole number"),
    ("begin_consolidation", {**BEGIN, "source_id": ""}, "source_id", "must not be empty"),
    ("begin_consolidation", {**BEGIN, "source_id": 7}, "source_id", "must be a string"),
    ("begin_consolidation", {**BEGIN, "sauce": 7}, "sauce", "it takes board_id, source_type, source_id, source_version, payload_hash"),
    ("begin_consolidation", {}, "board_id", "is required"),
    ("add_node_candidate", {**NODE, "title": "x" * 501}, "title", "has more than the allowed 500 characters"),
    ("add_node_candidate", {**NODE, "attributes": []}, "attributes", "must be an object"),
    ("add_node_candidate", {**NODE, "node_type": "Idea"}, "node_type", "must be one of Decision, Criterion"),
    ("add_node_candidate", {**NODE, "source_ref": {"spec": "x"}}, "source_ref.spec", "is not an argument here; it takes spec_id, card_id"),
    ("add_node_candidate", {**NODE, "source_ref": {"spec_id": "a", "bug_id": "b"}}, "source_ref", "takes exactly one of spec_id"),
    ("add_edge_candidate", {**EDGE, "src": "cand_001"}, "src", "must be an object"),
    ("add_edge_candidate", {**EDGE, "dst": {"node_id": "§"}}, "dst.node_id", "must have the form of a node's id"),
    ("commit_consolidation", {**SESSION, "agent_overrides": {}}, "agent_overrides", "must be a list"),
    (
        "commit_consolidation",
        {**SESSION, "agent_overrides": [{"x": 1}]},
        "agent_overrides[0].x",
        "it takes candidate_id, hint, rationale, target_node",
    ),
    ("get_similar_nodes", {**SESSION, "candidate_id": "cand_001", "k": 51}, "k", "must be 50 or less"),
]


@pytest.mark.parametrize(("name", "arguments", "path", "words"), CASES)
def test_a_problem_names_its_place_and_what_would_be_right(name: str, arguments: dict[str, Any], path: str, words: str) -> None:
    tool = find_tool(name)
    assert tool is not None
    model: type[ToolInput] = tool.input_model
    with pytest.raises(InvalidArgument) as refused:
        model.read(arguments)
    told = {p.path: p.problem for p in refused.value.problems}
    assert words in told[path]
    for problem in told.values():
        assert not {"Input should", "valid dictionary", "instance of", "String should"} & {problem}
        assert "Input" not in problem
