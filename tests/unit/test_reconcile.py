"""The six rules of reconciliation, row by row of the contract's table, and each thing that must never happen."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pulse_kg.domain.model import Node, NodeCandidate, Proposal, Target
from pulse_kg.domain.reconcile import Facts, Match, Thresholds
from pulse_kg.domain.schema import NodeType
from tests.support.drafts import TITLE, candidate, edge, node, propose, source

REF = "spec:spec_007#retry-strategy"
OTHER_REF = "spec:spec_007#storage"
CARD = "card:card_1"


def match(of: Node, score: float) -> Facts:
    """The nearest live node."""
    return Facts(matches=(Match(of, score),))


def same_ref(of: Node, score: float, **more: Any) -> Facts:
    """The one node with the candidate's reference."""
    return Facts(same_ref=(Match(of, score),), **more)


def assert_kept_apart(proposal: Proposal, of: Node, reason: str) -> None:
    """The candidate becomes a node of its own, and the rationale says beside which one and why."""
    assert proposal.hint == "ADD"
    assert [t.node_id for t in proposal.targets] == [of.node_id]
    assert of.node_id in proposal.rationale
    assert reason in proposal.rationale


class TestRule1TheSameStatement:
    def test_a_live_node_with_the_same_digest_makes_it_a_noop(self) -> None:
        old = node(version=3)
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(old,)))
        assert (proposal.hint, proposal.rule, proposal.targets) == ("NOOP", 1, (Target("dec_old", 3),))

    @pytest.mark.parametrize(("of_candidate", "of_node"), [(None, None), (REF, REF), (REF, None), (None, REF)])
    def test_the_references_need_not_both_be_there(self, of_candidate: str | None, of_node: str | None) -> None:
        old = node(ref=of_node or "spec:spec_007")
        (proposal,) = propose(candidate(ref=of_candidate), facts=Facts(same_digest=(old,)))
        assert proposal.hint == "NOOP"

    def test_a_different_stable_reference_makes_it_another_statement(self) -> None:
        old = node(ref=OTHER_REF)
        (proposal,) = propose(candidate(ref=REF), facts=Facts(same_digest=(old,)))
        assert (proposal.hint, proposal.rule) == ("ADD", 6)

    def test_it_holds_for_a_curated_node_too_because_nothing_changes(self) -> None:
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(node(human_curated=True),)))
        assert proposal.hint == "NOOP"

    def test_it_holds_for_a_revoked_node_too_because_that_is_live(self) -> None:
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(node(revocation_reason="withdrawn", status="revoked"),)))
        assert proposal.hint == "NOOP"

    def test_it_holds_for_an_older_version_of_the_artifact_too(self) -> None:
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(node(artifact_version=9),)), of=source(version=2))
        assert proposal.hint == "NOOP"

    def test_of_several_live_nodes_the_oldest_is_taken_whatever_their_order(self) -> None:
        newer, older, equally_old = node("dec_a", created_seq=4), node("dec_c", created_seq=2), node("dec_d", created_seq=2)
        for found in ((newer, older, equally_old), (equally_old, newer, older)):
            (proposal,) = propose(candidate(), facts=Facts(same_digest=found))
            assert proposal.targets == (Target("dec_c", 1),)

    def test_a_live_node_goes_before_a_superseded_one(self) -> None:
        past, live = node("dec_past", superseded_by="dec_x"), node("dec_live", created_seq=5)
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(past, live)))
        assert proposal.targets == (Target("dec_live", 1),)

    def test_a_superseded_node_with_the_same_digest_is_not_revived(self) -> None:
        past = node(superseded_by="dec_new", artifact_version=2)
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(past,)), of=source(version=2))
        assert (proposal.hint, proposal.rule) == ("NOOP", 1)
        assert proposal.targets == (Target("dec_old", 1),)
        assert "dec_new" in proposal.rationale

    @pytest.mark.parametrize("artifact_version", [None, 2, 3])
    def test_nor_is_it_by_a_version_that_is_not_known_to_be_newer(self, artifact_version: int | None) -> None:
        past = node(superseded_by="dec_new", artifact_version=artifact_version)
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(past,)), of=source(version=2))
        assert proposal.hint == "NOOP"

    def test_a_newer_version_of_the_artifact_states_a_superseded_text_anew(self) -> None:
        past = node(superseded_by="dec_new", artifact_version=1)
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(past,)), of=source(version=2))
        assert (proposal.hint, proposal.rule) == ("ADD", 6)

    def test_the_session_counts_as_the_newer_version_even_if_the_candidate_refers_elsewhere(self) -> None:
        past = node(superseded_by="dec_new", artifact_version=1)
        (proposal,) = propose(candidate(ref=CARD), facts=Facts(same_digest=(past,)), of=source(version=2))
        assert proposal.hint == "ADD"

    def test_a_newer_version_of_another_artifact_does_not(self) -> None:
        past = node(superseded_by="dec_new", artifact_version=1, ref=CARD)
        (proposal,) = propose(candidate(), facts=Facts(same_digest=(past,)), of=source(version=2))
        assert proposal.hint == "NOOP"

    def test_a_supersedes_edge_to_a_live_node_states_a_superseded_text_anew(self) -> None:
        past, current = node("dec_past", superseded_by="dec_now", artifact_version=2), node("dec_now", "Retry at a fixed pace")
        (proposal,) = propose(
            candidate(), edges=[edge("cand_001", "supersedes", current)], facts=Facts(same_digest=(past,)), known=[past, current]
        )
        assert (proposal.hint, proposal.rule, proposal.targets) == ("SUPERSEDE", 2, (Target("dec_now", 1),))

    def test_a_supersedes_edge_to_a_node_of_the_past_does_not(self) -> None:
        past, older = node("dec_past", superseded_by="dec_now", artifact_version=2), node("dec_older", superseded_by="dec_past")
        (proposal,) = propose(
            candidate(), edges=[edge("cand_001", "supersedes", older)], facts=Facts(same_digest=(past,)), known=[past, older]
        )
        assert (proposal.hint, proposal.targets) == ("NOOP", (Target("dec_past", 1),))

    def test_an_earlier_candidate_with_the_same_digest_makes_it_a_noop_without_a_target(self) -> None:
        first, second = propose(candidate(1), candidate(2, f"  {TITLE.upper()} "))
        assert first.hint == "ADD"
        assert (second.hint, second.rule, second.targets, second.twin) == ("NOOP", 1, (), "cand_001")

    def test_two_candidates_that_are_one_live_node_are_both_a_noop_onto_it(self) -> None:
        old = Facts(same_digest=(node(),))
        first, second = propose(candidate(1), candidate(2), facts={"cand_001": old, "cand_002": old})
        assert (first.targets, second.targets, second.twin) == ((Target("dec_old", 1),), (Target("dec_old", 1),), None)

    def test_a_candidate_that_rule_1_settled_is_not_taken_up_by_rule_2(self) -> None:
        old, other = node(), node("dec_other", "Retry at a fixed pace")
        (proposal,) = propose(
            candidate(), edges=[edge("cand_001", "supersedes", other)], facts=Facts(same_digest=(old,)), known=[old, other]
        )
        assert (proposal.hint, proposal.rule, proposal.targets) == ("NOOP", 1, (Target("dec_old", 1),))

    def test_a_third_one_is_a_twin_of_the_first(self) -> None:
        assert [p.twin for p in propose(candidate(1), candidate(2), candidate(3))] == [None, "cand_001", "cand_001"]

    def test_a_twin_of_a_noop_follows_it_to_its_node(self) -> None:
        old = node(ref=OTHER_REF)
        first, second = propose(candidate(1), candidate(2, ref=REF), facts={"cand_001": Facts(same_digest=(old,))})
        assert (first.hint, first.targets) == ("NOOP", (Target("dec_old", 1),))
        assert (second.hint, second.targets, second.twin) == ("NOOP", (), "cand_001")

    def test_an_earlier_candidate_with_another_reference_is_another_statement(self) -> None:
        first, second = propose(candidate(1, ref=REF), candidate(2, ref=OTHER_REF))
        assert (first.hint, second.hint) == ("ADD", "ADD")

    def test_an_earlier_candidate_of_another_type_is_another_statement(self) -> None:
        first, second = propose(candidate(1, node_type="Decision"), candidate(2, node_type="Requirement"))
        assert (first.hint, second.hint) == ("ADD", "ADD")

    def test_it_runs_for_all_candidates_before_the_other_rules(self) -> None:
        """The edge's end is decided after the candidate it starts from, and still counts as its node."""
        old = node("dec_old", "Retry at a fixed pace")
        newer, restated = candidate(1), candidate(2, "Retry at a fixed pace")
        first, second = propose(newer, restated, edges=[edge(newer, "supersedes", restated)], facts=Facts(same_digest=(old,)))
        assert (first.hint, first.rule, first.targets) == ("SUPERSEDE", 2, (Target("dec_old", 1),))
        assert (second.hint, second.rule, second.targets) == ("NOOP", 1, (Target("dec_old", 1),))

    def test_attributes_that_the_schema_does_not_have_make_no_other_statement(self) -> None:
        odd = candidate(attributes={"zeal": 1}, unknown_keys=("zeal",))
        assert odd.digest == candidate().digest == node().content_digest

    @pytest.mark.parametrize(
        "other",
        [
            candidate(title="Use linear backoff for retries"),
            candidate(body="With jitter."),
            candidate(attributes={"rationale": "spikes"}),
            candidate(attributes={"confidence": 0.9}),
            candidate(node_type="Requirement"),
        ],
        ids=["title", "body", "attribute", "confidence", "type"],
    )
    def test_another_title_body_attribute_or_type_makes_another_digest(self, other: NodeCandidate) -> None:
        assert other.digest != candidate().digest

    def test_case_accents_blanks_and_the_order_of_attributes_make_no_other_digest(self) -> None:
        one = candidate(title="Réessayer  3 fois", body="A\nB", attributes={"rationale": "r", "confidence": 1})
        other = candidate(title="reessayer 3 FOIS", body="a b ", attributes={"confidence": 1.0, "rationale": "r"})
        assert one.digest == other.digest


