"""The reconciliation rules: what each candidate of a session is to the graph that is already there.

Six rules, the first that fires decides; rule 1 runs for all candidates before the others. A rule that fires on a node
which must not be touched from here ends as ADD with the reason, never as a weaker change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_kg.domain.model import EdgeCandidate, EdgeEnd, Hint, Node, NodeCandidate, Proposal, Source, Target, content_digest
from pulse_kg.domain.schema import VERSIONED_TYPES
from pulse_kg.domain.supersedence import find_cycle
from pulse_kg.domain.text import claims, embedding_text, fold, same_series

CHANGED_SINCE = "changed_since_propose"
"""How a warning begins that tells of a hint that later candidates or edges of the session changed."""
BY_EDGES = 2
"""The rule that supersedes what the session's own edges name."""


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
        same_ref: Nodes of the type with its stable reference, and how similar they are; only live ones count.
        matches: The nearest nodes of the type, among them the best live one; only live ones count.
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


def settled_by_content(view: SessionView) -> frozenset[str]:
    """The candidates that rule 1 finds to be there already; it looks at digests, references and edges, and at no similarity."""
    reconciliation = _Reconciliation(view, Thresholds())
    reconciliation.rule_1()
    return frozenset(c for c, proposal in reconciliation.decided.items() if proposal.hint == "NOOP")


