"""Puts the parts together: settings in, a container with every port and the tool host out.

Only this module knows all adapters. Heavy libraries are imported by the adapter that needs them, when it needs them.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pulse_kg.adapters.system import RandomIds, SystemClock
from pulse_kg.settings import Settings
from pulse_kg.usecases.identity import authenticate

DIMENSION: Final = 384
"""Numbers of a vector of the served index."""

IDENTITY_SECONDS: Final = 30.0
"""How long a served process remembers an agent's key and grants."""

# Before numpy loads: one search is a product of some megabytes, and waking threads for it costs more than it saves.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if TYPE_CHECKING:
    from pulse_kg.adapters.gremlin.connection import GremlinConnection
    from pulse_kg.adapters.opensearch.client import OpenSearchClient
    from pulse_kg.adapters.served.store import ServedStore
    from pulse_kg.domain.permissions import Caller
    from pulse_kg.domain.reconcile import Thresholds
    from pulse_kg.endpoints import Endpoints
    from pulse_kg.mcp.local_host import LocalToolHost
    from pulse_kg.ports.boards import BoardStore
    from pulse_kg.ports.clock import Clock, Ids
    from pulse_kg.ports.commits import CommitLog, Outbox
    from pulse_kg.ports.embedder import Embedder
    from pulse_kg.ports.graph import GraphStore
    from pulse_kg.ports.graph_source import GraphSources
    from pulse_kg.ports.identity import IdentityStore, RateLimiter
    from pulse_kg.ports.reading import GraphQueries, HitCounter, VectorSearch
    from pulse_kg.ports.sessions import SessionStore
    from pulse_kg.ports.ticks import RelevanceStore, TickLog
    from pulse_kg.ports.vectors import VectorIndex
    from pulse_kg.usecases.services import Limits, Services


class Store(Protocol):
    """Every port over one store."""

    @property
    def sessions(self) -> SessionStore: ...  # noqa: D102
    @property
    def graph(self) -> GraphStore: ...  # noqa: D102
    @property
    def queries(self) -> GraphQueries: ...  # noqa: D102
    @property
    def sources(self) -> GraphSources: ...  # noqa: D102
    @property
    def vectors(self) -> VectorIndex: ...  # noqa: D102
    @property
    def commits(self) -> CommitLog: ...  # noqa: D102
    @property
    def boards(self) -> BoardStore: ...  # noqa: D102
    @property
    def identity(self) -> IdentityStore: ...  # noqa: D102
    @property
    def rates(self) -> RateLimiter: ...  # noqa: D102
    @property
    def search(self) -> VectorSearch: ...  # noqa: D102
    @property
    def hits(self) -> HitCounter: ...  # noqa: D102
    @property
    def relevances(self) -> RelevanceStore: ...  # noqa: D102
    @property
    def ticks(self) -> TickLog: ...  # noqa: D102

    def snapshot(self) -> AbstractContextManager[None]:
        """See `Services.snapshot`."""
        ...

    def ping(self) -> None:
        """Raises StoreUnavailable unless all of the store answers."""
        ...

    def close(self) -> None:
        """Closes it."""
        ...


