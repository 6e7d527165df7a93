"""Values of queries for tests: some of every kind, strategies that make more, and a context that counts what is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from pulse_kg.cypher.temporal import Date, DateTime, Duration
from pulse_kg.cypher.values import MAX_INTEGER, MIN_INTEGER, Path
from pulse_kg.domain.instants import parse_instant
from pulse_kg.errors import ResourceExhausted
from pulse_kg.ports.graph_source import GraphEdge, GraphNode

NOW: Final = parse_instant("2026-05-07T16:30:00.250Z")


def node(node_id: str, *labels: str, **properties: Any) -> GraphNode:
    return GraphNode(node_id, labels, properties)


def edge(edge_id: str, src: str = "a", dst: str = "b", rel_type: str = "KNOWS", **properties: Any) -> GraphEdge:
    return GraphEdge(edge_id, rel_type, src, dst, properties)


A, B = node("a", "Person", name="Ada", age=36), node("b", "Person", name="Bob")
AB = edge("ab", since=2020)

ONE_OF_EACH: Final[Mapping[str, Any]] = {
    "null": None,
    "boolean": True,
    "integer": 1,
    "float": 1.5,
    "string": "text",
    "list": [1],
    "map": {"key": 1},
    "node": A,
    "relationship": AB,
    "path": Path((A, B), (AB,)),
    "datetime": DateTime(NOW),
    "date": Date(20_000),
    "duration": Duration(days=1),
}
"""By the name of the kind."""

integers = st.one_of(
    st.integers(-3, 3), st.integers(MIN_INTEGER, MAX_INTEGER), st.sampled_from([MIN_INTEGER, MAX_INTEGER, 1 << 53, (1 << 53) + 1])
)
floats = st.one_of(
    st.integers(-3, 3).map(float), st.floats(), st.sampled_from([float(1 << 53), 0.0, -0.0, math.nan, math.inf, float(1 << 63)])
)
_nodes = st.sampled_from([A, B, node("a", "Other")])
_edges = st.sampled_from([AB, edge("ba", "b", "a")])
_paths = st.sampled_from([Path((A,), ()), Path((B,), ()), Path((A, B), (AB,)), Path((A, B), (edge("ba", "b", "a"),))])
_temporals = st.one_of(
    st.integers(-2, 2).map(DateTime),
    st.integers(-2, 2).map(Date),
    st.builds(Duration, st.integers(-2, 2), st.integers(-31, 31), st.integers(-2, 2)),
)
scalars = st.one_of(
    st.none(), st.booleans(), integers, floats, st.sampled_from(["", "a", "b", "ab", "A", "é"]), st.text(max_size=3), _temporals
)
values = st.recursive(
    st.one_of(scalars, _nodes, _edges, _paths),
    lambda items: st.one_of(st.lists(items, max_size=3), st.dictionaries(st.sampled_from(["k", "l", "m"]), items, max_size=3)),
    max_leaves=6,
)


class Counting:
    """A context of functions over a few nodes, which counts what is spent and refuses to spend more than it has."""

    def __init__(self, *nodes: GraphNode, limit: int = 5_000_000) -> None:
        self.now = NOW
        self.spent = 0
        self.limit = limit
        self._nodes = {each.node_id: each for each in nodes}

    def node(self, node_id: str) -> GraphNode | None:
        return self._nodes.get(node_id)

    def chance(self) -> float:
        return 0.25

    def spend(self, amount: int, /) -> None:
        self.spent += amount
        if self.spent > self.limit:
            raise ResourceExhausted("Too much.", {"budget": "steps"})
