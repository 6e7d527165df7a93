"""``python -m bench.cypher``: how long the query engine takes to load, to read a query, and to answer it by the size of the board."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import report, synthetic
from bench.context import ROOT, WORK, Context, Part, Skipped, Table, default_data
from bench.cypher_boards import written, written_elsewhere, written_to_servers
from bench.cypher_questions import ANCHORED, COMPARED, QUERIES, QUESTIONS
from bench.read_questions import Question, Sample
from bench.reads import Asked, ask_all, growth, per_decade, round_trips, samples
from bench.run import run_parts
from bench.served.trips import Recorder
from bench.served.world import endpoints_from, made
from bench.stats import Summary, percentile, ratio
from bench.world import BOARD, opened
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.adapters.gremlin.source import GremlinGraphSource
from pulse_kg.bootstrap import Container
from pulse_kg.cypher.engine import compile_query, run
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.parser import parse
from pulse_kg.errors import PulseError
from pulse_kg.ports.graph_source import GraphCounts, GraphSource

LATEST: Final = report.REPORTS / "cypher.json"
"""The last full run; it is committed."""
LOCAL: Final = report.REPORTS / "local" / "cypher.json"
"""The last quick run; it is not."""
NAMES: Final[Mapping[str, str]] = {
    "engine": "loading the engine, and reading the queries of the conformance kit",
    "embedded": f"{len(QUERIES)} kinds of queries on boards of 1,000, 10,000 and 100,000 nodes in a file",
    "another": "the same on 10,000 nodes, and by another engine",
    "served": "the same on boards of 1,000 and 10,000 nodes in the local servers, with the requests",
}
"""Part → what it measures."""
_EMBEDDED, _SERVED, _ANOTHER = (1_000, 10_000, 100_000), (1_000, 10_000), 10_000
_SAMPLES, _FEWER_SAMPLES, _FEW = 20, 8, 3
_TRIES: Final = 5
_STARTS: Final = 15
_NOW: Final = 1_798_761_600_000  # 2027-01-01
_CASES: Final = ROOT.parent / "shared" / "tck" / "cases.jsonl"
_LOADING: Final = """
import time
wall, processor = time.perf_counter(), time.process_time()
import pulse_kg.cypher.engine
print((time.perf_counter() - wall) * 1000, (time.process_time() - processor) * 1000)
"""
_NOTES: Final = [
    "From the text of a query to its rows, nothing being kept from one call to the next. The tool around it, its checks and the JSON of "
    "the answer are left out. Boards take turns. Growth: how many times as long it takes with ten times as many nodes.",
]


@dataclass(frozen=True)
class CypherContext(Context):
    """One run.

    Attributes:
        cases: The cases of the conformance kit.
        endpoints: The file with the addresses of the local servers; None to look for them.
    """

    cases: Path = _CASES
    endpoints: Path | None = None


def distribution(values: Sequence[float]) -> dict[str, float]:
    """Of one value for each query: the median, and what one in twenty and one in a hundred are above."""
    return {**{f"p{share}": round(percentile(values, share), 3) for share in (50, 95, 99)}, "max": round(max(values), 3)}


def shortest_ms(step: Callable[[str], object], texts: Sequence[str]) -> list[float]:
    """For each text the shortest of some tries, in milliseconds; a text that is refused takes its time too."""
    found = []
    for text in texts:
        tries = []
        for _ in range(_TRIES):
            started = time.perf_counter()
            with suppress(Fault, PulseError):
                step(text)
            tries.append((time.perf_counter() - started) * 1000)
        found.append(min(tries))
    return found


def distinct_queries(cases: str) -> list[str]:
    """The queries of a file of cases, each once, in their order."""
    return list(dict.fromkeys(json.loads(line)["query"] for line in cases.splitlines() if line.strip()))


def engine(context: CypherContext) -> Part:
    """Measures the parser and the import.

    Raises:
        Skipped: The conformance kit is not there.
    """
    if not context.cases.is_file():
        raise Skipped("the cases of the conformance kit are not there; name their file with --cases")
    queries = distinct_queries(context.cases.read_text("utf-8"))[: context.times(1_000_000, 100)]
    parsing, compiling = shortest_ms(parse, queries), shortest_ms(lambda text: compile_query(text, {}), queries)
    loading = _loading(context)
    figures = {
        "queries": len(queries),
        "parse_ms": distribution(parsing),
        "compile_ms": distribution(compiling),
        "import_ms": loading[0].as_dict(),
        "import_processor_ms": loading[1].as_dict(),
    }
    rows = [
        (what, *(figures[key].get(share) for share in ("p50", "p95", "p99", "max")))  # type: ignore[attr-defined]
        for what, key in (
            (f"parse one of {len(queries)} queries", "parse_ms"),
            ("parse and compile it", "compile_ms"),
            ("import the engine in a new process", "import_ms"),
            ("the same, processor", "import_processor_ms"),
        )
    ]
    notes = [f"Of each query the shortest of {_TRIES} tries counts. The import finds its bytecode compiled."]
    return Part(figures, [Table("Loading and reading", ("what", "p50 ms", "p95", "p99", "max"), rows)], notes)


def _loading(context: CypherContext) -> tuple[Summary, Summary]:
    """Milliseconds of the import in new processes, by the clock and by the processor; the first one compiles, and does not count."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": str(context.scratch / "bytecode")}
    taken: list[list[float]] = []
    for _ in range(1 + context.times(_STARTS, _FEW)):
        done = subprocess.run([sys.executable, "-c", _LOADING], env=environment, capture_output=True, text=True, check=True)
        taken.append([float(word) for word in done.stdout.split()])
    wall, processor = zip(*taken[1:], strict=True)
    return Summary.of(wall), Summary.of(processor)


