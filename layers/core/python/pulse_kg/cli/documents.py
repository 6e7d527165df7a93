"""The JSON of the things that the commands show."""

from __future__ import annotations

from typing import Any

from pulse_kg.domain.events import source_dict
from pulse_kg.domain.instants import Instant, format_instant
from pulse_kg.domain.model import Board, Edge, Node, Session
from pulse_kg.ports.identity import Agent, KeyRecord
from pulse_kg.usecases.identity import effective_flags


def moment(instant: Instant | None) -> str | None:
    """An instant as text."""
    return None if instant is None else format_instant(instant)


def board_document(board: Board) -> dict[str, Any]:
    """A board."""
    return {
        "board_id": board.board_id,
        "name": board.name,
        "created_at": moment(board.created_at),
        "commit_seq": board.commit_seq,
        "erasing": board.erasing,
    }


def agent_document(agent: Agent) -> dict[str, Any]:
    """An agent; `flags` are those in force."""
    return {
        "agent_id": agent.agent_id,
        "name": agent.name,
        "preset": agent.preset,
        "boards": list(agent.boards),
        "denied": list(agent.denied),
        "flags": sorted(effective_flags(agent)),
        "added_flags": list(agent.added_flags),
        "removed_flags": list(agent.removed_flags),
        "created_at": moment(agent.created_at),
        "revoked_at": moment(agent.revoked_at),
    }


def key_document(key: KeyRecord) -> dict[str, Any]:
    """What is known of a key; never the key, nor its hash."""
    return {"public_id": key.public_id, "created_at": moment(key.created_at), "revoked_at": moment(key.revoked_at)}


def session_document(session: Session) -> dict[str, Any]:
    """A session."""
    return {
        "session_id": session.session_id,
        "board_id": session.board_id,
        "agent_id": session.agent_id,
        "source": source_dict(session),
        "state": session.state,
        "committable": session.committable,
        "reason": session.reason,
        "nodes": session.nodes,
        "edges": session.edges,
        "started_at": moment(session.started_at),
        "expires_at": moment(session.expires_at),
    }


def node_document(node: Node) -> dict[str, Any]:
    """A node with all its properties."""
    return {
        "board_id": node.board_id,
        "node_id": node.node_id,
        "type": node.node_type,
        "title": node.title,
        "body": node.body,
        "attributes": dict(node.attributes),
        "status": node.status,
        "source_ref": node.source_ref,
        "artifact": node.artifact,
        "artifact_version": node.artifact_version,
        "source_session_id": node.source_session_id,
        "created_seq": node.created_seq,
        "commit_seq": node.commit_seq,
        "version": node.version,
        "content_digest": node.content_digest,
        "created_at": moment(node.created_at),
        "updated_at": moment(node.updated_at),
        "created_by": node.created_by,
        "confidence": node.confidence,
        "relevance_score": node.relevance_score,
        "query_hits": node.query_hits,
        "last_queried_at": moment(node.last_queried_at),
        "last_recomputed_at": moment(node.last_recomputed_at),
        "priority_boost": node.priority_boost,
        "superseded_by": node.superseded_by,
        "superseded_at": moment(node.superseded_at),
        "revocation_reason": node.revocation_reason,
        "human_curated": node.human_curated,
        "truncated": node.truncated,
    }


def edge_document(edge: Edge) -> dict[str, Any]:
    """An edge with all its properties."""
    return {
        "board_id": edge.board_id,
        "edge_id": edge.edge_id,
        "src": edge.src,
        "rel": edge.rel_type,
        "dst": edge.dst,
        "reason": edge.reason,
        "evidence": edge.evidence,
        "confidence": edge.confidence,
        "layer": edge.layer,
        "rule_id": edge.rule_id,
        "created_by": edge.created_by,
        "created_at": moment(edge.created_at),
        "commit_seq": edge.commit_seq,
        "source_session_id": edge.source_session_id,
    }
