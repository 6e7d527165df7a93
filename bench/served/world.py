"""Stores of the benchmark on local servers: tables, an index and a queue of its own, boards in the shared graph, all removed at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from bench import boards as embedded
from bench import synthetic
from bench.context import Context, Skipped
from bench.served.trips import AUTHENTICATE, PUBLISH, CountedClient, CountedLane, CountedSearch, Labelled, Recorder
from bench.world import BOARD as USUAL
from bench.world import LIMITS, Call, NewNode, TimedEmbedder, Writer, answer_of, make_agent, opened
from pulse_kg.adapters.dynamodb.client import Dynamo, connect
from pulse_kg.adapters.dynamodb.tables import TABLES
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.adapters.gremlin.connection import GremlinConnection
from pulse_kg.adapters.gremlin.lane import Lane
from pulse_kg.adapters.lazily import Lazily
from pulse_kg.adapters.opensearch.client import OpenSearchClient
from pulse_kg.adapters.opensearch.client import connect as connect_search
from pulse_kg.adapters.served.store import ServedStore
from pulse_kg.adapters.sqs.publisher import SqsEventPublisher
from pulse_kg.adapters.system import SystemClock
from pulse_kg.bootstrap import DIMENSION, Container, embedder_of
from pulse_kg.cli.stack_prepare import prepare
from pulse_kg.domain.model import TextVector
from pulse_kg.domain.text import embedding_text
from pulse_kg.endpoints import Endpoints, endpoints_of
from pulse_kg.errors import PulseError, StoreUnavailable
from pulse_kg.mcp.envelope import new_correlation_id
from pulse_kg.ports.embedder import Embedder, ModelInfo
from pulse_kg.settings import Settings
from pulse_kg.usecases.boards import create_board
from pulse_kg.usecases.rebuild import rebuild_board

BOARD: Final = "bench_served_{}"
"""Boards of the benchmark, which nobody else has."""
_LOCAL_HOSTS: Final = ("http://127.0.0.1:", "http://localhost:")
_PARTS: Final = ("sessions", "graph", "vectors", "commits", "boards", "identity", "rates")
_PLANNED: Final = 160  # sessions of ten, for all parts together
_KEPT_SECONDS: Final = 60.0  # how long a key is remembered: the longest that is allowed


def endpoints_from(file: Path | None) -> Endpoints:
    """The endpoints of a file of variables; without one, those of the environment or of the local servers.

    Raises:
        Skipped: There are none, or they are not of this machine: the benchmark makes and removes tables.
    """
    named: dict[str, str] = {}
    if file is not None:
        try:
            lines = file.read_text("utf-8").splitlines()
        except OSError as error:
            raise Skipped(f"{file} can't be read") from error
        named = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    try:
        found = endpoints_of({**os.environ, **named})
    except StoreUnavailable as error:
        raise Skipped(error.message) from error
    if not (found.aws_url or "").startswith(_LOCAL_HOSTS):
        raise Skipped("it makes tables and removes them, so it runs on local servers only; start them with 'pulse-kg up'")
    return found


@dataclass(frozen=True)
class RememberedEmbedder:
    """An embedder that has the vectors of some texts already."""

    embedder: Embedder
    known: Mapping[str, TextVector]

    def info(self) -> ModelInfo:
        """See `Embedder.info`."""
        return self.embedder.info()

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        """See `Embedder.embed`."""
        if all(text in self.known for text in texts):
            return [self.known[text] for text in texts]
        return self.embedder.embed(texts, timeout_seconds=timeout_seconds)


@dataclass(frozen=True)
class Opened:
    """One opened store, as a function of its own would have it.

    Attributes:
        container: With every part labelled.
        store: The store itself.
        recorder: Notes its trips.
        embedder: Its embedder, whose time is known.
    """

    container: Container
    store: ServedStore
    recorder: Recorder
    embedder: TimedEmbedder

    def calling(self, key: str) -> Call:
        """Calls in this process, each noted, with the check of the key apart."""
        host = self.container.tool_host()

        def call(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            with self.recorder.call(AUTHENTICATE):
                caller = host.authenticate(key)
            with self.recorder.call(tool):
                outcome = host.call(caller, tool, dict(arguments), correlation_id=new_correlation_id())
            return answer_of(tool, outcome.body, is_error=outcome.is_error)

        return call

    def writer(self, key: str, board_id: str, ids: dict[str, str]) -> Writer:
        """Runs sessions on a board."""
        return Writer(self.calling(key), ids, self.embedder, board_id)


@dataclass
class World:
    """What the parts of a run share.

    Attributes:
        context: The run.
        endpoints: The benchmark's own tables and index.
        embedder: The model.
        boards: Size → the nodes of a loaded board by their keys in the data, and how long it took to load.
        planned: Size → the sessions for such a board that no part has run yet.
    """

    context: Context
    endpoints: Endpoints
    embedder: Embedder
    boards: dict[int, tuple[dict[str, str], float]] = field(default_factory=dict)
    planned: dict[int, list[list[NewNode]]] = field(default_factory=dict)

    @contextmanager
    def opened(self, *, publishes: bool = False, units: bool = False, embedder: Embedder | None = None) -> Iterator[Opened]:
        """Opens the store anew, with connections and memories of its own.

        Args:
            publishes: Whether events are sent; else they wait in the outbox.
            units: See `CountedClient`.
            embedder: Instead of the run's.
        """
        recorder, clock = Recorder(), SystemClock()
        timed = TimedEmbedder(embedder or self.embedder)
        store = self._store(recorder, clock, publishes=publishes, units=units)
        shown: Any = _Shown(store, recorder)
        settings = Settings.from_environment({**LIMITS, "PULSE_KG_STORE": "aws"})
        try:
            yield Opened(
                Container(settings, shown, timed, clock=clock, one_call=store.one_call, outbox=store.commits), store, recorder, timed
            )
        finally:
            store.close()

    def _store(self, recorder: Recorder, clock: SystemClock, *, publishes: bool, units: bool) -> ServedStore:
        e = self.endpoints
        publisher = None
        if publishes and e.queue_url:
            publisher = SqsEventPublisher(Lazily(lambda: CountedClient(connect(e, "sqs"), "sqs", recorder)), e.queue_url)
        store: ServedStore

        def publish(board_id: str) -> None:
            with recorder.step(PUBLISH):
                store.commits.publish(board_id)

        store = ServedStore(
            Dynamo(lambda: CountedClient(connect(e), "dynamodb", recorder, units=units), e.table_prefix),
            lambda: GremlinConnection(
                e.gremlin_url, open_lane=lambda timeout: CountedLane(Lane(e.gremlin_url, {}, timeout=timeout), recorder)
            ),
            lambda: OpenSearchClient(lambda: CountedSearch(connect_search(e.opensearch_url), recorder)),
            index=f"{e.table_prefix}nodes",
            publisher=publisher,
            now=clock.now,
            dimension=DIMENSION,
            identity_seconds=_KEPT_SECONDS,
            on_applied=publish,
            wrap=lambda name, part: Labelled(part, name, recorder),
        )
        return store

    def board(self, size: int) -> tuple[str, dict[str, str]]:
        """A loaded board and its nodes by their keys in the data; loaded at first use."""
        board_id = BOARD.format(size)
        if size not in self.boards:
            self.boards[size] = self._loaded(board_id, size)
        return board_id, self.boards[size][0]

    def _loaded(self, board_id: str, size: int) -> tuple[dict[str, str], float]:
        """Replays the audit log of an embedded board, whose vectors are known, into the served store."""
        embedder = RememberedEmbedder(self.embedder, self._vectors(size))
        made = embedded.loaded(self.context, size, embedder, board_id=board_id)
        started = time.monotonic()
        with opened(made.path, embedder) as source, self.opened(embedder=embedder) as target:
            board = source.boards.board(board_id)
            if board is None:
                raise RuntimeError(f"the loaded file has no board {board_id}")
            with self.context.progress(f"a board of {size} nodes into the servers", board.commit_seq) as advance:
                rebuild_board(board, source.commits, target.container.services, progress=lambda *_: advance())
        return made.ids, round(time.monotonic() - started, 1)

    def _vectors(self, size: int) -> Mapping[str, TextVector]:
        """Text → vector, of the usual benchmark's board of that size."""
        usual = embedded.loaded(self.context, size, self.embedder)
        with opened(usual.path, self.embedder) as container:
            nodes = {n.node_id: n for n in container.graph.all_nodes(USUAL)}
            vectors = container.vectors.all_vectors(USUAL)
            return {embedding_text(nodes[i].title, nodes[i].body): vector for i, vector, _ in vectors}

    def facts(self) -> dict[str, Any]:
        """What the times are of."""
        with self.opened() as target:
            search = target.store.index_client.request("GET", "/")["version"]["number"]
        return {
            "aws": "ministack, an emulator: what it takes says nothing of DynamoDB and SQS",
            "graph": "JanusGraph over BerkeleyDB: what it takes says nothing of Neptune",
            "opensearch": f"{search}, one node, refreshed each 50 ms",
            "model": self.embedder.info().model_id,
        }

    def sessions(self, board_size: int, *, count: int, tens: int = 1) -> list[list[NewNode]]:
        """Further sessions for a board, to be committed in this order; no two parts get the same.

        Args:
            board_size: Nodes of the board.
            count: How many sessions.
            tens: Of how many tens of nodes.
        """
        if board_size not in self.planned:
            self.planned[board_size] = synthetic.sessions(self.context, board_size, count=_PLANNED, size=10)
        ready = self.planned[board_size]
        if len(ready) < count * tens:
            raise RuntimeError("more sessions are wanted than were planned")
        taken, self.planned[board_size] = ready[: count * tens], ready[count * tens :]
        return [[node for ten in taken[i : i + tens] for node in ten] for i in range(0, len(taken), tens)]

    def new_board(self, name: str) -> str:
        """An empty board."""
        board_id = BOARD.format(name)
        with self.opened() as target:
            create_board(board_id, None, boards=target.container.boards, now=target.container.clock.now())
        return board_id

    def key(self, name: str, board_ids: list[str]) -> str:
        """A new agent's key."""
        with self.opened() as target:
            return make_agent(target.container, name, board_ids)


