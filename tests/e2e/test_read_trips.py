"""How often a tool that reads asks the stores: each call of these ports is one request to a served store, of a walk two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pulse_kg.mcp.local_host import LocalToolHost
from tests.support.crash_points import Faults, FaultyPort
from tests.support.questions import questions_of
from tests.support.story_board import Story, retry_story
from tests.support.world import opened

FOUND = ["boards.board", "search.search", "queries.with_words"]
ASKED = {
    "get_decision_history": [*FOUND, "queries.lineage"],
    "get_related_context": ["boards.board", "queries.around"],
    "get_supersedence_chain": ["boards.board", "queries.lineage", "queries.places"],
    "find_contradictions": ["boards.board", "queries.contradictions", "queries.placed"],
    "find_similar_decisions": ["boards.board", "search.search", "queries.placed"],
    "explain_constraint": ["boards.board", "queries.neighbours", "queries.stated_in"],
    "list_alternatives": ["boards.board", "queries.neighbours"],
    "get_learning_from_bugs": [*FOUND, "queries.neighbours", "queries.places"],
    "query_global": ["boards.board", "search.search", "queries.placed"],
    "query_natural": [*FOUND, "queries.neighbours"],
    "query_reflective": [*FOUND, "queries.neighbours"],
    "verify_grounding": ["boards.board", "queries.neighbours"],
}


@pytest.fixture(scope="module")
def counted() -> Iterator[tuple[Story, LocalToolHost, Faults]]:
    """A story, and the tools over ports that note their calls."""
    with opened() as world:
        world.board("alpha")
        story, faults, container = retry_story(world), Faults(), world.container
        services = container.services
        ports: Any = {name: FaultyPort(getattr(services, name), name, faults) for name in ("boards", "graph", "queries", "search")}
        yield story, LocalToolHost(replace(services, **ports), container.authenticate, max_response_bytes=1_000_000), faults


@pytest.mark.parametrize("tool", ASKED)
def test_a_tool_asks_the_stores_no_more_often_than_it_must(counted: tuple[Story, LocalToolHost, Faults], tool: str) -> None:
    story, host, faults = counted
    caller, question = host.authenticate(story.agent.api_key), questions_of(story)[tool]
    faults.arm(None)
    assert not host.call(caller, tool, question, correlation_id="-").is_error
    assert faults.calls == ASKED[tool]


def test_pairs_of_one_node_take_no_request_more_than_those_of_the_board(counted: tuple[Story, LocalToolHost, Faults]) -> None:
    story, host, faults = counted
    faults.arm(None)
    question = {"board_id": story.board_id, "node_id": story["order"]}
    assert not host.call(host.authenticate(story.agent.api_key), "find_contradictions", question, correlation_id="-").is_error
    assert faults.calls == ASKED["find_contradictions"]
