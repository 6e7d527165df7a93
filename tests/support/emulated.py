"""The served store without servers: its own code over tables in a dict, graph and vectors in SQLite's memory, and a list as the queue.

Several processes may share the servers. One that crashes is thrown away as it stands: from that moment on nothing of it reaches a server,
so that its lease stays until it runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pulse_kg.adapters.dynamodb.client import Dynamo
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.adapters.served.store import ServedStore
from pulse_kg.adapters.sqlite import open_store
from pulse_kg.adapters.sqlite.store import SqliteStore
from pulse_kg.bootstrap import DIMENSION, Container
from pulse_kg.domain.model import Edge, Node, TextVector
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.errors import StoreUnavailable
from pulse_kg.ports.graph import Survey
from pulse_kg.ports.vectors import Hit
from pulse_kg.settings import Settings
from tests.support.crash_points import FaultyPort
from tests.support.dynamo_memory import MemoryDynamo
from tests.support.world import CountingIds, FixedClock, World

When = Literal["before", "after"]
STEPS = (
    *("journal.acquire", "journal.decided", "journal.stage", "journal.decide", "graph.apply", "vectors.apply", "journal.mark_applied"),
    *("journal.release", "publisher.publish", "journal.drop_writes", "journal.mark_published", "journal.progress", "journal.sweep_staged"),
)
"""Every step of the protocol; each may fail before it and after it."""


class Crash(BaseException):
    """The process is gone."""


@dataclass
class Steps:
    """What happens at the steps of one process.

    Attributes:
        calls: The steps since `at`, in order.
        struck: Whether the chosen step came.
        dead: The process crashed: nothing of it comes through any more.
    """

    calls: list[str] = field(default_factory=list)
    struck: bool = False
    dead: bool = False
    _chosen: tuple[str, When, Callable[[], object]] | None = None
    _left: int = 0

    def at(self, step: str, when: When, what: Callable[[], object], *, occurrence: int = 1) -> None:
        """Lets something happen once, at the n-th time from now that the process comes to a step."""
        self._chosen, self._left = (step, when, what), occurrence
        self.calls, self.struck = [], False

    def crash(self) -> None:
        """Ends the process here."""
        self.dead = True
        raise Crash

    def check(self) -> None:
        """Nothing of a dead process reaches a server."""
        if self.dead:
            raise Crash

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        """A step."""
        self.check()
        self.calls.append(name)
        strikes = False
        if self._chosen is not None and self._chosen[0] == name:
            self._left -= 1
            strikes = self._left == 0
        if strikes:
            self._happen("before")
        yield
        if strikes:
            self._happen("after")

    def _happen(self, when: When) -> None:
        if self._chosen is not None and self._chosen[1] == when:
            what, self._chosen, self.struck = self._chosen[2], None, True
            what()


def lost() -> None:
    """The step fails, or its answer is lost."""
    raise StoreUnavailable("test")


class ReadersGraph:
    """SQLite's graph for readers who see nothing above a board's applied mark."""

    def __init__(self, store: SqliteStore, applied: Callable[[str], int]) -> None:
        self._graph, self._applied = store.graph, applied

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    def nodes(self, board_id: str, node_ids: Any) -> dict[str, Node]:
        return {n: node for n, node in self._graph.nodes(board_id, node_ids).items() if node.created_seq <= self._applied(board_id)}

    def with_digests(self, board_id: str, digests: Any) -> list[Node]:
        return self._seen(board_id, self._graph.with_digests(board_id, digests))

    def with_refs(self, board_id: str, refs: Any) -> list[Node]:
        return self._seen(board_id, self._graph.with_refs(board_id, refs))

    def survey(self, board_id: str, node_ids: Any, *, digests: Any = (), refs: Any = ()) -> Survey:
        found = self._graph.survey(board_id, node_ids, digests=digests, refs=refs)
        nodes = {n: node for n, node in found.nodes.items() if node.created_seq <= self._applied(board_id)}
        seen = [self._seen(board_id, some) for some in (found.with_digests, found.with_refs)]
        return replace(found, nodes=nodes, with_digests=seen[0], with_refs=seen[1])

    def all_nodes(self, board_id: str) -> Iterator[Node]:
        return iter(self._seen(board_id, self._graph.all_nodes(board_id)))

    def all_edges(self, board_id: str) -> Iterator[Edge]:
        mark = self._applied(board_id)
        return iter([edge for edge in self._graph.all_edges(board_id) if edge.commit_seq <= mark])

    def _seen(self, board_id: str, nodes: Any) -> list[Node]:
        mark = self._applied(board_id)
        return [node for node in nodes if node.created_seq <= mark]


class ReadersVectors:
    """SQLite's vectors likewise."""

    def __init__(self, store: SqliteStore, applied: Callable[[str], int]) -> None:
        self._store, self._applied = store, applied

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store.vectors, name)

    def nearest(self, board_id: str, node_type: Any, vectors: Any, *, limit: int, live_only: bool) -> list[list[Hit]]:
        found = self._store.vectors.nearest(board_id, node_type, vectors, limit=1_000, live_only=live_only)
        nodes = self._store.graph.nodes(board_id, {hit.node_id for hits in found for hit in hits})
        mark = self._applied(board_id)
        return [[h for h in hits if h.node_id not in nodes or nodes[h.node_id].created_seq <= mark][:limit] for hits in found]


