"""Stores of earlier versions: after their migration they answer as a store of today does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.sqlite import SqliteStore, open_store
from pulse_kg.adapters.sqlite.schema import MIGRATIONS
from pulse_kg.domain.instants import parse_instant
from pulse_kg.domain.schema import NodeType
from tests.support.old_stores import make_old
from tests.support.plans import NOW, add, edge, node, unit

SPRING = parse_instant("2025-05-01")
BOTH: list[NodeType] = ["Bug", "Learning"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = open_store(path, create=True)
    made.boards.create("alpha", "Alpha", now=NOW)
    add(
        made,
        1,
        node("dated", attributes={"decided_at": "2025-06-21T10:00:00+02:00"}),
        node("made"),
        node("Lesson", "Learning", "Die Sperre hält", attributes={"area": "Stórage"}),
        node("Fault", "Bug", "The   LOCK was kept"),
        edges=(edge("cand_001", "contradicts", "cand_002"),),
        vectors={"dated": unit(1), "made": unit(1, 1), "Lesson": unit(1)},
    )
    yield made
    made.close()


def read(store: SqliteStore) -> list[Any]:
    """What the tools read, by way of all that a migration filled."""
    spans: tuple[dict[str, Any], ...] = ({"since": SPRING}, {"until": NOW}, {"since": SPRING, "until": NOW}, {"since": NOW}, {})
    return [
        *(store.search.search(["alpha"], ["Decision", "Learning"], unit(1), limit=9, **span) for span in spans),
        *(
            store.queries.with_words("alpha", BOTH, phrase="", words=[word], at_least=1, bodies=True)
            for word in ("lock", "storage", "halt", "kept")
        ),
        store.queries.contradictions("alpha"),
        store.queries.stated_in("alpha", next(store.graph.all_nodes("alpha")).artifact, ["Decision", "Bug"]),
        list(store.graph.all_nodes("alpha")),
        store.boards.boards(),
    ]


def rows(path: Path) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        nodes = connection.execute("SELECT node_id, folded_body FROM nodes ORDER BY node_id").fetchall()
        vectors = connection.execute("SELECT node_id, happened_at FROM vectors ORDER BY node_id").fetchall()
        tables = connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'index' ORDER BY name").fetchall()
        return [version, nodes, vectors, tables]
    finally:
        connection.close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_store_of_an_earlier_version_answers_as_one_of_today(store: SqliteStore, path: Path, version: int) -> None:
    answers = read(store)
    assert [len(found) for found in answers] == [3, 1, 1, 2, 3, 1, 1, 1, 1, 1, 3, 4, 1]
    store.close()
    filled = rows(path)
    make_old(path, version)
    again = open_store(path, create=False)
    try:
        assert read(again) == answers
    finally:
        again.close()
    assert rows(path) == filled


def test_a_migrated_store_takes_further_commits(store: SqliteStore, path: Path) -> None:
    store.close()
    make_old(path, 2)
    again = open_store(path, create=False)
    try:
        add(again, 2, node("Another", "Bug", "a lock again"), node("later"), vectors={"later": unit(1)})
        found = again.queries.with_words("alpha", ["Bug"], phrase="", words=["lock"], at_least=1, bodies=True)
        assert sorted(n.title for n in found) == ["Another", "Fault"]
        assert len(again.search.search(["alpha"], ["Decision"], unit(1), limit=9, since=NOW)) == 2
    finally:
        again.close()


@pytest.mark.parametrize(
    "damage",
    ["attributes = '{'", "attributes = '[1]'", 'attributes = \'{"decided_at": "soon"}\'', "body = CAST(x'ff' AS TEXT)"],
)
def test_a_damaged_row_keeps_no_old_store_closed(store: SqliteStore, path: Path, damage: str) -> None:
    store.close()
    make_old(path, 2)
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE nodes SET {damage} WHERE title = 'dated'")  # noqa: S608 - of this module
    connection.commit()
    connection.close()
    again = open_store(path, create=False)
    try:
        found = again.queries.with_words("alpha", ["Bug"], phrase="", words=["lock"], at_least=1, bodies=True)
        assert [n.title for n in found] == ["Fault"]
    finally:
        again.close()
