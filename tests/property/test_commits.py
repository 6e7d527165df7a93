"""Random histories of a board: what holds after each commit, and that its audit rows make the same board again."""

from __future__ import annotations

import copy
import json
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.domain.model import Node
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.errors import InvalidEdgeEndpoints
from tests.property.histories import Draft, random_administration, random_draft
from tests.property.invariants import check_board, check_relevance, check_step
from tests.property.profile import fixed
from tests.support.drafts import NOW
from tests.support.graph_model import GraphModel

HOUR = 3_600_000
randoms = st.randoms(use_true_random=False)


def history(rng: Random, *, steps: int) -> tuple[GraphModel, list[CommitPlan]]:
    """A board after some sessions and administrative changes, every commit checked."""
    model, plans = GraphModel(), list[CommitPlan]()
    for step in range(1, steps + 1):
        now = NOW + step * HOUR
        if model.node_by_id and rng.random() < 0.2:
            plans.append(model.administer(random_administration(rng, model), now=now))
        else:
            plans += committed(model, random_draft(rng, model, step), now)
        check_board(model)
    return model, plans


def snapshot(model: GraphModel) -> GraphModel:
    """The board as it is now."""
    same = copy.copy(model)
    same.node_by_id, same.edge_by_id = dict(model.node_by_id), dict(model.edge_by_id)
    return same


def committed(model: GraphModel, draft: Draft, now: int) -> list[CommitPlan]:
    """The plan of the session's commit, checked; none if the commit is refused, which leaves the board as it was."""
    before = snapshot(model)
    resolved = model.resolved(draft.session, draft.candidates, draft.overrides)
    assert model.collisions(resolved) == {}
    try:
        plan = model.commit(draft.session, draft.candidates, draft.overrides, now=now)
    except InvalidEdgeEndpoints:
        return []
    check_step(before, plan, model)
    check_relevance(plan, model)
    return [plan]


@fixed(80)
@given(randoms)
def test_what_holds_for_a_board_holds_after_every_commit(rng: Random) -> None:
    history(rng, steps=6)


@fixed(80)
@given(randoms)
def test_the_audit_rows_make_the_same_board_again(rng: Random) -> None:
    model, plans = history(rng, steps=6)
    again = GraphModel()
    for plan in plans:
        replayed = again.replay(json.loads(json.dumps(plan.audit)))
        assert (replayed.nodes, replayed.edges) == (plan.nodes, plan.edges)
        assert (replayed.vectors, replayed.relevances) == (plan.vectors, plan.relevances)
        assert (replayed.answer, replayed.event, replayed.audit) == (plan.answer, plan.event, plan.audit)
    assert (again.node_by_id, again.edge_by_id, again.index, again.seq) == (model.node_by_id, model.edge_by_id, model.index, model.seq)


@fixed(80)
@given(randoms)
def test_a_session_planned_again_on_the_same_board_makes_the_same_plan(rng: Random) -> None:
    model, _ = history(rng, steps=3)
    draft = random_draft(rng, model, 99)
    resolved = model.resolved(draft.session, draft.candidates, draft.overrides)
    try:
        first = model.plan(resolved, NOW)
    except InvalidEdgeEndpoints:
        return
    assert model.plan(model.resolved(draft.session, draft.candidates, draft.overrides), NOW) == first


@fixed(80)
@given(randoms)
def test_a_session_overtaken_by_another_collides_or_still_fits_the_board(rng: Random) -> None:
    model, _ = history(rng, steps=2)
    slow = random_draft(rng, model, 50)
    proposals = model.propose(slow.session, slow.candidates)
    quick = random_draft(rng, model, 51, overrides=False)
    committed(model, quick, NOW + 10 * HOUR)
    before = snapshot(model)
    resolved = model.resolved(slow.session, slow.candidates, proposals=proposals)
    if model.collisions(resolved):
        return
    try:
        plan = model.plan(resolved, NOW + 11 * HOUR)
    except InvalidEdgeEndpoints:
        return
    model.apply(plan)
    check_board(model)
    check_step(before, plan, model)
    quick_nodes = {statement(n) for n in before.node_by_id.values() if n.live and n.created_seq == before.seq}
    slow_nodes = {statement(n) for n in plan.nodes if n.live and n.created_seq == plan.seq}
    assert not quick_nodes & slow_nodes, "one statement was inserted twice"


def statement(node: Node) -> tuple[str, str]:
    """What makes two nodes the same."""
    return (node.content_digest, node.source_ref)


WARNINGS = (
    "dropped: both",
    "merged: it is",
    "there already",
    "history only",
    " kept, but",
    "not in the schema",
    "changes nothing",
    "both were merged",
)
REACHED = {
    *("rule 1 NOOP", "rule 1 ADD", "rule 2 SUPERSEDE", "rule 3 UPDATE", "rule 3 SUPERSEDE", "rule 3 NOOP", "rule 3 ADD"),
    *("rule 4 UPDATE", "rule 4 SUPERSEDE", "rule 4 NOOP", "rule 4 ADD", "rule 5 SUPERSEDE", "rule 5 ADD", "rule 6 ADD"),
    *("override ADD", "override UPDATE", "override SUPERSEDE", "override NOOP", "curate", "revoke", "twin", "superseded"),
    *("ambiguous_source_ref", *WARNINGS),
}


def test_the_random_histories_reach_every_rule_hint_and_warning() -> None:
    """Without this, the properties above might hold for want of examples."""
    seen: Counter[str] = Counter()
    for seed in range(220):
        _, plans = history(Random(seed), steps=6)
        for row in (p.audit for p in plans):
            if row["kind"] == "administration":
                seen[row["action"]] += 1
                continue
            seen.update(f"rule {p['rule']} {p['hint']}" for p in row["proposals"])
            seen.update("twin" for p in row["proposals"] if p["twin"])
            seen.update(w.partition(":")[0] for p in row["proposals"] for w in p["warnings"])
            seen.update(f"override {r['hint']}" for r in row["resolutions"] if r["overridden"])
            seen.update(part for part in WARNINGS for w in row["warnings"] if part in w)
            seen.update("superseded" for _ in row["superseded_nodes"])
    assert REACHED - set(seen) == set(), seen
