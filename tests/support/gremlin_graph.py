"""The graph on the local Gremlin server, and stores around it whose other ports are SQLite's or a plain list, for the contract suite."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from pulse_kg.adapters.gremlin import GremlinConnection, GremlinGraphStore
from pulse_kg.adapters.sqlite import SqliteStore, open_store
from pulse_kg.domain.model import Board
from pulse_kg.domain.plan import CommitPlan
from tests.support import local_stack
from tests.support.stores import Stores


def connection(**options: Any) -> GremlinConnection:
    """To the local server; skips the test where there is none."""
    return GremlinConnection(local_stack.servers().gremlin_url, **options)


class GraphStores:
    """SQLite in memory for all but graph and commits; a commit is remembered in a list and handed to the graph.

    Attributes:
        graph: On the server.
        applied: Board → the last commit that was wholly applied.
        plans: Board → its commits.
    """

    def __init__(self, inner: SqliteStore, connection: GremlinConnection) -> None:
        self._inner = inner
        self.sessions, self.vectors, self.boards, self.identity, self.rates = (
            inner.sessions,
            inner.vectors,
            inner.boards,
            inner.identity,
            inner.rates,
        )
        self.queries, self.sources, self.search, self.hits, self.relevances, self.ticks = (
            inner.queries,
            inner.sources,
            inner.search,
            inner.hits,
            inner.relevances,
            inner.ticks,
        )
        self.applied: defaultdict[str, int] = defaultdict(int)
        self.plans: defaultdict[str, list[CommitPlan]] = defaultdict(list)
        self.graph = GremlinGraphStore(connection, applied=lambda board_id: self.applied[board_id])

    @property
    def commits(self) -> GraphStores:
        """The commit log; it has turns and nothing else."""
        return self

    @contextmanager
    def turn(self, board_id: str, *, wait_seconds: float) -> Iterator[_Turn]:
        """See `CommitLog.turn`; for one caller at a time."""
        board = self._inner.boards.board(board_id)
        assert board is not None
        yield _Turn(self, replace(board, commit_seq=len(self.plans[board_id])))


class _Turn:
    def __init__(self, stores: GraphStores, board: Board) -> None:
        self._stores = stores
        self.board = board

    def commit(self, plan: CommitPlan) -> None:
        self._stores.plans[plan.board_id].append(plan)
        self._stores.graph.apply(plan)
        self._stores.vectors.apply(plan)
        self._stores.applied[plan.board_id] = plan.seq


@contextmanager
def graph_stores(connection: GremlinConnection, *boards: str) -> Iterator[Stores]:
    """Stores without anything in them, on a server where other tests have used the same boards."""
    inner = open_store(":memory:", create=True)
    try:
        made = GraphStores(inner, connection)
        for board_id in boards:
            assert made.graph.erase(board_id) == {"nodes": 0, "edges": 0}
        yield cast("Stores", made)
    finally:
        inner.close()
