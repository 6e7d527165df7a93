"""What a node with many edges costs the commits beside it, and those who read it."""

from __future__ import annotations

from typing import Any, Final

from bench.context import Part, Table
from bench.served.context import ServedContext
from bench.stats import Summary, ratio, repeated
from bench.world import NewEdge, NewNode, Writer

_DEGREES: Final = (10, 100, 1_000)
_FEWER: Final = (10, 100)
_A_SESSION: Final = 250
_NOTES = [
    "A commit of one node with one edge to the hub: survey counts the hub's edges and looks for contradictions among them, apply looks "
    "among the edges of the new node for the one it makes. Read: all edges of the hub. The hubs take turns.",
]


def run(context: ServedContext) -> Part:
    """Measures hubs of some sizes on one board."""
    degrees, times = (_FEWER if context.quick else _DEGREES), context.times(12, 2)
    board_id = context.world.new_board("hubs")
    key = context.world.key("hubs", [board_id])
    taken: dict[int, list[dict[str, float]]] = {degree: [] for degree in degrees}
    with context.world.opened() as opened:
        writer = opened.writer(key, board_id, {})
        with context.progress("hubs", len(degrees)) as advance:
            for degree in degrees:
                _make(writer, degree)
                advance()
        with context.progress("commits beside hubs", times + 1) as advance:
            for number in range(times + 1):
                for degree in degrees:
                    opened.recorder.taken()
                    writer.session(f"beside-{degree}-{number}", [_node(f"beside {degree} {number}", f"hub {degree}")])
                    calls, trips = opened.recorder.taken()
                    if number:
                        (commit,) = (c for c in calls if c.tool == "commit_consolidation")
                        steps = {s: sum(t.ms for t in trips if t.step == s) for s in ("graph.survey", "graph.apply")}
                        taken[degree].append({"commit": commit.ms, **steps})
                advance()
        graph = opened.store.graph
        reads = {d: repeated(lambda d=d: graph.edges_of(board_id, [writer.ids[f"hub {d}"]]), times=times) for d in degrees}  # type: ignore[misc]
    figures = {
        str(degree): {
            **{f"{what}_ms": Summary.of([one[what] for one in taken[degree]]).as_dict() for what in taken[degree][0]},
            "read_ms": reads[degree].as_dict(),
        }
        for degree in degrees
    }
    names = ("commit_ms", "graph.survey_ms", "graph.apply_ms", "read_ms")
    base = figures[str(degrees[0])]["commit_ms"]["p50"]
    rows: list[tuple[Any, ...]] = [
        (d, len(taken[d]), *(figures[str(d)][name]["p50"] for name in names), ratio(figures[str(d)]["commit_ms"]["p50"], base))
        for d in degrees
    ]
    columns = ("edges of the hub", "n", "commit, p50 ms", "survey", "apply", "read all edges", "× smallest")
    return Part(figures, [Table("Commits beside a hub (local servers)", columns, rows)], _NOTES)


def _make(writer: Writer, degree: int) -> None:
    hub = f"hub {degree}"
    writer.session(hub, [_node(hub)], propose=False)
    for start in range(0, degree, _A_SESSION):
        leaves = range(start, min(degree, start + _A_SESSION))
        writer.session(f"{hub} {start}", [_node(f"leaf {n} of {hub}", hub) for n in leaves], propose=False)


def _node(name: str, to: str | None = None) -> NewNode:
    edges = () if to is None else (NewEdge("relates_to", to),)
    return NewNode(name, {"node_type": "Entity", "title": name, "source_ref": {"spec_id": name, "section": "it"}}, edges)
