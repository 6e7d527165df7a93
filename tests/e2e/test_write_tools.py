"""What the write tools do to the graph, beyond the examples of the page: contract sections 2 to 4, driven as an agent would."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.domain.model import TextVector
from pulse_kg.domain.schema import NODE_PREFIXES, NODE_TYPES
from tests.support.world import START, Agent, Consolidation, Refused, World, end, opened

LONG = (
    "Every webhook is retried with growing pauses and some randomness, so that a peer that recovers is not flooded by all callers at once."
)


def committed(session: Consolidation, *overrides: dict[str, Any]) -> dict[str, str]:
    """Commits; candidate id → node id."""
    applied = session.commit(*overrides)["applied"]
    return {entry["candidate_id"]: entry["node_id"] for kind in ("added", "updated", "noop") for entry in applied[kind]}


def decided(agent: Agent, title: str, body: str = "", *, section: str | None = None, version: int = 1, **attributes: Any) -> str:
    """Commits one Decision of spec_007; gives its node id."""
    session = agent.begin("spec_007", version)
    candidate = session.decide(title, body, section=section, **attributes)
    return committed(session)[candidate]


# Nodes and edges


@pytest.mark.parametrize("node_type", NODE_TYPES)
def test_a_node_of_each_type_gets_its_prefix_and_all_common_properties(world: World, agent: Agent, node_type: str) -> None:
    session = agent.begin("spec_007", 3)
    candidate = session.add(node_type, "Something that holds")
    node_id = committed(session)[candidate]

    node = world.node(node_id)
    prefix, _, digits = node_id.partition("_")
    assert prefix == NODE_PREFIXES[node.node_type]
    assert len(digits) == 16
    assert set(digits) <= set("0123456789abcdef")
    assert (node.source_ref, node.artifact, node.artifact_version) == ("spec:spec_007", "spec:spec_007", 3)
    assert (node.created_seq, node.commit_seq, node.version) == (1, 1, 1)
    assert (node.created_at, node.updated_at, node.created_by) == (START, START, agent.agent_id)
    assert (node.confidence, node.human_curated, node.superseded_by, node.priority_boost) == (0.7, False, None, 0.0)
    assert node.status == ("active" if node_type == "Decision" else None)
    assert node.relevance_score == pytest.approx(0.28)


def test_a_source_ref_of_another_artifact_makes_that_the_nodes_artifact_without_a_version(world: World, agent: Agent) -> None:
    session = agent.begin("spec_007", 3)
    session.add("Decision", "Elsewhere", source_ref={"artifact_id": "RFC #7: x", "artifact_type": "rfc", "section": "50%"})
    node = world.node(committed(session)["cand_001"])
    assert node.source_ref == "rfc:RFC %237%3A x#50%25"
    assert (node.artifact, node.artifact_version) == ("rfc:RFC %237%3A x", None)


def test_the_same_edge_in_both_directions_is_one_edge_where_the_relationship_has_none(agent: Agent) -> None:
    session = agent.begin()
    one, two = session.decide("Poll the queue"), session.decide("Never poll anything")
    session.edge(one, "contradicts", two)
    session.edge(two, "contradicts", one)
    session.edge(one, "depends_on", two)
    session.edge(two, "depends_on", one)

    answer = session.commit()

    assert [(e["rel"]) for e in answer["edges_added"]] == ["contradicts", "depends_on", "depends_on"]
    assert any("edge_cand_002 merged" in w for w in answer["warnings"])


def test_an_edge_between_two_existing_nodes_needs_no_node_candidate(world: World, agent: Agent) -> None:
    one, two = decided(agent, "Use a queue"), decided(agent, "Use one worker for a shard")
    session = agent.begin("spec_007", 2)
    session.edge(two, "depends_on", one, reason="a shard is a queue", evidence="spec_007", confidence=0.4)

    answer = session.commit()

    assert answer["applied"] == {"added": [], "updated": [], "superseded": [], "noop": []}
    (edge,) = world.container.graph.edges_of("alpha", [one])
    assert (edge.src, edge.rel_type, edge.dst, edge.layer) == (two, "depends_on", one, "cognitive")
    assert (edge.reason, edge.evidence, edge.confidence) == ("a shard is a queue", "spec_007", 0.4)


def test_an_edge_that_is_there_already_is_not_added_again(agent: Agent) -> None:
    one, two = decided(agent, "Use a queue"), decided(agent, "Use one worker for a shard")
    answers = []
    for _ in range(2):
        session = agent.begin("spec_007", 2)
        session.edge(two, "depends_on", one)
        answers.append(session.commit())
    assert [len(a["edges_added"]) for a in answers] == [1, 0]
    assert "is there already" in answers[1]["warnings"][0]


def test_a_pair_of_types_that_does_not_fit_is_refused_with_the_pairs_that_do(agent: Agent) -> None:
    session = agent.begin()
    session.add("Alternative", "A dead end")
    session.decide("The way")
    error = agent.refusal(
        "add_edge_candidate", session_id=session.session_id, src=end("cand_001"), dst=end("cand_002"), rel_type="contradicts"
    )
    assert (error["status"], error["code"]) == (422, "invalid_edge_endpoints")
    assert ["Decision", "Decision"] in error["details"]["allowed_pairs"]
    assert len(error["details"]["allowed_pairs"]) == 16


def test_a_cycle_of_supersedence_is_refused_in_the_session_and_through_the_graph(agent: Agent) -> None:
    old = decided(agent, "First")
    session = agent.begin("spec_007", 2)
    new = session.decide("Second")
    session.edge(new, "supersedes", old)
    newer = session.decide("Third")
    session.edge(newer, "supersedes", new)
    error = agent.refusal("add_edge_candidate", session_id=session.session_id, src=end(new), dst=end(newer), rel_type="supersedes")
    assert error["code"] == "invalid_edge_endpoints"
    ids = committed(session)

    session = agent.begin("spec_007", 3)
    error = agent.refusal("add_edge_candidate", session_id=session.session_id, src=end(old), dst=end(ids[newer]), rel_type="supersedes")
    assert error["details"]["cycle"] == [old, ids[newer], ids[new], old]


def test_a_cycle_that_only_the_mapping_closes_is_refused_at_commit_and_nothing_is_written(world: World, agent: Agent) -> None:
    old = decided(agent, "First", section="a")
    session = agent.begin("spec_007", 2)
    session.edge(session.decide("Second", section="b"), "supersedes", old)
    second = committed(session)["cand_001"]

    session = agent.begin("spec_007", 2)
    session.decide("First", section="a")  # rule 1 finds that this is the old one, which is superseded
    session.edge("cand_001", "supersedes", second)
    with pytest.raises(Refused) as refused:
        session.commit({"candidate_id": "cand_001", "hint": "NOOP", "rationale": "the same", "target_node": old})
    assert refused.value.code in {"invalid_edge_endpoints", "invalid_override"}
    assert world.container.boards.board("alpha").commit_seq == 2  # type: ignore[union-attr]


# Similar nodes


def test_types_without_vectors_are_compared_by_the_start_of_their_titles(agent: Agent) -> None:
    session = agent.begin()
    session.add("Alternative", "Retry for éver")
    session.commit()
    session = agent.begin("spec_007", 2)
    session.add("Alternative", "RETRY FOR EVERYONE")
    answer = agent.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001")
    assert answer["match_mode"] == "title_prefix"
    assert [(m["title"], m["score"]) for m in answer["matches"]] == [("Retry for éver", round(14 / 18, 4))]


def test_similar_nodes_show_what_was_superseded_and_stay_within_k(agent: Agent) -> None:
    old = decided(agent, "Retry after 3 s", "Webhooks are retried after 3 s.")
    session = agent.begin("spec_007", 2)
    session.edge(session.decide("Retry after 9 s", "Webhooks are retried after 9 s."), "supersedes", old)
    new = committed(session)["cand_001"]
    session = agent.begin("spec_007", 3)
    session.decide("Retry after 27 s", "Webhooks are retried after 27 s.")

    both = agent.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001", k=5)["matches"]
    assert {m["node_id"]: m.get("superseded_by") for m in both} == {old: new, new: None}
    assert len(agent.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001", k=1)["matches"]) == 1


def test_an_empty_board_has_no_similar_nodes(agent: Agent) -> None:
    session = agent.begin()
    session.decide("The first of all")
    assert agent.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001")["matches"] == []


# What a commit makes of the hints


def test_an_unchanged_statement_is_a_noop_and_not_a_second_node(world: World, agent: Agent) -> None:
    node_id = decided(agent, "Retry with backoff", LONG, section="retry")
    session = agent.begin("spec_007", 2)
    session.decide("  retry WITH backoff", LONG.upper(), section="retry")
    assert session.propose()["cand_001"]["hint"] == "NOOP"
    answer = session.commit()
    assert answer["applied"]["noop"] == [{"candidate_id": "cand_001", "node_id": node_id}]
    assert (world.node(node_id).version, world.container.graph.counts("alpha")["nodes"]) == (1, 1)


def test_an_update_keeps_identity_merges_attributes_and_is_found_by_its_new_text(world: World, agent: Agent) -> None:
    node_id = decided(agent, "Retry with backoff", LONG, section="retry", rationale="peers recover", confidence=0.9, status="revoked")
    before = world.node(node_id)
    world.clock.advance(days=1)
    session = agent.begin("spec_007", 2)
    body = LONG + " Pauses end at one hour."
    session.decide("Retry with backoff", body, section="retry", decided_at="2026-01-02")
    proposal = session.propose()["cand_001"]
    assert (proposal["hint"], proposal["target_node"]) == ("UPDATE", node_id)
    answer = session.commit()

    after = world.node(node_id)
    assert answer["applied"]["updated"] == [{"candidate_id": "cand_001", "node_id": node_id}]
    assert (after.created_at, after.created_by, after.created_seq) == (before.created_at, before.created_by, before.created_seq)
    assert (after.version, after.commit_seq, after.artifact_version, after.updated_at) == (2, 2, 2, START + 86_400_000)
    assert after.body == body
    assert after.attributes == {"rationale": "peers recover", "confidence": 0.9, "status": "revoked", "decided_at": "2026-01-02"}
    assert (after.confidence, after.status) == (0.9, "revoked")
    assert after.content_digest != before.content_digest
    session = agent.begin("spec_007", 3)
    session.decide("Retry with backoff", body)
    matches = agent.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001")["matches"]
    assert (matches[0]["node_id"], matches[0]["score"], matches[0]["status"]) == (node_id, 1.0, "revoked")


def test_an_update_without_a_body_leaves_the_body_and_says_so(world: World, agent: Agent) -> None:
    node_id = decided(agent, "Retry with backoff", LONG, section="retry")
    session = agent.begin("spec_007", 2)
    session.decide("Retry with backoff", section="retry", rationale="peers recover")
    answer = session.commit()
    assert answer["applied"]["updated"] == [{"candidate_id": "cand_001", "node_id": node_id}]
    assert world.node(node_id).body == LONG
    assert "leaves the body" in answer["warnings"][0]


def test_a_newer_version_with_another_title_at_the_same_reference_supersedes(world: World, agent: Agent) -> None:
    old = decided(agent, "Retry with linear backoff", LONG, section="retry", version=1)
    session = agent.begin("spec_007", 2)
    session.decide("Retry with exponential backoff", LONG, section="retry")
    assert session.propose()["cand_001"]["hint"] == "SUPERSEDE"
    answer = session.commit()
    new = answer["applied"]["added"][0]["node_id"]
    assert answer["applied"]["superseded"] == [{"candidate_id": "cand_001", "node_id": new, "target_node": old}]
    assert [(e["src"], e["rel"], e["dst"]) for e in answer["edges_added"]] == [(new, "supersedes", old)]
    assert answer["superseded_nodes"] == [{"node_id": old, "superseded_by": new}]
    node = world.node(old)
    assert (node.superseded_by, node.superseded_at, node.status, node.version) == (new, START, "superseded", 2)


def test_a_superseded_statement_that_an_old_version_repeats_is_not_revived(world: World, agent: Agent) -> None:
    old = decided(agent, "Retry with linear backoff", LONG, section="retry", version=1)
    session = agent.begin("spec_007", 2)
    session.decide("Retry with exponential backoff", LONG, section="retry")
    session.commit()
    session = agent.begin("spec_007", 1)
    session.decide("Retry with linear backoff", LONG, section="retry")
    proposal = session.propose()["cand_001"]
    assert (proposal["hint"], proposal["target_node"]) == ("NOOP", old)
    session = agent.begin("spec_007", 3)
    session.decide("Retry with linear backoff", LONG, section="retry")
    assert session.propose()["cand_001"]["hint"] == "SUPERSEDE"


def test_equal_candidates_of_one_session_become_one_node(agent: Agent) -> None:
    session = agent.begin()
    session.decide("Retry with backoff", LONG)
    session.decide("Retry with  backoff", LONG)
    proposal = session.propose()["cand_002"]
    assert (proposal["hint"], "target_node" in proposal) == ("NOOP", False)
    answer = session.commit()
    node_id = answer["applied"]["added"][0]["node_id"]
    assert answer["applied"]["noop"] == [{"candidate_id": "cand_002", "node_id": node_id}]


def test_a_candidate_that_supersedes_another_new_one_inserts_both_and_the_older_is_history_at_once(world: World, agent: Agent) -> None:
    session = agent.begin()
    old, new = session.decide("Retry after 3 s"), session.decide("Drop what fails")
    session.edge(new, "supersedes", old)
    assert [p["hint"] for p in session.propose().values()] == ["ADD", "ADD"]
    answer = session.commit()
    ids = {e["candidate_id"]: e["node_id"] for e in answer["applied"]["added"]}
    assert answer["superseded_nodes"] == [{"node_id": ids[old], "superseded_by": ids[new]}]
    assert world.node(ids[old]).superseded_by == ids[new]


def test_an_edge_to_what_was_history_already_stays_history(world: World, agent: Agent) -> None:
    old = decided(agent, "First")
    session = agent.begin("spec_007", 2)
    session.edge(session.decide("Second"), "supersedes", old)
    second = committed(session)["cand_001"]
    session = agent.begin("spec_007", 3)
    session.decide("Third")
    added = agent.call("add_edge_candidate", session_id=session.session_id, src=end("cand_001"), dst=end(old), rel_type="supersedes")
    assert second in added["warnings"][0]
    answer = session.commit()
    assert len(answer["edges_added"]) == 1
    assert answer["superseded_nodes"] == []
    assert world.node(old).superseded_by == second


def test_what_comes_after_the_last_propose_is_proposed_at_commit(agent: Agent) -> None:
    old = decided(agent, "First")
    session = agent.begin("spec_007", 2)
    new = session.decide("Second")
    assert session.propose()[new]["hint"] == "ADD"
    session.edge(new, "supersedes", old)
    session.decide("First")
    answer = session.commit()
    assert [s["target_node"] for s in answer["applied"]["superseded"]] == [old]
    assert answer["applied"]["noop"] == [{"candidate_id": "cand_002", "node_id": old}]


def test_relevance_counts_edges_and_contradictions_at_once(world: World, agent: Agent) -> None:
    session = agent.begin()
    one, two = session.decide("Poll the queue", confidence=0.5), session.decide("Never poll anything", confidence=1.0)
    session.edge(one, "contradicts", two, confidence=0.3)
    ids = committed(session)
    central = 0.3 * math.log(2) / math.log(100)
    assert world.node(ids[one]).relevance_score == pytest.approx(0.4 * 0.5 + central)
    assert world.node(ids[two]).relevance_score == pytest.approx(0.4 * 1.0 + central - 0.3)


@pytest.mark.parametrize("rationale", [{}, {"rationale": ""}, {"rationale": " \n "}, {"rationale": None}, {"rationale": "r" * 4_001}])
def test_an_override_without_its_reason_is_an_invalid_override_and_changes_nothing(
    world: World, agent: Agent, rationale: dict[str, Any]
) -> None:
    session = agent.begin()
    session.decide("One")
    with pytest.raises(Refused) as refused:
        session.commit({"candidate_id": "cand_001", "hint": "ADD", **rationale})
    assert (refused.value.status, refused.value.code) == (422, "invalid_override")
    assert refused.value.details["problems"][0]["path"] == "agent_overrides[0].rationale"
    assert world.container.graph.counts("alpha")["nodes"] == 0


# Repeats


def test_a_repeated_commit_answers_the_first_answer_and_writes_nothing(world: World, agent: Agent) -> None:
    session = agent.begin()
    session.decide("Once")
    first = session.commit()
    world.clock.advance(seconds=7200)
    assert session.commit() == first
    assert world.container.boards.board("alpha").commit_seq == 1  # type: ignore[union-attr]


def test_an_idempotency_key_gives_the_same_candidate_again(agent: Agent) -> None:
    session = agent.begin()
    for _ in range(2):
        assert session.add("Decision", "Once", idempotency_key="k1") == "cand_001"
    assert session.add("Decision", "Once") == "cand_002"
    error = agent.refusal("add_node_candidate", session_id=session.session_id, node_type="Decision", title="Other", idempotency_key="k1")
    assert (error["status"], error["code"]) == (409, "idempotency_conflict")


def test_a_large_answer_never_makes_a_commit_look_refused() -> None:
    with opened(environment={"PULSE_KG_MAX_RESPONSE_BYTES": "65536"}) as world:
        world.board("alpha")
        session = world.agent().begin()
        for number in range(500):
            session.add("Alternative", f"Way {number}")
        for number in range(2, 501):
            session.edge("cand_001", "relates_to", f"cand_{number:03d}")
        assert len(session.commit()["applied"]["added"]) == 500
        assert session.commit()["committed"] is True


# The record


def test_the_audit_row_holds_the_whole_session(world: World, agent: Agent) -> None:
    world.clock.advance(seconds=1)
    session = agent.begin("spec_007", 4, payload_hash="sha256:" + "0" * 64)
    session.decide("One", confidence=0.5)
    session.decide("Two")
    session.edge("cand_001", "depends_on", "cand_002", reason="because")
    session.propose()
    world.clock.advance(seconds=2)
    answer = session.commit({"candidate_id": "cand_002", "hint": "ADD", "rationale": "sure"})

    row = world.container.commits.audit_row("alpha", 1)
    assert row is not None
    assert (row["audit_row_id"], row["session_id"], row["board_id"], row["agent_id"]) == (1, session.session_id, "alpha", agent.agent_id)
    assert row["source"] == {"source_type": "spec", "source_id": "spec_007", "source_version": 4}
    assert (row["content_hash"], row["hash_basis"]) == ("sha256:" + "0" * 64, "payload")
    assert (row["started_at"], row["committed_at"]) == ("2026-01-01T00:00:01.000Z", "2026-01-01T00:00:03.000Z")
    assert [c["title"] for c in row["candidates"]["nodes"]] == ["One", "Two"]
    assert row["candidates"]["edges"][0]["attributes"] == {"reason": "because"}
    assert [p["hint"] for p in row["proposals"]] == ["ADD", "ADD"]
    assert row["overrides"] == [{"candidate_id": "cand_002", "hint": "ADD", "rationale": "sure"}]
    assert row["mapping"] == {e["candidate_id"]: e["node_id"] for e in answer["applied"]["added"]}
    assert row["counts"] == {"added": 2, "updated": 0, "superseded": 0, "noop": 0, "edges_added": 1}
    json.dumps(row)


def test_the_outbox_holds_one_cloud_event_a_commit(world: World, agent: Agent) -> None:
    session = agent.begin("spec_007", 4)
    session.decide("One")
    answer = session.commit()
    (record,) = world.container.commits.outbox("alpha")
    event = record.event
    assert record.state == "applied"
    assert (event["specversion"], event["type"], event["subject"]) == ("1.0", "kg.consolidated.v1", session.session_id)
    assert event["time"] == "2026-01-01T00:00:00.000Z"
    assert {"id", "source"} <= event.keys()
    assert event["data"]["applied"] == answer["applied"]
    assert event["data"].keys() == {
        "board_id",
        "session_id",
        "audit_row_id",
        "content_hash",
        "source",
        "agent_id",
        "counts",
        "applied",
        "edges_added",
    }


# Embedding


class CountingEmbedder(HashingEmbedder):
    """Remembers every text that it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        self.texts += texts
        return super().embed(texts, timeout_seconds=timeout_seconds)


def test_each_text_is_embedded_once_and_what_is_there_already_not_at_all() -> None:
    embedder = CountingEmbedder()
    with opened(embedder=embedder) as world:
        world.board("alpha")
        agent = world.agent()
        session = agent.begin()
        session.decide("One", "first")
        session.decide("Two")
        session.add("Alternative", "Three")
        agent.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001")
        session.propose()
        session.propose()
        session.commit()
        assert sorted(embedder.texts) == ["One\nfirst", "Two\n"]

        again = agent.begin("spec_007", 2)
        again.decide("One", "first")
        again.decide("Two")
        assert [p["hint"] for p in again.propose().values()] == ["NOOP", "NOOP"]
        again.commit()
        assert len(embedder.texts) == 2


def test_a_noop_that_is_overridden_to_add_gets_its_vector_all_the_same(world: World, agent: Agent) -> None:
    decided(agent, "One", "first")
    session = agent.begin("spec_007", 2)
    session.decide("One", "first")
    session.propose()
    answer = session.commit({"candidate_id": "cand_001", "hint": "ADD", "rationale": "another one"})
    (added,) = answer["applied"]["added"]
    assert added["node_id"] in {node_id for node_id, _, _ in world.container.vectors.all_vectors("alpha")}
