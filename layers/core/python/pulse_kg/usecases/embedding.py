"""Embeds the texts of a session's candidates, each once: vectors are kept with the session."""

from __future__ import annotations

from collections.abc import Sequence

from pulse_kg.domain.model import Candidates, NodeCandidate, Session, TextVector
from pulse_kg.domain.schema import SEARCHABLE_TYPES
from pulse_kg.domain.text import embedding_text
from pulse_kg.usecases.services import Services


def embed_texts(texts: Sequence[str], timeout_seconds: float, services: Services) -> dict[str, TextVector]:
    """Text → vector.

    Raises:
        EmbedderTimeout: The time was over first.
        EmbeddingModelMismatch: The store was filled with another model.
    """
    if not texts:
        return {}
    services.vectors.check_model(services.embedder.info())
    embedded = services.embedder.embed(texts, timeout_seconds=timeout_seconds)
    return dict(zip(texts, embedded, strict=True))


def candidate_text(candidate: NodeCandidate) -> str:
    """The text whose vector stands for a candidate."""
    return embedding_text(candidate.draft.title, candidate.draft.body)


def embed_candidates(session: Session, candidates: Candidates, timeout_seconds: float, services: Services) -> dict[str, TextVector]:
    """Candidate id → vector, for every candidate of a searchable type; what is new is kept with the session.

    Raises:
        EmbedderTimeout, EmbeddingModelMismatch: As `embed_texts`.
        SessionExpired, SessionAlreadyCommitted, SessionAborted: The session was closed meanwhile.
    """
    vectors = dict(candidates.vectors)
    missing = [c for c in candidates.nodes if c.draft.node_type in SEARCHABLE_TYPES and c.candidate_id not in vectors]
    if missing:
        by_text = embed_texts(list(dict.fromkeys(candidate_text(c) for c in missing)), timeout_seconds, services)
        new = {c.candidate_id: by_text[candidate_text(c)] for c in missing}
        services.sessions.save_vectors(session.session_id, new, now=services.clock.now())
        vectors |= new
    return vectors
