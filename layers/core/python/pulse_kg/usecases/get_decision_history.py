"""get_decision_history: what was decided about a topic, in time, and what superseded what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.chains import head_of, newest_to_oldest
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, seen
from pulse_kg.usecases.searching import Scored, by_meaning_and_title, query_vector
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
        placed = seen(board_id, [s.node for s in found], services)
        chains = _chains(board_id, found, services)
    entries = (HistoryEntry(placed[s.node.node_id], s.score) for s in found)
    return DecisionHistory(tuple(entries), tuple(chains))


def _chains(board_id: str, found: list[Scored], services: Services) -> list[Chain]:
    """The chain of each head; a Decision that no supersedes edge touches is one of its own."""
    ids = [s.node.node_id for s in found]
    edges = services.queries.neighbours(board_id, ids, rel_types=["supersedes"]) if ids else []
    joined = {end for edge, _ in edges for end in (edge.src, edge.dst)}
    chains: dict[str, Chain] = {}
    heads: dict[str, str] = {}  # of every node of a lineage that was read: one read answers for all that it joins
    for node_id in ids:
        if node_id not in joined:
            chains[node_id] = Chain(node_id, (node_id,))
            continue
        if node_id not in heads:
            lineage = services.queries.lineage(board_id, node_id)
            heads |= {n: head_of(n, lineage.nodes) for n in lineage.nodes}
            for head in {heads[n] for n in ids if n in lineage.nodes}:
                chains.setdefault(head, Chain(head, newest_to_oldest(head, lineage.older, lineage.nodes)))
    in_order = dict.fromkeys(heads.get(node_id, node_id) for node_id in ids)
    return [chains[head] for head in in_order if head in chains]
