"""``python -m bench.reads``: how long each tool that reads takes, by the size of the board, and what it asks of the served stores."""

from __future__ import annotations

import argparse
import gc
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from bench import boards, large, report, synthetic
from bench.context import ROOT, WORK, Context, Part, Table, default_data
from bench.read_questions import QUESTIONS, Question, Sample
from bench.run import run_parts
from bench.served.trips import AUTHENTICATE, Call, Trip, span
from bench.served.world import chosen_embedder, endpoints_from, made
from bench.stats import Summary
from bench.world import BOARD, NewNode, calling, make_agent, opened
from bench.world import Call as ToolCall

LATEST: Final = report.REPORTS / "reads.json"
"""The last full run; it is committed."""
LOCAL: Final = report.REPORTS / "local" / "reads.json"
"""The last quick run; it is not."""
NAMES: Final[Mapping[str, str]] = {
    "embedded": "every tool that reads on boards of 1,000, 10,000 and 100,000 nodes in a file",
    "served": "the same on boards of 1,000 and 10,000 nodes in the local servers, with the round trips",
}
"""Part → what it measures."""

_Key = TypeVar("_Key", bound=Hashable)

_EMBEDDED: Final = (1_000, 10_000, 100_000)
_SERVED: Final = (1_000, 10_000)
_EMBEDDED_SAMPLES: Final = 40
_SERVED_SAMPLES: Final = 20
_FEW: Final = 4
_NOTES: Final = [
    "Whole calls in one process, the check of the key and the embedding of the question included. Every question is asked in turn, with "
    "other texts and nodes each time. Processor: what all threads of the process had, which other programs disturb less than the time.",
    "Boards take turns, so that their ratios are true on a machine that is not quiet. Growth: how many times as long it takes with ten "
    "times as many nodes.",
    "The board of 100,000 is written through the store's ports; its vectors are those of 10,000 nodes, each ten times with a little noise.",
]
_SERVED_NOTES: Final = [
    "Round trips to all stores in one call, the check of the key left out. They hold for a deployment. Times do not: an emulator stands "
    "for AWS, and all servers share this machine.",
]


@dataclass(frozen=True)
class ReadsContext(Context):
    """One run.

    Attributes:
        endpoints: The file with the addresses of the local servers; None to look for them.
    """

    endpoints: Path | None = None


@dataclass(frozen=True)
class Asked:
    """A board that is asked, and what about.

    Attributes:
        call: Reaches the tools.
        samples: One for each round.
    """

    call: ToolCall
    samples: Sequence[Sample]


@dataclass
class Taken:
    """The calls of one question, in milliseconds."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """As the report has them."""
        return {"ms": Summary.of(self.wall).as_dict(), "processor_ms": Summary.of(self.processor).as_dict()}


def samples(nodes: Sequence[NewNode], ids: Mapping[str, str], queries: Sequence[Mapping[str, str]], board_id: str) -> list[Sample]:
    """What the calls ask about: one for each query, the nodes from one end of the board to the other.

    Args:
        nodes: The board's, in the order in which they were written.
        ids: Key of a node → its id.
        queries: What the generator of the test data makes of texts.
        board_id: The board.
    """

    def of(what: Callable[[NewNode], bool]) -> list[NewNode]:
        found = [node for node in nodes if what(node)]
        return [found[number * len(found) // len(queries)] for number in range(len(queries))]

    def starting(rel_type: str) -> list[NewNode]:
        return of(lambda node: node.arguments["node_type"] == "Decision" and any(edge.rel_type == rel_type for edge in node.edges))

    decisions = of(lambda node: node.arguments["node_type"] == "Decision")
    constraints = of(lambda node: node.arguments["node_type"] == "Constraint")
    edged = zip(starting("supersedes"), starting("contradicts"), starting("relates_to"), strict=True)
    return [
        Sample(
            board={"board_id": board_id},
            phrase=query["phrase"],
            word=query["word"],
            area=query["area"],
            decision=ids[decision.key],
            title=decision.arguments["title"],
            superseding=ids[superseding.key],
            contradicting=ids[contradicting.key],
            constraint=ids[constraint.key],
            compared=ids[compared.key],
        )
        for query, decision, constraint, (superseding, contradicting, compared) in zip(queries, decisions, constraints, edged, strict=True)
    ]


def per_decade(smaller: tuple[int, float], larger: tuple[int, float]) -> float:
    """How many times as much ten times as many nodes take, from what two boards took; each is (nodes, milliseconds)."""
    decades = math.log10(larger[0] / smaller[0])
    grown: float = (larger[1] / smaller[1]) ** (1 / decades)
    return round(grown, 2)


def growth(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Question → growth per decade of its median between each two neighbouring sizes, as in ``1000 to 10000``.

    Args:
        found: Nodes of the board → question → its figures.
    """
    steps = list(pairwise(sorted(found, key=int)))
    return {
        name: {
            f"{small} to {big}": per_decade((int(small), found[small][name]["ms"]["p50"]), (int(big), found[big][name]["ms"]["p50"]))
            for small, big in steps
        }
        for name in next(iter(found.values()))
        if steps
    }


