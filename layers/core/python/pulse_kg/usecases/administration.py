"""What an administrator does to a node: curate it, or revoke it. Each is a numbered commit of the board with an audit row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulse_kg.domain.audit import Administration
from pulse_kg.domain.completion import administer
from pulse_kg.domain.plan import Surroundings
from pulse_kg.domain.text import text_fault
from pulse_kg.errors import InvalidArgument, NodeNotFound, Problem
from pulse_kg.usecases.services import Services

MAX_BOOST = 0.2
MAX_REASON = 4_000
"""Characters."""


def administer_node(action: Administration, services: Services) -> Mapping[str, Any]:
    """Commits the change.

    Returns:
        `board_id`, `node_id`, `action`, `audit_row_id`.

    Raises:
        InvalidArgument: No reason, one that can't be taken, or a boost out of range.
        NodeNotFound: The board has no such node.
        PermissionDenied: There is no such board.
        StoreUnavailable: Others held the board too long.
    """
    fault = _reason_fault(action.reason)
    problems = [] if fault is None else [Problem("reason", fault)]
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


def _reason_fault(reason: str) -> str | None:
    if not reason.strip():
        return "must not be blank; it goes into the audit row"
    if len(reason) > MAX_REASON:
        return f"has {len(reason):,} characters, and {MAX_REASON:,} are allowed"
    return text_fault(reason)
