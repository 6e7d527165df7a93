"""A vector index on the local OpenSearch, and stores around it whose other ports are SQLite's, for the contract suite."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pulse_kg.adapters.opensearch import IndexSettings, OpenSearchClient, OpenSearchVectorIndex, connect
from pulse_kg.adapters.sqlite import SqliteStore, open_store
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.ports.commits import Turn
from tests.support import local_stack
from tests.support.plans import DIMENSION, NOW

LOCAL = IndexSettings(shards=1, replicas=0, refresh_interval="50ms")
BOARDS = ("alpha", "beta")


def client() -> OpenSearchClient:
    """The local server."""
    return OpenSearchClient(lambda: connect(local_stack.servers().opensearch_url))


@contextmanager
def index_name(server: OpenSearchClient) -> Iterator[str]:
    """A name that nobody has; what stands behind it is deleted in the end."""
    name = f"test_{secrets.token_hex(6)}_nodes"
    try:
        yield name
    finally:
        server = server.patient(60)
        for row in server.request("GET", f"/_cat/indices/{name}_*", params={"format": "json", "h": "index"}):
            server.request("DELETE", f"/{row['index']}", ignore=404)


@contextmanager
def made_index(server: OpenSearchClient, dimension: int = DIMENSION) -> Iterator[str]:
    """The name of a new index, which forgets deleted documents at once, so that a test may make them again."""
    with index_name(server) as name:
        OpenSearchVectorIndex(server, name=name, applied=lambda board_id: 0, dimension=dimension).create_index(LOCAL)
        server.request("PUT", f"/{name}/_settings", {"index.gc_deletes": "0s"})
        yield name


class VectorStores:
    """SQLite in memory for all but the vectors. What a turn commits there is then applied to the index.

    Attributes:
        vectors: The index.
        applied: Board → the last commit that was wholly applied.
    """

    def __init__(self, inner: SqliteStore, server: OpenSearchClient, name: str) -> None:
        self._inner = inner
        self.sessions, self.graph, self.boards, self.identity, self.rates = (
            inner.sessions,
            inner.graph,
            inner.boards,
            inner.identity,
            inner.rates,
        )
        self.sources = inner.sources
        self.queries, self.search, self.hits, self.relevances, self.ticks = (
            inner.queries,
            inner.search,
            inner.hits,
            inner.relevances,
            inner.ticks,
        )
        self.applied: defaultdict[str, int] = defaultdict(int)
        self.vectors = OpenSearchVectorIndex(server, name=name, applied=self.applied.__getitem__, dimension=DIMENSION)

    @property
    def commits(self) -> Any:
        """The commit log; only `turn` goes on to the index."""
        return self

    @contextmanager
    def turn(self, board_id: str, *, wait_seconds: float) -> Iterator[_Turn]:
        """See `CommitLog.turn`."""
        with self._inner.commits.turn(board_id, wait_seconds=wait_seconds) as held:
            yield _Turn(self, held)


class _Turn:
    def __init__(self, stores: VectorStores, held: Turn) -> None:
        self._stores, self._held = stores, held
        self.board = held.board

    def commit(self, plan: CommitPlan) -> None:
        self._held.commit(plan)
        self._stores.vectors.apply(plan)
        self._stores.applied[plan.board_id] = plan.seq


@contextmanager
def vector_stores(server: OpenSearchClient, name: str) -> Iterator[VectorStores]:
    """Empty stores with the boards alpha and beta, over an index that other tests have used."""
    inner = open_store(":memory:", create=True)
    made = VectorStores(inner, server, name)
    try:
        for board_id in BOARDS:
            inner.boards.create(board_id, board_id.title(), now=NOW)
        yield made
    finally:
        inner.close()
        left = [made.vectors.erase(board_id) for board_id in BOARDS]
        server.request("POST", f"/{name}/_bulk", '{"delete":{"_id":"model","routing":"model"}}\n')
        server.request("PUT", f"/{name}/_mapping", {"_meta": {}})
    assert left == [{"vectors": 0}] * len(BOARDS)
