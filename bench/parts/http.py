"""Sessions over the real MCP endpoint, beside the same ones in this process."""

from __future__ import annotations

from typing import Any

from bench import boards, synthetic
from bench.context import Context, Part, Table
from bench.server import serving
from bench.stats import Summary, ratio
from bench.world import STEPS, Times, Writer, make_agent, opened
from pulse_kg.bootstrap import embedder_of
from pulse_kg.settings import Settings

_SIZE = 10
_BOARD = 1_000
_NOTES = [
    "`pulse-kg serve` in a process of its own, one client that keeps its connection; the session in this process takes turns with it. "
    "Overhead: the difference of the two sessions, for one of their calls."
]


def run(context: Context) -> Part:
    """Measures both ways to run the same sessions."""
    times = context.times(40, 4)
    embedder = embedder_of(Settings())
    board = boards.loaded(context, _BOARD, embedder)
    planned = synthetic.sessions(context, _BOARD, count=times, size=_SIZE)
    store = board.copy(context)
    with opened(store, embedder) as container:
        key = make_agent(container, "client")
    over, inside = list[Times](), list[Times]()
    with (
        serving(store, key) as server,
        boards.writer_on(board, board.copy(context), embedder) as (writer, _),
        context.progress("sessions over HTTP", times) as advance,
    ):
        remote = Writer(server.call, dict(board.ids))
        for each in (remote, writer):
            each.warm(planned[0])
        for number, nodes in enumerate(planned):
            over.append(remote.session(f"session-{number}", nodes))
            inside.append(writer.session(f"session-{number}", nodes))
            advance()
    return _part(over, inside)


def _part(over: list[Times], inside: list[Times]) -> Part:
    http, local = Summary.of([t.total for t in over]), Summary.of([t.total for t in inside])
    calls = over[0].calls
    a_call = Summary.of([(a.total - b.total) / calls for a, b in zip(over, inside, strict=True)])
    figures: dict[str, Any] = {
        "total_ms": http.as_dict(),
        "steps_ms": {step: Summary.of([t.steps[step] for t in over]).as_dict() for step in STEPS},
        "in_process_ms": local.as_dict(),
        "times_in_process": ratio(http.p50, local.p50),
        "calls": calls,
        "overhead_a_call_ms": a_call.as_dict(),
    }
    rows: list[tuple[Any, ...]] = [
        (name, s.n, s.p50, s.p95, s.min, s.max, *(Summary.of([t.steps[step] for t in taken]).p50 for step in STEPS))
        for name, s, taken in (("over HTTP", http, over), ("in process", local, inside))
    ]
    rows.append(("overhead of a call", a_call.n, a_call.p50, a_call.p95, a_call.min, a_call.max, *("" for _ in STEPS)))
    columns = ("sessions", "n", "p50 ms", "p95 ms", "min", "max", *STEPS)
    title = f"Over HTTP: {_SIZE} candidates, board of {_BOARD}, {calls} calls a session (ms)"
    return Part(figures, [Table(title, columns, rows)], _NOTES)
