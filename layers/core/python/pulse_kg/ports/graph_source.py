"""What the query engine needs of a graph: nodes and edges of one board, and nothing else of the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol

from pulse_kg.domain.records import record

Direction = Literal["out", "in", "both"]

Need = frozenset[str] | None
"""The properties that a reader wants of each element; None for all of them."""


@record
class GraphNode:
    """A node as a query sees it. Two are equal if their ids are.

    Attributes:
        node_id: Its id.
        labels: Its labels; a node of a board has one, its type.
        properties: Of those that were asked for the ones it has, and no others; `id` is one of them. JSON values, none of them null, no
            integer beyond 64 bits; instants as RFC 3339 text. Never `board_id` and never a vector.
    """

    node_id: str
    labels: tuple[str, ...]
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphNode) and other.node_id == self.node_id

    def __hash__(self) -> int:
        return hash(self.node_id)


@record
class GraphEdge:
    """An edge as a query sees it. Two are equal if their ids are.

    Attributes:
        edge_id: Its id.
        rel_type: Its type.
        src: The id of the node where it starts.
        dst: The id of the node where it ends.
        properties: As those of a node.
    """

    edge_id: str
    rel_type: str
    src: str
    dst: str
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphEdge) and other.edge_id == self.edge_id

    def __hash__(self) -> int:
        return hash(self.edge_id)


@record
class Hop:
    """An edge as seen from one of its ends.

    Attributes:
        near: The id of the node that it is seen from.
        edge: The edge.
        far: The node at the other end; for a self-loop the node itself.
    """

    near: str
    edge: GraphEdge
    far: GraphNode


@record
class GraphCounts:
    """How much there is on the board, for the choice of a plan.

    Attributes:
        nodes: Label → nodes.
        edges: Relationship type → edges; empty where a count would cost as much as the query.
        exact: Whether each node has one label and is counted, so that a count of nodes can be told from these.
    """

    nodes: Mapping[str, int]
    edges: Mapping[str, int] = field(default_factory=dict)
    exact: bool = False


class GraphSource(Protocol):
    """Reads of one board, to which it is bound when it is made; nothing above it can name another.

    Filters: `equals` only narrows, and may be ignored: what comes is a superset, and who asks looks again. Equality is that of JSON,
    an integer equal to the float of the same value.
    Consistency: all reads of one source see the same commits, each wholly; on a store with snapshots, while one lasts.
    Tenancy: elements of another board never come, whatever ids or names are given, nor edges that lead to one.
    Names: any text may be asked for, as a label, a type, a property, an id or a value; of what can't be there, nothing comes.
    Errors: StoreUnavailable (retryable); ResourceExhausted and QueryTimeout where the store itself sets a bound. What comes step by step
        may raise at any step.
    Cost: each method is one request to a served store for each 256 ids.
    """

    @property
    def id_key(self) -> str | None:
        """The property by which a query names a node's id, "id" on a board; None where no property does."""
        ...

    def scan(self, label: str | None, equals: Mapping[str, Any], need: Need) -> Iterable[GraphNode]:
        """The nodes with this label (None for all), by id, maybe fewer where `equals` (property → value) rules some out."""
        ...

    def get(self, node_ids: Collection[str], need: Need) -> dict[str, GraphNode]:
        """Those of these nodes that the board has, by id."""
        ...

    def expand(
        self, node_ids: Collection[str], direction: Direction, rel_types: Collection[str] | None, edge_need: Need, node_need: Need
    ) -> list[Hop]:
        """Each edge at each of these nodes, by (near, type, edge id, far).

        With "both" an edge between two of the nodes comes once for each of them, and a self-loop once.

        Args:
            node_ids: The near ends.
            direction: As seen from them.
            rel_types: Only these types; None for all.
            edge_need: Properties of the edges.
            node_need: Properties of the far nodes.
        """
        ...

    def edges(
        self, rel_types: Collection[str] | None, edge_need: Need, node_need: Need
    ) -> Iterable[tuple[GraphNode, GraphEdge, GraphNode]]:
        """Each edge of these types (None for all) with the nodes at its start and end, by (start, type, edge id)."""
        ...

    def counts(self) -> GraphCounts:
        """How many nodes of each label there are.

        The same for the same commits, for the order of a query's rows may follow from it.
        """
        ...


class GraphSources(Protocol):
    """Makes sources."""

    def of(self, board_id: str) -> GraphSource:
        """The source of a board, for the reads of one query; empty for a board that is not there.

        Raises:
            StoreUnavailable: It can't be told what there is to see.
        """
        ...
