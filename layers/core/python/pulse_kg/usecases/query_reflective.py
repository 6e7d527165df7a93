"""query_reflective: retrieval that a critic looks at, and where the critic asks for more, again.

The tool runs one pass with a critic that needs no model. Who has one calls `query_reflective` with a critic of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.ranking import best_first
from pulse_kg.domain.words import content_words, words
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.query_natural import AnswerNode, Span, retrieve
from pulse_kg.usecases.services import Services

MAX_PASSES: Final = 10


@dataclass(frozen=True)
class Critique:
    """What a critic says of the candidates.

    Attributes:
        notes: For who asked.
        next_query: What to ask next; None or blank where the critic has enough.
    """

    notes: str
    next_query: str | None = None


Critic = Callable[[str, Sequence[AnswerNode]], Critique]
"""Judges the candidates found so far for the question, best first."""


@dataclass(frozen=True)
class Pass:
    """One pass: what was asked, and what the critic said of all candidates found by then."""

    query: str
    critique: Critique


@dataclass(frozen=True)
class Reflection:
    """What came of it.

    Attributes:
        candidates: The best of all passes; each node with its best score.
        passes: In order, at least one.
    """

    candidates: tuple[AnswerNode, ...]
    passes: tuple[Pass, ...]

    @property
    def critic_notes(self) -> str:
        """What the critic said, pass by pass."""
        return "\n".join(p.critique.notes for p in self.passes)


def plain_critic(query: str, candidates: Sequence[AnswerNode]) -> Critique:
    """A critic that needs no model: which words of the question no candidate has, and which candidates are not the last word."""
    held = {word for c in candidates for text in (c.node.title, c.node.body, *_texts(c)) for word in words(text)}
    missing = [word for word in dict.fromkeys(content_words(query)) if word not in held]
    superseded = [f"{c.node.node_id} (by {c.node.superseded_by})" for c in candidates if not c.node.live]
    revoked = [c.node.node_id for c in candidates if c.node.revoked]
    contradicted = [c.node.node_id for c in candidates if c.seen.place.contradicted]
    notes = [
        f"One pass of retrieval: {len(candidates)} candidate{'' if len(candidates) == 1 else 's'}.",
        f"No candidate has these words of the query: {', '.join(missing)}." if missing else "The candidates have all words of the query.",
        *(
            f"{label}: {', '.join(which)}."
            for label, which in (("Superseded", superseded), ("Revoked", revoked), ("Contradicted and not resolved", contradicted))
            if which
        ),
    ]
    return Critique(" ".join(notes))


def query_reflective(
    caller: Caller,
    board_id: str,
    query: str,
    limit: int,
    services: Services,
    *,
    critic: Critic = plain_critic,
    max_passes: int = 1,
) -> Reflection:
    """Retrieves, asks the critic, and goes on with what it asks for; counts no hits.

    Args:
        caller: Who asks.
        board_id: The board.
        query: 1..4,000 characters.
        limit: 1..200, of each pass and of the candidates in the end.
        services: The ports.
        critic: Sees the first question and all candidates found so far. What it raises goes through.
        max_passes: 1..10. It ends earlier where the critic asks for nothing, or for what was asked before.

    Raises:
        PermissionDenied: The board is not granted.
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
        ValueError: More passes than are allowed, or none.
    """
    if not 1 <= max_passes <= MAX_PASSES:
        raise ValueError(f"max_passes must be 1..{MAX_PASSES}")
    found: dict[str, AnswerNode] = {}
    candidates: list[AnswerNode] = []
    passes: list[Pass] = []
    asking: str | None = query
    while asking is not None and asking.strip() and len(passes) < max_passes and asking not in {p.query for p in passes}:
        granted_board(caller, board_id, services)
        for answer in retrieve(board_id, asking, Span(), limit, services).nodes:
            before = found.get(answer.node.node_id)
            found[answer.node.node_id] = answer if before is None else replace(answer, score=max(answer.score, before.score))
        candidates = sorted(found.values(), key=lambda a: best_first(a.score, a.node.live, a.node.node_id))[:limit]
        passes.append(Pass(asking, critic(query, candidates)))
        asking = passes[-1].critique.next_query
    return Reflection(tuple(candidates), tuple(passes))


def _texts(answer: AnswerNode) -> list[str]:
    return [value for value in answer.node.attributes.values() if isinstance(value, str)]
