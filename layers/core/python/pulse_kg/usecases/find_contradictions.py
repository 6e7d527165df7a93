"""find_contradictions: which statements of a board can't both hold."""

from __future__ import annotations

from dataclasses import dataclass

from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, no_node, seen, seen_on
from pulse_kg.usecases.services import Services


@dataclass(frozen=True)
class Pair:
    """Two nodes that contradict each other, and the edge that says so."""

    left: Seen
    right: Seen
    edge: Edge

    @property
    def resolved(self) -> bool:
        """Whether one of the two does not hold any more."""
        return _settled(self.left.node) or _settled(self.right.node)


@dataclass(frozen=True)
class Contradictions:
    """The answer: pairs, newest first, then by edge id; and whether some were left out for the limit."""

    pairs: tuple[Pair, ...]
    truncated: bool


def find_contradictions(
    caller: Caller, board_id: str, node_id: str | None, services: Services, *, limit: int = 100, include_resolved: bool = True
) -> Contradictions:
    """The pairs of a board, or those of one node, which stands on the left of each.

    Args:
        caller: Who asks.
        board_id: The board.
        node_id: Only pairs with this node; None for all.
        services: The ports.
        limit: Most pairs, 1..200.
        include_resolved: Whether pairs of which one side is superseded or revoked are among them.

    Raises:
        PermissionDenied: The board is not granted.
        NodeNotFound: It has no such node.
    """
    granted_board(caller, board_id, services)
    with services.snapshot():
        # Two nodes are joined by two such edges at most, so that these are enough for the pairs that are shown, and one more.
        most = 2 * (limit + 1) if include_resolved else None
        edges = {frozenset((e.src, e.dst)): e for e in reversed(services.queries.contradictions(board_id, node_id=node_id, most=most))}
        found = sorted(edges.values(), key=lambda e: (-e.created_at, e.edge_id))
        shown = found[: limit + 1] if include_resolved else found
        ends = {end for e in shown for end in (e.src, e.dst)} | ({node_id} if node_id is not None else set())
        if include_resolved:
            standing = seen_on(board_id, ends, services)
            missing = ends - standing.keys()
        else:  # places only of what is shown, for there may be many times as many
            nodes = services.graph.nodes(board_id, ends) if ends else {}
            missing = ends - nodes.keys()
            shown = [e for e in shown if not (_settled(nodes[e.src]) or _settled(nodes[e.dst]))]
            standing = seen(board_id, (nodes[end] for e in shown[:limit] for end in (e.src, e.dst)), services)
    if node_id is not None and node_id in missing:
        raise no_node(node_id)
    pairs = []
    for edge in shown[:limit]:
        left, right = (edge.dst, edge.src) if edge.dst == node_id else (edge.src, edge.dst)
        pairs.append(Pair(standing[left], standing[right], edge))
    return Contradictions(tuple(pairs), len(shown) > limit)


def _settled(node: Node) -> bool:
    return not node.live or node.revoked
