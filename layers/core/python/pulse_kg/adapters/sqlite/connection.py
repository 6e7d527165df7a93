"""One connection: how it is opened, and the transaction on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pulse_kg.adapters.sqlite import errors

_SETTINGS = (
    "synchronous = FULL",  # WAL alone would lose the last commits with the machine's power
    "foreign_keys = ON",
    "secure_delete = ON",  # what is deleted is overwritten: an erased board must not stay in free pages
    "cache_size = -8192",  # KiB a connection
    "journal_size_limit = 67108864",  # bytes of the log that are kept after a large commit
)


class Owned:
    """One thread's connection and the transaction that is open on it.

    A class of its own because a connection can't be referenced weakly: what a thread that ended leaves behind is closed here.

    Attributes:
        connection: In autocommit mode.
        mode: What transaction is open.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.mode: Literal["read", "write"] | None = None
        self._changes = 0

    def prepare(self) -> None:
        """Makes the settings that SQLite keeps for a connection."""
        for setting in _SETTINGS:
            self.connection.execute(f"PRAGMA {setting}")

    def began(self, mode: Literal["read", "write"]) -> None:
        """Notes that a transaction is open."""
        self.mode, self._changes = mode, self.connection.total_changes

    @property
    def changed(self) -> bool:
        """Whether the open transaction wrote anything."""
        return self.mode == "write" and self.connection.total_changes != self._changes

    def commit(self) -> None:
        """Ends the transaction with its changes; durable when it returns."""
        if not self.connection.in_transaction:
            raise errors.lost_transaction()
        self.connection.execute("COMMIT")
        self.mode = None

    def rollback(self) -> None:
        """Ends the transaction without its changes; does nothing where it ended before."""
        if self.mode is not None:
            self.mode = None
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def __del__(self) -> None:
        self.connection.close()


def connect(path: Path | None) -> Owned:
    """Connects to a file that exists, or to a new database in memory."""
    # `rw`, not `rwc`: a store that was moved away must not come back empty. No busy timeout: who waits does so with jitter.
    target = ":memory:" if path is None else path.as_uri() + "?mode=rw"
    return Owned(sqlite3.connect(target, uri=True, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256))


@contextmanager
def savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    """A part of a transaction that is undone alone when the block raises."""
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")
