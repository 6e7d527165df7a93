"""A graph in memory, for tests and for the conformance kit: nodes of several labels or none, properties of any kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pulse_kg.ports.graph_source import Direction, GraphCounts, GraphEdge, GraphNode, Hop, Need


class MemorySource:
    """A `GraphSource` over the nodes and edges that it is given.

    Args:
        nodes: The nodes, with all of their properties.
        edges: Edges between them.
        id_key: See `GraphSource.id_key`; a node's property of that name is its id then.

    Raises:
        ValueError: Two elements have one id, or an edge leads to a node that is not among them.
    """

    def __init__(self, nodes: Iterable[GraphNode], edges: Iterable[GraphEdge], *, id_key: str | None = None) -> None:
        self._id_key = id_key
        given_nodes = sorted(nodes, key=lambda node: node.node_id)
        self._edges = sorted(edges, key=lambda edge: (edge.src, edge.rel_type, edge.edge_id))
        self._nodes = {node.node_id: node for node in given_nodes}
        if len(self._nodes) < len(given_nodes) or len({edge.edge_id for edge in self._edges}) < len(self._edges):
            raise ValueError("two elements with one id")
        self._out: dict[str, list[GraphEdge]] = {}
        self._in: dict[str, list[GraphEdge]] = {}
        for edge in self._edges:
            if not {edge.src, edge.dst} <= self._nodes.keys():
                raise ValueError(f"the edge {edge.edge_id} leads to a node that is not there")
            self._out.setdefault(edge.src, []).append(edge)
            self._in.setdefault(edge.dst, []).append(edge)

    @property
    def id_key(self) -> str | None:
        """See `GraphSource.id_key`."""
        return self._id_key

    def scan(self, label: str | None, equals: Mapping[str, Any], need: Need) -> Iterator[GraphNode]:
        """See `GraphSource.scan`."""
        for node in self._nodes.values():
            if (label is None or label in node.labels) and not any(_differ(node.properties.get(k), v) for k, v in equals.items()):
                yield _node(node, need)

    def get(self, node_ids: Collection[str], need: Need) -> dict[str, GraphNode]:
        """See `GraphSource.get`."""
        return {node_id: _node(self._nodes[node_id], need) for node_id in sorted(set(node_ids)) if node_id in self._nodes}

    def expand(
        self, node_ids: Collection[str], direction: Direction, rel_types: Collection[str] | None, edge_need: Need, node_need: Need
    ) -> list[Hop]:
        """See `GraphSource.expand`."""
        found = []
        for near in set(node_ids):
            along = self._out.get(near, []) if direction != "in" else []
            against = [e for e in self._in.get(near, []) if direction == "in" or e.src != near] if direction != "out" else []
            found += [(near, edge, edge.dst) for edge in along] + [(near, edge, edge.src) for edge in against]
        wanted = [step for step in found if rel_types is None or step[1].rel_type in rel_types]
        wanted.sort(key=lambda step: (step[0], step[1].rel_type, step[1].edge_id, step[2]))
        return [Hop(near, _edge(edge, edge_need), _node(self._nodes[far], node_need)) for near, edge, far in wanted]

    def edges(
        self, rel_types: Collection[str] | None, edge_need: Need, node_need: Need
    ) -> Iterator[tuple[GraphNode, GraphEdge, GraphNode]]:
        """See `GraphSource.edges`."""
        for edge in self._edges:
            if rel_types is None or edge.rel_type in rel_types:
                yield _node(self._nodes[edge.src], node_need), _edge(edge, edge_need), _node(self._nodes[edge.dst], node_need)

    def counts(self) -> GraphCounts:
        """See `GraphSource.counts`; of nodes alone, as the stores give them, so that a query is planned alike."""
        found = Counter(label for node in self._nodes.values() for label in node.labels)
        exact = all(len(node.labels) == 1 for node in self._nodes.values())
        return GraphCounts({label: found[label] for label in sorted(found)}, exact=exact)


def _node(node: GraphNode, need: Need) -> GraphNode:
    return GraphNode(node.node_id, node.labels, _of(node.properties, need))


def _edge(edge: GraphEdge, need: Need) -> GraphEdge:
    return GraphEdge(edge.edge_id, edge.rel_type, edge.src, edge.dst, _of(edge.properties, need))


def _of(properties: Mapping[str, Any], need: Need) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if value is not None and (need is None or name in need)}


def _differ(found: Any, asked: Any) -> bool:
    """Whether two values surely differ; said of booleans, numbers and texts alone, and of what is not there."""
    if found is None:
        return True
    kinds = _kind(found), _kind(asked)
    return None not in kinds and (kinds[0] != kinds[1] or found != asked)


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else None
