"""Rows of nodes and edges as the domain's objects, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.adapters.sqlite.errors import StoreRefused
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.text import fold

NODE_FIELDS: Final = tuple(f.name for f in fields(Node))
EDGE_FIELDS: Final = tuple(f.name for f in fields(Edge))
_ATTRIBUTES, _CURATED, _TRUNCATED = (NODE_FIELDS.index(name) for name in ("attributes", "human_curated", "truncated"))


def row_of(node: Node, seq: int) -> tuple[Any, ...]:
    """The values of `NODE_FIELDS`, then the folded title and the number of the plan."""
    row = [getattr(node, name) for name in NODE_FIELDS]
    row[_ATTRIBUTES] = to_json(node.attributes)
    return (*row, fold(node.title), seq)


def node_of(row: Sequence[Any], board_id: str) -> Node:
    """A node from the values of `NODE_FIELDS`.

    Raises:
        StoreRefused: It is of another board.
    """
    values = list(row)
    values[_ATTRIBUTES] = from_json(values[_ATTRIBUTES])
    values[_CURATED], values[_TRUNCATED] = bool(values[_CURATED]), bool(values[_TRUNCATED])
    node = Node(*values)
    _check_tenant(node.board_id, board_id)
    return node


def edge_of(row: Sequence[Any], board_id: str) -> Edge:
    """An edge from the values of `EDGE_FIELDS`.

    Raises:
        StoreRefused: It is of another board.
    """
    edge = Edge(*row)
    _check_tenant(edge.board_id, board_id)
    return edge


def _check_tenant(found: str, asked: str) -> None:
    """The last guard between boards: no statement of this package should ever let it speak."""
    if found != asked:
        raise StoreRefused(
            "The store answered with an element of another board, and the answer was thrown away. Report this, and run 'pulse-kg verify'."
        )
