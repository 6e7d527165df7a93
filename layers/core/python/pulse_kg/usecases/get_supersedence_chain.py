"""get_supersedence_chain: what a node replaced and was replaced by, from the one that holds to the oldest."""

from __future__ import annotations

from dataclasses import dataclass

from pulse_kg.domain.chains import head_of, newest_to_oldest
from pulse_kg.domain.permissions import Caller
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import Seen, no_node, seen
from pulse_kg.usecases.services import Services


@dataclass(frozen=True)
class SupersedenceChain:
    """The answer.

    Attributes:
        head: The node that holds; where the way up was too long, the last one that was reached.
        chain: The head and what it superseded, newest to oldest.
        truncated: Whether something is missing: above the head, below, or between the last two, where the last is the node asked for.
    """

    head: str
    chain: tuple[Seen, ...]
    truncated: bool


def get_supersedence_chain(caller: Caller, board_id: str, node_id: str, max_depth: int, services: Services) -> SupersedenceChain:
    """The chain that a node is a member of.

    Args:
        caller: Who asks.
        board_id: The board.
        node_id: Any member.
        max_depth: Most nodes from the head on, 1..50; the node itself comes last where it lies beyond.
        services: The ports.

    Raises:
        PermissionDenied: The board is not granted.
        NodeNotFound: It has no such node.
    """
    granted_board(caller, board_id, services)
    with services.snapshot():
        lineage = services.queries.lineage(board_id, [node_id])
        if node_id not in lineage.nodes:
            raise no_node(node_id)
        head = head_of(node_id, lineage.nodes)
        whole = newest_to_oldest(head, lineage.older, lineage.nodes)
        shown = list(whole[:max_depth])
        if node_id not in shown:
            shown.append(node_id)
        standing = seen(board_id, (lineage.nodes[n] for n in shown), services, lineage.places)
    truncated = len(whole) > max_depth or not lineage.nodes[head].live
    return SupersedenceChain(head, tuple(standing.values()), truncated)