class TestRule2TheSessionSaysWhatItSupersedes:
    def test_an_edge_to_a_live_node_makes_it_a_supersede(self) -> None:
        old = node("dec_old", "Retry at a fixed pace", version=4)
        (proposal,) = propose(candidate(), edges=[edge("cand_001", "supersedes", old)], known=[old])
        assert (proposal.hint, proposal.rule, proposal.targets, proposal.score) == ("SUPERSEDE", 2, (Target("dec_old", 4),), None)

    def test_several_edges_make_several_targets_in_their_order(self) -> None:
        b, a = node("dec_b"), node("dec_a")
        edges = [edge("cand_001", "supersedes", b), edge("cand_001", "supersedes", a, number=2)]
        (proposal,) = propose(candidate(title="New"), edges=edges, known=[a, b])
        assert [t.node_id for t in proposal.targets] == ["dec_b", "dec_a"]

    def test_a_node_named_twice_is_one_target(self) -> None:
        old = node("dec_old", "Retry at a fixed pace")
        restated = candidate(2, "Retry at a fixed pace")
        edges = [edge("cand_001", "supersedes", old), edge("cand_001", "supersedes", restated, number=2)]
        first, _ = propose(candidate(1), restated, edges=edges, facts=Facts(same_digest=(old,)), known=[old])
        assert first.targets == (Target("dec_old", 1),)

    def test_the_edge_goes_before_reference_and_similarity(self) -> None:
        old, similar = node("dec_old", "Retry at a fixed pace"), node("dec_similar", ref=REF)
        facts = Facts(same_ref=(Match(similar, 0.99),), matches=(Match(similar, 0.99),))
        (proposal,) = propose(
            candidate(body="With jitter.", ref=REF), edges=[edge("cand_001", "supersedes", old)], facts=facts, known=[old, similar]
        )
        assert (proposal.hint, proposal.targets) == ("SUPERSEDE", (Target("dec_old", 1),))

    def test_an_edge_to_a_node_of_the_past_is_history_and_decides_nothing(self) -> None:
        past = node("dec_past", superseded_by="dec_x")
        (proposal,) = propose(candidate(title="New"), edges=[edge("cand_001", "supersedes", past)], known=[past])
        assert (proposal.hint, proposal.rule) == ("ADD", 6)

    def test_an_edge_to_a_new_candidate_leaves_both_as_add(self) -> None:
        newer, older = candidate(1), candidate(2, "Retry at a fixed pace")
        assert [p.hint for p in propose(newer, older, edges=[edge(newer, "supersedes", older)])] == ["ADD", "ADD"]

    def test_an_edge_towards_the_candidate_does_not_make_it_a_supersede(self) -> None:
        current = node("dec_now", "Retry with jitter")
        (proposal,) = propose(candidate(), edges=[edge(current, "supersedes", "cand_001")], known=[current])
        assert proposal.hint == "ADD"

    def test_an_edge_of_another_candidate_does_not_count(self) -> None:
        old = node("dec_old", "Retry at a fixed pace")
        first, second = propose(candidate(1), candidate(2, "Other"), edges=[edge("cand_001", "supersedes", old)], known=[old])
        assert (first.hint, second.hint) == ("SUPERSEDE", "ADD")

    def test_a_node_that_came_to_be_curated_is_not_superseded(self) -> None:
        old = node("dec_old", "Retry at a fixed pace", human_curated=True)
        (proposal,) = propose(candidate(), edges=[edge("cand_001", "supersedes", old)], known=[old])
        assert_kept_apart(proposal, old, "a person curates it")


