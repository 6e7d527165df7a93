"""Nodes and edges as properties of vertices and edges: strings, booleans, longs and doubles, and nothing for None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from pulse_kg.adapters.gremlin import errors
from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.domain.ids import NODE_ID
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.plan import Contradiction, Surroundings
from pulse_kg.domain.text import fold

NID: Final = "nid"
APPLIED_SEQ: Final = "applied_seq"
FOLDED_TITLE: Final = "folded_title"

NULLABLE: Final = tuple(f.name for f in fields(Node) if f.default is None or f.name == "artifact_version")
"""The properties of a vertex that may go away again."""

_NODE_FIELDS: Final = frozenset(f.name for f in fields(Node))
_NODE_NEEDS: Final = frozenset(f.name for f in fields(Node) if f.default is MISSING) - {"artifact_version"}
_EDGE_ENDS: Final = ("src", "rel_type", "dst")
_EDGE_FIELDS: Final = tuple(f.name for f in fields(Edge) if f.name not in _EDGE_ENDS)
_EDGE_NEEDS: Final = frozenset(f.name for f in fields(Edge) if f.default is MISSING)


def nid(board_id: str, node_id: str) -> str:
    """A vertex's unique key. A node id has exactly one underscore, so that no two pairs make the same key."""
    return f"{board_id}_{node_id}"


def nids(board_id: str, node_ids: Iterable[str]) -> list[str]:
    """The keys of these ids, sorted; what has not the form of a node id is no node's, and might read like another board's key."""
    return [nid(board_id, i) for i in sorted(set(node_ids)) if NODE_ID.fullmatch(i)]


def node_properties(node: Node, seq: int) -> dict[str, Any]:
    """All properties of a vertex but its key.

    Args:
        node: The whole new state.
        seq: The number of the plan: a node's own commit_seq stays in an administrative commit, and can't guard a write.
    """
    values = {name: getattr(node, name) for name in _NODE_FIELDS}
    values |= {"attributes": to_json(node.attributes), FOLDED_TITLE: fold(node.title), APPLIED_SEQ: seq}
    return {name: stored(value) for name, value in sorted(values.items()) if value is not None}


def edge_properties(edge: Edge) -> dict[str, Any]:
    """All properties of an edge; its ends and its relationship are the edge's own."""
    values = {name: getattr(edge, name) for name in _EDGE_FIELDS}
    return {name: stored(value) for name, value in values.items() if value is not None}


def stored(value: Any) -> Any:
    """A number as the type that its key has on the server: a key whose first value was a small integer refuses larger ones."""
    from gremlin_python.statics import long

    return long(value) if isinstance(value, int) and not isinstance(value, bool) else value


def node_of(row: Mapping[str, Any], board_id: str) -> Node:
    """A node from a vertex's value map, whose values are lists of one.

    Raises:
        GraphRefused: It is of another board, or not whole.
    """
    values = {name: plain(value[0]) for name, value in row.items() if name in _NODE_FIELDS}
    if not values.keys() >= _NODE_NEEDS:
        raise errors.damaged()
    values["attributes"] = from_json(values["attributes"])
    node = Node(**{"artifact_version": None} | values)
    check_tenant(node.board_id, board_id)
    return node


def edge_of(row: Mapping[str, Any], board_id: str) -> Edge:
    """An edge from `{"edge": value map, "src": …, "rel_type": …, "dst": …}`.

    Raises:
        GraphRefused: It is of another board, or not whole.
    """
    values = {name: plain(value) for name, value in row["edge"].items() if name in _EDGE_FIELDS}
    values |= {end: row[end] for end in _EDGE_ENDS if end in row}
    if not values.keys() >= _EDGE_NEEDS:
        raise errors.damaged()
    edge = Edge(**values)
    check_tenant(edge.board_id, board_id)
    return edge


def seen_nodes(rows: Iterable[Mapping[str, Any]], board_id: str, mark: int) -> list[Node]:
    """The nodes of the rows; what a reader may not see yet is dropped here again, whatever the server made of the filter."""
    return [node for node in (node_of(row, board_id) for row in rows) if node.created_seq <= mark]


def seen_edges(rows: Iterable[Mapping[str, Any]], board_id: str, mark: int) -> list[Edge]:
    """The same of edges."""
    return [edge for edge in (edge_of(row, board_id) for row in rows) if edge.commit_seq <= mark]


def surroundings_of(row: Mapping[str, Any], board_id: str) -> Surroundings:
    """What `around_rows` tells of a node's edges.

    Raises:
        GraphRefused: One of the nodes is of another board.
    """
    check_tenant(row["vertex"]["board_id"][0], board_id)
    found: list[tuple[str, str, Contradiction]] = []
    for edge in row["against"]:
        source = {name: value[0] for name, value in edge["src"].items()}
        check_tenant(source["board_id"], board_id)
        resolved = "superseded_by" in source or "revocation_reason" in source or source.get("status") == "revoked"
        found.append((source["node_id"], edge["edge_id"], Contradiction(source["node_id"], edge["confidence"], resolved)))
    return Surroundings(int(row["degree"]), tuple(c for _, _, c in sorted(found, key=lambda each: each[:2])))


def plain(value: Any) -> Any:
    """The driver's kind of a long as an int."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def check_tenant(found: str, asked: str) -> None:
    """The last guard between boards.

    Raises:
        GraphRefused: They differ.
    """
    if found != asked:
        raise errors.foreign_element()
