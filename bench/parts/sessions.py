"""Whole sessions in this process, with the real model, on boards of three sizes.

Boards and sizes take turns, session by session, so that a noisy minute falls on all of them and their ratios stay true.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from bench import boards, synthetic
from bench.context import Context, Part, Table
from bench.stats import Summary, ratio
from bench.world import STEPS, NewNode, Times, Writer
from pulse_kg.bootstrap import embedder_of
from pulse_kg.ports.embedder import Embedder
from pulse_kg.settings import Settings

_NOTES = [
    "A session is begin, one add a node, two edges a node, propose and commit, each call with the check of its key.",
    "The data's belongs_to, derives_from, violates and tests edges are reserved to the worker: they are left out of the boards; in the "
    "measured sessions relates_to goes where belongs_to would.",
    "Short: candidates with a title and no body, some 15 tokens each; else the data's own texts, some 75 tokens each, of which most of the "
    "time is arithmetic of the model. Processor: what this process had of all cores, which other programs disturb less.",
    "A board grows while it is measured, by its own size at most; then a fresh copy takes its place.",
]


@dataclass(frozen=True)
class _Kind:
    """Sessions of one size, how many of them, and whether their texts are short."""

    name: str
    size: int
    times: int
    short: bool = False


def run(context: Context) -> Part:
    """Measures every size of session on every size of board."""
    board_sizes = (100, 1_000) if context.quick else (100, 1_000, 10_000)
    kinds = (
        _Kind("1_candidates", 1, context.times(60, 4)),
        _Kind("10_candidates", 10, context.times(40, 4)),
        _Kind("50_candidates", 50, context.times(16, 1)),
        _Kind("10_short_candidates", 10, context.times(40, 4), short=True),
        _Kind("50_short_candidates", 50, context.times(16, 1), short=True),
    )
    embedder = embedder_of(Settings())
    loaded = [boards.loaded(context, size, embedder) for size in board_sizes]
    figures: dict[str, Any] = {"load_seconds": {str(b.size): b.seconds for b in loaded}}
    taken = _measured(context, loaded, embedder, kinds)
    for kind in kinds:
        figures[kind.name] = {str(n): _figures(taken[kind, n], kind.size) for n in board_sizes}
    smallest, largest = str(board_sizes[0]), str(board_sizes[-1])
    times = {k.name: ratio(figures[k.name][largest]["total_ms"]["p50"], figures[k.name][smallest]["total_ms"]["p50"]) for k in kinds}
    figures["flatness"] = {"boards": [board_sizes[0], board_sizes[-1]], **times}
    return Part(figures, [_table(figures, kinds, board_sizes)], _NOTES)


def _measured(
    context: Context, loaded: list[boards.LoadedBoard], embedder: Embedder, kinds: Sequence[_Kind]
) -> dict[tuple[_Kind, int], list[Times]]:
    taken: dict[tuple[_Kind, int], list[Times]] = {(kind, board.size): [] for kind in kinds for board in loaded}
    rounds = max(kind.times for kind in kinds)
    with ExitStack() as stack, context.progress("sessions", rounds) as advance:
        lanes = {(kind, board.size): stack.enter_context(_lane(context, board, embedder, kind)) for kind in kinds for board in loaded}
        for number in range(rounds):
            for (kind, size), lane in lanes.items():
                if due(number, of=rounds, times=kind.times):
                    taken[kind, size].append(next(lane))
            advance()
    return taken


def due(number: int, *, of: int, times: int) -> bool:
    """Whether something that happens `times` times in `of` rounds, evenly spread, happens in round `number` (from 0)."""
    return (number + 1) * times // of > number * times // of


@contextmanager
def _lane(context: Context, board: boards.LoadedBoard, embedder: Embedder, kind: _Kind) -> Iterator[Iterator[Times]]:
    """One board's sessions; each copy of the board is warmed by a session that is aborted."""
    an_epoch = min(kind.times, max(1, board.size // kind.size))
    planned = synthetic.sessions(context, board.size, count=an_epoch, size=kind.size, short=kind.short)

    def sessions() -> Generator[Times, None, None]:
        while True:
            with boards.writer_on(board, board.copy(context), embedder) as (writer, _):
                yield from _epoch(writer, planned)

    with closing(sessions()) as running:
        yield running


def _epoch(writer: Writer, planned: list[list[NewNode]]) -> Iterator[Times]:
    writer.warm(planned[0])
    for number, nodes in enumerate(planned):
        yield writer.session(f"session-{number}", nodes)


def _figures(taken: list[Times], size: int) -> dict[str, Any]:
    totals = Summary.of([t.total for t in taken])
    embedding = Summary.of([t.embedding for t in taken])
    return {
        "total_ms": totals.as_dict(),
        "steps_ms": {step: Summary.of([t.steps[step] for t in taken]).as_dict() for step in STEPS},
        "embedding_ms": embedding.as_dict(),
        "embedding_share": ratio(embedding.p50, totals.p50),
        "without_embedding_ms": Summary.of([t.total - t.embedding for t in taken]).as_dict(),
        "processor_ms": Summary.of([t.processor for t in taken]).as_dict(),
        "calls": taken[0].calls,
        "nodes_per_second": round(size / totals.p50 * 1000, 1),
    }


def _table(figures: dict[str, Any], kinds: Sequence[_Kind], board_sizes: Sequence[int]) -> Table:
    spread = ("n", "p50 ms", "p95 ms", "min", "max")
    columns = ("candidates", "board", *spread, *STEPS, "embedding", "the rest", "processor", "nodes/s", "× smallest")
    rows: list[tuple[Any, ...]] = []
    for kind in kinds:
        base = figures[kind.name][str(board_sizes[0])]["total_ms"]["p50"]
        for n in board_sizes:
            found = figures[kind.name][str(n)]
            total = found["total_ms"]
            parts = [found["steps_ms"][step]["p50"] for step in STEPS]
            parts += [found[name]["p50"] for name in ("embedding_ms", "without_embedding_ms", "processor_ms")]
            label = f"{kind.size} short" if kind.short else str(kind.size)
            numbers = (total["n"], total["p50"], total["p95"], total["min"], total["max"])
            rows.append((label, n, *numbers, *parts, found["nodes_per_second"], ratio(total["p50"], base)))
    return Table("Sessions (ms; p50 of each step; embedding is inside propose)", columns, rows)
