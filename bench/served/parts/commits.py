"""Sessions of 10 and 50 candidates: the time of each call, and what a commit asks of which store."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from bench.context import Part, Table
from bench.served.context import ServedContext
from bench.served.trips import AUTHENTICATE, PUBLISH, Call, Trip, by_step, span
from bench.served.world import Opened
from bench.stats import Summary, ratio
from bench.world import NewNode, Writer

_BOARD: Final = 1_000
_SMALL_BOARD: Final = 100
_COMMIT: Final = "commit_consolidation"
_NOTES = [
    "Counts are the result. Times are of servers on this machine, one of them an emulator of AWS that keeps its tables in memory: they say "
    "nothing of DynamoDB, Neptune or the OpenSearch Service.",
    "Round trips of a commit: from its arguments to its answer, the session's read included. The check of the key is apart (two reads, "
    "then remembered for a minute at most), and so is sending the event, which comes after all else.",
    "A session is begin, one add a node, two edges a node, propose and commit. get_similar_nodes and abort are of a session of one "
    "candidate between two of them.",
]


def run(context: ServedContext) -> Part:
    """Measures both sizes of session."""
    board_size = _SMALL_BOARD if context.quick else _BOARD
    board_id, ids = context.world.board(board_size)
    key = context.world.key("commits", [board_id])
    figures: dict[str, Any] = {"board": board_id}
    tables = []
    with context.world.opened(publishes=True) as opened:
        for size, times in ((10, context.times(24, 3)), (50, context.times(8, 1))):
            planned = context.world.sessions(board_size, count=times + 1, tens=size // 10)
            calls, trips = _measured(context, opened, opened.writer(key, board_id, ids), planned, f"s{size}")
            found = _figures(calls, trips)
            figures[f"{size}_candidates"] = found
            tables += [_calls_table(size, found), _steps_table(size, found)]
    return Part(figures, tables, _NOTES)


def _measured(
    context: ServedContext, opened: Opened, writer: Writer, planned: list[list[NewNode]], name: str
) -> tuple[list[Call], list[Trip]]:
    calls, trips = list[Call](), list[Trip]()
    with context.progress(f"sessions of {len(planned[0])}", len(planned)) as advance:
        for number, nodes in enumerate(planned):
            opened.recorder.taken()
            writer.session(f"{name}-{number}", nodes, source_type="spec")
            _looked(writer, nodes[0], f"{name}-{number}")
            done, made = opened.recorder.taken()
            if number:  # the first warms connections, memories and the model
                calls += done
                trips += made
            advance()
    return calls, trips


def _looked(writer: Writer, node: NewNode, source_id: str) -> None:
    begin = {"board_id": writer.board_id, "source_type": "card", "source_id": source_id, "source_version": 1}
    session_id = writer.call("begin_consolidation", begin)["session_id"]
    added = writer.call("add_node_candidate", {"session_id": session_id, **node.arguments, "source_ref": None})
    writer.call("get_similar_nodes", {"session_id": session_id, "candidate_id": added["candidate_id"]})
    writer.call("abort_consolidation", {"session_id": session_id})


def _figures(calls: list[Call], trips: list[Trip]) -> dict[str, Any]:
    tools = {call.tool: 0 for call in sorted(calls, key=lambda c: c.number) if call.tool != AUTHENTICATE}
    found: dict[str, Any] = {"calls": {}}
    for tool in tools:
        of_tool = [c for c in calls if c.tool == tool]
        numbers = {c.number for c in of_tool}
        its = [t for t in trips if t.call in numbers and t.step != PUBLISH]
        counted = Counter(t.call for t in its)
        counts = [counted[number] for number in numbers]
        in_stores = [sum(t.ms for t in its if t.call == number) for number in numbers]
        found["calls"][tool] = {
            "ms": Summary.of([c.ms for c in of_tool]).as_dict(),
            "round_trips": span(counts),
            "in_stores_ms": Summary.of(in_stores).as_dict(),
        }
    commits = [t for t in trips if t.tool == _COMMIT]
    own, publishing = [t for t in commits if t.step != PUBLISH], [t for t in commits if t.step == PUBLISH]
    found["round_trips"] = max(Counter(t.call for t in own).values())
    found["publishing_round_trips"] = max(Counter(t.call for t in publishing).values(), default=0)
    for name, some in (("steps", own), ("publishing", publishing)):
        found[name] = [{**vars(s), "ms": s.ms.as_dict()} for s in by_step(some)]
    return found


def _calls_table(size: int, found: dict[str, Any]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for tool, of_tool in found["calls"].items():
        ms, stores = of_tool["ms"], of_tool["in_stores_ms"]
        share = ratio(stores["p50"], ms["p50"])
        rows.append((tool, ms["n"], ms["p50"], ms["p95"], ms["min"], ms["max"], of_tool["round_trips"], stores["p50"], share))
    columns = ("tool", "n", "p50 ms", "p95 ms", "min", "max", "round trips", "in stores, p50 ms", "share")
    return Table(f"Calls of a session of {size} (local servers)", columns, rows)


def _steps_table(size: int, found: dict[str, Any]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name in ("steps", "publishing"):
        rows += [(s["step"], s["store"], s["operation"], s["trips"], s["ms"]["p50"], s["ms"]["p95"]) for s in found[name]]
    title = f"Round trips of a commit of {size}: {found['round_trips']}, and {found['publishing_round_trips']} for its event"
    return Table(title, ("step", "store", "operation", "a commit", "p50 ms", "p95 ms"), rows)
