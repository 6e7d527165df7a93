"""The counters of hits: what they do when the store is slow, locked, full or gone. A read must not notice."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.boards import DynamoBoardStore
from pulse_kg.adapters.dynamodb.client import Dynamo
from pulse_kg.adapters.dynamodb.hits import KEPT_MS, DynamoHitCounter
from pulse_kg.adapters.served.marks import Marks
from pulse_kg.adapters.sqlite import hits, open_store
from pulse_kg.adapters.sqlite.store import SqliteStore
from tests.support.dynamo_faults import PREFIX, Faulty, dynamo_on, faulty, items, refused_by_driver
from tests.support.old_stores import make_old
from tests.support.plans import NOW, add, node

# One file.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = open_store(path, create=True)
    made.boards.create("alpha", "Alpha", now=NOW)
    yield made
    made.close()


def written(path: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT * FROM hits ORDER BY node_id").fetchall()
    finally:
        connection.close()


def test_a_hit_is_in_the_file_at_once_where_nobody_writes(store: SqliteStore, path: Path) -> None:
    store.hits.count("alpha", ["dec_1"], now=NOW)
    assert written(path) == [("alpha", "dec_1", 1, NOW)]


def test_while_another_writes_hits_are_gathered_and_nothing_waits(store: SqliteStore, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for _ in range(3):
        store.hits.count("alpha", ["dec_1", "dec_2"], now=NOW)
    assert written(path) == []
    other.execute("ROLLBACK")
    other.close()
    store.hits.count("alpha", ["dec_2"], now=NOW + 1)
    assert written(path) == [("alpha", "dec_1", 3, NOW), ("alpha", "dec_2", 4, NOW + 1)]


def test_hits_are_counted_inside_a_snapshot_which_does_not_see_them(store: SqliteStore, path: Path) -> None:
    with store.snapshot():
        before = store.graph.counts("alpha")
        store.hits.count("alpha", ["dec_1"], now=NOW)
        assert store.graph.counts("alpha") == before
    assert written(path) == [("alpha", "dec_1", 1, NOW)]


def test_in_memory_hits_that_are_counted_inside_a_snapshot_come_later() -> None:
    store = open_store(":memory:", create=True)
    store.boards.create("alpha", "Alpha", now=NOW)
    with store.snapshot():
        store.hits.count("alpha", ["dec_1"], now=NOW)
    assert store.hits.counted("alpha") == {"dec_1": (1, NOW)}
    store.close()


def test_a_turn_is_neither_kept_back_nor_given_the_hits(store: SqliteStore, path: Path) -> None:
    with store.commits.turn("alpha", wait_seconds=1):
        store.hits.count("alpha", ["dec_1"], now=NOW)
    assert written(path) == []
    store.close()
    assert written(path) == [("alpha", "dec_1", 1, NOW)]


def test_a_store_that_is_closed_loses_the_hit_and_says_nothing(store: SqliteStore) -> None:
    store.close()
    store.hits.count("alpha", ["dec_1"], now=NOW)
    store.close()


def test_a_table_that_can_not_be_written_does_not_fail_the_read(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.hits.count("alpha", ["dec_1"], now=NOW)
    assert store._database._beside is not None
    store._database._beside.connection.execute("PRAGMA query_only = ON")  # as a file that may not be written
    store.hits.count("alpha", ["dec_1"], now=NOW)
    store._database._beside.connection.execute("PRAGMA query_only = OFF")
    assert store.hits.counted("alpha") == {"dec_1": (2, NOW)}


def test_what_is_gathered_has_a_bound(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hits, "MOST_GATHERED", 2)
    with store.commits.turn("alpha", wait_seconds=1):
        store.hits.count("alpha", ["dec_1", "dec_2", "dec_3", "dec_1"], now=NOW)
    assert store.hits.counted("alpha") == {"dec_1": (2, NOW), "dec_2": (1, NOW)}


def test_a_hit_that_comes_after_an_erasure_leaves_no_trace(store: SqliteStore, path: Path) -> None:
    with store.commits.turn("alpha", wait_seconds=1):
        store.hits.count("alpha", ["dec_1"], now=NOW)  # gathered
    other = open_store(path, create=False)  # another process: it knows nothing of what is gathered here
    other.boards.erase("alpha", now=NOW)
    other.close()
    store.hits.count("alpha", ["dec_1"], now=NOW)
    assert written(path) == []


def test_a_store_of_the_first_version_learns_when_its_last_commits_were(store: SqliteStore, path: Path) -> None:
    add(store, 1, node("A"))
    store.boards.create("beta", "Beta", now=NOW)
    before = store.boards.boards()
    assert [board.last_commit_at for board in before] == [NOW, None]
    store.close()
    make_old(path, 1)
    again = open_store(path, create=False)
    assert again.boards.boards() == before
    again.hits.count("alpha", ["dec_1"], now=NOW)
    assert again.hits.counted("alpha") == {"dec_1": (1, NOW)}
    again.close()


# DynamoDB.


@pytest.fixture
def driver() -> Iterator[Faulty]:
    with faulty() as made:
        DynamoBoardStore(dynamo_on(made)).create("alpha", "Alpha", now=NOW)
        made.sent.clear()
        yield made


def counter_of(driver: Any, seconds: float = 10.0) -> DynamoHitCounter:
    return DynamoHitCounter(Dynamo(lambda: driver, PREFIX, sleep=lambda _: None, randomness=lambda: 0.0), seconds=seconds)


def test_each_node_has_an_item_that_ages_out_when_its_hits_mean_nothing_any_more(driver: Faulty) -> None:
    counter_of(driver).count("alpha", ["dec_1"], now=NOW)
    (item,) = [i for i in items(driver) if i["sk"]["S"].startswith(keys.HIT)]
    assert (item["pk"], item["hits"], item["last_at"]) == ({"S": "board#alpha"}, {"N": "1"}, {"N": str(NOW)})
    assert int(item["ttl"]["N"]) == (NOW + KEPT_MS) // 1000


def test_hits_that_the_store_refuses_are_lost_and_told_to_nobody(driver: Faulty) -> None:
    counter = counter_of(driver)
    driver.fault = lambda operation: refused_by_driver("AccessDeniedException") if operation == "update_item" else None
    counter.count("alpha", ["dec_1", "dec_2"], now=NOW)
    assert counter.lost == 2
    driver.fault = lambda operation: refused_by_driver("AccessDeniedException")
    counter.count("alpha", ["dec_1", "dec_2", "dec_3"], now=NOW)
    assert counter.lost == 5
    driver.fault = lambda operation: None
    assert counter.counted("alpha") == {}


def test_a_store_that_does_not_answer_holds_a_read_up_no_longer_than_it_may() -> None:
    asked, answer = threading.Event(), threading.Event()

    class Silent:
        def __getattr__(self, operation: str) -> Any:
            def call(**parameters: Any) -> Any:
                asked.set()
                answer.wait()
                return {}

            return call

    counter = counter_of(Silent(), seconds=0.05)
    try:
        for _ in range(20):
            counter.count("alpha", ["dec_1", "dec_2"], now=NOW)  # comes back, though no answer does
        assert asked.is_set()
        assert counter.lost == 8  # sixteen are under way, and those after them were not even begun
    finally:
        answer.set()


def test_a_call_that_has_less_time_left_waits_no_longer_than_that(driver: Faulty) -> None:
    counter = counter_of(driver)
    with time_budget(0.0):
        counter.count("alpha", ["dec_1"], now=NOW)
    assert counter.counted("alpha") in ({}, {"dec_1": (1, NOW)})


def test_a_board_that_is_being_erased_takes_no_hit(driver: Faulty) -> None:
    counter = counter_of(driver)
    driver.update_item(
        TableName=f"{PREFIX}boards",
        Key={"pk": {"S": "board#alpha"}, "sk": {"S": "#"}},
        UpdateExpression="SET erasing = :yes",
        ExpressionAttributeValues={":yes": {"BOOL": True}},
    )
    driver.sent.clear()
    counter.count("alpha", ["dec_1"], now=NOW)
    assert [operation for operation, _ in driver.sent] == ["get_item"]
    assert counter.counted("alpha") == {}


# The marks of many boards.


def test_marks_of_many_boards_are_asked_for_once_in_a_call() -> None:
    asked: list[list[str]] = []

    def many(boards: Any) -> dict[str, int]:
        asked.append(list(boards))
        return {board: len(board) for board in boards}

    marks = Marks(lambda board: 1, many)
    with marks.call():
        assert marks.applied("a") == 1
        assert marks.applied_many(["a", "bb"]) == {"a": 1, "bb": 2}
        assert marks.applied_many(["bb", "ccc"]) == {"bb": 2, "ccc": 3}
        assert marks.applied("ccc") == 3
    assert asked == [["bb"], ["ccc"]]
    assert Marks(lambda board: 7).applied_many(["a", "b"]) == {"a": 7, "b": 7}
