"""The persisted relevance of a node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pulse_kg.domain.instants import Instant

_DAY_MS = 86_400_000
HALF_LIFE_DAYS = 30
_FULL_DEGREE = math.log(100)
_FULL_HITS = 10
_MAX_PENALTY = 0.5
MAX_RELEVANCE = 1.5


@dataclass(frozen=True)
class Standing:
    """What the graph around a node says of it.

    Attributes:
        degree: Edges of any type at the node, in and out, each counted.
        contradicting: Confidences of the incoming contradicts edges that are unresolved: neither end superseded or revoked.
    """

    degree: int = 0
    contradicting: Sequence[float] = ()


def decay(age_ms: int) -> float:
    """0.5 to the power of (age in days / 30); an age below zero counts as zero."""
    return float(0.5 ** (max(age_ms, 0) / _DAY_MS / HALF_LIFE_DAYS))


def centrality(degree: int) -> float:
    """min(1, ln(1 + degree) / ln 100), 0..1."""
    return min(1.0, math.log1p(degree) / _FULL_DEGREE)


def relevance(
    *, confidence: float, standing: Standing, query_hits: int, last_queried_at: Instant | None, priority_boost: float, now: Instant
) -> float:
    """0.4·confidence + 0.3·centrality + 0.3·min(1, decayed hits / 10) − contradiction penalty + boost, within 0..1.5.

    The penalty is the sum of the confidences of incoming unresolved contradicts edges, at most 0.5; hits halve every
    30 days since the node was last returned by a counting tool. The source is the product's contract, section 5.
    """
    hits = query_hits * decay(now - last_queried_at) if last_queried_at is not None else 0.0
    penalty = min(math.fsum(standing.contradicting), _MAX_PENALTY)
    raw = 0.4 * confidence + 0.3 * centrality(standing.degree) + 0.3 * min(1.0, hits / _FULL_HITS) - penalty + priority_boost
    return min(max(raw, 0.0), MAX_RELEVANCE)
