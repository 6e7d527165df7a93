"""find_similar_decisions: what was decided before that a new question is near to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.ranking import Components, best_first, components
from pulse_kg.errors import PermissionDenied
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, seen_on
from pulse_kg.usecases.searching import query_vector
from pulse_kg.usecases.services import Services

_LEAST_NEAREST: Final = 50
_NEAREST_EACH: Final = 4


@dataclass(frozen=True)
class SimilarDecision:
    """A Decision, and what its score is made of."""

    seen: Seen
    components: Components


def find_similar_decisions(caller: Caller, board_id: str, query: str, limit: int, services: Services) -> tuple[SimilarDecision, ...]:
    """The best Decisions by similarity, place in the graph, age and confidence, of the max(50, 4·limit) nearest; superseded ones too.

    Args:
        caller: Who asks.
        board_id: The board.
        query: 1..4,000 characters.
        limit: 1..50.
        services: The ports.

    Raises:
        PermissionDenied: The board is not granted.
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    if not caller.sees(board_id):
        raise PermissionDenied.for_board(board_id)
    vector = query_vector(query, services)
    with services.snapshot():
        now = granted_board(caller, board_id, services).as_of
        nearest = services.search.search([board_id], ["Decision"], vector, limit=max(_LEAST_NEAREST, _NEAREST_EACH * limit))
        placed = seen_on(board_id, [hit.node_id for hit in nearest], services)
    similarity = {hit.node_id: hit.score for hit in nearest}
    found = [SimilarDecision(one, _components(one, similarity[node_id], now)) for node_id, one in placed.items()]
    return tuple(sorted(found, key=lambda s: best_first(s.components.score, s.seen.node.live, s.seen.node.node_id))[:limit])


def _components(one: Seen, semantic: float, now: Instant) -> Components:
    node = one.node
    return components(semantic=semantic, degree=one.place.degree, created_at=node.created_at, confidence=node.confidence, now=now)
