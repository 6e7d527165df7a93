"""Nodes are counted by the store where a query does nothing else, and what begins at a node does not ask how many there are."""

from __future__ import annotations

from typing import Any

import pytest

from pulse_kg.cypher.budget import Budget, Limits
from pulse_kg.cypher.engine import compile_query, run
from pulse_kg.cypher.memory_source import MemorySource
from pulse_kg.ports.graph_source import GraphEdge, GraphNode
from tests.support.cypher_answers import NOW, result_of

NODES = [GraphNode(f"n{n}", ("A" if n < 3 else "B",), {"id": f"n{n}", "k": n}) for n in range(5)]
EDGES = [GraphEdge("e0", "R", "n0", "n4")]
BOARD = MemorySource(NODES, EDGES, id_key="id")
MIXED = MemorySource([*NODES, GraphNode("n5", ("A", "B")), GraphNode("n6", ())], EDGES)

COUNTED = [
    ("MATCH (n) RETURN count(n)", [5]),
    ("MATCH (n) RETURN count(*) AS c", [5]),
    ("MATCH () RETURN count(*)", [5]),
    ("MATCH (n:A) RETURN count(DISTINCT n)", [3]),
    ("MATCH (n:A|B) RETURN count(n) + 1 AS more, count(*) * 2 AS twice", [6, 10]),
    ("MATCH (n:A:B) RETURN count(n)", [0]),
    ("MATCH (n:Nothing) RETURN count(n)", [0]),
    ("MATCH (n:B) WITH count(n) AS c WHERE c > 1 RETURN c", [2]),
    ("MATCH (n:B) RETURN count(n) AS c ORDER BY c LIMIT 1", [2]),
    ("CALL { MATCH (n:A) RETURN count(n) AS c } RETURN c", [3]),
    ("UNWIND [1, 2] AS x CALL { MATCH (n:A) RETURN count(n) AS c } RETURN sum(c)", [6]),
]
OTHERS = [
    ("MATCH (n) WHERE n.k > 1 RETURN count(n)", [3]),
    ("MATCH (n {k: 1}) RETURN count(n)", [1]),
    ("MATCH (n) RETURN count(n.none)", [0]),
    ("MATCH (n) RETURN count(n), sum(n.k)", [5, 10]),
    ("MATCH (n) RETURN count(DISTINCT n.k > 1)", [2]),
    ("MATCH (n)-[r]->() RETURN count(n)", [1]),
    ("MATCH (n), (m) RETURN count(n)", [25]),
    ("MATCH p = (n) RETURN count(p)", [5]),
    ("OPTIONAL MATCH (n:Nothing) RETURN count(*)", [1]),
    ("MATCH (n:A) WITH n LIMIT 2 RETURN count(n)", [2]),
    ("MATCH (n:A) MATCH (n) RETURN count(n)", [3]),
    ("UNWIND [1, 2] AS x MATCH (n:A) RETURN count(n)", [6]),
]


def elements(query: str, source: MemorySource) -> int:
    """How many nodes and edges a query fetches."""
    budget = Budget(lambda: 0.0)
    run(compile_query(query, {}), source, now=NOW, budget=budget)
    return budget.elements


@pytest.mark.parametrize(("query", "row"), COUNTED)
def test_a_count_of_all_nodes_or_of_a_label_fetches_none(query: str, row: list[Any]) -> None:
    assert result_of(query, BOARD).rows == result_of(query, BOARD, pushdown=False).rows == [row]
    assert elements(query, BOARD) == 0


@pytest.mark.parametrize(("query", "row"), OTHERS)
def test_any_other_count_looks_at_the_nodes(query: str, row: list[Any]) -> None:
    assert result_of(query, BOARD).rows == [row]
    assert elements(query, BOARD) > 0 or "Nothing" in query


def test_where_nodes_have_several_labels_or_none_they_are_looked_at() -> None:
    for query, number in (("MATCH (n) RETURN count(n)", 7), ("MATCH (n:A) RETURN count(n)", 4), ("MATCH (n:A:B) RETURN count(*)", 1)):
        assert result_of(query, MIXED).rows == [[number]]
        assert elements(query, MIXED) > 0


def test_a_plan_shows_that_the_store_counts_and_where_it_can_not() -> None:
    query = "EXPLAIN MATCH (n:A) RETURN count(n)"
    assert result_of(query, BOARD).rows == [["CountNodes", "(n:A)", "count", 1]]
    assert [row[0] for row in result_of(query, MIXED).rows] == ["NodeByLabel", "Aggregate"]


class _Uncounted(MemorySource):
    def counts(self) -> Any:
        raise AssertionError("asked how much there is")


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (n {id: 'n0'})-[r]->(m) RETURN m.k",
        "MATCH (m)<-[r]-(n) WHERE n.id IN ['n0'] RETURN m.k",
        "MATCH (n {id: 'n0'})-[r]->(m) OPTIONAL MATCH (m)-->(o) RETURN m.k",
        "MATCH (n {id: 'n0'}), (m {id: n.id})-[*1..3]->(o) RETURN o.k",
        "MATCH (n {id: 'n0'}), (m {id: 'n4'}) MATCH p = shortestPath((n)-[*]-(m)) RETURN m.k",
    ],
)
def test_what_begins_at_a_node_takes_no_count_which_takes_longer_the_larger_a_board_is(query: str) -> None:
    source = _Uncounted(NODES, EDGES, id_key="id")
    expected = result_of(query, BOARD).rows
    assert result_of(query, source).rows == expected
    assert expected


def test_a_count_of_more_nodes_than_may_be_fetched_is_no_excess() -> None:
    budget = Budget(lambda: 0.0, Limits(elements=4, steps=4))
    assert run(compile_query("MATCH (n) RETURN count(n)", {}), BOARD, now=NOW, budget=budget).rows == [[5]]