class TestRule3TheSameReference:
    def test_an_equal_title_makes_it_an_update_however_unlike_the_texts_are(self) -> None:
        old = node(ref=REF, body="Old.")
        (proposal,) = propose(candidate(title=TITLE.upper(), body="New.", ref=REF), facts=same_ref(old, 0.1))
        assert (proposal.hint, proposal.rule, proposal.targets) == ("UPDATE", 3, (Target("dec_old", 1),))

    @pytest.mark.parametrize("node_type", ["Requirement", "Entity", "Learning"])
    def test_another_title_of_a_similar_text_makes_it_an_update(self, node_type: NodeType) -> None:
        old = node(node_type=node_type, title="Retries back off", ref=REF)
        (proposal,) = propose(candidate(node_type=node_type, ref=REF), facts=same_ref(old, 0.70))
        assert (proposal.hint, proposal.rule, proposal.score) == ("UPDATE", 3, 0.70)

    @pytest.mark.parametrize("node_type", ["Decision", "Constraint"])
    def test_a_decision_or_constraint_of_a_newer_version_with_another_title_supersedes(self, node_type: NodeType) -> None:
        old = node(node_type=node_type, title="Retries back off", ref=REF, artifact_version=1)
        (proposal,) = propose(candidate(node_type=node_type, ref=REF), facts=same_ref(old, 0.8), of=source(version=2))
        assert (proposal.hint, proposal.rule, proposal.targets) == ("SUPERSEDE", 3, (Target("dec_old", 1),))

    @pytest.mark.parametrize("artifact_version", [2, None])
    def test_of_the_same_or_an_unknown_version_it_updates(self, artifact_version: int | None) -> None:
        old = node(title="Retries back off", ref=REF, artifact_version=artifact_version)
        (proposal,) = propose(candidate(ref=REF), facts=same_ref(old, 0.8), of=source(version=2))
        assert proposal.hint == "UPDATE"

    def test_of_a_newer_version_with_an_equal_title_it_updates(self) -> None:
        old = node(ref=REF, artifact_version=1)
        (proposal,) = propose(candidate(body="New.", ref=REF), facts=same_ref(old, 0.99), of=source(version=2))
        assert proposal.hint == "UPDATE"

    def test_a_reference_into_another_artifact_has_no_known_version_and_updates(self) -> None:
        old = node(title="Retries back off", ref="card:card_1#a", artifact_version=1)
        (proposal,) = propose(candidate(ref="card:card_1#a"), facts=same_ref(old, 0.8), of=source("spec:spec_007", 2))
        assert proposal.hint == "UPDATE"

    def test_a_low_similarity_is_an_ambiguous_reference_and_goes_on(self) -> None:
        old = node(title="Retries back off", ref=REF)
        (proposal,) = propose(candidate(ref=REF), facts=same_ref(old, 0.69))
        assert (proposal.hint, proposal.rule) == ("ADD", 6)
        assert len(proposal.warnings) == 1
        assert proposal.warnings[0].startswith("ambiguous_source_ref")
        assert "dec_old" in proposal.warnings[0]

    def test_more_than_one_node_is_an_ambiguous_reference_and_goes_on(self) -> None:
        found = (Match(node("dec_b", ref=REF), 0.99), Match(node("dec_a", ref=REF), 0.98))
        (proposal,) = propose(candidate(body="New.", ref=REF), facts=Facts(same_ref=found, matches=(Match(node("dec_c"), 0.96),)))
        assert (proposal.hint, proposal.rule, proposal.targets) == ("UPDATE", 4, (Target("dec_c", 1),))
        assert proposal.warnings == (f"ambiguous_source_ref: 2 live nodes have the reference {REF}: dec_a, dec_b",)

    def test_a_superseded_node_with_the_reference_does_not_count(self) -> None:
        past, live = node("dec_past", ref=REF, superseded_by="dec_live"), node("dec_live", ref=REF)
        (proposal,) = propose(candidate(body="New.", ref=REF), facts=Facts(same_ref=(Match(past, 1.0), Match(live, 0.9))))
        assert (proposal.hint, proposal.targets, proposal.warnings) == ("UPDATE", (Target("dec_live", 1),), ())

    def test_an_update_that_would_change_nothing_is_a_noop(self) -> None:
        old = node(ref=REF, body="Old.", attributes={"rationale": "r", "confidence": 0.9})
        (proposal,) = propose(candidate(ref=REF, attributes={"rationale": "r"}), facts=same_ref(old, 0.6))
        assert (proposal.hint, proposal.rule, proposal.targets) == ("NOOP", 3, (Target("dec_old", 1),))

    def test_an_attribute_that_the_node_lacks_is_a_change(self) -> None:
        old = node(ref=REF, body="Old.")
        (proposal,) = propose(candidate(ref=REF, attributes={"rationale": "r"}), facts=same_ref(old, 0.6))
        assert proposal.hint == "UPDATE"


