"""The rules of reconciliation on random boards and sessions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pulse_kg.domain.model import Candidates, NodeCandidate, Proposal
from pulse_kg.domain.plan import outline
from pulse_kg.domain.reconcile import Facts, Match, SessionView, Thresholds, reconcile
from pulse_kg.domain.schema import VERSIONED_TYPES, NodeType
from pulse_kg.errors import InvalidEdgeEndpoints
from tests.property.histories import Draft, random_administration, random_draft
from tests.property.profile import fixed
from tests.support.drafts import NOW, candidate, node, propose, source
from tests.support.graph_model import GraphModel

randoms = st.randoms(use_true_random=False)
CHANGES = {"UPDATE", "SUPERSEDE"}


def board(rng: Random) -> GraphModel:
    """A board with some history, curated and revoked nodes among it."""
    model = GraphModel()
    for step in range(1, 4):
        draft = random_draft(rng, model, step)
        try:
            model.commit(draft.session, draft.candidates, draft.overrides, now=NOW + step)
        except InvalidEdgeEndpoints:
            continue
        if rng.random() < 0.4:
            model.administer(random_administration(rng, model), now=NOW + step)
    return model


def proposed(rng: Random) -> tuple[GraphModel, Draft, SessionView, tuple[Proposal, ...]]:
    """A board, a session on it, all that the rules look at, and what they say."""
    model = board(rng)
    draft = random_draft(rng, model, 99, overrides=False)
    view = model.view(draft.session, draft.candidates)
    return model, draft, view, reconcile(view, Thresholds())


@fixed(40)
@given(randoms)
def test_each_candidate_gets_one_proposal_in_order_and_the_same_one_each_time(rng: Random) -> None:
    _, _, view, proposals = proposed(rng)
    assert [p.candidate_id for p in proposals] == [c.candidate_id for c in view.nodes]
    assert all(p.rationale and p.seen_seq == view.seq for p in proposals)
    assert reconcile(view, Thresholds()) == proposals


@fixed(40)
@given(randoms)
def test_the_order_in_which_facts_were_found_does_not_matter(rng: Random) -> None:
    _, _, view, proposals = proposed(rng)
    shuffled = {c: _shuffled(rng, f) for c, f in sorted(view.facts.items(), reverse=True)}
    known = dict(sorted(view.known.items(), reverse=True))
    assert reconcile(replace(view, facts=shuffled, known=known), Thresholds()) == proposals


def _shuffled(rng: Random, facts: Facts) -> Facts:
    return replace(
        facts,
        same_digest=tuple(rng.sample(facts.same_digest, len(facts.same_digest))),
        same_ref=tuple(rng.sample(facts.same_ref, len(facts.same_ref))),
        matches=tuple(rng.sample(facts.matches, len(facts.matches))),
    )


@fixed(50)
@given(randoms)
def test_nothing_is_proposed_that_must_never_be(rng: Random) -> None:
    model, draft, view, proposals = proposed(rng)
    for given_candidate, proposal in zip(view.nodes, proposals, strict=True):
        for target in proposal.targets:
            on = model.node_by_id[target.node_id]
            assert (on.node_type, on.version) == (given_candidate.draft.node_type, target.version)
            if proposal.hint in CHANGES:
                assert on.live
                assert not on.human_curated
            if proposal.hint in CHANGES and proposal.rule >= 3:
                of = draft.session.source
                older = on.artifact == of.artifact.canonical and on.artifact_version is not None and of.version < on.artifact_version
                assert not older
            if proposal.hint != "ADD":
                named = {(e.draft.rel_type, e.draft.src.candidate_id, e.draft.dst.node_id) for e in view.edges}
                named |= {
                    ("contradicts", e.draft.dst.candidate_id, e.draft.src.node_id) for e in view.edges if e.draft.rel_type == "contradicts"
                }
                contradicts = ("contradicts", given_candidate.candidate_id, target.node_id) in named
                assert not contradicts or ("supersedes", given_candidate.candidate_id, target.node_id) in named
        if proposal.hint == "SUPERSEDE" and proposal.rule >= 3:
            assert given_candidate.draft.node_type in VERSIONED_TYPES


@fixed(50)
@given(randoms)
def test_no_contradiction_is_swallowed_by_a_proposal(rng: Random) -> None:
    """Candidates are mapped to nodes; where two ends become one, they had not been said to contradict each other."""
    model, draft, view, proposals = proposed(rng)
    resolved = model.resolved(draft.session, draft.candidates, proposals=proposals)
    node_ids = outline(resolved, model.node_by_id).node_ids
    places = [
        (e.draft.rel_type, *(node_ids.get(str(x.candidate_id), str(x.node_id)) for x in (e.draft.src, e.draft.dst))) for e in view.edges
    ]
    for rel_type, src, dst in places:
        assert rel_type != "contradicts" or src != dst or ("supersedes", src, dst) in places


@fixed(50)
@given(randoms)
def test_rules_3_to_5_change_a_node_once_and_supersede_none_that_the_session_keeps(rng: Random) -> None:
    _, _, _, proposals = proposed(rng)
    changed = [t.node_id for p in proposals for t in p.targets if p.hint in CHANGES and p.rule >= 3]
    assert len(changed) == len(set(changed))
    kept = {t.node_id for p in proposals for t in p.targets if p.hint == "NOOP" and p.rule == 1}
    superseded = {t.node_id for p in proposals for t in p.targets if p.hint == "SUPERSEDE" and p.rule >= 3}
    by_edges = {t.node_id for p in proposals for t in p.targets if p.rule == 2 and p.hint == "SUPERSEDE"}
    assert not superseded & (kept | by_edges)


@fixed(50)
@given(randoms)
def test_a_statement_that_is_there_is_never_added_a_second_time(rng: Random) -> None:
    model, _, view, proposals = proposed(rng)
    contradicting = {x.candidate_id for e in view.edges if e.draft.rel_type == "contradicts" for x in (e.draft.src, e.draft.dst)}
    for given_candidate, proposal in zip(view.nodes, proposals, strict=True):
        same = [n for n in model.node_by_id.values() if n.live and n.content_digest == given_candidate.digest]
        if given_candidate.candidate_id not in contradicting and any(n.source_ref == given_candidate.draft.source_ref for n in same):
            assert (proposal.hint, proposal.rule) == ("NOOP", 1)


@fixed(50)
@given(randoms)
def test_a_twin_is_a_later_candidate_of_the_same_statement_and_never_a_twin_of_a_twin(rng: Random) -> None:
    _, _, view, proposals = proposed(rng)
    by_id: dict[str, tuple[int, NodeCandidate, Proposal]] = {
        c.candidate_id: (n, c, p) for n, (c, p) in enumerate(zip(view.nodes, proposals, strict=True))
    }
    for n, (given_candidate, proposal) in enumerate(zip(view.nodes, proposals, strict=True)):
        if proposal.twin is not None:
            earlier, first, of_first = by_id[proposal.twin]
            assert (proposal.hint, proposal.targets, of_first.twin) == ("NOOP", (), None)
            assert earlier < n
            assert first.digest == given_candidate.digest


@fixed(40)
@given(randoms)
def test_a_session_committed_once_more_changes_no_content(rng: Random) -> None:
    """Its edges aside, everything that it states is there now."""
    model = board(rng)
    draft = random_draft(rng, model, 99, overrides=False)
    bare = Candidates(draft.candidates.nodes)
    model.commit(draft.session, bare, now=NOW + 10)
    again = replace(draft.session, session_id=draft.session.session_id[:-1] + "Z")
    added = [r for r in model.resolved(again, bare).resolutions if r.hint != "NOOP"]
    late = [c for c in bare.nodes if c.candidate_id in {r.candidate_id for r in added}]
    for given_candidate in late:  # an update or a protected node may have taken its place
        same = [n for n in model.node_by_id.values() if n.content_digest == given_candidate.digest]
        assert not [
            n for n in same if n.live and n.source_ref == (given_candidate.draft.source_ref or draft.session.source.artifact.canonical)
        ]


scores = st.integers(0, 10_000).map(lambda n: n / 10_000)
thresholds = st.lists(scores, min_size=3, max_size=3).map(sorted).map(lambda s: Thresholds(similar=s[0], supersede=s[1], update=s[2]))


@fixed(200)
@given(scores, thresholds, thresholds, st.sampled_from(["Decision", "Requirement"]), st.booleans(), st.booleans())
def test_higher_thresholds_never_make_a_change_of_an_add(
    score: float, one: Thresholds, other: Thresholds, node_type: NodeType, one_artifact: bool, equal_titles: bool
) -> None:
    low, high = (
        Thresholds(**{k: pick(getattr(one, k), getattr(other, k)) for k in ("update", "supersede", "similar")}) for pick in (min, max)
    )
    old = node(node_type=node_type, ref="spec:spec_007" if one_artifact else "card:card_1", body="Old.")
    new = candidate(node_type=node_type, title=old.title if equal_titles else "Retry with jitter", body="New.")
    facts = Facts(matches=(Match(old, score),))
    (before,) = propose(new, facts=facts, thresholds=low, of=source(version=2))
    (after,) = propose(new, facts=facts, thresholds=high, of=source(version=2))
    assert before.hint in CHANGES or after.hint == "ADD"


@fixed(40)
@given(scores, scores)
def test_a_better_match_never_loses_a_change(worse: float, better: float) -> None:
    worse, better = sorted((worse, better))
    assume(worse < better)
    old = node(body="Old.")
    hints = [propose(candidate(body="New."), facts=Facts(matches=(Match(old, s),)))[0].hint for s in (worse, better)]
    assert hints[0] == "ADD" or hints[1] in CHANGES


@pytest.mark.parametrize("score", [0.0, 0.7, 0.85, 0.95, 1.0])
def test_a_match_at_a_threshold_counts(score: float) -> None:
    expected = {0.0: ("ADD", ()), 0.7: ("ADD", ("dec_old",)), 0.85: ("SUPERSEDE", ("dec_old",))}
    (proposal,) = propose(candidate(body="New."), facts=Facts(matches=(Match(node(body="Old."), score),)))
    assert (proposal.hint, tuple(t.node_id for t in proposal.targets)) == expected.get(score, ("UPDATE", ("dec_old",)))
