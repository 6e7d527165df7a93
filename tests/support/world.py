"""A whole Pulse KG in memory for tests: fixed time, fixed ids, hashed vectors, driven through the tools as an agent would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import Container, open_container, served_container
from pulse_kg.domain.ids import ulid
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.mcp.local_host import LocalToolHost
from pulse_kg.ports.embedder import Embedder
from pulse_kg.settings import Settings
from pulse_kg.usecases.boards import create_board
from pulse_kg.usecases.identity import create_agent

START = 1_767_225_600_000
"""2026-01-01T00:00:00.000Z."""


class FixedClock:
    """A clock that goes only where a test moves it."""

    def __init__(self, start: int = START) -> None:
        self.time = start

    def now(self) -> int:
        return self.time

    def monotonic(self) -> float:
        return self.time / 1000

    def advance(self, *, seconds: float = 0, days: float = 0) -> None:
        self.time += round(seconds * 1000 + days * 86_400_000)


class CountingIds:
    """Ids that count."""

    def __init__(self) -> None:
        self.count = 0

    def _next(self) -> bytes:
        self.count += 1
        return self.count.to_bytes(10, "big")

    def session_id(self, now: int) -> str:
        return f"kgs_{ulid(now, self._next())}"

    def agent_id(self, now: int) -> str:
        return f"agt_{ulid(now, self._next())}"

    def correlation_id(self) -> str:
        return self._next().hex()

    def key_parts(self) -> tuple[str, str]:
        self.count += 1
        digits = "abcdefghijklmnopqrstuvwxyz234567"
        public = "".join(digits[(self.count >> (5 * i)) & 31] for i in range(8))
        return public, digits[self.count % 32] * 52


class Refused(AssertionError):
    """A tool answered with an error envelope where a test expected an answer."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error['status']} {error['code']}: {error['message']} {error['details']}")
        self.error = error
        self.code: str = error["code"]
        self.status: int = error["status"]
        self.details: Mapping[str, Any] = error["details"]


@dataclass
class Agent:
    """An agent with its key."""

    world: World
    api_key: str
    agent_id: str
    name: str

    def try_call(self, tool: str, arguments: object) -> ToolOutcome:
        """One call, whatever it comes to."""
        host = self.world.host
        return host.call(host.authenticate(self.api_key), tool, arguments, correlation_id="c0ffee")

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One call that is expected to succeed; raises `Refused` otherwise."""
        outcome = self.try_call(tool, arguments)
        if outcome.is_error:
            raise Refused(outcome.body["error"])
        return outcome.body

    def refusal(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """The envelope's content of a call that is expected to be refused."""
        outcome = self.try_call(tool, arguments)
        assert outcome.is_error, f"{tool} was expected to be refused and answered {outcome.body}"
        error: Mapping[str, Any] = outcome.body["error"]
        return error

    def begin(
        self, source_id: str = "spec_007", version: int = 1, *, board_id: str = "alpha", source_type: str = "spec", **more: Any
    ) -> Consolidation:
        """An open session; each begin takes its own content hash unless one is given."""
        more.setdefault("payload_hash", f"sha256:{self.world.ids._next().hex():0>64}")
        begun = self.call(
            "begin_consolidation", board_id=board_id, source_type=source_type, source_id=source_id, source_version=version, **more
        )
        return Consolidation(self, begun["session_id"], begun)


@dataclass
class Consolidation:
    """An open session of an agent."""

    agent: Agent
    session_id: str
    begun: Mapping[str, Any] = field(default_factory=dict)

    def add(self, node_type: str, title: str, body: str = "", **more: Any) -> str:
        """Adds a node candidate; gives its id."""
        added = self.agent.call("add_node_candidate", session_id=self.session_id, node_type=node_type, title=title, body=body, **more)
        candidate_id: str = added["candidate_id"]
        return candidate_id

    def decide(self, title: str, body: str = "", *, section: str | None = None, spec: str = "spec_007", **attributes: Any) -> str:
        """Adds a Decision, with a stable reference if a section is given."""
        ref = {"source_ref": {"spec_id": spec, "section": section}} if section is not None else {}
        return self.add("Decision", title, body, attributes=attributes, **ref)

    def edge(self, src: str, rel_type: str, dst: str, **attributes: Any) -> str:
        """Adds an edge candidate between candidates (`cand_…`) and nodes."""
        added = self.agent.call(
            "add_edge_candidate", session_id=self.session_id, src=end(src), dst=end(dst), rel_type=rel_type, attributes=attributes
        )
        edge_candidate_id: str = added["edge_candidate_id"]
        return edge_candidate_id

    def propose(self) -> dict[str, dict[str, Any]]:
        """Candidate id → proposal."""
        answer = self.agent.call("propose_reconciliation", session_id=self.session_id)
        return {p["candidate_id"]: p for p in answer["proposals"]}

    def commit(self, *overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of the commit."""
        more = {"agent_overrides": list(overrides)} if overrides else {}
        return self.agent.call("commit_consolidation", session_id=self.session_id, **more)

    def abort(self) -> dict[str, Any]:
        """The answer of the abort."""
        return self.agent.call("abort_consolidation", session_id=self.session_id)


def end(label: str) -> dict[str, str]:
    """An end of an edge as the tool takes it."""
    return {"candidate_id": label} if label.startswith("cand_") else {"node_id": label}


@dataclass
class World:
    """The container with its clock and ids, two boards and an agent that is granted the first."""

    container: Container
    clock: FixedClock
    ids: CountingIds

    def __post_init__(self) -> None:
        self.host: LocalToolHost = self.container.tool_host()

    def board(self, board_id: str) -> None:
        """Makes a board."""
        create_board(board_id, None, boards=self.container.boards, now=self.clock.now())

    def agent(
        self, name: str = "ada", *, preset: str = "Full Control", boards: tuple[str, ...] = ("alpha",), flags: tuple[str, ...] = ()
    ) -> Agent:
        """Makes an agent."""
        issued = create_agent(
            name,
            preset,
            boards,
            flags,
            identity=self.container.identity,
            boards=self.container.boards,
            ids=self.ids,
            now=self.clock.now(),
        )
        return Agent(self, issued.api_key, issued.agent.agent_id, name)

    def node(self, node_id: str, board_id: str = "alpha") -> Any:
        """A node of the graph."""
        return self.container.graph.nodes(board_id, [node_id])[node_id]


@contextmanager
def opened(
    path: str | Path = ":memory:",
    *,
    embedder: Embedder | None = None,
    clock: FixedClock | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[World]:
    """A world that is closed at the end."""
    clock, ids = clock or FixedClock(), CountingIds()
    settings = _settings(f"sqlite:{path}", environment)
    container = open_container(settings, create=True, embedder=embedder or HashingEmbedder(), clock=clock, ids=ids)
    try:
        yield World(container, clock, ids)
    finally:
        container.close()


@contextmanager
def opened_served(*, embedder: Embedder | None = None, environment: Mapping[str, str] | None = None) -> Iterator[World]:
    """The same on the real servers."""
    from tests.support.served import fresh_endpoints

    clock, ids = FixedClock(), CountingIds()
    with fresh_endpoints() as endpoints:
        container = served_container(
            _settings("aws", environment),
            endpoints,
            embedder=embedder or HashingEmbedder(),
            clock=clock,
            ids=ids,
            identity_seconds=0.0,
        )
        try:
            yield World(container, clock, ids)
        finally:
            container.close()


def _settings(store: str, environment: Mapping[str, str] | None) -> Settings:
    return Settings.from_environment({"PULSE_KG_STORE": store, "PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "10000", **(environment or {})})