class TestRule4NearlyTheSameText:
    def test_the_same_artifact_makes_it_an_update(self) -> None:
        old = node(title="Exponential backoff for retries")
        (proposal,) = propose(candidate(), facts=match(old, 0.95))
        assert (proposal.hint, proposal.rule, proposal.targets, proposal.score) == ("UPDATE", 4, (Target("dec_old", 1),), 0.95)

    def test_an_equal_title_from_another_artifact_makes_it_an_update(self) -> None:
        old = node(ref=CARD, artifact_version=None)
        (proposal,) = propose(candidate(body="New."), facts=match(old, 0.96))
        assert (proposal.hint, proposal.rule) == ("UPDATE", 4)

    def test_neither_the_artifact_nor_the_title_leaves_it_a_possible_duplicate(self) -> None:
        old = node(title="Exponential backoff for retries", ref=CARD)
        (proposal,) = propose(candidate(), facts=match(old, 0.99))
        assert (proposal.hint, proposal.rule, proposal.targets, proposal.score) == ("ADD", 6, (Target("dec_old", 1),), 0.99)

    def test_a_different_stable_reference_is_another_statement(self) -> None:
        old = node(node_type="Requirement", ref=OTHER_REF, body="Old.")
        (proposal,) = propose(candidate(node_type="Requirement", ref=REF), facts=match(old, 0.99))
        assert (proposal.hint, proposal.rule) == ("ADD", 6)

    @pytest.mark.parametrize("ref", [REF, None])
    def test_an_equal_or_absent_reference_is_none(self, ref: str | None) -> None:
        old = node(ref=REF, body="Old.")
        (proposal,) = propose(candidate(body="New.", ref=ref), facts=match(old, 0.99))
        assert (proposal.hint, proposal.rule) == ("UPDATE", 4)

    @pytest.mark.parametrize("node_type", ["Decision", "Constraint"])
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("Retry 3 times", "Retry 5 times"),
            ("Support Python 3.11", "Support Python 3.12"),
            ("Time out after 30 s", "Time out after 30 ms"),
            ("Retry failed calls", "Do not retry failed calls"),
        ],
        ids=["number", "version", "unit", "negation"],
    )
    def test_a_decision_or_constraint_with_another_claim_supersedes(self, node_type: NodeType, before: str, after: str) -> None:
        old = node(node_type=node_type, title=before)
        (proposal,) = propose(candidate(node_type=node_type, title=after), facts=match(old, 0.97))
        assert (proposal.hint, proposal.rule, proposal.targets) == ("SUPERSEDE", 4, (Target("dec_old", 1),))

    def test_the_claim_may_stand_in_the_body(self) -> None:
        old = node(body="At most 3 attempts.")
        (proposal,) = propose(candidate(body="At most 4 attempts."), facts=match(old, 0.97))
        assert (proposal.hint, proposal.rule) == ("SUPERSEDE", 4)

    def test_a_requirement_with_another_claim_updates(self) -> None:
        old = node(node_type="Requirement", title="Retry 3 times")
        (proposal,) = propose(candidate(node_type="Requirement", title="Retry 5 times"), facts=match(old, 0.97))
        assert (proposal.hint, proposal.rule) == ("UPDATE", 4)

    def test_an_update_that_would_change_nothing_is_a_noop(self) -> None:
        old = node(body="Old.", attributes={"rationale": "r"})
        (proposal,) = propose(candidate(attributes={"rationale": "r"}), facts=match(old, 0.96))
        assert (proposal.hint, proposal.rule, proposal.targets) == ("NOOP", 4, (Target("dec_old", 1),))

    def test_only_the_best_live_match_counts(self) -> None:
        best, second = node("dec_best", ref=CARD, title="Else"), node("dec_second")
        (proposal,) = propose(candidate(body="New."), facts=Facts(matches=(Match(second, 0.96), Match(best, 0.97))))
        assert (proposal.hint, proposal.targets) == ("ADD", (Target("dec_best", 1),))

    def test_at_equal_similarity_the_smaller_id_is_the_best(self) -> None:
        found = (Match(node("dec_b"), 0.96), Match(node("dec_a"), 0.96))
        (proposal,) = propose(candidate(body="New."), facts=Facts(matches=found))
        assert proposal.targets == (Target("dec_a", 1),)