def ask_all(asked: Mapping[str, Asked], questions: Sequence[Question], advance: Callable[[], None]) -> dict[str, dict[str, Taken]]:
    """Asks every question about every sample of every board; the first round warms up and does not count.

    The boards take turns, round by round, so that what disturbs the machine disturbs all of them.

    Args:
        asked: Nodes of a board → how it is asked, of all boards the same number of samples.
        questions: In the order in which they are asked.
        advance: Called after each board's round.

    Returns:
        Nodes of a board → question → its calls.
    """
    taken = {size: {question.name: Taken() for question in questions} for size in asked}
    rounds = min(len(board.samples) for board in asked.values())
    for number in range(-1, rounds):
        for size, board in asked.items():
            for question in questions:
                arguments = question.arguments(board.samples[number])
                started, processor = time.perf_counter(), time.process_time()
                board.call(question.tool, arguments)
                spent = (time.perf_counter() - started) * 1000, (time.process_time() - processor) * 1000
                if number >= 0:
                    taken[size][question.name].wall.append(spent[0])
                    taken[size][question.name].processor.append(spent[1])
            advance()
    return taken


def round_trips(calls: Sequence[Call], trips: Sequence[Trip], asked: Sequence[_Key]) -> dict[_Key, dict[str, Any]]:
    """Round trips of each question's calls: the most, the range, and the ranges for each store and for each step.

    Args:
        calls: Rounds of one call for each question, and checks of keys among them, which are left out.
        trips: Theirs and others.
        asked: The questions in the order in which each round asked them.
    """
    kinds: dict[int, Counter[tuple[str, str]]] = {call.number: Counter() for call in calls if call.tool != AUTHENTICATE}
    for trip in trips:
        if trip.call in kinds:
            kinds[trip.call][trip.store, trip.step] += 1
    numbers = sorted(kinds)
    return {key: _trips_of([kinds[number] for number in numbers[place :: len(asked)]]) for place, key in enumerate(asked)}


def _trips_of(made_by: Sequence[Counter[tuple[str, str]]]) -> dict[str, Any]:
    """Of the calls of one question, each with its trips by store and step."""
    totals = [one.total() for one in made_by]
    steps = sorted({kind for one in made_by for kind in one})
    stores = sorted({store for store, _ in steps})
    return {
        "most": max(totals),
        "range": span(totals),
        "by_store": {name: span([sum(n for (store, _), n in one.items() if store == name) for one in made_by]) for name in stores},
        "by_step": {f"{store} {step}".strip(): span([one[store, step] for one in made_by]) for store, step in steps},
    }


def embedded(context: ReadsContext) -> Part:
    """Measures boards in files."""
    embedder, asked = chosen_embedder(), dict[str, Asked]()
    with ExitStack() as stack:
        for size in _EMBEDDED[:1] if context.quick else _EMBEDDED:
            board = (large.written if size > large.SMALLER else boards.loaded)(context, size, embedder)
            container = stack.enter_context(opened(board.copy(context), embedder))
            asked[str(size)] = Asked(
                calling(container, make_agent(container, "reader")), _samples(context, size, board.ids, BOARD, _EMBEDDED_SAMPLES)
            )
        taken = _asked(context, asked)
    return _part({size: {name: one.figures() for name, one in found.items()} for size, found in taken.items()}, "Embedded", _NOTES)


