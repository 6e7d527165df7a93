"""Whether the board changed under a session since its last propose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulse_kg.domain.conflicts import collisions
from pulse_kg.domain.model import EdgeCandidate, Hint, Node, NodeCandidate, Proposal, Resolution, Target
from tests.support.drafts import candidate, edge, node

SEEN = 5
REF = "spec:spec_007#retry-strategy"
OLD = node("dec_old", body="Old.", version=3, commit_seq=4)
SEEN_OLD = (Target("dec_old", 3),)


def proposal(hint: Hint = "UPDATE", *, targets: tuple[Target, ...] = SEEN_OLD, rule: int = 4, number: int = 1) -> Proposal:
    return Proposal(f"cand_{number:03d}", hint, rule, "because", targets, seen_seq=SEEN)


def found(
    given: Proposal,
    now: Node | None = None,
    *,
    resolution: Resolution | None = None,
    of: NodeCandidate | None = None,
    edges: tuple[EdgeCandidate, ...] = (),
    similar: tuple[Node, ...] = (),
) -> dict[str, str]:
    """What collides with a session of one candidate, if the board's nodes are as they are now."""
    of = of or candidate(body="New.")
    targets = () if given.hint == "ADD" else given.targets
    resolution = resolution or Resolution(given.candidate_id, given.hint, targets, given.twin)
    nodes = {n.node_id: n for n in (OLD, now or OLD)}
    return collisions([of], edges, {given.candidate_id: given}, [resolution], nodes, similar)


class TestTargets:
    @pytest.mark.parametrize("hint", ["UPDATE", "SUPERSEDE", "NOOP"])
    def test_an_unchanged_target_does_not_collide(self, hint: Hint) -> None:
        assert found(proposal(hint)) == {}

    @pytest.mark.parametrize("hint", ["UPDATE", "SUPERSEDE", "NOOP"])
    def test_a_changed_content_version_collides(self, hint: Hint) -> None:
        assert found(proposal(hint), replace(OLD, version=4, commit_seq=6)) == {"dec_old": "cand_001: its content or liveness changed"}

    def test_a_target_that_lost_its_head_state_collides(self) -> None:
        assert list(found(proposal("SUPERSEDE"), replace(OLD, superseded_by="dec_new", version=4, commit_seq=6))) == ["dec_old"]

    def test_a_target_that_was_seen_in_its_newer_state_does_not(self) -> None:
        """The number of the last commit is read before the graph, so what was seen may be newer than it."""
        assert found(proposal(targets=(Target("dec_old", 4),)), replace(OLD, version=4, commit_seq=6)) == {}

    def test_relevance_and_hits_do_not_collide(self) -> None:
        assert found(proposal(), replace(OLD, relevance_score=0.9, query_hits=12, last_queried_at=1)) == {}

    @pytest.mark.parametrize("hint", ["UPDATE", "SUPERSEDE"])
    def test_a_target_that_a_person_curates_now_collides(self, hint: Hint) -> None:
        assert found(proposal(hint), replace(OLD, human_curated=True)) == {"dec_old": "cand_001: a person curates it now"}

    def test_a_noop_onto_a_node_curated_now_does_not(self) -> None:
        assert found(proposal("NOOP"), replace(OLD, human_curated=True)) == {}

    def test_a_changed_possible_duplicate_of_an_add_does_not(self) -> None:
        assert found(proposal("ADD", rule=6), replace(OLD, version=4, commit_seq=6)) == {}

    def test_the_target_of_an_override_collides_if_it_changed_since_the_propose(self) -> None:
        other = node("dec_other", version=8, commit_seq=6)
        override = Resolution("cand_001", "UPDATE", (Target("dec_other", 8),), overridden=True)
        assert list(found(proposal(), other, resolution=override)) == ["dec_other"]

    def test_the_target_of_an_override_that_is_as_old_as_the_propose_does_not(self) -> None:
        other = node("dec_other", version=8, commit_seq=SEEN)
        override = Resolution("cand_001", "UPDATE", (Target("dec_other", 8),), overridden=True)
        assert found(proposal(), other, resolution=override) == {}

    def test_a_target_that_an_override_gave_up_does_not(self) -> None:
        override = Resolution("cand_001", "ADD", overridden=True)
        assert found(proposal(), replace(OLD, version=4, commit_seq=6), resolution=override) == {}

    def test_but_one_that_the_candidates_own_edge_supersedes_all_the_same_does(self) -> None:
        override = Resolution("cand_001", "ADD", overridden=True)
        changed = replace(OLD, version=4, commit_seq=6)
        by_edge = found(proposal("SUPERSEDE", rule=2), changed, resolution=override, edges=(edge("cand_001", "supersedes", OLD),))
        assert list(by_edge) == ["dec_old"]

    def test_and_so_does_one_that_was_curated_when_the_session_saw_it(self) -> None:
        """Its edge supersedes it now that it is free again, and the agent has not seen what it says."""
        changed = replace(OLD, version=4, commit_seq=6)
        assert list(found(proposal("ADD", rule=2), changed, edges=(edge("cand_001", "supersedes", OLD),))) == ["dec_old"]


