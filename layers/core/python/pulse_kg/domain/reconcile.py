"""The reconciliation rules: what each candidate of a session is to the graph that is already there.

Six rules, the first that fires decides; rule 1 runs for all candidates before the others. A rule that fires on a node
which must not be touched from here ends as ADD with the reason, never as a weaker change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_kg.domain.model import EdgeCandidate, EdgeEnd, Hint, Node, NodeCandidate, Proposal, Source, Target, content_digest
from pulse_kg.domain.schema import VERSIONED_TYPES
from pulse_kg.domain.text import claims, embedding_text, fold, same_series


@dataclass(frozen=True)
class Thresholds:
    """Similarities, 0..1, from which a match counts as an update, a supersedence, a possible duplicate."""

    update: float = 0.95
    supersede: float = 0.85
    similar: float = 0.70


@dataclass(frozen=True)
class Match:
    """A node of the candidate's type and its similarity, 0..1 with 4 decimals."""

    node: Node
    score: float


@dataclass(frozen=True)
class Facts:
    """What the graph knows about one candidate.

    Attributes:
        same_digest: Nodes of the type with its digest, live and superseded.
        same_ref: Live nodes of the type with its stable reference, and how similar they are.
        matches: The nearest live nodes of the type, best first, ties by id.
        by_vector: Whether the similarities are cosines; else they compare title prefixes.
        cut: Whether the candidate's text was longer than the model reads.
    """

    same_digest: tuple[Node, ...] = ()
    same_ref: tuple[Match, ...] = ()
    matches: tuple[Match, ...] = ()
    by_vector: bool = True
    cut: bool = False


@dataclass(frozen=True)
class SessionView:
    """A session with all that the rules look at.

    Attributes:
        source: What the session consolidates.
        nodes: Its node candidates in order.
        edges: Its edge candidates in order.
        facts: Candidate id → what the graph knows; one entry for each node candidate.
        known: The nodes that edges name, by id.
        seq: The board's last commit.
    """

    source: Source
    nodes: Sequence[NodeCandidate]
    edges: Sequence[EdgeCandidate]
    facts: Mapping[str, Facts]
    known: Mapping[str, Node]
    seq: int = 0


def reconcile(view: SessionView, thresholds: Thresholds) -> tuple[Proposal, ...]:
    """One proposal for each node candidate, in their order."""
    return _Reconciliation(view, thresholds).run()


