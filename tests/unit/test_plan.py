"""The commit plan: what a commit writes and what it answers, for each way that a candidate can go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from pulse_kg.domain import ids
from pulse_kg.domain.audit import Administration
from pulse_kg.domain.completion import texts_to_embed
from pulse_kg.domain.model import (
    Candidates,
    Edge,
    EdgeCandidate,
    Hint,
    Node,
    NodeCandidate,
    Proposal,
    Resolution,
    Resolved,
    Source,
    Target,
    content_digest,
)
from pulse_kg.domain.plan import CommitPlan, VectorWrite, outline
from pulse_kg.domain.relevance import Standing, relevance
from pulse_kg.domain.schema import NODE_TYPES, SEARCHABLE_TYPES, NodeType, RelType
from pulse_kg.errors import InvalidEdgeEndpoints
from tests.support.drafts import BOARD, DAY, NOW, SESSION_ID, SPEC, TITLE, candidate, edge, node, session, source
from tests.support.graph_model import GraphModel, embed

REF = "spec:spec_007#retry-strategy"
CARD = "card:card_1"
LONG = "word " * 20


def goes(hint: Hint, *targets: Node, number: int = 1, overridden: bool = False) -> Resolution:
    """The candidate of this number goes that way."""
    return Resolution(f"cand_{number:03d}", hint, tuple(Target(n.node_id, n.version) for n in targets), None, overridden)


def twin(number: int, of: str = "cand_001") -> Resolution:
    """The candidate of this number is the node of an earlier one."""
    return Resolution(f"cand_{number:03d}", "NOOP", (), of)


def settled(
    nodes: Sequence[NodeCandidate], resolutions: Sequence[Resolution], edges: Sequence[EdgeCandidate] = (), of: Source = SPEC
) -> Resolved:
    """A session with a resolution for each candidate."""
    proposals = [Proposal(r.candidate_id, r.hint, 6, "because", r.targets, r.twin, seen_seq=1) for r in resolutions]
    return Resolved(session(of), Candidates(tuple(nodes), tuple(edges)), proposals, (), resolutions)


def planned(
    model: GraphModel,
    nodes: Sequence[NodeCandidate],
    resolutions: Sequence[Resolution],
    edges: Sequence[EdgeCandidate] = (),
    of: Source = SPEC,
) -> CommitPlan:
    """The plan on that graph."""
    return model.plan(settled(nodes, resolutions, edges, of), NOW)


def fresh_id(number: int = 1, node_type: NodeType = "Decision") -> str:
    """The id that an inserted candidate gets."""
    return ids.node_id(BOARD, SESSION_ID, f"cand_{number:03d}", node_type)


def written(plan: CommitPlan, node_id: str) -> Node:
    """The state that the plan gives a node."""
    (found,) = (n for n in plan.nodes if n.node_id == node_id)
    return found


def ends(plan: CommitPlan) -> list[tuple[str, RelType, str]]:
    """The plan's edges by their ends."""
    return [(e.src, e.rel_type, e.dst) for e in plan.edges]


def stored_edge(src: str, rel_type: RelType, dst: str, *, equal_types: bool = True, **more: Any) -> Edge:
    """An edge as commit 1 may have left it."""
    return Edge(
        board_id=BOARD,
        edge_id=ids.edge_id(BOARD, src, rel_type, dst, equal_types=equal_types),
        src=src,
        rel_type=rel_type,
        dst=dst,
        created_at=NOW - DAY,
        created_by="agt_first",
        commit_seq=1,
        source_session_id="kgs_01J00000000000000000000000",
        **more,
    )


