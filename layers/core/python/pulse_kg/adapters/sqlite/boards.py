"""Boards, and how one is erased."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.gate import check_board
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Board
from pulse_kg.errors import PermissionDenied

_SELECT: Final = "SELECT board_id, name, created_at, commit_seq, settings, added_attributes, erasing, last_commit_at, ticked_at FROM boards"

# What a board leaves in which table, children before what they refer to. `boards` is last: its row is what keeps new traces out.
TRACES: Final[Mapping[str, tuple[str, str]]] = {
    "outbox_records": ("outbox", "board_id = ?"),
    "audit_rows": ("audit", "board_id = ?"),
    "vectors": ("vectors", "board_id = ?"),
    "hits": ("hits", "board_id = ?"),
    "edges": ("edges", "board_id = ?"),
    "nodes": ("nodes", "board_id = ?"),
    "candidates": ("candidates", "session_id IN (SELECT session_id FROM sessions WHERE board_id = ?)"),
    "sessions": ("sessions", "board_id = ?"),
    "artifacts": ("artifacts", "board_id = ?"),
    "ingested_versions": ("ingested", "board_id = ?"),
    "grants_and_denials": ("agent_boards", "board_id = ?"),
    "boards": ("boards", "board_id = ?"),
}
"""Kind of trace → table and condition."""

UNFINISHED: Final = "log_of_changes"
"""1 while a reader keeps SQLite from emptying its write-ahead log, which holds what was deleted."""


def board_of(connection: sqlite3.Connection, board_id: str) -> Board | None:
    """The board as a transaction sees it."""
    row = connection.execute(_SELECT + " WHERE board_id = ?", (board_id,)).fetchone()
    return None if row is None else _board_of(row)


class SqliteBoardStore:
    """The boards.

    Args:
        database: Where they are.
        on_erased: Told the id of an erased board, to forget what is kept in memory.
    """

    def __init__(self, database: Database, *, on_erased: Callable[[str], None]) -> None:
        self._database, self._on_erased = database, on_erased

    def create(self, board_id: str, name: str, *, now: Instant) -> bool:
        """See `BoardStore.create`."""
        with self._database.writing() as connection:
            if _is_erased(connection, board_id):
                return False
            made = connection.execute(
                "INSERT INTO boards (board_id, name, created_at) VALUES (?, ?, ?) ON CONFLICT (board_id) DO NOTHING", (board_id, name, now)
            )
            return made.rowcount == 1

    def board(self, board_id: str) -> Board | None:
        """See `BoardStore.board`."""
        with self._database.reading() as connection:
            return board_of(connection, board_id)

    def boards(self) -> tuple[Board, ...]:
        """See `BoardStore.boards`."""
        with self._database.reading() as connection:
            return tuple(_board_of(row) for row in connection.execute(_SELECT + " ORDER BY board_id"))

    def set_setting(self, board_id: str, key: str, value: Any) -> None:
        """See `BoardStore.set_setting`.

        Raises:
            PermissionDenied: There is no such board.
        """
        with self._database.writing() as connection:
            board = _writable(connection, board_id)
            settings = {**board.settings, key: value}
            connection.execute("UPDATE boards SET settings = ? WHERE board_id = ?", (to_json(settings), board_id))

    def add_attribute(self, board_id: str, node_type: str, key: str, kind: str) -> None:
        """See `BoardStore.add_attribute`.

        Raises:
            PermissionDenied: There is no such board.
        """
        with self._database.writing() as connection:
            board = _writable(connection, board_id)
            added = {**board.added_attributes, node_type: {**board.added_attributes.get(node_type, {}), key: kind}}
            connection.execute("UPDATE boards SET added_attributes = ? WHERE board_id = ?", (to_json(added), board_id))

    def note_tick(self, board_id: str, at: Instant) -> None:
        """See `BoardStore.note_tick`."""
        with self._database.writing() as connection:
            connection.execute("UPDATE boards SET ticked_at = max(coalesce(ticked_at, ?1), ?1) WHERE board_id = ?2", (at, board_id))

    def erase(self, board_id: str, *, now: Instant) -> Mapping[str, int]:
        """See `BoardStore.erase`. The file is rewritten, and writers of all boards wait for that long.

        Raises:
            PermissionDenied: There is no such board, and never was.
        """
        with self._database.writing() as connection:
            marked = connection.execute("UPDATE boards SET erasing = 1 WHERE board_id = ?", (board_id,)).rowcount
            if not marked and not _is_erased(connection, board_id):
                raise PermissionDenied.for_board(board_id)
        with self._database.writing() as connection:
            for table, condition in TRACES.values():
                connection.execute(f"DELETE FROM {table} WHERE {condition}", (board_id,))  # noqa: S608 - from a constant
            connection.execute(
                "INSERT INTO erased_boards (erased_id, erased_at) VALUES (?, ?) ON CONFLICT (erased_id) DO NOTHING", (board_id, now)
            )
        self._on_erased(board_id)
        emptied = self._database.compact()
        with self._database.reading() as connection:
            left = {
                kind: connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}", (board_id,)).fetchone()[0]  # noqa: S608
                for kind, (table, condition) in TRACES.items()
            }
        return {**left, UNFINISHED: int(not emptied)}


def _is_erased(connection: sqlite3.Connection, board_id: str) -> bool:
    return connection.execute("SELECT 1 FROM erased_boards WHERE erased_id = ?", (board_id,)).fetchone() is not None


def _writable(connection: sqlite3.Connection, board_id: str) -> Board:
    check_board(connection, board_id)
    board = board_of(connection, board_id)
    if board is None:
        raise PermissionDenied.for_board(board_id)
    return board


def _board_of(row: Sequence[Any]) -> Board:
    board_id, name, created_at, commit_seq, settings, added, erasing, *times = row
    return Board(board_id, name, created_at, commit_seq, from_json(settings), from_json(added), bool(erasing), *times)
