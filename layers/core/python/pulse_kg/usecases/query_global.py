"""query_global: one question to every board that the caller may read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import SEARCHABLE_TYPES
from pulse_kg.usecases.reading import Seen, seen_on
from pulse_kg.usecases.searching import query_vector
from pulse_kg.usecases.services import Services


@dataclass(frozen=True)
class GlobalHit:
    """A node of one of the boards, and its similarity to the query, 0..1."""

    seen: Seen
    score: float


@dataclass(frozen=True)
class GlobalAnswer:
    """The answer: the best of all boards together, and how many boards were searched."""

    hits: tuple[GlobalHit, ...]
    boards_searched: int


def query_global(caller: Caller, query: str, limit: int, services: Services) -> GlobalAnswer:
    """The nodes nearest to a question on all granted boards, best first; at equal score live ones, then by board and id.

    Only granted boards are searched, so that nothing of another takes a place among the best. A board that is being erased is left out.

    Args:
        caller: Who asks.
        query: 1..4,000 characters.
        limit: 1..100.
        services: The ports.

    Raises:
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    boards = _readable(caller, services)
    if not boards:
        return GlobalAnswer((), 0)
    vector = query_vector(query, services)
    with services.snapshot():
        found = services.search.search(boards, SEARCHABLE_TYPES, vector, limit=limit)
        by_board: dict[str, list[str]] = defaultdict(list)
        for hit in found:
            by_board[hit.board_id].append(hit.node_id)
        placed = {b: seen_on(b, node_ids, services) for b, node_ids in by_board.items()}
    hits = (GlobalHit(placed[h.board_id][h.node_id], h.score) for h in found if h.node_id in placed[h.board_id])
    return GlobalAnswer(tuple(hits), len(boards))


def _readable(caller: Caller, services: Services) -> list[str]:
    """The granted boards that are there, sorted; one read, however many there are."""
    if len(caller.boards) <= 1:
        found = [services.boards.board(board_id) for board_id in caller.boards]
        return [board.board_id for board in found if board is not None and not board.erasing]
    return [board.board_id for board in services.boards.boards() if caller.sees(board.board_id) and not board.erasing]
