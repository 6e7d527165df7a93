"""add_edge_candidate: adds an edge to an open session, between candidates, nodes, or one of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulse_kg.domain.model import EdgeDraft, EdgeEnd, Node, Session
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import AGENT_REL_TYPES, ENDPOINT_PAIRS, RESERVED_REL_TYPES, NodeType, canonical_json, check_edge_attributes
from pulse_kg.domain.supersedence import closes_cycle
from pulse_kg.errors import (
    CandidateNotFound,
    InvalidAttribute,
    InvalidEdgeEndpoints,
    NodeNotFound,
    PayloadTooLarge,
    ReservedEdgeType,
)
from pulse_kg.ports.sessions import Appended
from pulse_kg.usecases.access import granted_board, open_session
from pulse_kg.usecases.add_node_candidate import refuse_unknown, unknown_warnings
from pulse_kg.usecases.services import Services


@dataclass(frozen=True)
class EdgeAdded:
    """The answer: the candidate, and what a reader should know of it."""

    candidate: Appended
    warnings: tuple[str, ...]


def add_edge_candidate(caller: Caller, session_id: str, draft: EdgeDraft, idempotency_key: str | None, services: Services) -> EdgeAdded:
    """Adds and numbers a candidate.

    Raises:
        SessionNotFound, SessionOwnershipMismatch, SessionAlreadyCommitted, SessionAborted, SessionExpired: By the session.
        ReservedEdgeType: Only the deterministic worker writes this relationship.
        CandidateNotFound, NodeNotFound: An end is not there.
        InvalidEdgeEndpoints: The pair of types, a self-loop, a cycle of supersedence, or a curated node to be superseded.
        InvalidAttribute, UnknownAttribute: With every problem.
        PayloadTooLarge: The candidate, or the number of candidates.
        IdempotencyConflict: The key came with other content before.
    """
    now = services.clock.now()
    session = open_session(caller, session_id, now, services)
    board = granted_board(caller, session.board_id, services)
    if draft.rel_type in RESERVED_REL_TYPES:
        raise ReservedEdgeType(
            f"'{draft.rel_type}' edges are written by the deterministic worker alone. "
            f"Use one of {', '.join(AGENT_REL_TYPES)}, or leave the edge to the worker.",
            {"rel_type": draft.rel_type, "allowed": list(AGENT_REL_TYPES)},
        )
    size = len(canonical_json(draft.attributes).encode())
    if size > services.limits.candidate_bytes:
        raise PayloadTooLarge(
            f"The edge has {size} bytes of attributes, and {services.limits.candidate_bytes} are allowed.",
            {"bytes": size, "limit_bytes": services.limits.candidate_bytes, "path": "attributes"},
        )
    checked = check_edge_attributes(draft.attributes)
    if checked.problems:
        raise InvalidAttribute("Some attributes of this edge can't be taken. Correct them and add it again.", checked.problems)
    refuse_unknown(board, checked.unknown, "an edge")
    types, nodes = _ends(session, draft, services)
    _check_pair(draft, types)
    warnings, target_was_live = unknown_warnings(checked.unknown, "an edge"), None
    if draft.rel_type == "supersedes":
        _check_cycle(session, draft, services)
        if draft.dst.node_id is not None:
            target = nodes[draft.dst.node_id]
            if target.human_curated:
                raise InvalidEdgeEndpoints(
                    f"'{target.node_id}' is curated by a person, and agents do not supersede it. Record the decision without this edge.",
                    {"node_id": target.node_id, "human_curated": True},
                )
            target_was_live = target.live
            if not target.live:
                warnings += (
                    f"{target.node_id} was superseded by {target.superseded_by} before; this edge will only add to its history. "
                    "To replace what holds now, look at that node.",
                )
    appended = services.sessions.append_edge(
        session_id,
        draft,
        unknown_keys=checked.unknown,
        target_was_live=target_was_live,
        idempotency_key=idempotency_key,
        limit=services.limits.edge_candidates,
        now=now,
    )
    return EdgeAdded(appended, warnings)


def _ends(session: Session, draft: EdgeDraft, services: Services) -> tuple[dict[EdgeEnd, NodeType], dict[str, Node]]:
    """The types of the two ends, and the existing nodes among them, after making sure that both are there."""
    types: dict[EdgeEnd, NodeType] = {}
    missing: list[str] = []
    ends = (draft.src, draft.dst)
    for end in ends:
        if end.candidate_id is not None:
            try:
                types[end] = services.sessions.node_candidate(session.session_id, end.candidate_id).draft.node_type
            except CandidateNotFound:
                missing.append(end.candidate_id)
    if missing:
        raise CandidateNotFound(
            f"This session has no node candidate {' or '.join(missing)}. Add it first, and use the candidate_id of the answer.",
            {"candidate_ids": missing},
        )
    wanted = [e.node_id for e in ends if e.node_id is not None]
    nodes = services.graph.nodes(session.board_id, wanted) if wanted else {}
    absent = sorted(set(wanted) - set(nodes))
    if absent:
        raise NodeNotFound(f"This board has no node {' or '.join(absent)}.", {"node_ids": absent})
    types |= {e: nodes[e.node_id].node_type for e in ends if e.node_id is not None}
    return types, nodes


def _check_pair(draft: EdgeDraft, types: Mapping[EdgeEnd, NodeType]) -> None:
    if draft.src == draft.dst:
        raise InvalidEdgeEndpoints(
            "Both ends are the same, and no edge joins a node to itself. Name two different ends.", {"self_loop": True}
        )
    pair = (types[draft.src], types[draft.dst])
    allowed = ENDPOINT_PAIRS[draft.rel_type]
    if pair not in allowed:
        raise InvalidEdgeEndpoints(
            f"'{draft.rel_type}' does not go from {pair[0]} to {pair[1]}. Choose one of the allowed pairs, or another relationship.",
            {"rel_type": draft.rel_type, "pair": list(pair), "allowed_pairs": [list(p) for p in allowed]},
        )


def _label(end: EdgeEnd) -> str:
    return str(end.candidate_id or end.node_id)


def _check_cycle(session: Session, draft: EdgeDraft, services: Services) -> None:
    ends = [(e.draft.src, e.draft.dst) for e in services.sessions.edge_candidates(session.session_id) if e.draft.rel_type == "supersedes"]
    ends.append((draft.src, draft.dst))
    known: dict[str, list[str]] = {}
    if any(src.node_id is not None for src, _ in ends):  # else no new edge hangs below an existing one
        nodes = sorted({end.node_id for pair in ends for end in pair if end.node_id is not None})
        known = {src: list(dsts) for src, dsts in services.graph.supersedes_below(session.board_id, nodes).items()}
    *earlier, (newer, older) = [(_label(src), _label(dst)) for src, dst in ends]
    cycle = closes_cycle(newer, older, earlier, known)  # each earlier edge was looked at when it came
    if cycle is not None:
        raise InvalidEdgeEndpoints(
            "This supersedes edge would close a cycle. The newer one is src, the older one dst; check which is which.", {"cycle": cycle}
        )
