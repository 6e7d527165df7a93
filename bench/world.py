"""Stores, agents and sessions of the benchmark, through the same tools as any agent's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse_kg.bootstrap import Container, open_container
from pulse_kg.domain.model import TextVector
from pulse_kg.mcp.envelope import new_correlation_id
from pulse_kg.ports.embedder import Embedder, ModelInfo
from pulse_kg.settings import API_KEY_VARIABLE, PREFIX, Settings
from pulse_kg.usecases.boards import create_board
from pulse_kg.usecases.identity import create_agent

BOARD = "bench"
LIMITS = {
    "PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "100000",
    "PULSE_KG_MAX_OPEN_SESSIONS": "10000",
    "PULSE_KG_MAX_NODE_CANDIDATES": "2000",
    "PULSE_KG_MAX_EDGE_CANDIDATES": "4000",
}
"""Raised, so that a benchmark is not slowed by what protects a server from its clients."""

Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""One tool call: the name without the prefix, the arguments; the answer."""
STEPS = ("begin", "add_node", "add_edge", "propose", "commit")


class Refused(RuntimeError):
    """A tool refused what the benchmark asked of it."""


class TimedEmbedder:
    """An embedder that adds up the time that it takes.

    Attributes:
        seconds: Spent in `embed` so far.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.seconds = 0.0

    def info(self) -> ModelInfo:
        """See `Embedder.info`."""
        return self._embedder.info()

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        """See `Embedder.embed`."""
        started = time.perf_counter()
        try:
            return self._embedder.embed(texts, timeout_seconds=timeout_seconds)
        finally:
            self.seconds += time.perf_counter() - started


def settings_of(path: Path, **more: str) -> Settings:
    """The settings of a store."""
    return Settings.from_environment({**LIMITS, "PULSE_KG_STORE": f"sqlite:{path}", **more})


def environment_of(path: Path, key: str, **more: str) -> dict[str, str]:
    """The variables of a process that works on a store."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return {**others, **LIMITS, "PULSE_KG_STORE": f"sqlite:{path}", API_KEY_VARIABLE: key, **more}


@contextmanager
def opened(path: Path, embedder: Embedder, *, create: bool = False) -> Iterator[Container]:
    """A store, closed at the end."""
    container = open_container(settings_of(path), create=create, embedder=embedder)
    try:
        yield container
    finally:
        container.close()


def make_boards(container: Container, board_ids: Sequence[str]) -> None:
    """Makes boards."""
    for board_id in board_ids:
        create_board(board_id, None, boards=container.boards, now=container.clock.now())


def make_agent(container: Container, name: str, board_ids: Sequence[str] = (BOARD,)) -> str:
    """Makes an agent and gives its key."""
    issued = create_agent(
        name,
        "Full Control",
        board_ids,
        (),
        identity=container.identity,
        boards=container.boards,
        ids=container.ids,
        now=container.clock.now(),
    )
    return issued.api_key


