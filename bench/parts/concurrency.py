"""Commits a second of several processes on one file, on one board and on eight."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from bench.context import Context, Part, Table
from bench.stats import Summary, ratio
from bench.world import STEPS, NewEdge, NewNode, Refused, Writer, calling, make_agent, make_boards, opened
from pulse_kg.adapters.embedding.hashing import HashingEmbedder

_PROCESSES = (1, 2, 4, 8)
_FEWER = (1, 4)
_BOARDS = (1, 8)
_SIZE = 10
_PATIENCE_SECONDS = 300.0
_NOTES = [
    f"Each process prepares its sessions of {_SIZE} nodes and {_SIZE} edges (begin, adds, propose: sessions prepared a second, a write "
    "transaction a call), waits for the others, then commits them one after the other. SQLite has one writer for all boards of a file; "
    "the machine's cores bound the rest.",
]

_Told = tuple[float, float, int]
"""From and until when a phase took, and how many calls were refused in it."""


def run(context: Context) -> Part:
    """Measures every number of processes on both numbers of boards, some times over."""
    sessions, times = context.times(20, 5), context.times(3, 1)
    counts = _FEWER if context.quick else _PROCESSES
    figures: dict[str, Any] = {"sessions_a_process": sessions, "nodes_a_session": _SIZE}
    rows: list[tuple[Any, ...]] = []
    with context.progress("concurrent commits", len(_BOARDS) * len(counts) * times) as advance:
        for boards in _BOARDS:
            alone = 0.0
            for processes in counts:
                prepared, committed, refused = list[float](), list[float](), 0
                for round_ in range(times):
                    store = context.scratch / f"concurrency-{boards}-{processes}-{round_}.db"
                    rates = _round(store, boards, processes, sessions)
                    prepared.append(rates[0])
                    committed.append(rates[1])
                    refused += rates[2]
                    advance()
                commits, preparing = Summary.of(committed), Summary.of(prepared)
                alone = alone or commits.p50
                figures[f"{boards}_boards_{processes}_processes"] = {
                    "commits_per_second": commits.as_dict(),
                    "sessions_prepared_per_second": preparing.as_dict(),
                    "refused": refused,
                }
                rows.append(
                    (boards, processes, commits.n, commits.p50, commits.min, commits.max, ratio(commits.p50, alone), preparing.p50, refused)
                )
    columns = ("boards", "processes", "n", "commits/s p50", "min", "max", "× one process", "prepared/s p50", "refused")
    return Part(figures, [Table("Concurrent processes on one file", columns, rows)], _NOTES)


def _round(store: Path, boards: int, processes: int, sessions: int) -> tuple[float, float, int]:
    board_ids = [f"board_{i}" for i in range(boards)]
    with opened(store, HashingEmbedder(), create=True) as container:
        make_boards(container, board_ids)
        keys = [make_agent(container, f"worker-{i}", board_ids) for i in range(processes)]
    spawn = multiprocessing.get_context("spawn")
    barrier, told = spawn.Barrier(processes), spawn.SimpleQueue()
    workers = [
        spawn.Process(target=_work, args=(store, board_ids[i % boards], i, keys[i], sessions, barrier, told)) for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(_PATIENCE_SECONDS)
        if worker.exitcode != 0:
            for each in workers:
                each.kill()
            raise RuntimeError(f"a worker ended with {worker.exitcode}")
    phases = [told.get() for _ in workers]
    done = processes * sessions
    refused = sum(commit[2] for _, commit in phases)
    return done / _lasted([prepare for prepare, _ in phases]), (done - refused) / _lasted([commit for _, commit in phases]), refused


def _lasted(phases: Sequence[_Told]) -> float:
    return max(until for _, until, _ in phases) - min(since for since, _, _ in phases)


def _work(
    store: Path, board_id: str, number: int, key: str, sessions: int, barrier: Barrier, told: SimpleQueue[tuple[_Told, _Told]]
) -> None:
    """One process: prepares, waits, commits."""
    with opened(store, HashingEmbedder()) as container:
        writer = Writer(calling(container, key), {}, board_id=board_id)
        writer.warm(_nodes(number, sessions))
        spent = dict.fromkeys(STEPS, 0.0)
        barrier.wait(_PATIENCE_SECONDS)
        since = time.monotonic()
        ready = []
        for session in range(sessions):
            session_id, candidates = writer.stated(f"worker-{number}-{session}", _nodes(number, session), spent)
            writer.call("propose_reconciliation", {"session_id": session_id})
            ready.append((session_id, candidates))
        prepared = (since, time.monotonic(), 0)
        barrier.wait(_PATIENCE_SECONDS)
        since, refused = time.monotonic(), 0
        for session_id, candidates in ready:
            try:
                writer.committed(session_id, candidates, spent)
            except Refused:
                refused += 1
        told.put((prepared, (since, time.monotonic(), refused)))


def _nodes(number: int, session: int) -> list[NewNode]:
    keys = [f"w{number}s{session}n{i}" for i in range(_SIZE)]
    return [
        NewNode(
            key,
            {
                "node_type": "Decision",
                "title": f"Worker {number} decides {key}",
                "body": f"The text of decision {i} of session {session} by worker {number}. " * 4,
                "source_ref": {"spec_id": key, "section": "statement"},
            },
            (NewEdge("depends_on", keys[i - 1]),),
        )
        for i, key in enumerate(keys)
    ]
