"""What all tools that read share: the node that is asked for, and what an answer says of every node beside its own fields."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.domain.model import Node
from pulse_kg.errors import InvalidArgument, NodeNotFound, Problem
from pulse_kg.ports.reading import Place, Placed
from pulse_kg.usecases.services import Services

MAX_LISTED: Final = 200
"""Entries of a list in an answer, where nothing else is said."""


@dataclass(frozen=True)
class Seen:
    """A node as an answer shows it: with where it stands in its graph."""

    node: Node
    place: Place

    @property
    def marks(self) -> dict[str, Any]:
        """See `node_marks`."""
        return node_marks(self.node, self.place)


def node_marks(node: Node, place: Place | None = None) -> dict[str, Any]:
    """What every answer says of a node that is not simply in force; empty for one that is.

    `superseded_by` where it is superseded, `status` "revoked" where it was taken back, `contradicted` true where an unresolved contradicts
    edge touches it.
    """
    marks: dict[str, Any] = {}
    if node.superseded_by is not None:
        marks["superseded_by"] = node.superseded_by
    if node.revoked:
        marks["status"] = "revoked"
    if place is not None and place.contradicted:
        marks["contradicted"] = True
    return marks


def seen(board_id: str, nodes: Iterable[Node], services: Services, known: Mapping[str, Place] | None = None) -> dict[str, Seen]:
    """Where each of these nodes stands, by id, in their order; one read for all, none for none.

    Args:
        board_id: The board.
        nodes: The nodes.
        services: The ports.
        known: Places that were read already; only the others are read.

    Raises:
        StoreUnavailable: The graph can't be read.
    """
    by_id, places = {node.node_id: node for node in nodes}, dict(known or {})
    if missing := [node_id for node_id in by_id if node_id not in places]:
        places |= services.queries.places(board_id, missing)
    return {node_id: Seen(node, places.get(node_id, Place())) for node_id, node in by_id.items()}


def seen_on(board_id: str, node_ids: Collection[str], services: Services) -> dict[str, Seen]:
    """Those of these nodes that the board has, by id, sorted; one read, none for none.

    Raises:
        StoreUnavailable: The graph can't be read.
    """
    return as_seen(services.queries.placed(board_id, node_ids)) if node_ids else {}


def as_seen(placed: Mapping[str, Placed]) -> dict[str, Seen]:
    """Nodes that were read with their places, in the same order."""
    return {node_id: Seen(node, place) for node_id, (node, place) in placed.items()}


def no_node(node_id: str) -> NodeNotFound:
    """The refusal of an id that the board does not have."""
    return NodeNotFound(
        f"This board has no node '{node_id}'. Search for it with query_natural or get_decision_history, and use a node_id of the answer.",
        {"node_ids": [node_id]},
    )


def require_type(node: Node, node_type: str) -> None:
    """Refuses a node of another type than a tool is about.

    Raises:
        InvalidArgument: It is of another type.
    """
    if node.node_type != node_type:
        raise InvalidArgument(
            f"'{node.node_id}' is a node of the type {node.node_type}, and this tool takes a {node_type}. "
            "Name one, or use get_related_context, which takes every type.",
            [Problem("node_id", f"must be a {node_type}")],
        )


def live_first(node: Node) -> tuple[bool, str]:
    """A key to sort nodes by that no score tells apart: live before superseded, then by id."""
    return not node.live, node.node_id
