"""get_related_context: what lies around a node, breadth first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.model import Edge
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import RelType
from pulse_kg.domain.walks import TYPE_ORDER
from pulse_kg.errors import InvalidArgument, NodeNotFound, Problem
from pulse_kg.ports.reading import Direction
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, as_seen, no_node
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
        found = services.queries.around(board_id, anchor, rel_types=rel_types, direction=direction, max_depth=max_depth, limit=limit)
    standing = as_seen(found.nodes)
    if anchor not in standing:
        raise no_node(anchor)
    others = [(standing[node_id], depth) for node_id, depth in found.depths.items()]
    others.sort(key=lambda each: (each[1], TYPE_ORDER[each[0].node.node_type], each[0].node.node_id))
    return RelatedContext(standing[anchor], tuple(others), tuple(found.edges), found.truncated)


def _anchor(board_id: str, node_or_ref: str, services: Services) -> str:
    """The id that is meant; one that is stated as such need not be there."""
    if ":" not in node_or_ref:
        return node_or_ref
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
    return nodes[0].node_id
