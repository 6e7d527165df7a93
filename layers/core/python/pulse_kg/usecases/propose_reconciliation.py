"""propose_reconciliation: a hint for each node candidate, stored with what it was based on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from pulse_kg.domain.model import Candidates, Node, NodeCandidate, Proposal, Session, TextVector
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.reconcile import Facts, Match, SessionView, reconcile, settled_by_content
from pulse_kg.domain.schema import SEARCHABLE_TYPES, NodeType
from pulse_kg.domain.text import fold, prefix_similarity
from pulse_kg.errors import PermissionDenied
from pulse_kg.usecases.access import own_session_with_candidates, require_open
from pulse_kg.usecases.embedding import embed_candidates
from pulse_kg.usecases.services import Deadline, Services


def propose_reconciliation(caller: Caller, session_id: str, services: Services) -> tuple[Proposal, ...]:
    """One proposal for each node candidate, in order; repeatable, and makes the session committable again.

    Raises:
        SessionNotFound, SessionOwnershipMismatch, SessionAlreadyCommitted, SessionAborted, SessionExpired: By the session.
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    deadline = Deadline(services)
    now = services.clock.now()
    session, candidates = own_session_with_candidates(caller, session_id, now, services)
    require_open(session, now)
    board = services.boards.board(session.board_id)
    if board is None:
        raise PermissionDenied.for_board(session.board_id)
    view = embedded_view(session, candidates, board.commit_seq, deadline, services)
    proposals = reconcile(view, services.thresholds)
    services.sessions.save_proposals(
        session_id,
        proposals,
        edges_seen=len(candidates.edges),
        targets_live={
            e.candidate_id: view.known[e.draft.dst.node_id].live
            for e in candidates.edges
            if e.draft.rel_type == "supersedes" and e.draft.dst.node_id is not None
        },
        now=services.clock.now(),
    )
    return proposals


def content_view(session: Session, candidates: Candidates, seq: int, services: Services) -> SessionView:
    """Gathers what rule 1 looks at: the board's last commit, then nodes of equal content, then the nodes that edges name.

    `seq` is read before the graph, so a commit in between shows up as a conflict and never goes unseen.
    """
    by_digest: dict[str, list[Node]] = defaultdict(list)
    for node in services.graph.with_digests(session.board_id, {c.digest for c in candidates.nodes}):
        by_digest[node.content_digest].append(node)
    facts = {c.candidate_id: Facts(same_digest=tuple(by_digest.get(c.digest, ()))) for c in candidates.nodes}
    known_ids = {end.node_id for e in candidates.edges for end in (e.draft.src, e.draft.dst) if end.node_id is not None}
    known = services.graph.nodes(session.board_id, known_ids) if known_ids else {}
    return SessionView(session.source, candidates.nodes, candidates.edges, facts, known, seq)


def embedded_view(session: Session, candidates: Candidates, seq: int, deadline: Deadline, services: Services) -> SessionView:
    """Gathers what all rules look at. A candidate whose content is there already is not embedded: rule 1 decides it."""
    view = content_view(session, candidates, seq, services)
    settled = settled_by_content(view)
    open_ones = tuple(c for c in candidates.nodes if c.candidate_id not in settled)
    vectors = embed_candidates(session, replace(candidates, nodes=open_ones), deadline.left(), services)
    return replace(view, facts={**view.facts, **_similarities(session.board_id, open_ones, view.facts, vectors, services)})


def _similarities(
    board_id: str,
    candidates: tuple[NodeCandidate, ...],
    facts: Mapping[str, Facts],
    vectors: Mapping[str, TextVector],
    services: Services,
) -> dict[str, Facts]:
    """The facts of candidates with what their references and their likeness add."""
    by_ref: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in services.graph.with_refs(board_id, {c.stable_ref for c in candidates if c.stable_ref is not None}):
        by_ref[node.node_type, node.source_ref].append(node)
    best = _best_matches(board_id, candidates, vectors, services)
    found: dict[str, Facts] = {}
    for c in candidates:
        same_ref = by_ref.get((c.draft.node_type, c.stable_ref), []) if c.stable_ref is not None else []
        vector = vectors.get(c.candidate_id)
        found[c.candidate_id] = replace(
            facts[c.candidate_id],
            same_ref=_scored(board_id, c, same_ref, vector, services),
            matches=best.get(c.candidate_id, ()),
            by_vector=vector is not None,
            cut=vector is not None and vector.truncated,
        )
    return found


def _scored(board_id: str, candidate: NodeCandidate, nodes: list[Node], vector: TextVector | None, services: Services) -> tuple[Match, ...]:
    if not nodes:
        return ()
    if vector is None:
        title = fold(candidate.draft.title)
        return tuple(Match(n, round(prefix_similarity(title, fold(n.title)), 4)) for n in nodes)
    scores = services.vectors.similarities(board_id, vector.vector, [n.node_id for n in nodes])
    return tuple(Match(n, scores.get(n.node_id, 0.0)) for n in nodes)


def _best_matches(
    board_id: str, candidates: tuple[NodeCandidate, ...], vectors: Mapping[str, TextVector], services: Services
) -> dict[str, tuple[Match, ...]]:
    """The best live match of each candidate; one search for all candidates of a type."""
    by_type: dict[NodeType, list[NodeCandidate]] = defaultdict(list)
    for c in candidates:
        by_type[c.draft.node_type].append(c)
    found: dict[str, tuple[Match, ...]] = {}
    for node_type, group in by_type.items():
        if node_type not in SEARCHABLE_TYPES:
            for c in group:
                titles = services.graph.nearest_titles(board_id, node_type, fold(c.draft.title), limit=1, live_only=True)
                found[c.candidate_id] = tuple(Match(t.node, t.score) for t in titles)
            continue
        hits = services.vectors.nearest(board_id, node_type, [vectors[c.candidate_id].vector for c in group], limit=1, live_only=True)
        nodes = services.graph.nodes(board_id, {h.node_id for some in hits for h in some})
        for c, some in zip(group, hits, strict=True):
            found[c.candidate_id] = tuple(Match(nodes[h.node_id], h.score) for h in some if h.node_id in nodes)
    return found
