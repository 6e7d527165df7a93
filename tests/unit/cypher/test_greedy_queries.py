"""Short queries that would take all memory or all time: each is stopped by a count, before it has taken either.

The clock stands still here, so that nothing but a count can stop them.
"""

from __future__ import annotations

import pytest

from pulse_kg.cypher.budget import Budget, Limits
from pulse_kg.cypher.engine import QueryResult, compile_query, run
from pulse_kg.errors import InvalidCypher, QueryTimeout, ResourceExhausted
from pulse_kg.ports.graph_source import GraphSource
from tests.support.cypher_answers import NOW
from tests.support.cypher_loader import source_of

NODES = 9
EVERY_PAIR = ", ".join(
    [f"(n{i}:N {{k: {i}}})" for i in range(NODES)] + [f"(n{i})-[:R]->(n{j})" for i in range(NODES) for j in range(NODES) if i != j]
)
LIMITS = Limits(steps=50_000, held_rows=5_000)
WIDER = " ".join(["WITH [a, a, a, a, a, a, a, a] AS a"] * 9)
"""A list of a hundred million items that holds eight."""

GREEDY = [
    # Of memory.
    "RETURN reduce(s = 'a', x IN range(1, 100) | s + s) AS x",
    "RETURN size(reduce(l = [1], x IN range(1, 100) | l + l)) AS x",
    "RETURN size(reduce(s = 'ab', x IN range(1, 100) | replace(s, 'a', s))) AS x",
    "RETURN range(1, 9223372036854775807) AS x",
    "UNWIND range(-9223372036854775808, 9223372036854775807) AS x RETURN count(x)",
    "RETURN size([x IN range(1, 3000) | [y IN range(1, 3000) | y]]) AS x",
    "UNWIND range(1, 40000) AS x RETURN x ORDER BY x",
    "UNWIND range(1, 40000) AS x RETURN x, count(*)",
    "UNWIND range(1, 40000) AS x WITH DISTINCT x RETURN count(*)",
    "UNWIND range(1, 40000) AS x WITH x, range(1, 100) AS l RETURN size(collect(l))",
    f"WITH [1] AS a {WIDER} RETURN a = a AS x",
    f"WITH [1] AS a {WIDER} RETURN DISTINCT a",
    f"WITH [1] AS a {WIDER} UNWIND [a, a] AS b RETURN 1 AS x ORDER BY b",
    f"WITH [1] AS a {WIDER} RETURN a",
    f"WITH [1] AS a {WIDER} RETURN a IN [a] AS x",
    f"WITH [1] AS a {WIDER} RETURN max(a) AS x",
    f"WITH [1] AS a {WIDER} RETURN count(DISTINCT a) AS x",
    f"WITH [1] AS a {WIDER} RETURN {{a: a}} = {{a: a}} AS x",
    # Of time.
    "UNWIND range(1, 2000) AS a UNWIND range(1, 2000) AS b UNWIND range(1, 2000) AS c RETURN count(*)",
    "RETURN [x IN range(1, 1000) | reduce(s = 0, y IN range(1, 10000) | s + y)][0] AS x",
    "WITH range(1, 1000) AS l RETURN size([x IN l WHERE any(y IN l WHERE all(z IN l WHERE z > 0))]) AS x",
    "UNWIND range(1, 1000) AS x CALL { WITH x UNWIND range(1, 10000) AS y RETURN sum(y) AS s } RETURN sum(s)",
    "MATCH (a)-[*]-(b) RETURN count(*)",
    "MATCH (a)-[*15..20]->(b) WHERE b.k > 99 RETURN a",
    "MATCH (a) WHERE (a)-[*15..20]->({k: 99}) RETURN a",
    "MATCH (a) RETURN size([(a)-[*]-(b) | 1]) AS x",
    "MATCH (a) RETURN COUNT { (a)--()--()--()--()--() } AS x",
    "MATCH (a) WHERE NOT EXISTS { MATCH (a)-[*10..20]-(b) WHERE b.k > 99 } RETURN a",
    "MATCH (a), (b), (c), (d), (e), (f), (g) RETURN count(*)",
    "MATCH (a)--(b)--(c)--(d)--(e)--(f) RETURN count(*)",
    "MATCH (a) OPTIONAL MATCH (a)--(b)--(c)--(d)--(e)--(f) WHERE f.k > 99 RETURN count(*)",
    "MATCH (n) WITH collect(n) AS l UNWIND l AS a UNWIND l AS b UNWIND l AS c UNWIND l AS d UNWIND l AS e RETURN count(*)",
    "MATCH (a {k: 0}), (b {k: 1}), p = allShortestPaths((a)-[*]-(b)) UNWIND range(1, 100000) AS x RETURN count(*)",
]
TOO_MUCH_OF_A_VALUE = [
    "RETURN reduce(l = [1], x IN range(1, 5000) | [l]) AS x",
    "RETURN reduce(l = [1], x IN range(1, 5000) | [l]) = reduce(l = [1], x IN range(1, 5000) | [l]) AS x",
    "UNWIND [reduce(l = {a: 1}, x IN range(1, 5000) | {a: l})] AS x RETURN DISTINCT x ORDER BY x",
    "RETURN 'x' =~ '((a{1,100}){1,100}){1,100}' AS x",
    "RETURN 'x' =~ reduce(s = '(a{1,1000})', x IN range(1, 10) | s + s) AS x",
    "RETURN toInteger(reduce(s = '9', x IN range(1, 15) | s + s)) AS x",
    "RETURN date('9999-12-31') + duration({days: 9223372036854775807}) AS x",
    "RETURN duration({seconds: 1e308}) AS x",
    "RETURN duration('P99999999999999999999Y') AS x",
]


