"""Settings of the property tests: the same examples in every run, and as many as a slow core can take."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings


def fixed(examples: int) -> settings:
    """That many examples, derived from the tests themselves and not from chance, however long one takes.

    A failure is told as it was found: making it smaller takes minutes, in which the test's own time limit would hide it.
    """
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
