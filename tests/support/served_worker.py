"""What the processes of the crash tests do on the served stores: commit in a loop, sweep, read, and kill themselves at a step."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pulse_kg.adapters.dynamodb import blobs
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import Container, served_container
from pulse_kg.endpoints import Endpoints
from pulse_kg.errors import StoreUnavailable
from pulse_kg.settings import Settings
from tests.support.crash_points import FaultyPort
from tests.support.crash_worker import Caller, Committer, Unexpected
from tests.support.processes import Pipe

LEASE_MS = 1_500
"""Short, so that what a dead process held is free again soon; a commit that takes longer is one more case."""
PATIENCE_SECONDS = 120.0
RETRY_SECONDS = 0.25


@dataclass(frozen=True)
class Point:
    """Where a process kills itself.

    Attributes:
        step: The step.
        when: `before` or `after` it.
        occurrence: At which of its occurrences, from 1.
        staging: Whether its commits stage their texts, as large ones do.
    """

    step: str
    when: str
    occurrence: int = 1
    staging: bool = False


class _Suicide:
    """Kills the process at a point; stands where faults stand in other tests."""

    def __init__(self, point: Point) -> None:
        self._point, self._left = point, point.occurrence

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        here = name == self._point.step
        self._left -= here
        if here and self._left == 0 and self._point.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        yield
        if here and self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def served_process(endpoints: Endpoints, point: Point | None = None, *, lease_ms: int = LEASE_MS, **more: Any) -> Iterator[Container]:
    """A container on the servers, with the machine's own clock and ids and no model."""
    settings = Settings.from_environment(
        {"PULSE_KG_STORE": "aws", "PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "10000", "PULSE_KG_MAX_OPEN_SESSIONS": "1000"}
    )
    if point is not None:
        suicide: Any = _Suicide(point)
        more["wrap"] = lambda name, part: FaultyPort(part, name, suicide)
        if point.staging:
            blobs.INLINE_BYTES, blobs.PART_BYTES = 300, 1_000  # type: ignore[misc]
    container = served_container(settings, endpoints, embedder=HashingEmbedder(), lease_ms=lease_ms, **more)
    try:
        yield container
    finally:
        container.close()


@dataclass
class Patient(Caller):
    """Calls again while a store is away; counts how often."""

    waited: int = 0

    def call(self, tool: str, *, allowed: tuple[str, ...] = (), **arguments: Any) -> Mapping[str, Any] | None:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            error: Mapping[str, Any]
            try:
                outcome = self.host.call(self.host.authenticate(self.key), tool, arguments, correlation_id="-")
            except StoreUnavailable as refused:  # before the tool: whose key it is can't be asked
                error = {"code": refused.code, "message": refused.message, "details": refused.details}
            else:
                if not outcome.is_error:
                    return outcome.body
                error = outcome.body["error"]
            if error["code"] in allowed:
                return None
            if error["code"] != "store_unavailable" or time.monotonic() > until:
                message = f"{tool}: {error['code']} {error['message']} {error['details']}"
                raise Unexpected(message)
            self.waited += 1
            time.sleep(RETRY_SECONDS)


# What runs in a process of its own. Each function gets the pipe first.


def die_committing(pipe: Pipe, endpoints: Endpoints, point: Point, key: str, board: str, name: str, root: str) -> None:
    """Commits until it comes to the point, and says every step before it takes the next."""
    with served_process(endpoints, point) as container:
        committer = Committer(container, key, board, name, root, every=3, say=lambda kind, what: pipe.send((kind, what)))
        while True:
            committer.commit_one()


def die_sweeping(pipe: Pipe, endpoints: Endpoints, point: Point) -> None:
    """Runs the relay once; says what it did if it lives."""
    with served_process(endpoints, point) as container:
        pipe.send(("swept", container.relay_outbox(30)))


def commit_so_many(pipe: Pipe, endpoints: Endpoints, key: str, board: str, name: str, root: str, count: int) -> None:
    """Says that it is ready, waits for a word, commits `count` sessions, and says each answer and at last its conflicts."""
    with served_process(endpoints) as container:
        committer = Committer(container, key, board, name, root)
        pipe.send("ready")
        pipe.recv()
        for _ in range(count):
            pipe.send(committer.commit_one())
        pipe.send(committer.conflicts)


def commit_until_told(pipe: Pipe, endpoints: Endpoints, key: str, board: str, name: str) -> None:
    """Commits until it hears a word, whatever servers do meanwhile; says each answer and at last how often it had to call again."""
    with served_process(endpoints) as container:
        committer = Committer(container, key, board, name)
        patient = Patient(container.tool_host(), key)
        committer._caller = patient
        while not pipe.poll():
            pipe.send(committer.commit_one())
        pipe.recv()
        pipe.send(patient.waited)


def read_until_told(pipe: Pipe, endpoints: Endpoints, board: str) -> None:
    """Reads a board again and again; says at last how often, of how many different states, and what was not whole."""
    looks, states, faults = 0, set[int](), list[str]()
    with served_process(endpoints) as container:
        pipe.send("ready")
        while not pipe.poll():
            commits, found = look_at(container, board)
            looks += 1
            states.add(commits)
            faults += found
        pipe.recv()
        pipe.send((looks, len(states), faults))


def look_at(container: Container, board: str) -> tuple[int, list[str]]:
    """One call's reads of a board: how many commits it sees, and what of them is missing, or seen too early."""
    with container.services.one_call():
        nodes = list(container.graph.all_nodes(board))
        edges = list(container.graph.all_edges(board))
        rows = list(container.commits.audit_rows(board))
        records = list(container.commits.outbox(board))
    added = {(entry["node_id"], row["audit_row_id"]) for row in rows for entry in row["applied"]["added"]}
    seen = {(node.node_id, node.created_seq) for node in nodes}
    told = {edge["edge_id"] for row in rows for edge in row["edges_added"]}
    faults = [f"of commit {seq} the node {node_id} is missing" for node_id, seq in sorted(added - seen)]
    faults += [f"of commit {seq} the node {node_id} is seen among {len(rows)} commits" for node_id, seq in sorted(seen - added)]
    faults += [f"the edge {edge_id} is missing or seen too early" for edge_id in sorted(told ^ {edge.edge_id for edge in edges})]
    if [record.seq for record in records] != [row["audit_row_id"] for row in rows]:
        faults.append("events and audit rows differ")
    return len(rows), faults
