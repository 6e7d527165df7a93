"""get_decision_history: what was decided about a topic, in time, and what superseded what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.chains import head_of, newest_to_oldest
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.ports.reading import Lineage
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, seen
from pulse_kg.usecases.searching import by_meaning_and_title, query_vector
from pulse_kg.usecases.services import Services

_OPENING: Final = 240  # characters of a body that stand for a rationale


@dataclass(frozen=True)
class HistoryEntry:
    """A Decision of the topic, and how well it fits, 0..1."""

    seen: Seen
    score: float

    @property
    def rationale(self) -> str | None:
        """Why it was decided: the attribute, else the beginning of the body; None where neither says anything."""
        stated = self.seen.node.attributes.get("rationale")
        if isinstance(stated, str) and stated.strip():
            return stated
        return self.seen.node.body[:_OPENING] if self.seen.node.body.strip() else None


@dataclass(frozen=True)
class Chain:
    """A line of Decisions: the one that holds, and all ids from it to the oldest."""

    head: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class DecisionHistory:
    """The answer: Decisions newest first, and the chain of each one's head, in the order in which the heads first come up."""

    entries: tuple[HistoryEntry, ...]
    chains: tuple[Chain, ...]


def get_decision_history(
    caller: Caller, board_id: str, topic: str, limit: int, since: Instant | None, services: Services
) -> DecisionHistory:
    """The Decisions that fit a topic best, by meaning or title, then put in the order of their time.

    Args:
        caller: Who asks.
        board_id: The board.
        topic: 1..4,000 characters.
        limit: 1..200.
        since: Only Decisions of this time or later (`Node.happened_at`).
        services: The ports.

    Raises:
        PermissionDenied: The board is not granted.
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    granted_board(caller, board_id, services)
    vector = query_vector(topic, services)
    with services.snapshot():
        found = by_meaning_and_title(
            board_id, topic, vector, services, node_types=["Decision"], titled_types=["Decision"], limit=limit, since=since
        )
        found.sort(key=lambda s: (-s.node.happened_at, s.node.node_id))
        ids = [s.node.node_id for s in found]
        lineage = services.queries.lineage(board_id, ids) if ids else Lineage({}, {}, {})
        placed = seen(board_id, [s.node for s in found], services, lineage.places)
    entries = (HistoryEntry(placed[s.node.node_id], s.score) for s in found)
    heads = dict.fromkeys(head_of(node_id, lineage.nodes) for node_id in ids)
    chains = (Chain(head, newest_to_oldest(head, lineage.older, lineage.nodes)) for head in heads)
    return DecisionHistory(tuple(entries), tuple(chains))
