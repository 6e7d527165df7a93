"""The commit plan: from candidates and their resolutions to everything a commit writes.

Pure, so that a replay of the audit log makes the same graph. Two steps, because the second needs reads that only the
first can name: `outline` maps candidates to nodes and edges, `complete` adds what the graph around them says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulse_kg.domain import ids
from pulse_kg.domain.audit import AuditRow
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import (
    Edge,
    EdgeCandidate,
    Node,
    Resolved,
    Session,
    TextVector,
)
from pulse_kg.domain.schema import NodeType, RelType
from pulse_kg.errors import InvalidEdgeEndpoints


@dataclass(frozen=True)
class PlannedEdge:
    """An edge between nodes, before its existence was looked up.

    Attributes:
        origin: The edge candidate it comes from; None for one that a SUPERSEDE hint implies.
        implied_by: The node candidate whose SUPERSEDE hint implies it.
    """

    edge_id: str
    src: str
    rel_type: RelType
    dst: str
    origin: EdgeCandidate | None = None
    implied_by: str | None = None


@dataclass(frozen=True)
class Outline:
    """Where everything of a session goes.

    Attributes:
        node_ids: Candidate id → node id, for every node candidate.
        edges: The edges, each once, in the order of their candidates; implied ones last.
        warnings: What was dropped or merged so far.
    """

    node_ids: Mapping[str, str]
    edges: tuple[PlannedEdge, ...]
    warnings: tuple[str, ...]

    def existing_ends(self) -> tuple[str, ...]:
        """The ids at the ends of the edges, each once, sorted."""
        return tuple(sorted({end for e in self.edges for end in (e.src, e.dst)}))


@dataclass(frozen=True)
class Contradiction:
    """An incoming contradicts edge of a node: who contradicts, how surely, and whether that end was superseded or revoked."""

    src: str
    confidence: float
    src_resolved: bool


@dataclass(frozen=True)
class Surroundings:
    """The edges at a node before the commit: how many, and the incoming contradictions."""

    degree: int = 0
    contradictions: tuple[Contradiction, ...] = ()


@dataclass(frozen=True)
class Around:
    """What the graph says before the commit.

    Attributes:
        nodes: Every existing node that a target or an end of an edge names.
        existing_edges: Those of the outline's edge ids that exist.
        surroundings: Node id → its edges, for every existing node whose relevance the commit recomputes.
        supersedes: Newer → older ids of the supersedes edges reachable from the ends of the outline's supersedes edges.
    """

    nodes: Mapping[str, Node]
    existing_edges: frozenset[str] = frozenset()
    surroundings: Mapping[str, Surroundings] = field(default_factory=dict)
    supersedes: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class VectorWrite:
    """A change of the vector index.

    Attributes:
        node_id: The node.
        node_type: Its type, one of the searchable ones.
        live: Whether it may be matched from now on.
        text_vector: Its vector; None where only liveness changes.
    """

    node_id: str
    node_type: NodeType
    live: bool
    text_vector: TextVector | None = None


@dataclass(frozen=True)
class RelevanceWrite:
    """A recomputed score of a node that the commit changes in nothing else."""

    node_id: str
    relevance_score: float
    recomputed_at: Instant


@dataclass(frozen=True)
class CommitPlan:
    """Everything that one commit writes.

    Attributes:
        board_id: The tenant.
        seq: The number of the commit.
        committed_at: Its time.
        nodes: Full new states of inserted and changed nodes, sorted by id.
        edges: New edges, in the outline's order.
        vectors: Changes of the vector index, sorted by node id.
        relevances: Scores of nodes that change in nothing else, sorted by id.
        audit: The audit row.
        event: The CloudEvent of the outbox.
        answer: What the caller is told.
        session: The session that it closes; None for an administrative commit.
        overrides: The overrides, canonical JSON.
        restored: Planned again from its audit row: there is no session to be closed any more.
    """

    board_id: str
    seq: int
    committed_at: Instant
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    vectors: tuple[VectorWrite, ...]
    relevances: tuple[RelevanceWrite, ...]
    audit: AuditRow
    event: Mapping[str, Any]
    answer: Mapping[str, Any]
    session: Session | None = None
    overrides: str = "[]"
    restored: bool = False


def outline(resolved: Resolved, nodes: Mapping[str, Node]) -> Outline:
    """Maps candidates to nodes, and edges to edges between nodes.

    Args:
        resolved: The session.
        nodes: Every existing node that a target or an end of an edge names.

    Raises:
        InvalidEdgeEndpoints: An edge ends at a node that is not there.
    """
    session, warnings = resolved.session, list[str]()
    _check_ends(resolved, nodes)
    drafts = {c.candidate_id: c for c in resolved.candidates.nodes}
    node_ids: dict[str, str] = {}
    for r in resolved.resolutions:
        if r.twin is not None:
            node_ids[r.candidate_id] = node_ids[r.twin]
        elif r.hint in {"NOOP", "UPDATE"}:
            node_ids[r.candidate_id] = r.targets[0].node_id
        else:
            node_ids[r.candidate_id] = ids.node_id(
                session.board_id, session.session_id, r.candidate_id, drafts[r.candidate_id].draft.node_type
            )
    type_of = {node_ids[c]: drafts[c].draft.node_type for c in node_ids} | {n.node_id: n.node_type for n in nodes.values()}

    edges: dict[str, PlannedEdge] = {}

    def plan_edge(src: str, rel_type: RelType, dst: str, origin: EdgeCandidate | None, implied_by: str | None) -> PlannedEdge:
        key = ids.edge_id(session.board_id, src, rel_type, dst, equal_types=type_of[src] == type_of[dst])
        return PlannedEdge(key, src, rel_type, dst, origin, implied_by)

    for candidate in resolved.candidates.edges:
        draft = candidate.draft
        src, dst = (node_ids[e.candidate_id] if e.candidate_id is not None else str(e.node_id) for e in (draft.src, draft.dst))
        if src == dst:
            warnings.append(f"{candidate.candidate_id} dropped: both of its ends are {src} now, and no edge joins a node to itself")
            continue
        edge = plan_edge(src, draft.rel_type, dst, candidate, None)
        if edge.edge_id in edges:
            first = edges[edge.edge_id].origin
            warnings.append(f"{candidate.candidate_id} merged: it is the same edge as {first.candidate_id if first else edge.edge_id}")
            continue
        edges[edge.edge_id] = edge
    for r in resolved.resolutions:
        if r.hint == "SUPERSEDE":
            for target in r.targets:
                edge = plan_edge(node_ids[r.candidate_id], "supersedes", target.node_id, None, r.candidate_id)
                edges.setdefault(edge.edge_id, edge)
    return Outline(node_ids, tuple(edges.values()), tuple(warnings))


def _check_ends(resolved: Resolved, nodes: Mapping[str, Node]) -> None:
    ends = {end.node_id for edge in resolved.candidates.edges for end in (edge.draft.src, edge.draft.dst) if end.node_id is not None}
    missing = sorted(ends - set(nodes))
    if missing:
        raise InvalidEdgeEndpoints(
            f"This board has no node {' or '.join(missing)}, at which edges of this session end; nothing was changed. Abort the session.",
            {"node_ids": missing},
        )