def served(context: ReadsContext) -> Part:
    """Measures boards in the local servers.

    Raises:
        Skipped: There are none.
    """
    with made(context, endpoints_from(context.endpoints)) as world:
        loaded = {size: world.board(size) for size in (_SERVED[:1] if context.quick else _SERVED)}
        with world.opened() as target:
            asked = {
                str(size): Asked(
                    target.calling(world.key(f"reader-{size}", [board_id])), _samples(context, size, ids, board_id, _SERVED_SAMPLES)
                )
                for size, (board_id, ids) in loaded.items()
            }
            taken = _asked(context, asked)
            calls, trips = target.recorder.taken()
        facts = world.facts()
    keys = [(size, question.name) for size in asked for question in QUESTIONS]
    tools = sorted((call for call in calls if call.tool != AUTHENTICATE), key=lambda call: call.number)
    # The first round connects, and learns what a warm process keeps.
    counted = round_trips(tools[len(keys) :], trips, keys)
    figures = {
        size: {name: {**one.figures(), "round_trips": counted[size, name]} for name, one in found.items()} for size, found in taken.items()
    }
    part = _part(figures, "Served (local servers)", [*_NOTES[:2], *_SERVED_NOTES])
    part.figures["servers"] = facts
    return part


def _asked(context: Context, asked: Mapping[str, Asked]) -> dict[str, dict[str, Taken]]:
    gc.collect()
    with context.progress("rounds of questions", len(asked) * (1 + min(len(board.samples) for board in asked.values()))) as advance:
        return ask_all(asked, QUESTIONS, advance)


def _samples(context: Context, size: int, ids: Mapping[str, str], board_id: str, count: int) -> list[Sample]:
    queries = synthetic.queries(context)[: context.times(count, _FEW)]
    return samples(synthetic.board(context, size), ids, queries, board_id)


def _part(found: Mapping[str, Mapping[str, Any]], title: str, notes: Sequence[str]) -> Part:
    grown = growth(found)
    sizes = sorted(found, key=int)
    rows: list[tuple[Any, ...]] = []
    for question in QUESTIONS:
        by_size = [found[size][question.name] for size in sizes]
        trips = [one["round_trips"]["range"] for one in by_size if "round_trips" in one]
        rows.append(
            (
                question.name,
                *(one[what][share] for one in by_size for what, share in (("ms", "p50"), ("ms", "p95"), ("processor_ms", "p50"))),
                *grown.get(question.name, {}).values(),
                *trips,
            )
        )
    columns = (
        "tool",
        *(f"{int(size):,}: {what}" for size in sizes for what in ("p50 ms", "p95", "processor")),
        *(f"× {step}" for step in next(iter(grown.values()), {})),
        *(f"trips, {int(size):,}" for size in sizes if "round_trips" in found[size][QUESTIONS[0].name]),
    )
    return Part({**found, "growth_per_decade": grown}, [Table(title, columns, rows)], list(notes))


def runner(name: str) -> Callable[[ReadsContext], Part]:
    """The function of a part."""
    return {"embedded": embedded, "served": served}[name]


def main(arguments: Sequence[str]) -> int:
    """Runs the benchmark and gives the exit code."""
    options = _parser().parse_args(arguments)
    names = {name: what for name, what in NAMES.items() if not options.only or name in options.only}
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reads-", dir=WORK) as scratch:
        context = ReadsContext(options.quick, options.data, Path(scratch), options.endpoints)
        found, parts = run_parts(context, names, runner, options.calm)
    path: Path = options.output or (LATEST if len(names) == len(NAMES) and not options.quick else LOCAL)
    report.write(found, path)
    report.show(found, parts)
    print(f"Written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.reads", description="Measure the tools that read, by the size of the board.")
    parser.add_argument("--quick", action="store_true", help="few calls, boards of 1,000 nodes alone; written to bench/reports/local")
    parser.add_argument("--only", nargs="+", choices=tuple(NAMES), metavar="NAME", help=f"run these parts alone: {', '.join(NAMES)}")
    parser.add_argument("--endpoints", type=Path, metavar="FILE", help="where the local servers are (default: as --store aws finds them)")
    parser.add_argument("--calm", type=float, default=0.0, metavar="SECONDS", help="before each part, wait so long for a quiet machine")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report there")
    parser.add_argument("--data", type=Path, default=default_data(), metavar="DIR", help="the test data (default: ../shared/data)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
