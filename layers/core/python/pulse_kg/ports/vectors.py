"""The vector index: which nodes mean nearly the same."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pulse_kg.domain.model import Node, TextVector
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.schema import NodeType
from pulse_kg.ports.embedder import ModelInfo


@dataclass(frozen=True)
class Hit:
    """A node and its cosine similarity, clamped to 0..1, rounded half to even to 4 decimals."""

    node_id: str
    score: float
    live: bool


@dataclass(frozen=True)
class IndexInfo:
    """What the index of one node type is.

    Attributes:
        node_type: One of the searchable types.
        dim: Length of a vector.
        metric: `cosine`.
        model: The model's id.
    """

    node_type: NodeType
    dim: int
    metric: Literal["cosine"]
    model: str


class VectorIndex(Protocol):
    """Finds the nearest nodes of a type on a board.

    Filter: board, type and liveness filter before the k best are chosen, so that k are returned wherever k fit.
    Order: best first; at equal score live before superseded, then by id.
    Consistency: a search sees every applied commit.
    Tenancy: the board is mandatory and part of every key.
    Model: the index records the embedding model and refuses another: EmbeddingModelMismatch from `check_model`.
    Errors: StoreUnavailable (retryable). A search that can't run raises; it never answers with nothing.
    """

    @property
    def match_mode(self) -> Literal["hnsw", "exact"]:
        """Whether searches are approximate or compare every vector."""
        ...

    def check_model(self, info: ModelInfo) -> None:
        """Records the model on first use; later refuses another id, dimension or digest."""
        ...

    def nearest(self, board_id: str, node_type: NodeType, vectors: Sequence[bytes], *, limit: int, live_only: bool) -> list[list[Hit]]:
        """For each vector (little-endian float32, norm 1) the best `limit` nodes."""
        ...

    def similarities(self, board_id: str, vector: bytes, node_ids: Collection[str]) -> dict[str, float]:
        """Cosine, as in `Hit`, to each of these nodes that has a vector."""
        ...

    def all_vectors(self, board_id: str) -> Iterator[tuple[str, TextVector, bool]]:
        """Every vector of the board with its node id and liveness, by node id."""
        ...

    def describe(self, board_id: str) -> list[IndexInfo]:
        """The indexes that the store has, in the order of the node types."""
        ...

    def replace_all(self, board_id: str, vectors: Sequence[tuple[Node, TextVector]], *, seq: int) -> int:
        """Makes these the vectors of a board as of a commit, whatever was there; what later commits wrote stays.

        Args:
            board_id: The board.
            vectors: Every node of the board that is to have one, with it.
            seq: The commit that the nodes were read at, or an earlier one.

        Returns:
            How many others were removed.
        """
        ...

    def apply(self, plan: CommitPlan) -> None:
        """Writes the vectors of a decided commit; applying again changes nothing."""
        ...
