"""commit_consolidation: writes a session as one numbered commit of its board, or nothing of it.

Texts are embedded before the board is taken. While it is held, everything that the session was based on is read again;
what changed since its propose is a conflict, and the session stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pulse_kg.domain.audit import overrides_list
from pulse_kg.domain.completion import complete, texts_to_embed
from pulse_kg.domain.conflicts import collisions
from pulse_kg.domain.model import Candidates, Node, Override, Proposal, Resolved, Session, TextVector
from pulse_kg.domain.overrides import named_nodes, resolve
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.plan import CommitPlan, outline
from pulse_kg.domain.reconcile import CHANGED_SINCE, reconcile, settled_by_content
from pulse_kg.domain.schema import SEARCHABLE_TYPES, canonical_json
from pulse_kg.errors import (
    CommitConflict,
    EmbedderTimeout,
    EmbeddingModelMismatch,
    InvalidArgument,
    InvalidEdgeEndpoints,
    Problem,
    PulseError,
    SessionAlreadyCommitted,
    StoreUnavailable,
)
from pulse_kg.ports.commits import Turn
from pulse_kg.usecases.access import own_session_with_candidates, require_open
from pulse_kg.usecases.embedding import candidate_text, embed_candidates, embed_texts
from pulse_kg.usecases.propose_reconciliation import content_view, embedded_view
from pulse_kg.usecases.replay import surveyed
from pulse_kg.usecases.services import Deadline, Services

_LEAVES_MARK = (CommitConflict, EmbedderTimeout, EmbeddingModelMismatch, InvalidEdgeEndpoints, StoreUnavailable)


def commit_consolidation(caller: Caller, session_id: str, overrides: Sequence[Override], services: Services) -> Mapping[str, Any]:
    """Commits a session; a repeated commit answers what the first one answered.

    Args:
        caller: The session's owner.
        session_id: The session.
        overrides: Hints that replace the proposed ones, each with its reason.
        services: The ports.

    Returns:
        The answer of contract section 4.6.

    Raises:
        SessionNotFound, SessionOwnershipMismatch, SessionAborted, SessionExpired: By the session.
        SessionAlreadyCommitted: It was committed with other overrides; the first answer is in the details.
        InvalidArgument: The session has no candidates.
        InvalidOverride: With every problem; nothing changed.
        InvalidEdgeEndpoints: An edge can't be written after candidates were mapped to nodes.
        CommitConflict: The board changed under the session; propose again, then commit.
        EmbedderTimeout, EmbeddingModelMismatch, StoreUnavailable: Nothing was written, or it was decided
            (``details.decided``) and the same commit resumes.
    """
    deadline = Deadline(services)
    now = services.clock.now()
    session, candidates = own_session_with_candidates(caller, session_id, now, services)
    given = canonical_json(overrides_list(overrides))
    if session.state == "committed":
        return _first_answer(session, given, deadline, services)
    require_open(session, now)
    try:
        return _commit(session, candidates, overrides, given, deadline, services)
    except _LEAVES_MARK as error:
        if not error.details.get("decided"):
            _mark(session_id, error, services)
        raise
    except (InvalidArgument, SessionAlreadyCommitted):
        # The same commit, called twice at once, may have closed the session in the middle of this one: the same answer for both.
        session = services.sessions.load(session_id)
        if session.state == "committed":
            return _first_answer(session, given, deadline, services)
        require_open(session, services.clock.now())  # or an abort came in between: then that is what to say
        raise


def _commit(
    session: Session, candidates: Candidates, overrides: Sequence[Override], given: str, deadline: Deadline, services: Services
) -> Mapping[str, Any]:
    if not candidates.nodes and not candidates.edges:
        raise InvalidArgument(
            "The session has no candidates, so there is nothing to commit. Add some first, or abort it.",
            [Problem("session_id", "the session has neither node nor edge candidates")],
        )
    _embed_ahead(session, candidates, overrides, deadline, services)
    wait = max(0.0, deadline.left() - services.limits.reserve_seconds)
    with services.commits.turn(session.board_id, wait_seconds=wait) as turn:
        session, candidates = services.sessions.load_all(session.session_id)
        if session.state != "committed":
            plan = _plan(session, candidates, overrides, turn, deadline, services)
            turn.commit(replace(plan, overrides=given))
            return plan.answer
    return _first_answer(session, given, deadline, services)


def _first_answer(session: Session, given: str, deadline: Deadline, services: Services) -> Mapping[str, Any]:
    if session.answer is None:
        raise StoreUnavailable("session")
    services.commits.settle(session.board_id, session.answer["audit_row_id"], wait_seconds=deadline.left())
    if session.overrides != given:
        raise SessionAlreadyCommitted(
            "This session was committed already, with other overrides. Its answer is in details.answer; "
            "record what changed in a new session.",
            {"answer": dict(session.answer)},
        )
    return session.answer


def _mark(session_id: str, error: PulseError, services: Services) -> None:
    with suppress(StoreUnavailable):  # the mark informs and never decides; the caller is told of the failure that matters
        services.sessions.mark_uncommittable(session_id, f"{error.code}: {error.message}", now=services.clock.now())


def _embed_ahead(session: Session, candidates: Candidates, overrides: Sequence[Override], deadline: Deadline, services: Services) -> None:
    """Embeds before the board is taken what a commit will want, as far as it can be foreseen; the vectors stay with the session."""
    if all(c.candidate_id in candidates.vectors for c in candidates.nodes if c.draft.node_type in SEARCHABLE_TYPES):
        return
    settled = settled_by_content(content_view(session, candidates, 0, services)) - {o.candidate_id for o in overrides}
    wanted = tuple(c for c in candidates.nodes if c.candidate_id not in settled)
    embed_candidates(session, replace(candidates, nodes=wanted), deadline.left(), services)


def _plan(
    session: Session, candidates: Candidates, overrides: Sequence[Override], turn: Turn, deadline: Deadline, services: Services
) -> CommitPlan:
    now = services.clock.now()
    require_open(session, now)
    proposals = _proposals(session, candidates, turn.board.commit_seq, deadline, services)
    there = services.graph.survey(
        session.board_id,
        _named_nodes(candidates, proposals, overrides),
        digests={c.digest for c in candidates.nodes},
        refs={c.stable_ref for c in candidates.nodes if c.stable_ref is not None},
    )
    nodes = there.nodes
    by_id = {p.candidate_id: p for p in proposals}
    resolutions = resolve(candidates.nodes, by_id, overrides, nodes)
    similar = [*there.with_digests, *there.with_refs]
    found = collisions(candidates.nodes, candidates.edges, by_id, resolutions, nodes, similar)
    if found:
        raise CommitConflict(
            "The board changed since the last propose, and nothing was written. "
            "Run propose_reconciliation again, look at it, and commit again.",
            {"nodes": list(found), "collisions": [{"node_id": n, "reason": why} for n, why in found.items()]},
        )
    resolved = Resolved(session, candidates, proposals, overrides, resolutions)
    sketch = outline(resolved, nodes)
    ground = surveyed(session.board_id, sketch, there, services.graph)
    vectors = _vectors(resolved, nodes, deadline, services)
    return complete(resolved, sketch, ground, vectors, seq=turn.board.commit_seq + 1, now=now)


def _vectors(resolved: Resolved, nodes: Mapping[str, Node], deadline: Deadline, services: Services) -> dict[str, TextVector]:
    """Text → vector for what the plan writes; nearly always all of them were embedded before the board was taken."""
    stored = resolved.candidates.vectors
    by_text = {candidate_text(c): stored[c.candidate_id] for c in resolved.candidates.nodes if c.candidate_id in stored}
    missing = [text for text in texts_to_embed(resolved, nodes) if text not in by_text]
    return by_text | embed_texts(missing, deadline.left(), services)


def _proposals(session: Session, candidates: Candidates, seq: int, deadline: Deadline, services: Services) -> tuple[Proposal, ...]:
    """The stored proposals where nothing came after the last propose; else new ones for what came, and for whom it concerns.

    Raises:
        CommitConflict: What came later changes an earlier hint, and the board changed as well: only a propose can tell which it was.
    """
    late = {c.candidate_id for c in candidates.nodes[session.proposed_nodes :]}
    telling = [e.draft for e in candidates.edges[session.proposed_edges :] if e.draft.rel_type in {"supersedes", "contradicts"}]
    for draft in telling:
        ends = (draft.src,) if draft.rel_type == "supersedes" else (draft.src, draft.dst)
        late |= {end.candidate_id for end in ends if end.candidate_id is not None}
    stored = {c: p for c, p in candidates.proposals.items() if c not in late}
    if len(stored) == len(candidates.nodes) and not telling:
        return tuple(stored[c.candidate_id] for c in candidates.nodes)
    fresh = reconcile(embedded_view(session, candidates, seq, deadline, services), services.thresholds)
    return tuple(_settled(stored.get(p.candidate_id), p) for p in fresh)


def _settled(stored: Proposal | None, fresh: Proposal) -> Proposal:
    if stored is None or _outcome(stored) == _outcome(fresh):
        return stored or fresh
    if stored.seen_seq == fresh.seen_seq:
        why = f"{CHANGED_SINCE}: {fresh.candidate_id} was proposed as {stored.hint}; with what was added since it is {fresh.hint}"
        return replace(fresh, warnings=(*fresh.warnings, why))
    nodes = sorted({t.node_id for p in (stored, fresh) for t in p.targets})
    raise CommitConflict(
        "The board and the session both changed since the last propose, and nothing was written. "
        "Run propose_reconciliation again, look at it, and commit again.",
        {"nodes": nodes, "collisions": [{"node_id": n, "reason": f"{fresh.candidate_id}: its proposal would be another"} for n in nodes]},
    )


def _outcome(proposal: Proposal) -> tuple[object, ...]:
    """What a commit does by a proposal; a possible duplicate beside an ADD is no part of it."""
    targets = () if proposal.hint == "ADD" else tuple(t.node_id for t in proposal.targets)
    return proposal.hint, targets, proposal.twin


def _named_nodes(candidates: Candidates, proposals: Sequence[Proposal], overrides: Sequence[Override]) -> set[str]:
    """Every node that a proposal, an end of an edge or an override names; whatever `outline` joins to an edge is among them."""
    named = {t.node_id for p in proposals for t in p.targets}
    named |= {end.node_id for e in candidates.edges for end in (e.draft.src, e.draft.dst) if end.node_id is not None}
    return named | set(named_nodes(overrides))
