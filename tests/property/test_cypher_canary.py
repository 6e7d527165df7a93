"""query_cypher as a tool over one of two boards: whatever is asked, it is told what it would be told if the other board were not there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from gremlin_python.process.graph_traversal import __

from pulse_kg.adapters.gremlin.connection import source
from tests.support.cypher_fuzz import OTHER, OWN, Fuzzer, Ground, leaks, tell
from tests.support.questions import OFTEN
from tests.support.world import Agent, World, opened, opened_served

SEED, TEXTS, SERVED_TEXTS = 23, 600, 60
ALLOWED = {"invalid_cypher", "unsafe_cypher", "resource_exhausted", "query_timeout", "invalid_argument"}
CURIOUS = (
    "MATCH (n) WHERE n.id = $id RETURN n",
    "MATCH (n {{id: '{id}'}}) RETURN n, properties(n), keys(n)",
    "MATCH (n) WHERE id(n) = '{id}' OR elementId(n) IN [$id] RETURN n",
    "MATCH (n {{board_id: '{board}'}}) RETURN n",
    "MATCH (n) WHERE n.board_id IS NOT NULL OR n['board_id'] = $board OR 'board_id' IN keys(n) RETURN n",
    "MATCH ()-[r {{board_id: '{board}'}}]-() RETURN r",
    "MATCH (n)-[r]-(m) RETURN n.id, r, m, startNode(r), endNode(r)",
    "MATCH p = (n)-[*0..3]-(m) RETURN p",
    "MATCH (a {{id: $own}}), (b {{id: $id}}), p = shortestPath((a)-[*]-(b)) RETURN p",
    "MATCH (n:`{board}`)-[:`{board}`]->() RETURN n.`{board}`",
    "MATCH (n) WHERE n.title CONTAINS $board OR n.body =~ ('.*' + $board + '.*') RETURN n",
    "MATCH (n) RETURN n {{.*, board: n.board_id, vector: n.embedding}}",
    "RETURN nowhere('{id}')",
    "MATCH (n) RETURN n.title + $missing",
)


def calls(ground: Ground, number: int) -> list[dict[str, Any]]:
    """Arguments for the tool: written, mutated, and of one who is curious."""
    fuzzer = Fuzzer(ground, SEED)
    names: Mapping[str, str] = {"id": ground.other_ids[0], "own": ground.own_ids[0], "board": OTHER}
    made: list[dict[str, Any]] = [{"cypher": text.format(**names), "params": dict(names)} for text in CURIOUS]
    made += [{"cypher": fuzzer.text()[1], "params": fuzzer.params()} for _ in range(number)]
    for place, call in enumerate(made):
        plan = fuzzer.random.choice(("", "", "", "EXPLAIN ", "PROFILE ")) if place >= len(CURIOUS) else ""
        call |= {"board_id": OWN, "cypher": plan + call["cypher"]}
    return [*made, *({**call, "cypher": f"EXPLAIN {call['cypher']}"} for call in made[: len(CURIOUS)])]


def told(agent: Agent, call: Mapping[str, Any]) -> str:
    """All that a call is told, but for what is measured in time."""
    body = dict(agent.try_call("query_cypher", call).body)
    if "error" not in body:
        body["elapsed_ms"] = 0
        if body["columns"][-1] == "ms":
            body["rows"] = [row[:-1] for row in body["rows"]]
    return json.dumps(body, ensure_ascii=False)


def reader(world: World) -> Agent:
    """An agent that is granted the first board alone."""
    return world.agent("reader", boards=(OWN,))


@dataclass(frozen=True)
class Twins:
    """The first board alone, and beside the other.

    Attributes:
        ground: The store with both.
        alone: The reader where the other is not there.
        beside: The reader where it is.
    """

    ground: Ground
    alone: Agent
    beside: Agent


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    with opened(environment=OFTEN) as alone, opened(environment=OFTEN) as both:
        own = tell(alone, OWN)
        assert tell(both, OWN) == own
        readers = reader(alone), reader(both)
        ground = Ground(both, both.container.store.sources.of(OWN), own, tell(both, OTHER))
        yield Twins(ground, *readers)


def check(calls_made: Sequence[Mapping[str, Any]], without: Sequence[str], beside: Sequence[str], canaries: Sequence[str]) -> None:
    for call, expected, found in zip(calls_made, without, beside, strict=True):
        assert found == expected, call
        assert leaks(found, call["cypher"], call["params"], canaries) == [], call
        body = json.loads(found)
        assert "error" not in body or body["error"]["code"] in ALLOWED, (call, body)


def test_there_is_something_to_leak(twins: Twins) -> None:
    other = twins.ground.world.agent("other reader", boards=(OTHER,))
    for call in calls(twins.ground, 0):
        if call["cypher"].startswith("MATCH (n)-[r]-(m)"):
            assert OTHER in told(other, {**call, "board_id": OTHER})


def test_no_answer_error_plan_or_notice_tells_of_the_other_board(twins: Twins) -> None:
    made = calls(twins.ground, TEXTS)
    without, beside = ([told(agent, call) for call in made] for agent in (twins.alone, twins.beside))
    check(made, without, beside, twins.ground.canaries)
    answered = sum("error" not in json.loads(one) for one in beside)
    assert answered > len(made) / 5
    assert any(OWN in one for one in beside)


@pytest.mark.served
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nor_on_the_servers_where_edges_lead_from_one_board_to_the_other(twins: Twins) -> None:
    made = calls(twins.ground, SERVED_TEXTS)
    with opened_served(environment=OFTEN) as world:
        assert tell(world, OWN) == twins.ground.own_ids
        agent = reader(world)
        without = [told(agent, call) for call in made]
        assert tell(world, OTHER) == twins.ground.other_ids
        for number, (src, dst) in enumerate(((OWN, OTHER), (OTHER, OWN))):
            for board_id in (OWN, OTHER):
                plant(world, src, dst, board_id, f"edge_planted_{number}_{board_id}")
        beside = [told(agent, call) for call in made]
    check(made, without, beside, [*twins.ground.canaries, "edge_planted"])


def plant(world: World, src: str, dst: str, board_id: str, edge_id: str) -> None:
    """Writes an edge that leads out of its board, which no tool would."""
    store: Any = world.container.store
    far = __.V().has("board_id", dst).has("node_type", "Decision").limit(1)
    near = source().V().has("board_id", src).has("node_type", "Decision").limit(1)
    edge = near.add_e("relates_to").to(far).property("board_id", board_id).property("edge_id", edge_id).property("commit_seq", 1)
    assert store.connection.submit(edge.count()) == [1]
