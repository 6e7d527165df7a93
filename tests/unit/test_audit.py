"""The audit row: JSON, complete, and enough to plan its commit again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from pulse_kg.domain.audit import (
    Administration,
    AuditRow,
    administration_of,
    edge_candidate_dict,
    edge_candidate_of,
    node_candidate_dict,
    node_candidate_of,
    overrides_list,
    proposal_dict,
    proposal_of,
    replayed,
)
from pulse_kg.domain.model import Candidates, EdgeCandidate, NodeCandidate, Override, Proposal, Target
from tests.support.drafts import BOARD, NOW, SESSION_ID, candidate, edge, node, session
from tests.support.graph_model import GraphModel

REF = "spec:spec_007#retry-strategy"
WHY = "the maintainers asked for it"
RICH = candidate(
    2,
    body="New.",
    ref=REF,
    attributes={"rationale": "r", "confidence": 0.9, "zeal": [1, {"a": None}]},
    unknown_keys=("zeal",),
)


def through_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a store gives back."""
    again: dict[str, Any] = json.loads(json.dumps(value))
    return again


def board() -> GraphModel:
    """A board with a node to be superseded and one of the past."""
    return GraphModel([node("dec_old", "Retry at a fixed pace"), node("dec_past", "Never retry", superseded_by="dec_old")])


CANDIDATES = Candidates(
    (candidate(1), RICH, candidate(3)),
    (
        edge("cand_001", "supersedes", "dec_old", attributes={"reason": "load", "zeal": 1}, unknown_keys=("zeal",)),
        edge("cand_002", "supersedes", "dec_past", number=2, target_was_live=False),
        edge("cand_002", "relates_to", "cand_001", number=3, layer="deterministic", rule_id="r1"),
    ),
)
OVERRIDES = (Override("cand_002", "ADD", WHY), Override("cand_003", "NOOP", WHY, "dec_old"))


def committed() -> AuditRow:
    """The row of a commit with a bit of everything."""
    return board().commit(session(), CANDIDATES, OVERRIDES, now=NOW).audit


class TestConsolidationRow:
    def test_it_says_what_was_done_by_whom_and_from_what(self) -> None:
        row = committed()
        assert {
            k: row[k] for k in ("audit_row_id", "kind", "board_id", "session_id", "agent_id", "content_hash", "hash_basis", "event_id")
        } == {
            "audit_row_id": 2,
            "kind": "consolidation",
            "board_id": BOARD,
            "session_id": SESSION_ID,
            "agent_id": "agt_second",
            "content_hash": "sha256:" + "0" * 64,
            "hash_basis": "version",
            "event_id": f"{BOARD}.2",
        }
        assert row["source"] == {"source_type": "spec", "source_id": "spec_007", "source_version": 2}
        assert (row["started_at"], row["committed_at"]) == ("2026-05-07T16:29:00.000Z", "2026-05-07T16:30:00.000Z")

    def test_it_has_every_candidate_as_it_was_given(self) -> None:
        row = committed()
        assert row["candidates"]["nodes"][1] == {
            "candidate_id": "cand_002",
            "node_type": "Decision",
            "title": RICH.draft.title,
            "body": "New.",
            "attributes": {"rationale": "r", "confidence": 0.9, "zeal": [1, {"a": None}]},
            "source_ref": REF,
            "unknown_keys": ["zeal"],
        }
        assert row["candidates"]["edges"][0] == {
            "edge_candidate_id": "edge_cand_001",
            "src": {"candidate_id": "cand_001"},
            "rel_type": "supersedes",
            "dst": {"node_id": "dec_old"},
            "attributes": {"reason": "load", "zeal": 1},
            "layer": "cognitive",
            "rule_id": None,
            "unknown_keys": ["zeal"],
            "target_was_live": True,
        }
        assert (len(row["candidates"]["nodes"]), len(row["candidates"]["edges"])) == (3, 3)

    def test_it_has_every_proposal_override_and_what_was_done(self) -> None:
        row = committed()
        assert [(p["candidate_id"], p["hint"], p["rule"]) for p in row["proposals"]] == [
            ("cand_001", "SUPERSEDE", 2),
            ("cand_002", "ADD", 6),
            ("cand_003", "NOOP", 1),
        ]
        assert row["overrides"] == [
            {"candidate_id": "cand_002", "hint": "ADD", "rationale": WHY},
            {"candidate_id": "cand_003", "hint": "NOOP", "rationale": WHY, "target_node": "dec_old"},
        ]
        assert [(r["hint"], r["overridden"]) for r in row["resolutions"]] == [("SUPERSEDE", False), ("ADD", True), ("NOOP", True)]

    def test_it_has_the_mapping_the_counts_and_what_was_answered(self) -> None:
        plan = board().commit(session(), CANDIDATES, OVERRIDES, now=NOW)
        assert list(plan.audit["mapping"]) == ["cand_001", "cand_002", "cand_003"]
        assert plan.audit["counts"] == {"added": 2, "updated": 0, "superseded": 1, "noop": 1, "edges_added": 3}
        for key in ("applied", "edges_added", "superseded_nodes", "warnings"):
            assert plan.audit[key] == plan.answer[key]
        assert len(plan.audit["warnings"]) == 2

    def test_it_is_json(self) -> None:
        row = committed()
        assert through_json(row) == row

    def test_its_session_can_be_planned_again(self) -> None:
        graph = board()
        before = graph.resolved(session(), CANDIDATES, OVERRIDES)
        again = replayed(through_json(graph.plan(before, NOW).audit))
        assert (again.candidates, tuple(again.proposals), tuple(again.overrides), tuple(again.resolutions)) == (
            before.candidates,
            tuple(before.proposals),
            tuple(before.overrides),
            tuple(before.resolutions),
        )
        kept = ("session_id", "board_id", "agent_id", "source", "content_hash", "hash_basis", "started_at")
        assert {k: getattr(again.session, k) for k in kept} == {k: getattr(session(), k) for k in kept}

    def test_planning_it_again_makes_the_same_plan(self) -> None:
        first, second = board(), board()
        plan = first.commit(session(), CANDIDATES, OVERRIDES, now=NOW)
        again = second.replay(through_json(plan.audit))
        assert (again.nodes, again.edges, again.vectors, again.relevances) == (plan.nodes, plan.edges, plan.vectors, plan.relevances)
        assert (again.answer, again.audit, again.event) == (plan.answer, plan.audit, plan.event)


