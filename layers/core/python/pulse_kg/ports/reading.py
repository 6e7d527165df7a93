"""What the tools that read need of the stores, beside what a commit needs of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.schema import NodeType, RelType

Direction = Literal["in", "out", "both"]
Ends = Literal["near", "all"]
"""Of edges: the nodes that were asked for, or these and those at the other ends."""


@dataclass(frozen=True)
class Place:
    """Where a node stands in its graph.

    Attributes:
        degree: Edges of any type at it, in and out, each counted.
        contradicted: Whether an unresolved contradicts edge touches it, from whichever side: neither end superseded or revoked.
    """

    degree: int = 0
    contradicted: bool = False


Placed = tuple[Node, Place]
"""A node and where it stands."""


@dataclass(frozen=True)
class Neighbourhood:
    """What lies around a node, breadth first.

    Attributes:
        depths: Node id → hops from the anchor, 1 or more; the anchor is not in it.
        edges: Every edge among anchor and those nodes that satisfies the filter of relationships, by edge id.
        truncated: Whether nodes were left out for the limit.
        nodes: The anchor, where it exists, and those nodes, by id.
    """

    depths: Mapping[str, int]
    edges: Sequence[Edge]
    truncated: bool = False
    nodes: Mapping[str, Placed] = field(default_factory=dict)


@dataclass(frozen=True)
class Neighbours:
    """Edges at some nodes and what they lead to.

    Attributes:
        links: Each edge with the node at its other end, by (edge id, node id).
        near: The nodes that were asked for and exist, by id; empty unless they are wanted.
        places: Of the nodes whose places are wanted, by id.
    """

    links: Sequence[tuple[Edge, Node]]
    near: Mapping[str, Node] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True)
class Lineage:
    """Everything that supersedes edges join to some nodes, towards newer and older ones.

    Attributes:
        nodes: By id, the nodes themselves included.
        newer: Older id → the ids that supersede it, sorted.
        older: Newer id → the ids that it supersedes, sorted.
        places: Where the nodes that were asked for stand, by id.
    """

    nodes: Mapping[str, Node]
    newer: Mapping[str, Sequence[str]]
    older: Mapping[str, Sequence[str]]
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A node found by its meaning, and its cosine similarity, 0..1, rounded half to even to 4 decimals."""

    board_id: str
    node_id: str
    node_type: NodeType
    score: float
    live: bool


