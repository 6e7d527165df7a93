"""get_related_context: what lies around a node, breadth first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import RelType
from pulse_kg.domain.walks import TYPE_ORDER
from pulse_kg.errors import InvalidArgument, NodeNotFound, Problem
from pulse_kg.ports.reading import Direction
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, node_on, seen
from pulse_kg.usecases.services import Services

_NAMED: Final = 20  # ids that a refusal lists


@dataclass(frozen=True)
class RelatedContext:
    """The answer.

    Attributes:
        anchor: The node that was asked for.
        nodes: The others with their least depth, by (depth, order of types, id).
        edges: Every edge among all of them that satisfies the filter, by edge id.
        truncated: Whether nodes were left out for the limit.
    """

    anchor: Seen
    nodes: tuple[tuple[Seen, int], ...]
    edges: tuple[Edge, ...]
    truncated: bool


def get_related_context(
    caller: Caller,
    board_id: str,
    node_or_ref: str,
    services: Services,
    *,
    rel_types: Collection[RelType] | None = None,
    direction: Direction = "both",
    max_depth: int = 2,
    limit: int = 200,
) -> RelatedContext:
    """The nodes within some hops of a node, and the edges among them.

    Args:
        caller: Who asks.
        board_id: The board.
        node_or_ref: A node's id, or a canonical source reference that exactly one live node has.
        services: The ports.
        rel_types: Only these relationships, on every hop; None for all.
        direction: Along the edges, against them, or both, on every hop.
        max_depth: 1..4 hops.
        limit: Most nodes beside the anchor, 1..200; the nearest stay.

    Raises:
        PermissionDenied: The board is not granted.
        NodeNotFound: It has no such node.
        InvalidArgument: Several live nodes have the reference.
    """
    granted_board(caller, board_id, services)
    with services.snapshot():
        anchor = _anchor(board_id, node_or_ref, services)
        found = services.queries.around(
            board_id, anchor.node_id, rel_types=rel_types, direction=direction, max_depth=max_depth, limit=limit
        )
        nodes = services.graph.nodes(board_id, found.depths.keys()) if found.depths else {}
        standing = seen(board_id, [anchor, *nodes.values()], services)
    order = sorted(nodes.values(), key=lambda n: (found.depths[n.node_id], TYPE_ORDER[n.node_type], n.node_id))
    others = tuple((standing[n.node_id], found.depths[n.node_id]) for n in order)
    return RelatedContext(standing[anchor.node_id], others, tuple(found.edges), found.truncated)


def _anchor(board_id: str, node_or_ref: str, services: Services) -> Node:
    if ":" not in node_or_ref:
        return node_on(board_id, node_or_ref, services)
    nodes = services.graph.with_refs(board_id, [node_or_ref])
    if not nodes:
        raise NodeNotFound(
            f"No live node of this board has the source reference '{node_or_ref}'. Search for the node, and use its node_id.",
            {"node_ids": [node_or_ref]},
        )
    if len(nodes) > 1:
        named = [n.node_id for n in nodes[:_NAMED]]
        raise InvalidArgument(
            f"{len(nodes)} live nodes have the source reference '{node_or_ref}'. Name one of them by its id; details.node_ids has "
            + ("them." if len(named) == len(nodes) else f"the first {len(named)}."),
            [Problem("node_id", "must be a reference that one live node has, or a node's id")],
            {"node_ids": named, "nodes": len(nodes)},
        )
    return nodes[0]
