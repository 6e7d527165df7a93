"""The embedded store as a whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pulse_kg.adapters.sqlite.boards import SqliteBoardStore
from pulse_kg.adapters.sqlite.commits import SqliteCommitLog
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.graph import SqliteGraphStore
from pulse_kg.adapters.sqlite.hits import SqliteHitCounter
from pulse_kg.adapters.sqlite.identity import SqliteIdentityStore, SqliteRateLimiter
from pulse_kg.adapters.sqlite.queries import SqliteGraphQueries
from pulse_kg.adapters.sqlite.search import SqliteVectorSearch
from pulse_kg.adapters.sqlite.sessions import SqliteSessionStore
from pulse_kg.adapters.sqlite.source import SqliteGraphSources
from pulse_kg.adapters.sqlite.ticks import SqliteRelevanceStore, SqliteTickLog
from pulse_kg.adapters.sqlite.vectors import VECTOR_CACHE_BYTES, SqliteVectorIndex


class SqliteStore:
    """Every port over one file. Threads may share it; other processes open the file for themselves.

    Attributes:
        sessions: The `SessionStore`.
        graph: The `GraphStore`.
        queries: The `GraphQueries`.
        sources: The `GraphSources`.
        vectors: The `VectorIndex`.
        commits: The `CommitLog`.
        boards: The `BoardStore`.
        identity: The `IdentityStore`.
        rates: The `RateLimiter`.
        search: The `VectorSearch`.
        hits: The `HitCounter`.
        relevances: The `RelevanceStore`.
        ticks: The `TickLog`.
    """

    def __init__(self, database: Database, *, vector_cache_bytes: int = VECTOR_CACHE_BYTES) -> None:
        self._database = database
        self.sessions = SqliteSessionStore(database)
        self.graph = SqliteGraphStore(database)
        self.queries = SqliteGraphQueries(database)
        self.sources = SqliteGraphSources(database)
        self.vectors = SqliteVectorIndex(database, cache_bytes=vector_cache_bytes)
        self.commits = SqliteCommitLog(database, self.graph, self.vectors)
        self.hits = SqliteHitCounter(database)
        self.boards = SqliteBoardStore(database, on_erased=self._forget)
        self.identity = SqliteIdentityStore(database)
        self.rates = SqliteRateLimiter(database)
        self.search = SqliteVectorSearch(database, self.vectors)
        self.relevances = SqliteRelevanceStore(database, self.graph)
        self.ticks = SqliteTickLog(database)

    def _forget(self, board_id: str) -> None:
        self.vectors.forget(board_id)
        self.hits.forget_board(board_id)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """While it lasts, all reads of this thread see one state of the store; writes of the thread are a RuntimeError."""
        with self._database.reading():
            yield

    def ping(self) -> None:
        """Reads something.

        Raises:
            StoreUnavailable: The store can't be read, or its file is gone.
        """
        self._database.ping()

    def close(self) -> None:
        """Closes the store for all threads; calling it again does nothing."""
        self.hits.close()
        self._database.close()


def open_store(
    path: str | Path,
    *,
    create: bool,
    randomness: Callable[[], float] = random.random,
    vector_cache_bytes: int = VECTOR_CACHE_BYTES,
) -> SqliteStore:
    """Opens the store, and brings its schema up to date.

    Args:
        path: The file, or ``:memory:`` for one that lives as long as the object.
        create: Whether to make the store where there is none.
        randomness: Numbers from 0 to 1 that spread the tries of those who wait for a writer.
        vector_cache_bytes: Bound of the vectors that are kept in memory for searching.

    Raises:
        StoreMissing: There is none, and `create` is false.
        StoreRefused: The file is no store, or one of a newer version, or can't be opened.
        StoreUnavailable: Others held it too long.
    """
    return SqliteStore(Database(path, create=create, randomness=randomness), vector_cache_bytes=vector_cache_bytes)
