"""The persisted relevance, against values computed by hand."""

from __future__ import annotations

import pytest

from pulse_kg.domain.relevance import Standing, centrality, decay, relevance
from tests.support.drafts import DAY, NOW


def score(
    *,
    confidence: float = 0.0,
    degree: int = 0,
    contradicting: tuple[float, ...] = (),
    hits: int = 0,
    days_since: float | None = None,
    boost: float = 0.0,
) -> float:
    return relevance(
        confidence=confidence,
        standing=Standing(degree, contradicting),
        query_hits=hits,
        last_queried_at=None if days_since is None else NOW - round(days_since * DAY),
        priority_boost=boost,
        now=NOW,
    )


@pytest.mark.parametrize(("confidence", "expected"), [(0.0, 0.0), (0.7, 0.28), (1.0, 0.4)])
def test_an_unlinked_node_has_four_tenths_of_its_confidence(confidence: float, expected: float) -> None:
    assert score(confidence=confidence) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("degree", "expected"),
    [(0, 0.0), (1, 0.0451545), (9, 0.15), (99, 0.3), (100, 0.3), (10_000, 0.3)],
)
def test_the_logarithm_of_the_degree_adds_up_to_three_tenths_at_99_edges(degree: int, expected: float) -> None:
    assert score(degree=degree) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("hits", "days", "expected"),
    [(10, 0, 0.3), (1_000, 0, 0.3), (5, 0, 0.15), (10, 30, 0.15), (10, 60, 0.075), (40, 60, 0.3), (1, 15, 0.03 * 0.5**0.5), (0, 0, 0.0)],
)
def test_ten_fresh_hits_add_three_tenths_and_halve_every_thirty_days(hits: int, days: float, expected: float) -> None:
    assert score(hits=hits, days_since=days) == pytest.approx(expected)


def test_hits_without_a_time_do_not_count() -> None:
    assert score(hits=10, days_since=None) == 0.0


def test_a_clock_that_went_back_decays_nothing() -> None:
    assert score(hits=5, days_since=-3) == pytest.approx(0.15)
    assert decay(-DAY) == 1.0


@pytest.mark.parametrize(
    ("confidences", "penalty"),
    [((), 0.0), ((0.2,), 0.2), ((0.2, 0.1), 0.3), ((0.7,), 0.5), ((0.3, 0.3), 0.5), ((0.0,), 0.0)],
)
def test_unresolved_contradictions_take_their_confidence_and_at_most_a_half(confidences: tuple[float, ...], penalty: float) -> None:
    full = 0.4 + 0.3 + 0.3
    assert score(confidence=1.0, degree=99, hits=10, days_since=0, contradicting=confidences) == pytest.approx(full - penalty)


def test_the_order_of_contradictions_does_not_matter_to_the_last_bit() -> None:
    assert score(confidence=1.0, contradicting=(0.1, 0.2, 0.03)) == score(confidence=1.0, contradicting=(0.03, 0.2, 0.1))


def test_the_boost_is_added() -> None:
    assert score(confidence=0.5, boost=0.2) == pytest.approx(0.4)


def test_it_never_falls_below_zero() -> None:
    assert score(confidence=0.1, contradicting=(1.0,)) == 0.0


def test_it_never_rises_above_one_and_a_half() -> None:
    assert score(confidence=1.0, degree=99, hits=10, days_since=0, boost=0.2) == pytest.approx(1.2)
    assert score(confidence=1.0, degree=99, hits=10, days_since=0, boost=5.0) == 1.5


def test_centrality_stays_within_zero_and_one() -> None:
    assert [centrality(0), centrality(99), centrality(10**9)] == pytest.approx([0.0, 1.0, 1.0])