@dataclass
class _Reconciliation:
    view: SessionView
    thresholds: Thresholds
    same_as: dict[str, Node] = field(default_factory=dict)
    """Candidates that rule 1 found to be a node."""
    decided: dict[str, Proposal] = field(default_factory=dict)
    changed_by: dict[str, str] = field(default_factory=dict)
    """Nodes that rules 3 to 5 change, and the candidate that does."""

    def run(self) -> tuple[Proposal, ...]:
        candidates = self.view.nodes
        for candidate in candidates:
            self._rule_1_live(candidate)
        for candidate in candidates:
            if candidate.candidate_id not in self.decided:
                self._rule_1_past_or_twin(candidate)
        for candidate in candidates:
            if candidate.candidate_id not in self.decided:
                self._rule_2(candidate)
        for candidate in candidates:
            if candidate.candidate_id not in self.decided:
                self._rules_3_to_6(candidate)
        return tuple(self.decided[c.candidate_id] for c in candidates)

    # Rule 1: the same statement is there already.

    def _rule_1_live(self, candidate: NodeCandidate) -> None:
        found = [n for n in self._equals(candidate) if n.live]
        if not found:
            return
        free = [n for n in found if not self._contradicted(candidate, n)]
        if not free:
            self._refuse(candidate, 1, found[0], None, _CONTRADICTED)
            return
        self.same_as[candidate.candidate_id] = free[0]
        self._decide(candidate, "NOOP", 1, f"Already present and unchanged as {free[0].node_id}.", [free[0]])

    def _rule_1_past_or_twin(self, candidate: NodeCandidate) -> None:
        past = [n for n in self._equals(candidate) if not n.live and not self._contradicted(candidate, n)]
        past = [n for n in past if not self._newer(candidate, n)]
        if past and not self._explicit_targets(candidate):
            node = past[0]
            self.same_as[candidate.candidate_id] = node
            why = f"Already recorded as {node.node_id}, which {node.superseded_by} has superseded since; it is not revived."
            self._decide(candidate, "NOOP", 1, why, [node])
            return
        for earlier in self.view.nodes:
            if earlier.candidate_id == candidate.candidate_id:
                return
            if earlier.digest == candidate.digest and not _differ(earlier.stable_ref, candidate.stable_ref):
                if self._edges_to(candidate, "contradicts", candidate_id=earlier.candidate_id):
                    continue
                first = self.decided.get(earlier.candidate_id)
                root = first.twin if first and first.twin else earlier.candidate_id
                if root in self.same_as:
                    self.same_as[candidate.candidate_id] = self.same_as[root]
                why = f"The same statement as {root} of this session; both become one node."
                self._decide(candidate, "NOOP", 1, why, [], twin=root)
                return

    def _equals(self, candidate: NodeCandidate) -> list[Node]:
        found = [n for n in self.view.facts[candidate.candidate_id].same_digest if not _differ(n.stable_ref, candidate.stable_ref)]
        return sorted(found, key=lambda n: (n.created_seq, n.node_id))

    # Rule 2: the session says itself what the candidate supersedes.

    def _rule_2(self, candidate: NodeCandidate) -> None:
        targets = self._explicit_targets(candidate)
        if not targets:
            return
        curated = [n for n in targets if n.human_curated]
        if curated:
            self._refuse(candidate, 2, curated[0], None, _CURATED)
            return
        rest = f" (and {', '.join(n.node_id for n in targets[1:])})" if len(targets) > 1 else ""
        why = f"A supersedes edge of this session goes to {targets[0].node_id} «{targets[0].title}»{rest}."
        self._decide(candidate, "SUPERSEDE", 2, why, targets)

    def _explicit_targets(self, candidate: NodeCandidate) -> list[Node]:
        """The live nodes that supersedes edges from the candidate go to, each once, in the edges' order."""
        found: dict[str, Node] = {}
        for edge in self.view.edges:
            if edge.draft.rel_type == "supersedes" and edge.draft.src.candidate_id == candidate.candidate_id:
                node = self._node_of(edge.draft.dst)
                if node is not None and node.live:
                    found.setdefault(node.node_id, node)
        return list(found.values())

    # Rules 3 to 6: identity by reference, then by similarity with a second signal.

    def _rules_3_to_6(self, candidate: NodeCandidate) -> None:
        facts, warnings = self.view.facts[candidate.candidate_id], []
        if len(facts.same_ref) > 1:
            ids = ", ".join(m.node.node_id for m in facts.same_ref)
            warnings.append(f"ambiguous_source_ref: {len(facts.same_ref)} live nodes have the reference {candidate.stable_ref}: {ids}")
        elif facts.same_ref:
            same = facts.same_ref[0]
            if self._rule_3(candidate, facts, same):
                return
            warnings.append(
                f"ambiguous_source_ref: {same.node.node_id} has the reference {candidate.stable_ref}, but it says something else "
                f"(similarity {same.score:.2f})"
            )
        best = facts.matches[0] if facts.matches else None
        if best is not None and (self._rule_4(candidate, facts, best, warnings) or self._rule_5(candidate, facts, best, warnings)):
            return
        if best is not None and best.score >= self.thresholds.similar:
            why = f"A possible duplicate of {best.node.node_id} «{best.node.title}» (similarity {best.score:.2f}), but nothing else ties them."
            self._decide(candidate, "ADD", 6, why, [best.node], score=best.score, warnings=warnings)
        else:
            nearest = f"; the nearest has {best.score:.2f}" if best is not None and best.score > 0 else ""
            why = f"No live {candidate.draft.node_type} is near (similarity {self.thresholds.similar:.2f} or more{nearest})."
            self._decide(candidate, "ADD", 6, why, [], warnings=warnings)

    def _rule_3(self, candidate: NodeCandidate, facts: Facts, same: Match) -> bool:
        equal_titles = fold(same.node.title) == fold(candidate.draft.title)
        if not (equal_titles or same.score >= self.thresholds.similar):
            return False
        weak = None if equal_titles else _weakness(facts, same.node)
        supersedes = candidate.draft.node_type in VERSIONED_TYPES and not equal_titles and self._newer(candidate, same.node)
        why = f"{same.node.node_id} has the same reference {candidate.stable_ref}"
        why += " and a newer version of the artifact states it anew." if supersedes else "."
        self._change(candidate, 3, "SUPERSEDE" if supersedes else "UPDATE", same, why, weak, [])
        return True

    def _rule_4(self, candidate: NodeCandidate, facts: Facts, best: Match, warnings: list[str]) -> bool:
        one_artifact = best.node.artifact == candidate.artifact(self.view.source)
        if best.score < self.thresholds.update or _differ(best.node.stable_ref, candidate.stable_ref):
            return False
        if not (one_artifact or fold(best.node.title) == fold(candidate.draft.title)):
            return False
        weak = _weakness(facts, best.node)
        if weak is None and not one_artifact and same_series(best.node.title, candidate.draft.title):
            weak = _SERIES
        turned = candidate.draft.node_type in VERSIONED_TYPES and claims(
            embedding_text(candidate.draft.title, candidate.draft.body)
        ) != claims(embedding_text(best.node.title, best.node.body))
        tie = "the same artifact" if one_artifact else "an equal title"
        why = f"Nearly the same text as {best.node.node_id} (similarity {best.score:.2f}, {tie})"
        why += ", but with another number, version, unit or negation." if turned else "."
        self._change(candidate, 4, "SUPERSEDE" if turned else "UPDATE", best, why, weak, warnings)
        return True

    def _rule_5(self, candidate: NodeCandidate, facts: Facts, best: Match, warnings: list[str]) -> bool:
        if best.score < self.thresholds.supersede or candidate.draft.node_type not in VERSIONED_TYPES:
            return False
        if best.node.artifact != candidate.artifact(self.view.source):
            return False
        why = f"On the subject of {best.node.node_id} «{best.node.title}» (similarity {best.score:.2f}), from the same artifact."
        self._change(candidate, 5, "SUPERSEDE", best, why, _weakness(facts, best.node), warnings)
        return True

    def _change(
        self, candidate: NodeCandidate, rule: int, hint: Hint, match: Match, why: str, weak: str | None, warnings: list[str]
    ) -> None:
        node = match.node
        refusal = self._untouchable(candidate, node) or weak
        if refusal is None and hint == "UPDATE" and update_changes_nothing(candidate, node):
            self._decide(candidate, "NOOP", rule, why + " Nothing in it would change.", [node], score=match.score, warnings=warnings)
            return
        refusal = refusal or self._taken(candidate, node, hint)
        if refusal is not None:
            self._refuse(candidate, rule, node, match.score, refusal, warnings)
            return
        self.changed_by[node.node_id] = candidate.candidate_id
        self._decide(candidate, hint, rule, why, [node], score=match.score, warnings=warnings)

    def _untouchable(self, candidate: NodeCandidate, node: Node) -> str | None:
        if node.human_curated:
            return _CURATED
        if self._older(candidate, node):
            return "it was last written by a newer version of the artifact"
        if self._contradicted(candidate, node):
            return _CONTRADICTED
        return None

    def _taken(self, candidate: NodeCandidate, node: Node, hint: Hint) -> str | None:
        """Why another candidate of the session stands in the way: one node is changed by one candidate."""
        if node.node_id in self.changed_by:
            return f"{self.changed_by[node.node_id]} of this session changes it already"
        if hint == "SUPERSEDE":
            for other, same in sorted(self.same_as.items()):
                if same.node_id == node.node_id:
                    return f"{other} of this session states it unchanged"
            for proposal in self.decided.values():
                if proposal.hint == "SUPERSEDE" and any(t.node_id == node.node_id for t in proposal.targets):
                    return f"{proposal.candidate_id} of this session supersedes it already"
        return None

    # What edges and versions say.

    def _node_of(self, end: EdgeEnd) -> Node | None:
        if end.node_id is not None:
            return self.view.known.get(end.node_id)
        return self.same_as.get(str(end.candidate_id))

    def _edges_to(
        self,
        candidate: NodeCandidate,
        rel_type: str,
        *,
        candidate_id: str | None = None,
        node_id: str | None = None,
        directed: bool = False,
    ) -> bool:
        """Whether an edge of the session joins the candidate to another candidate, or to a node (by its id or by rule 1)."""
        for edge in self.view.edges:
            if edge.draft.rel_type != rel_type:
                continue
            pairs = [(edge.draft.src, edge.draft.dst)]
            if not directed:
                pairs.append((edge.draft.dst, edge.draft.src))
            for here, there in pairs:
                if here.candidate_id != candidate.candidate_id:
                    continue
                node = self._node_of(there)
                if (candidate_id is not None and there.candidate_id == candidate_id) or (node is not None and node.node_id == node_id):
                    return True
        return False

    def _contradicted(self, candidate: NodeCandidate, node: Node) -> bool:
        return self._edges_to(candidate, "contradicts", node_id=node.node_id) and not self._edges_to(
            candidate, "supersedes", node_id=node.node_id, directed=True
        )

    def _newer(self, candidate: NodeCandidate, node: Node) -> bool:
        version = candidate.version(self.view.source)
        same = node.artifact == candidate.artifact(self.view.source)
        return same and version is not None and node.artifact_version is not None and version > node.artifact_version

    def _older(self, candidate: NodeCandidate, node: Node) -> bool:
        version = candidate.version(self.view.source)
        same = node.artifact == candidate.artifact(self.view.source)
        return same and version is not None and node.artifact_version is not None and version < node.artifact_version

    # Writing down.

    def _refuse(
        self, candidate: NodeCandidate, rule: int, node: Node, score: float | None, reason: str, warnings: Sequence[str] = ()
    ) -> None:
        why = f"Kept as a new node beside {node.node_id} «{node.title}»: {reason}."
        self._decide(candidate, "ADD", rule, why, [node], score=score, warnings=warnings)

    def _decide(
        self,
        candidate: NodeCandidate,
        hint: Hint,
        rule: int,
        rationale: str,
        nodes: Iterable[Node],
        *,
        twin: str | None = None,
        score: float | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self.decided[candidate.candidate_id] = Proposal(
            candidate_id=candidate.candidate_id,
            hint=hint,
            rule=rule,
            rationale=rationale,
            targets=tuple(Target(n.node_id, n.version) for n in nodes),
            twin=twin,
            score=score,
            warnings=tuple(warnings),
            seen_seq=self.view.seq,
        )


_CURATED = "a person curates it, and agents leave it as it is"
_CONTRADICTED = "a contradicts edge of this session goes to it"
_SERIES = "the titles differ only in a number, version or date and come from different artifacts"


def _weakness(facts: Facts, node: Node) -> str | None:
    """Why a similarity may not carry a change."""
    if not facts.by_vector:
        return "only the titles could be compared"
    if facts.cut or node.truncated:
        return "a text was longer than the model reads, so the similarity is of its beginning only"
    return None


def _differ(left: str | None, right: str | None) -> bool:
    return left is not None and right is not None and left != right


def merged_body(candidate: NodeCandidate, node: Node) -> str:
    """The body after an update: a blank one leaves what was there."""
    return candidate.draft.body if candidate.draft.body.strip() else node.body


def update_changes_nothing(candidate: NodeCandidate, node: Node) -> bool:
    """Whether an update of the node by the candidate would leave its content as it is."""
    attributes = {**node.attributes, **candidate.attributes}
    after = content_digest(node.node_type, candidate.draft.title, merged_body(candidate, node), attributes)
    return after == node.content_digest
