"""The file under the embedded store: what is opened and what refused, migrations, transactions, errors."""

from __future__ import annotations

import gc
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.sqlite import StoreMissing, StoreRefused, graph, open_store, rows
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.schema import APPLICATION_ID, MIGRATIONS
from pulse_kg.domain.model import Edge, Node
from pulse_kg.errors import StoreUnavailable
from tests.support.plans import NOW, add, edge, node, session

FIRST = ("CREATE TABLE things (name TEXT PRIMARY KEY)",)
SECOND = ("ALTER TABLE things ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'", "CREATE TABLE more (n INTEGER)")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store ü #1?.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    made = open_database(path, create=True)
    yield made
    made.close()


def open_database(path: Path | str, *, create: bool = False, migrations: tuple[tuple[str, ...], ...] = (FIRST,)) -> Database:
    return Database(path, create=create, randomness=lambda: 0.0, migrations=migrations)


def refusal(path: Path, *, create: bool = True) -> StoreRefused:
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreRefused) as refused:
        open_store(path, create=create)
    assert not refused.value.retryable
    assert str(path) not in refused.value.message
    assert path.name not in refused.value.message
    if before is not None:
        assert path.read_bytes() == before
    return refused.value


# Opening.


def test_a_missing_store_is_not_made_unless_asked_and_the_refusal_says_how(path: Path) -> None:
    error = refusal(path, create=False)
    assert isinstance(error, StoreMissing)
    assert "pulse-kg boards create BOARD" in error.message
    assert not path.exists()


def test_an_empty_file_is_no_store_yet(path: Path) -> None:
    path.touch()
    assert isinstance(refusal(path, create=False), StoreMissing)
    open_store(path, create=True).close()
    open_store(path, create=False).close()


def test_a_store_is_marked_versioned_private_and_in_wal_mode(path: Path) -> None:
    store = open_store(path, create=True)
    connection = sqlite3.connect(path)
    facts = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version", "journal_mode")]
    connection.close()
    store.close()
    assert facts == [APPLICATION_ID, len(MIGRATIONS), "wal"]
    assert path.stat().st_mode & 0o077 == 0
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]