@pytest.fixture(scope="module")
def dense() -> GraphSource:
    return source_of("CREATE " + EVERY_PAIR)


def ran(query: str, source: GraphSource, limits: Limits = LIMITS) -> QueryResult:
    return run(compile_query(query, {}), source, now=NOW, budget=Budget(lambda: 0.0, limits))


@pytest.mark.parametrize("query", GREEDY)
def test_a_greedy_query_is_stopped_and_told_which_bound_it_met(dense: GraphSource, query: str) -> None:
    with pytest.raises(ResourceExhausted) as stopped:
        ran(query, dense)
    assert {"budget", "limit"} <= stopped.value.details.keys()
    assert len(str(stopped.value)) < 400


@pytest.mark.parametrize("query", TOO_MUCH_OF_A_VALUE)
def test_a_value_that_is_too_deep_or_too_large_is_refused(dense: GraphSource, query: str) -> None:
    with pytest.raises(InvalidCypher):
        ran(query, dense)


@pytest.mark.parametrize("query", GREEDY)
def test_time_that_is_up_stops_a_query_too(dense: GraphSource, query: str) -> None:
    """The clock goes on by a second at each look."""
    looks = iter(range(1_000_000))
    budget = Budget(lambda: float(next(looks)), Limits(seconds=3, steps=10**12, held_rows=10**12, elements=10**12, requests=10**12))
    with pytest.raises((QueryTimeout, ResourceExhausted)):
        run(compile_query(query, {}), dense, now=NOW, budget=budget)
    assert next(looks) < 100


def test_what_is_not_greedy_is_answered_within_the_same_bounds(dense: GraphSource) -> None:
    assert ran("MATCH (a)-->(b)-->(c) RETURN count(*)", dense).rows == [[NODES * (NODES - 1) * (NODES - 1)]]
    assert ran("UNWIND range(1, 1000) AS x WITH x ORDER BY x DESC RETURN collect(x)[0]", dense).rows == [[1000]]
    assert ran("RETURN 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab' =~ '(a+)+$' AS x", dense).rows == [[False]]
