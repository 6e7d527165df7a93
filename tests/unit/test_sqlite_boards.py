"""Erasing a board from the embedded store: no byte of it stays in the files."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path

import pytest

from pulse_kg.adapters.sqlite import open_store
from pulse_kg.adapters.sqlite.boards import TRACES, UNFINISHED
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.store import SqliteStore
from pulse_kg.domain.refs import Artifact
from pulse_kg.errors import PermissionDenied, StoreUnavailable
from pulse_kg.ports.identity import Agent, KeyRecord
from tests.support.plans import NOW, Content, commit, edge, node, session, unit

MARKER = "zebrafish"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def fill(store: SqliteStore, board_id: str, number: int, word: str) -> None:
    store.boards.create(board_id, f"{word} board", now=NOW)
    nodes = [node(f"{word} {n}", body=f"{word} " * 300, attributes={"rationale": word}, source_ref=f"spec:s#{word}{n}") for n in range(60)]
    edges = [edge("cand_001", "relates_to", "cand_002", reason=f"{word} reason")]
    commit(store, session(number, board_id), Content(nodes, edges, vectors={d.title: unit(1, 2, n) for n, d in enumerate(nodes)}))
    for more in (1, 2):
        of = session(number + more, board_id)
        store.sessions.create(of)
        for n in range(30):
            store.sessions.append_node(
                of.session_id, node(word, body=f"{word} " * 200), unknown_keys=(), idempotency_key=f"{word}{n}", limit=99, now=NOW
            )
    store.sessions.abort(session(number + 2).session_id, now=NOW)
    store.commits.record_ingested(board_id, Artifact("spec", word), 1, f"sha256:{word}", now=NOW)
    agent = Agent(f"agt_{board_id}", board_id, "QA", (), (), ("alpha", "beta"), ("alpha",), NOW)
    store.identity.create_agent(agent, KeyRecord(f"key{number:05d}", agent.agent_id, "f" * 64, NOW))


def bytes_of(path: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(path.parent.iterdir()))


def test_no_byte_of_an_erased_board_stays_in_the_files(path: Path) -> None:
    store = open_store(path, create=True)
    fill(store, "alpha", 1, MARKER)
    fill(store, "beta", 5, "anchovy")
    before = bytes_of(path)
    kept = [v.vector for _, v, _ in store.vectors.all_vectors("alpha")][-1]
    assert MARKER.encode() in before
    assert kept in before
    left = store.boards.erase("alpha", now=NOW)
    assert left == {**dict.fromkeys(TRACES, 0), UNFINISHED: 0}
    for moment in ("open", "closed"):
        after = bytes_of(path)
        assert MARKER.encode() not in after, moment
        assert session(1).session_id.encode() not in after, moment
        assert b"anchovy" in after
        assert len(after) < len(before)
        store.close()


def test_every_table_with_a_board_in_it_is_emptied() -> None:
    database = Database(":memory:", create=True, randomness=lambda: 0.0)
    with database.reading() as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        with_board = {
            t for t in tables if any(row[1] in {"board_id", "session_id"} for row in connection.execute(f"PRAGMA table_info({t})"))
        }
    database.close()
    assert {table for table, _ in TRACES.values()} == with_board


def test_a_reader_may_delay_the_end_of_an_erasure_and_it_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(path, create=True)
    fill(store, "alpha", 1, MARKER)
    store.boards.create("beta", "Beta", now=NOW)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM nodes").fetchone()
    monkeypatch.setattr(store._database, "compact", partial(store._database.compact, wait_seconds=0.05))
    left = store.boards.erase("alpha", now=NOW)
    assert left == {**dict.fromkeys(TRACES, 0), UNFINISHED: 1}
    assert store.boards.board("alpha") is None
    reader.close()
    assert set(store.boards.erase("alpha", now=NOW).values()) == {0}
    assert MARKER.encode() not in bytes_of(path)
    store.close()


def test_an_erasure_that_was_interrupted_keeps_everybody_out_and_goes_on(path: Path) -> None:
    store = open_store(path, create=True)
    fill(store, "alpha", 1, MARKER)
    of = session(9)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE boards SET erasing = 1 WHERE board_id = 'alpha'")
    connection.commit()
    connection.close()
    board = store.boards.board("alpha")
    assert board is not None
    assert board.erasing
    refusals = []
    with pytest.raises(StoreUnavailable) as refused, store.commits.turn("alpha", wait_seconds=1):
        raise AssertionError
    refusals.append(refused.value)
    with pytest.raises(StoreUnavailable) as refused:
        store.sessions.create(of)
    refusals.append(refused.value)
    with pytest.raises(StoreUnavailable) as refused:
        store.commits.record_ingested("alpha", Artifact("spec", "x"), 1, "sha256:0", now=NOW)
    refusals.append(refused.value)
    with pytest.raises(StoreUnavailable) as refused:
        store.boards.set_setting("alpha", "k", 1)
    refusals.append(refused.value)
    assert all(r.details["erasing"] is True for r in refusals)
    assert set(store.boards.erase("alpha", now=NOW).values()) == {0}
    with pytest.raises(PermissionDenied):
        store.sessions.create(of)
    store.close()


def test_a_session_of_an_unknown_board_is_refused(path: Path) -> None:
    store = open_store(path, create=True)
    with pytest.raises(PermissionDenied):
        store.sessions.create(session(1, "nowhere"))
    with pytest.raises(PermissionDenied):
        store.commits.record_ingested("nowhere", Artifact("spec", "x"), 1, "sha256:0", now=NOW)
    store.close()