def test_every_connection_waits_for_the_disk_and_checks_references(database: Database) -> None:
    with database.reading() as connection:
        names = ("synchronous", "foreign_keys", "secure_delete")
        assert [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == [2, 1, 1]


def test_a_text_file_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("This is no database, it is a letter. " * 50)
    assert "no Pulse KG store" in refusal(path).message


@pytest.mark.parametrize("statement", ["CREATE TABLE theirs (n)", "PRAGMA user_version = 7", "PRAGMA application_id = 7"])
def test_another_programs_database_is_refused_and_left_as_it_is(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert "no Pulse KG store" in refusal(path).message


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(path: Path) -> None:
    open_store(path, create=True).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    assert "newer version of pulse-kg" in refusal(path).message


def test_a_folder_or_a_place_without_one_is_refused(tmp_path: Path) -> None:
    assert "can't be opened" in refusal(tmp_path).message
    assert "can't be opened" in refusal(tmp_path / "none" / "store.db").message


def test_a_damaged_store_is_refused(path: Path) -> None:
    store = open_store(path, create=True)
    store.boards.create("alpha", "Alpha", now=NOW)
    add(store, 1, *(node(f"n{n}") for n in range(100)))
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.raises(StoreRefused, match="damaged"):
        read_all(path)


def read_all(path: Path) -> None:
    store = open_store(path, create=False)
    try:
        list(store.graph.all_nodes("alpha"))
    finally:
        store.close()


# Migrations.


def test_an_older_store_is_migrated_and_keeps_its_rows(path: Path) -> None:
    old = open_database(path, create=True)
    with old.writing() as connection:
        connection.execute("INSERT INTO things (name) VALUES ('kept')")
    old.close()
    for _ in range(2):
        new = open_database(path, migrations=(FIRST, SECOND))
        with new.reading() as connection:
            assert connection.execute("SELECT * FROM things").fetchall() == [("kept", "grey")]
            assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        new.close()
    with pytest.raises(StoreRefused, match="newer version"):
        open_database(path)


def test_a_migration_that_fails_leaves_the_store_as_it_was(path: Path) -> None:
    open_database(path, create=True).close()
    with pytest.raises(sqlite3.OperationalError):
        open_database(path, migrations=(FIRST, (*SECOND, "NOT SQL")))
    again = open_database(path)
    with again.reading() as connection:
        assert [row[1] for row in connection.execute("PRAGMA table_info(things)")] == ["name"]
    again.close()


def test_threads_that_open_one_new_file_at_once_make_one_store(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: open_store(path, create=True), range(8)))
    assert sum(s.boards.create("alpha", "Alpha", now=NOW) for s in stores) == 1
    for each in stores:
        each.close()


class Interrupted:
    """A connection between whose looks another thread makes the store, or waits to."""

    def __init__(self, inner: sqlite3.Connection, path: Path) -> None:
        self.inner = inner
        self.other = threading.Thread(target=lambda: open_store(path, create=True).close())

    @property
    def in_transaction(self) -> bool:
        return self.inner.in_transaction

    def execute(self, statement: str) -> sqlite3.Cursor:
        if "user_version" in statement:
            self.other.start()
            self.other.join(0.5)
        return self.inner.execute(statement)


def test_a_file_that_becomes_a_store_while_it_is_looked_at_is_not_taken_for_something_else(path: Path) -> None:
    path.touch()
    connection = sqlite3.connect(path, isolation_level=None)
    looked: Any = Interrupted(connection, path)
    Database._check(looked, len(MIGRATIONS), create=True)
    looked.other.join()
    Database._check(connection, len(MIGRATIONS), create=False)
    connection.close()


def test_the_tables_hold_every_field_of_the_domain() -> None:
    database = Database(":memory:", create=True, randomness=lambda: 0.0)
    with database.reading() as connection:
        for table, kind in (("nodes", Node), ("edges", Edge)):
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            assert {f.name for f in fields(kind)} <= columns
    database.close()


# Transactions.


def names(database: Database) -> list[str]:
    with database.reading() as connection:
        return [name for (name,) in connection.execute("SELECT name FROM things ORDER BY name")]


def put(database: Database, name: str) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO things (name) VALUES (?)", (name,))


def put_and_fail(database: Database, name: str) -> None:
    with database.writing():
        put(database, name)
        raise KeyError(name)


def put_after_rollback(database: Database, *more: str) -> None:
    """Writes, loses the transaction as after a full disk, and goes on."""
    with database.writing() as connection:
        connection.execute("INSERT INTO things (name) VALUES ('gone')")
        connection.execute("ROLLBACK")
        for name in more:
            put(database, name)


def put_many(database: Database, count: int) -> None:
    with database.writing() as connection:
        connection.executemany("INSERT INTO things (name) VALUES (?)", [(f"{number:0500d}",) for number in range(count)])


@pytest.fixture(params=["file", "memory"])
def either(request: pytest.FixtureRequest, path: Path) -> Iterator[Database]:
    made = open_database(path if request.param == "file" else ":memory:", create=True)
    yield made
    made.close()


def test_a_write_that_raises_is_undone(either: Database) -> None:
    with pytest.raises(KeyError):
        put_and_fail(either, "gone")
    assert names(either) == []


def test_a_write_inside_a_write_is_undone_alone(either: Database) -> None:
    with either.writing():
        put(either, "outer")
        with pytest.raises(KeyError):
            put_and_fail(either, "inner")
        put(either, "later")
        assert names(either) == ["later", "outer"]
    assert names(either) == ["later", "outer"]


def test_a_held_write_is_kept_by_commit_only(either: Database) -> None:
    with either.holding(wait_seconds=1):
        put(either, "gone")
        assert either.changed()
    assert names(either) == []
    with either.holding(wait_seconds=1) as held:
        assert not either.changed()
        put(either, "kept")
        held.commit()
        put(either, "after")
    assert names(either) == ["after", "kept"]


def test_a_snapshot_takes_no_write_and_no_turn(either: Database) -> None:
    with either.reading():
        with pytest.raises(RuntimeError, match="snapshot"):
            put(either, "x")
        with pytest.raises(RuntimeError, match="turn"), either.holding(wait_seconds=1):
            raise AssertionError
    with either.writing(), pytest.raises(RuntimeError, match="turn"), either.holding(wait_seconds=1):
        raise AssertionError
    put(either, "x")


def test_a_snapshot_sees_one_state(database: Database) -> None:
    put(database, "a")
    with ThreadPoolExecutor(1) as pool, database.reading():
        pool.submit(put, database, "b").result(10)
        assert names(database) == ["a"]
    assert names(database) == ["a", "b"]


def test_who_waits_sleeps_from_1_to_20_ms_and_gives_up_in_time(path: Path) -> None:
    slept: list[float] = []
    numbers = iter([0.0, 0.5, 1.0, *[0.25] * 100_000])
    database = Database(path, create=True, randomness=lambda: next(numbers), migrations=(FIRST,), sleep=slept.append)
    other = open_database(path)
    with other.holding(wait_seconds=1), pytest.raises(StoreUnavailable) as refused, database.writing(wait_seconds=0.05):
        raise AssertionError
    assert refused.value.retryable
    assert slept[:3] == [0.001, pytest.approx(0.0105), pytest.approx(0.02)]
    assert max(slept) <= 0.02 + 1e-9
    put(database, "free again")
    database.close()
    other.close()


def test_a_transaction_that_sqlite_rolled_back_by_itself_takes_nothing_more(database: Database) -> None:
    with pytest.raises(StoreUnavailable, match="rolled back"):
        put_after_rollback(database, "bit by bit")
    with pytest.raises(StoreUnavailable, match="rolled back"):
        put_after_rollback(database)
    assert names(database) == []


def test_a_full_disk_is_told_and_nothing_of_the_change_stays(database: Database) -> None:
    with database.reading() as connection:
        connection.execute("PRAGMA max_page_count = 1")  # takes effect as the present size
    with pytest.raises(StoreUnavailable, match="full") as refused:
        put_many(database, 10_000)
    assert refused.value.retryable
    assert names(database) == []


def test_a_fault_of_the_program_is_not_told_as_the_stores(database: Database) -> None:
    put(database, "a")
    with pytest.raises(sqlite3.IntegrityError):
        put(database, "a")


def test_a_stream_is_of_one_moment_and_lets_its_thread_write(either: Database) -> None:
    for name in "abc":
        put(either, name)
    stream = either.stream("SELECT name FROM things ORDER BY name", ())
    seen = [next(stream)]
    put(either, "d")
    assert [*seen, *stream] == [("a",), ("b",), ("c",)]
    abandoned = either.stream("SELECT name FROM things", ())
    next(abandoned)
    del abandoned
    with either.writing():
        put(either, "e")
        assert ("e",) in list(either.stream("SELECT name FROM things", ()))


def test_a_closed_store_says_so(either: Database) -> None:
    names(either)
    either.close()
    either.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        names(either)
    with pytest.raises(StoreUnavailable, match="closed"):
        list(either.stream("SELECT 1", ()))


def test_closing_closes_the_connections_of_all_threads_and_leaves_one_file(path: Path) -> None:
    database = open_database(path, create=True)
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait(10)
        put(database, f"t{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
        database.close()
        assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_thread_that_ended_leaves_no_connection_open(database: Database) -> None:
    for _ in range(5):
        thread = threading.Thread(target=names, args=(database,))
        thread.start()
        thread.join()
    gc.collect()
    assert len(database._all) == 1


def test_a_store_answers_a_ping_until_its_file_is_gone(path: Path) -> None:
    store = open_store(path, create=True)
    store.ping()
    path.unlink()
    with pytest.raises(StoreMissing):
        store.ping()
    store.close()


def test_a_snapshot_of_the_store_holds_for_all_ports(path: Path) -> None:
    store = open_store(path, create=True)
    store.boards.create("alpha", "Alpha", now=NOW)
    with ThreadPoolExecutor(1) as pool, store.snapshot():
        board = store.boards.board("alpha")
        pool.submit(add, store, 1, node("late")).result(10)
        assert store.boards.board("alpha") == board
        assert list(store.graph.all_nodes("alpha")) == []
        with pytest.raises(RuntimeError):
            store.sessions.create(session(2))
    assert store.graph.counts("alpha")["nodes"] == 1
    store.close()


def test_an_element_of_another_board_is_never_handed_out() -> None:
    store = open_store(":memory:", create=True)
    store.boards.create("alpha", "Alpha", now=NOW)
    add(store, 1, node("A"), node("B"), edges=[edge("cand_001", "relates_to", "cand_002")])
    with store._database.reading() as connection:
        (row,) = connection.execute(graph._EDGES, ("alpha",))
        nodes = connection.execute(graph._NODES, ("alpha",)).fetchall()
    assert rows.edge_of(row, "alpha").board_id == rows.node_of(nodes[0], "alpha").board_id == "alpha"
    with pytest.raises(StoreRefused, match="another board"):
        rows.edge_of(row, "beta")
    with pytest.raises(StoreRefused, match="another board"):
        rows.node_of(nodes[0], "beta")
    store.close()