class Queue:
    """Takes events, unless it is full."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int, Mapping[str, Any]]] = []
        self.full = False

    def publish(self, board_id: str, seq: int, event: Mapping[str, Any]) -> None:
        if self.full:
            raise StoreUnavailable("queue")
        self.sent.append((board_id, seq, event))

    def first(self, board_id: str) -> list[int]:
        """The commits of a board in the order in which a consumer hears of them that drops what it heard before, by the event's id."""
        heard: dict[str, int] = {}
        for board, seq, event in self.sent:
            if board == board_id:
                heard.setdefault(event["id"], seq)
        return list(heard.values())


class _UntilItDies:
    """The driver's client of a process."""

    def __init__(self, client: Any, steps: Steps) -> None:
        self._client, self._steps = client, steps

    def __getattr__(self, name: str) -> Any:
        self._steps.check()
        return getattr(self._client, name)


@dataclass
class Process:
    """A process on the servers.

    Attributes:
        store: Its store.
        container: Its container.
        steps: What happens to it.
    """

    store: ServedStore
    container: Container
    steps: Steps


class Servers:
    """What outlives processes."""

    def __init__(self, client: Any = None) -> None:
        self.tables: Any = MemoryDynamo() if client is None else client
        self.data = open_store(":memory:", create=True)
        self.queue = Queue()
        self.clock, self.ids = FixedClock(), CountingIds()

    def process(self, *, lease_ms: int = 15_000, queue: bool = True, prefix: str = "") -> Process:
        """One more process. It waits by moving the clock of all."""
        steps = Steps()
        client = _UntilItDies(self.tables, steps)

        def wait(seconds: float) -> None:
            self.clock.advance(seconds=max(0.001, seconds))

        def stand_in(name: str, part: Any) -> Any:
            return FaultyPort({"graph": self.data.graph, "vectors": self.data.vectors}.get(name, part), name, steps)  # type: ignore[arg-type]

        store = ServedStore(
            Dynamo(lambda: client, prefix, sleep=wait, randomness=lambda: 0.5),
            _no_server,
            _no_server,
            index="none",
            publisher=self.queue if queue else None,
            now=self.clock.now,
            dimension=DIMENSION,
            lease_ms=lease_ms,
            identity_seconds=0.0,
            randomness=lambda: 0.5,
            wrap=stand_in,
        )
        opened: Any = store
        opened.graph, opened.vectors = ReadersGraph(self.data, store.marks.applied), ReadersVectors(self.data, store.marks.applied)
        opened.boards._erasers = (self._erase, store.journal.erase)
        opened.boards._sleep = opened.commits._sleep = wait
        opened.commits._monotonic = self.clock.monotonic
        settings = {"PULSE_KG_STORE": "aws", "PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "10000", "PULSE_KG_MAX_OPEN_SESSIONS": "10000"}
        container = Container(
            Settings.from_environment(settings),
            store,
            HashingEmbedder(),
            clock=self.clock,
            ids=self.ids,
            one_call=store.one_call,
            outbox=store.commits,
        )
        return Process(store, container, steps)

    def world(self, process: Process) -> World:
        """The tools of a process."""
        return World(process.container, self.clock, self.ids)

    def board(self, process: Process, board_id: str) -> None:
        """Makes a board; SQLite wants it for its own."""
        self.data.boards.create(board_id, board_id, now=self.clock.now())
        process.store.boards.create(board_id, board_id, now=self.clock.now())

    def stored(self, board_id: str) -> tuple[dict[str, Node], dict[str, Edge], dict[str, tuple[TextVector, bool]]]:
        """What graph and index have of a board, whoever may see it."""
        return (
            {n.node_id: n for n in self.data.graph.all_nodes(board_id)},
            {e.edge_id: e for e in self.data.graph.all_edges(board_id)},
            {node_id: (vector, live) for node_id, vector, live in self.data.vectors.all_vectors(board_id)},
        )

    def staged(self) -> list[tuple[str, str]]:
        """The keys of all parts and of what says that there are some."""
        boards = [key for key in self.tables.tables["boards"] if key[0].startswith("parts#") or key[1].startswith("stage#")]
        return sorted(boards + [key for key in self.tables.tables["sessions"] if key[1].startswith("answer#")])

    def close(self) -> None:
        """Forgets everything."""
        self.data.close()

    def _erase(self, board_id: str) -> dict[str, int]:
        tables = ("vectors", "edges", "nodes")
        with self.data._database.writing() as connection:
            for table in tables:
                connection.execute(f"DELETE FROM {table} WHERE board_id = ?", (board_id,))  # noqa: S608
        self.data.vectors.forget(board_id)
        return dict.fromkeys(tables, 0)


@contextmanager
def servers(client: Any = None) -> Iterator[Servers]:
    """Empty servers."""
    made = Servers(client)
    try:
        yield made
    finally:
        made.close()


def _no_server() -> Any:
    raise AssertionError("a stand-in should have been asked")


def applied(process: Process, plan: CommitPlan) -> None:
    """Sends a plan's writes once more, as somebody late would."""
    process.store.commits._graph.apply(plan)
    process.store.commits._vectors.apply(plan)
