"""The file under the store: connections, transactions, the schema's version."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from pulse_kg.adapters.sqlite import errors
from pulse_kg.adapters.sqlite.connection import Owned, connect, savepoint
from pulse_kg.adapters.sqlite.schema import APPLICATION_ID, FUNCTIONS, MIGRATIONS, Migration

WRITE_WAIT_SECONDS = 25.0
"""How long an ordinary write waits for others: about what a gateway leaves of a call."""
READ_WAIT_SECONDS = 5.0
"""Readers wait only while a crashed process's log is recovered, or the last user closes the file."""
MIN_SQLITE = (3, 37, 0)
"""STRICT tables."""

_LEAST_SLEEP, _MORE_SLEEP = 0.001, 0.019  # seconds: 1 to 20 ms between two tries
_FETCHED = 256  # rows of one fetch of a stream
_BESIDE = ("synchronous = NORMAL", "wal_autocheckpoint = 4000")  # pages: 16 MB, and sooner by every other writer

_T = TypeVar("_T")


class _Local(threading.local):
    owned: Owned | None = None


class Database:
    """One SQLite file, or one database in memory.

    A file has a connection per thread, so that a writer never blocks a reader. In memory all threads share one connection
    and take turns. Not to be carried over a fork: open a database after it.

    Args:
        path: The file, or ``:memory:``.
        create: Whether to make the store where there is none.
        randomness: Numbers from 0 to 1 that spread the tries of those who wait.
        migrations: The schema.
        sleep: Waits for some seconds.

    Raises:
        StoreMissing: There is no store, and `create` is false.
        StoreRefused: The file is no store, or one of a newer version, or can't be opened.
        StoreUnavailable: Others held it too long.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        create: bool,
        randomness: Callable[[], float],
        migrations: Sequence[Migration] = MIGRATIONS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if sqlite3.sqlite_version_info < MIN_SQLITE:
            raise errors.StoreRefused(
                f"The SQLite of this Python is {sqlite3.sqlite_version}, and the store needs {'.'.join(map(str, MIN_SQLITE))} or newer. "
                "Use a newer Python."
            )
        self._path = None if str(path) == ":memory:" else Path(path).absolute()
        self._randomness, self._sleep = randomness, sleep
        self._local = _Local()
        self._all: WeakSet[Owned] = WeakSet()
        self._all_lock = threading.Lock()
        self._closed = False
        self._shared: Owned | None = None
        self._shared_lock = threading.RLock()
        self._beside: Owned | None = None
        self._beside_lock = threading.Lock()
        with self._translating():
            if self._path is None:
                self._shared = self._connect()
                self._migrate(self._shared.connection, migrations)
            else:
                self._local.owned = self._open(self._path, migrations, create=create)

    # Opening.

    def _open(self, path: Path, migrations: Sequence[Migration], *, create: bool) -> Owned:
        if not path.exists():
            if not create:
                raise errors.StoreMissing
            self._make_file(path)
        owned = self._connect()
        connection = owned.connection
        deadline = time.monotonic() + WRITE_WAIT_SECONDS
        self._retried(lambda: self._check(connection, len(migrations), create=create), deadline)
        mode = self._retried(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0], deadline)
        if mode != "wal":
            raise errors.StoreRefused("The store's file system can't share a write-ahead log. Put the store on a local disk.")
        self._migrate(connection, migrations)
        return owned

    @staticmethod
    def _make_file(path: Path) -> None:
        try:
            # Others of the machine have no business with it. O_EXCL also because closing a second descriptor of a database that is in use
            # would drop this process's locks on it.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise errors.unopenable() from error

    @staticmethod
    def _check(connection: sqlite3.Connection, newest: int, *, create: bool) -> None:
        """Looks before anything is written: a file that is something else must stay as it is."""
        # At one moment: between two looks another process may have made the store.
        connection.execute("BEGIN")
        try:
            (application,), (version,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
            (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if application == APPLICATION_ID:
            if version > newest:
                raise errors.StoreRefused(
                    f"The store was made by a newer version of pulse-kg (schema {version}; this one knows up to {newest}). Update pulse-kg."
                )
            return
        if objects or application or version:
            raise errors.not_a_store()
        if not create:
            raise errors.StoreMissing

    def _migrate(self, connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
        if connection.execute("PRAGMA user_version").fetchone()[0] == len(migrations):
            return
        for name, function in FUNCTIONS.items():
            connection.create_function(name, 3, function, deterministic=True)
        self._retried(lambda: connection.execute("BEGIN IMMEDIATE"), time.monotonic() + WRITE_WAIT_SECONDS)
        try:
            # Again, inside the lock: another process may have been first.
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for migration in migrations[version:]:
                for statement in migration:
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {max(version, len(migrations))}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if version > len(migrations):
            self._check(connection, len(migrations), create=False)

    def _connect(self) -> Owned:
        owned = connect(self._path)
        self._retried(owned.prepare, time.monotonic() + READ_WAIT_SECONDS)
        with self._all_lock:
            if self._closed:
                raise errors.closed()
            self._all.add(owned)
        return owned

    def close(self) -> None:
        """Closes the connections of all threads; what they are doing fails."""
        with self._all_lock:
            self._closed = True
            owned = list(self._all)
        for each in owned:
            each.connection.close()

    def ping(self) -> None:
        """Reads one row.

        Raises:
            StoreMissing: The file is not there any more.
            StoreUnavailable: It can't be read.
        """
        if self._path is not None and not self._path.exists():
            raise errors.StoreMissing
        with self.reading() as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    # Transactions.

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A snapshot of the store for this thread; inside another transaction of the thread it is that one."""
        with self._translating(), self._exclusive(READ_WAIT_SECONDS):
            owned = self._owned()
            if owned.mode is not None:
                self._check_alive(owned)
                yield owned.connection
                return
            self._begin_read(owned, time.monotonic() + READ_WAIT_SECONDS)
            try:
                yield owned.connection
            finally:
                owned.rollback()

    @contextmanager
    def writing(self, *, wait_seconds: float = WRITE_WAIT_SECONDS) -> Iterator[sqlite3.Connection]:
        """One atomic change: it is durable when the block ends, and undone when the block raises.

        Inside another write of the thread it is a part of that one, which is undone alone when the block raises.

        Raises:
            StoreUnavailable: Others were writing for `wait_seconds`.
            RuntimeError: The thread is inside a snapshot, which can't be written to.
        """
        with self._translating(), self._exclusive(wait_seconds):
            owned = self._owned()
            if owned.mode is None:
                with self._write(owned, wait_seconds):
                    yield owned.connection
                    owned.commit()
            elif owned.mode == "read":
                raise RuntimeError("a write inside a snapshot")
            else:
                self._check_alive(owned)
                with savepoint(owned.connection):
                    yield owned.connection

    @contextmanager
    def holding(self, *, wait_seconds: float) -> Iterator[Owned]:
        """A write that its user commits; leaving without `commit` undoes it.

        Raises:
            StoreUnavailable: Others were writing for `wait_seconds`.
            RuntimeError: The thread is inside a transaction already.
        """
        with self._translating(), self._exclusive(wait_seconds):
            owned = self._owned()
            if owned.mode is not None:
                raise RuntimeError("a turn inside another transaction of its thread")
            with self._write(owned, wait_seconds):
                yield owned

    def write_beside(self, statement: str, rows: Sequence[Sequence[Any]], *, wait_seconds: float) -> bool:
        """Writes rows in a transaction of their own, whatever the thread is doing, which an end of the machine's power may undo.

        It does not wait for the disk but once in some thousand pages. Meant for what may be lost.

        Returns:
            False where others held the store for `wait_seconds`, or, in memory, the thread itself does.
        """
        deadline = time.monotonic() + wait_seconds
        lock = self._shared_lock if self._path is None else self._beside_lock
        if not lock.acquire(timeout=max(wait_seconds, 0)):
            return False
        try:
            with self._translating():
                owned = self._owned() if self._path is None else self._owned_beside()
                if owned.mode is not None or not self._begun(owned.connection, deadline):
                    return False
                try:
                    owned.connection.executemany(statement, rows)
                    owned.connection.execute("COMMIT")
                finally:
                    if owned.connection.in_transaction:
                        owned.connection.execute("ROLLBACK")
                return True
        finally:
            lock.release()

    def _owned_beside(self) -> Owned:
        if self._closed:
            raise errors.closed()
        if self._beside is None:
            owned = self._connect()
            for setting in _BESIDE:
                owned.connection.execute(f"PRAGMA {setting}")
            self._beside = owned
        return self._beside

    def _begun(self, connection: sqlite3.Connection, deadline: float) -> bool:
        """Takes the file's write lock; False where others have it until then."""
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                    raise
                if not self._waited(deadline):
                    return False
            else:
                return True

    def changed(self) -> bool:
        """Whether the transaction that this thread is in wrote something; to be asked inside one only."""
        return self._owned().changed

    def stream(self, statement: str, parameters: Sequence[Any]) -> Iterator[Any]:
        """The rows of one query, all of one snapshot, however long their user takes and whatever else its thread does."""
        if self._path is None or self._owned().mode is not None:
            with self._translating(), self.reading() as connection:
                fetched = connection.execute(statement, parameters).fetchall()
            yield from fetched
            return
        with self._translating():
            owned = self._connect()
            try:
                self._begin_read(owned, time.monotonic() + READ_WAIT_SECONDS)
                rows = owned.connection.execute(statement, parameters)
                while some := rows.fetchmany(_FETCHED):
                    yield from some
            finally:
                owned.connection.close()

    def compact(self, *, wait_seconds: float = WRITE_WAIT_SECONDS) -> bool:
        """Rewrites the file without what was deleted, and empties the log; False where a reader kept it from the last step."""
        with self._translating(), self._exclusive(wait_seconds):
            owned = self._owned()
            if owned.mode is not None:
                raise RuntimeError("compaction inside a transaction")
            deadline = time.monotonic() + wait_seconds
            self._retried(lambda: owned.connection.execute("VACUUM"), deadline)
            while owned.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if not self._waited(deadline):
                    return False
            return True

    @contextmanager
    def _write(self, owned: Owned, wait_seconds: float) -> Iterator[None]:
        self._retried(lambda: owned.connection.execute("BEGIN IMMEDIATE"), time.monotonic() + wait_seconds)
        owned.began("write")
        try:
            yield
        finally:
            owned.rollback()

    def _begin_read(self, owned: Owned, deadline: float) -> None:
        def begin() -> None:
            owned.connection.execute("BEGIN")
            try:
                # A snapshot is taken by the first read, not by BEGIN.
                owned.connection.execute("PRAGMA user_version").fetchone()
            except sqlite3.Error:
                owned.connection.execute("ROLLBACK")
                raise

        self._retried(begin, deadline)
        owned.began("read")

    def _retried(self, step: Callable[[], _T], deadline: float) -> _T:
        while True:
            try:
                return step()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED} or not self._waited(deadline):
                    raise

    def _waited(self, deadline: float) -> bool:
        """Sleeps a moment; False where the time is over."""
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        self._sleep(min(left, _LEAST_SLEEP + _MORE_SLEEP * self._randomness()))
        return True

    def _owned(self) -> Owned:
        if self._closed:
            raise errors.closed()
        if self._shared is not None:
            return self._shared
        owned = self._local.owned
        if owned is None:
            owned = self._local.owned = self._connect()
        return owned

    @staticmethod
    def _check_alive(owned: Owned) -> None:
        # After some errors SQLite rolls back by itself: what follows would be written bit by bit.
        if not owned.connection.in_transaction:
            raise errors.lost_transaction()

    def _exclusive(self, wait_seconds: float) -> AbstractContextManager[None]:
        return nullcontext() if self._path is not None else self._shared_turn(wait_seconds)

    @contextmanager
    def _shared_turn(self, wait_seconds: float) -> Iterator[None]:
        if not self._shared_lock.acquire(timeout=max(wait_seconds, 0)):
            raise errors.busy()
        try:
            yield
        finally:
            self._shared_lock.release()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            translated = errors.closed() if self._closed else errors.translate(error)
            if translated is None:
                raise
            raise translated from error
