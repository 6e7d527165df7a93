"""Whether the board changed under a session since its last propose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pulse_kg.domain.model import EdgeCandidate, Node, NodeCandidate, Proposal, Resolution
from pulse_kg.domain.reconcile import BY_EDGES


def collisions(
    candidates: Sequence[NodeCandidate],
    edges: Sequence[EdgeCandidate],
    proposals: Mapping[str, Proposal],
    resolutions: Sequence[Resolution],
    nodes: Mapping[str, Node],
    similar: Iterable[Node],
) -> dict[str, str]:
    """The nodes that collide with the session, and why.

    Args:
        candidates: The node candidates.
        edges: The edge candidates.
        proposals: The proposals that the commit goes by.
        resolutions: What the commit is about to do, one for each candidate.
        nodes: The nodes that targets and edges name, as they are now.
        similar: Nodes with a digest or a stable reference of a candidate, as they are now.

    Returns:
        Node id → reason, in the order of the candidates; empty where nothing collides.
    """
    found: dict[str, str] = {}
    similar = list(similar)
    for candidate, resolution in zip(candidates, resolutions, strict=True):
        proposal = proposals[candidate.candidate_id]
        by_edges = proposal.targets if proposal.rule == BY_EDGES else ()
        for target in dict.fromkeys((*resolution.targets, *by_edges)):  # its edges supersede these, whatever an override says
            node = nodes[target.node_id]
            if node.version != target.version or (resolution.overridden and node.commit_seq > proposal.seen_seq):
                found.setdefault(node.node_id, f"{candidate.candidate_id}: its content or liveness changed")
            elif node.human_curated and resolution.hint in {"UPDATE", "SUPERSEDE"}:
                found.setdefault(node.node_id, f"{candidate.candidate_id}: a person curates it now")
        watched = {t.node_id for t in (*resolution.targets, *by_edges)}
        for node in similar:
            if node.commit_seq > proposal.seen_seq and node.node_id not in watched and _same(candidate, node, proposal.seen_seq):
                found.setdefault(node.node_id, f"{candidate.candidate_id}: it appeared with the same content or reference")
    for edge in edges:
        if edge.target_was_live and edge.draft.dst.node_id is not None and not nodes[edge.draft.dst.node_id].live:
            found.setdefault(edge.draft.dst.node_id, f"{edge.candidate_id}: it was superseded by another commit")
    return found


def _same(candidate: NodeCandidate, node: Node, seen_seq: int) -> bool:
    """Whether a node says what the candidate says; one that was made and superseded since counts, for a propose would not revive it."""
    if node.node_type != candidate.draft.node_type or not (node.live or node.created_seq > seen_seq):
        return False
    if candidate.stable_ref is not None and node.stable_ref is not None:
        return node.stable_ref == candidate.stable_ref
    return node.content_digest == candidate.digest