@dataclass
class _Reconciliation:
    view: SessionView
    thresholds: Thresholds
    same_as: dict[str, Node] = field(default_factory=dict)
    """Candidates that become a node that is there: by rule 1, and later by rules 3 and 4."""
    decided: dict[str, Proposal] = field(default_factory=dict)
    changed_by: dict[str, str] = field(default_factory=dict)
    """Nodes that rules 3 to 5 change, and the candidate that does."""

    def run(self) -> tuple[Proposal, ...]:
        candidates = self.view.nodes
        self.rule_1()
        for candidate in candidates:
            if candidate.candidate_id not in self.decided:
                self._rule_2(candidate)
        for candidate in candidates:
            if candidate.candidate_id not in self.decided:
                self._rules_3_to_6(candidate)
        return tuple(self.decided[c.candidate_id] for c in candidates)

    # Rule 1: the same statement is there already.

    def rule_1(self) -> None:
        for candidate in self.view.nodes:
            self._rule_1_live(candidate)
        for candidate in self.view.nodes:
            if candidate.candidate_id not in self.decided:
                self._rule_1_past_or_twin(candidate)

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
        past = [n for n in self._equals(candidate) if not n.live and not self._newer(n)]
        if past and not self._explicit_targets(candidate):
            free = [n for n in past if not self._contradicted(candidate, n)]
            if not free:
                self._refuse(candidate, 1, past[0], None, _CONTRADICTED)
                return
            node = free[0]
            self.same_as[candidate.candidate_id] = node
            why = f"Already recorded as {node.node_id}, which {node.superseded_by} has superseded since; it is not revived."
            self._decide(candidate, "NOOP", 1, why, [node])
            return
        twins = self._twins(candidate)
        free_twins = [t for t in twins if not self._contradicts_twin(candidate, t)]
        if free_twins:
            root = free_twins[0]
            why = f"The same statement as {root} of this session; both become one node."
            self._decide(candidate, "NOOP", 1, why, [], twin=root)
        elif twins:
            self._decide(candidate, "ADD", 1, f"Kept as a new node beside {twins[0]} of this session: {_CONTRADICTED}.", [])

    def _twins(self, candidate: NodeCandidate) -> list[str]:
        """The earlier candidates that say the same, each with its own node, in their order."""
        places: dict[str, str | None] = {}  # of each node that earlier equal candidates become: the first reference that one names
        for earlier in self.view.nodes:
            if earlier.candidate_id == candidate.candidate_id:
                break
            if earlier.digest == candidate.digest:
                root = self._root(earlier.candidate_id)
                places[root] = places.get(root) or earlier.stable_ref
        return [root for root, place in places.items() if not _differ(place, candidate.stable_ref)]

    def _contradicts_twin(self, candidate: NodeCandidate, root: str) -> bool:
        if self._edges_to(candidate, "contradicts", candidate_id=root):
            return not self._edges_to(candidate, "supersedes", candidate_id=root, directed=True)
        return root in self.same_as and self._contradicted(candidate, self.same_as[root])

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
            self._refuse(candidate, BY_EDGES, curated[0], None, _CURATED)
            return
        rest = f" (and {', '.join(n.node_id for n in targets[1:])})" if len(targets) > 1 else ""
        why = f"A supersedes edge of this session goes to {targets[0].node_id} «{targets[0].title}»{rest}."
        self._decide(candidate, "SUPERSEDE", BY_EDGES, why, targets)

    def _explicit_targets(self, candidate: NodeCandidate) -> list[Node]:
        """The live nodes that supersedes edges from the candidate go to, each once, in the edges' order."""
        found: dict[str, Node] = {}
        for edge in self.view.edges:
            if edge.draft.rel_type == "supersedes" and self._is(edge.draft.src, candidate):
                node = self._node_of(edge.draft.dst)
                if node is not None and node.live:
                    found.setdefault(node.node_id, node)
        return list(found.values())

    # Rules 3 to 6: identity by reference, then by similarity with a second signal.

    def _rules_3_to_6(self, candidate: NodeCandidate) -> None:
        facts, warnings = self.view.facts[candidate.candidate_id], list[str]()
        same_ref = _live_best_first(facts.same_ref)
        if len(same_ref) > 1:
            ids = ", ".join(sorted(m.node.node_id for m in same_ref))
            warnings.append(f"ambiguous_source_ref: {len(same_ref)} live nodes have the reference {candidate.stable_ref}: {ids}")
        elif same_ref:
            same = same_ref[0]
            if self._rule_3(candidate, facts, same):
                return
            warnings.append(
                f"ambiguous_source_ref: {same.node.node_id} has the reference {candidate.stable_ref}, but it says something else "
                f"(similarity {same.score:.2f})"
            )
        best = next(iter(_live_best_first(facts.matches)), None)
        if best is not None and (self._rule_4(candidate, facts, best, warnings) or self._rule_5(candidate, facts, best, warnings)):
            return
        if best is not None and best.score >= self.thresholds.similar:
            series = not self._one_artifact(candidate, best.node) and same_series(best.node.title, candidate.draft.title)
            why = f"A possible duplicate of {best.node.node_id} «{best.node.title}» (similarity {best.score:.2f})"
            why += f": {_SERIES}." if series else "; that alone is no reason to change it."
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
        supersedes = candidate.draft.node_type in VERSIONED_TYPES and not equal_titles and self._newer(same.node)
        why = f"{same.node.node_id} has the same reference {candidate.stable_ref}"
        why += " and a newer version of the artifact states it anew." if supersedes else "."
        self._change(candidate, 3, "SUPERSEDE" if supersedes else "UPDATE", same, why, weak, [])
        return True

    def _rule_4(self, candidate: NodeCandidate, facts: Facts, best: Match, warnings: list[str]) -> bool:
        one_artifact = self._one_artifact(candidate, best.node)
        if best.score < self.thresholds.update or _differ(best.node.stable_ref, candidate.stable_ref):
            return False
        if not (one_artifact or fold(best.node.title) == fold(candidate.draft.title)):
            return False
        turned = candidate.draft.node_type in VERSIONED_TYPES and claims(
            embedding_text(candidate.draft.title, candidate.draft.body)
        ) != claims(embedding_text(best.node.title, best.node.body))
        tie = "the same artifact" if one_artifact else "an equal title"
        why = f"Nearly the same text as {best.node.node_id} (similarity {best.score:.2f}, {tie})"
        why += ", but with another number, version, unit or negation." if turned else "."
        self._change(candidate, 4, "SUPERSEDE" if turned else "UPDATE", best, why, _weakness(facts, best.node), warnings)
        return True

    def _rule_5(self, candidate: NodeCandidate, facts: Facts, best: Match, warnings: list[str]) -> bool:
        if best.score < self.thresholds.supersede or candidate.draft.node_type not in VERSIONED_TYPES:
            return False
        if not self._one_artifact(candidate, best.node):
            return False
        why = f"On the subject of {best.node.node_id} «{best.node.title}» (similarity {best.score:.2f}), from the same artifact."
        self._change(candidate, 5, "SUPERSEDE", best, why, _weakness(facts, best.node), warnings)
        return True

    def _change(
        self, candidate: NodeCandidate, rule: int, hint: Hint, match: Match, why: str, weak: str | None, warnings: list[str]
    ) -> None:
        node = match.node
        refusal = _CONTRADICTED if self._contradicted(candidate, node) else weak
        if refusal is None and hint == "UPDATE" and update_changes_nothing(candidate, node):
            self.same_as[candidate.candidate_id] = node
            self._decide(candidate, "NOOP", rule, why + " Nothing in it would change.", [node], score=match.score, warnings=warnings)
            return
        refusal = refusal or self._protected(node) or self._taken(candidate, node, hint)
        if refusal is not None:
            self._refuse(candidate, rule, node, match.score, refusal, warnings)
            return
        self.changed_by[node.node_id] = candidate.candidate_id
        if hint == "UPDATE":
            self.same_as[candidate.candidate_id] = node
        self._decide(candidate, hint, rule, why, [node], score=match.score, warnings=warnings)

    def _protected(self, node: Node) -> str | None:
        if node.human_curated:
            return _CURATED
        if self._older(node):
            return "it was last written by a newer version of the artifact"
        return None

    def _taken(self, candidate: NodeCandidate, node: Node, hint: Hint) -> str | None:
        """Why another candidate of the session stands in the way: one node is changed by one candidate."""
        if node.node_id in self.changed_by:
            return f"{self.changed_by[node.node_id]} of this session changes it already"
        if hint == "SUPERSEDE":
            if self._superseded_from(node, candidate):
                return "the supersedes edges of this session go the other way, from it"
            for other, same in sorted(self.same_as.items()):
                if same.node_id == node.node_id:
                    return f"{other} of this session states it unchanged"
            for proposal in self.decided.values():
                if proposal.hint == "SUPERSEDE" and any(t.node_id == node.node_id for t in proposal.targets):
                    return f"{proposal.candidate_id} of this session supersedes it already"
        return None

    # What edges and versions say.

    def _root(self, candidate_id: str) -> str:
        """The candidate whose node it is: itself, or the earlier one that it is a twin of."""
        first = self.decided.get(candidate_id)
        return first.twin if first is not None and first.twin is not None else candidate_id

    def _is(self, end: EdgeEnd, candidate: NodeCandidate) -> bool:
        """Whether an end is the candidate, or a twin that becomes one node with it."""
        return end.candidate_id is not None and self._root(end.candidate_id) == self._root(candidate.candidate_id)

    def _node_of(self, end: EdgeEnd) -> Node | None:
        if end.node_id is not None:
            return self.view.known.get(end.node_id)
        return self.same_as.get(self._root(str(end.candidate_id)))

    def _superseded_from(self, node: Node, candidate: NodeCandidate) -> bool:
        """Whether the session's supersedes edges lead from the node down to the candidate."""

        def place(end: EdgeEnd) -> str:
            there = self._node_of(end)
            return there.node_id if there is not None else str(end.node_id or self._root(str(end.candidate_id)))

        edges = [(place(e.draft.src), place(e.draft.dst)) for e in self.view.edges if e.draft.rel_type == "supersedes"]
        edges += [(p.candidate_id, t.node_id) for p in self.decided.values() if p.hint == "SUPERSEDE" for t in p.targets]
        below: dict[str, list[str]] = {}
        for src, dst in edges:
            below.setdefault(src, []).append(dst)
        return find_cycle([(candidate.candidate_id, node.node_id)], below) is not None

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
                if not self._is(here, candidate):
                    continue
                node = self._node_of(there)
                if there.candidate_id is not None and self._root(there.candidate_id) == candidate_id:
                    return True
                if node is not None and node.node_id == node_id:
                    return True
        return False

    def _contradicted(self, candidate: NodeCandidate, node: Node) -> bool:
        return self._edges_to(candidate, "contradicts", node_id=node.node_id) and not self._edges_to(
            candidate, "supersedes", node_id=node.node_id, directed=True
        )

    def _one_artifact(self, candidate: NodeCandidate, node: Node) -> bool:
        return node.artifact == candidate.artifact(self.view.source)

    def _newer(self, node: Node) -> bool:
        """Whether the session consolidates a newer version of the node's artifact than the one that last wrote it."""
        source, version = self.view.source, node.artifact_version
        return node.artifact == source.artifact.canonical and version is not None and source.version > version

    def _older(self, node: Node) -> bool:
        """Whether the session consolidates an older version of the node's artifact than the one that last wrote it."""
        source, version = self.view.source, node.artifact_version
        return node.artifact == source.artifact.canonical and version is not None and source.version < version

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


def _live_best_first(matches: Iterable[Match]) -> list[Match]:
    return sorted((m for m in matches if m.node.live), key=lambda m: (-m.score, m.node.node_id))


def _weakness(facts: Facts, node: Node) -> str | None:
    """Why a similarity may not carry a change."""
    if not facts.by_vector:
        return "only the titles could be compared"
    if facts.cut or node.truncated:
        return "a text was longer than the model reads, so the similarity is of its beginning only"
    return None


def _differ(left: str | None, right: str | None) -> bool:
    return left is not None and right is not None and left != right


def merged_body(candidate: NodeCandidate, body: str) -> str:
    """The body after an update: a blank one leaves what was there."""
    return candidate.draft.body if candidate.draft.body.strip() else body


def update_changes_nothing(candidate: NodeCandidate, node: Node) -> bool:
    """Whether an update of the node by the candidate would leave its content as it is."""
    attributes = {**node.attributes, **candidate.attributes}
    after = content_digest(node.node_type, candidate.draft.title, merged_body(candidate, node.body), attributes)
    return after == node.content_digest
