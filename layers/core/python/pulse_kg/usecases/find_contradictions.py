"""find_contradictions: which statements of a board can't both hold."""

from __future__ import annotations

from dataclasses import dataclass

from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, node_on, seen
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
        if node_id is not None:
            node_on(board_id, node_id, services)
        edges = {frozenset((e.src, e.dst)): e for e in reversed(services.queries.contradictions(board_id, node_id=node_id))}
        found = sorted(edges.values(), key=lambda e: (-e.created_at, e.edge_id))
        shown = found[: limit + 1] if include_resolved else found  # no need to read what will not be shown
        nodes = services.graph.nodes(board_id, {end for e in shown for end in (e.src, e.dst)}) if shown else {}
        if not include_resolved:
            shown = [e for e in shown if not (_settled(nodes[e.src]) or _settled(nodes[e.dst]))]
        kept = shown[:limit]
        standing = seen(board_id, (nodes[end] for e in kept for end in (e.src, e.dst)), services)
    pairs = []
    for edge in kept:
        left, right = (edge.dst, edge.src) if edge.dst == node_id else (edge.src, edge.dst)
        pairs.append(Pair(standing[left], standing[right], edge))
    return Contradictions(tuple(pairs), len(shown) > limit)


def _settled(node: Node) -> bool:
    return not node.live or node.revoked
