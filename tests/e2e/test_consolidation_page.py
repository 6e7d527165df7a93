"""Each example of the consolidation page, told with this board's own nodes: fields, types, nulls, order and state changes."""

from __future__ import annotations

import re

import pytest

from tests.support.world import START, Agent, Refused, World

FIXED = "Fixed 3 s retry interval, 5 attempts"
BACKOFF = "Exponential backoff with jitter for webhook retries"


@pytest.fixture
def fixed(agent: Agent) -> str:
    """A decision that is there before the story begins."""
    session = agent.begin("spec_007", 1)
    session.decide(FIXED, "Every webhook is retried after 3 s, at most 5 times.", section="retry-strategy", confidence=0.8)
    node_id: str = session.commit()["applied"]["added"][0]["node_id"]
    return node_id


def test_begin_answers_a_handle_the_hash_and_the_expiry(agent: Agent) -> None:
    answer = agent.call(
        "okto_pulse_kg_begin_consolidation",
        board_id="alpha",
        source_type="spec",
        source_id="spec_007",
        source_version=4,
        payload_hash="sha256:" + "8c1f" * 16,
    )

    assert re.fullmatch(r"kgs_[0-9A-HJKMNP-TV-Z]{26}", answer["session_id"])
    assert answer == {
        "session_id": answer["session_id"],
        "content_hash": "sha256:" + "8c1f" * 16,
        "nothing_changed": False,
        "expires_at": "2026-01-01T01:00:00.000Z",
        "hash_basis": "payload",
    }


def test_begin_over_content_that_was_committed_before_answers_nothing_changed_and_stores_nothing(world: World, agent: Agent) -> None:
    content_hash = "sha256:" + "ab" * 32
    session = agent.begin("spec_007", 4, payload_hash=content_hash)
    session.decide("Retries stop after a day")
    session.commit()

    answer = agent.call(
        "begin_consolidation", board_id="alpha", source_type="spec", source_id="spec_007", source_version=5, payload_hash=content_hash
    )

    assert answer == {"session_id": None, "content_hash": content_hash, "nothing_changed": True}
    assert world.container.sessions.open_sessions(board_id="alpha", now=START) == ()


def test_begin_without_a_payload_hash_goes_by_the_version_and_says_so(agent: Agent) -> None:
    def begin(version: int) -> dict[str, object]:
        return agent.call("begin_consolidation", board_id="alpha", source_type="spec", source_id="spec_007", source_version=version)

    first = begin(4)
    assert first["hash_basis"] == "version"
    agent.call("add_node_candidate", session_id=first["session_id"], node_type="Decision", title="Retries stop after a day")
    agent.call("commit_consolidation", session_id=first["session_id"])

    assert begin(4)["nothing_changed"] is True
    assert begin(5)["nothing_changed"] is False


def test_begin_takes_the_hash_of_an_artifact_version_that_was_ingested(world: World, agent: Agent) -> None:
    from pulse_kg.domain.refs import Artifact

    canonical = "sha256:" + "cd" * 32
    world.container.commits.record_ingested("alpha", Artifact("spec", "spec_007"), 4, canonical, now=START)

    answer = agent.call("begin_consolidation", board_id="alpha", source_type="spec", source_id="spec_007", source_version=4)

    assert (answer["content_hash"], answer["hash_basis"]) == (canonical, "artifact")


def test_a_node_candidate_is_numbered_and_queued(agent: Agent) -> None:
    session = agent.begin("spec_007", 4)

    answer = agent.call(
        "add_node_candidate",
        session_id=session.session_id,
        node_type="Decision",
        title=BACKOFF,
        body="Fixed retries arrive together when a peer recovers.",
        attributes={"confidence": 0.9, "rationale": "Spreads the load"},
        source_ref={"spec_id": "spec_007", "section": "retry-strategy"},
    )

    assert answer == {"candidate_id": "cand_001", "node_type": "Decision", "embedding_status": "queued"}
    assert session.add("Constraint", "Receivers answer within 30 s") == "cand_002"


def test_an_edge_candidate_may_join_a_candidate_and_a_node(agent: Agent, fixed: str) -> None:
    session = agent.begin("spec_007", 4)
    session.decide(BACKOFF)

    answer = agent.call(
        "add_edge_candidate",
        session_id=session.session_id,
        src={"candidate_id": "cand_001"},
        dst={"node_id": fixed},
        rel_type="supersedes",
        attributes={"reason": "all retries arrive together"},
    )

    assert answer == {"edge_candidate_id": "edge_cand_001", "rel_type": "supersedes", "valid": True}


