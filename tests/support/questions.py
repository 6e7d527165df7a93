"""The tools that read, and for each of them a call on the story that finds something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulse_kg.mcp.tools import all_tools
from tests.support.story_board import Story

READING = {tool.name: tool for tool in all_tools() if tool.annotations.read_only}
"""Every tool that reads, whatever for."""
SEARCHING = {
    "get_similar_nodes",
    "get_decision_history",
    "find_similar_decisions",
    "get_learning_from_bugs",
    "query_global",
    "query_natural",
    "query_reflective",
}
"""Those that ask the vectors."""
OFTEN = {"PULSE_KG_CYPHER_PER_MINUTE": "100000"}
"""Settings for tests that ask more often than an agent may; the clock stands still meanwhile."""
Questions = Mapping[str, Mapping[str, Any]]
"""Tool → arguments."""


def questions_of(story: Story) -> dict[str, dict[str, Any]]:
    """For each tool a call that finds something."""
    board = {"board_id": story.board_id}
    decided = {**board, "node_id": story["backoff"]}
    session = story.agent.begin("spec_012", board_id=story.board_id)
    session.decide("Webhook retries wait by backoff")
    return {
        "get_similar_nodes": {"session_id": session.session_id, "candidate_id": "cand_001"},
        "get_decision_history": {**board, "topic": "webhook retries"},
        "get_related_context": decided,
        "get_supersedence_chain": decided,
        "find_contradictions": board,
        "find_similar_decisions": {**board, "query": "webhook retries"},
        "explain_constraint": {**board, "node_id": story["timeout"]},
        "list_alternatives": decided,
        "get_learning_from_bugs": {**board, "area": "webhook delivery"},
        "query_global": {"query": "webhook retries"},
        "query_natural": {**board, "query": "Why do webhook retries wait?"},
        "schema_info": board,
        "query_cypher": {**board, "cypher": "MATCH (d:Decision) RETURN d ORDER BY d.title"},
        "verify_grounding": {**board, "answer_text": "Retries wait with jitter.", "retrieved_nodes": [story["backoff"]]},
        "query_reflective": {**board, "query": "Why do webhook retries wait?"},
    }
