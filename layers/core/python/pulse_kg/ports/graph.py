"""The graph: nodes and edges of boards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.plan import CommitPlan, Surroundings
from pulse_kg.domain.schema import NodeType


@dataclass(frozen=True)
class TitleMatch:
    """A node found by its title and the share of it, 0..1, that the two titles have in common from the start."""

    node: Node
    score: float


@dataclass(frozen=True)
class Survey:
    """What a commit needs to know of the graph, read at once.

    Attributes:
        nodes: The nodes that were asked for by id and exist, by id.
        with_digests: As `GraphStore.with_digests`.
        with_refs: As `GraphStore.with_refs`.
        surroundings: For each of `nodes`: its degree and its incoming contradicts edges.
        edges_between: The ids of the edges whose both ends are among `nodes`.
    """

    nodes: Mapping[str, Node]
    with_digests: Sequence[Node] = ()
    with_refs: Sequence[Node] = ()
    surroundings: Mapping[str, Surroundings] = field(default_factory=dict)
    edges_between: frozenset[str] = frozenset()


class GraphReads(Protocol):
    """What planning a commit reads of a graph; the contract is that of `GraphStore`."""

    def nodes(self, board_id: str, node_ids: Collection[str]) -> dict[str, Node]:
        """The nodes of these ids that exist on the board, by id."""
        ...

    def existing_edges(self, board_id: str, edge_ids: Collection[str]) -> frozenset[str]:
        """Those of these edge ids that the board has."""
        ...

    def surroundings(self, board_id: str, node_ids: Collection[str]) -> dict[str, Surroundings]:
        """For each of these nodes that exists: its degree and its incoming contradicts edges, by (src)."""
        ...

    def supersedes_below(self, board_id: str, node_ids: Collection[str]) -> Mapping[str, Sequence[str]]:
        """Every supersedes edge reachable from these nodes towards older ones: newer id → older ids, sorted."""
        ...


class GraphStore(GraphReads, Protocol):
    """Reads nodes and edges; writes come as a whole commit plan.

    Atomicity: `apply` writes everything of a plan or nothing.
    Idempotency: applying a plan again, or late, changes nothing (elements are found by id and guarded by the number of the plan).
    Consistency: a read sees every applied commit, wholly.
    Tenancy: the board is mandatory in each call; nothing of another board is ever returned, whatever ids are given.
    Order: as each method says; never that of the store.
    Errors: StoreUnavailable (retryable).
    """

    def with_digests(self, board_id: str, digests: Collection[str]) -> list[Node]:
        """Nodes with one of these content digests, live and superseded, by (created_seq, id)."""
        ...

    def with_refs(self, board_id: str, refs: Collection[str]) -> list[Node]:
        """Live nodes whose source_ref is one of these canonical texts, by (created_seq, id)."""
        ...

    def survey(self, board_id: str, node_ids: Collection[str], *, digests: Collection[str] = (), refs: Collection[str] = ()) -> Survey:
        """All that a commit reads of the graph, in one read of one state where the store has such."""
        ...

    def nearest_titles(self, board_id: str, node_type: NodeType, folded_title: str, *, limit: int, live_only: bool) -> list[TitleMatch]:
        """The nodes of a type whose folded titles share the longest start with the given one.

        Score = shared prefix / the longer title, in characters, rounded to 4 decimals; above 0; best first, live before
        superseded at equal score, then by id.
        """
        ...

    def edges_of(self, board_id: str, node_ids: Collection[str]) -> list[Edge]:
        """The edges with an end among these nodes, each once, by edge id."""
        ...

    def all_nodes(self, board_id: str) -> Iterator[Node]:
        """Every node of the board, by id."""
        ...

    def all_edges(self, board_id: str) -> Iterator[Edge]:
        """Every edge of the board, by edge id."""
        ...

    def counts(self, board_id: str) -> dict[str, int]:
        """`nodes`, `live_nodes`, `edges`."""
        ...

    def apply(self, plan: CommitPlan) -> None:
        """Writes the nodes, edges and relevance scores of a decided commit."""
        ...
