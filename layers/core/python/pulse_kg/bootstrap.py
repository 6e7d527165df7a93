"""Puts the parts together: settings in, a container with every port and the tool host out.

Only this module knows all adapters. Heavy libraries are imported by the adapter that needs them, when it needs them.
"""

from __future__ import annotations

import functools
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pulse_kg.adapters.system import RandomIds, SystemClock
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.reconcile import Thresholds
from pulse_kg.errors import StoreUnavailable
from pulse_kg.ports.clock import Clock, Ids
from pulse_kg.ports.embedder import Embedder
from pulse_kg.settings import Settings
from pulse_kg.usecases.identity import authenticate
from pulse_kg.usecases.services import Limits, Services

# Before numpy loads: one search is a product of some megabytes, and waking threads for it costs more than it saves.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if TYPE_CHECKING:
    from pulse_kg.adapters.sqlite.store import SqliteStore
    from pulse_kg.mcp.local_host import LocalToolHost
    from pulse_kg.ports.boards import BoardStore
    from pulse_kg.ports.commits import CommitLog
    from pulse_kg.ports.graph import GraphStore
    from pulse_kg.ports.identity import IdentityStore, RateLimiter
    from pulse_kg.ports.sessions import SessionStore
    from pulse_kg.ports.vectors import VectorIndex


@dataclass(frozen=True)
class Container:
    """Everything that runs on one store.

    Attributes:
        settings: As given.
        store: The adapters of the store.
        embedder: The embedding model, loaded at first use.
        clock: The time.
        ids: Identifiers.
    """

    settings: Settings
    store: SqliteStore
    embedder: Embedder
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)

    @property
    def sessions(self) -> SessionStore:
        """Consolidation sessions."""
        return self.store.sessions

    @property
    def graph(self) -> GraphStore:
        """Nodes and edges."""
        return self.store.graph

    @property
    def vectors(self) -> VectorIndex:
        """The vector index."""
        return self.store.vectors

    @property
    def commits(self) -> CommitLog:
        """Commits, audit rows and the outbox."""
        return self.store.commits

    @property
    def boards(self) -> BoardStore:
        """Boards."""
        return self.store.boards

    @property
    def identity(self) -> IdentityStore:
        """Agents and keys."""
        return self.store.identity

    @property
    def rates(self) -> RateLimiter:
        """Rate limits."""
        return self.store.rates

    @functools.cached_property
    def services(self) -> Services:
        """What the use cases work with."""
        return Services(
            sessions=self.sessions,
            graph=self.graph,
            vectors=self.vectors,
            commits=self.commits,
            boards=self.boards,
            rates=self.rates,
            embedder=self.embedder,
            clock=self.clock,
            ids=self.ids,
            snapshot=self.store.snapshot,
            thresholds=thresholds_of(self.settings),
            limits=limits_of(self.settings),
        )

    def authenticate(self, api_key: str | None) -> Caller:
        """The agent of a key.

        Raises:
            Unauthorized: There is none.
        """
        return authenticate(api_key, self.identity)

    def tool_host(self) -> LocalToolHost:
        """The tools, run in this process."""
        from pulse_kg.mcp.local_host import LocalToolHost

        return LocalToolHost(self.services, self.authenticate, max_response_bytes=self.settings.max_response_bytes)

    def close(self) -> None:
        """Closes the store."""
        self.store.close()


def limits_of(settings: Settings) -> Limits:
    """The bounds of the write tools."""
    return Limits(
        session_ttl_seconds=settings.session_ttl_seconds,
        consolidations_per_minute=settings.consolidations_per_minute,
        open_sessions=settings.max_open_sessions,
        node_candidates=settings.max_node_candidates,
        edge_candidates=settings.max_edge_candidates,
        body_bytes=settings.max_body_bytes,
        candidate_bytes=settings.max_candidate_bytes,
    )


def thresholds_of(settings: Settings) -> Thresholds:
    """The similarities of the reconciliation rules."""
    return Thresholds(settings.update_threshold, settings.supersede_threshold, settings.similar_threshold)


def embedder_of(settings: Settings) -> Embedder:
    """The embedding model that the settings name; nothing is loaded yet."""
    if settings.embedder == "hashing":
        from pulse_kg.adapters.embedding.hashing import HashingEmbedder

        return HashingEmbedder()
    from pulse_kg.adapters.embedding.onnx import OnnxEmbedder

    return OnnxEmbedder(settings.model_dir, threads=settings.embedder_threads)


def open_container(
    settings: Settings, *, create: bool = False, embedder: Embedder | None = None, clock: Clock | None = None, ids: Ids | None = None
) -> Container:
    """Opens the store that the settings name.

    Args:
        settings: The settings.
        create: Whether a missing embedded store is made.
        embedder: Instead of the one that the settings name.
        clock: Instead of the machine's.
        ids: Instead of random ones.

    Raises:
        StoreUnavailable: The store is missing, can't be read, or is of a newer version.
    """
    kind, _, path = settings.store.partition(":")
    if kind != "sqlite":
        raise StoreUnavailable(kind, f"This build has no '{kind}' store. Use --store sqlite:PATH.")
    from pulse_kg.adapters.sqlite.store import open_store

    store = open_store(path if path == ":memory:" else Path(path), create=create, randomness=random.SystemRandom().random)
    return Container(settings, store, embedder or embedder_of(settings), clock=clock or SystemClock(), ids=ids or RandomIds())