class TestAdd:
    def test_it_inserts_the_node_with_all_its_common_properties(self) -> None:
        attributes = {"rationale": "spikes", "confidence": 0.9}
        plan = planned(GraphModel(), [candidate(body="With jitter.", ref=REF, attributes=attributes)], [goes("ADD")])
        assert plan.nodes == (
            Node(
                board_id=BOARD,
                node_id=fresh_id(),
                node_type="Decision",
                title=TITLE,
                body="With jitter.",
                attributes=attributes,
                source_ref=REF,
                artifact="spec:spec_007",
                artifact_version=2,
                source_session_id=SESSION_ID,
                created_seq=1,
                commit_seq=1,
                version=1,
                content_digest=content_digest("Decision", TITLE, "With jitter.", attributes),
                created_at=NOW,
                updated_at=NOW,
                created_by="agt_second",
                confidence=0.9,
                relevance_score=0.4 * 0.9,
                last_recomputed_at=NOW,
                status="active",
            ),
        )

    def test_without_a_reference_it_refers_to_the_sessions_artifact(self) -> None:
        inserted = planned(GraphModel(), [candidate()], [goes("ADD")]).nodes[0]
        assert (inserted.source_ref, inserted.artifact, inserted.artifact_version) == ("spec:spec_007", "spec:spec_007", 2)

    def test_the_version_of_another_artifact_is_not_known(self) -> None:
        inserted = planned(GraphModel(), [candidate(ref=f"{CARD}#a")], [goes("ADD")]).nodes[0]
        assert (inserted.source_ref, inserted.artifact, inserted.artifact_version) == (f"{CARD}#a", CARD, None)

    def test_version_0_is_a_version(self) -> None:
        assert planned(GraphModel(), [candidate()], [goes("ADD")], of=source(version=0)).nodes[0].artifact_version == 0

    def test_the_confidence_is_seven_tenths_unless_it_is_given(self) -> None:
        assert planned(GraphModel(), [candidate()], [goes("ADD")]).nodes[0].confidence == 0.7

    def test_unknown_attributes_are_dropped_with_a_warning(self) -> None:
        odd = candidate(attributes={"rationale": "r", "zeal": 1}, unknown_keys=("zeal",))
        plan = planned(GraphModel(), [odd], [goes("ADD")])
        assert plan.nodes[0].attributes == {"rationale": "r"}
        assert plan.answer["warnings"] == ["cand_001: attribute 'zeal' is not in the schema and was dropped"]
        assert plan.audit["warnings"] == plan.answer["warnings"]

    @pytest.mark.parametrize("node_type", NODE_TYPES)
    def test_only_decisions_have_a_status_of_the_system(self, node_type: NodeType) -> None:
        inserted = planned(GraphModel(), [candidate(node_type=node_type)], [goes("ADD")]).nodes[0]
        assert inserted.status == ("active" if node_type == "Decision" else None)

    def test_a_decision_may_be_stated_as_revoked(self) -> None:
        inserted = planned(GraphModel(), [candidate(attributes={"status": "revoked"})], [goes("ADD")]).nodes[0]
        assert (inserted.status, inserted.revoked, inserted.live) == ("revoked", True, True)

    def test_the_status_of_a_bug_is_an_attribute_only(self) -> None:
        inserted = planned(GraphModel(), [candidate(node_type="Bug", attributes={"status": "open"})], [goes("ADD")]).nodes[0]
        assert (inserted.status, inserted.attributes) == (None, {"status": "open"})

    @pytest.mark.parametrize("node_type", NODE_TYPES)
    def test_searchable_types_get_a_vector(self, node_type: NodeType) -> None:
        plan = planned(GraphModel(), [candidate(node_type=node_type, body="B")], [goes("ADD")])
        vector = VectorWrite(fresh_id(1, node_type), node_type, live=True, text_vector=embed(f"{TITLE}\nB"))
        assert plan.vectors == ((vector,) if node_type in SEARCHABLE_TYPES else ())

    @pytest.mark.parametrize(("node_type", "truncated"), [("Decision", True), ("Bug", False)])
    def test_a_cut_text_is_remembered_where_there_is_a_vector(self, node_type: NodeType, truncated: bool) -> None:
        assert planned(GraphModel(), [candidate(node_type=node_type, body=LONG)], [goes("ADD")]).nodes[0].truncated is truncated

    def test_it_is_listed_as_added(self) -> None:
        plan = planned(GraphModel(), [candidate()], [goes("ADD")])
        assert plan.answer["applied"] == {
            "added": [{"candidate_id": "cand_001", "node_id": fresh_id()}],
            "updated": [],
            "superseded": [],
            "noop": [],
        }

    def test_an_overriding_add_of_the_same_statement_makes_a_second_node(self) -> None:
        old = node()
        plan = planned(GraphModel([old]), [candidate()], [goes("ADD", overridden=True)])
        assert [n.node_id for n in plan.nodes] == [fresh_id()]


class TestUpdate:
    OLD = node(
        "dec_old",
        body="Old.",
        attributes={"rationale": "r", "decided_at": "2026-01-01"},
        version=3,
        commit_seq=2,
        query_hits=5,
        last_queried_at=NOW - DAY,
        priority_boost=0.1,
    )

    def updated(self, new: NodeCandidate, old: Node = OLD, of: Source = SPEC) -> Node:
        plan = planned(GraphModel([old]), [new], [goes("UPDATE", old)], of=of)
        return written(plan, old.node_id)

    def test_it_keeps_who_made_the_node_and_when(self) -> None:
        after = self.updated(candidate(body="New."))
        kept = (
            "node_id",
            "created_at",
            "created_by",
            "created_seq",
            "source_session_id",
            "query_hits",
            "last_queried_at",
            "priority_boost",
        )
        assert {k: getattr(after, k) for k in kept} == {k: getattr(self.OLD, k) for k in kept}

    def test_it_takes_title_and_body_and_raises_the_version(self) -> None:
        after = self.updated(candidate(title="Retry with backoff", body="New."))
        assert (after.title, after.body, after.version, after.commit_seq, after.updated_at) == ("Retry with backoff", "New.", 4, 3, NOW)
        assert after.content_digest == content_digest("Decision", "Retry with backoff", "New.", self.OLD.attributes)

    def test_it_merges_attributes(self) -> None:
        after = self.updated(candidate(body="New.", attributes={"rationale": "better"}))
        assert after.attributes == {"rationale": "better", "decided_at": "2026-01-01"}
        assert after.content_digest == content_digest("Decision", TITLE, "New.", after.attributes)

    def test_a_blank_body_leaves_the_body_with_a_warning(self) -> None:
        plan = planned(GraphModel([self.OLD]), [candidate(title="Retry with backoff", body=" \n")], [goes("UPDATE", self.OLD)])
        assert plan.nodes[0].body == "Old."
        assert plan.answer["warnings"] == ["cand_001: without a body of its own, it leaves the body of dec_old as it was"]
        assert plan.vectors[0].text_vector == embed("Retry with backoff\nOld.")

    @pytest.mark.parametrize("before", ["active", "revoked"])
    def test_the_status_stays_unless_it_is_given(self, before: str) -> None:
        old = replace(self.OLD, status=before)
        assert self.updated(candidate(body="New."), old).status == before
        assert self.updated(candidate(body="New.", attributes={"status": "revoked"}), old).status == "revoked"
        assert self.updated(candidate(body="New.", attributes={"status": "active"}), old).status == "active"

    def test_the_confidence_stays_unless_it_is_given(self) -> None:
        old = node(body="Old.", attributes={"confidence": 0.9})
        assert self.updated(candidate(body="New."), old).confidence == 0.9
        assert self.updated(candidate(body="New.", attributes={"confidence": 0.4}), old).confidence == 0.4

    def test_it_embeds_again_if_the_text_changed(self) -> None:
        plan = planned(GraphModel([self.OLD]), [candidate(body="New.")], [goes("UPDATE", self.OLD)])
        assert plan.vectors == (VectorWrite("dec_old", "Decision", live=True, text_vector=embed(f"{TITLE}\nNew.")),)

    def test_it_does_not_if_only_attributes_changed(self) -> None:
        old = replace(self.OLD, truncated=True)
        plan = planned(GraphModel([old]), [candidate(body="Old.", attributes={"rationale": "better"})], [goes("UPDATE", old)])
        assert (plan.vectors, plan.nodes[0].truncated, plan.nodes[0].version) == ((), True, 4)

    def test_a_text_that_is_no_longer_cut_is_no_longer_remembered_as_cut(self) -> None:
        old = node(body=LONG, truncated=True)
        assert self.updated(candidate(body="Short."), old).truncated is False

    @pytest.mark.parametrize(("of", "version"), [(source(version=7), 7), (source(CARD, 7), None)], ids=["its artifact", "another one"])
    def test_the_artifacts_version_is_that_of_the_commit_that_wrote_the_content(self, of: Source, version: int | None) -> None:
        after = self.updated(candidate(body="New."), of=of)
        assert (after.artifact, after.artifact_version) == ("spec:spec_007", version)

    def test_a_node_without_a_section_takes_over_one_of_its_artifact(self) -> None:
        assert self.updated(candidate(body="New.", ref=REF)).source_ref == REF

    def test_it_does_not_take_over_one_of_another_artifact(self) -> None:
        assert self.updated(candidate(body="New.", ref=f"{CARD}#a")).source_ref == "spec:spec_007"

    def test_a_node_with_a_section_keeps_it(self) -> None:
        old = node(body="Old.", ref=REF)
        assert self.updated(candidate(body="New.", ref="spec:spec_007#other"), old).source_ref == REF

    def test_it_is_listed_as_updated(self) -> None:
        plan = planned(GraphModel([self.OLD]), [candidate(body="New.")], [goes("UPDATE", self.OLD)])
        assert plan.answer["applied"]["updated"] == [{"candidate_id": "cand_001", "node_id": "dec_old"}]
        assert plan.answer["superseded_nodes"] == []

    def test_an_overriding_update_that_changes_nothing_leaves_the_node_as_it_is(self) -> None:
        """A version counts changes of content: without one, no other session is made to propose again."""
        plan = planned(GraphModel([self.OLD]), [candidate(attributes={"rationale": "r"})], [goes("UPDATE", self.OLD, overridden=True)])
        assert (plan.nodes, plan.vectors, plan.relevances) == ((), (), ())
        assert plan.answer["applied"]["updated"] == [{"candidate_id": "cand_001", "node_id": "dec_old"}]
        assert plan.answer["warnings"][-1] == "cand_001: it changes nothing in dec_old, which was left as it is"

    def test_two_overriding_updates_of_one_node_are_merged_in_order(self) -> None:
        plan = planned(
            GraphModel([self.OLD]),
            [candidate(1, body="New.", attributes={"rationale": "one"}), candidate(2, "Later title", attributes={"rationale": "two"})],
            [goes("UPDATE", self.OLD, number=1), goes("UPDATE", self.OLD, number=2)],
        )
        after = written(plan, "dec_old")
        assert (after.title, after.body, after.attributes["rationale"], after.version) == ("Later title", "New.", "two", 4)
        assert plan.vectors == (VectorWrite("dec_old", "Decision", live=True, text_vector=embed("Later title\nNew.")),)
        assert "cand_002: another candidate of this session updates dec_old too; both were merged in order" in plan.answer["warnings"]


