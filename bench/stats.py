"""The few statistics of a report: medians and the spread around them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_DIGITS = 3


@dataclass(frozen=True)
class Summary:
    """How a quantity was distributed; all but `n` in the quantity's own unit."""

    n: int
    min: float
    p50: float
    p95: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """The summary of at least one value."""
        return cls(len(values), min(values), percentile(values, 50), percentile(values, 95), max(values))

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON, rounded."""
        return {"n": self.n, **{name: round(getattr(self, name), _DIGITS) for name in ("min", "p50", "p95", "max")}}


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` per cent of the values lie, interpolated between its two neighbours.

    Args:
        values: At least one, in any order.
        share: 0..100.
    """
    if not values:
        raise ValueError("a percentile needs at least one value")
    ranked = sorted(values)
    place = (len(ranked) - 1) * share / 100
    low = int(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (place - low)


def ratio(value: float, base: float) -> float:
    """`value` in multiples of `base`, rounded; 0 where the base is 0."""
    return round(value / base, _DIGITS) if base else 0.0


def timed_ms(step: Callable[[], object]) -> float:
    """Milliseconds that a step takes."""
    started = time.perf_counter()
    step()
    return (time.perf_counter() - started) * 1000


def repeated(step: Callable[[], object], *, times: int, warm_up: int = 1) -> Summary:
    """The milliseconds of a step that is run `times` times, after some runs that do not count."""
    for _ in range(warm_up):
        step()
    return Summary.of([timed_ms(step) for _ in range(times)])
