"""get_learning_from_bugs: what was learnt from the bugs of an area."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pulse_kg.domain.model import Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.ranking import SIMILARITY_FLOOR, Topic, best_first
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, seen
from pulse_kg.usecases.searching import query_vector
from pulse_kg.usecases.services import Services

_NEAREST: Final = 1_000
_STEP: Final = 100


@dataclass(frozen=True)
class LearningFromBug:
    """A Learning, the Bug that it validates, and the larger of their scores, 0..1."""

    learning: Seen
    bug: Seen
    score: float


@dataclass
class _Pairs:
    """Pairs as they are found, each once, with the best score.

    Attributes:
        nodes: Id → node, Learnings and Bugs.
        scores: (Learning, Bug) → score.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    scores: dict[tuple[str, str], float] = field(default_factory=dict)

    def best(self, limit: int) -> list[tuple[float, Node, Node]]:
        """The best pairs: by score, then both live, then by the ids."""
        found = [(score, self.nodes[learning], self.nodes[bug]) for (learning, bug), score in self.scores.items()]
        return sorted(found, key=lambda p: best_first(p[0], p[1].live and p[2].live, p[1].node_id, p[2].node_id))[:limit]


def get_learning_from_bugs(caller: Caller, board_id: str, area: str, limit: int, services: Services) -> tuple[LearningFromBug, ...]:
    """The best pairs of a Learning and a Bug that it validates, where either has to do with the area.

    A Learning has by its similarity (of the 1,000 nearest, 0.30 or more) or by the words of its title, body and area; a Bug by the words
    of its title and body.

    Args:
        caller: Who asks.
        board_id: The board.
        area: 1..4,000 characters.
        limit: 1..200.
        services: The ports.

    Raises:
        PermissionDenied: The board is not granted.
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    granted_board(caller, board_id, services)
    vector = query_vector(area, services)
    with services.snapshot():
        hits = services.search.search([board_id], ["Learning"], vector, limit=_NEAREST, min_score=SIMILARITY_FLOOR)
        near = {hit.node_id: hit.score for hit in hits}
        by_words = _by_words(board_id, area, services)
        pairs = _Pairs()
        ranked = [hit for hit in hits if hit.node_id not in by_words]
        some = {n: max(score, near.get(n, 0.0)) for n, score in by_words.items()}
        for start in range(0, max(1, len(ranked)), _STEP):
            best = pairs.best(limit)
            if len(best) == limit and ranked[start].score < best[-1][0]:
                break  # nothing further away can be among the best any more
            some |= {hit.node_id: hit.score for hit in ranked[start : start + _STEP]}
            _join(board_id, some, near, pairs, services)
            some = {}
        best = pairs.best(limit)
        placed = seen(board_id, [node for _, learning, bug in best for node in (learning, bug)], services)
    return tuple(LearningFromBug(placed[learning.node_id], placed[bug.node_id], score) for score, learning, bug in best)


def _by_words(board_id: str, area: str, services: Services) -> dict[str, float]:
    """Learnings and Bugs that have the words, and how well."""
    topic = Topic.of(area)
    found = services.queries.with_words(
        board_id, ["Learning", "Bug"], phrase=topic.phrase, words=topic.words, at_least=topic.needed, bodies=True
    )
    scores: dict[str, float] = {}
    for node in found:
        stated = node.attributes.get("area") if node.node_type == "Learning" else None
        score = topic.score(node.title, node.body, *([stated] if isinstance(stated, str) else []))
        if score is not None:
            scores[node.node_id] = score
    return scores


def _join(board_id: str, scores: Mapping[str, float], near: Mapping[str, float], pairs: _Pairs, services: Services) -> None:
    """Adds the pairs that nodes of these ids are in."""
    if not scores:
        return
    validating = services.queries.neighbours(board_id, list(scores), rel_types=["validates"], node_types=["Learning", "Bug"], near=True)
    pairs.nodes |= {**{other.node_id: other for _, other in validating.links}, **validating.near}
    for edge, _ in validating.links:
        learning, bug = pairs.nodes.get(edge.src), pairs.nodes.get(edge.dst)
        if learning is None or bug is None or bug.node_type != "Bug":
            continue
        score = max(scores.get(edge.src, 0.0), near.get(edge.src, 0.0), scores.get(edge.dst, 0.0))
        pairs.scores[edge.src, edge.dst] = max(score, pairs.scores.get((edge.src, edge.dst), 0.0))
