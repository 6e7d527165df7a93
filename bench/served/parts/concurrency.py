"""Commits a second of several threads, each with a store of its own as functions have them, on one board and on eight."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from bench.context import Part, Table
from bench.served.context import ServedContext
from bench.served.trips import Call, LeaseWait, Trip, lease_waits
from bench.stats import Summary, ratio
from bench.world import STEPS, NewEdge, NewNode, Refused, Writer

_THREADS: Final = (1, 4, 8)
_FEWER: Final = (1, 4)
_BOARDS: Final = (1, 8)
_SIZE: Final = 10
_PATIENCE_SECONDS: Final = 300.0
_NOTES = [
    f"Each thread prepares its sessions of {_SIZE} nodes and {_SIZE} edges (begin, adds, propose), waits for the others, then commits them "
    "one after the other; it shares connections and memory with no other, so that boards are taken by their lease alone. All threads are "
    "of one Python process on the cores that the servers run on: the ratio of one board to eight is the result, and the rate is not.",
    "Lease: from the first try to take the board to the one that got it; 0 where it was free.",
]
_rounds = count(1)


@dataclass(frozen=True)
class _Told:
    since: float
    until: float
    refused: int
    calls: Sequence[Call]
    trips: Sequence[Trip]


def run(context: ServedContext) -> Part:
    """Measures every number of threads on both numbers of boards."""
    sessions = context.times(8, 2)
    threads = _FEWER if context.quick else _THREADS
    figures: dict[str, Any] = {"sessions_a_thread": sessions, "nodes_a_session": _SIZE}
    rows: list[tuple[Any, ...]] = []
    with context.progress("concurrent commits", len(_BOARDS) * len(threads)) as advance:
        for boards in _BOARDS:
            alone = 0.0
            for number in threads:
                found = _figures(_round(context, boards, number, sessions))
                alone = alone or found["commits_per_second"]
                figures[f"{boards}_boards_{number}_threads"] = found
                ms, wait = found["commit_ms"], found["lease_wait_ms"]
                rates = (found["commits_per_second"], ratio(found["commits_per_second"], alone))
                waits = (wait["p50"], wait["p95"], wait["max"], found["lease_tries"]["max"])
                rows.append((boards, number, ms["n"], *rates, ms["p50"], ms["p95"], *waits, found["refused"]))
                advance()
    columns = (
        "boards",
        "threads",
        "n",
        "commits/s",
        "× one thread",
        "commit p50 ms",
        "p95",
        "lease p50 ms",
        "p95",
        "max",
        "most tries",
        "refused",
    )
    return Part(figures, [Table("Concurrent commits (local servers)", columns, rows)], _NOTES)


def _round(context: ServedContext, boards: int, threads: int, sessions: int) -> list[_Told]:
    name = f"c{next(_rounds)}"
    board_ids = [context.world.new_board(f"{name}_{n}") for n in range(boards)]
    keys = [context.world.key(f"{name}-{n}", board_ids) for n in range(threads)]
    barrier = threading.Barrier(threads)

    def work(number: int) -> _Told:
        with context.world.opened() as opened:
            writer = opened.writer(keys[number], board_ids[number % boards], {})
            ready = [_prepared(writer, number, session) for session in range(sessions)]
            opened.recorder.taken()
            barrier.wait(_PATIENCE_SECONDS)
            since, refused = time.perf_counter(), 0
            for session_id, candidates in ready:
                try:
                    writer.committed(session_id, candidates, dict.fromkeys(STEPS, 0.0))
                except Refused:
                    refused += 1
            return _Told(since, time.perf_counter(), refused, *opened.recorder.taken())

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(threads)))


def _prepared(writer: Writer, number: int, session: int) -> tuple[str, dict[str, str]]:
    session_id, candidates = writer.stated(f"w{number}-{session}", _nodes(number, session), dict.fromkeys(STEPS, 0.0))
    writer.call("propose_reconciliation", {"session_id": session_id})
    return session_id, candidates


def _figures(told: Sequence[_Told]) -> dict[str, Any]:
    commits = [call.ms for one in told for call in one.calls if call.tool == "commit_consolidation"]
    refused = sum(one.refused for one in told)
    lasted = max(one.until for one in told) - min(one.since for one in told)
    waits: list[LeaseWait] = [wait for one in told for wait in lease_waits(one.trips)]
    lost = Counter(trip.step for one in told for trip in one.trips if trip.refused)
    return {
        "commits_per_second": round((len(commits) - refused) / lasted, 2),
        "commit_ms": Summary.of(commits).as_dict(),
        "lease_wait_ms": Summary.of([wait.ms for wait in waits]).as_dict(),
        "lease_tries": Summary.of([wait.tries for wait in waits]).as_dict(),
        "refused": refused,
        "refused_requests": dict(lost),
    }


def _nodes(number: int, session: int) -> list[NewNode]:
    keys = [f"w{number}s{session}n{i}" for i in range(_SIZE)]
    return [
        NewNode(
            key,
            {
                "node_type": "Decision",
                "title": f"Worker {number} decides {key}",
                "body": f"The text of decision {i} of session {session} by worker {number}.",
                "source_ref": {"spec_id": key, "section": "statement"},
            },
            (NewEdge("depends_on", keys[i - 1]),),
        )
        for i, key in enumerate(keys)
    ]
