"""What the processes of the crash tests do: commit in a loop and say so, make a store, erase a board."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import Container, open_container
from pulse_kg.mcp.local_host import LocalToolHost
from pulse_kg.settings import Settings
from pulse_kg.usecases.boards import create_board, erase_board
from pulse_kg.usecases.identity import create_agent
from tests.support.processes import Pipe

_SOON_SECONDS = 30.0
WORDS = (
    "anchor basket candle dagger engine falcon garden hammer island jacket kettle ladder magnet needle orchid pepper quartz ribbon saddle "
    "temple umbrella violin walnut xenon yogurt zipper amber birch cobalt denim ember flint glacier harbor indigo jasmine krypton lantern"
).split()


@contextmanager
def store(path: str | Path, *, create: bool = False) -> Iterator[Container]:
    """A container on a file, with the machine's own clock and ids and no model."""
    settings = Settings.from_environment({"PULSE_KG_STORE": f"sqlite:{path}", "PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "100000"})
    container = open_container(settings, create=create, embedder=HashingEmbedder())
    try:
        yield container
    finally:
        container.close()


def new_agent(container: Container, name: str, *boards: str) -> str:
    """Makes an agent and gives its key."""
    issued = create_agent(
        name,
        "Full Control",
        boards,
        (),
        identity=container.identity,
        boards=container.boards,
        ids=container.ids,
        now=container.clock.now(),
    )
    return issued.api_key


class Unexpected(AssertionError):
    """A refusal that nothing in the test accounts for."""


@dataclass
class Caller:
    """An agent at the tools of one store.

    Attributes:
        host: The tools.
        key: Its key.
    """

    host: LocalToolHost
    key: str

    def call(self, tool: str, *, allowed: tuple[str, ...] = (), **arguments: Any) -> Mapping[str, Any] | None:
        """The answer; None for a refusal with a code that is allowed.

        Raises:
            Unexpected: Another refusal.
        """
        outcome = self.host.call(self.host.authenticate(self.key), tool, arguments, correlation_id="-")
        if not outcome.is_error:
            return outcome.body
        error = outcome.body["error"]
        if error["code"] in allowed:
            return None
        message = f"{tool}: {error['code']} {error['message']} {error['details']}"
        raise Unexpected(message)


@dataclass
class Committer:
    """Makes one session after another: two decisions, a learning, edges, and in some a new head of the chain that all share.

    Attributes:
        container: The store.
        key: The agent's key.
        board: The board.
        name: Different for each committer of a test.
        root: The oldest node of the chain; empty for no chain.
        every: Each how manieth session goes for the chain's head.
        say: Told of every step.
        conflicts: How many commits were refused with commit_conflict.
        overtaken: How often another had taken the head before the session saw it.
    """

    container: Container
    key: str
    board: str
    name: str
    root: str = ""
    every: int = 2
    say: Callable[[str, Any], None] = field(default=lambda _kind, _what: None)
    conflicts: int = 0
    overtaken: int = 0

    def __post_init__(self) -> None:
        self._caller = Caller(self.container.tool_host(), self.key)
        self._words = random.Random(self.name)
        self._count = 0

    def commit_one(self) -> Mapping[str, Any]:
        """A whole session; the answer of its commit."""
        self._count += 1
        begun = self._call(
            "begin_consolidation",
            board_id=self.board,
            source_type="run",
            source_id=self.name,
            source_version=self._count,
            payload_hash=f"sha256:{self._words.getrandbits(256):064x}",
        )
        session_id = begun["session_id"]
        self.say("begun", session_id)
        for node_type in ("Decision", "Learning", "Decision"):
            self._call("add_node_candidate", session_id=session_id, node_type=node_type, title=self._title(), body=self._title())
        self._edge(session_id, {"candidate_id": "cand_001"}, "relates_to", {"candidate_id": "cand_002"})
        if self.root and self._count % self.every == 0:
            answer = self._commit_a_head(session_id)
        else:
            self._call("propose_reconciliation", session_id=session_id)
            self.say("committing", session_id)
            answer = self._call("commit_consolidation", session_id=session_id)
        self.say("committed", answer)
        return answer

    def _commit_a_head(self, session_id: str) -> Mapping[str, Any]:
        while True:
            self._edge(session_id, {"candidate_id": "cand_003"}, "supersedes", {"node_id": head_of(self.container, self.board, self.root)})
            proposed = self._call("propose_reconciliation", session_id=session_id)
            if proposed["proposals"][2]["hint"] != "SUPERSEDE":  # another took that head before this session saw it: look for the next
                self.overtaken += 1
                continue
            self.say("committing", session_id)
            answer = self._caller.call("commit_consolidation", allowed=("commit_conflict",), session_id=session_id)
            if answer is not None:
                return answer
            self.conflicts += 1

    def _title(self) -> str:
        return " ".join(self._words.choices(WORDS, k=6))

    def _edge(self, session_id: str, src: Mapping[str, str], rel_type: str, dst: Mapping[str, str]) -> None:
        self._call("add_edge_candidate", session_id=session_id, src=src, dst=dst, rel_type=rel_type)

    def _call(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        answer = self._caller.call(tool, **arguments)
        assert answer is not None
        return answer


def head_of(container: Container, board: str, node_id: str) -> str:
    """The live head of the chain that a node is in.

    On the served stores a node may show for a moment who supersedes it before that one can be seen: then the look is repeated.
    """
    until = time.monotonic() + _SOON_SECONDS
    while True:
        node = container.graph.nodes(board, [node_id]).get(node_id)
        if node is not None and node.superseded_by is None:
            return node_id
        if node is not None:
            node_id = node.superseded_by or node_id
            continue
        assert time.monotonic() < until, f"{node_id} supersedes another node and is not there"
        time.sleep(0.02)


# What runs in a process of its own. Each function gets the pipe first.


def commit_so_many(pipe: Pipe, path: str, key: str, board: str, name: str, root: str, count: int) -> None:
    """Says that it is ready, waits for a word, commits `count` sessions, and says each answer and at last its conflicts."""
    with store(path) as container:
        committer = Committer(container, key, board, name, root)
        pipe.send("ready")
        pipe.recv()
        for _ in range(count):
            pipe.send(committer.commit_one())
        pipe.send(committer.conflicts)


def commit_for_ever(pipe: Pipe, path: str, key: str, board: str, name: str, root: str) -> None:
    """Commits until it is killed, and says every step before it takes the next."""
    with store(path) as container:
        committer = Committer(container, key, board, name, root, every=3, say=lambda kind, what: pipe.send((kind, what)))
        pipe.send(("ready", None))
        while True:
            committer.commit_one()


def make_store(pipe: Pipe, path: str, boards: tuple[str, ...]) -> None:
    """Makes a store with boards and an agent."""
    pipe.send("ready")
    with store(path, create=True) as container:
        for board in boards:
            create_board(board, None, boards=container.boards, now=container.clock.now())
        pipe.send(new_agent(container, "ada", *boards))


def erase(pipe: Pipe, path: str, board: str) -> None:
    """Erases a board."""
    with store(path) as container:
        pipe.send("ready")
        pipe.send(dict(erase_board(board, boards=container.boards, now=container.clock.now())))
