"""add_node_candidate: adds a node to an open session."""

from __future__ import annotations

from dataclasses import dataclass

from pulse_kg.domain.model import Board, NodeDraft
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import MAX_UNKNOWN_TOLD, AddedAttributes, AttributeSpec, canonical_json, check_node_attributes
from pulse_kg.domain.text import brief
from pulse_kg.errors import InvalidAttribute, PayloadTooLarge, Problem, UnknownAttribute
from pulse_kg.ports.sessions import Appended
from pulse_kg.usecases.access import granted_board, open_session
from pulse_kg.usecases.services import Services

STRICT = "strict_attributes"


@dataclass(frozen=True)
class NodeAdded:
    """The answer: the candidate, and what a reader should know of it."""

    candidate: Appended
    warnings: tuple[str, ...]


def add_node_candidate(caller: Caller, session_id: str, draft: NodeDraft, idempotency_key: str | None, services: Services) -> NodeAdded:
    """Adds and numbers a candidate.

    Raises:
        SessionNotFound, SessionOwnershipMismatch, SessionAlreadyCommitted, SessionAborted, SessionExpired: By the session.
        InvalidAttribute, UnknownAttribute: With every problem.
        PayloadTooLarge: The body, the candidate, or the number of candidates.
        IdempotencyConflict: The key came with other content before.
    """
    now = services.clock.now()
    session = open_session(caller, session_id, now, services)
    board = granted_board(caller, session.board_id, services)
    _check_size(draft, services)
    checked = check_node_attributes(draft.node_type, draft.attributes, added_attributes(board))
    if checked.problems:
        raise InvalidAttribute(
            f"{len(checked.problems)} attributes of this {draft.node_type} can't be taken. Correct them and add it again.", checked.problems
        )
    refuse_unknown(board, checked.unknown, f"a {draft.node_type}")
    appended = services.sessions.append_node(
        session_id,
        draft,
        unknown_keys=checked.unknown,
        idempotency_key=idempotency_key,
        limit=services.limits.node_candidates,
        now=now,
    )
    return NodeAdded(appended, unknown_warnings(checked.unknown, f"a {draft.node_type}"))


def added_attributes(board: Board) -> AddedAttributes:
    """The keys that a board added to its node types, as the schema's checks read them."""
    return {node_type: {key: AttributeSpec(kind) for key, kind in keys.items()} for node_type, keys in board.added_attributes.items()}  # type: ignore[misc, arg-type]


def refuse_unknown(board: Board, unknown: tuple[str, ...], what: str) -> None:
    """Refuses unknown attribute keys on a strict board.

    Raises:
        UnknownAttribute: With every key.
    """
    if unknown and board.settings.get(STRICT):
        raise UnknownAttribute(
            f"This board is strict, and {what} has no such attributes. Drop them, or have the schema extended "
            "with 'pulse-kg boards schema'.",
            [Problem(f"attributes.{brief(key)}", f"is not an attribute of {what}") for key in unknown[:MAX_UNKNOWN_TOLD]],
        )


def unknown_warnings(unknown: tuple[str, ...], what: str) -> tuple[str, ...]:
    """What the answer says of unknown attribute keys."""
    told = [f"'{brief(key)}' is not an attribute of {what}; it will be dropped at commit" for key in unknown[:MAX_UNKNOWN_TOLD]]
    more = len(unknown) - len(told)
    return (*told, f"{more} more are not attributes of {what}; they will be dropped at commit") if more else tuple(told)


def _check_size(draft: NodeDraft, services: Services) -> None:
    limits = services.limits
    body = len(draft.body.encode())
    if body > limits.body_bytes:
        raise PayloadTooLarge(
            f"The body has {body} bytes, and {limits.body_bytes} are allowed. Keep what was decided and why, and refer to the source.",
            {"bytes": body, "limit_bytes": limits.body_bytes, "path": "body"},
        )
    whole = len(canonical_json([draft.node_type, draft.title, draft.body, draft.attributes, draft.source_ref]).encode())
    if whole > limits.candidate_bytes:
        raise PayloadTooLarge(
            f"The candidate has {whole} bytes, and {limits.candidate_bytes} are allowed. Shorten its body or its attributes.",
            {"bytes": whole, "limit_bytes": limits.candidate_bytes, "path": ""},
        )
