"""The second step of planning a commit: what the graph around a session makes of its outline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pulse_kg.domain.audit import Administration, administration_row, consolidation_row
from pulse_kg.domain.events import CONSOLIDATED, administered_event, consolidated_event
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import (
    Edge,
    Node,
    NodeCandidate,
    Resolved,
    TextVector,
    content_digest,
)
from pulse_kg.domain.plan import Around, CommitPlan, Outline, PlannedEdge, RelevanceWrite, Surroundings, VectorWrite
from pulse_kg.domain.reconcile import CHANGED_SINCE, merged_body
from pulse_kg.domain.relevance import Standing, relevance
from pulse_kg.domain.schema import CONFIDENCE, DEFAULT_CONFIDENCE, MAX_UNKNOWN_TOLD, SEARCHABLE_TYPES, NodeType, canonical_json
from pulse_kg.domain.supersedence import find_cycle
from pulse_kg.domain.text import brief, embedding_text
from pulse_kg.errors import InvalidEdgeEndpoints


def complete(
    resolved: Resolved, sketch: Outline, around: Around, vectors: Mapping[str, TextVector], *, seq: int, now: Instant
) -> CommitPlan:
    """The whole plan of a consolidation.

    Args:
        resolved: The session.
        sketch: Its outline.
        around: The graph before the commit.
        vectors: Text → vector, for every text of a searchable node that is inserted or whose text changes.
        seq: The commit's number, the board's last one plus 1.
        now: The commit's time.

    Raises:
        InvalidEdgeEndpoints: The edges would close a cycle of supersedence, or supersede a curated node.
    """
    return _Completion(resolved, sketch, around, vectors, seq, now).plan()


@dataclass
class _Completion:
    resolved: Resolved
    sketch: Outline
    around: Around
    vectors: Mapping[str, TextVector]
    seq: int
    now: Instant
    after: dict[str, Node] = field(default_factory=dict)
    """New states of the nodes that change, by id."""
    inserted: list[str] = field(default_factory=list)
    retexted: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    superseded: dict[str, str] = field(default_factory=dict)

    def plan(self) -> CommitPlan:
        session = self.resolved.session
        changed = [w for p in self.resolved.proposals for w in p.warnings if w.startswith(CHANGED_SINCE)]
        self.warnings = [*self._unknown_keys(), *changed, *self.sketch.warnings]
        self._check_cycles()
        for candidate, resolution in zip(self.resolved.candidates.nodes, self.resolved.resolutions, strict=True):
            if resolution.hint in {"ADD", "SUPERSEDE"}:
                self._insert(candidate)
            elif resolution.hint == "UPDATE":
                self._update(candidate, resolution.targets[0].node_id)
        edges = self._new_edges()
        for edge in self.sketch.edges:
            if edge.rel_type == "supersedes":
                self._supersede(edge)
        relevances = self._recompute(edges)
        answer = self._answer(edges)
        counts = {**{hint: len(answer["applied"][hint]) for hint in answer["applied"]}, "edges_added": len(edges)}
        event = consolidated_event(session, self.seq, self.now, counts, answer)
        audit = consolidation_row(self.resolved, self.sketch.node_ids, answer, counts, event, self.now)
        return CommitPlan(
            board_id=session.board_id,
            seq=self.seq,
            committed_at=self.now,
            nodes=tuple(self.after[n] for n in sorted(self.after)),
            edges=tuple(edges),
            vectors=self._vector_writes(),
            relevances=relevances,
            audit=audit,
            event=event,
            answer=answer,
            session=session,
        )

    def _unknown_keys(self) -> list[str]:
        given = [(c.candidate_id, c.unknown_keys) for c in self.resolved.candidates.nodes]
        given += [(c.candidate_id, c.unknown_keys) for c in self.resolved.candidates.edges]
        pairs = [(label, key) for label, keys in given for key in keys]
        told = [f"{label}: attribute '{brief(key)}' is not in the schema and was dropped" for label, key in pairs[:MAX_UNKNOWN_TOLD]]
        more = len(pairs) - len(told)
        return [*told, f"{more} more attributes are not in the schema and were dropped; the audit row has them"] if more else told

    def _check_cycles(self) -> None:
        new = [(e.src, e.dst) for e in self.sketch.edges if e.rel_type == "supersedes" and e.edge_id not in self.around.existing_edges]
        cycle = find_cycle(new, self.around.supersedes)
        if cycle is not None:
            raise InvalidEdgeEndpoints(
                "The supersedes edges of this session would close a cycle; nothing was changed. Override one of the candidates, or abort.",
                {"cycle": cycle},
            )

    def _insert(self, candidate: NodeCandidate) -> None:
        session, draft = self.resolved.session, candidate.draft
        node_id, attributes = self.sketch.node_ids[candidate.candidate_id], candidate.attributes
        artifact = candidate.artifact(session.source)
        self.after[node_id] = Node(
            board_id=session.board_id,
            node_id=node_id,
            node_type=draft.node_type,
            title=draft.title,
            body=draft.body,
            attributes=attributes,
            source_ref=draft.source_ref or artifact,
            artifact=artifact,
            artifact_version=candidate.version(session.source),
            source_session_id=session.session_id,
            created_seq=self.seq,
            commit_seq=self.seq,
            version=1,
            content_digest=candidate.digest,
            created_at=self.now,
            updated_at=self.now,
            created_by=session.agent_id,
            confidence=float(attributes.get(CONFIDENCE, DEFAULT_CONFIDENCE)),
            status=attributes.get("status", "active") if draft.node_type == "Decision" else None,
            truncated=self._truncated(draft.node_type, draft.title, draft.body),
        )
        self.inserted.append(node_id)
        self.retexted.add(node_id)

    def _update(self, candidate: NodeCandidate, node_id: str) -> None:
        node, draft, session = self.after.get(node_id) or self.around.nodes[node_id], candidate.draft, self.resolved.session
        if node_id in self.after:
            self.warnings.append(
                f"{candidate.candidate_id}: another candidate of this session updates {node_id} too; both were merged in order"
            )
        attributes = {**node.attributes, **candidate.attributes}
        body = merged_body(candidate, node.body)
        if body != draft.body:
            self.warnings.append(f"{candidate.candidate_id}: without a body of its own, it leaves the body of {node_id} as it was")
        if (draft.title, body) != (node.title, node.body):
            self.retexted.add(node_id)
        source_ref = node.source_ref
        if node.stable_ref is None and candidate.stable_ref is not None and candidate.artifact(session.source) == node.artifact:
            source_ref = candidate.stable_ref
        content = replace(node, title=draft.title, body=body, attributes=attributes, source_ref=source_ref)
        if content == node and canonical_json(attributes) == canonical_json(node.attributes):  # 1 == True, but not in JSON
            self.warnings.append(f"{candidate.candidate_id}: it changes nothing in {node_id}, which was left as it is")
            return
        self.after[node_id] = replace(
            content,
            artifact_version=session.source.version if node.artifact == session.source.artifact.canonical else None,
            commit_seq=self.seq,
            version=self.around.nodes[node_id].version + 1,
            content_digest=content_digest(node.node_type, draft.title, body, attributes),
            updated_at=self.now,
            confidence=float(candidate.attributes.get(CONFIDENCE, node.confidence)),
            status=self._status(candidate, node),
            truncated=self._truncated(node.node_type, draft.title, body) if node_id in self.retexted else node.truncated,
        )

        if self._as_before(node_id):  # a second update took the first one back
            del self.after[node_id]
            self.retexted.discard(node_id)
            self.warnings.append(f"{candidate.candidate_id}: it takes back what was changed in {node_id}, which was left as it is")

    def _as_before(self, node_id: str) -> bool:
        before, after = self.around.nodes[node_id], self.after[node_id]
        kept = {f: getattr(before, f) for f in ("artifact_version", "commit_seq", "version", "updated_at", "truncated")}
        return replace(after, **kept) == before and canonical_json(after.attributes) == canonical_json(before.attributes)

    @staticmethod
    def _status(candidate: NodeCandidate, node: Node) -> str | None:
        """A Decision's status after an update: what an administrator revoked, no agent makes active again."""
        if node.node_type != "Decision" or node.revocation_reason is not None:
            return node.status
        return candidate.attributes.get("status", node.status)

    def _truncated(self, node_type: NodeType, title: str, body: str) -> bool:
        return node_type in SEARCHABLE_TYPES and self.vectors[embedding_text(title, body)].truncated

    def _new_edges(self) -> list[Edge]:
        session, edges = self.resolved.session, list[Edge]()
        for planned in self.sketch.edges:
            if planned.edge_id in self.around.existing_edges:
                if planned.origin is not None:
                    self.warnings.append(f"{planned.origin.candidate_id} is there already as {planned.edge_id}; it was left as it is")
                continue
            attributes = planned.origin.attributes if planned.origin else {}
            draft = planned.origin.draft if planned.origin else None
            edges.append(
                Edge(
                    board_id=session.board_id,
                    edge_id=planned.edge_id,
                    src=planned.src,
                    rel_type=planned.rel_type,
                    dst=planned.dst,
                    created_at=self.now,
                    created_by=session.agent_id,
                    commit_seq=self.seq,
                    source_session_id=session.session_id,
                    reason=attributes.get("reason"),
                    evidence=attributes.get("evidence"),
                    confidence=float(attributes.get(CONFIDENCE, DEFAULT_CONFIDENCE)),
                    layer=draft.layer if draft else "cognitive",
                    rule_id=draft.rule_id if draft else None,
                )
            )
        return edges

    def _supersede(self, edge: PlannedEdge) -> None:
        node = self.after.get(edge.dst) or self.around.nodes[edge.dst]
        label = edge.origin.candidate_id if edge.origin else str(edge.implied_by)
        if edge.dst in self.superseded:
            self.warnings.append(
                f"{label}: {edge.dst} is superseded by {self.superseded[edge.dst]} in this commit; this edge is history only"
            )
            return
        if not node.live:  # it was superseded before the session saw it; a later loss of its head state is a conflict, found earlier
            return
        if node.human_curated:
            raise InvalidEdgeEndpoints(
                f"{edge.dst} is curated by a person since {label} was added, and agents do not supersede it; nothing was changed. "
                "Abort, and record the decision without that edge.",
                {"node_id": edge.dst, "candidate_id": label},
            )
        resolution = next((r for r in self.resolved.resolutions if self.sketch.node_ids[r.candidate_id] == edge.src), None)
        if resolution is not None and resolution.overridden and resolution.hint != "SUPERSEDE":
            self.warnings.append(f"{resolution.hint} kept, but {label} supersedes {edge.dst}")
        self.superseded[edge.dst] = edge.src
        self.after[edge.dst] = replace(
            node,
            superseded_by=edge.src,
            superseded_at=self.now,
            status="superseded" if node.node_type == "Decision" else node.status,
            commit_seq=self.seq,
            version=node.version if node.commit_seq == self.seq else node.version + 1,  # one commit raises it once
            updated_at=self.now,
        )

    def _resolved_now(self, node_id: str) -> bool | None:
        node = self.after.get(node_id) or self.around.nodes.get(node_id)
        return None if node is None else (not node.live or node.revoked)

    def _recompute(self, edges: Sequence[Edge]) -> tuple[RelevanceWrite, ...]:
        touched = {*self.after, *(end for e in edges for end in (e.src, e.dst))}
        only: list[RelevanceWrite] = []
        for node_id in sorted(touched):
            node = self.after.get(node_id) or self.around.nodes[node_id]
            before = self.around.surroundings.get(node_id, Surroundings())
            degree = before.degree + sum((e.src == node_id) + (e.dst == node_id) for e in edges)
            contradicting: list[float] = []
            if node.live and not node.revoked:
                for c in before.contradictions:
                    resolved = self._resolved_now(c.src)
                    if not (c.src_resolved if resolved is None else resolved):
                        contradicting.append(c.confidence)
                contradicting += [
                    e.confidence for e in edges if e.rel_type == "contradicts" and e.dst == node_id and not self._resolved_now(e.src)
                ]
            score = relevance(
                confidence=node.confidence,
                standing=Standing(degree, contradicting),
                query_hits=node.query_hits,
                last_queried_at=node.last_queried_at,
                priority_boost=node.priority_boost,
                now=self.now,
            )
            if node_id in self.after:
                self.after[node_id] = replace(node, relevance_score=score, last_recomputed_at=self.now)
            else:
                only.append(RelevanceWrite(node_id, score, self.now))
        return tuple(only)

    def _vector_writes(self) -> tuple[VectorWrite, ...]:
        writes: list[VectorWrite] = []
        for node_id in sorted(self.after):
            node = self.after[node_id]
            if node.node_type in SEARCHABLE_TYPES and (node_id in self.retexted or node_id in self.superseded):
                vector = self.vectors[embedding_text(node.title, node.body)] if node_id in self.retexted else None
                writes.append(VectorWrite(node_id, node.node_type, node.live, vector))
        return tuple(writes)

    def _answer(self, edges: Sequence[Edge]) -> dict[str, Any]:
        applied: dict[str, list[dict[str, str]]] = {"added": [], "updated": [], "superseded": [], "noop": []}
        for r in self.resolved.resolutions:
            entry = {"candidate_id": r.candidate_id, "node_id": self.sketch.node_ids[r.candidate_id]}
            if r.hint == "SUPERSEDE":
                applied["superseded"].append({**entry, "target_node": r.targets[0].node_id})
            applied[{"ADD": "added", "SUPERSEDE": "added", "UPDATE": "updated", "NOOP": "noop"}[r.hint]].append(entry)
        return {
            "session_id": self.resolved.session.session_id,
            "committed": True,
            "applied": applied,
            "edges_added": [{"edge_id": e.edge_id, "src": e.src, "rel": e.rel_type, "dst": e.dst} for e in edges],
            "audit_row_id": self.seq,
            "outbox_event": CONSOLIDATED,
            "superseded_nodes": [{"node_id": old, "superseded_by": new} for old, new in self.superseded.items()],
            "warnings": self.warnings,
        }


