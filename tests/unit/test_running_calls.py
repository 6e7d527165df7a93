"""Queries that run at once: few enough for the other tools to get their turn."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from pulse_kg.errors import RateLimited
from pulse_kg.usecases.running import RunningCalls
from tests.support.world import opened

QUERY = {"board_id": "alpha", "cypher": "RETURN 1 AS one"}


def test_an_agent_has_its_share_and_all_together_theirs() -> None:
    running = RunningCalls()
    with ExitStack() as open_turns:
        for agent in ("ann", "ann", "bob"):
            open_turns.enter_context(running.turn(agent, of_agent=2, in_all=4))
        with pytest.raises(RateLimited, match="2 of one agent, 4 of all"), running.turn("ann", of_agent=2, in_all=4):
            raise AssertionError
        open_turns.enter_context(running.turn("cy", of_agent=2, in_all=4))
        with pytest.raises(RateLimited) as refused, running.turn("dee", of_agent=2, in_all=4):
            raise AssertionError
        assert refused.value.details == {"retry_after_seconds": 1, "limit_at_once": 2}
    with running.turn("ann", of_agent=1, in_all=1):
        pass


def test_a_call_that_fails_gives_its_place_back() -> None:
    running = RunningCalls()
    for _ in range(3):
        with pytest.raises(KeyError), running.turn("ann", of_agent=1, in_all=1):
            raise KeyError
    with running.turn("ann", of_agent=1, in_all=1):
        pass


def test_a_query_beside_too_many_is_refused_uncounted_and_other_tools_go_on() -> None:
    with opened() as world:
        world.board("alpha")
        agent = world.agent(preset="Full Control")
        running, at_once = world.container.services.running, world.container.services.limits.cypher_at_once
        with ExitStack() as open_turns:
            for number in range(2 * at_once):
                open_turns.enter_context(running.turn(f"other{number}", of_agent=at_once, in_all=2 * at_once))
            for _ in range(40):
                assert agent.refusal("query_cypher", **QUERY)["code"] == "rate_limit"
            assert agent.call("schema_info", board_id="alpha")["schema_version"]
        assert agent.call("query_cypher", **QUERY)["rows"] == [[1]]
