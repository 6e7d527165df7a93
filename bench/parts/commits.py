"""Commits alone, with hashed vectors, on the disk and where a sync costs nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import boards, synthetic
from bench.context import Context, Part, Table
from bench.stats import Summary, ratio
from bench.world import STEPS
from pulse_kg.adapters.embedding.hashing import HashingEmbedder

_BOARD = 1_000
_MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, in a folder of its own there
_NOTES = [
    "The call commit_consolidation alone, after begin, adds with two edges a node, and propose; on a board of 1,000 nodes.",
    "sync: what the disk adds to the same commit in a file system in memory, as a share of the commit on the disk (of the medians, the "
    "two taking turns); by difference, so within the noise where it is small.",
]


def run(context: Context) -> Part:
    """Measures each size of commit in both places."""
    repetitions = {1: context.times(60, 8), 10: context.times(40, 6), 50: context.times(16, 3), 500: context.times(4, 0)}
    board = boards.loaded(context, _BOARD, HashingEmbedder())
    figures: dict[str, Any] = {}
    rows: list[tuple[Any, ...]] = []
    for size, times in ((size, times) for size, times in repetitions.items() if times):
        taken = _measured(context, board, size, times)
        disk = Summary.of(taken["disk"])
        found = {"disk_ms": disk.as_dict(), "nodes_per_second": round(size / disk.p50 * 1000, 1)}
        share: float | str = ""
        if "memory" in taken:
            memory = Summary.of(taken["memory"])
            share = round(max(0.0, 1 - ratio(memory.p50, disk.p50)), 3)
            found |= {"memory_ms": memory.as_dict(), "sync_share": share}
        figures[str(size)] = found
        rows.append((size, disk.n, disk.p50, disk.p95, disk.min, disk.max, disk.p50 / size, found["nodes_per_second"], share))
    columns = ("nodes", "n", "p50 ms", "p95 ms", "min", "max", "ms a node", "nodes/s", "sync")
    return Part(figures, [Table("Commit alone (hashed vectors, two edges a node)", columns, rows)], _NOTES)


def _measured(context: Context, board: boards.LoadedBoard, size: int, times: int) -> dict[str, list[float]]:
    planned = synthetic.sessions(context, _BOARD, count=times + 1, size=size)
    with ExitStack() as stack, context.progress(f"commits of {size}", len(planned)) as advance:
        folders = {"disk": context.scratch}
        if (memory := stack.enter_context(_in_memory())) is not None:
            folders["memory"] = memory
        writers = {
            place: stack.enter_context(boards.writer_on(board, board.copy(context, folder=folder), HashingEmbedder()))[0]
            for place, folder in folders.items()
        }
        taken: dict[str, list[float]] = {place: [] for place in writers}
        for number, nodes in enumerate(planned):
            for place, writer in writers.items():
                spent = writer.session(f"session-{number}", nodes).steps[STEPS[-1]]
                if number:  # the first warms it
                    taken[place].append(spent)
            advance()
    return taken


@contextmanager
def _in_memory() -> Iterator[Path | None]:
    """A folder in memory, removed at the end; None where there is no such file system."""
    if not _MEMORY.is_dir():
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="pulse-kg-bench-", dir=_MEMORY))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