def texts_to_embed(resolved: Resolved, nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """The texts whose vectors `complete` needs, each once, in the order of the candidates."""
    texts: dict[str, None] = {}
    bodies = {n.node_id: n.body for n in nodes.values()}
    for candidate, resolution in zip(resolved.candidates.nodes, resolved.resolutions, strict=True):
        if candidate.draft.node_type not in SEARCHABLE_TYPES or resolution.hint == "NOOP":
            continue
        body = candidate.draft.body
        if resolution.hint == "UPDATE":
            target = resolution.targets[0].node_id
            body = bodies[target] = merged_body(candidate, bodies[target])  # two overrides may update one node
        texts[embedding_text(candidate.draft.title, body)] = None
    return tuple(texts)


def administer(action: Administration, node: Node, surroundings: Surroundings, *, seq: int, now: Instant) -> CommitPlan:
    """The plan of an administrative change of one node: curate it, or revoke it.

    Neither changes content or liveness, so the node keeps its version and the number of its last commit.

    Args:
        action: What is done, by whom and why.
        node: The node before.
        surroundings: Its edges.
        seq: The commit's number.
        now: Its time.
    """
    if action.kind == "curate":
        boost = node.priority_boost if action.priority_boost is None else action.priority_boost
        after = replace(node, human_curated=action.curated, priority_boost=boost)
    else:
        after = replace(
            node, revocation_reason=action.reason, status="revoked" if node.node_type == "Decision" and node.live else node.status
        )
    resolved = not after.live or after.revoked
    standing = Standing(surroundings.degree, () if resolved else [c.confidence for c in surroundings.contradictions if not c.src_resolved])
    score = relevance(
        confidence=after.confidence,
        standing=standing,
        query_hits=after.query_hits,
        last_queried_at=after.last_queried_at,
        priority_boost=after.priority_boost,
        now=now,
    )
    after = replace(after, relevance_score=score, last_recomputed_at=now, updated_at=now)
    event = administered_event(action, seq, now)
    answer = {"board_id": action.board_id, "node_id": node.node_id, "action": action.kind, "audit_row_id": seq}
    return CommitPlan(action.board_id, seq, now, (after,), (), (), (), administration_row(action, seq, now, event), event, answer)
