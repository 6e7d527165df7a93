"""begin_consolidation: opens a session over a version of an artifact, unless its content was committed before."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.model import HashBasis, Session, Source
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import canonical_json
from pulse_kg.errors import RateLimited
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.services import Services

_PURGED_PER_BEGIN = 20  # old sessions are forgotten along the way, a few at a time so that no caller pays for all


@dataclass(frozen=True)
class Begun:
    """The answer: `session` is None where nothing changed."""

    content_hash: str
    basis: HashBasis
    session: Session | None


def begin_consolidation(caller: Caller, board_id: str, source: Source, payload_hash: str | None, services: Services) -> Begun:
    """Opens a session.

    Args:
        caller: Who asks.
        board_id: On which board.
        source: The version of the artifact.
        payload_hash: `sha256:` + 64 hex digits of its content, if the caller has it.
        services: The ports.

    Raises:
        PermissionDenied: The board is not granted, or there is none.
        RateLimited: Too many sessions a minute, or too many open ones.
    """
    now = services.clock.now()
    granted_board(caller, board_id, services)
    content_hash, basis = _content_hash(board_id, source, payload_hash, services)
    if services.commits.last_hash(board_id, source.artifact) == content_hash:
        return Begun(content_hash, basis, None)
    mine = _open_sessions(caller, now, services)
    if len(mine) >= services.limits.open_sessions:  # known before it costs the agent one of this minute's
        raise _too_many(mine, now, services)
    wait = services.rates.take(
        f"consolidations:{caller.agent_id}", limit=services.limits.consolidations_per_minute, window_seconds=60, now=now
    )
    if wait is not None:
        raise RateLimited(
            f"No more consolidations this minute (limit {services.limits.consolidations_per_minute}). Go on in {wait} s.",
            {"retry_after_seconds": wait, "limit_per_minute": services.limits.consolidations_per_minute},
        )
    services.sessions.purge(now=now, at_most=_PURGED_PER_BEGIN)
    session = Session(
        session_id=services.ids.session_id(now),
        board_id=board_id,
        agent_id=caller.agent_id,
        source=source,
        content_hash=content_hash,
        hash_basis=basis,
        started_at=now,
        expires_at=now + services.limits.session_ttl_seconds * 1000,
    )
    # Others may have opened some since they were counted.
    if not services.sessions.create(session, limit=services.limits.open_sessions, counted_boards=caller.boards):
        raise _too_many(_open_sessions(caller, now, services), now, services)
    return Begun(content_hash, basis, session)


def _content_hash(board_id: str, source: Source, payload_hash: str | None, services: Services) -> tuple[str, HashBasis]:
    if payload_hash is not None:
        return payload_hash, "payload"
    ingested = services.commits.ingested_hash(board_id, source.artifact, source.version)
    if ingested is not None:
        return ingested, "artifact"
    text = canonical_json([source.artifact.source_type, source.artifact.source_id, source.version])
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest(), "version"


def _open_sessions(caller: Caller, now: int, services: Services) -> list[Session]:
    # Those on a board that was taken away since can be neither closed nor named.
    return [s for s in services.sessions.open_sessions(agent_id=caller.agent_id, now=now) if caller.sees(s.board_id)]


def _too_many(mine: Sequence[Session], now: int, services: Services) -> RateLimited:
    first = min((s.expires_at for s in mine), default=now)
    return RateLimited(
        f"This agent has as many open sessions as are allowed ({services.limits.open_sessions}). Commit or abort some of them.",
        {
            "retry_after_seconds": max(1, -(-(first - now) // 1000)),
            "open_sessions": [
                {"session_id": s.session_id, "board_id": s.board_id, "expires_at": format_instant(s.expires_at)} for s in mine
            ],
        },
    )