class TestSupersede:
    OLD = node("dec_old", "Retry at a fixed pace", version=3, commit_seq=2)

    def test_it_inserts_the_new_node_and_the_edge(self) -> None:
        plan = planned(GraphModel([self.OLD]), [candidate()], [goes("SUPERSEDE", self.OLD)])
        assert written(plan, fresh_id()).live
        assert ends(plan) == [(fresh_id(), "supersedes", "dec_old")]
        implied = plan.edges[0]
        assert (implied.layer, implied.confidence, implied.reason, implied.rule_id) == ("cognitive", 0.7, None, None)

    def test_it_closes_the_old_node(self) -> None:
        after = written(planned(GraphModel([self.OLD]), [candidate()], [goes("SUPERSEDE", self.OLD)]), "dec_old")
        assert (after.superseded_by, after.superseded_at, after.status) == (fresh_id(), NOW, "superseded")
        assert (after.version, after.commit_seq, after.updated_at) == (4, 3, NOW)
        kept = ("title", "body", "attributes", "content_digest", "created_seq", "created_at", "artifact_version")
        assert {k: getattr(after, k) for k in kept} == {k: getattr(self.OLD, k) for k in kept}

    def test_a_revoked_decision_becomes_a_superseded_one_and_stays_revoked(self) -> None:
        old = node("dec_old", "Old", status="revoked", revocation_reason="withdrawn")
        after = written(planned(GraphModel([old]), [candidate()], [goes("SUPERSEDE", old)]), "dec_old")
        assert (after.status, after.revoked) == ("superseded", True)

    def test_only_decisions_have_the_status(self) -> None:
        old = node("con_old", "Old", node_type="Constraint")
        assert written(planned(GraphModel([old]), [candidate(node_type="Constraint")], [goes("SUPERSEDE", old)]), "con_old").status is None

    def test_the_old_vector_stops_matching(self) -> None:
        plan = planned(GraphModel([self.OLD]), [candidate()], [goes("SUPERSEDE", self.OLD)])
        assert VectorWrite("dec_old", "Decision", live=False, text_vector=None) in plan.vectors

    def test_it_is_listed_as_added_as_superseded_and_among_the_edges(self) -> None:
        plan = planned(GraphModel([self.OLD]), [candidate()], [goes("SUPERSEDE", self.OLD)])
        entry = {"candidate_id": "cand_001", "node_id": fresh_id()}
        assert plan.answer["applied"] == {
            "added": [entry],
            "updated": [],
            "superseded": [{**entry, "target_node": "dec_old"}],
            "noop": [],
        }
        assert plan.answer["superseded_nodes"] == [{"node_id": "dec_old", "superseded_by": fresh_id()}]
        assert plan.answer["edges_added"] == [
            {"edge_id": plan.edges[0].edge_id, "src": fresh_id(), "rel": "supersedes", "dst": "dec_old"},
        ]

    def test_several_targets_are_all_superseded_and_the_first_is_named(self) -> None:
        a, b = node("dec_a", "A"), node("dec_b", "B")
        plan = planned(GraphModel([a, b]), [candidate()], [goes("SUPERSEDE", b, a)])
        assert plan.answer["applied"]["superseded"][0]["target_node"] == "dec_b"
        assert [s["node_id"] for s in plan.answer["superseded_nodes"]] == ["dec_b", "dec_a"]

    def test_an_explicit_edge_to_the_target_is_the_implied_one(self) -> None:
        explicit = edge("cand_001", "supersedes", self.OLD, attributes={"reason": "load", "confidence": 0.9})
        plan = planned(GraphModel([self.OLD]), [candidate()], [goes("SUPERSEDE", self.OLD)], [explicit])
        assert ends(plan) == [(fresh_id(), "supersedes", "dec_old")]
        assert (plan.edges[0].reason, plan.edges[0].confidence) == ("load", 0.9)
        assert plan.answer["warnings"] == []

    def test_two_overriding_supersedes_of_one_node_leave_one_successor(self) -> None:
        plan = planned(
            GraphModel([self.OLD]),
            [candidate(1), candidate(2, "Other")],
            [goes("SUPERSEDE", self.OLD, number=1), goes("SUPERSEDE", self.OLD, number=2)],
        )
        assert written(plan, "dec_old").superseded_by == fresh_id(1)
        assert (written(plan, "dec_old").version, len(plan.edges)) == (4, 2)
        assert plan.answer["superseded_nodes"] == [{"node_id": "dec_old", "superseded_by": fresh_id(1)}]
        assert plan.answer["warnings"] == [
            f"cand_002: dec_old is superseded by {fresh_id(1)} in this commit; this edge is history only",
        ]

    def test_a_node_updated_and_superseded_in_one_commit_rises_by_one_version(self) -> None:
        plan = planned(
            GraphModel([self.OLD]),
            [candidate(1, "Retry at a fixed pace", body="More."), candidate(2)],
            [goes("UPDATE", self.OLD, number=1), goes("SUPERSEDE", self.OLD, number=2)],
        )
        after = written(plan, "dec_old")
        assert (after.body, after.superseded_by, after.version) == ("More.", fresh_id(2), 4)
        assert VectorWrite("dec_old", "Decision", live=False, text_vector=embed("Retry at a fixed pace\nMore.")) in plan.vectors


