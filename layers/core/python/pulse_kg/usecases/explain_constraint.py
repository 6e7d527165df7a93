"""explain_constraint: where a Constraint comes from, what goes with it, and which bugs broke it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pulse_kg.domain.model import Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.refs import Artifact, artifact_of, parse_ref
from pulse_kg.domain.schema import RelType
from pulse_kg.domain.walks import TYPE_ORDER
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.reading import MAX_LISTED, Seen, live_first, no_node, require_type, seen
from pulse_kg.usecases.services import Services

_ASKED: Final[tuple[RelType, ...]] = ("derives_from", "relates_to", "depends_on", "contradicts", "violates")


@dataclass(frozen=True)
class ConstraintExplained:
    """The answer.

    Attributes:
        constraint: The Constraint.
        origin: The node that it derives from, else the artifact that it was stated in.
        related: Constraints joined to it, and those of the same origin; live before superseded, then by id.
        violations: Bugs that violate it, in the same order.
        truncated: Whether a list was cut short.
    """

    constraint: Seen
    origin: Seen | Artifact
    related: tuple[Seen, ...]
    violations: tuple[Seen, ...]
    truncated: bool


def explain_constraint(caller: Caller, board_id: str, node_id: str, services: Services) -> ConstraintExplained:
    """What the graph says around one Constraint.

    Raises:
        PermissionDenied: The board is not granted.
        NodeNotFound: It has no such node.
        InvalidArgument: The node is no Constraint.
    """
    granted_board(caller, board_id, services)
    with services.snapshot():
        found = services.queries.neighbours(board_id, [node_id], rel_types=_ASKED, near=True, placed="all")
        if node_id not in found.near:
            raise no_node(node_id)
        constraint, joined, places = found.near[node_id], found.links, dict(found.places)
        require_type(constraint, "Constraint")
        origins = [n for e, n in joined if e.rel_type == "derives_from" and e.src == node_id]
        bugs = [n for e, n in joined if e.rel_type == "violates"]
        related = [n for e, n in joined if e.rel_type not in {"derives_from", "violates"} and n.node_type == "Constraint"]
        origin = min(origins, key=lambda n: (not n.live, TYPE_ORDER[n.node_type], n.node_id), default=None)
        if origin is not None:
            derived = services.queries.neighbours(
                board_id, [origin.node_id], rel_types=["derives_from"], direction="in", node_types=["Constraint"], placed="all"
            )
            related += [n for _, n in derived.links]
            places |= derived.places
        else:
            stated = services.queries.stated_in(board_id, artifact_of(constraint.source_ref), ["Constraint"])
            related += [n for n, _ in stated]
            places |= {n.node_id: place for n, place in stated}
        kept, violations = _ordered(related, without=node_id), _ordered(bugs)
        shown = [*kept[:MAX_LISTED], *violations[:MAX_LISTED]]
        standing = seen(board_id, [constraint, *([origin] if origin is not None else []), *shown], services, places)
    return ConstraintExplained(
        standing[node_id],
        standing[origin.node_id] if origin is not None else parse_ref(constraint.source_ref).artifact,
        tuple(standing[n.node_id] for n in kept[:MAX_LISTED]),
        tuple(standing[n.node_id] for n in violations[:MAX_LISTED]),
        max(len(kept), len(violations)) > MAX_LISTED,
    )


def _ordered(nodes: Iterable[Node], without: str | None = None) -> list[Node]:
    return sorted({n.node_id: n for n in nodes if n.node_id != without}.values(), key=live_first)
