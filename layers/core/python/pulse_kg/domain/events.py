"""The CloudEvents 1.0 that the outbox publishes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pulse_kg.domain.instants import Instant, format_instant
from pulse_kg.domain.model import Session
from pulse_kg.domain.schema import canonical_json

if TYPE_CHECKING:
    from pulse_kg.domain.audit import Administration

CONSOLIDATED = "kg.consolidated.v1"
ADMINISTERED = "kg.administered.v1"
MAX_EVENT_BYTES = 240_000
"""Below the queue's message size of 262,144 bytes, with room for attributes."""


def event_id(board_id: str, seq: int) -> str:
    """The id of a commit's event: the same each time it is sent."""
    return f"{board_id}.{seq}"


def _envelope(kind: str, board_id: str, seq: int, subject: str, now: Instant, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": event_id(board_id, seq),
        "source": f"/pulse-kg/boards/{board_id}",
        "type": kind,
        "subject": subject,
        "time": format_instant(now),
        "datacontenttype": "application/json",
        "data": dict(data),
    }


def consolidated_event(session: Session, seq: int, now: Instant, counts: Mapping[str, int], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The event of a consolidation; over `MAX_EVENT_BYTES` it carries counts and the audit row's number instead of the lists."""
    head = {
        "board_id": session.board_id,
        "session_id": session.session_id,
        "audit_row_id": seq,
        "content_hash": session.content_hash,
        "source": source_dict(session),
        "agent_id": session.agent_id,
        "counts": dict(counts),
    }
    whole = {**head, "applied": answer["applied"], "edges_added": answer["edges_added"]}
    event = _envelope(CONSOLIDATED, session.board_id, seq, session.session_id, now, whole)
    if len(canonical_json(event).encode()) > MAX_EVENT_BYTES:
        return _envelope(CONSOLIDATED, session.board_id, seq, session.session_id, now, {**head, "lists": "see the audit row"})
    return event


def administered_event(action: Administration, seq: int, now: Instant) -> dict[str, Any]:
    """The event of an administrative change of one node."""
    data = {"board_id": action.board_id, "audit_row_id": seq, "action": action.kind, "node_id": action.node_id, "agent_id": action.by}
    return _envelope(ADMINISTERED, action.board_id, seq, action.node_id, now, data)


def source_dict(session: Session) -> dict[str, Any]:
    """The source of a session as audit rows and events show it."""
    artifact = session.source.artifact
    return {"source_type": artifact.source_type, "source_id": artifact.source_id, "source_version": session.source.version}
