"""The events of the outbox: CloudEvents 1.0."""

from __future__ import annotations

import json

from pulse_kg.domain import events
from pulse_kg.domain.audit import Administration
from pulse_kg.domain.events import MAX_EVENT_BYTES, event_id
from pulse_kg.domain.model import Candidates
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.schema import canonical_json
from tests.support.drafts import BOARD, NOW, SESSION_ID, candidate, edge, node, session
from tests.support.graph_model import GraphModel

QUEUE_BYTES = 262_144


def committed(size: int = 2) -> CommitPlan:
    """A commit of that many nodes, each related to the next."""
    nodes = tuple(candidate(n, f"Statement {n}", node_type="Bug") for n in range(1, size + 1))
    edges = tuple(edge(f"cand_{n:03d}", "relates_to", f"cand_{n + 1:03d}", number=n) for n in range(1, size))
    return GraphModel().commit(session(), Candidates(nodes, edges), now=NOW)


class TestConsolidated:
    def test_it_is_a_cloud_event_of_the_board_about_the_session(self) -> None:
        event = committed().event
        assert {k: v for k, v in event.items() if k != "data"} == {
            "specversion": "1.0",
            "id": f"{BOARD}.1",
            "source": f"/pulse-kg/boards/{BOARD}",
            "type": "kg.consolidated.v1",
            "subject": SESSION_ID,
            "time": "2026-05-07T16:30:00.000Z",
            "datacontenttype": "application/json",
        }

    def test_its_data_says_what_was_committed(self) -> None:
        plan = committed()
        assert plan.event["data"] == {
            "board_id": BOARD,
            "session_id": SESSION_ID,
            "audit_row_id": 1,
            "content_hash": "sha256:" + "0" * 64,
            "source": {"source_type": "spec", "source_id": "spec_007", "source_version": 2},
            "agent_id": "agt_second",
            "counts": {"added": 2, "updated": 0, "superseded": 0, "noop": 0, "edges_added": 1},
            "applied": plan.answer["applied"],
            "edges_added": plan.answer["edges_added"],
        }

    def test_it_is_json(self) -> None:
        event = committed().event
        assert json.loads(json.dumps(event)) == event

    def test_the_same_commit_has_the_same_id_each_time(self) -> None:
        assert committed().event == committed().event
        assert event_id("alpha", 7) == "alpha.7"

    def test_ids_of_boards_and_numbers_do_not_run_into_each_other(self) -> None:
        assert event_id("alpha1", 2) != event_id("alpha", 12)

    def test_over_the_queues_size_it_carries_counts_and_a_reference(self) -> None:
        plan = committed(1_600)
        data = plan.event["data"]
        assert len(canonical_json(plan.answer).encode()) > QUEUE_BYTES
        assert len(canonical_json(plan.event).encode()) < MAX_EVENT_BYTES < QUEUE_BYTES
        assert "applied" not in data
        assert "edges_added" not in data
        assert (data["audit_row_id"], data["counts"]["added"], data["counts"]["edges_added"]) == (1, 1_600, 1_599)
        assert data["lists"] == "see the audit row"
        assert len(plan.audit["applied"]["added"]) == 1_600

    def test_the_limit_leaves_room_for_attributes(self) -> None:
        assert events.MAX_EVENT_BYTES < QUEUE_BYTES


class TestAdministered:
    def test_it_says_what_was_done_to_which_node(self) -> None:
        old = node()
        event = GraphModel([old]).administer(Administration(BOARD, "dec_old", "revoke", "withdrawn", "admin"), now=NOW).event
        assert (event["type"], event["id"], event["subject"]) == ("kg.administered.v1", f"{BOARD}.2", "dec_old")
        assert event["data"] == {"board_id": BOARD, "audit_row_id": 2, "action": "revoke", "node_id": "dec_old", "agent_id": "admin"}