class GraphQueries(Protocol):
    """Reads of one board for the tools.

    Consistency: a read sees every applied commit, wholly; all reads of one tool's call see the same commits.
    Tenancy: the board is mandatory in each call; nothing of another board is ever returned, whatever ids are given.
    Order: as each method says; never that of the store.
    Errors: StoreUnavailable (retryable). A read that can't run raises; it never answers with nothing.
    Cost: each method is one request to a served store, unless it says otherwise.
    """

    def places(self, board_id: str, node_ids: Collection[str]) -> dict[str, Place]:
        """For each of these nodes that exists: where it stands."""
        ...

    def placed(self, board_id: str, node_ids: Collection[str]) -> dict[str, Placed]:
        """Those of these nodes that exist, with where they stand, by id; one request for each 500 ids."""
        ...

    def around(
        self,
        board_id: str,
        node_id: str,
        *,
        rel_types: Collection[RelType] | None = None,
        direction: Direction = "both",
        max_depth: int = 2,
        limit: int = 200,
    ) -> Neighbourhood:
        """Breadth first from a node. Relationships and direction hold on every hop; each node has its least depth.

        Where there are more than `limit` nodes, those of the least (depth, order of types in `NODE_TYPES`, id) stay. Two requests to a
        served store, however many hops.

        Args:
            board_id: The board.
            node_id: The anchor; one that is not there has nothing around it.
            rel_types: Only these relationships; None for all.
            direction: Along the edges, against them, or both.
            max_depth: 1..4 hops.
            limit: Most nodes.
        """
        ...

    def lineage(self, board_id: str, node_ids: Collection[str], *, most: int = 1_000) -> Lineage:
        """What supersedes these nodes and what they supersede, transitively, both ways from each node that is reached.

        At most `most` steps from the nearest of them. Empty for nodes that are not there.
        """
        ...

    def contradictions(self, board_id: str, *, node_id: str | None = None, most: int | None = None) -> list[Edge]:
        """The contradicts edges of the board, or those at one node; newest first (created_at descending), then by edge id.

        Args:
            board_id: The board.
            node_id: Only those at this node; None for all.
            most: Only the first ones of them, 1 or more; None for all.
        """
        ...

    def neighbours(
        self,
        board_id: str,
        node_ids: Collection[str],
        *,
        rel_types: Collection[RelType] | None = None,
        direction: Direction = "both",
        node_types: Collection[NodeType] | None = None,
        near: bool = False,
        placed: Ends | None = None,
    ) -> Neighbours:
        """Each edge at one of these nodes with the node at its other end.

        An edge between two of the nodes comes twice, once for each of them as seen from the other. With `direction` "out" the other node
        is the edge's target, with "in" its source.

        Args:
            board_id: The board.
            node_ids: One end.
            rel_types: Only these relationships; None for all.
            direction: As seen from `node_ids`.
            node_types: Only other nodes of these types; None for all.
            near: Whether these nodes themselves are wanted too, whether an edge is at them or not.
            placed: Of which nodes the places are wanted, whether an edge is at them or not; None for none.
        """
        ...

    def stated_in(self, board_id: str, artifact: str, node_types: Collection[NodeType]) -> list[Placed]:
        """The nodes of these types whose artifact has this canonical text, live and superseded, by id."""
        ...

    def with_words(
        self,
        board_id: str,
        node_types: Collection[NodeType],
        *,
        phrase: str,
        words: Collection[str],
        at_least: int,
        bodies: bool = False,
        since: Instant | None = None,
        until: Instant | None = None,
        also: Collection[str] = (),
    ) -> list[Node]:
        """Nodes whose folded title contains the phrase, or at least so many of the words, live and superseded, by id.

        Containing is by characters, so a word may be a part of another: who asks looks again. An empty phrase is contained in nothing.

        Args:
            board_id: The board.
            node_types: Of these types.
            phrase: Folded text.
            words: Folded words.
            at_least: How many of the words, 1 or more.
            bodies: Whether words are also looked for in the folded body and, for a Learning, its area.
            since: Only nodes of this time or later; a node's time is `happened_at`.
            until: Only nodes before this time.
            also: The nodes of these ids come too, whatever their words, type and time.
        """
        ...


class VectorSearch(Protocol):
    """Finds nodes by meaning on one board or on many.

    Filter: boards, types, liveness and time filter before the best are chosen, so that `limit` are returned wherever they fit.
    Order: best first; at equal score live before superseded, then by (board id, node id).
    Consistency, Tenancy, Errors: as `VectorIndex`. On a served store one request.
    """

    def search(
        self,
        board_ids: Collection[str],
        node_types: Collection[NodeType],
        vector: bytes,
        *,
        limit: int,
        min_score: float = 0.0,
        live_only: bool = False,
        since: Instant | None = None,
        until: Instant | None = None,
    ) -> list[Found]:
        """The best `limit` nodes of these types on these boards together.

        Args:
            board_ids: The boards; none gives nothing.
            node_types: Searchable types.
            vector: Little-endian float32, norm 1.
            limit: 1..1,000.
            min_score: Nothing below it.
            live_only: Whether superseded nodes are left out.
            since: Only nodes of this time or later; a node's time is `happened_at`.
            until: Only nodes before this time.
        """
        ...


class HitCounter(Protocol):
    """Counts how often nodes were returned, beside the graph. The decay tick writes the counts into the nodes.

    Counts only grow, and a tick sets a node's hits to what is counted here and adds nothing: doing it twice, or after a commit that wrote
    the node as it was before the tick, changes nothing and loses nothing.

    Atomicity: counts add up, from any number of processes.
    Tenancy: the board is part of every key; a board that is gone or going takes no hits.
    Errors: `count` raises none and waits for nobody: a hit that can't be counted is lost. `counted` raises StoreUnavailable.
    """

    def count(self, board_id: str, node_ids: Sequence[str], *, now: Instant) -> None:
        """Counts one hit for each of these nodes."""
        ...

    def counted(self, board_id: str) -> dict[str, tuple[int, Instant]]:
        """Node id → all hits so far, and when the last of them was, by id."""
        ...
