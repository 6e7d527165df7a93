"""reindex: makes the vectors of a board anew from the texts of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.model import Node, TextVector
from pulse_kg.domain.schema import SEARCHABLE_TYPES
from pulse_kg.domain.text import embedding_text
from pulse_kg.errors import PermissionDenied
from pulse_kg.usecases.embedding import embed_texts
from pulse_kg.usecases.services import Services

_BATCH: Final = 64


@dataclass(frozen=True)
class Reindexed:
    """What was done: vectors written, and vectors removed that belonged to no node."""

    vectors: int
    removed: int


def reindex_board(board_id: str, services: Services, *, progress: Callable[[int, int], None] | None = None) -> Reindexed:
    """Embeds the texts of a board's nodes and makes the results its vectors; searches and commits go on meanwhile.

    Args:
        board_id: The board.
        services: The ports.
        progress: Called with texts done so far and texts in all.

    Raises:
        PermissionDenied: There is no such board.
        EmbeddingModelMismatch: The store was filled with another model: vectors of one board are made by one model.
        StoreUnavailable: A store can't be reached; doing it again is all there is to do.
    """
    board = services.boards.board(board_id)
    if board is None:
        raise PermissionDenied.for_board(board_id)
    nodes = [node for node in services.graph.all_nodes(board_id) if node.node_type in SEARCHABLE_TYPES]
    texts = list(dict.fromkeys(map(_text, nodes)))
    vectors: dict[str, TextVector] = {}
    for start in range(0, len(texts), _BATCH):
        vectors |= embed_texts(texts[start : start + _BATCH], services.limits.call_seconds, services)
        if progress is not None:
            progress(min(start + _BATCH, len(texts)), len(texts))
    removed = services.vectors.replace_all(board_id, [(node, vectors[_text(node)]) for node in nodes], seq=board.commit_seq)
    return Reindexed(len(nodes), removed)


def _text(node: Node) -> str:
    return embedding_text(node.title, node.body)
