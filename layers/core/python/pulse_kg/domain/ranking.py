"""How the tools that search rank what they found: scores, and the orders that leave nothing to chance."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.relevance import centrality, decay
from pulse_kg.domain.text import fold
from pulse_kg.domain.words import content_words, share, words

SIMILARITY_FLOOR: Final = 0.30
"""Cosine below which a node is no answer by its meaning alone."""
_DIGITS: Final = 4
_BY_TITLE: Final = 0.5  # of a title that has all the words asked for, half of the score is theirs
_PER_HOP: Final = 0.8
_WEIGHTS: Final = (0.5, 0.2, 0.2, 0.1)


def rounded(score: float) -> float:
    """A score as it is compared and shown: 4 decimals, half to even."""
    return round(score, _DIGITS)


def best_first(score: float, live: bool, *ids: str) -> tuple[float, bool, tuple[str, ...]]:
    """A key to sort by: best score, then live before superseded, then by the ids."""
    return -score, not live, ids


@dataclass(frozen=True)
class Topic:
    """What a text is asked for by its words.

    Attributes:
        phrase: The whole of it, folded.
        words: Its content words, folded, each once.
    """

    phrase: str
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Topic:
        """The topic that a text names."""
        return cls(fold(text), frozenset(content_words(text)))

    @property
    def needed(self) -> int:
        """How many of the words make a hit: 60 per cent of them, and at least one."""
        return max(1, -(-3 * len(self.words) // 5))

    def share_in(self, *texts: str) -> float:
        """Which share of the words the texts have together, 0..1."""
        return share(self.words, [word for text in texts for word in words(text)])

    def score(self, title: str, *more: str) -> float | None:
        """0.5 + 0.5·share of the words in the texts, rounded; None for no hit.

        A hit is a folded title that contains the phrase, or texts that together have as many of the words as are `needed`.

        Args:
            title: The title.
            *more: Other texts of the same node, for its words alone.
        """
        found: Collection[str] = self.words & {word for text in (title, *more) for word in words(text)}
        if len(found) < self.needed and not (self.phrase and self.phrase in fold(title)):
            return None
        return rounded(_BY_TITLE + (1 - _BY_TITLE) * share(self.words, found))


@dataclass(frozen=True)
class Components:
    """What the score of a similar decision is made of, each 0..1 and rounded.

    Attributes:
        semantic: Cosine similarity to the query.
        graph_centrality: min(1, ln(1 + degree) / ln 100).
        recency: 0.5 to the power of (age in days / 30).
        confidence: The node's.
    """

    semantic: float
    graph_centrality: float
    recency: float
    confidence: float

    @property
    def score(self) -> float:
        """0.5·semantic + 0.2·graph_centrality + 0.2·recency + 0.1·confidence, of the components as they are shown, rounded."""
        semantic, graph, recency, confidence = _WEIGHTS
        return rounded(semantic * self.semantic + graph * self.graph_centrality + recency * self.recency + confidence * self.confidence)


def components(*, semantic: float, degree: int, created_at: Instant, confidence: float, now: Instant) -> Components:
    """The components of a node's score.

    Args:
        semantic: Its similarity to the query.
        degree: Edges of any type at it, in and out, each counted.
        created_at: When it was made.
        confidence: Its confidence.
        now: The time of the board's last commit or tick; a node made after it counts as new.
    """
    return Components(rounded(semantic), rounded(centrality(degree)), rounded(decay(now - created_at)), rounded(confidence))


def one_hop(score: float, confidence: float) -> float:
    """What a neighbour of an answer is worth: the answer's score times 0.8 and the confidence of the edge between them, rounded."""
    return rounded(score * _PER_HOP * confidence)