def calling(container: Container, key: str) -> Call:
    """Calls in this process, each with the check of the key that a server makes."""
    host = container.tool_host()

    def call(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        outcome = host.call(host.authenticate(key), tool, dict(arguments), correlation_id=new_correlation_id())
        return answer_of(tool, outcome.body, is_error=outcome.is_error)

    return call


def answer_of(tool: str, body: Mapping[str, Any], *, is_error: bool) -> Mapping[str, Any]:
    """The answer of a call.

    Raises:
        Refused: It is an envelope.
    """
    if is_error:
        error = body["error"]
        raise Refused(f"{tool}: {error['code']}: {error['message']} {error['details']}")
    return body


@dataclass(frozen=True)
class NewEdge:
    """An edge of a session: to a node by its key in the benchmark's data."""

    rel_type: str
    to: str


@dataclass(frozen=True)
class NewNode:
    """A node of a session.

    Attributes:
        key: Its name in the benchmark's data.
        arguments: As add_node_candidate takes them, without the session.
        edges: The edges that go from it.
    """

    key: str
    arguments: Mapping[str, Any]
    edges: tuple[NewEdge, ...] = ()


@dataclass(frozen=True)
class Times:
    """What a session took, in milliseconds; of the adds all together.

    Attributes:
        steps: One number for each of `STEPS`.
        embedding: The part of them that the embedding model took, where it ran in this process.
        processor: What all threads of this process had of the processors, which other programs disturb less than the time.
        calls: How many calls it was.
    """

    steps: Mapping[str, float]
    embedding: float
    processor: float
    calls: int

    @property
    def total(self) -> float:
        """All steps."""
        return sum(self.steps.values())


@dataclass
class Writer:
    """Runs sessions on a board, and remembers which node came of what.

    Attributes:
        call: Reaches the tools.
        ids: Key of a node → its id on the board.
        embedder: Whose time is shown apart, if it is known.
        board_id: The board.
    """

    call: Call
    ids: dict[str, str]
    embedder: TimedEmbedder | None = None
    board_id: str = BOARD
    calls: int = field(default=0, init=False)

    def session(self, source_id: str, nodes: Sequence[NewNode], *, propose: bool = True, source_type: str = "card") -> Times:
        """Begins, adds, proposes and commits; each node is expected to become one of its own."""
        spent, calls = dict.fromkeys(STEPS, 0.0), self.calls
        before, processor = self.embedder.seconds if self.embedder else 0.0, time.process_time()
        session_id, candidates = self.stated(source_id, nodes, spent, source_type=source_type)
        if propose:
            self._timed(spent, "propose", "propose_reconciliation", {"session_id": session_id})
        self.committed(session_id, candidates, spent)
        embedding = (self.embedder.seconds - before) * 1000 if self.embedder else 0.0
        return Times(spent, embedding, (time.process_time() - processor) * 1000, self.calls - calls)

    def stated(
        self, source_id: str, nodes: Sequence[NewNode], spent: dict[str, float], *, source_type: str = "card"
    ) -> tuple[str, dict[str, str]]:
        """A session with all its candidates; gives its id, and key → candidate id."""
        begin = {"board_id": self.board_id, "source_type": source_type, "source_id": source_id, "source_version": 1}
        session_id: str = self._timed(spent, "begin", "begin_consolidation", begin)["session_id"]
        candidates: dict[str, str] = {}
        for node in nodes:
            added = self._timed(spent, "add_node", "add_node_candidate", {"session_id": session_id, **node.arguments})
            candidates[node.key] = added["candidate_id"]
        for node in nodes:
            for edge in node.edges:
                dst = {"candidate_id": candidates[edge.to]} if edge.to in candidates else {"node_id": self.ids[edge.to]}
                ends = {"src": {"candidate_id": candidates[node.key]}, "dst": dst, "rel_type": edge.rel_type}
                self._timed(spent, "add_edge", "add_edge_candidate", {"session_id": session_id, **ends})
        return session_id, candidates

    def committed(self, session_id: str, candidates: Mapping[str, str], spent: dict[str, float]) -> None:
        """Commits, and notes the ids of the nodes."""
        answer = self._timed(spent, "commit", "commit_consolidation", {"session_id": session_id})
        keys = {candidate: key for key, candidate in candidates.items()}
        for kind in ("added", "updated", "noop"):
            self.ids.update({keys[n["candidate_id"]]: n["node_id"] for n in answer["applied"][kind]})
        if len(answer["applied"]["added"]) != len(candidates):
            raise Refused(f"a session of {len(candidates)} new nodes added {len(answer['applied']['added'])}")

    def warm(self, nodes: Sequence[NewNode]) -> None:
        """A session that is aborted before its commit: the model, the copies in memory and the statements are there after it."""
        session_id, _ = self.stated("warm-up", nodes, dict.fromkeys(STEPS, 0.0))
        self.call("propose_reconciliation", {"session_id": session_id})
        self.call("abort_consolidation", {"session_id": session_id})

    def _timed(self, spent: dict[str, float], step: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self.calls += 1
        started = time.perf_counter()
        answer = self.call(tool, arguments)
        spent[step] += (time.perf_counter() - started) * 1000
        return answer
