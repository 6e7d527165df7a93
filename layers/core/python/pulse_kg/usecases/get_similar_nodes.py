"""get_similar_nodes: what the graph already has that looks like a candidate."""

from __future__ import annotations

from dataclasses import dataclass

from pulse_kg.domain.model import Candidates, MatchMode, Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import SEARCHABLE_TYPES
from pulse_kg.domain.text import fold
from pulse_kg.usecases.access import open_session
from pulse_kg.usecases.embedding import embed_candidates
from pulse_kg.usecases.services import Deadline, Services


@dataclass(frozen=True)
class SimilarNodes:
    """The answer: nodes of the candidate's type with their scores, best first."""

    match_mode: MatchMode
    matches: tuple[tuple[Node, float], ...]


def get_similar_nodes(caller: Caller, session_id: str, candidate_id: str, k: int, services: Services) -> SimilarNodes:
    """The k nearest nodes of the candidate's type, superseded ones too; none below a score of 0.

    Raises:
        SessionNotFound, SessionOwnershipMismatch, SessionAlreadyCommitted, SessionAborted, SessionExpired: By the session.
        CandidateNotFound: The session has no such node candidate.
        EmbedderTimeout, EmbeddingModelMismatch: By the embedding.
    """
    deadline = Deadline(services)
    session = open_session(caller, session_id, services.clock.now(), services)
    candidate = services.sessions.node_candidate(session_id, candidate_id)
    node_type = candidate.draft.node_type
    if node_type not in SEARCHABLE_TYPES:
        found = services.graph.nearest_titles(session.board_id, node_type, fold(candidate.draft.title), limit=k, live_only=False)
        return SimilarNodes("title_prefix", tuple((m.node, m.score) for m in found))
    stored = services.sessions.candidates(session_id).vectors
    kept = {candidate_id: stored[candidate_id]} if candidate_id in stored else {}
    vectors = embed_candidates(session, Candidates((candidate,), vectors=kept), deadline.left(), services)
    hits = services.vectors.nearest(session.board_id, node_type, [vectors[candidate_id].vector], limit=k, live_only=False)[0]
    nodes = services.graph.nodes(session.board_id, [h.node_id for h in hits])
    return SimilarNodes(services.vectors.match_mode, tuple((nodes[h.node_id], h.score) for h in hits if h.node_id in nodes))