class TestRule5TheSameSubject:
    @pytest.mark.parametrize("node_type", ["Decision", "Constraint"])
    @pytest.mark.parametrize("score", [0.85, 0.9499])
    def test_a_decision_or_constraint_of_the_same_artifact_supersedes(self, node_type: NodeType, score: float) -> None:
        old = node(node_type=node_type, title="Retry at a fixed pace")
        (proposal,) = propose(candidate(node_type=node_type), facts=match(old, score))
        assert (proposal.hint, proposal.rule, proposal.targets, proposal.score) == ("SUPERSEDE", 5, (Target("dec_old", 1),), score)

    @pytest.mark.parametrize("node_type", ["Requirement", "Entity", "Learning"])
    def test_another_type_is_a_possible_duplicate(self, node_type: NodeType) -> None:
        old = node(node_type=node_type, title="Retry at a fixed pace")
        (proposal,) = propose(candidate(node_type=node_type), facts=match(old, 0.9))
        assert (proposal.hint, proposal.rule) == ("ADD", 6)

    def test_another_artifact_is_a_possible_duplicate(self) -> None:
        old = node(title="Retry at a fixed pace", ref=CARD)
        (proposal,) = propose(candidate(), facts=match(old, 0.9))
        assert (proposal.hint, proposal.rule) == ("ADD", 6)

    def test_the_artifact_is_that_of_the_candidates_reference(self) -> None:
        old = node(title="Retry at a fixed pace", ref=f"{CARD}#a", artifact_version=None)
        (proposal,) = propose(candidate(ref=CARD), facts=match(old, 0.9), of=source("spec:spec_007"))
        assert (proposal.hint, proposal.rule) == ("SUPERSEDE", 5)


class TestRule6Otherwise:
    def test_a_similar_node_is_named_as_a_possible_duplicate(self) -> None:
        old = node(title="Retry at a fixed pace", ref=CARD)
        (proposal,) = propose(candidate(), facts=match(old, 0.70))
        assert (proposal.hint, proposal.rule, proposal.targets, proposal.score) == ("ADD", 6, (Target("dec_old", 1),), 0.70)
        assert "possible duplicate" in proposal.rationale
        assert "dec_old" in proposal.rationale

    def test_below_that_none_is_near(self) -> None:
        (proposal,) = propose(candidate(), facts=match(node(title="Unlike"), 0.6999))
        assert (proposal.hint, proposal.rule, proposal.targets, proposal.score) == ("ADD", 6, (), None)
        assert "No live Decision is near" in proposal.rationale

    def test_an_empty_graph_has_none_near(self) -> None:
        (proposal,) = propose(candidate())
        assert (proposal.hint, proposal.targets, proposal.warnings) == ("ADD", (), ())
        assert "No live Decision is near" in proposal.rationale


class TestThresholds:
    def test_they_are_settings(self) -> None:
        assert Thresholds() == Thresholds(update=0.95, supersede=0.85, similar=0.70)

    def test_rule_4_goes_by_the_update_threshold(self) -> None:
        old = node(node_type="Requirement", body="Old.")
        new = candidate(node_type="Requirement", body="New.")
        assert [p.hint for p in propose(new, facts=match(old, 0.92), thresholds=Thresholds(update=0.92))] == ["UPDATE"]
        assert [p.hint for p in propose(new, facts=match(old, 0.96), thresholds=Thresholds(update=0.97))] == ["ADD"]

    def test_rule_5_goes_by_the_supersede_threshold(self) -> None:
        old = node(title="Retry at a fixed pace")
        assert [p.hint for p in propose(candidate(), facts=match(old, 0.8), thresholds=Thresholds(supersede=0.8))] == ["SUPERSEDE"]
        assert [p.hint for p in propose(candidate(), facts=match(old, 0.86), thresholds=Thresholds(supersede=0.87))] == ["ADD"]

    def test_rules_3_and_6_go_by_the_similar_threshold(self) -> None:
        old = node(title="Retry at a fixed pace", ref=REF)
        assert [p.hint for p in propose(candidate(ref=REF), facts=same_ref(old, 0.5), thresholds=Thresholds(similar=0.5))] == ["SUPERSEDE"]
        (proposal,) = propose(candidate(), facts=match(old, 0.6), thresholds=Thresholds(similar=0.6))
        assert "possible duplicate" in proposal.rationale


class TestNeverOntoACuratedNode:
    def test_by_reference(self) -> None:
        old = node(ref=REF, human_curated=True, body="Old.")
        (proposal,) = propose(candidate(body="New.", ref=REF), facts=same_ref(old, 0.99))
        assert_kept_apart(proposal, old, "a person curates it")

    @pytest.mark.parametrize("score", [0.96, 0.9])
    def test_by_similarity(self, score: float) -> None:
        old = node(human_curated=True, body="Old.")
        (proposal,) = propose(candidate(body="New."), facts=match(old, score))
        assert_kept_apart(proposal, old, "a person curates it")

    def test_but_what_would_change_nothing_in_it_is_a_noop(self) -> None:
        old = node(ref=REF, human_curated=True, body="Old.")
        (proposal,) = propose(candidate(ref=REF), facts=same_ref(old, 0.9))
        assert (proposal.hint, proposal.targets) == ("NOOP", (Target("dec_old", 1),))


