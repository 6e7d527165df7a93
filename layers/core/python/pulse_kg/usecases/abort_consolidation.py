"""abort_consolidation: drops an open session; aborting twice, or after expiry, is the same answer."""

from __future__ import annotations

from pulse_kg.domain.permissions import Caller
from pulse_kg.errors import SessionAlreadyCommitted
from pulse_kg.usecases.access import own_session
from pulse_kg.usecases.services import Services


def abort_consolidation(caller: Caller, session_id: str, services: Services) -> None:
    """Drops the candidates.

    Raises:
        SessionNotFound, SessionOwnershipMismatch: By the session.
        SessionAlreadyCommitted: It was committed; its answer stands.
    """
    now = services.clock.now()
    session = own_session(caller, session_id, now, services)
    if session.state == "committed":
        raise SessionAlreadyCommitted(
            "This session was committed already, and a commit is not taken back by an abort. Record what changed in a new session.",
            {"answer": session.answer},
        )
    services.sessions.abort(session_id, now=now)
