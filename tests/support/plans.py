"""Sessions and commit plans as the use cases make them, without the use cases."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pulse_kg.domain import ids
from pulse_kg.domain.audit import Administration
from pulse_kg.domain.completion import administer, complete
from pulse_kg.domain.model import (
    Candidates,
    EdgeCandidate,
    EdgeDraft,
    EdgeEnd,
    Hint,
    NodeCandidate,
    NodeDraft,
    Proposal,
    Resolution,
    Resolved,
    Session,
    Source,
    Target,
    TextVector,
)
from pulse_kg.domain.plan import Around, CommitPlan, outline
from pulse_kg.domain.refs import Artifact
from pulse_kg.domain.schema import NodeType, RelType
from pulse_kg.domain.text import embedding_text
from pulse_kg.errors import SessionNotFound
from tests.support.stores import Stores

NOW = 1_767_225_600_000
"""2026-01-01T00:00:00.000Z."""
HOUR = 3_600_000
DIMENSION = 8


def session_id(number: int) -> str:
    """The session of that number."""
    return f"kgs_{ids.ulid(NOW, number.to_bytes(10, 'big'))}"


def session(number: int = 1, board_id: str = "alpha", **changes: Any) -> Session:
    """A new session of one hour."""
    fresh = Session(
        session_id=session_id(number),
        board_id=board_id,
        agent_id="agt_ada",
        source=Source(Artifact("spec", "spec_007"), 1),
        content_hash=f"sha256:{number:064x}",
        hash_basis="payload",
        started_at=NOW,
        expires_at=NOW + HOUR,
    )
    return replace(fresh, **changes)


def unit(*numbers: float) -> bytes:
    """A vector of norm 1 in the direction of the numbers, the rest of them 0."""
    padded = [*numbers, *([0.0] * (DIMENSION - len(numbers)))]
    norm = math.sqrt(math.fsum(n * n for n in padded)) or 1.0
    return struct.pack(f"<{DIMENSION}f", *(n / norm for n in padded))


def node(title: str, node_type: NodeType = "Decision", body: str = "", **more: Any) -> NodeDraft:
    """A node draft."""
    return NodeDraft(node_type, title, body, **more)


def edge(src: str, rel_type: RelType, dst: str, **attributes: Any) -> EdgeDraft:
    """An edge draft between candidates (`cand_…`) and nodes."""
    return EdgeDraft(_end(src), rel_type, _end(dst), attributes)


def _end(label: str) -> EdgeEnd:
    return EdgeEnd(candidate_id=label) if label.startswith("cand_") else EdgeEnd(node_id=label)


@dataclass(frozen=True)
class Content:
    """What a session holds and what a commit does with it.

    Attributes:
        nodes: The node candidates.
        edges: The edge candidates.
        hints: Candidate id → what is done with it and to which node; ADD for the rest.
        vectors: Title → vector; the rest get one from their title's length.
    """

    nodes: Sequence[NodeDraft] = ()
    edges: Sequence[EdgeDraft] = ()
    hints: Mapping[str, tuple[Hint, str]] = field(default_factory=dict)
    vectors: Mapping[str, bytes] = field(default_factory=dict)


def plan(stores: Stores, of: Session, content: Content, *, seq: int, now: int = NOW) -> CommitPlan:
    """The plan of a commit on the board as it is."""
    candidates = Candidates(
        tuple(NodeCandidate(ids.candidate_id(n), d) for n, d in enumerate(content.nodes, 1)),
        tuple(EdgeCandidate(ids.edge_candidate_id(n), d) for n, d in enumerate(content.edges, 1)),
    )
    named = {target for _, target in content.hints.values()}
    named |= {end.node_id for d in content.edges for end in (d.src, d.dst) if end.node_id is not None}
    known = stores.graph.nodes(of.board_id, named)
    resolutions = []
    for candidate in candidates.nodes:
        hint, target = content.hints.get(candidate.candidate_id, ("ADD", ""))
        targets = (Target(target, known[target].version),) if target else ()
        resolutions.append(Resolution(candidate.candidate_id, hint, targets))
    proposals = [Proposal(r.candidate_id, r.hint, 6, "A test says so.", r.targets) for r in resolutions]
    resolved = Resolved(of, candidates, proposals, (), resolutions)
    sketch = outline(resolved, known)
    graph, ends = stores.graph, sketch.existing_ends()
    around = Around(
        nodes=known,
        existing_edges=graph.existing_edges(of.board_id, [e.edge_id for e in sketch.edges]),
        surroundings=graph.surroundings(of.board_id, {*known, *ends}),
        supersedes=graph.supersedes_below(of.board_id, ends),
    )
    vectors = {
        embedding_text(d.title, body): TextVector(content.vectors.get(d.title) or unit(1, len(d.title)))
        for d in content.nodes
        for body in {d.body, *(n.body for n in known.values())}
    }
    return complete(resolved, sketch, around, vectors, seq=seq, now=now)


def commit(stores: Stores, of: Session, content: Content, *, now: int = NOW, create: bool = True) -> CommitPlan:
    """Stores the session and commits it with that content."""
    if create:
        stores.sessions.create(of)
    with stores.commits.turn(of.board_id, wait_seconds=20) as turn:
        if not create:
            with suppress(SessionNotFound):
                of = stores.sessions.load(of.session_id)
        made = plan(stores, of, content, seq=turn.board.commit_seq + 1, now=now)
        turn.commit(made)
    return made


def add(stores: Stores, number: int, *nodes: NodeDraft, board_id: str = "alpha", **content: Any) -> list[str]:
    """Commits nodes in a session of their own; gives their ids."""
    made = commit(stores, session(number, board_id), Content(nodes, **content))
    return [made.audit["mapping"][ids.candidate_id(n)] for n in range(1, len(nodes) + 1)]


def administered(stores: Stores, board_id: str, node_id: str, **action: Any) -> CommitPlan:
    """Commits an administrative change of a node."""
    with stores.commits.turn(board_id, wait_seconds=20) as turn:
        found = stores.graph.nodes(board_id, [node_id])[node_id]
        around = stores.graph.surroundings(board_id, [node_id])[node_id]
        change = Administration(board_id, node_id, reason="A test says so.", by="operator", **action)
        made = administer(change, found, around, seq=turn.board.commit_seq + 1, now=NOW + 1)
        turn.commit(made)
    return made
