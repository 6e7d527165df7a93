"""Short ways to write down candidates, nodes, edges and sessions; every value that a test does not name is fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulse_kg.domain.model import (
    EdgeCandidate,
    EdgeDraft,
    EdgeEnd,
    Layer,
    Node,
    NodeCandidate,
    NodeDraft,
    Proposal,
    Session,
    Source,
    content_digest,
)
from pulse_kg.domain.reconcile import Facts, SessionView, Thresholds, reconcile
from pulse_kg.domain.refs import Artifact, artifact_of
from pulse_kg.domain.schema import DEFAULT_CONFIDENCE, NodeType, RelType

BOARD = "alpha"
NOW = 1_778_171_400_000
"""2026-05-07T16:30:00.000Z."""
DAY = 86_400_000
SESSION_ID = "kgs_01J0000000000000000000000A"
SPEC = Source(Artifact("spec", "spec_007"), 2)
"""The artifact that sessions consolidate unless a test says otherwise, in its second version."""
TITLE = "Use exponential backoff for retries"


def source(artifact: str = "spec:spec_007", version: int = 2) -> Source:
    """A version of an artifact, written `type:id`."""
    source_type, _, source_id = artifact.partition(":")
    return Source(Artifact(source_type, source_id), version)


def candidate(
    number: int = 1,
    title: str = TITLE,
    *,
    node_type: NodeType = "Decision",
    body: str = "",
    ref: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    unknown_keys: tuple[str, ...] = (),
) -> NodeCandidate:
    """The node candidate of this number."""
    return NodeCandidate(f"cand_{number:03d}", NodeDraft(node_type, title, body, dict(attributes or {}), ref), unknown_keys)


def end(name: str | NodeCandidate | Node) -> EdgeEnd:
    """An end of an edge: a candidate or a node, or the id of one."""
    if isinstance(name, NodeCandidate):
        return EdgeEnd(candidate_id=name.candidate_id)
    if isinstance(name, Node):
        return EdgeEnd(node_id=name.node_id)
    return EdgeEnd(candidate_id=name) if name.startswith("cand_") else EdgeEnd(node_id=name)


def edge(
    src: str | NodeCandidate | Node,
    rel_type: RelType,
    dst: str | NodeCandidate | Node,
    *,
    number: int = 1,
    attributes: Mapping[str, Any] | None = None,
    unknown_keys: tuple[str, ...] = (),
    target_was_live: bool | None = None,
    layer: Layer = "cognitive",
    rule_id: str | None = None,
) -> EdgeCandidate:
    """The edge candidate of this number; a supersedes edge to a node saw it live unless a test says otherwise."""
    if target_was_live is None and rel_type == "supersedes" and end(dst).node_id is not None:
        target_was_live = dst.live if isinstance(dst, Node) else True
    draft = EdgeDraft(end(src), rel_type, end(dst), dict(attributes or {}), layer, rule_id)
    return EdgeCandidate(f"edge_cand_{number:03d}", draft, unknown_keys, target_was_live)


def node(
    node_id: str = "dec_old",
    title: str = TITLE,
    *,
    node_type: NodeType = "Decision",
    body: str = "",
    attributes: Mapping[str, Any] | None = None,
    ref: str = "spec:spec_007",
    artifact_version: int | None = 1,
    **more: Any,
) -> Node:
    """A node as commit 1 may have left it; `more` are further properties."""
    given = dict(attributes or {})
    properties: dict[str, Any] = {
        "source_session_id": "kgs_01J00000000000000000000000",
        "created_seq": 1,
        "commit_seq": 1,
        "version": 1,
        "created_at": NOW - DAY,
        "updated_at": NOW - DAY,
        "created_by": "agt_first",
        "confidence": float(given.get("confidence", DEFAULT_CONFIDENCE)),
        "status": given.get("status", "active") if node_type == "Decision" else None,
        **more,
    }
    if properties.get("superseded_by") is not None:
        properties.setdefault("superseded_at", NOW - DAY)
    return Node(
        board_id=BOARD,
        node_id=node_id,
        node_type=node_type,
        title=title,
        body=body,
        attributes=given,
        source_ref=ref,
        artifact=artifact_of(ref),
        artifact_version=artifact_version,
        content_digest=content_digest(node_type, title, body, given),
        **properties,
    )


def session(of: Source = SPEC, *, session_id: str = SESSION_ID, agent_id: str = "agt_second", started_at: int = NOW - 60_000) -> Session:
    """An open session."""
    return Session(
        session_id=session_id,
        board_id=BOARD,
        agent_id=agent_id,
        source=of,
        content_hash="sha256:" + "0" * 64,
        hash_basis="version",
        started_at=started_at,
        expires_at=started_at + 3_600_000,
    )


def propose(
    *candidates: NodeCandidate,
    edges: Sequence[EdgeCandidate] = (),
    facts: Mapping[str, Facts] | Facts | None = None,
    known: Sequence[Node] = (),
    of: Source = SPEC,
    thresholds: Thresholds | None = None,
) -> tuple[Proposal, ...]:
    """What the rules say of the candidates; facts that are not by candidate are those of the last one."""
    by_id = facts if isinstance(facts, Mapping) else {candidates[-1].candidate_id: facts or Facts()}
    all_facts = {c.candidate_id: by_id.get(c.candidate_id, Facts()) for c in candidates}
    view = SessionView(of, candidates, edges, all_facts, {n.node_id: n for n in known}, seq=7)
    return reconcile(view, thresholds or Thresholds())