class TestNeverFromAnOlderVersionOfTheArtifact:
    def test_by_reference(self) -> None:
        old = node(ref=REF, body="Old.", artifact_version=3)
        (proposal,) = propose(candidate(body="New.", ref=REF), facts=same_ref(old, 0.99), of=source(version=2))
        assert_kept_apart(proposal, old, "a newer version of the artifact")

    @pytest.mark.parametrize("score", [0.96, 0.9])
    def test_by_similarity(self, score: float) -> None:
        old = node(body="Old.", artifact_version=3)
        (proposal,) = propose(candidate(body="New."), facts=match(old, score), of=source(version=2))
        assert_kept_apart(proposal, old, "a newer version of the artifact")

    def test_by_an_equal_title_in_a_reference_to_another_artifact(self) -> None:
        old = node(body="Old.", artifact_version=3)
        (proposal,) = propose(candidate(body="New.", ref=CARD), facts=match(old, 0.97), of=source(version=2))
        assert_kept_apart(proposal, old, "a newer version of the artifact")

    @pytest.mark.parametrize("artifact_version", [1, 2, None])
    def test_the_same_a_newer_or_an_unknown_version_may(self, artifact_version: int | None) -> None:
        old = node(body="Old.", artifact_version=artifact_version)
        (proposal,) = propose(candidate(body="New."), facts=match(old, 0.96), of=source(version=2))
        assert proposal.hint == "UPDATE"

    def test_an_explicit_edge_may(self) -> None:
        old = node("dec_old", "Retry at a fixed pace", artifact_version=3)
        (proposal,) = propose(candidate(), edges=[edge("cand_001", "supersedes", old)], known=[old], of=source(version=2))
        assert proposal.hint == "SUPERSEDE"

    def test_but_what_would_change_nothing_is_a_noop(self) -> None:
        old = node(ref=REF, body="Old.", artifact_version=3)
        (proposal,) = propose(candidate(ref=REF), facts=same_ref(old, 0.9), of=source(version=2))
        assert proposal.hint == "NOOP"


class TestNeverFromTitlesAlone:
    def test_by_reference_with_unequal_titles(self) -> None:
        old = node("bug_old", "Login times out", node_type="Bug", ref=REF)
        (proposal,) = propose(candidate(title="Login times", node_type="Bug", ref=REF), facts=same_ref(old, 0.73, by_vector=False))
        assert_kept_apart(proposal, old, "only the titles could be compared")

    def test_by_a_shared_start_of_the_titles(self) -> None:
        old = node("bug_old", "Login times out", node_type="Bug", body="Old.")
        (proposal,) = propose(
            candidate(title="Login times out", node_type="Bug", body="New."), facts=replace(match(old, 1.0), by_vector=False)
        )
        assert_kept_apart(proposal, old, "only the titles could be compared")

    def test_not_even_as_a_noop_because_the_node_may_be_another(self) -> None:
        old = node("bug_old", "Login times out", node_type="Bug", body="Old.")
        (proposal,) = propose(candidate(title="Login times out", node_type="Bug"), facts=replace(match(old, 1.0), by_vector=False))
        assert_kept_apart(proposal, old, "only the titles could be compared")

    def test_but_a_reference_with_an_equal_title_updates(self) -> None:
        old = node("bug_old", "Login times out", node_type="Bug", ref=REF)
        (proposal,) = propose(
            candidate(title="LOGIN times out", node_type="Bug", ref=REF, body="New."), facts=same_ref(old, 1.0, by_vector=False)
        )
        assert proposal.hint == "UPDATE"


class TestNeverFromATextThatWasCut:
    @pytest.mark.parametrize(("cut", "truncated"), [(True, False), (False, True)], ids=["the candidate's", "the node's"])
    @pytest.mark.parametrize("score", [0.97, 0.9])
    def test_by_similarity(self, cut: bool, truncated: bool, score: float) -> None:
        old = node(body="Old.", truncated=truncated)
        (proposal,) = propose(candidate(body="New."), facts=replace(match(old, score), cut=cut))
        assert_kept_apart(proposal, old, "longer than the model reads")

    @pytest.mark.parametrize(("cut", "truncated"), [(True, False), (False, True)], ids=["the candidate's", "the node's"])
    def test_by_reference_with_unequal_titles(self, cut: bool, truncated: bool) -> None:
        old = node(title="Retries back off", ref=REF, truncated=truncated)
        (proposal,) = propose(candidate(ref=REF), facts=same_ref(old, 0.9, cut=cut))
        assert_kept_apart(proposal, old, "longer than the model reads")

    def test_but_a_reference_with_an_equal_title_updates(self) -> None:
        old = node(ref=REF, truncated=True)
        (proposal,) = propose(candidate(ref=REF, body="New."), facts=same_ref(old, 0.9, cut=True))
        assert proposal.hint == "UPDATE"


class TestNeverBetweenTitlesOfASeries:
    @pytest.mark.parametrize("node_type", ["Decision", "Requirement"])
    @pytest.mark.parametrize("score", [0.99, 0.9])
    def test_from_different_artifacts(self, node_type: NodeType, score: float) -> None:
        old = node(node_type=node_type, title="Release 3.11 schedule", ref=CARD)
        (proposal,) = propose(candidate(node_type=node_type, title="Release 3.12 schedule"), facts=match(old, score))
        assert_kept_apart(proposal, old, "differ only in a number, version or date")

    def test_of_one_artifact_they_may(self) -> None:
        old = node(title="Release 3.11 schedule")
        (proposal,) = propose(candidate(title="Release 3.12 schedule"), facts=match(old, 0.99))
        assert proposal.hint == "SUPERSEDE"


