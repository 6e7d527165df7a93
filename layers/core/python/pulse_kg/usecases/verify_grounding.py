"""verify_grounding: whether an answer says what the nodes say that it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.grounding import Grounding, Material, check
from pulse_kg.domain.permissions import Caller
from pulse_kg.errors import PayloadTooLarge
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.services import Services

MAX_ANSWER_BYTES: Final = 32 * 1024
"""Of an answer that is checked."""


@dataclass(frozen=True)
class Verified:
    """The answer.

    Attributes:
        grounding: What the check found.
        missing: The ids that the board does not have, in the order of the argument.
        superseded: Those of nodes that are superseded.
    """

    grounding: Grounding
    missing: tuple[str, ...]
    superseded: tuple[str, ...]


def verify_grounding(caller: Caller, board_id: str, answer_text: str, node_ids: Sequence[str], services: Services) -> Verified:
    """Checks an answer against the text of nodes: title, body, attributes, and the titles of what one edge joins to them.

    Args:
        caller: Who asks.
        board_id: The board.
        answer_text: Up to 32 KiB.
        node_ids: 1..200 ids; those that the board does not have are told, and no error. One that comes twice counts once.
        services: The ports.

    Raises:
        PermissionDenied: The board is not granted.
        PayloadTooLarge: The answer is too long.
    """
    granted_board(caller, board_id, services)
    size = len(answer_text.encode())
    if size > MAX_ANSWER_BYTES:
        raise PayloadTooLarge(
            f"The answer has {size} bytes, and {MAX_ANSWER_BYTES} are allowed. Check it in parts.",
            {"bytes": size, "limit_bytes": MAX_ANSWER_BYTES, "path": "answer_text"},
        )
    asked = list(dict.fromkeys(node_ids))
    with services.snapshot():
        joined = services.queries.neighbours(board_id, asked, near=True)
    nodes = joined.near
    titles: dict[str, dict[str, str]] = {node_id: {} for node_id in nodes}
    for edge, other in joined.links:
        for end in (edge.src, edge.dst):
            if end in titles and end != other.node_id:
                titles[end][other.node_id] = other.title
    found = [nodes[n] for n in asked if n in nodes]
    materials = [Material(n.node_id, n.title, n.body, n.attributes, tuple(titles[n.node_id].values())) for n in found]
    return Verified(
        check(answer_text, materials),
        tuple(n for n in asked if n not in nodes),
        tuple(n.node_id for n in found if not n.live),
    )