def embedded(context: CypherContext) -> Part:
    """Measures boards in files."""
    with ExitStack() as stack:
        asked = {}
        for size in _EMBEDDED[:1] if context.quick else _EMBEDDED:
            board = written(context, size)
            container = stack.enter_context(opened(board.copy(context), HashingEmbedder()))
            asked[str(size)] = Asked(_asking(container), _samples(context, size, board.ids, BOARD, _SAMPLES))
        taken = _asked(context, asked)
    found = {size: {name: one.figures() for name, one in by_name.items()} for size, by_name in taken.items()}
    return _part(found, "Embedded", _NOTES)


def another(context: CypherContext) -> Part:
    """Measures this engine and another one in turns."""
    size = _EMBEDDED[0] if context.quick else _ANOTHER
    board, other = written(context, size), written_elsewhere(context, size)

    def ask_other(name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"rows": [list(row.values()) for row in other.query(QUERIES[name], dict(params))]}

    with opened(board.copy(context), HashingEmbedder()) as container:
        asked_about = _samples(context, size, board.ids, BOARD, _FEWER_SAMPLES)
        ask = _asking(container)
        differing = [
            question.name
            for question in COMPARED
            for given in [question.arguments(asked_about[0])]
            if sorted(ask(question.name, given)["rows"]) != sorted(ask_other(question.name, given)["rows"])
        ]
        taken = _asked(context, {"this": Asked(ask, asked_about), "graphdblite": Asked(ask_other, asked_about)}, COMPARED)
    other.close()
    figures = {
        name: {
            **{engine: taken[engine][name].figures()["ms"] for engine in taken},
            "ratio": ratio(*(Summary.of(taken[engine][name].wall).p50 for engine in ("this", "graphdblite"))),
        }
        for name in (question.name for question in COMPARED)
    }
    rows: list[tuple[Any, ...]] = [
        (name, one["this"]["p50"], one["graphdblite"]["p50"], one["ratio"], "differs" if name in differing else "")
        for name, one in figures.items()
    ]
    title = f"Another engine, {size:,} nodes"
    notes = ["The other one is graphdblite, a store of its own in Rust over SQLite, with an index on each label's ids, in the same turns."]
    return Part(
        {**figures, "nodes": size, "differing": differing},
        [Table(title, ("query", "this engine ms", "graphdblite ms", "this / that", "answer"), rows)],
        notes,
    )


def served(context: CypherContext) -> Part:
    """Measures boards in the local servers.

    Raises:
        Skipped: There are none.
    """
    with made(context, endpoints_from(context.endpoints)) as world:
        boards = {size: written_to_servers(world, size) for size in (_SERVED[:1] if context.quick else _SERVED)}
        with world.opened() as target:
            kept: dict[str, tuple[int, GraphCounts]] = {}  # as the sources of one process share them
            asked = {
                str(size): Asked(
                    _counting(target.recorder, GremlinGraphSource(target.store.connection, board_id, mark, counted=kept)),
                    _samples(context, size, ids, board_id, _FEWER_SAMPLES),
                )
                for size, (board_id, mark, ids) in boards.items()
            }
            taken = _asked(context, asked)
            calls, trips = target.recorder.taken()
        facts = world.facts()
    keys = [(size, question.name) for size in asked for question in QUESTIONS]
    ordered = sorted(calls, key=lambda call: call.number)
    counted = round_trips(ordered[len(keys) :], trips, keys)  # the first round connects
    found = {
        size: {name: {**one.figures(), "requests": counted[size, name]["range"]} for name, one in by_name.items()}
        for size, by_name in taken.items()
    }
    notes = [
        *_NOTES,
        "Requests to the graph server hold for a deployment; the counts of nodes by type are asked for once a commit, here in the first "
        "round, which is left out. Times do not hold: all servers share this machine.",
    ]
    part = _part(found, "Served (local servers)", notes)
    part.figures["servers"] = facts
    return part