class TestNeverOntoWhatTheCandidateContradicts:
    CONTRADICTS = "a contradicts edge"

    def test_no_noop_by_the_same_digest(self) -> None:
        old = node()
        (proposal,) = propose(candidate(), edges=[edge("cand_001", "contradicts", old)], facts=Facts(same_digest=(old,)), known=[old])
        assert_kept_apart(proposal, old, self.CONTRADICTS)

    def test_no_noop_by_the_digest_of_a_superseded_node(self) -> None:
        past = node(superseded_by="dec_new", artifact_version=2)
        (proposal,) = propose(candidate(), edges=[edge("cand_001", "contradicts", past)], facts=Facts(same_digest=(past,)), known=[past])
        assert_kept_apart(proposal, past, self.CONTRADICTS)

    def test_another_node_with_the_digest_is_free(self) -> None:
        old, other = node("dec_a"), node("dec_b")
        (proposal,) = propose(
            candidate(), edges=[edge("cand_001", "contradicts", old)], facts=Facts(same_digest=(old, other)), known=[old, other]
        )
        assert (proposal.hint, proposal.targets) == ("NOOP", (Target("dec_b", 1),))

    def test_no_update_by_reference(self) -> None:
        old = node(ref=REF, body="Old.")
        (proposal,) = propose(
            candidate(ref=REF, body="New."), edges=[edge("cand_001", "contradicts", old)], facts=same_ref(old, 0.9), known=[old]
        )
        assert_kept_apart(proposal, old, self.CONTRADICTS)

    def test_no_noop_by_reference_that_would_change_nothing(self) -> None:
        old = node(ref=REF, body="Old.")
        (proposal,) = propose(candidate(ref=REF), edges=[edge("cand_001", "contradicts", old)], facts=same_ref(old, 0.9), known=[old])
        assert_kept_apart(proposal, old, self.CONTRADICTS)

    @pytest.mark.parametrize("score", [0.97, 0.9])
    def test_no_change_by_similarity(self, score: float) -> None:
        old = node(body="Old.")
        (proposal,) = propose(candidate(body="New."), edges=[edge("cand_001", "contradicts", old)], facts=match(old, score), known=[old])
        assert_kept_apart(proposal, old, self.CONTRADICTS)

    def test_in_whichever_direction_the_edge_was_written(self) -> None:
        old = node(body="Old.")
        (proposal,) = propose(candidate(body="New."), edges=[edge(old, "contradicts", "cand_001")], facts=match(old, 0.97), known=[old])
        assert_kept_apart(proposal, old, self.CONTRADICTS)

    def test_nor_through_a_candidate_that_rule_1_found_to_be_the_node(self) -> None:
        old, restated = node(body="Old."), candidate(1, body="Old.")
        _, second = propose(
            restated,
            candidate(2, body="New."),
            edges=[edge("cand_002", "contradicts", restated)],
            facts={"cand_001": Facts(same_digest=(old,)), "cand_002": match(old, 0.97)},
        )
        assert_kept_apart(second, old, self.CONTRADICTS)

    def test_nor_through_a_candidate_that_updates_the_node(self) -> None:
        old = node(ref=REF, body="Old.", attributes={"rationale": "r"})
        first, second = propose(
            candidate(1, body="Old.", ref=REF, attributes={"rationale": "better"}),
            candidate(2),
            edges=[edge("cand_002", "contradicts", "cand_001")],
            facts={"cand_001": same_ref(old, 0.97), "cand_002": match(old, 0.97)},
        )
        assert first.hint == "UPDATE"
        assert_kept_apart(second, old, self.CONTRADICTS)

    def test_nor_through_a_twin_of_such_a_candidate(self) -> None:
        old = node(ref=REF, body="Old.")
        first, twin, third = propose(
            candidate(1, body="Newer.", ref=REF),
            candidate(2, body="Newer.", ref=REF),
            candidate(3),
            edges=[edge("cand_003", "contradicts", "cand_002")],
            facts={"cand_001": same_ref(old, 0.97), "cand_002": same_ref(old, 0.97), "cand_003": match(old, 0.97)},
        )
        assert (first.hint, twin.twin) == ("UPDATE", "cand_001")
        assert_kept_apart(third, old, self.CONTRADICTS)

    @pytest.mark.parametrize("named", ["cand_001", "cand_002"])
    def test_no_noop_onto_an_earlier_candidate(self, named: str) -> None:
        first, second, third = propose(candidate(1), candidate(2), candidate(3), edges=[edge("cand_003", "contradicts", named)])
        assert (first.hint, second.hint, third.hint) == ("ADD", "NOOP", "ADD")
        assert "cand_001" in third.rationale
        assert self.CONTRADICTS in third.rationale

    def test_no_noop_onto_an_earlier_candidate_that_is_a_contradicted_node(self) -> None:
        old = node(ref=OTHER_REF)
        first, second = propose(
            candidate(1),
            candidate(2, ref=REF),
            edges=[edge("cand_002", "contradicts", old)],
            facts={"cand_001": Facts(same_digest=(old,)), "cand_002": Facts(same_digest=(old,))},
            known=[old],
        )
        assert (first.hint, second.hint) == ("NOOP", "ADD")
        assert self.CONTRADICTS in second.rationale

    def test_a_supersedes_edge_too_makes_it_a_supersede(self) -> None:
        old = node("dec_old", "Retry at a fixed pace")
        edges = [edge("cand_001", "contradicts", old), edge("cand_001", "supersedes", old, number=2)]
        (proposal,) = propose(candidate(), edges=edges, facts=match(old, 0.97), known=[old])
        assert (proposal.hint, proposal.rule, proposal.targets) == ("SUPERSEDE", 2, (Target("dec_old", 1),))

    def test_a_supersedes_edge_the_other_way_does_not_lift_it(self) -> None:
        old = node(body="Old.")
        edges = [edge("cand_001", "contradicts", old), edge(old, "supersedes", "cand_001", number=2)]
        (proposal,) = propose(candidate(body="New."), edges=edges, facts=match(old, 0.97), known=[old])
        assert_kept_apart(proposal, old, self.CONTRADICTS)

    def test_what_contradicts_the_successor_of_a_node_may_still_restate_the_node(self) -> None:
        old = node(ref=REF, body="Old.")
        first, second = propose(
            candidate(1, "Retry at a fixed pace"),
            candidate(2, ref=REF),
            edges=[edge("cand_002", "contradicts", "cand_001")],
            facts={"cand_001": match(old, 0.9), "cand_002": same_ref(old, 0.9)},
        )
        assert (first.hint, second.hint) == ("SUPERSEDE", "NOOP")

    def test_another_relationship_does_not_count(self) -> None:
        old = node(body="Old.")
        (proposal,) = propose(candidate(body="New."), edges=[edge("cand_001", "relates_to", old)], facts=match(old, 0.97), known=[old])
        assert proposal.hint == "UPDATE"


