"""The same queries on the golden board of both stores: the same bytes, but for the time that they took; and the same after a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.domain.schema import NODE_TYPES, REL_TYPES
from tests.support.cypher_fuzz import board_author
from tests.support.golden import ALPHA, DECISIONS, build
from tests.support.questions import OFTEN
from tests.support.world import Agent, World, opened, opened_served

SEED, WRITTEN_BY_CHANCE = 11, 60
_AROUND = 100

PARAMS: Mapping[str, Any] = {
    "word": "packag",
    "since": "2015-01-01",
    "titles": ["Style Guide for Python Code", "Zen", "nowhere"],
    "few": 7,
    "level": 0.5,
    "type": "Decision",
}

QUERIES: Sequence[str] = (
    # Nodes.
    "MATCH (n) RETURN count(*)",
    "MATCH (n) RETURN labels(n)[0] AS type, count(*) AS nodes, min(n.id), max(n.title) ORDER BY nodes DESC, type",
    "MATCH (n) RETURN n.id, n.title",
    "MATCH (n) RETURN n.id, n.title LIMIT 10000",
    "MATCH (d:Decision) RETURN d LIMIT 25",
    "MATCH (d:Decision) RETURN d ORDER BY d.title DESC, d.id SKIP 5 LIMIT 20",
    "MATCH (n:Entity|Bug) RETURN n.title, n.kind, n.aliases",
    "MATCH (n) WHERE n:Constraint OR n:Learning RETURN labels(n), n.severity, n.area, n.title",
    "MATCH (d:Decision) WHERE toLower(d.title) CONTAINS $word RETURN d.title, d.created_at",
    "MATCH (d) WHERE d.title IN $titles RETURN d",
    "MATCH (d {title: 'Style Guide for Python Code'}) RETURN d.id, d.source_ref, d.relevance",
    "MATCH (c:Constraint {severity: 'high'}) RETURN c",
    "MATCH (c:Constraint) WHERE c.severity <> 'low' RETURN c.severity, collect(c.title)",
    "MATCH (n) WHERE n.confidence >= $level AND NOT n.curated RETURN n.id, n.confidence LIMIT 40",
    "MATCH (n) WHERE n.nothing IS NULL AND n.title IS NOT NULL RETURN count(n)",
    "MATCH (n:Learning) WHERE n.captured_at >= datetime($since) RETURN n.captured_at, n.title ORDER BY n.captured_at, n.id",
    "MATCH (b:Bug) RETURN b.severity, b.resolved_at IS NULL AS open, count(*) ORDER BY b.severity, open",
    "MATCH (d:Decision) RETURN date(d.created_at).year AS year, count(*) ORDER BY year",
    "MATCH (d:Decision) WHERE d.superseded_by IS NOT NULL RETURN d.title, d.superseded_by",
    "MATCH (n:Assumption) RETURN keys(n), properties(n), n{.title, .validated, why: n.rationale}",
    "MATCH (a:APIContract) RETURN a.method + ' ' + a.path AS endpoint, a.title",
    "MATCH (n) RETURN n.source_session_id, count(*) AS nodes ORDER BY nodes DESC, n.source_session_id",
    "MATCH (n) WITH n.commit_seq AS seq, collect(DISTINCT labels(n)[0]) AS types RETURN seq, types ORDER BY seq",
    # Relationships.
    "MATCH ()-[r]->() RETURN type(r) AS type, count(*) AS edges ORDER BY edges DESC, type",
    "MATCH ()-[r]->() RETURN r LIMIT 30",
    "MATCH (a)-[r]->(b) RETURN a.id, type(r), b.id",
    "MATCH (a)-[r]-(b) RETURN a.id, r.edge_id, b.id LIMIT 500",
    "MATCH (n:Decision)-[:supersedes]->(o:Decision) RETURN n.title, o.title",
    "MATCH (n)<-[r:contradicts]-(o) RETURN n.title, r.confidence, r.reason, o.title ORDER BY n.title, o.title",
    "MATCH (a)-[r:contradicts|supersedes]->(b) WHERE r.created_at < b.created_at OR r.layer = 'cognitive' RETURN r",
    "MATCH (a)-[r {layer: 'deterministic'}]->(b) RETURN labels(a)[0], type(r), labels(b)[0], count(*)",
    "MATCH (e:Entity)<-[:belongs_to]-(d) RETURN e.title, count(d) AS decisions ORDER BY decisions DESC, e.title",
    "MATCH (e:Entity {title: 'Typing'})<-[:belongs_to]-(d)-[:belongs_to]->(o:Entity) RETURN d.title, o.title",
    "MATCH (b:Bug)-[:violates]->(c:Constraint), (l:Learning)-[:validates]->(b) RETURN c.title, b.title, l.title",
    "MATCH (a)-[r]->(a) RETURN a, r",
    "MATCH (a)-[r1]->(b)-[r2]->(a) RETURN a.title, type(r1), type(r2), b.title ORDER BY a.title, b.title",
    "MATCH (a)-[r]->(b) WHERE startNode(r) = a AND endNode(r) <> a RETURN count(r)",
    # Paths.
    "MATCH p = (n)-[:supersedes*]->(o) RETURN length(p), n.title, o.title ORDER BY length(p) DESC, n.id, o.id",
    "MATCH p = (n)-[:supersedes*2..4]->(o) RETURN p LIMIT 20",
    "MATCH (d {title: 'Style Guide for Python Code'})-[*1..2]-(m) RETURN DISTINCT m.title ORDER BY m.title",
    "MATCH (d {title: 'Style Guide for Python Code'})-[r*0..2]->(m) RETURN [x IN r | type(x)], m.title",
    "MATCH (b:Bug)-[rs*..3]-(e:Entity) RETURN b.title, e.title, size(rs) ORDER BY b.id, e.id, size(rs) LIMIT 200",
    "MATCH p = (d:Decision)-[:depends_on*3]->(:Decision) RETURN [n IN nodes(p) | n.title] LIMIT 50",
    "MATCH (a:Entity {title: 'Typing'}), (b:Entity {title: 'Packaging'}), p = shortestPath((a)-[*..6]-(b)) RETURN length(p)",
    "MATCH (a:Entity {title: 'Typing'}), (b:Entity {title: 'Packaging'}), p = allShortestPaths((a)-[*..6]-(b)) RETURN p",
    # OPTIONAL MATCH, subqueries, comprehensions.
    "MATCH (c:Constraint) OPTIONAL MATCH (c)<-[:violates]-(b:Bug) RETURN c.title, collect(b.title)",
    "MATCH (c:Constraint) OPTIONAL MATCH (c)-[:depends_on]->(o) WHERE o.severity = 'high' RETURN c.title, o.title, o.severity",
    "MATCH (d:Decision) WHERE NOT (d)--() RETURN d.title",
    "MATCH (d:Decision) WHERE EXISTS { (d)-[:supersedes]->(:Decision)-[:supersedes]->() } RETURN d.title",
    "MATCH (d:Decision) WITH d, COUNT { (d)--() } AS degree WHERE degree > $few RETURN d.title, degree ORDER BY degree DESC, d.id",
    "MATCH (e:Entity) RETURN e.title, [(e)<-[:belongs_to]-(d)-[:supersedes]->(o) | d.title + ' < ' + o.title] AS replaced",
    "MATCH (e:Entity) RETURN e.title, COLLECT { MATCH (e)<-[:belongs_to]-(d) RETURN d.title ORDER BY d.relevance DESC, d.id LIMIT 2 }",
    "MATCH (e:Entity) CALL (e) { MATCH (e)<-[:belongs_to]-(d) RETURN d ORDER BY d.created_at, d.id LIMIT 1 } RETURN e.title, d.title",
    "CALL { MATCH (n:Bug) RETURN n UNION MATCH (n:Learning) RETURN n } RETURN labels(n)[0], count(*)",
    "UNWIND $titles AS t OPTIONAL MATCH (d {title: t}) RETURN t, d.id, d IS NULL",
    "UNWIND range(1, 3) AS i MATCH (d:Decision) WITH i, d ORDER BY d.title, d.id SKIP 3 LIMIT 5 RETURN i, d.title",
    # Aggregates and orders.
    "MATCH (n) RETURN avg(n.confidence), stDev(n.relevance), percentileCont(n.relevance, 0.9), sum(n.query_hits), count(DISTINCT n.title)",
    "MATCH (d:Decision) RETURN left(d.title, 1) AS letter, count(*), collect(d.id)[0..2] ORDER BY letter",
    "MATCH (d:Decision) WITH d ORDER BY d.relevance DESC, d.id LIMIT 10 RETURN d.title, round(d.relevance, 3)",
    "MATCH (a)-[:depends_on]->(b) WITH b, count(a) AS needed WHERE needed > 2 RETURN b.title, needed ORDER BY needed DESC, b.title",
    "MATCH (d:Decision) RETURN DISTINCT size(split(d.title, ' ')) AS words ORDER BY words",
    "MATCH (d:Decision) WHERE d.title =~ '(?i).*(wheel|egg).*' RETURN d.title UNION ALL MATCH (e:Entity) RETURN e.title AS `d.title`",
    "MATCH (d:Decision) RETURN CASE WHEN d.superseded_by IS NULL THEN 'holds' ELSE 'replaced' END AS state, count(*)",
    "MATCH (d:Decision) WITH collect(d) AS ds RETURN all(d IN ds WHERE d.title <> ''), ds[0].title, reduce(n = 0, d IN ds | n + 1)",
    "MATCH (n) WITH n, rand() AS r ORDER BY r LIMIT 5 RETURN n.title",
    # Nothing, and plans.
    "MATCH (n:Colour)-[:painted]->(m) RETURN n.colour, m",
    "MATCH (n) WHERE n.board_id = 'gamma' RETURN n",
    "MATCH (n {title: 'Wheels are the format of built distributions, and nobody may know'}) RETURN n",
    "RETURN datetime('2026-05-07T16:30:00Z') + duration('P1M') AS t, [1, 2.5, 'x', null, {a: true}] AS l",
    "EXPLAIN MATCH (d:Decision)-[:supersedes]->(o) WHERE d.title = 'x' RETURN o.title ORDER BY o.title",
)


def by_chance() -> list[str]:
    """Queries that nobody thought of."""
    author = board_author(Random(SEED))
    return [author.query().text for _ in range(WRITTEN_BY_CHANCE)]


class Board:
    """The golden board of a store.

    Args:
        world: An empty one.
    """

    def __init__(self, world: World) -> None:
        key = build(world)["both"]
        self._agent = Agent(world, key, "", "")

    def told(self, query: str) -> str:
        """What a query is answered, but for the time that it took."""
        body = self._agent.try_call("query_cypher", {"board_id": ALPHA, "cypher": query, "params": PARAMS}).body
        return json.dumps({**body, "elapsed_ms": 0}, ensure_ascii=False)


needs_decisions = pytest.mark.skipif(not DECISIONS.is_file(), reason=f"the decisions are not there: {DECISIONS.name}")


@pytest.fixture(scope="module")
def embedded() -> Iterator[Board]:
    with opened(embedder=HashingEmbedder(), environment=OFTEN) as world:
        yield Board(world)


@needs_decisions
def test_the_queries_find_something_on_the_golden_board(embedded: Board) -> None:
    answers = {query: json.loads(embedded.told(query)) for query in QUERIES}
    assert {query: answer["error"]["message"] for query, answer in answers.items() if "error" in answer} == {}
    empty = [query for query, answer in answers.items() if not answer["rows"]]
    assert len(empty) <= 8, empty
    assert len(set(QUERIES)) == len(QUERIES) >= 60
    text = "\n".join(QUERIES)
    assert [name for name in (*NODE_TYPES, *REL_TYPES) if name not in text and name not in _RARE] == []


_RARE = {"Criterion", "Requirement", "TestScenario", "Alternative", "implements", "tests", "derives_from", "relates_to", "mentions"}
"""Types that stand in no query by name; those of all nodes and edges find them."""


@needs_decisions
@pytest.mark.served
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_servers_give_the_same_bytes(embedded: Board) -> None:
    with opened_served(embedder=HashingEmbedder(), environment=OFTEN) as world:
        served = Board(world)
        told = {query: (embedded.told(query), served.told(query)) for query in (*QUERIES, *by_chance())}
    assert [(query, *apart(*both)) for query, both in told.items() if both[0] != both[1]] == []


def apart(here: str, there: str) -> tuple[str, str]:
    """Where two texts part, with what is around it."""
    at = next((place for place, pair in enumerate(zip(here, there, strict=False)) if pair[0] != pair[1]), min(len(here), len(there)))
    return here[max(0, at - _AROUND) : at + _AROUND], there[max(0, at - _AROUND) : at + _AROUND]