class TestNoop:
    def test_it_writes_nothing_and_names_the_node(self) -> None:
        old = node()
        plan = planned(GraphModel([old]), [candidate()], [goes("NOOP", old)])
        assert (plan.nodes, plan.edges, plan.vectors, plan.relevances) == ((), (), (), ())
        assert plan.answer["applied"]["noop"] == [{"candidate_id": "cand_001", "node_id": "dec_old"}]

    def test_a_twin_names_the_node_of_the_earlier_candidate(self) -> None:
        plan = planned(GraphModel(), [candidate(1), candidate(2)], [goes("ADD"), twin(2)])
        assert [n.node_id for n in plan.nodes] == [fresh_id(1)]
        assert plan.answer["applied"]["noop"] == [{"candidate_id": "cand_002", "node_id": fresh_id(1)}]

    def test_a_twin_follows_the_earlier_candidate_wherever_it_goes(self) -> None:
        old = node()
        plan = planned(GraphModel([old]), [candidate(1), candidate(2)], [goes("NOOP", old), twin(2)])
        assert [e["node_id"] for e in plan.answer["applied"]["noop"]] == ["dec_old", "dec_old"]

    def test_its_edges_go_to_the_node(self) -> None:
        old, alternative = node(), candidate(2, "Fixed pace", node_type="Alternative")
        plan = planned(
            GraphModel([old]),
            [candidate(), alternative],
            [goes("NOOP", old), goes("ADD", number=2)],
            [edge("cand_001", "relates_to", alternative)],
        )
        assert ends(plan) == [("dec_old", "relates_to", fresh_id(2, "Alternative"))]