class TestNeverOntoASupersededNode:
    def test_by_similarity_even_if_an_index_still_finds_it(self) -> None:
        past, live = node("dec_past", superseded_by="dec_live"), node("dec_live", title="Retry with jitter", ref=CARD)
        (proposal,) = propose(candidate(body="New."), facts=Facts(matches=(Match(past, 0.99), Match(live, 0.75))))
        assert (proposal.hint, proposal.targets) == ("ADD", (Target("dec_live", 1),))


class TestOneNodeIsChangedByOneCandidate:
    def test_a_second_update_of_it_is_added_with_the_reason(self) -> None:
        old = node(body="Old.")
        first, second = propose(
            candidate(1, body="New."), candidate(2, body="Newer."), facts={"cand_001": match(old, 0.97), "cand_002": match(old, 0.98)}
        )
        assert first.hint == "UPDATE"
        assert_kept_apart(second, old, "cand_001 of this session changes it already")

    def test_what_would_change_nothing_in_it_is_still_a_noop(self) -> None:
        old = node(ref=REF, body="Old.")
        first, second = propose(
            candidate(1, body="New.", ref=REF), candidate(2), facts={"cand_001": same_ref(old, 0.97), "cand_002": match(old, 0.96)}
        )
        assert (first.hint, second.hint) == ("UPDATE", "NOOP")

    def test_no_supersede_of_a_node_that_another_candidate_states_unchanged(self) -> None:
        old = node(body="Old.")
        first, second = propose(
            candidate(1, "Retry with jitter"),
            candidate(2, body="Old."),
            facts={"cand_001": match(old, 0.9), "cand_002": Facts(same_digest=(old,))},
        )
        assert second.hint == "NOOP"
        assert_kept_apart(first, old, "cand_002 of this session states it unchanged")

    def test_nor_of_one_that_an_earlier_candidate_leaves_as_it_is_by_its_reference(self) -> None:
        old = node(ref=REF, body="Old.")
        first, second = propose(
            candidate(1, ref=REF), candidate(2, "Retry with jitter"), facts={"cand_001": same_ref(old, 0.9), "cand_002": match(old, 0.9)}
        )
        assert first.hint == "NOOP"
        assert_kept_apart(second, old, "cand_001 of this session states it unchanged")

    def test_no_supersede_of_a_node_that_an_edge_supersedes_already(self) -> None:
        old = node(title="Retry at a fixed pace")
        first, second = propose(
            candidate(1, "Retry with jitter"),
            candidate(2, "Never retry"),
            edges=[edge("cand_002", "supersedes", old)],
            facts={"cand_001": match(old, 0.9)},
            known=[old],
        )
        assert second.hint == "SUPERSEDE"
        assert_kept_apart(first, old, "cand_002 of this session supersedes it already")

    @pytest.mark.parametrize("through", [(), ("cand_002",)], ids=["straight", "through another candidate"])
    def test_no_supersede_of_a_node_that_the_session_puts_above_the_candidate(self, through: tuple[str, ...]) -> None:
        """It would close a cycle, and the commit would be refused."""
        current = node("dec_now", "Retry with jitter")
        steps = [current.node_id, *through, "cand_001"]
        edges = [edge(src, "supersedes", dst, number=n) for n, (src, dst) in enumerate(pairwise(steps), start=1)]
        first, *_ = propose(
            candidate(1, "Retry at a fixed pace"),
            candidate(2, "Retry once"),
            edges=edges,
            facts={"cand_001": match(current, 0.9)},
            known=[current],
        )
        assert_kept_apart(first, current, "the other way")

    def test_nor_if_a_supersede_of_this_session_closes_the_circle(self) -> None:
        upper, lower = node("dec_upper", "Retry with jitter"), node("dec_lower", "Retry once")
        first, second = propose(
            candidate(1, "Retry twice"),
            candidate(2, "Retry at a fixed pace"),
            edges=[edge(upper, "supersedes", "cand_001"), edge(lower, "supersedes", "cand_002", number=2)],
            facts={"cand_001": match(lower, 0.9), "cand_002": match(upper, 0.9)},
            known=[upper, lower],
        )
        assert (first.hint, first.targets) == ("SUPERSEDE", (Target("dec_lower", 1),))
        assert_kept_apart(second, upper, "the other way")


class TestProposals:
    def test_there_is_one_for_each_candidate_in_their_order(self) -> None:
        proposals = propose(candidate(1, "A"), candidate(2, "B"), candidate(3, "A"), candidate(10, "C"))
        assert [p.candidate_id for p in proposals] == ["cand_001", "cand_002", "cand_003", "cand_010"]

    def test_a_session_without_node_candidates_has_none(self) -> None:
        assert propose(*(), facts={}) == ()

    def test_each_remembers_the_version_of_its_target_and_the_commit_it_was_made_after(self) -> None:
        (proposal,) = propose(candidate(body="New."), facts=match(node(version=5), 0.97))
        assert (proposal.targets, proposal.seen_seq) == ((Target("dec_old", 5),), 7)

    def test_each_has_a_rationale(self) -> None:
        assert all(p.rationale for p in propose(candidate(1), candidate(2), candidate(3, "Other")))

    @pytest.mark.timeout(10)
    def test_a_full_session_is_reconciled_in_little_time(self) -> None:
        """Each candidate is compared with every other, so nothing slow may be done again for each pair."""
        body = "A decision of the usual length, with accents: été, Größe. " * 40
        candidates = [candidate(n, f"Statement number {n}", body=body) for n in range(1, 501)]
        edges = [edge(a, "relates_to", b, number=n) for n, (a, b) in enumerate(pairwise(candidates), start=1)]
        assert {p.hint for p in propose(*candidates, edges=edges * 2)} == {"ADD"}
