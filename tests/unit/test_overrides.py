"""Overrides: an agent's own hints at commit."""

from __future__ import annotations

import pytest

from pulse_kg.domain.model import Hint, Node, NodeCandidate, Override, Proposal, Resolution, Target
from pulse_kg.domain.overrides import named_nodes, resolve
from pulse_kg.errors import InvalidOverride
from tests.support.drafts import candidate, node

WHY = "the maintainers asked for it"
OLD = node("dec_old", version=3)


def proposal(
    hint: Hint = "UPDATE", *, number: int = 1, targets: tuple[Target, ...] = (Target("dec_old", 3),), twin: str | None = None
) -> Proposal:
    return Proposal(f"cand_{number:03d}", hint, 4, "because", targets, twin)


def resolved(
    *overrides: Override,
    proposals: tuple[Proposal, ...] = (proposal(),),
    candidates: tuple[NodeCandidate, ...] = (candidate(),),
    nodes: tuple[Node, ...] = (OLD,),
) -> tuple[Resolution, ...]:
    return resolve(candidates, {p.candidate_id: p for p in proposals}, overrides, {n.node_id: n for n in nodes})


def refusal(
    *overrides: Override, proposals: tuple[Proposal, ...] = (proposal(),), nodes: tuple[Node, ...] = (OLD,)
) -> list[tuple[str, str]]:
    with pytest.raises(InvalidOverride) as refused:
        resolved(*overrides, proposals=proposals, nodes=nodes)
    return [(p.path, p.problem) for p in refused.value.problems]


class TestWithoutOverrides:
    @pytest.mark.parametrize("hint", ["UPDATE", "SUPERSEDE", "NOOP"])
    def test_each_candidate_goes_as_proposed(self, hint: Hint) -> None:
        assert resolved(proposals=(proposal(hint),)) == (Resolution("cand_001", hint, (Target("dec_old", 3),)),)

    def test_a_possible_duplicate_is_no_target_of_an_add(self) -> None:
        assert resolved(proposals=(proposal("ADD"),)) == (Resolution("cand_001", "ADD"),)

    def test_a_twin_stays_a_twin(self) -> None:
        both = resolved(
            candidates=(candidate(1), candidate(2)), proposals=(proposal("ADD"), proposal("NOOP", number=2, targets=(), twin="cand_001"))
        )
        assert both[1] == Resolution("cand_002", "NOOP", (), "cand_001")


class TestOverrides:
    def test_add_drops_the_targets(self) -> None:
        assert resolved(Override("cand_001", "ADD", WHY)) == (Resolution("cand_001", "ADD", (), None, True),)

    def test_a_target_of_an_add_is_ignored_even_if_it_is_unknown(self) -> None:
        assert resolved(Override("cand_001", "ADD", WHY, "dec_nowhere"))[0].targets == ()

    @pytest.mark.parametrize("hint", ["UPDATE", "SUPERSEDE", "NOOP"])
    def test_another_hint_without_a_target_goes_to_the_proposed_one(self, hint: Hint) -> None:
        assert resolved(Override("cand_001", hint, WHY)) == (Resolution("cand_001", hint, (Target("dec_old", 3),), None, True),)

    @pytest.mark.parametrize("hint", ["UPDATE", "SUPERSEDE", "NOOP"])
    def test_a_possible_duplicate_may_become_the_target(self, hint: Hint) -> None:
        taken = resolved(Override("cand_001", hint, WHY), proposals=(proposal("ADD"),))
        assert taken == (Resolution("cand_001", hint, (Target("dec_old", 3),), None, True),)

    def test_a_target_that_was_proposed_keeps_the_version_that_was_seen(self) -> None:
        changed = node("dec_old", version=9)
        assert resolved(Override("cand_001", "SUPERSEDE", WHY, "dec_old"), nodes=(changed,))[0].targets == (Target("dec_old", 3),)

    def test_another_target_is_taken_with_its_version_now(self) -> None:
        other = node("dec_other", version=5)
        assert resolved(Override("cand_001", "UPDATE", WHY, "dec_other"), nodes=(OLD, other))[0].targets == (Target("dec_other", 5),)

    def test_the_proposed_hint_once_more_keeps_all_its_targets(self) -> None:
        both = (Target("dec_old", 3), Target("dec_other", 1))
        for target in (None, "dec_old"):
            taken = resolved(Override("cand_001", "SUPERSEDE", WHY, target), proposals=(proposal("SUPERSEDE", targets=both),))
            assert taken == (Resolution("cand_001", "SUPERSEDE", both, None, True),)

    def test_the_proposed_twin_once_more_stays_a_twin(self) -> None:
        taken = resolve(
            (candidate(1), candidate(2)),
            {"cand_001": proposal("ADD"), "cand_002": proposal("NOOP", number=2, targets=(), twin="cand_001")},
            [Override("cand_002", "NOOP", WHY)],
            {},
        )
        assert taken[1] == Resolution("cand_002", "NOOP", (), "cand_001", True)

    def test_the_others_go_as_proposed_in_the_order_of_the_candidates(self) -> None:
        taken = resolved(
            Override("cand_002", "ADD", WHY),
            candidates=(candidate(1), candidate(2)),
            proposals=(proposal(number=1), proposal(number=2)),
        )
        assert [(r.candidate_id, r.hint, r.overridden) for r in taken] == [("cand_001", "UPDATE", False), ("cand_002", "ADD", True)]