class TestEdges:
    def test_an_edge_has_all_its_properties(self) -> None:
        a, b = node("dec_a"), node("req_b", node_type="Requirement")
        given = edge(a, "depends_on", b, attributes={"reason": "r", "evidence": "e", "confidence": 0.4, "zeal": 1}, unknown_keys=("zeal",))
        plan = planned(GraphModel([a, b]), [], [], [given])
        assert plan.edges == (
            Edge(
                board_id=BOARD,
                edge_id=ids.edge_id(BOARD, "dec_a", "depends_on", "req_b", equal_types=False),
                src="dec_a",
                rel_type="depends_on",
                dst="req_b",
                created_at=NOW,
                created_by="agt_second",
                commit_seq=2,
                source_session_id=SESSION_ID,
                reason="r",
                evidence="e",
                confidence=0.4,
            ),
        )
        assert plan.answer["warnings"] == ["edge_cand_001: attribute 'zeal' is not in the schema and was dropped"]

    def test_the_workers_edge_carries_its_layer_and_rule(self) -> None:
        a, b = node("dec_a"), node("ent_b", node_type="Entity")
        plan = planned(GraphModel([a, b]), [], [], [edge(a, "mentions", b, layer="deterministic", rule_id="mentions.v1")])
        assert (plan.edges[0].layer, plan.edges[0].rule_id) == ("deterministic", "mentions.v1")

    def test_an_edge_that_a_noop_made_a_self_loop_is_dropped_with_a_warning(self) -> None:
        old = node()
        plan = planned(GraphModel([old]), [candidate()], [goes("NOOP", old)], [edge("cand_001", "relates_to", old)])
        assert plan.edges == ()
        assert plan.answer["warnings"] == ["edge_cand_001 dropped: both of its ends are dec_old now, and no edge joins a node to itself"]

    @pytest.mark.parametrize("rel_type", ["relates_to", "depends_on", "contradicts", "supersedes"])
    def test_an_edge_that_an_update_made_a_self_loop_is_dropped_with_a_warning(self, rel_type: RelType) -> None:
        old = node(body="Old.")
        plan = planned(GraphModel([old]), [candidate(body="New.")], [goes("UPDATE", old)], [edge("cand_001", rel_type, old)])
        assert plan.edges == ()
        assert written(plan, "dec_old").live
        assert plan.answer["warnings"][0].startswith("edge_cand_001 dropped")

    def test_an_edge_between_twins_is_dropped_with_a_warning(self) -> None:
        plan = planned(GraphModel(), [candidate(1), candidate(2)], [goes("ADD"), twin(2)], [edge("cand_002", "supersedes", "cand_001")])
        assert plan.edges == ()
        assert written(plan, fresh_id(1)).live

    @pytest.mark.parametrize(
        ("second", "rel_type"),
        [(("cand_001", "dec_b"), "depends_on"), (("dec_b", "cand_001"), "relates_to"), (("dec_b", "cand_001"), "contradicts")],
    )
    def test_an_edge_given_twice_is_merged_with_a_warning(self, second: tuple[str, str], rel_type: RelType) -> None:
        edges = [edge("cand_001", rel_type, "dec_b", attributes={"reason": "first"}), edge(second[0], rel_type, second[1], number=2)]
        plan = planned(GraphModel([node("dec_b", "B")]), [candidate()], [goes("ADD")], edges)
        assert ends(plan) == [(fresh_id(), rel_type, "dec_b")]
        assert plan.edges[0].reason == "first"
        assert plan.answer["warnings"] == ["edge_cand_002 merged: it is the same edge as edge_cand_001"]

    def test_the_reverse_of_a_directed_edge_is_another_edge(self) -> None:
        edges = [edge("cand_001", "depends_on", "dec_b"), edge("dec_b", "depends_on", "cand_001", number=2)]
        assert len(planned(GraphModel([node("dec_b", "B")]), [candidate()], [goes("ADD")], edges).edges) == 2

    @pytest.mark.parametrize("reverse", [False, True])
    def test_an_edge_that_is_there_already_is_not_listed_and_stays_as_it_is(self, reverse: bool) -> None:
        a, b = node("dec_a", "A"), node("dec_b", "B")
        there = stored_edge("dec_a", "relates_to", "dec_b", reason="first")
        again = edge(b, "relates_to", a) if reverse else edge(a, "relates_to", b, attributes={"reason": "second"})
        plan = planned(GraphModel([a, b], [there]), [], [], [again])
        assert (plan.edges, plan.answer["edges_added"], plan.relevances) == ((), [], ())
        assert plan.answer["warnings"] == [f"edge_cand_001 is there already as {there.edge_id}; it was left as it is"]

    def test_edges_come_in_the_order_of_their_candidates_and_implied_ones_last(self) -> None:
        old, b = node("dec_old", "Old"), node("dec_b", "B")
        edges = [edge(b, "relates_to", "cand_001"), edge("cand_001", "depends_on", b, number=2)]
        plan = planned(GraphModel([old, b]), [candidate()], [goes("SUPERSEDE", old)], edges)
        assert [r for _, r, _ in ends(plan)] == ["relates_to", "depends_on", "supersedes"]
        assert [e["rel"] for e in plan.answer["edges_added"]] == ["relates_to", "depends_on", "supersedes"]

    def test_an_edge_to_a_node_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(InvalidEdgeEndpoints) as refused:
            planned(GraphModel(), [candidate()], [goes("ADD")], [edge("cand_001", "relates_to", "dec_gone")])
        assert refused.value.details == {"node_ids": ["dec_gone"]}