class _Shown:
    """The store as a container sees it: the methods of its parts are steps, its own are passed on."""

    def __init__(self, store: ServedStore, recorder: Recorder) -> None:
        self._store, self._recorder = store, recorder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return found if callable(found) else Labelled(found, name, self._recorder)


@contextmanager
def made(context: Context, endpoints: Endpoints) -> Iterator[World]:
    """A world with empty stores, removed at the end with all that was written.

    Raises:
        Skipped: A server does not answer.
    """
    from botocore.exceptions import BotoCoreError

    own = replace(endpoints, table_prefix=f"bench{os.getpid()}_", queue_url=None)
    world = World(context, own, chosen_embedder())
    with ExitStack() as stack:
        try:
            stack.callback(_remove_tables, own)
            queue_url = str(prepare(own)["queue_url"])
        except BotoCoreError as error:
            stack.pop_all()
            raise Skipped("the emulator of AWS does not answer; start the local servers with 'pulse-kg up'") from error
        except PulseError as error:
            raise Skipped(error.message) from error
        stack.callback(_remove_boards, world)
        yield replace(world, endpoints=replace(own, queue_url=queue_url))


def chosen_embedder() -> Embedder:
    """The real model where it was built, else hashed vectors."""
    embedder = embedder_of(Settings())
    try:
        embedder.embed(["there"])
    except PulseError:
        return HashingEmbedder()
    return embedder


def _remove_boards(world: World) -> None:
    with world.opened() as target:
        for board in target.store.boards.boards():
            target.store.graph.erase(board.board_id)
        target.store.index_client.request("DELETE", f"/{world.endpoints.table_prefix}nodes_1", ignore=404)


def _remove_tables(endpoints: Endpoints) -> None:
    client, sqs, prefix = connect(endpoints), connect(endpoints, "sqs"), endpoints.table_prefix
    for table in TABLES:
        with suppress(client.exceptions.ResourceNotFoundException):
            client.delete_table(TableName=prefix + table.name)
    for name in ("events.fifo", "events_dead.fifo"):
        with suppress(sqs.exceptions.QueueDoesNotExist):
            sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=prefix + name)["QueueUrl"])