class TestInvalidOverrides:
    def test_an_unknown_candidate(self) -> None:
        ((path, problem),) = refusal(Override("cand_009", "ADD", WHY))
        assert path == "agent_overrides[0].candidate_id"
        assert "cand_009" in problem

    def test_an_edge_candidate_is_no_node_candidate(self) -> None:
        ((path, _),) = refusal(Override("edge_cand_001", "ADD", WHY))
        assert path == "agent_overrides[0].candidate_id"

    def test_a_candidate_named_twice(self) -> None:
        ((path, problem),) = refusal(Override("cand_001", "ADD", WHY), Override("cand_001", "ADD", WHY))
        assert path == "agent_overrides[1].candidate_id"
        assert "twice" in problem

    @pytest.mark.parametrize("rationale", ["", " \t\n"])
    def test_a_blank_rationale(self, rationale: str) -> None:
        ((path, _),) = refusal(Override("cand_001", "ADD", rationale))
        assert path == "agent_overrides[0].rationale"

    @pytest.mark.parametrize("hint", ["UPDATE", "SUPERSEDE", "NOOP"])
    def test_a_hint_without_a_target_where_none_is_known(self, hint: Hint) -> None:
        ((path, problem),) = refusal(Override("cand_001", hint, WHY), proposals=(proposal("ADD", targets=()),))
        assert path == "agent_overrides[0].target_node"
        assert "needs a target_node" in problem

    @pytest.mark.parametrize("hint", ["UPDATE", "SUPERSEDE", "NOOP"])
    @pytest.mark.parametrize(
        ("target", "problem"),
        [
            (node("con_1", node_type="Constraint"), "is of type Constraint"),
            (node("dec_past", superseded_by="dec_new"), "was superseded by dec_new"),
            (node("dec_held", human_curated=True), "curated by a person"),
        ],
        ids=["another type", "superseded", "curated"],
    )
    def test_a_target_of_another_type_or_superseded_or_curated(self, hint: Hint, target: Node, problem: str) -> None:
        ((path, said),) = refusal(Override("cand_001", hint, WHY, target.node_id), nodes=(OLD, target))
        assert path == "agent_overrides[0].target_node"
        assert problem in said

    def test_a_target_that_this_board_does_not_have(self) -> None:
        ((path, problem),) = refusal(Override("cand_001", "UPDATE", WHY, "dec_elsewhere"))
        assert path == "agent_overrides[0].target_node"
        assert "no node 'dec_elsewhere' on this board" in problem

    def test_a_refused_add_does_not_make_its_curated_target_one_to_be_changed(self) -> None:
        held = node("dec_old", human_curated=True)
        ((_, problem),) = refusal(Override("cand_001", "UPDATE", WHY), proposals=(proposal("ADD"),), nodes=(held,))
        assert "curated by a person" in problem

    def test_all_problems_are_told_together(self) -> None:
        paths = [
            path
            for path, _ in refusal(
                Override("cand_009", "ADD", WHY), Override("cand_001", "UPDATE", " ", "dec_no"), Override("cand_001", "ADD", WHY)
            )
        ]
        assert paths == [
            "agent_overrides[0].candidate_id",
            "agent_overrides[1].rationale",
            "agent_overrides[1].target_node",
            "agent_overrides[2].candidate_id",
        ]


def test_the_nodes_that_overrides_name_are_listed_once_each() -> None:
    overrides = [
        Override("cand_001", "UPDATE", WHY, "dec_b"),
        Override("cand_002", "ADD", WHY),
        Override("cand_003", "NOOP", WHY, "dec_a"),
        Override("cand_004", "NOOP", WHY, "dec_b"),
    ]
    assert named_nodes(overrides) == ("dec_b", "dec_a")
