"""What a run works with: its parameters, its budget, and the graph as it has seen it so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from pulse_kg.cypher.budget import Budget
from pulse_kg.domain.instants import Instant
from pulse_kg.ports.graph_source import Direction, GraphCounts, GraphEdge, GraphNode, GraphSource, Hop, Need

Row = dict[str, Any]

AT_ONCE: Final = 256
"""Ids of one read."""
_CHUNKS: Final = (32, 256, 1_024)
"""Rows that are looked at together: few at first, for a LIMIT may need no more."""
_CHUNK_VALUES: Final = 32_768
"""Values that they may have: each of a hundred clauses can hold such a chunk."""

_T = TypeVar("_T")


class Context:
    """One run of a query.

    Args:
        source: The graph.
        params: The parameters' values.
        now: What the clock functions give.
        budget: What the run may use.
        node_need: The properties of nodes that the query asks for.
        edge_need: The same of edges.
        pushdown: Whether filters are handed to the source.
        seed: What `rand()` begins from.
    """

    def __init__(
        self,
        source: GraphSource,
        params: Mapping[str, Any],
        *,
        now: Instant,
        budget: Budget,
        node_need: Need = None,
        edge_need: Need = None,
        pushdown: bool = True,
        seed: str = "",
    ) -> None:
        self.params = params
        self.now = now
        self.budget = budget
        self.pushdown = pushdown
        self.spend = budget.spend
        self.notices: dict[str, None] = {}
        self.memo: dict[int, Any] = {}
        self._source = source
        self._node_need, self._edge_need = node_need, edge_need
        self._long_nodes, self._long_edges = (need is None or not need <= _SHORT for need in (node_need, edge_need))
        self._nodes: dict[str, GraphNode] = {}
        self._missing: set[str] = set()
        self._hops: dict[tuple[Direction, tuple[str, ...] | None], dict[str, list[Hop]]] = {}
        self._counts: GraphCounts | None = None
        self._seed = seed
        self._chance: Callable[[], float] | None = None

    def chance(self) -> float:
        """The next number of `rand()`."""
        if self._chance is None:
            from random import Random  # few queries need it

            # The generator takes a text in a way that does not change from process to process.
            self._chance = Random(self._seed).random  # noqa: S311 - nothing secret hangs on it
        return self._chance()

    @property
    def id_key(self) -> str | None:
        """The property that holds a node's id, if the graph has one."""
        return self._source.id_key

    def counts(self) -> GraphCounts:
        """How much there is in the graph; read once."""
        if self._counts is None:
            self.budget.request()
            self._counts = self._source.counts()
        return self._counts

    def scan(self, label: str | None, equals: Mapping[str, Any], whole: Callable[[list[GraphNode]], None]) -> Iterator[GraphNode]:
        """The nodes with a label, by id; see `GraphSource.scan`.

        Args:
            label: None for all.
            equals: What they may be narrowed by.
            whole: Takes them all, if they are read to the end.
        """
        self.budget.request()
        fetch, long, known, listed = self.budget.fetch, self._long_nodes, self._nodes.setdefault, list[GraphNode]()
        for found in self._source.scan(label, equals if self.pushdown else {}, self._node_need):
            fetch(1, _characters(found) if long else 0)
            node = known(found.node_id, found)
            listed.append(node)
            yield node
        whole(listed)

    def all_edges(
        self, rel_types: tuple[str, ...] | None, whole: Callable[[list[tuple[GraphNode, GraphEdge, GraphNode]]], None]
    ) -> Iterator[tuple[GraphNode, GraphEdge, GraphNode]]:
        """All edges of these types with their ends; see `GraphSource.edges`.

        Args:
            rel_types: None for all.
            whole: Takes them all, if they are read to the end.
        """
        self.budget.request()
        fetch, long, known = self.budget.fetch, self._long_edges, self._nodes.setdefault
        listed: list[tuple[GraphNode, GraphEdge, GraphNode]] = []
        for src, edge, dst in self._source.edges(rel_types, self._edge_need, self._node_need):
            fetch(1, (_characters(edge) if long else 0) + (self._new_characters(src, dst) if self._long_nodes else 0))
            triple = known(src.node_id, src), edge, known(dst.node_id, dst)
            listed.append(triple)
            yield triple
        whole(listed)

    def _new_characters(self, *nodes: GraphNode) -> int:
        """Of those of these nodes that were not seen before."""
        return sum(_characters(node) for node in nodes if node.node_id not in self._nodes)

    def nodes(self, node_ids: Collection[str]) -> dict[str, GraphNode]:
        """Those of these nodes that there are, by id."""
        self._load(node_ids)
        return {node_id: self._nodes[node_id] for node_id in node_ids if node_id in self._nodes}

    def node(self, node_id: str) -> GraphNode | None:
        """The node of an id."""
        return self.nodes([node_id]).get(node_id)

    def _load(self, node_ids: Collection[str]) -> None:
        for some in batches(dict.fromkeys(i for i in node_ids if i not in self._nodes and i not in self._missing), AT_ONCE):
            self.budget.request()
            found = self._source.get(some, self._node_need)
            self.budget.fetch(len(found), sum(_characters(node) for node in found.values()))
            self._nodes.update(found)
            self._missing.update(node_id for node_id in some if node_id not in found)

    @property
    def needs_whole(self) -> bool:
        """Whether nodes are read with some of their properties only."""
        return self._node_need is not None

    def whole(self, node_ids: Collection[str]) -> dict[str, GraphNode]:
        """Those nodes with all their properties."""
        if self._node_need is None:
            return self.nodes(node_ids)
        found: dict[str, GraphNode] = {}
        for some in batches(dict.fromkeys(node_ids), AT_ONCE):
            self.budget.request()
            some_nodes = self._source.get(some, None)
            self.budget.fetch(len(some_nodes), sum(_characters(node) for node in some_nodes.values()))
            found |= some_nodes
        return found

    def hops(self, node_id: str, direction: Direction, rel_types: tuple[str, ...] | None) -> Sequence[Hop]:
        """The edges at a node, by (type, edge id)."""
        known = self._hops.setdefault((direction, rel_types), {})
        if node_id not in known:
            self.prefetch([node_id], direction, rel_types)
        return known[node_id]

    def prefetch(self, node_ids: Iterable[str], direction: Direction, rel_types: tuple[str, ...] | None) -> None:
        """Reads the edges at these nodes that were not read yet."""
        known = self._hops.setdefault((direction, rel_types), {})
        missing = dict.fromkeys([i for i in node_ids if i not in known])
        for some in batches(missing, AT_ONCE) if missing else ():
            self.budget.request()
            for node_id in some:
                known[node_id] = []
            found = self._source.expand(some, direction, rel_types, self._edge_need, self._node_need)
            texts = sum(_characters(hop.far) + (_characters(hop.edge) if self._long_edges else 0) for hop in found)
            self.budget.fetch(len(found), texts)
            for hop in found:
                known[hop.near].append(hop)
                self._nodes.setdefault(hop.far.node_id, hop.far)


_SHORT: Final = frozenset("id title status created_at updated_at decided_at commit_seq version confidence relevance_score edge_id".split())
"""Properties whose texts are too short to be counted."""


def _characters(element: GraphNode | GraphEdge) -> int:
    return sum([len(value) for value in element.properties.values() if type(value) is str])


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """The items in lists of at most that size."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows in lists, small ones first."""
    if type(rows) is list and len(rows) == 1:
        yield rows  # a pattern inside of an expression is matched for one row at a time
        return
    rest, sizes = iter(rows), iter(_CHUNKS)
    size = next(sizes)
    while some := list(islice(rest, size)):
        yield some
        size = max(1, min(next(sizes, size), _CHUNK_VALUES // max(1, len(some[0]))))
