"""What `RateLimiter` promises, of every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.plans import NOW
from tests.support.stores import Stores


def test_a_window_gives_its_limit_and_then_says_how_long_it_lasts(store: Stores) -> None:
    def take(now: int) -> int | None:
        return store.rates.take("ada", limit=3, window_seconds=60, now=now)

    assert [take(NOW), take(NOW + 20_000), take(NOW + 40_000)] == [None, None, None]
    assert take(NOW + 40_000) == 20
    assert take(NOW + 40_001) == 20
    assert take(NOW + 59_001) == 1
    assert take(NOW + 59_999) == 1
    assert take(NOW + 60_000) is None


def test_windows_begin_at_multiples_of_their_length(store: Stores) -> None:
    assert store.rates.take("ada", limit=1, window_seconds=60, now=NOW + 59_999) is None
    assert store.rates.take("ada", limit=1, window_seconds=60, now=NOW + 60_000) is None
    assert store.rates.take("ada", limit=1, window_seconds=60, now=NOW + 60_001) == 60


def test_refused_calls_are_not_counted(store: Stores) -> None:
    for _ in range(5):
        store.rates.take("ada", limit=2, window_seconds=60, now=NOW)
    assert store.rates.take("ada", limit=3, window_seconds=60, now=NOW) is None


def test_keys_and_window_lengths_are_counted_apart(store: Stores) -> None:
    assert store.rates.take("ada", limit=1, window_seconds=60, now=NOW) is None
    assert store.rates.take("bob", limit=1, window_seconds=60, now=NOW) is None
    assert store.rates.take("ada", limit=1, window_seconds=30, now=NOW) is None
    assert store.rates.take("ada", limit=1, window_seconds=60, now=NOW) == 60


@pytest.mark.parametrize("late", [1, 61_000, 3_600_000])
def test_a_clock_that_runs_behind_opens_no_window_again(store: Stores, late: int) -> None:
    assert store.rates.take("ada", limit=1, window_seconds=60, now=NOW) is None
    assert store.rates.take("ada", limit=1, window_seconds=60, now=NOW - late) is not None


def test_a_limit_of_nothing_gives_nothing(store: Stores) -> None:
    assert store.rates.take("ada", limit=0, window_seconds=60, now=NOW) == 60


def test_threads_share_one_counter(store: Stores) -> None:
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda _: store.rates.take("ada", limit=10, window_seconds=60, now=NOW), range(30)))
    assert given.count(None) == 10


def test_a_patient_call_is_counted_as_any_other(store: Stores) -> None:
    taken = [store.rates.take("ada", limit=2, window_seconds=60, now=NOW, patience=0.05) for _ in range(3)]
    assert taken == [None, None, 60]
