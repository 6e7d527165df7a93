"""The counter of calls beside a writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.identity import SqliteRateLimiter
from tests.support.plans import NOW


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def writer(file: Path) -> Iterator[Database]:
    with closing(Database(file, create=True, randomness=lambda: 0.0)) as database:
        yield database


@pytest.fixture
def rates(file: Path, writer: Database) -> Iterator[SqliteRateLimiter]:
    with closing(Database(file, create=False, randomness=lambda: 0.0)) as database:
        yield SqliteRateLimiter(database)


def take(rates: SqliteRateLimiter) -> int | None:
    return rates.take("ada", limit=2, window_seconds=60, now=NOW, patience=0.01)


def test_a_call_that_only_reads_goes_on_beside_a_writer_and_counts_in_its_process(writer: Database, rates: SqliteRateLimiter) -> None:
    with writer.holding(wait_seconds=1):
        assert [take(rates), take(rates), take(rates)] == [None, None, 60]
    assert take(rates) == 60


def test_calls_beside_a_writer_are_written_with_the_next_one_that_is(writer: Database, rates: SqliteRateLimiter) -> None:
    with writer.holding(wait_seconds=1):
        assert take(rates) is None
    assert SqliteRateLimiter(writer).take("ada", limit=1, window_seconds=60, now=NOW) is None
    assert rates.take("ada", limit=3, window_seconds=60, now=NOW) is None
    assert SqliteRateLimiter(writer).take("ada", limit=3, window_seconds=60, now=NOW) == 60


def test_what_was_not_written_of_one_window_does_not_count_in_the_next(writer: Database, rates: SqliteRateLimiter) -> None:
    with writer.holding(wait_seconds=1):
        assert [take(rates), take(rates), take(rates)] == [None, None, 60]
    assert rates.take("ada", limit=1, window_seconds=60, now=NOW + 60_000) is None


def test_beside_a_writer_the_calls_counted_so_far_decide(writer: Database, rates: SqliteRateLimiter) -> None:
    assert [take(rates), take(rates)] == [None, None]
    with writer.holding(wait_seconds=1):
        assert take(rates) == 60
