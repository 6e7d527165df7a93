"""What the use cases work with: the ports, and the numbers that bound them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pulse_kg.domain.reconcile import Thresholds
from pulse_kg.usecases.running import RunningCalls

if TYPE_CHECKING:
    from pulse_kg.ports.boards import BoardStore
    from pulse_kg.ports.clock import Clock, Ids
    from pulse_kg.ports.commits import CommitLog
    from pulse_kg.ports.embedder import Embedder
    from pulse_kg.ports.graph import GraphStore
    from pulse_kg.ports.graph_source import GraphSources
    from pulse_kg.ports.identity import RateLimiter
    from pulse_kg.ports.reading import GraphQueries, HitCounter, VectorSearch
    from pulse_kg.ports.sessions import SessionStore
    from pulse_kg.ports.vectors import VectorIndex


@dataclass(frozen=True)
class Limits:
    """Bounds of the tools; sizes in bytes of UTF-8, times in seconds."""

    session_ttl_seconds: int = 3_600
    consolidations_per_minute: int = 60
    cypher_per_minute: int = 30
    cypher_at_once: int = 4
    """Queries of one agent that run at the same time in a process; all agents together have twice as many."""
    cypher_seconds: float = 25.0
    """What a query may run for: a gateway before the tools gives up after some 29."""
    open_sessions: int = 50
    node_candidates: int = 500
    edge_candidates: int = 1_000
    body_bytes: int = 32 * 1024
    candidate_bytes: int = 48 * 1024
    response_bytes: int = 4_000_000
    call_seconds: float = 30.0
    reserve_seconds: float = 5.0
    """What a commit keeps of its call's time for writing: it waits for the board no longer than the rest."""


@dataclass(frozen=True)
class Services:
    """The ports of the write tools.

    Attributes:
        snapshot: One consistent view of all ports for the calling thread, while the context lasts; nothing is written inside it.
            A store without it gives `contextlib.nullcontext`.
        running: The long calls of this process.
        one_call: What the reads of one tool's call share, while the context lasts: on a store without snapshots they all see the same
            commits of a board.
    """

    sessions: SessionStore
    graph: GraphStore
    vectors: VectorIndex
    commits: CommitLog
    boards: BoardStore
    rates: RateLimiter
    embedder: Embedder
    clock: Clock
    ids: Ids
    queries: GraphQueries
    sources: GraphSources
    search: VectorSearch
    hits: HitCounter
    snapshot: Callable[[], AbstractContextManager[None]]
    one_call: Callable[[], AbstractContextManager[None]] = nullcontext
    running: RunningCalls = field(default_factory=RunningCalls)
    thresholds: Thresholds = field(default_factory=Thresholds)
    limits: Limits = field(default_factory=Limits)


class Deadline:
    """How much of a call's time is left."""

    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._end = services.clock.monotonic() + services.limits.call_seconds

    def left(self) -> float:
        """Seconds until the end, 0 or more."""
        return max(0.0, self._end - self._clock.monotonic())
