"""The source of a query's graph in a SQLite file: snapshots, pages, indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.sqlite import SqliteStore, StoreRefused, open_store
from pulse_kg.adapters.sqlite import source as sqlite_source
from pulse_kg.ports.graph_source import GraphSource
from tests.support.plans import NOW, Content, add, commit, edge, node, session

TITLE, NOTHING = frozenset({"title"}), frozenset[str]()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = open_store(tmp_path / "store.db", create=True)
    for board_id in ("alpha", "beta"):
        made.boards.create(board_id, board_id, now=NOW)
    yield made
    made.close()


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_source, "FIRST_PAGE", 2)
    monkeypatch.setattr(sqlite_source, "LATER_PAGES", 3)


@pytest.mark.usefixtures("small_pages")
def test_what_is_committed_while_a_snapshot_lasts_is_not_seen_by_the_rest_of_a_read(store: SqliteStore, tmp_path: Path) -> None:
    ids = add(store, 1, *(node(f"n{n}") for n in range(12)))
    commit(store, session(2), Content(edges=[edge(ids[0], "relates_to", other) for other in ids[1:]]))
    other = open_store(tmp_path / "store.db", create=False)
    try:
        source = store.sources.of("alpha")
        with store.snapshot():
            nodes, labelled, edges = source.scan(None, {}, TITLE), source.scan("Decision", {}, TITLE), source.edges(None, NOTHING, NOTHING)
            begun = [next(nodes), next(labelled), next(edges)]
            late = add(other, 3, *(node(f"late {n}") for n in range(12)))
            commit(other, session(4), Content(edges=[edge(one, "relates_to", ids[0]) for one in late]))
            assert len(begun) + len(list(nodes)) + len(list(labelled)) + len(list(edges)) == 12 + 12 + 11
            assert source.counts().nodes == {"Decision": 12}
            assert source.get(late, NOTHING) == {}
        assert source.counts().nodes == {"Decision": 24}
    finally:
        other.close()


def statements(store: SqliteStore, read: Callable[[GraphSource], object]) -> list[str]:
    """What a read asks SQLite, with the values in it."""
    said: list[str] = []
    with store._database.reading() as connection:
        connection.set_trace_callback(said.append)
        try:
            read(store.sources.of("alpha"))
        finally:
            connection.set_trace_callback(None)
    return [text for text in said if text.startswith("SELECT")]


@pytest.mark.usefixtures("small_pages")
def test_a_reader_who_stops_soon_has_few_rows_read(store: SqliteStore) -> None:
    ids = add(store, 1, *(node(f"n{n}") for n in range(12)))
    commit(store, session(2), Content(edges=[edge(ids[0], "relates_to", other) for other in ids[1:]]))
    assert len(statements(store, lambda source: next(iter(source.scan(None, {}, TITLE))))) == 1
    assert len(statements(store, lambda source: list(source.scan(None, {}, TITLE)))) == 6
    assert len(statements(store, lambda source: next(iter(source.scan("Decision", {}, TITLE))))) == 2
    assert len(statements(store, lambda source: list(source.scan("Decision", {}, TITLE)))) == 6


@pytest.mark.parametrize(
    ("read", "index"),
    [
        (lambda s: list(s.scan(None, {}, NOTHING)), "COVERING INDEX"),
        (lambda s: list(s.scan("Bug", {}, NOTHING)), "COVERING INDEX nodes_by_title (board_id=? AND node_type=?)"),
        (lambda s: list(s.scan("Bug", {}, TITLE)), "COVERING INDEX nodes_by_title (board_id=? AND node_type=?)"),
        (lambda s: list(s.scan(None, {"source_ref": "spec:spec_007"}, TITLE)), "nodes_by_ref"),
        (lambda s: list(s.scan("Bug", {"id": "bug_1"}, TITLE)), "(board_id=? AND node_id=?)"),
        (lambda s: s.get(["bug_1"], None), "(board_id=? AND node_id=?)"),
        (lambda s: s.expand(["bug_1"], "out", ["tests"], None, None), "edges_by_src (board_id=? AND src=?"),
        (lambda s: s.expand(["bug_1"], "in", None, None, None), "edges_by_dst (board_id=? AND dst=?"),
        (lambda s: list(s.edges(None, None, None)), "edges_by_src (board_id=?"),
        (lambda s: s.counts(), "COVERING INDEX nodes_by_title (board_id=?)"),
    ],
)
def test_every_read_goes_by_an_index(store: SqliteStore, read: Callable[[GraphSource], Any], index: str) -> None:
    bug, other = add(store, 1, node("A", "Bug"), node("B", "Bug"))
    commit(store, session(2), Content(edges=[edge(bug, "relates_to", other)]))
    plans = []
    for statement in statements(store, read):
        with store._database.reading() as connection:
            plans += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert any(index in plan for plan in plans), plans
    assert not [plan for plan in plans if plan.startswith("SCAN") and "VIRTUAL TABLE" not in plan], plans


@pytest.mark.parametrize("statement", ["_NODES", "_NODES_AFTER", "_EDGES_AT", "_EDGES_OF_PAGE"])
def test_an_element_of_another_board_is_thrown_away(store: SqliteStore, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    a, b = add(store, 1, node("A"), node("B"))
    commit(store, session(2), Content(edges=[edge(a, "relates_to", b)]))
    text: str = getattr(sqlite_source, statement)
    element = text.split(".", 1)[0].removeprefix("SELECT ")
    monkeypatch.setattr(sqlite_source, statement, text.replace(f"{element}.board_id,", "'beta',", 1))
    source = store.sources.of("alpha")
    with pytest.raises(StoreRefused, match="another board"):
        (
            list(source.scan(None, {}, TITLE)),
            source.get([a], TITLE),
            source.expand([a], "out", None, None, None),
            list(source.edges(None, None, None)),
        )
