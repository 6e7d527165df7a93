"""Every store that fulfils the ports, for the contract suites; a new one joins by a line in `STORES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from pulse_kg.adapters.sqlite import open_store
from pulse_kg.ports.boards import BoardStore
from pulse_kg.ports.commits import CommitLog
from pulse_kg.ports.graph import GraphStore
from pulse_kg.ports.graph_source import GraphSources
from pulse_kg.ports.identity import IdentityStore, RateLimiter
from pulse_kg.ports.reading import GraphQueries, HitCounter, VectorSearch
from pulse_kg.ports.sessions import SessionStore
from pulse_kg.ports.ticks import RelevanceStore, TickLog
from pulse_kg.ports.vectors import VectorIndex


class Stores(Protocol):
    """All ports over one store."""

    @property
    def sessions(self) -> SessionStore: ...
    @property
    def graph(self) -> GraphStore: ...
    @property
    def queries(self) -> GraphQueries: ...
    @property
    def sources(self) -> GraphSources: ...
    @property
    def vectors(self) -> VectorIndex: ...
    @property
    def commits(self) -> CommitLog: ...
    @property
    def boards(self) -> BoardStore: ...
    @property
    def identity(self) -> IdentityStore: ...
    @property
    def rates(self) -> RateLimiter: ...
    @property
    def search(self) -> VectorSearch: ...
    @property
    def hits(self) -> HitCounter: ...
    @property
    def relevances(self) -> RelevanceStore: ...
    @property
    def ticks(self) -> TickLog: ...


@contextmanager
def _sqlite_file(folder: Path) -> Iterator[Stores]:
    store = open_store(folder / "store.db", create=True)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _sqlite_memory(folder: Path) -> Iterator[Stores]:
    store = open_store(":memory:", create=True)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _served(folder: Path) -> Iterator[Stores]:
    from tests.support.served import served  # drivers take their time to load

    with served(dimension=CONTRACT_DIMENSION) as store:
        yield store


CONTRACT_DIMENSION = 8
"""Numbers in the vectors of the contract suites."""

STORES: Mapping[str, Callable[[Path], AbstractContextManager[Stores]]] = {
    "sqlite-file": _sqlite_file,
    "sqlite-memory": _sqlite_memory,
    "served": _served,
}

READERS_NEVER_WAIT = frozenset({"sqlite-file", "served"})
"""Stores whose readers go on while a turn is held. In memory all threads share one connection."""
