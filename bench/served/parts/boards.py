"""Whether a call takes longer on a larger board."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from bench.context import Part, Table
from bench.served.context import ServedContext
from bench.served.trips import AUTHENTICATE, PUBLISH, Call, Trip
from bench.served.world import Opened
from bench.stats import Summary, ratio
from bench.world import NewNode, Writer

_STORES: Final = ("dynamodb", "gremlin", "opensearch")
_SIMILAR: Final = "get_similar_nodes"
_TITLES: Final = "get_similar_nodes, by title"
_TOOLS: Final = ("commit_consolidation", "propose_reconciliation", _SIMILAR, _TITLES)
_NOTES = [
    "Boards take turns, session by session, so that their ratios are true though the times are of this machine. A board grows by the "
    "sessions that are measured on it, the smallest one the most.",
    "get_similar_nodes embeds one text, propose ten. By title: a candidate of a type without vectors, which the graph compares with every "
    "node of its type, 4 % of a board.",
]


def run(context: ServedContext) -> Part:
    """Measures every size of board."""
    sizes = (100, 1_000) if context.quick else (100, 1_000, 10_000)
    times = context.times(12, 2)
    boards = {size: context.world.board(size) for size in sizes}
    taken: dict[int, tuple[list[Call], list[Trip]]] = {size: ([], []) for size in sizes}
    with context.world.opened() as opened, context.progress("boards", (times + 1) * len(sizes)) as advance:
        writers = {size: _writer(context, opened, *boards[size]) for size in sizes}
        planned = {size: context.world.sessions(size, count=times + 1) for size in sizes}
        for number in range(times + 1):
            for size in sizes:
                opened.recorder.taken()
                _session(writers[size], planned[size][number], f"b-{number}")
                calls, trips = opened.recorder.taken()
                if number:
                    taken[size][0].extend(calls)
                    taken[size][1].extend(trips)
                advance()
        index = _index(opened)
    figures: dict[str, Any] = {
        "index": index,
        "load_seconds": {str(size): context.world.boards[size][1] for size in sizes},
        **{str(size): _figures(*taken[size]) for size in sizes},
    }
    smallest, largest = str(sizes[0]), str(sizes[-1])
    figures["largest_to_smallest"] = {
        tool: ratio(figures[largest][tool]["ms"]["p50"], figures[smallest][tool]["ms"]["p50"]) for tool in _TOOLS
    }
    told = f"The index: {index['documents']:,} vectors, {index['bytes_a_vector']:,} bytes each on the disk, the stored document included."
    return Part(figures, [_table(figures, sizes)], [*_NOTES, told])


def _index(opened: Opened) -> dict[str, int]:
    """How much the index takes on the disk."""
    answer = opened.store.index_client.request("GET", f"/{opened.store.dynamo.prefix}nodes/_stats/docs,store")
    whole = answer["_all"]["primaries"]
    documents, size = int(whole["docs"]["count"]), int(whole["store"]["size_in_bytes"])
    return {"documents": documents, "bytes": size, "bytes_a_vector": round(size / documents)}


def _writer(context: ServedContext, opened: Opened, board_id: str, ids: dict[str, str]) -> Writer:
    return opened.writer(context.world.key(f"boards-{board_id}", [board_id]), board_id, ids)


def _session(writer: Writer, nodes: list[NewNode], source_id: str) -> None:
    spent: defaultdict[str, float] = defaultdict(float)
    session_id, candidates = writer.stated(source_id, nodes, spent, source_type="sprint")
    first = next(iter(candidates.values()))
    writer.call(_SIMILAR, {"session_id": session_id, "candidate_id": first})
    writer.call("propose_reconciliation", {"session_id": session_id})
    writer.committed(session_id, candidates, spent)
    begin = {"board_id": writer.board_id, "source_type": "ideation", "source_id": source_id, "source_version": 1}
    session_id = writer.call("begin_consolidation", begin)["session_id"]
    title = {"node_type": "Criterion", "title": f"The {source_id} of the search stays below a bound"}
    added = writer.call("add_node_candidate", {"session_id": session_id, **title})
    answer = writer.call(_SIMILAR, {"session_id": session_id, "candidate_id": added["candidate_id"]})
    if answer["match_mode"] != "title_prefix":
        raise RuntimeError("a Criterion was not compared by its title")
    writer.call("abort_consolidation", {"session_id": session_id})


def _figures(calls: list[Call], trips: list[Trip]) -> dict[str, Any]:
    by_call: defaultdict[int, list[Trip]] = defaultdict(list)
    for trip in trips:
        if trip.tool != AUTHENTICATE and trip.step != PUBLISH:
            by_call[trip.call].append(trip)
    named: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_title = call.tool == _SIMILAR and not any(t.store == "opensearch" for t in by_call[call.number])
        named[_TITLES if by_title else call.tool].append(call)
    return {
        tool: {
            "ms": Summary.of([c.ms for c in named[tool]]).as_dict(),
            "in_stores_ms": {
                store: Summary.of([sum(t.ms for t in by_call[c.number] if t.store == store) for c in named[tool]]).as_dict()
                for store in _STORES
            },
        }
        for tool in _TOOLS
    }


def _table(figures: dict[str, Any], sizes: tuple[int, ...]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for tool in _TOOLS:
        base = figures[str(sizes[0])][tool]["ms"]["p50"]
        for size in sizes:
            found = figures[str(size)][tool]
            ms, stores = found["ms"], [found["in_stores_ms"][store]["p50"] for store in _STORES]
            rows.append((tool, size, ms["n"], ms["p50"], ms["p95"], *stores, ratio(ms["p50"], base)))
    columns = ("tool", "board", "n", "p50 ms", "p95 ms", *(f"{store}, p50 ms" for store in _STORES), "× smallest")
    return Table("Calls by the size of their board (local servers)", columns, rows)
