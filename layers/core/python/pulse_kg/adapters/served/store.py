"""The served store as a whole: every port over DynamoDB, a graph server, a vector index and a queue."""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.dynamodb.boards import DynamoBoardStore
from pulse_kg.adapters.dynamodb.client import Dynamo
from pulse_kg.adapters.dynamodb.hits import DynamoHitCounter
from pulse_kg.adapters.dynamodb.identity import DynamoIdentityStore
from pulse_kg.adapters.dynamodb.journal import DynamoJournal
from pulse_kg.adapters.dynamodb.rates import DynamoRateLimiter
from pulse_kg.adapters.dynamodb.sessions import DynamoSessionStore
from pulse_kg.adapters.dynamodb.ticks import DynamoTickLog
from pulse_kg.adapters.lazily import Lazily, made
from pulse_kg.adapters.served.commits import LEASE_MS, ServedCommitLog
from pulse_kg.adapters.served.marks import Marks
from pulse_kg.adapters.served.writes import writes_of
from pulse_kg.domain.instants import Instant
from pulse_kg.ports.events import EventPublisher

if TYPE_CHECKING:
    from pulse_kg.adapters.gremlin.connection import GremlinConnection
    from pulse_kg.adapters.gremlin.graph import GremlinGraphStore
    from pulse_kg.adapters.gremlin.queries import GremlinGraphQueries
    from pulse_kg.adapters.gremlin.source import GremlinGraphSources
    from pulse_kg.adapters.gremlin.ticks import GremlinRelevanceStore
    from pulse_kg.adapters.opensearch.client import OpenSearchClient
    from pulse_kg.adapters.opensearch.search import OpenSearchVectorSearch
    from pulse_kg.adapters.opensearch.vectors import OpenSearchVectorIndex

Wrap = Callable[[str, Any], Any]
"""Puts something around a part of the store (`journal`, `graph`, `vectors`, `publisher`), by its name; for faults and measuring."""


PUBLISH_SECONDS: Final = 2.0
"""How long a commit tries to send its event before it leaves that to the relay: its caller waits meanwhile."""
CALL_SECONDS: Final = 30.0
"""How long a tool's call may take; a function's own time may be shorter."""


