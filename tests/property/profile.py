"""Settings of the property tests: the same examples in every run, and as many as a slow core can take."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def fixed(examples: int) -> settings:
    """That many examples, derived from the test itself and not from chance, however long one takes."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