class TestParts:
    @pytest.mark.parametrize("given", CANDIDATES.nodes, ids=lambda c: c.candidate_id)
    def test_a_node_candidate_is_read_back(self, given: NodeCandidate) -> None:
        assert node_candidate_of(through_json(node_candidate_dict(given))) == given

    @pytest.mark.parametrize("given", CANDIDATES.edges, ids=lambda c: c.candidate_id)
    def test_an_edge_candidate_is_read_back(self, given: EdgeCandidate) -> None:
        assert edge_candidate_of(through_json(edge_candidate_dict(given))) == given

    @pytest.mark.parametrize(
        "given",
        [
            Proposal("cand_001", "ADD", 6, "none is near"),
            Proposal("cand_002", "SUPERSEDE", 2, "edges", (Target("dec_a", 1), Target("dec_b", 7)), None, None, ("careful",), 12),
            Proposal("cand_003", "NOOP", 1, "twin", (), "cand_001"),
            Proposal("cand_004", "UPDATE", 4, "near", (Target("dec_a", 1),), None, 0.9612),
        ],
        ids=lambda p: p.hint,
    )
    def test_a_proposal_is_read_back(self, given: Proposal) -> None:
        assert proposal_of(through_json(proposal_dict(given))) == given

    def test_an_override_is_listed_as_it_was_given(self) -> None:
        assert overrides_list([Override("cand_001", "ADD", WHY)]) == [{"candidate_id": "cand_001", "hint": "ADD", "rationale": WHY}]


class TestAdministrationRow:
    @pytest.mark.parametrize("kind", ["curate", "revoke"])
    def test_it_is_json_and_its_action_is_read_back(self, kind: Literal["curate", "revoke"]) -> None:
        action = Administration(BOARD, "dec_old", kind, WHY, "admin", curated=kind == "revoke", priority_boost=0.1)
        row = board().administer(action, now=NOW).audit
        assert administration_of(through_json(row)) == action
        assert (row["audit_row_id"], row["kind"], row["committed_at"]) == (2, "administration", "2026-05-07T16:30:00.000Z")
        assert (row["event_id"], row["session_id"]) == (f"{BOARD}.2", None)

    def test_replaying_it_makes_the_same_plan(self) -> None:
        first, second = board(), board()
        plan = first.administer(Administration(BOARD, "dec_old", "curate", WHY, "admin", priority_boost=0.2), now=NOW)
        again = second.replay(through_json(plan.audit))
        assert again == plan