class ServedStore:
    """Every port. Nothing is connected before it is asked; threads may share it, not processes.

    Args:
        dynamo: Sessions, boards, commits, identity, rates.
        connect_graph: Opens the graph's connections, at first use.
        connect_search: Makes the vector index's client, at first use.
        index: The index's name.
        publisher: Where events go, or None.
        now: The time in epoch milliseconds.
        dimension: Numbers of a vector.
        lease_ms: How long a board is held at most by one who does not answer any more.
        identity_seconds: How long an agent's key and grants are remembered; 0..60.
        on_applied: Told the board of each commit; None sends its events at once, where there is a queue.
        graph_ids: As `GremlinGraphStore` takes it.
        randomness: Numbers from 0 to 1.
        wrap: See `Wrap`.

    Attributes:
        sessions: The `SessionStore`.
        graph: The `GraphStore`.
        queries: The `GraphQueries`.
        sources: The `GraphSources`.
        vectors: The `VectorIndex`.
        commits: The `CommitLog`, and the `Outbox`.
        boards: The `BoardStore`.
        identity: The `IdentityStore`.
        rates: The `RateLimiter`.
        search: The `VectorSearch`.
        hits: The `HitCounter`.
        relevances: The `RelevanceStore`.
        ticks: The `TickLog`.
    """

    def __init__(
        self,
        dynamo: Dynamo,
        connect_graph: Callable[[], GremlinConnection],
        connect_search: Callable[[], OpenSearchClient],
        *,
        index: str,
        publisher: EventPublisher | None,
        now: Callable[[], Instant],
        dimension: int,
        lease_ms: int = LEASE_MS,
        identity_seconds: float = 30.0,
        on_applied: Callable[[str], None] | None = None,
        graph_ids: Any = "property",
        randomness: Callable[[], float] = random.random,
        wrap: Wrap = lambda _, part: part,
    ) -> None:
        self.dynamo = dynamo
        self.connection: GremlinConnection = _lazily(connect_graph)
        self.index_client: OpenSearchClient = _lazily(connect_search)
        self.sessions = DynamoSessionStore(dynamo)
        self.journal = DynamoJournal(
            dynamo,
            writes_of=writes_of,
            close_session=lambda session, plan, staged: self.sessions.closing_write(
                session,
                answer=None if staged.answer_token else staged.answer,
                answer_token=staged.answer_token or None,
                overrides=plan.overrides,
                committed_at=plan.committed_at,
            ),
            session_refusal=self.sessions.refusal,
        )
        self.marks = Marks(self.journal.applied, self.journal.applied_many)

        def graph() -> GremlinGraphStore:
            from pulse_kg.adapters.gremlin.graph import GremlinGraphStore

            return GremlinGraphStore(self.connection, applied=self.marks.applied, vertex_ids=graph_ids)

        def queries() -> GremlinGraphQueries:
            from pulse_kg.adapters.gremlin.queries import GremlinGraphQueries

            return GremlinGraphQueries(self.connection, applied=self.marks.applied, vertex_ids=graph_ids)

        def sources() -> GremlinGraphSources:
            from pulse_kg.adapters.gremlin.source import GremlinGraphSources

            return GremlinGraphSources(self.connection, applied=self.marks.applied, vertex_ids=graph_ids)

        def vectors() -> OpenSearchVectorIndex:
            from pulse_kg.adapters.opensearch.vectors import OpenSearchVectorIndex

            return OpenSearchVectorIndex(self.index_client, name=index, applied=self.marks.applied, dimension=dimension)

        def search() -> OpenSearchVectorSearch:
            from pulse_kg.adapters.opensearch.search import OpenSearchVectorSearch

            return OpenSearchVectorSearch(self.index_client, name=index, applied=self.marks.applied_many)

        def relevances() -> GremlinRelevanceStore:
            from pulse_kg.adapters.gremlin.ticks import GremlinRelevanceStore

            return GremlinRelevanceStore(self.connection, applied=self.journal.applied, vertex_ids=graph_ids)

        self.graph: GremlinGraphStore = _lazily(graph)
        self.queries: GremlinGraphQueries = _lazily(queries)
        self.sources: GremlinGraphSources = _lazily(sources)
        self.vectors: OpenSearchVectorIndex = _lazily(vectors)
        self.search: OpenSearchVectorSearch = _lazily(search)
        self.hits = DynamoHitCounter(dynamo)
        self.relevances: GremlinRelevanceStore = _lazily(relevances)
        self.ticks = DynamoTickLog(dynamo)
        self.identity = DynamoIdentityStore(dynamo, cache_seconds=identity_seconds)
        self.rates = DynamoRateLimiter(dynamo)
        self.boards = DynamoBoardStore(
            dynamo,
            erasers=(lambda board: self.vectors.erase(board), lambda board: self.graph.erase(board), self.journal.erase),  # noqa: PLW0108 - not before it is needed
            on_read=lambda board, seq: self.marks.note(board.board_id, seq),
            now=now,
        )
        self.commits = ServedCommitLog(
            wrap("journal", self.journal),
            wrap("graph", self.graph),
            wrap("vectors", self.vectors),
            marks=self.marks,
            publisher=None if publisher is None else wrap("publisher", publisher),
            now=now,
            holder=lambda: f"{os.getpid()}-{threading.get_ident()}-{uuid.uuid4().hex}",
            lease_ms=lease_ms,
            randomness=randomness,
            on_applied=on_applied or self._publish,
        )

    def _publish(self, board_id: str) -> None:
        with time_budget(PUBLISH_SECONDS):
            self.commits.publish(board_id)

    @contextmanager
    def one_call(self) -> Iterator[None]:
        """While it lasts, all reads of this thread see the same commits of a board; and it has an end, which all waits keep."""
        with time_budget(CALL_SECONDS), self.marks.call():
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """No snapshot: readers see commits wholly, and those of a board that the running call saw first; without a call, all the same."""
        with self.marks.call():
            yield

    def rebuild_index(self, progress: Callable[[int, int], None]) -> dict[str, Any]:
        """Copies all vectors into a new index with the settings of the old one, and swaps them; what an interrupted run left is discarded.

        Args:
            progress: Told how many vectors are copied, and of how many.

        Returns:
            `index`, `old_index`, `documents`.

        Raises:
            StoreUnavailable: It could not be done; the old index is in use as before.
        """
        done = self.vectors.reindex(delete_old=True, discard_unfinished=True, progress=progress)
        return {"index": done.new, "old_index": done.old, "documents": done.copied}

    def ping(self) -> None:
        """Asks every server something.

        Raises:
            StoreUnavailable: One of them does not answer, or is not fit; the message says which and why.
        """
        self.boards.boards()
        self.graph.probe()
        self.vectors.probe()

    def close(self) -> None:
        """Closes what is open; calling it again does nothing."""
        for part in (self.connection, self.index_client):
            if (opened := made(part)) is not None:
                opened.close()


def _lazily(make: Callable[[], Any]) -> Any:
    return Lazily(make)
