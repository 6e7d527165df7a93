"""Rows of nodes and edges as the domain's objects, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, TypeVar

from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.adapters.sqlite.errors import StoreRefused
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.text import fold

_Row = TypeVar("_Row", Node, Edge)

NODE_FIELDS: Final = tuple(f.name for f in fields(Node))
EDGE_FIELDS: Final = tuple(f.name for f in fields(Edge))
NODE_EXTRAS: Final = ("folded_title", "applied_seq", "folded_body")
"""What is stored of a node beside its fields."""
_ATTRIBUTES, _CURATED, _TRUNCATED = (NODE_FIELDS.index(name) for name in ("attributes", "human_curated", "truncated"))


def row_of(node: Node, seq: int) -> tuple[Any, ...]:
    """The values of `NODE_FIELDS`, then those of `NODE_EXTRAS`; `seq` is the number of the plan."""
    row = [getattr(node, name) for name in NODE_FIELDS]
    row[_ATTRIBUTES] = to_json(node.attributes)
    return (*row, fold(node.title), seq, folded_body(node.node_type, node.body, node.attributes))


def folded_body(node_type: str, body: str, attributes: Mapping[str, Any]) -> str:
    """What is searched for words beside the title: the body, folded, and on a line below it the area of a Learning."""
    area = attributes.get("area") if node_type == "Learning" else None
    return fold(body) + (f"\n{fold(area)}" if isinstance(area, str) else "")


def node_of(row: Sequence[Any], board_id: str) -> Node:
    """A node from the values of `NODE_FIELDS`.

    Raises:
        StoreRefused: It is of another board.
    """
    values = list(row)
    values[_ATTRIBUTES] = from_json(values[_ATTRIBUTES])
    values[_CURATED], values[_TRUNCATED] = bool(values[_CURATED]), bool(values[_TRUNCATED])
    node = _made(Node, NODE_FIELDS, values)
    check_tenant(node.board_id, board_id)
    return node


def edge_of(row: Sequence[Any], board_id: str) -> Edge:
    """An edge from the values of `EDGE_FIELDS`.

    Raises:
        StoreRefused: It is of another board.
    """
    edge = _made(Edge, EDGE_FIELDS, row)
    check_tenant(edge.board_id, board_id)
    return edge


def _made(kind: type[_Row], names: Sequence[str], values: Sequence[Any]) -> _Row:
    """The object with these fields. The constructor of a frozen class sets one after the other, which takes four times as long."""
    made = object.__new__(kind)
    made.__dict__.update(zip(names, values, strict=True))
    return made


def check_tenant(found: str, asked: str) -> None:
    """The last guard between boards: no statement of this package should ever let it speak."""
    if found != asked:
        raise StoreRefused(
            "The store answered with an element of another board, and the answer was thrown away. Report this, and run 'pulse-kg verify'."
        )