class TestExplicitSupersedence:
    OLD = node("dec_old", "Retry at a fixed pace", version=3, commit_seq=2)

    def test_an_edge_to_a_live_node_supersedes_it_whatever_the_hint(self) -> None:
        plan = planned(GraphModel([self.OLD]), [candidate()], [goes("ADD")], [edge("cand_001", "supersedes", self.OLD)])
        after = written(plan, "dec_old")
        assert (after.superseded_by, after.superseded_at, after.status, after.version) == (fresh_id(), NOW, "superseded", 4)
        assert plan.answer["applied"]["superseded"] == []
        assert plan.answer["superseded_nodes"] == [{"node_id": "dec_old", "superseded_by": fresh_id()}]

    @pytest.mark.parametrize("hint", ["ADD", "NOOP", "UPDATE"])
    def test_an_override_that_leaves_the_edge_is_told_of_it(self, hint: Hint) -> None:
        other = node("dec_other", "Other", body="Other.")
        way = goes(hint, *([] if hint == "ADD" else [other]), overridden=True)
        plan = planned(GraphModel([self.OLD, other]), [candidate(body="New.")], [way], [edge("cand_001", "supersedes", self.OLD)])
        assert f"{hint} kept, but edge_cand_001 supersedes dec_old" in plan.answer["warnings"]
        assert [s["node_id"] for s in plan.answer["superseded_nodes"]] == ["dec_old"]

    def test_an_edge_between_two_existing_nodes_supersedes_the_older_one(self) -> None:
        current = node("dec_now", "Retry with jitter")
        plan = planned(GraphModel([self.OLD, current]), [], [], [edge(current, "supersedes", self.OLD)])
        assert [n.node_id for n in plan.nodes] == ["dec_old"]
        assert written(plan, "dec_old").superseded_by == "dec_now"
        assert [r.node_id for r in plan.relevances] == ["dec_now"]
        assert plan.vectors == (VectorWrite("dec_old", "Decision", live=False, text_vector=None),)

    def test_an_edge_to_a_new_candidate_inserts_and_supersedes_it_in_one_commit(self) -> None:
        newer, older = candidate(1), candidate(2, "Retry at a fixed pace")
        plan = planned(GraphModel(), [newer, older], [goes("ADD"), goes("ADD", number=2)], [edge(newer, "supersedes", older)])
        after = written(plan, fresh_id(2))
        assert (after.superseded_by, after.status, after.version, after.created_seq) == (fresh_id(1), "superseded", 1, 1)
        assert [e["candidate_id"] for e in plan.answer["applied"]["added"]] == ["cand_001", "cand_002"]
        assert plan.answer["superseded_nodes"] == [{"node_id": fresh_id(2), "superseded_by": fresh_id(1)}]
        assert [(v.node_id, v.live, v.text_vector is not None) for v in plan.vectors if v.node_id == fresh_id(2)] == [
            (fresh_id(2), False, True)
        ]
        assert plan.answer["warnings"] == []

    def test_an_edge_to_a_node_seen_as_past_is_history_and_its_successor_stays(self) -> None:
        past, now = node("dec_past", "Past", superseded_by="dec_now", status="superseded"), node("dec_now", "Now")
        graph = GraphModel([past, now], [stored_edge("dec_now", "supersedes", "dec_past")])
        plan = planned(graph, [candidate()], [goes("ADD")], [edge("cand_001", "supersedes", past)])
        assert ends(plan) == [(fresh_id(), "supersedes", "dec_past")]
        assert [n.node_id for n in plan.nodes] == [fresh_id()]
        assert (plan.answer["superseded_nodes"], plan.answer["warnings"]) == ([], [])

    def test_of_two_edges_to_one_node_the_first_supersedes_and_the_other_is_history(self) -> None:
        edges = [edge("cand_002", "supersedes", self.OLD), edge("cand_001", "supersedes", self.OLD, number=2)]
        plan = planned(GraphModel([self.OLD]), [candidate(1), candidate(2, "Other")], [goes("ADD"), goes("ADD", number=2)], edges)
        assert written(plan, "dec_old").superseded_by == fresh_id(2)
        assert len(plan.edges) == 2
        assert plan.answer["warnings"] == [
            f"edge_cand_002: dec_old is superseded by {fresh_id(2)} in this commit; this edge is history only",
        ]

    def test_a_curated_node_is_not_superseded_and_the_commit_is_refused(self) -> None:
        held = replace(self.OLD, human_curated=True)
        with pytest.raises(InvalidEdgeEndpoints) as refused:
            planned(GraphModel([held]), [candidate()], [goes("ADD")], [edge("cand_001", "supersedes", held)])
        assert refused.value.details == {"node_id": "dec_old", "candidate_id": "edge_cand_001"}

    def test_an_edge_of_history_to_a_curated_node_changes_nothing_and_is_taken(self) -> None:
        past = node("dec_past", "Past", superseded_by="dec_now", human_curated=True)
        plan = planned(GraphModel([past]), [candidate()], [goes("ADD")], [edge("cand_001", "supersedes", past)])
        assert [n.node_id for n in plan.nodes] == [fresh_id()]


class TestCyclesAfterMapping:
    def test_a_cycle_that_a_noop_closes_with_the_graph_is_refused(self) -> None:
        past, now = node("dec_past", "Past", superseded_by="dec_now"), node("dec_now", "Now")
        graph = GraphModel([past, now], [stored_edge("dec_now", "supersedes", "dec_past")])
        with pytest.raises(InvalidEdgeEndpoints) as refused:
            planned(graph, [candidate(title="Past")], [goes("NOOP", past)], [edge("cand_001", "supersedes", now)])
        assert refused.value.details == {"cycle": ["dec_past", "dec_now", "dec_past"]}

    def test_a_cycle_that_mapping_closes_within_the_session_is_refused(self) -> None:
        a, b = node("dec_a", "A"), node("dec_b", "B")
        with pytest.raises(InvalidEdgeEndpoints):
            planned(
                GraphModel([a, b]),
                [candidate(1, "A"), candidate(2, "B")],
                [goes("NOOP", a), goes("NOOP", b, number=2)],
                [edge("cand_001", "supersedes", "cand_002"), edge(b, "supersedes", a, number=2)],
            )

    def test_a_cycle_that_a_supersede_hint_closes_is_refused(self) -> None:
        now = node("dec_now", "Now")
        with pytest.raises(InvalidEdgeEndpoints) as refused:
            planned(GraphModel([now]), [candidate()], [goes("SUPERSEDE", now)], [edge(now, "supersedes", "cand_001")])
        assert set(refused.value.details["cycle"]) == {"dec_now", fresh_id()}

    def test_the_same_known_edge_once_more_closes_none(self) -> None:
        past, now = node("dec_past", "Past", superseded_by="dec_now"), node("dec_now", "Now")
        graph = GraphModel([past, now], [stored_edge("dec_now", "supersedes", "dec_past")])
        assert planned(graph, [], [], [edge(now, "supersedes", past)]).edges == ()


