"""Who may touch which board and session: the checks that all write tools share, in the contract's order."""

from __future__ import annotations

from pulse_kg.domain.instants import Instant, format_instant
from pulse_kg.domain.model import Board, Candidates, Session
from pulse_kg.domain.permissions import Caller
from pulse_kg.errors import (
    PermissionDenied,
    SessionAborted,
    SessionAlreadyCommitted,
    SessionExpired,
    SessionNotFound,
    SessionOwnershipMismatch,
    StoreUnavailable,
)
from pulse_kg.ports.sessions import GRACE_MS
from pulse_kg.usecases.services import Services


def granted_board(caller: Caller, board_id: str, services: Services) -> Board:
    """The board, if it is there and granted.

    Raises:
        PermissionDenied: It is not granted, or there is none: the same answer.
        StoreUnavailable: It is being erased.
    """
    board = services.boards.board(board_id) if caller.sees(board_id) else None
    if board is None:
        raise PermissionDenied.for_board(board_id)
    if board.erasing:
        raise StoreUnavailable("board", f"The board '{board_id}' is being erased and takes nothing new.", {"erasing": True})
    return board


def own_session(caller: Caller, session_id: str, now: Instant, services: Services) -> Session:
    """The caller's own session, in whatever state.

    Raises:
        SessionNotFound: There is none, its grace is over, or its board is not granted.
        SessionOwnershipMismatch: It belongs to another agent.
    """
    return _owned(caller, services.sessions.load(session_id), now)


def own_session_with_candidates(caller: Caller, session_id: str, now: Instant, services: Services) -> tuple[Session, Candidates]:
    """The caller's own session and its candidates, of one read.

    Raises:
        SessionNotFound, SessionOwnershipMismatch: As `own_session`.
    """
    session, candidates = services.sessions.load_all(session_id)
    return _owned(caller, session, now), candidates


def _owned(caller: Caller, session: Session, now: Instant) -> Session:
    if not caller.sees(session.board_id) or now >= session.expires_at + GRACE_MS:
        raise SessionNotFound
    if session.agent_id != caller.agent_id:
        raise SessionOwnershipMismatch("This session belongs to another agent. Open your own with begin_consolidation.")
    return session


def open_session(caller: Caller, session_id: str, now: Instant, services: Services) -> Session:
    """The caller's own session, open and not expired.

    Raises:
        SessionNotFound, SessionOwnershipMismatch: As `own_session`.
        SessionAlreadyCommitted, SessionAborted, SessionExpired: By its state.
    """
    session = own_session(caller, session_id, now, services)
    require_open(session, now)
    return session


def require_open(session: Session, now: Instant) -> None:
    """Refuses a session that is closed or expired.

    Raises:
        SessionAlreadyCommitted, SessionAborted, SessionExpired: By its state.
    """
    if session.state == "committed":
        raise SessionAlreadyCommitted(
            "This session was committed already. Open a new one with begin_consolidation for more.",
            {"audit_row_id": (session.answer or {}).get("audit_row_id")},
        )
    if session.state == "aborted":
        raise SessionAborted
    if now >= session.expires_at:
        raise SessionExpired(format_instant(session.expires_at))
