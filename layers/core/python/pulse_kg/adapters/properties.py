"""Nodes and edges of a board as a query sees them: which columns that takes, and what is made of their values.

A node's properties are its id, the common ones and its attributes, in one map. A common one hides an attribute of its name: that is
`confidence`, and `status` where the node has one of the system's. What else a store keeps beside them is no property, and a board may
well have given an attribute its name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from pulse_kg.adapters.jsontext import to_json
from pulse_kg.domain.ids import NODE_ID
from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.model import EDGE_PROPERTIES, NODE_PROPERTIES
from pulse_kg.domain.schema import ADDED_KEY, NODE_TYPES, REL_TYPES
from pulse_kg.ports.graph_source import Direction, GraphEdge, GraphNode, Hop, Need

ID: Final = "id"
EDGE_ID: Final = "edge_id"
ATTRIBUTES: Final = "attributes"
STATUS: Final = "status"

_NO_ATTRIBUTES: Final = to_json({})

TEXTS: Final = frozenset(
    "title body source_ref artifact source_session_id content_digest created_by superseded_by revocation_reason".split()
)
"""The common properties that are texts, but for `id` and `status`."""
NUMBERS: Final = frozenset("artifact_version created_seq commit_seq version query_hits confidence relevance_score priority_boost".split())
CURATED: Final = "human_curated"

# What one commit made has the same few instants.
_format_instant: Final = lru_cache(maxsize=1_024)(format_instant)
_INSTANTS: Final = ("created_at", "updated_at", "last_queried_at", "last_recomputed_at", "superseded_at")
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {CURATED: bool} | dict.fromkeys(_INSTANTS, _format_instant)

LABELS: Final[Mapping[str, tuple[str, ...]]] = {node_type: (node_type,) for node_type in NODE_TYPES}
"""Node type → the labels of a node of it."""

_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**63 - 1
_DIGITS_OF_MOST: Final = 20  # with a sign


def _number(digits: str) -> int | float:
    """An integer that a query can count with, else the nearest float."""
    if len(digits) < _DIGITS_OF_MOST - 1:
        return int(digits)
    number = int(digits) if len(digits) <= _DIGITS_OF_MOST else _MOST_INTEGER + 1
    return number if _LEAST_INTEGER <= number <= _MOST_INTEGER else float(digits)


_attributes_of: Final = json.JSONDecoder(parse_int=_number).decode


BARE: Final[Mapping[str, Any]] = MappingProxyType({})
"""No properties: one map for all, where elements are many and nothing is wanted of them."""


class _View:
    """Columns as properties.

    Args:
        key: The property that is the element's id; every reader of a store asks for that column anyway.
        names: Those of the others that a reader may want.
        need: Those that he wants; None for all.

    Attributes:
        columns: The columns that it takes beside the id.
    """

    def __init__(self, key: str, names: Iterable[str], need: Need) -> None:
        self._key = key if need is None or key in need else None
        self._names = tuple(name for name in names if need is None or name in need)
        self._reads = tuple((name, _READ[name]) for name in self._names if name in _READ)
        self._attributes: Need = frozenset()
        self.columns = self._names

    @property
    def bare(self) -> bool:
        """Whether no property is wanted: then `BARE` are an element's properties."""
        return self._key is None and not self.columns

    def properties(self, element_id: str, values: Sequence[Any]) -> dict[str, Any]:
        """The properties of an element.

        Args:
            element_id: Its id.
            values: Of the columns, None for what it has not: instants as epoch milliseconds, attributes as JSON.
        """
        found: dict[str, Any] = {} if self._key is None else {self._key: element_id}
        for name, value in zip(self._names, values):  # noqa: B905 - attributes come after them, and `strict` costs
            if value is not None:
                found[name] = value  # noqa: PERF403 - for every row of a store: the loop is faster
        for name, read in self._reads:
            if name in found:
                found[name] = read(found[name])
        if self._attributes is None or self._attributes:
            self._add_attributes(found, values[-1])
        return found

    def _add_attributes(self, found: dict[str, Any], text: str) -> None:
        if text == _NO_ATTRIBUTES:
            return
        wanted = self._attributes
        for key, value in _attributes_of(text).items():
            if value is not None and (wanted is None or key in wanted):
                found.setdefault(key, value)


class NodeView(_View):
    """What a reader wants of nodes."""

    def __init__(self, need: Need) -> None:
        super().__init__(ID, NODE_PROPERTIES, need)
        self._attributes = None if need is None else need - {ID, *NODE_PROPERTIES} | need & {STATUS}
        if self._attributes is None or self._attributes:
            self.columns = (*self._names, ATTRIBUTES)


class EdgeView(_View):
    """What a reader wants of edges."""

    def __init__(self, need: Need) -> None:
        super().__init__(EDGE_ID, EDGE_PROPERTIES, need)


def attribute_text(key: str, value: object) -> str | None:
    """What the JSON of the attributes contains, at least, where this attribute equals the value.

    Returns:
        None where that can't be said: of numbers, for 1 equals 1.0, and of what no attribute can be called.
    """
    if not isinstance(value, str | bool) or not ADDED_KEY.fullmatch(key) or (key in {ID, *NODE_PROPERTIES} and key != STATUS):
        return None
    return to_json({key: value})[1:-1]


def storable(text: str) -> bool:
    """Whether any store could hold the text: half of a surrogate pair is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sound(node_ids: Iterable[str]) -> list[str]:
    """Those that have the form of a node id, each once, sorted: what else is asked for is no node's."""
    return sorted(i for i in set(node_ids) if NODE_ID.fullmatch(i))


def known(rel_types: Collection[str] | None) -> list[str]:
    """Those of these types that there are; all of them for None."""
    return [r for r in REL_TYPES if rel_types is None or r in rel_types]


def hops(edges: Iterable[GraphEdge], direction: Direction, near: Collection[str], nodes: Mapping[str, GraphNode]) -> Iterator[Hop]:
    """The edges as seen from those of their ends that are `near`; none of an edge that leads to no node.

    Args:
        edges: Each once.
        direction: As `GraphSource.expand` takes it.
        near: Node ids.
        nodes: The nodes at the far ends, by id.
    """
    for edge in edges:
        if direction != "in" and edge.src in near and edge.dst in nodes:
            yield Hop(edge.src, edge, nodes[edge.dst])
        seen = direction == "both" and edge.src == edge.dst
        if direction != "out" and not seen and edge.dst in near and edge.src in nodes:
            yield Hop(edge.dst, edge, nodes[edge.src])


def in_order(found: Iterable[Hop]) -> list[Hop]:
    """By (near, type, edge id, far)."""
    return sorted(found, key=lambda hop: (hop.near, hop.edge.rel_type, hop.edge.edge_id, hop.far.node_id))