class TestRelevance:
    def score(self, of: Node, *, degree: int, contradicting: tuple[float, ...] = ()) -> float:
        return relevance(
            confidence=of.confidence,
            standing=Standing(degree, contradicting),
            query_hits=of.query_hits,
            last_queried_at=of.last_queried_at,
            priority_boost=of.priority_boost,
            now=NOW,
        )

    def test_both_ends_of_an_added_edge_are_recomputed_and_nothing_else_of_them_changes(self) -> None:
        a = node("dec_a", "A", query_hits=4, last_queried_at=NOW - 30 * DAY, priority_boost=0.05)
        b, c = node("dec_b", "B"), node("dec_c", "C")
        graph = GraphModel([a, b, c], [stored_edge("dec_c", "relates_to", "dec_a")])
        plan = planned(graph, [], [], [edge(a, "depends_on", b)])
        assert plan.nodes == ()
        assert {r.node_id: r.relevance_score for r in plan.relevances} == {
            "dec_a": self.score(a, degree=2),
            "dec_b": self.score(b, degree=1),
        }
        assert {r.recomputed_at for r in plan.relevances} == {NOW}

    def test_an_inserted_node_counts_its_edges(self) -> None:
        b = node("dec_b", "B")
        edges = [edge("cand_001", "depends_on", b), edge(b, "depends_on", "cand_001", number=2)]
        inserted = written(planned(GraphModel([b]), [candidate()], [goes("ADD")], edges), fresh_id())
        assert (inserted.relevance_score, inserted.last_recomputed_at) == (self.score(inserted, degree=2), NOW)

    def test_an_updated_node_is_recomputed_from_the_edges_it_has(self) -> None:
        old, b = node("dec_old", body="Old.", query_hits=10, last_queried_at=NOW), node("dec_b", "B")
        graph = GraphModel([old, b], [stored_edge("dec_b", "relates_to", "dec_old")])
        after = written(planned(graph, [candidate(body="New.")], [goes("UPDATE", old)]), "dec_old")
        assert after.relevance_score == self.score(after, degree=1)

    def test_an_incoming_contradiction_lowers_it_and_an_outgoing_one_does_not(self) -> None:
        b = node("dec_b", "B")
        plan = planned(GraphModel([b]), [candidate()], [goes("ADD")], [edge("cand_001", "contradicts", b, attributes={"confidence": 0.2})])
        inserted = written(plan, fresh_id())
        assert inserted.relevance_score == self.score(inserted, degree=1)
        assert [r.relevance_score for r in plan.relevances] == [self.score(b, degree=1, contradicting=(0.2,))]

    @pytest.mark.parametrize(
        "resolved",
        [{"superseded_by": "dec_x"}, {"status": "revoked"}, {"revocation_reason": "withdrawn"}],
        ids=["superseded", "revoked by an agent", "revoked by an administrator"],
    )
    @pytest.mark.parametrize("side", ["dec_a", "dec_b"])
    def test_a_resolved_contradiction_does_not_count(self, resolved: dict[str, Any], side: Literal["dec_a", "dec_b"]) -> None:
        a, b, c = (node(i, i, **(resolved if i == side else {})) for i in ("dec_a", "dec_b", "dec_c"))
        graph = GraphModel([a, b, c], [stored_edge("dec_a", "contradicts", "dec_b", confidence=0.2)])
        plan = planned(graph, [], [], [edge(c, "relates_to", b)])
        assert {r.node_id: r.relevance_score for r in plan.relevances}["dec_b"] == self.score(b, degree=2)

    def test_nor_does_a_new_one_from_a_node_of_the_past(self) -> None:
        past, b = node("dec_past", "Past", superseded_by="dec_x"), node("dec_b", "B")
        plan = planned(GraphModel([past, b]), [], [], [edge(past, "contradicts", b)])
        assert {r.node_id: r.relevance_score for r in plan.relevances}["dec_b"] == self.score(b, degree=1)

    def test_an_unresolved_contradiction_that_was_there_counts(self) -> None:
        a, b, c = node("dec_a", "A"), node("dec_b", "B"), node("dec_c", "C")
        graph = GraphModel([a, b, c], [stored_edge("dec_a", "contradicts", "dec_b", confidence=0.2)])
        plan = planned(graph, [], [], [edge(c, "contradicts", b, attributes={"confidence": 0.1})])
        assert {r.node_id: r.relevance_score for r in plan.relevances}["dec_b"] == self.score(b, degree=2, contradicting=(0.2, 0.1))

    def test_a_contradiction_that_this_commit_resolves_does_not_count(self) -> None:
        a, b = node("dec_a", "A"), node("dec_b", "B", body="Old.")
        graph = GraphModel([a, b], [stored_edge("dec_a", "contradicts", "dec_b", confidence=0.2)])
        plan = planned(
            graph,
            [candidate(1), candidate(2, "B", body="New.")],
            [goes("SUPERSEDE", a), goes("UPDATE", b, number=2)],
        )
        after = written(plan, "dec_b")
        assert after.relevance_score == self.score(after, degree=1)


class TestThePlanAsAWhole:
    def test_it_is_numbered_and_timed(self) -> None:
        old = node(commit_seq=4)
        plan = planned(GraphModel([old]), [candidate(title="New")], [goes("ADD")])
        assert (plan.board_id, plan.seq, plan.committed_at, plan.answer["audit_row_id"], plan.audit["audit_row_id"]) == (
            BOARD,
            5,
            NOW,
            5,
            5,
        )

    def test_the_answer_has_the_contracts_fields_in_their_order(self) -> None:
        answer = planned(GraphModel(), [candidate()], [goes("ADD")]).answer
        assert list(answer) == [
            "session_id",
            "committed",
            "applied",
            "edges_added",
            "audit_row_id",
            "outbox_event",
            "superseded_nodes",
            "warnings",
        ]
        assert list(answer["applied"]) == ["added", "updated", "superseded", "noop"]
        assert (answer["session_id"], answer["committed"], answer["outbox_event"]) == (SESSION_ID, True, "kg.consolidated.v1")

    def test_nodes_vectors_and_scores_are_sorted_by_id(self) -> None:
        olds = [node(f"dec_{x}", f"Old {x}") for x in "cab"]
        plan = planned(
            GraphModel(olds),
            [candidate(n, f"New {n}") for n in (1, 2, 3)],
            [goes("SUPERSEDE", old, number=n) for n, old in enumerate(olds, 1)],
        )
        assert [n.node_id for n in plan.nodes] == sorted(n.node_id for n in plan.nodes)
        assert [v.node_id for v in plan.vectors] == sorted(n.node_id for n in plan.nodes)

    def test_it_closes_its_session(self) -> None:
        plan = planned(GraphModel(), [candidate()], [goes("ADD")])
        assert plan.session is not None
        assert plan.session.session_id == SESSION_ID

    def test_a_session_of_edges_alone_may_be_committed(self) -> None:
        a, b = node("dec_a", "A"), node("dec_b", "B")
        plan = planned(GraphModel([a, b]), [], [], [edge(a, "relates_to", b)])
        assert plan.answer["applied"] == {"added": [], "updated": [], "superseded": [], "noop": []}
        assert len(plan.answer["edges_added"]) == 1

    def test_the_same_session_makes_the_same_plan(self) -> None:
        old = node(body="Old.")

        def once() -> CommitPlan:
            return planned(
                GraphModel([old]), [candidate(1, "New"), candidate(2, body="New.")], [goes("ADD"), goes("UPDATE", old, number=2)]
            )

        assert once() == once()


