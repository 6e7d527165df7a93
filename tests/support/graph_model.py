"""A board in memory, as plain as can be: what a commit writes, and the reads that the rules and the plan ask for.

It is written apart from every store and from the package's own replay, so that they can be measured against it.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from pulse_kg.domain.audit import Administration, AuditRow, administration_of, replayed
from pulse_kg.domain.completion import administer, complete, texts_to_embed
from pulse_kg.domain.conflicts import collisions
from pulse_kg.domain.instants import Instant, parse_instant
from pulse_kg.domain.model import Candidates, Edge, Node, NodeCandidate, Override, Proposal, Resolved, Session, TextVector
from pulse_kg.domain.overrides import named_nodes, resolve
from pulse_kg.domain.plan import Around, CommitPlan, Contradiction, Outline, Surroundings, outline
from pulse_kg.domain.reconcile import Facts, Match, SessionView, Thresholds, reconcile
from pulse_kg.domain.schema import SEARCHABLE_TYPES
from pulse_kg.domain.text import embedding_text, fold, prefix_similarity

DIMENSIONS = 32
MODEL_READS = 12
"""Words; a longer text is cut."""


@cache
def embed(text: str) -> TextVector:
    """A bag of words as a vector of norm 1: texts that share words are similar, and a number weighs little, as in a real model."""
    words = fold(text).split()
    axes = [0.0] * DIMENSIONS
    for word in words[:MODEL_READS]:
        axes[hashlib.sha256(word.encode()).digest()[0] % DIMENSIONS] += 0.3 if word[0].isdigit() else 1.0
    norm = math.sqrt(math.fsum(x * x for x in axes)) or 1.0
    return TextVector(struct.pack(f"<{DIMENSIONS}f", *(x / norm for x in axes)), truncated=len(words) > MODEL_READS)


def embed_all(texts: Iterable[str]) -> dict[str, TextVector]:
    """Text → vector."""
    return {text: embed(text) for text in texts}


@cache
def cosine(left: bytes, right: bytes) -> float:
    """Similarity, 0..1 with 4 decimals."""
    a, b = (struct.unpack(f"<{DIMENSIONS}f", v) for v in (left, right))
    return round(min(max(math.fsum(x * y for x, y in zip(a, b, strict=True)), 0.0), 1.0), 4)


@dataclass(frozen=True)
class Indexed:
    """An entry of the vector index."""

    live: bool
    text_vector: TextVector


class GraphModel:
    """One board.

    Attributes:
        node_by_id: Its nodes.
        edge_by_id: Its edges.
        index: Node id → its entry in the vector index.
        rows: Its audit rows in order; their number is the number of its last commit.
    """

    def __init__(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        self.node_by_id: dict[str, Node] = {n.node_id: n for n in nodes}
        self.edge_by_id: dict[str, Edge] = {e.edge_id: e for e in edges}
        self.index: dict[str, Indexed] = {
            n.node_id: Indexed(n.live, embed(embedding_text(n.title, n.body)))
            for n in self.node_by_id.values()
            if n.node_type in SEARCHABLE_TYPES
        }
        self.rows: list[AuditRow] = []
        self.seq = max((n.commit_seq for n in self.node_by_id.values()), default=0)

    # Writing.

    def apply(self, plan: CommitPlan) -> None:
        """Writes a plan whole."""
        assert plan.seq == self.seq + 1
        for node in plan.nodes:
            self.node_by_id[node.node_id] = node
        for edge in plan.edges:
            assert edge.edge_id not in self.edge_by_id
            self.edge_by_id[edge.edge_id] = edge
        for write in plan.vectors:
            vector = write.text_vector or self.index[write.node_id].text_vector
            self.index[write.node_id] = Indexed(write.live, vector)
        for score in plan.relevances:
            node = self.node_by_id[score.node_id]
            self.node_by_id[score.node_id] = replace(node, relevance_score=score.relevance_score, last_recomputed_at=score.recomputed_at)
        self.rows.append(plan.audit)
        self.seq = plan.seq

    # What a plan reads.

    def nodes(self, node_ids: Iterable[str]) -> dict[str, Node]:
        """The nodes of these ids that there are."""
        return {n: self.node_by_id[n] for n in sorted(set(node_ids)) if n in self.node_by_id}

    def edges_at(self, node_id: str) -> list[Edge]:
        """The edges with an end at the node."""
        return [e for e in self.edge_by_id.values() if node_id in {e.src, e.dst}]

    def surroundings(self, node_id: str) -> Surroundings:
        """Degree and incoming contradictions."""
        edges = self.edges_at(node_id)
        incoming = [e for e in edges if e.rel_type == "contradicts" and e.dst == node_id]
        sources = {e.src: self.node_by_id[e.src] for e in incoming}
        return Surroundings(
            len(edges), tuple(Contradiction(e.src, e.confidence, not sources[e.src].live or sources[e.src].revoked) for e in incoming)
        )

    def supersedes(self) -> dict[str, list[str]]:
        """Newer → older ids of all supersedes edges."""
        found: dict[str, list[str]] = {}
        for edge in self.edge_by_id.values():
            if edge.rel_type == "supersedes":
                found.setdefault(edge.src, []).append(edge.dst)
        return found

    def around(self, sketch: Outline, nodes: Mapping[str, Node]) -> Around:
        """What the plan needs to know of the graph before the commit."""
        touched = {*sketch.node_ids.values(), *sketch.existing_ends()} & set(nodes)
        existing = frozenset(e.edge_id for e in sketch.edges if e.edge_id in self.edge_by_id)
        return Around(nodes, existing, {n: self.surroundings(n) for n in touched}, self.supersedes())

    # What the rules read.

    def facts(self, candidate: NodeCandidate) -> Facts:
        """What the graph knows about a candidate."""
        same_type = [n for n in self.node_by_id.values() if n.node_type == candidate.draft.node_type]
        live = [n for n in same_type if n.live]
        by_vector = candidate.draft.node_type in SEARCHABLE_TYPES
        text_vector = embed(embedding_text(candidate.draft.title, candidate.draft.body))

        def score(node: Node) -> float:
            if by_vector:
                return cosine(text_vector.vector, self.index[node.node_id].text_vector.vector)
            return round(prefix_similarity(fold(candidate.draft.title), fold(node.title)), 4)

        matches = sorted((Match(n, score(n)) for n in live), key=lambda m: (-m.score, m.node.node_id))
        return Facts(
            same_digest=tuple(n for n in same_type if n.content_digest == candidate.digest),
            same_ref=tuple(Match(n, score(n)) for n in live if candidate.stable_ref is not None and n.source_ref == candidate.stable_ref),
            matches=tuple(matches[:3]),
            by_vector=by_vector,
            cut=by_vector and text_vector.truncated,
        )

    def view(self, session: Session, candidates: Candidates) -> SessionView:
        """All that the rules look at."""
        ends = {end.node_id for e in candidates.edges for end in (e.draft.src, e.draft.dst) if end.node_id is not None}
        facts = {c.candidate_id: self.facts(c) for c in candidates.nodes}
        return SessionView(session.source, candidates.nodes, candidates.edges, facts, self.nodes(ends), self.seq)

    # The write path, without sessions and stores.

    def propose(self, session: Session, candidates: Candidates) -> tuple[Proposal, ...]:
        """What the rules say."""
        return reconcile(self.view(session, candidates), Thresholds())

    def resolved(
        self, session: Session, candidates: Candidates, overrides: Sequence[Override] = (), proposals: Sequence[Proposal] | None = None
    ) -> Resolved:
        """The session with a resolution for each candidate; the proposals may be older ones."""
        proposals = self.propose(session, candidates) if proposals is None else proposals
        nodes = self.nodes({*(t.node_id for p in proposals for t in p.targets), *named_nodes(overrides)})
        resolutions = resolve(candidates.nodes, {p.candidate_id: p for p in proposals}, overrides, nodes)
        return Resolved(session, candidates, proposals, overrides, resolutions)

    def collisions(self, resolved: Resolved) -> dict[str, str]:
        """What collides with the session."""
        by_id = {p.candidate_id: p for p in resolved.proposals}
        candidates = resolved.candidates
        return collisions(candidates.nodes, candidates.edges, by_id, resolved.resolutions, self.node_by_id, self.node_by_id.values())

    def plan(self, resolved: Resolved, now: Instant) -> CommitPlan:
        """What the session would write now."""
        named = {t.node_id for r in resolved.resolutions for t in r.targets}
        named |= {e.node_id for c in resolved.candidates.edges for e in (c.draft.src, c.draft.dst) if e.node_id is not None}
        nodes = self.nodes(named)
        sketch = outline(resolved, nodes)
        vectors = embed_all(texts_to_embed(resolved, nodes))
        return complete(resolved, sketch, self.around(sketch, nodes), vectors, seq=self.seq + 1, now=now)

    def commit(self, session: Session, candidates: Candidates, overrides: Sequence[Override] = (), *, now: Instant) -> CommitPlan:
        """Proposes, resolves, plans and writes."""
        plan = self.plan(self.resolved(session, candidates, overrides), now)
        self.apply(plan)
        return plan

    def administer(self, action: Administration, *, now: Instant) -> CommitPlan:
        """Curates or revokes a node."""
        plan = administer(action, self.node_by_id[action.node_id], self.surroundings(action.node_id), seq=self.seq + 1, now=now)
        self.apply(plan)
        return plan

    def replay(self, row: AuditRow) -> CommitPlan:
        """Plans and writes the commit of an audit row again."""
        now = parse_instant(row["committed_at"])
        if row["kind"] == "administration":
            return self.administer(administration_of(row), now=now)
        plan = self.plan(replayed(row), now)
        self.apply(plan)
        return plan