def test_similar_nodes_come_best_first_with_their_scores(world: World, agent: Agent, fixed: str) -> None:
    session = agent.begin("spec_007", 2)
    session.decide("No retry, drop on failure", section="drop")
    session.commit()
    session = agent.begin("spec_007", 4)
    session.decide("Fixed 5 s retry interval, 5 attempts", "Every webhook is retried after 5 s, at most 5 times.")

    answer = agent.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001", k=5)

    assert answer["candidate_id"] == "cand_001"
    assert answer["match_mode"] == world.container.vectors.match_mode
    assert [m["title"] for m in answer["matches"]] == [FIXED, "No retry, drop on failure"]
    assert answer["matches"][0].keys() == {"node_id", "title", "score"}
    assert answer["matches"][0]["node_id"] == fixed
    assert 1 >= answer["matches"][0]["score"] > answer["matches"][1]["score"] >= 0


def test_proposals_name_hint_target_and_reason_for_each_candidate_in_order(agent: Agent, fixed: str) -> None:
    session = agent.begin("spec_007", 4)
    session.decide(BACKOFF)
    session.add("Constraint", "Receivers answer within 30 s")
    session.edge("cand_001", "supersedes", fixed)

    answer = agent.call("propose_reconciliation", session_id=session.session_id)

    assert answer["session_id"] == session.session_id
    first, second = answer["proposals"]
    assert (first["candidate_id"], first["hint"], first["target_node"]) == ("cand_001", "SUPERSEDE", fixed)
    assert (second["candidate_id"], second["hint"]) == ("cand_002", "ADD")
    assert "target_node" not in second
    assert first["rationale"]
    assert "0.70" in second["rationale"]


def test_a_commit_with_an_override_adds_and_still_writes_the_explicit_edge(world: World, agent: Agent, fixed: str) -> None:
    session = agent.begin("spec_007", 4)
    session.decide(BACKOFF)
    session.edge("cand_001", "supersedes", fixed)
    assert session.propose()["cand_001"]["hint"] == "SUPERSEDE"

    answer = session.commit({"candidate_id": "cand_001", "hint": "ADD", "rationale": "Both hold, for different peers"})

    new = answer["applied"]["added"][0]["node_id"]
    assert answer["session_id"] == session.session_id
    assert answer["committed"] is True
    assert answer["applied"] == {
        "added": [{"candidate_id": "cand_001", "node_id": new}],
        "updated": [],
        "superseded": [],
        "noop": [],
    }
    (edge,) = answer["edges_added"]
    assert re.fullmatch(r"edge_[0-9a-f]{16}", edge["edge_id"])
    assert (edge["src"], edge["rel"], edge["dst"]) == (new, "supersedes", fixed)
    assert answer["audit_row_id"] == 2
    assert answer["outbox_event"] == "kg.consolidated.v1"
    assert answer["superseded_nodes"] == [{"node_id": fixed, "superseded_by": new}]
    assert answer["warnings"] == [f"ADD kept, but edge_cand_001 supersedes {fixed}"]
    assert world.node(fixed).superseded_by == new


def test_abort_drops_the_session_and_writes_nothing(world: World, agent: Agent) -> None:
    session = agent.begin()
    session.decide("Never to be seen")

    assert session.abort() == {"session_id": session.session_id, "aborted": True}

    assert list(world.container.graph.all_nodes("alpha")) == []
    assert agent.refusal("commit_consolidation", session_id=session.session_id)["code"] == "session_aborted"


def test_the_whole_story_in_six_calls(world: World, agent: Agent, fixed: str) -> None:
    session = agent.begin("spec_007", 4)
    cand = session.decide(BACKOFF, "Fixed retries arrive together when a peer recovers.", section="retries", confidence=0.9)
    similar = agent.call("get_similar_nodes", session_id=session.session_id, candidate_id=cand, k=5)
    assert similar["matches"][0]["node_id"] == fixed
    session.edge(cand, "supersedes", fixed)
    proposal = session.propose()[cand]
    assert (proposal["hint"], proposal["target_node"]) == ("SUPERSEDE", fixed)
    answer = session.commit()

    new = answer["applied"]["added"][0]["node_id"]
    assert answer["applied"]["superseded"] == [{"candidate_id": cand, "node_id": new, "target_node": fixed}]
    assert [(e["src"], e["rel"], e["dst"]) for e in answer["edges_added"]] == [(new, "supersedes", fixed)]
    old = world.node(fixed)
    assert (old.superseded_by, old.status, old.version) == (new, "superseded", 2)
    assert world.node(new).confidence == 0.9


