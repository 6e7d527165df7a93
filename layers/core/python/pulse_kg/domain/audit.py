"""The audit row: what was done, by whom and why, complete enough to make the graph anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pulse_kg.domain.events import source_dict
from pulse_kg.domain.instants import Instant, format_instant, parse_instant
from pulse_kg.domain.model import (
    Candidates,
    EdgeCandidate,
    EdgeDraft,
    EdgeEnd,
    NodeCandidate,
    NodeDraft,
    Override,
    Proposal,
    Resolution,
    Resolved,
    Session,
    Source,
    Target,
)
from pulse_kg.domain.refs import Artifact

AuditRow = Mapping[str, Any]
"""A JSON-ready row: `audit_row_id`, `kind` (consolidation or administration), `board_id`, and what the kind needs."""


@dataclass(frozen=True)
class Administration:
    """An administrator's change of one node.

    Attributes:
        board_id: The tenant.
        node_id: The node.
        kind: `curate`, or `revoke`.
        reason: Why.
        by: Who.
        curated: For `curate`: whether agents must leave the node as it is from now on.
        priority_boost: For `curate`: 0..0.2 added to its relevance; None leaves it.
    """

    board_id: str
    node_id: str
    kind: Literal["curate", "revoke"]
    reason: str
    by: str
    curated: bool = True
    priority_boost: float | None = None


def administration_row(action: Administration, seq: int, now: Instant, event: Mapping[str, Any]) -> AuditRow:
    """The row of an administrative change."""
    return {
        "audit_row_id": seq,
        "kind": "administration",
        "board_id": action.board_id,
        "agent_id": action.by,
        "session_id": None,
        "action": action.kind,
        "node_id": action.node_id,
        "reason": action.reason,
        "curated": action.curated,
        "priority_boost": action.priority_boost,
        "committed_at": format_instant(now),
        "event_id": event["id"],
    }


def consolidation_row(
    resolved: Resolved,
    mapping: Mapping[str, str],
    answer: Mapping[str, Any],
    counts: Mapping[str, int],
    event: Mapping[str, Any],
    now: Instant,
) -> AuditRow:
    """The row of a consolidation."""
    session = resolved.session
    return {
        "audit_row_id": answer["audit_row_id"],
        "kind": "consolidation",
        "board_id": session.board_id,
        "session_id": session.session_id,
        "agent_id": session.agent_id,
        "source": source_dict(session),
        "content_hash": session.content_hash,
        "hash_basis": session.hash_basis,
        "started_at": format_instant(session.started_at),
        "committed_at": format_instant(now),
        "candidates": {
            "nodes": [node_candidate_dict(c) for c in resolved.candidates.nodes],
            "edges": [edge_candidate_dict(c) for c in resolved.candidates.edges],
        },
        "proposals": [proposal_dict(p) for p in resolved.proposals],
        "overrides": overrides_list(resolved.overrides),
        "resolutions": [_resolution_dict(r) for r in resolved.resolutions],
        "mapping": dict(mapping),
        "applied": answer["applied"],
        "edges_added": answer["edges_added"],
        "superseded_nodes": answer["superseded_nodes"],
        "warnings": list(answer["warnings"]),
        "counts": dict(counts),
        "event_id": event["id"],
    }


def overrides_list(overrides: Sequence[Override]) -> list[dict[str, Any]]:
    """Overrides as they were given."""
    given = ({"candidate_id": o.candidate_id, "hint": o.hint, "rationale": o.rationale, "target_node": o.target_node} for o in overrides)
    return [{k: v for k, v in o.items() if v is not None} for o in given]


def node_candidate_dict(candidate: NodeCandidate) -> dict[str, Any]:
    """A node candidate as JSON."""
    draft = candidate.draft
    return {
        "candidate_id": candidate.candidate_id,
        "node_type": draft.node_type,
        "title": draft.title,
        "body": draft.body,
        "attributes": dict(draft.attributes),
        "source_ref": draft.source_ref,
        "unknown_keys": list(candidate.unknown_keys),
    }


def node_candidate_of(row: Mapping[str, Any]) -> NodeCandidate:
    """The inverse of `node_candidate_dict`."""
    draft = NodeDraft(row["node_type"], row["title"], row["body"], row["attributes"], row["source_ref"])
    return NodeCandidate(row["candidate_id"], draft, tuple(row["unknown_keys"]))


def edge_candidate_dict(candidate: EdgeCandidate) -> dict[str, Any]:
    """An edge candidate as JSON."""
    draft = candidate.draft
    return {
        "edge_candidate_id": candidate.candidate_id,
        "src": draft.src.as_dict(),
        "rel_type": draft.rel_type,
        "dst": draft.dst.as_dict(),
        "attributes": dict(draft.attributes),
        "layer": draft.layer,
        "rule_id": draft.rule_id,
        "unknown_keys": list(candidate.unknown_keys),
        "target_was_live": candidate.target_was_live,
    }


def edge_candidate_of(row: Mapping[str, Any]) -> EdgeCandidate:
    """The inverse of `edge_candidate_dict`."""
    src, dst = EdgeEnd(**row["src"]), EdgeEnd(**row["dst"])
    draft = EdgeDraft(src, row["rel_type"], dst, row["attributes"], row["layer"], row["rule_id"])
    return EdgeCandidate(row["edge_candidate_id"], draft, tuple(row["unknown_keys"]), row["target_was_live"])


def _targets(targets: Sequence[Target]) -> list[dict[str, Any]]:
    return [{"node_id": t.node_id, "version": t.version} for t in targets]


def _targets_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Target, ...]:
    return tuple(Target(t["node_id"], t["version"]) for t in rows)


def proposal_dict(proposal: Proposal) -> dict[str, Any]:
    """A proposal as JSON, with what the tools do not show."""
    return {
        "candidate_id": proposal.candidate_id,
        "hint": proposal.hint,
        "rule": proposal.rule,
        "rationale": proposal.rationale,
        "targets": _targets(proposal.targets),
        "twin": proposal.twin,
        "score": proposal.score,
        "warnings": list(proposal.warnings),
        "seen_seq": proposal.seen_seq,
    }


def proposal_of(row: Mapping[str, Any]) -> Proposal:
    """The inverse of `proposal_dict`."""
    return Proposal(
        candidate_id=row["candidate_id"],
        hint=row["hint"],
        rule=row["rule"],
        rationale=row["rationale"],
        targets=_targets_of(row["targets"]),
        twin=row["twin"],
        score=row["score"],
        warnings=tuple(row["warnings"]),
        seen_seq=row["seen_seq"],
    )


def _resolution_dict(resolution: Resolution) -> dict[str, Any]:
    return {
        "candidate_id": resolution.candidate_id,
        "hint": resolution.hint,
        "targets": _targets(resolution.targets),
        "twin": resolution.twin,
        "overridden": resolution.overridden,
    }


def replayed(row: AuditRow) -> Resolved:
    """The session of a consolidation's row, ready to be planned again."""
    source = row["source"]
    session = Session(
        session_id=row["session_id"],
        board_id=row["board_id"],
        agent_id=row["agent_id"],
        source=Source(Artifact(source["source_type"], source["source_id"]), source["source_version"]),
        content_hash=row["content_hash"],
        hash_basis=row["hash_basis"],
        started_at=parse_instant(row["started_at"]),
        expires_at=parse_instant(row["committed_at"]),
    )
    return Resolved(
        session=session,
        candidates=Candidates(
            tuple(node_candidate_of(c) for c in row["candidates"]["nodes"]), tuple(edge_candidate_of(c) for c in row["candidates"]["edges"])
        ),
        proposals=tuple(proposal_of(p) for p in row["proposals"]),
        overrides=tuple(Override(o["candidate_id"], o["hint"], o["rationale"], o.get("target_node")) for o in row["overrides"]),
        resolutions=tuple(
            Resolution(r["candidate_id"], r["hint"], _targets_of(r["targets"]), r["twin"], r["overridden"]) for r in row["resolutions"]
        ),
    )


def administration_of(row: AuditRow) -> Administration:
    """The action of an administrative row."""
    return Administration(
        row["board_id"], row["node_id"], row["action"], row["reason"], row["agent_id"], row["curated"], row["priority_boost"]
    )