Ask = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


def _asking(container: Container) -> Ask:
    """Asks the board of a file."""
    services = container.services

    def ask(name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        with services.snapshot():
            return _answer(name, params, services.sources.of(BOARD))

    return ask


def _counting(recorder: Recorder, source: GraphSource) -> Ask:
    """Asks a board in the servers, every call noted."""

    def ask(name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        with recorder.call(name):
            return _answer(name, params, source)

    return ask


def _answer(name: str, params: Mapping[str, Any], source: GraphSource) -> Mapping[str, Any]:
    return {"rows": run(compile_query(QUERIES[name], params), source, now=_NOW).rows}


def _asked(context: Context, asked: Mapping[str, Asked], questions: Sequence[Question] = QUESTIONS) -> dict[str, Any]:
    rounds = len(asked) * (1 + min(len(board.samples) for board in asked.values()))
    with context.progress("rounds of queries", rounds) as advance:
        return dict(ask_all(asked, questions, advance))


def _samples(context: Context, size: int, ids: Mapping[str, str], board_id: str, count: int) -> list[Sample]:
    queries = synthetic.queries(context)[: context.times(count, _FEW)]
    return samples(synthetic.board(context, size, every_edge=True), ids, queries, board_id)


def _part(found: Mapping[str, Mapping[str, Any]], title: str, notes: Sequence[str]) -> Part:
    grown, sizes = growth(found), sorted(found, key=int)
    rows: list[tuple[Any, ...]] = [
        (
            name,
            *(found[size][name][what][share] for size in sizes for what, share in (("ms", "p50"), ("ms", "p95"), ("processor_ms", "p50"))),
            *grown.get(name, {}).values(),
            *(found[size][name]["requests"] for size in sizes if "requests" in found[size][name]),
        )
        for name in QUERIES
    ]
    columns = (
        "query",
        *(f"{int(size):,}: {what}" for size in sizes for what in ("p50 ms", "p95", "processor")),
        *(f"× {step}" for step in next(iter(grown.values()), {})),
        *(f"requests, {int(size):,}" for size in sizes if "requests" in found[size][next(iter(QUERIES))]),
    )
    return Part({**found, "growth_per_decade": grown, "flat": flat(found)}, [Table(title, columns, rows)], list(notes))


def flat(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Growth per decade of what begins at a node, between the smallest and the largest board; none where there is one board.

    From the processor's time, which is the quieter one.

    Args:
        found: Nodes of the board → query → its figures.
    """
    ends = sorted(found, key=int)[:: max(1, len(found) - 1)]
    if len(ends) == 1:
        return {}
    medians = {name: [(int(size), found[size][name]["processor_ms"]["p50"]) for size in ends] for name in ANCHORED}
    return {name: per_decade(smallest, largest) for name, (smallest, largest) in medians.items()}


def runner(name: str) -> Callable[[CypherContext], Part]:
    """The function of a part."""
    return {"engine": engine, "embedded": embedded, "another": another, "served": served}[name]


def main(arguments: Sequence[str]) -> int:
    """Runs the benchmark and gives the exit code."""
    options = _parser().parse_args(arguments)
    names = {name: what for name, what in NAMES.items() if not options.only or name in options.only}
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cypher-", dir=WORK) as scratch:
        context = CypherContext(options.quick, options.data, Path(scratch), options.cases, options.endpoints)
        found, parts = run_parts(context, names, runner, options.calm)
    path: Path = options.output or (LATEST if len(names) == len(NAMES) and not options.quick else LOCAL)
    report.write(found, path)
    report.show(found, parts)
    print(f"Written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.cypher", description="Measure the query engine, by the size of the board.")
    parser.add_argument("--quick", action="store_true", help="few calls, boards of 1,000 nodes alone; written to bench/reports/local")
    parser.add_argument("--only", nargs="+", choices=tuple(NAMES), metavar="NAME", help=f"run these parts alone: {', '.join(NAMES)}")
    parser.add_argument("--cases", type=Path, default=_CASES, metavar="FILE", help="the conformance kit (../shared/tck/cases.jsonl)")
    parser.add_argument("--endpoints", type=Path, metavar="FILE", help="where the local servers are (default: as --store aws finds them)")
    parser.add_argument("--calm", type=float, default=0.0, metavar="SECONDS", help="before each part, wait so long for a quiet machine")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report there")
    parser.add_argument("--data", type=Path, default=default_data(), metavar="DIR", help="the test data (default: ../shared/data)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