@dataclass(frozen=True)
class Container:
    """Everything that runs on one store.

    Attributes:
        settings: As given.
        store: The adapters of the store.
        embedder: The embedding model, loaded at first use.
        clock: The time.
        ids: Identifiers.
        one_call: See `Services.one_call`.
        outbox: What finishes commits that others left behind; None for a store that leaves none.
        rebuild_index: Builds a new vector index beside the old one and swaps them; takes a progress callback (done, of) and gives a report
            ready for JSON. None for a store whose vectors are no index of their own.
    """

    settings: Settings
    store: Store
    embedder: Embedder
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    one_call: Callable[[], AbstractContextManager[None]] = nullcontext
    outbox: Outbox | None = None
    rebuild_index: Callable[[Callable[[int, int], None]], dict[str, Any]] | None = None

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
        from pulse_kg.usecases.services import Services

        return Services(
            sessions=self.sessions,
            graph=self.graph,
            vectors=self.vectors,
            commits=self.commits,
            boards=self.boards,
            rates=self.rates,
            search=self.store.search,
            hits=self.store.hits,
            embedder=self.embedder,
            clock=self.clock,
            ids=self.ids,
            snapshot=self.store.snapshot,
            queries=self.store.queries,
            sources=self.store.sources,
            one_call=self.one_call,
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

    def relay_outbox(self, seconds: float) -> dict[str, Any]:
        """One run of the relay over all boards with open work; nothing for a store that leaves none.

        Args:
            seconds: How long it may take; what is left over is for the next run.

        Returns:
            A report, ready for JSON: `boards`, `applied`, `published`, `unstaged`, `failed` (board → code), `left` (boards not looked at).
        """
        from pulse_kg.usecases.relay import relay

        return relay(self.outbox, self.clock, seconds)

    def tick(self, seconds: float, board_id: str | None = None) -> dict[str, Any]:
        """One run of the decay tick over all boards, from where the last one broke off.

        Args:
            seconds: How long it may take; what is left over is for the next run.
            board_id: Only this board.

        Returns:
            A report, ready for JSON; see `TickReport`.

        Raises:
            StoreUnavailable: The run can't be taken or noted, or the boards can't be listed.
        """
        from pulse_kg.usecases.decay_tick import TickPorts, decay_tick

        ports = TickPorts(self.boards, self.store.hits, self.store.relevances, self.store.ticks, self.clock)
        return decay_tick(ports, holder=self.ids.correlation_id(), seconds=seconds, board_id=board_id).as_dict()

    def close(self) -> None:
        """Closes the store."""
        self.store.close()


def limits_of(settings: Settings) -> Limits:
    """The bounds of the tools."""
    from pulse_kg.usecases.services import Limits

    return Limits(
        session_ttl_seconds=settings.session_ttl_seconds,
        consolidations_per_minute=settings.consolidations_per_minute,
        cypher_per_minute=settings.cypher_per_minute,
        open_sessions=settings.max_open_sessions,
        node_candidates=settings.max_node_candidates,
        edge_candidates=settings.max_edge_candidates,
        body_bytes=settings.max_body_bytes,
        candidate_bytes=settings.max_candidate_bytes,
        response_bytes=settings.max_response_bytes,
    )


def thresholds_of(settings: Settings) -> Thresholds:
    """The similarities of the reconciliation rules."""
    from pulse_kg.domain.reconcile import Thresholds

    return Thresholds(settings.update_threshold, settings.supersede_threshold, settings.similar_threshold)


def embedder_of(settings: Settings) -> Embedder:
    """The embedding model that the settings name; nothing is loaded yet."""
    if settings.embedder == "hashing":
        from pulse_kg.adapters.embedding.hashing import HashingEmbedder

        return HashingEmbedder()
    if settings.embedder == "lambda":
        from pulse_kg.adapters.awslambda.embedder import embedder_from

        return embedder_from(os.environ)
    from pulse_kg.adapters.embedding.onnx import OnnxEmbedder

    return OnnxEmbedder(settings.model_dir, threads=settings.embedder_threads)


def open_container(
    settings: Settings,
    *,
    create: bool = False,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    environment: Mapping[str, str] | None = None,
) -> Container:
    """Opens the store that the settings name.

    Args:
        settings: The settings.
        create: Whether a missing embedded store is made.
        embedder: Instead of the one that the settings name.
        clock: Instead of the machine's.
        ids: Instead of random ones.
        environment: Where the endpoints of the served stores are looked up; None for the process's.

    Raises:
        StoreUnavailable: The store is missing, can't be read, or is of a newer version.
    """
    kind, _, path = settings.store.partition(":")
    if kind == "aws":
        from pulse_kg.endpoints import endpoints_of

        return served_container(
            settings, endpoints_of(os.environ if environment is None else environment), embedder=embedder, clock=clock, ids=ids
        )
    from pulse_kg.adapters.sqlite.store import open_store

    store = open_store(path if path == ":memory:" else Path(path), create=create, randomness=random.SystemRandom().random)
    return Container(settings, store, embedder or embedder_of(settings), clock=clock or SystemClock(), ids=ids or RandomIds())


def served_container(
    settings: Settings,
    endpoints: Endpoints,
    *,
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    **more: Any,
) -> Container:
    """The container of the served form; nothing is connected yet.

    Args:
        settings: The settings.
        endpoints: Where the stores are.
        embedder: Instead of the one that the settings name.
        clock: Instead of the machine's.
        ids: Instead of random ones.
        **more: For `served_store`.
    """
    clock = clock or SystemClock()
    store = served_store(endpoints, clock=clock, **more)
    return Container(
        settings,
        store,
        embedder or embedder_of(settings),
        clock=clock,
        ids=ids or RandomIds(),
        one_call=store.one_call,
        outbox=store.commits,
        rebuild_index=store.rebuild_index,
    )


def key_check(settings: Settings) -> Callable[[str | None], Caller]:
    """What tells the agent of a key, as `Container.authenticate` does, and opens no more of a served store than that needs.

    Args:
        settings: The settings.

    Raises:
        StoreUnavailable: The store is missing, can't be read, or is of a newer version.
    """
    if settings.store != "aws":
        return open_container(settings).authenticate
    from pulse_kg.adapters.dynamodb.client import Dynamo, connect
    from pulse_kg.adapters.dynamodb.identity import DynamoIdentityStore
    from pulse_kg.endpoints import endpoints_of

    endpoints = endpoints_of(os.environ)
    dynamo = Dynamo(functools.partial(connect, endpoints), endpoints.table_prefix, randomness=random.SystemRandom().random)
    identity = DynamoIdentityStore(dynamo, cache_seconds=IDENTITY_SECONDS)
    return lambda api_key: authenticate(api_key, identity)


def served_store(endpoints: Endpoints, *, clock: Clock, dimension: int = DIMENSION, **more: Any) -> ServedStore:
    """The served store; nothing is connected yet.

    Args:
        endpoints: Where it is.
        clock: The time.
        dimension: Numbers of a vector.
        **more: For `ServedStore`.
    """
    from pulse_kg.adapters.dynamodb.client import Dynamo, connect
    from pulse_kg.adapters.served.store import ServedStore

    randomness = random.SystemRandom().random

    def connect_graph() -> GremlinConnection:
        from pulse_kg.adapters.gremlin.connection import GremlinConnection

        return GremlinConnection(endpoints.gremlin_url, sign_region=endpoints.region if endpoints.signed else None, randomness=randomness)

    def connect_search() -> OpenSearchClient:
        from pulse_kg.adapters.opensearch.client import OpenSearchClient, connect

        sign = True if endpoints.signed else None
        return OpenSearchClient(lambda: connect(endpoints.opensearch_url, sign=sign, region=endpoints.region), randomness=randomness)

    more.setdefault("identity_seconds", IDENTITY_SECONDS)
    publisher = None
    if endpoints.queue_url:
        from pulse_kg.adapters.lazily import Lazily
        from pulse_kg.adapters.sqs.publisher import SqsEventPublisher

        publisher = SqsEventPublisher(Lazily(lambda: connect(endpoints, "sqs")), endpoints.queue_url, randomness=randomness)
    return ServedStore(
        Dynamo(functools.partial(connect, endpoints), endpoints.table_prefix, randomness=randomness),
        connect_graph,
        connect_search,
        index=f"{endpoints.table_prefix}nodes",
        publisher=publisher,
        now=clock.now,
        dimension=dimension,
        graph_ids=endpoints.graph_ids,
        randomness=randomness,
        **more,
    )
