"""What the tools that search by meaning share: the vector of a question, and what it and its words find."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Node
from pulse_kg.domain.ranking import SIMILARITY_FLOOR, Topic, best_first
from pulse_kg.domain.schema import NodeType
from pulse_kg.usecases.embedding import embed_texts
from pulse_kg.usecases.services import Deadline, Services


@dataclass(frozen=True)
class Scored:
    """A node that was found, and how well it fits, 0..1."""

    node: Node
    score: float


def query_vector(query: str, services: Services) -> bytes:
    """The vector of a question. Not inside a snapshot: the first use of a store records its model.

    Raises:
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    return embed_texts([query], Deadline(services).left(), services)[query].vector


def best_of(found: Iterable[Scored], limit: int) -> list[Scored]:
    """The best of them: by score, then live before superseded, then by id."""
    return sorted(found, key=lambda s: best_first(s.score, s.node.live, s.node.node_id))[:limit]


def by_meaning_and_title(
    board_id: str,
    query: str,
    vector: bytes,
    services: Services,
    *,
    node_types: Sequence[NodeType],
    titled_types: Collection[NodeType],
    limit: int,
    since: Instant | None = None,
    until: Instant | None = None,
) -> list[Scored]:
    """The best nodes by the larger of their similarity and the score of their title, best first.

    A title's similarity is asked for only as far as it can matter: a node outside the `limit` nearest is among the best by its title or
    not at all.

    Args:
        board_id: The board.
        query: The question.
        vector: Its vector.
        services: The ports.
        node_types: Searchable types, for the similarity; below 0.30 nothing is found by it.
        titled_types: Types whose titles are looked at.
        limit: Most nodes.
        since: Only nodes of this time or later; a node's time is `happened_at`.
        until: Only nodes before this time.
    """
    topic = Topic.of(query)
    scores = {
        hit.node_id: hit.score
        for hit in services.search.search([board_id], node_types, vector, limit=limit, min_score=SIMILARITY_FLOOR, since=since, until=until)
    }
    found = services.queries.with_words(
        board_id, titled_types, phrase=topic.phrase, words=topic.words, at_least=topic.needed, since=since, until=until, also=scores.keys()
    )
    nodes = {node.node_id: node for node in found}
    for node_id, node in nodes.items():
        by_title = topic.score(node.title)
        if by_title is not None:
            scores[node_id] = max(scores.get(node_id, 0.0), by_title)
    return best_of((Scored(nodes[node_id], score) for node_id, score in scores.items() if node_id in nodes), limit)
