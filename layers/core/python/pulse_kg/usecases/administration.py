"""What an administrator does to a node: curate it, or revoke it. Each is a numbered commit of the board with an audit row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulse_kg.domain.audit import Administration
from pulse_kg.domain.completion import administer
from pulse_kg.domain.plan import Surroundings
from pulse_kg.errors import InvalidArgument, NodeNotFound, Problem
from pulse_kg.usecases.services import Services

MAX_BOOST = 0.2


def administer_node(action: Administration, services: Services) -> Mapping[str, Any]:
    """Commits the change.

    Returns:
        `board_id`, `node_id`, `action`, `audit_row_id`.

    Raises:
        InvalidArgument: No reason, or a boost out of range.
        NodeNotFound: The board has no such node.
        PermissionDenied: There is no such board.
        StoreUnavailable: Others held the board too long.
    """
    problems = [] if action.reason.strip() else [Problem("reason", "must not be blank; it goes into the audit row")]
    if action.priority_boost is not None and not 0 <= action.priority_boost <= MAX_BOOST:
        problems.append(Problem("priority_boost", f"must be from 0 to {MAX_BOOST}"))
    if problems:
        raise InvalidArgument("The change can't be made: " + "; ".join(f"{p.path} {p.problem}" for p in problems) + ".", problems)
    limits = services.limits
    with services.commits.turn(action.board_id, wait_seconds=limits.call_seconds - limits.reserve_seconds) as turn:
        node = services.graph.nodes(action.board_id, [action.node_id]).get(action.node_id)
        if node is None:
            raise NodeNotFound(f"This board has no node {action.node_id}.", {"node_ids": [action.node_id]})
        surroundings = services.graph.surroundings(action.board_id, [action.node_id]).get(action.node_id, Surroundings())
        plan = administer(action, node, surroundings, seq=turn.board.commit_seq + 1, now=services.clock.now())
        turn.commit(plan)
        return plan.answer