@pytest.mark.parametrize("rel_type", ["derives_from", "mentions", "violates", "implements", "tests", "belongs_to"])
def test_the_workers_relationships_are_refused_to_agents(agent: Agent, rel_type: str) -> None:
    session = agent.begin()
    session.decide("One")
    session.add("Entity", "Two")

    error = agent.refusal(
        "add_edge_candidate",
        session_id=session.session_id,
        src={"candidate_id": "cand_001"},
        dst={"candidate_id": "cand_002"},
        rel_type=rel_type,
    )

    assert (error["status"], error["code"]) == (403, "reserved_edge_type")


def test_an_expired_session_says_so_and_not_that_it_never_was(world: World, agent: Agent) -> None:
    session = agent.begin()
    session.decide("Late")
    world.clock.advance(seconds=3600)

    with pytest.raises(Refused) as late:
        session.commit()

    assert (late.value.status, late.value.code) == (409, "session_expired")


def test_a_rival_commit_makes_a_conflict_and_a_propose_makes_it_good(agent: Agent, fixed: str) -> None:
    mine, rival = agent.begin("spec_007", 4), agent.begin("spec_007", 5)
    for session, title in ((mine, "Exponential backoff"), (rival, "Fibonacci backoff")):
        session.edge(session.decide(title), "supersedes", fixed)
        session.propose()
    rival.commit()

    with pytest.raises(Refused) as conflict:
        mine.commit()
    assert (conflict.value.status, conflict.value.code) == (409, "commit_conflict")
    assert conflict.value.details["nodes"] == [fixed]
    assert agent.refusal("commit_consolidation", session_id=mine.session_id)["code"] == "commit_conflict"

    assert mine.propose()["cand_001"]["hint"] == "ADD"
    answer = mine.commit()
    assert len(answer["edges_added"]) == 1
    assert answer["superseded_nodes"] == []


def test_unknown_attributes_are_told_at_once_and_dropped_at_commit_with_a_warning_in_the_audit_row(world: World, agent: Agent) -> None:
    session = agent.begin()
    added = agent.call(
        "add_node_candidate",
        session_id=session.session_id,
        node_type="Decision",
        title="Keep it",
        attributes={"mood": "good", "rationale": "It works"},
    )
    assert "'mood'" in added["warnings"][0]

    answer = session.commit()

    assert any("'mood'" in w for w in answer["warnings"])
    row = world.container.commits.audit_row("alpha", 1)
    assert row is not None
    assert any("'mood'" in w for w in row["warnings"])
    assert row["candidates"]["nodes"][0]["attributes"] == {"mood": "good", "rationale": "It works"}
    assert world.node(answer["applied"]["added"][0]["node_id"]).attributes == {"rationale": "It works"}


def test_a_strict_board_refuses_unknown_attributes(world: World, agent: Agent) -> None:
    world.container.boards.set_setting("alpha", "strict_attributes", value=True)
    session = agent.begin()

    error = agent.refusal(
        "add_node_candidate",
        session_id=session.session_id,
        node_type="Decision",
        title="Keep it",
        attributes={"mood": "good", "tone": "mild"},
    )

    assert (error["status"], error["code"]) == (422, "unknown_attribute")
    assert [p["path"] for p in error["details"]["problems"]] == ["attributes.mood", "attributes.tone"]


def test_too_many_consolidations_a_minute_are_told_when_to_go_on(world: World) -> None:
    agent = world.agent("busy")
    with_limit = {"PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "2"}
    from tests.support.world import opened

    with opened(environment=with_limit) as small:
        small.board("alpha")
        agent = small.agent("busy")
        small.clock.advance(seconds=10)
        agent.begin("a")
        agent.begin("b")
        error = agent.refusal("begin_consolidation", board_id="alpha", source_type="spec", source_id="c", source_version=1)
        assert (error["status"], error["code"], error["retryable"]) == (429, "rate_limit", True)
        assert error["details"]["retry_after_seconds"] == 50
        small.clock.advance(seconds=50)
        agent.begin("c")
