"""Random sessions over a small world of statements, close enough to each other for every rule to fire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pulse_kg.domain import ids
from pulse_kg.domain.audit import Administration
from pulse_kg.domain.model import Candidates, EdgeCandidate, EdgeDraft, EdgeEnd, Hint, Layer, NodeCandidate, NodeDraft, Override, Session
from pulse_kg.domain.schema import (
    AGENT_REL_TYPES,
    ENDPOINT_PAIRS,
    RESERVED_REL_TYPES,
    NodeType,
    RelType,
    check_edge_attributes,
    check_node_attributes,
)
from pulse_kg.domain.supersedence import find_cycle
from pulse_kg.errors import InvalidOverride
from tests.support.drafts import BOARD, NOW, session, source
from tests.support.graph_model import GraphModel

NODE_TYPES: tuple[NodeType, ...] = ("Decision", "Decision", "Decision", "Decision", "Constraint", "Requirement", "Learning", "Bug")
TITLES = (
    "Retry failed calls 3 times",
    "Retry failed calls 3 times",
    "RETRY  failed calls 3 times",
    "Retry failed calls 5 times",
    "Do not retry failed calls",
    "Retry failed calls 3 times with backoff",
    "Store all events in Postgres",
    "Release 3.11 schedule",
    "Release 3.12 schedule",
    "Every service that calls another service has to retry failed calls 3 times with backoff and jitter",
)
BODIES = ("", "", "", "With jitter.", "with jitter, without a cap")
REFS = (None, None, None, None, "spec:spec_1", "spec:spec_1#a", "spec:spec_1#a", "spec:spec_1#b", "card:card_1#a")
ARTIFACTS = ("spec:spec_1", "spec:spec_1", "spec:spec_1", "card:card_1")
ATTRIBUTES: dict[NodeType, tuple[dict[str, Any], ...]] = {
    "Decision": ({"rationale": "load"}, {"status": "revoked"}, {"status": "active"}),
    "Constraint": ({"severity": "high"}, {"severity": "low"}),
    "Requirement": ({"priority": "must"},),
    "Learning": ({"area": "retries"},),
    "Bug": ({"status": "open"}, {"status": "revoked"}),
}
HINTS: tuple[Hint, ...] = ("ADD", "UPDATE", "UPDATE", "SUPERSEDE", "NOOP")


@dataclass(frozen=True)
class Draft:
    """A session with its candidates and overrides."""

    session: Session
    candidates: Candidates
    overrides: tuple[Override, ...] = ()


def random_draft(rng: Random, model: GraphModel, number: int, *, overrides: bool = True) -> Draft:
    """A session that the add tools would have taken, on the graph as it is."""
    of = source(rng.choice(ARTIFACTS), rng.randint(0, 3))
    fresh = session(of, session_id=f"kgs_{ids.ulid(NOW, number.to_bytes(10, 'big'))}", agent_id=rng.choice(("agt_ada", "agt_bob")))
    nodes = tuple(_node_candidate(rng, n) for n in range(1, rng.randint(1, 5) + 1))
    draft = Draft(fresh, Candidates(nodes, _edge_candidates(rng, model, nodes)))
    return _with_overrides(rng, model, draft) if overrides and rng.random() < 0.3 else draft


def random_administration(rng: Random, model: GraphModel) -> Administration:
    """Something that an administrator does to one of the nodes."""
    return Administration(
        BOARD,
        rng.choice(sorted(model.node_by_id)),
        rng.choice(("curate", "curate", "revoke")),
        "asked by the owner",
        "admin",
        curated=rng.random() < 0.7,
        priority_boost=rng.choice((None, 0.0, 0.2)),
    )


def _node_candidate(rng: Random, number: int) -> NodeCandidate:
    node_type = rng.choice(NODE_TYPES)
    attributes: dict[str, Any] = {}
    if rng.random() < 0.2:
        attributes |= rng.choice(ATTRIBUTES[node_type])
    if rng.random() < 0.1:
        attributes["confidence"] = rng.choice((0, 0.5, 1.0))
    if rng.random() < 0.05:
        attributes["zeal"] = 1
    checked = check_node_attributes(node_type, attributes)
    assert not checked.problems
    draft = NodeDraft(node_type, rng.choice(TITLES), rng.choice(BODIES), attributes, rng.choice(REFS))
    return NodeCandidate(ids.candidate_id(number), draft, checked.unknown)


def _edge_candidates(rng: Random, model: GraphModel, candidates: Sequence[NodeCandidate]) -> tuple[EdgeCandidate, ...]:
    titles = {c.draft.title for c in candidates}
    known = sorted(model.node_by_id)
    near = [n for n in known if model.node_by_id[n].title in titles]
    named = {*rng.sample(near, min(len(near), 3)), *rng.sample(known, min(len(known), 2))}
    ends = [*(EdgeEnd(candidate_id=c.candidate_id) for c in candidates), *(EdgeEnd(node_id=n) for n in sorted(named))]
    type_of = dict(zip(ends, (c.draft.node_type for c in candidates), strict=False))
    type_of |= {e: model.node_by_id[e.node_id].node_type for e in ends if e.node_id is not None}
    edges: list[EdgeCandidate] = []
    for _ in range(rng.choice((0, 1, 2, 2, 4))):
        src, dst = rng.choice(ends), rng.choice(ends)
        rel_types = [r for r in (*AGENT_REL_TYPES, *RESERVED_REL_TYPES) if (type_of[src], type_of[dst]) in ENDPOINT_PAIRS[r]]
        if src == dst or not rel_types:
            continue
        telling = [r for r in rel_types if r in {"supersedes", "contradicts"}]
        rel_type = rng.choice(telling if telling and rng.random() < 0.6 else rel_types)
        if _takes(model, edges, src, rel_type, dst):
            edges.append(_edge_candidate(rng, model, len(edges) + 1, src, rel_type, dst))
    return tuple(edges)


def _takes(model: GraphModel, edges: Sequence[EdgeCandidate], src: EdgeEnd, rel_type: RelType, dst: EdgeEnd) -> bool:
    """Whether add_edge_candidate takes a supersedes edge: no cycle yet, and no curated end."""
    if rel_type != "supersedes":
        return True
    if dst.node_id is not None and model.node_by_id[dst.node_id].human_curated:
        return False
    pairs = [(e.draft.src, e.draft.dst) for e in edges if e.draft.rel_type == "supersedes"]
    labels = [(str(a.candidate_id or a.node_id), str(b.candidate_id or b.node_id)) for a, b in (*pairs, (src, dst))]
    return find_cycle(labels, model.supersedes()) is None


def _edge_candidate(rng: Random, model: GraphModel, number: int, src: EdgeEnd, rel_type: RelType, dst: EdgeEnd) -> EdgeCandidate:
    attributes: dict[str, Any] = rng.choice(({}, {}, {"reason": "r"}, {"confidence": 0.2}, {"evidence": "e", "weight": 3}))
    layer: Layer = "deterministic" if rel_type in RESERVED_REL_TYPES else "cognitive"
    live = model.node_by_id[dst.node_id].live if rel_type == "supersedes" and dst.node_id is not None else None
    draft = EdgeDraft(src, rel_type, dst, attributes, layer, "rule_1" if layer == "deterministic" else None)
    return EdgeCandidate(ids.edge_candidate_id(number), draft, check_edge_attributes(attributes).unknown, live)


def _with_overrides(rng: Random, model: GraphModel, draft: Draft) -> Draft:
    """The same session with overrides that a commit takes; those that it refuses are left out."""
    taken: list[Override] = []
    for candidate in draft.candidates.nodes:
        if rng.random() < 0.5:
            same_type = [n for n in model.node_by_id.values() if n.node_type == candidate.draft.node_type]
            target = rng.choice([None, *(n.node_id for n in same_type if n.live and not n.human_curated)])
            given = Override(candidate.candidate_id, rng.choice(HINTS), "the agent knows better", target)
            try:
                model.resolved(draft.session, draft.candidates, [given])
            except InvalidOverride:
                continue
            taken.append(given)
    return replace(draft, overrides=tuple(taken))
