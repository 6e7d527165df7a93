"""Whether a Gremlin server is fit to be the graph; asked before it is given anything to keep."""

from __future__ import annotations

import secrets
from typing import Any, Final

from pulse_kg.adapters.gremlin import errors
from pulse_kg.adapters.gremlin.connection import GremlinConnection, source
from pulse_kg.adapters.gremlin.elements import NID, stored
from pulse_kg.adapters.gremlin.errors import Fault, ServerFault
from pulse_kg.adapters.gremlin.steps import Entry, anonymous

LONGEST_TEXT: Final = 100_000
"""Characters of a property: more than any body or any attributes of a node."""

_BOARD: Final = "_probe"  # no board's id begins so
_VALUES: Final = {
    "version": 2**53 + 1,
    "confidence": 0.1 + 0.2,
    "human_curated": True,
    "title": "ß 日本語 \U0001f9ed\n",
    "body": "0123456789" * (LONGEST_TEXT // 10),
}


def check_fitness(connection: GremlinConnection, entry: Entry) -> None:
    """Makes a vertex, reads it and drops it, in one transaction; then tries to make one twice.

    Raises:
        StoreUnavailable: The server does not answer now; or GraphRefused with ``details.reason``.
    """
    key = f"{_BOARD}_dec_{secrets.token_hex(8)}"
    _check_values(connection, entry, key)
    _check_uniqueness(connection, entry, key)


def _check_values(connection: GremlinConnection, entry: Entry, key: str) -> None:
    from gremlin_python.process.traversal import Cardinality

    __ = anonymous()
    made = source().inject(stored(1)).map(entry.new_vertex("Decision", key)).property(Cardinality.single, "board_id", _BOARD)
    for name, value in _VALUES.items():
        made = made.property(Cardinality.single, name, stored(value))
    told = made.as_("made").project("found", *_VALUES).by(entry.vertices(__, [key]).count())
    for name in _VALUES:
        told = told.by(name)
    try:
        rows = connection.request(told.side_effect(__.select("made").drop()))
    except ServerFault as fault:
        _raise_passing(fault)
        raise errors.unfit("the server refuses a vertex with the properties of a node", f"{_SCHEMA} {_VERTEX_IDS}") from fault
    (row,) = rows
    if row.pop("found") != 1:
        raise errors.unfit("a vertex is not found by the key that it was made with", _VERTEX_IDS)
    for name, value in _VALUES.items():
        if (row[name], type(row[name]) is bool) != (value, type(value) is bool):
            raise errors.unfit(f"a value of the property '{name}' does not come back as it was written", _SCHEMA)


def _check_uniqueness(connection: GremlinConnection, entry: Entry, key: str) -> None:
    __ = anonymous()
    twice: Any = source().inject(stored(1)).union(entry.new_vertex("Decision", key), entry.new_vertex("Decision", key))
    try:
        connection.request(twice.fold().side_effect(__.unfold().drop()).count())
    except ServerFault as fault:
        if fault.fault is Fault.CONFLICT:
            return
        _raise_passing(fault)
        raise errors.unfit("the server does not say that a key is taken", _SCHEMA) from fault
    raise errors.unfit(f"two vertices can have the same '{NID}'", _SCHEMA)


def _raise_passing(fault: ServerFault) -> None:
    """Raises where the fault says nothing about the store's fitness."""
    if fault.fault is not Fault.OTHER:
        raise errors.translate(fault) from fault


_SCHEMA: Final = "A JanusGraph needs the keys and indexes of infra/local/janusgraph/schema.json."
_VERTEX_IDS: Final = "Check PULSE_KG_GRAPH_IDS: 'supplied' is for Neptune, 'property' for JanusGraph."