class TestOutline:
    def test_every_candidate_is_mapped(self) -> None:
        old = node("dec_old", body="Old.")
        sketch = outline(
            settled(
                [candidate(1), candidate(2), candidate(3, body="New."), candidate(4, "N"), candidate(5, "S", node_type="Bug")],
                [goes("ADD"), twin(2), goes("UPDATE", old, number=3), goes("NOOP", old, number=4), goes("ADD", number=5)],
            ),
            {"dec_old": old},
        )
        assert sketch.node_ids == {
            "cand_001": fresh_id(1),
            "cand_002": fresh_id(1),
            "cand_003": "dec_old",
            "cand_004": "dec_old",
            "cand_005": fresh_id(5, "Bug"),
        }

    def test_the_ends_of_its_edges_are_listed_once_each_and_sorted(self) -> None:
        a, b = node("dec_a"), node("dec_b")
        sketch = outline(settled([], [], [edge(b, "relates_to", a), edge(a, "depends_on", b, number=2)]), {"dec_a": a, "dec_b": b})
        assert sketch.existing_ends() == ("dec_a", "dec_b")


class TestTextsToEmbed:
    def test_they_are_those_of_inserted_and_updated_nodes_of_searchable_types(self) -> None:
        old = node("dec_old", body="Old.")
        texts = texts_to_embed(
            settled(
                [candidate(1, "A", body="a"), candidate(2, "B"), candidate(3, "C", node_type="Bug"), candidate(4, "D"), candidate(5, "E")],
                [
                    goes("ADD"),
                    goes("UPDATE", old, number=2),
                    goes("ADD", number=3),
                    goes("NOOP", old, number=4),
                    goes("SUPERSEDE", old, number=5),
                ],
            ),
            {"dec_old": old},
        )
        assert texts == ("A\na", "B\nOld.", "E\n")

    def test_a_text_is_listed_once(self) -> None:
        texts = texts_to_embed(settled([candidate(1), candidate(2, node_type="Requirement")], [goes("ADD"), goes("ADD", number=2)]), {})
        assert texts == (f"{TITLE}\n",)

    def test_a_second_update_of_a_node_is_read_with_the_body_of_the_first(self) -> None:
        old = node("dec_old", body="Old.")
        texts = texts_to_embed(
            settled([candidate(1, "A", body="New."), candidate(2, "B")], [goes("UPDATE", old), goes("UPDATE", old, number=2)]),
            {"dec_old": old},
        )
        assert texts == ("A\nNew.", "B\nNew.")


class TestAdministration:
    def administered(self, old: Node, action: Administration, graph: GraphModel | None = None) -> CommitPlan:
        return (graph or GraphModel([old])).administer(action, now=NOW)

    def action(self, kind: Literal["curate", "revoke"], **more: Any) -> Administration:
        return Administration(BOARD, "dec_old", kind, "asked by the owner", "admin", **more)

    def test_curating_marks_the_node_and_boosts_it(self) -> None:
        plan = self.administered(node(), self.action("curate", priority_boost=0.2))
        (after,) = plan.nodes
        assert (after.human_curated, after.priority_boost) == (True, 0.2)
        assert after.relevance_score == pytest.approx(0.4 * 0.7 + 0.2)

    def test_without_a_boost_the_boost_stays(self) -> None:
        (after,) = self.administered(node(priority_boost=0.1), self.action("curate")).nodes
        assert after.priority_boost == 0.1

    def test_curating_can_be_taken_back(self) -> None:
        (after,) = self.administered(
            node(human_curated=True, priority_boost=0.2), self.action("curate", curated=False, priority_boost=0.0)
        ).nodes
        assert (after.human_curated, after.priority_boost) == (False, 0.0)

    def test_revoking_gives_the_reason_and_a_decision_its_status(self) -> None:
        (after,) = self.administered(node(), self.action("revoke")).nodes
        assert (after.revocation_reason, after.status, after.live, after.revoked) == ("asked by the owner", "revoked", True, True)

    def test_a_superseded_decision_keeps_its_status(self) -> None:
        (after,) = self.administered(node(superseded_by="dec_new", status="superseded"), self.action("revoke")).nodes
        assert (after.status, after.revocation_reason) == ("superseded", "asked by the owner")

    def test_another_type_has_no_status(self) -> None:
        (after,) = self.administered(node(node_type="Constraint"), self.action("revoke")).nodes
        assert (after.status, after.revoked) == (None, True)

    @pytest.mark.parametrize("kind", ["curate", "revoke"])
    def test_neither_content_nor_version_nor_the_last_commit_of_the_node_changes(self, kind: Literal["curate", "revoke"]) -> None:
        old = node(version=3, commit_seq=2)
        (after,) = self.administered(old, self.action(kind)).nodes
        kept = ("version", "commit_seq", "content_digest", "title", "body", "attributes", "created_seq")
        assert {k: getattr(after, k) for k in kept} == {k: getattr(old, k) for k in kept}

    def test_revoking_resolves_the_contradictions_of_the_node(self) -> None:
        a, old = node("dec_a", "A"), node()
        graph = GraphModel([a, old], [stored_edge("dec_a", "contradicts", "dec_old", confidence=0.2)])
        (curated,) = self.administered(old, self.action("curate"), graph).nodes
        (revoked,) = self.administered(old, self.action("revoke"), graph).nodes
        assert revoked.relevance_score - curated.relevance_score == pytest.approx(0.2)

    def test_it_is_a_numbered_commit_without_a_session(self) -> None:
        plan = self.administered(node(commit_seq=4), self.action("revoke"))
        assert (plan.seq, plan.session, plan.edges, plan.vectors, plan.relevances) == (5, None, (), (), ())
        assert plan.answer == {"board_id": BOARD, "node_id": "dec_old", "action": "revoke", "audit_row_id": 5}
