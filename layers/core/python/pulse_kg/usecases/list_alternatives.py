"""list_alternatives: what was considered for a Decision and discarded."""

from __future__ import annotations

from dataclasses import dataclass

from pulse_kg.domain.permissions import Caller
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import MAX_LISTED, Seen, live_first, no_node, require_type, seen
from pulse_kg.usecases.services import Services


@dataclass(frozen=True)
class Alternatives:
    """The answer: Alternatives, live before superseded, then by id; and whether some were left out."""

    alternatives: tuple[Seen, ...]
    truncated: bool


def list_alternatives(caller: Caller, board_id: str, node_id: str, services: Services) -> Alternatives:
    """The Alternatives that the Decision relates to.

    Raises:
        PermissionDenied: The board is not granted.
        NodeNotFound: It has no such node.
        InvalidArgument: The node is no Decision.
    """
    granted_board(caller, board_id, services)
    with services.snapshot():
        found = services.queries.neighbours(
            board_id, [node_id], rel_types=["relates_to"], direction="out", node_types=["Alternative"], near=True, placed="all"
        )
        if node_id not in found.near:
            raise no_node(node_id)
        require_type(found.near[node_id], "Decision")
        nodes = sorted((n for _, n in found.links), key=live_first)
        standing = seen(board_id, nodes[:MAX_LISTED], services, found.places)
    return Alternatives(tuple(standing.values()), len(nodes) > MAX_LISTED)
