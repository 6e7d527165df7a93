"""What DynamoDB would charge for each tool of a session of 10 candidates, from the requests and the sizes of their items."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from bench.context import Part, Table
from bench.served.context import ServedContext
from bench.served.trips import AUTHENTICATE, PUBLISH, Call, Trip
from bench.served.units import Used, item_bytes, summed
from bench.served.world import Opened
from bench.stats import Summary
from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.tables import BOARDS, PK, SESSIONS, SK
from pulse_kg.adapters.dynamodb.tables import Table as StoreTable
from pulse_kg.ports.sessions import GRACE_MS

_SIZE: Final = 10
_BOARD: Final = 1_000
_SMALL_BOARD: Final = 100
_PURGE: Final = "purge"
_NOTES = [
    "Reckoned by the published rules from each request and the items that it touched, read beside it; see bench/served/units.py. A session "
    f"of {_SIZE} nodes and their edges, texts of some 75 tokens; the last of three, so that what is remembered is remembered.",
    "Purge: a session of ten is forgotten a day after its end, by a later begin, unless DynamoDB did so before, for nothing.",
]


def run(context: ServedContext) -> Part:
    """Reckons one session."""
    board_size = _SMALL_BOARD if context.quick else _BOARD
    board_id, ids = context.world.board(board_size)
    key = context.world.key("units", [board_id])
    planned = context.world.sessions(board_size, count=3)
    with context.world.opened(publishes=True, units=True) as opened:
        writer = opened.writer(key, board_id, ids)
        calls, trips = list[Call](), list[Trip]()
        with context.progress("sessions with their units", len(planned)) as advance:
            for number, nodes in enumerate(planned):
                opened.recorder.taken()
                writer.session(f"u-{number}", nodes, source_type="refinement")
                calls, trips = opened.recorder.taken()
                advance()
        sizes = _sizes(opened, board_id)
        forgotten = _forgotten(opened)
    tools = list(dict.fromkeys(call.tool for call in calls))
    by_tool = {tool: _figures(trips, tool, sum(c.tool == tool for c in calls)) for tool in tools}
    by_tool[PUBLISH] = _of([t for t in trips if t.step == PUBLISH], 1)
    by_tool[_PURGE] = _of(forgotten, 1)
    whole = summed([t.used for t in trips])
    figures: dict[str, Any] = {
        "tools": by_tool,
        "session": {"reads": whole.reads, "writes": whole.writes, "calls": sum(call.tool != AUTHENTICATE for call in calls)},
        "item_bytes": {kind: found.as_dict() for kind, found in sizes.items()},
    }
    rows: list[tuple[Any, ...]] = [(tool, f["calls"], f["requests"], f["reads"], f["writes"], f["dearest"]) for tool, f in by_tool.items()]
    rows.append(
        (f"all but {_PURGE}", figures["session"]["calls"], sum(t.store == "dynamodb" for t in trips), whole.reads, whole.writes, "")
    )
    items = [(kind, s.n, s.p50, s.min, s.max) for kind, s in sizes.items()]
    return Part(
        figures,
        [
            Table(f"DynamoDB's units of a session of {_SIZE}", ("tool", "calls", "requests", "reads", "writes", "dearest request"), rows),
            Table("Bytes of an item", ("item", "n", "p50", "min", "max"), items),
        ],
        _NOTES,
    )


def _forgotten(opened: Opened) -> list[Trip]:
    """What it takes to forget one session, the oldest that there is."""
    opened.recorder.taken()
    long_after = opened.container.clock.now() + 10 * GRACE_MS
    with opened.recorder.call(_PURGE):
        opened.container.sessions.purge(now=long_after, at_most=1)
    return opened.recorder.taken()[1]


def _figures(trips: list[Trip], tool: str, calls: int) -> dict[str, Any]:
    return _of([t for t in trips if t.tool == tool and t.step != PUBLISH], calls)


def _of(trips: list[Trip], calls: int) -> dict[str, Any]:
    charged = [t for t in trips if t.store == "dynamodb"]
    used: Used = summed([t.used for t in charged])
    dearest = max(charged, key=lambda t: (t.used.writes, t.used.reads), default=None)
    told = "" if dearest is None else f"{dearest.step} {dearest.operation}: {dearest.used.reads:g} r, {dearest.used.writes:g} w"
    return {"calls": calls, "requests": len(charged), "reads": used.reads, "writes": used.writes, "dearest": told}


def _sizes(opened: Opened, board_id: str) -> dict[str, Summary]:
    """The sizes of the items of a board and of its sessions, by kind."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for table in (BOARDS, SESSIONS):
        for item in _items(opened, table):
            kind = _kind(table, item[PK]["S"], item[SK]["S"], board_id)
            if kind:
                found[kind].append(item_bytes(item))
    return {kind: Summary.of(sizes) for kind, sizes in sorted(found.items())}


def _items(opened: Opened, table: StoreTable) -> list[dict[str, Any]]:
    pages = opened.store.dynamo.client.get_paginator("scan").paginate(TableName=opened.store.dynamo.prefix + table.name)
    return [item for page in pages for item in page["Items"]]


def _kind(table: StoreTable, pk: str, sk: str, board_id: str) -> str:
    head, _, _ = sk.partition("#")
    if table is BOARDS:
        return "" if pk != keys.board(board_id) else "board" if sk == keys.HEAD else head
    if pk.startswith(keys.session("")):
        named = {"n": "node candidate", "e": "edge candidate", "v": "vectors", "p": "proposals"}
        return "session" if sk == keys.HEAD else named.get(head, head)
    return "lists of sessions"