class TestNodesThatAppeared:
    def test_one_with_the_same_digest_collides(self) -> None:
        new = node("dec_new", body="New.", commit_seq=6)
        assert found(proposal("ADD", targets=()), similar=(new,)) == {"dec_new": "cand_001: it appeared with the same content or reference"}

    def test_one_with_the_same_reference_collides(self) -> None:
        new = node("dec_new", "Another title", ref=REF, commit_seq=6)
        assert list(found(proposal("ADD", targets=()), of=candidate(ref=REF), similar=(new,))) == ["dec_new"]

    def test_one_that_was_changed_into_the_same_statement_collides(self) -> None:
        new = node("dec_new", body="New.", created_seq=1, version=2, commit_seq=6)
        assert list(found(proposal("UPDATE"), similar=(new,))) == ["dec_new"]

    @pytest.mark.parametrize("commit_seq", [1, SEEN])
    def test_one_that_the_propose_had_seen_does_not(self, commit_seq: int) -> None:
        assert found(proposal("ADD", targets=()), similar=(node("dec_new", body="New.", commit_seq=commit_seq),)) == {}

    def test_one_of_another_type_does_not(self) -> None:
        new = node("req_new", node_type="Requirement", ref=REF, commit_seq=6)
        assert found(proposal("ADD", targets=()), of=candidate(ref=REF), similar=(new,)) == {}

    def test_one_that_is_superseded_already_does_not(self) -> None:
        new = node("dec_new", body="New.", superseded_by="dec_newer", commit_seq=6)
        assert found(proposal("ADD", targets=()), similar=(new,)) == {}

    def test_the_same_content_under_another_reference_does_not(self) -> None:
        new = node("dec_new", body="New.", ref="spec:spec_007#storage", commit_seq=6)
        assert found(proposal("ADD", targets=()), of=candidate(body="New.", ref=REF), similar=(new,)) == {}

    def test_the_same_content_where_only_one_has_a_reference_does(self) -> None:
        new = node("dec_new", body="New.", commit_seq=6)
        assert list(found(proposal("ADD", targets=()), of=candidate(body="New.", ref=REF), similar=(new,))) == ["dec_new"]

    def test_the_target_itself_does_not(self) -> None:
        assert found(proposal("NOOP"), similar=(replace(OLD, commit_seq=6),), of=candidate(body="Old.")) == {}

    def test_an_overriding_add_collides_too_because_the_agent_has_not_seen_it(self) -> None:
        override = Resolution("cand_001", "ADD", overridden=True)
        assert list(found(proposal(), resolution=override, similar=(node("dec_new", body="New.", commit_seq=6),))) == ["dec_new"]


class TestEdges:
    def test_an_edge_to_a_node_seen_live_collides_if_that_is_superseded_now(self) -> None:
        past = replace(OLD, superseded_by="dec_new")
        by_edge = found(proposal("ADD", targets=()), past, edges=(edge("cand_001", "supersedes", "dec_old", target_was_live=True),))
        assert by_edge == {"dec_old": "edge_cand_001: it was superseded by another commit"}

    def test_an_edge_to_a_node_seen_live_does_not_while_it_is_live(self) -> None:
        assert found(proposal("ADD", targets=()), edges=(edge("cand_001", "supersedes", "dec_old", target_was_live=True),)) == {}

    def test_an_edge_to_a_node_seen_as_past_is_history_and_does_not(self) -> None:
        past = replace(OLD, superseded_by="dec_new")
        assert found(proposal("ADD", targets=()), past, edges=(edge("cand_001", "supersedes", past),)) == {}

    def test_another_relationship_to_a_superseded_node_does_not(self) -> None:
        past = replace(OLD, superseded_by="dec_new")
        assert found(proposal("ADD", targets=()), past, edges=(edge("cand_001", "relates_to", past),)) == {}


def test_collisions_come_in_the_order_of_the_candidates_then_of_the_edges() -> None:
    a, b, c = (node(f"dec_{x}", version=2, commit_seq=6) for x in "abc")
    proposals = [proposal(number=1, targets=(Target("dec_b", 1),)), proposal(number=2, targets=(Target("dec_a", 1),))]
    resolutions = [Resolution(p.candidate_id, p.hint, p.targets) for p in proposals]
    gone = replace(c, superseded_by="dec_x")
    all_found = collisions(
        [candidate(1), candidate(2, "Other")],
        [edge("cand_001", "supersedes", "dec_c", target_was_live=True)],
        {p.candidate_id: p for p in proposals},
        resolutions,
        {n.node_id: n for n in (a, b, gone)},
        [],
    )
    assert list(all_found) == ["dec_b", "dec_a", "dec_c"]
