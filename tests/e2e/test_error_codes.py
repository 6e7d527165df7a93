"""Every code of the contract that the write tools can answer, what it tells, and which of two refusals wins."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import open_container
from pulse_kg.domain.audit import Administration
from pulse_kg.domain.model import TextVector
from pulse_kg.errors import EmbedderTimeout, StoreUnavailable, Unauthorized
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.mcp.tools import all_tools
from pulse_kg.ports.embedder import ModelInfo
from pulse_kg.usecases.administration import administer_node
from pulse_kg.usecases.identity import deny_board
from pulse_kg.usecases.verify import verify_board
from tests.support.bad_input import dump, fault_of_envelope, leaks_of
from tests.support.crash_points import Faults, When, faulty_host
from tests.support.world import START, Agent, Consolidation, FixedClock, Refused, World, opened

TOOLS = tuple(tool.name for tool in all_tools() if tool.flag.startswith("kg.session."))
"""The tools of a session; those that read have their own tests."""
SESSION_TOOLS = TOOLS[1:]
DAY = 86_400
HOUR = 3_600


def arguments(tool: str, session_id: str) -> dict[str, Any]:
    """Good arguments of a session tool."""
    edge = {"src": {"candidate_id": "cand_001"}, "dst": {"candidate_id": "cand_002"}, "rel_type": "relates_to"}
    more: dict[str, dict[str, Any]] = {
        "add_node_candidate": {"node_type": "Decision", "title": "Calls end after a minute"},
        "add_edge_candidate": edge,
        "get_similar_nodes": {"candidate_id": "cand_001"},
    }
    return {"session_id": session_id, **more.get(tool, {})}


def two_decisions(agent: Agent, source_id: str = "spec_007") -> Consolidation:
    """An open session with two candidates."""
    session = agent.begin(source_id)
    session.decide("Retries stop after a day")
    session.decide("Logs are kept for a week")
    return session


def facts(error: Mapping[str, Any]) -> tuple[int, str, bool]:
    """What a program goes by."""
    assert fault_of_envelope({"error": error}) is None
    return error["status"], error["code"], error["retryable"]


def administer(world: World, node_id: str, kind: Any = "curate") -> None:
    """An administrator's change."""
    administer_node(Administration("alpha", node_id, kind, "It matters", "root"), world.container.services)


# 401 and 403.


@pytest.mark.parametrize("key", ["", "pk_", "pk_aaaaaaaa_" + "a" * 52, "Bearer pk_aaaaaaaa_" + "a" * 52])
def test_unauthorized(world: World, agent: Agent, key: str) -> None:
    with pytest.raises(Unauthorized) as refused:
        replace(agent, api_key=key).try_call("begin_consolidation", {})

    assert (refused.value.status, refused.value.code, refused.value.retryable) == (401, "unauthorized", False)
    assert leaks_of(refused.value.message) == []


@pytest.mark.parametrize("tool", [t for t in all_tools() if t.name in TOOLS], ids=lambda tool: tool.name)
def test_permission_denied_names_the_flag(world: World, tool: Any) -> None:
    error = world.agent("reader", preset="Reporter").refusal(tool.name, **arguments(tool.name, "kgs_x"))

    assert facts(error) == (403, "permission_denied", False)
    assert error["details"] == {"required_permission": tool.flag}


def test_permission_denied_names_the_board(agent: Agent) -> None:
    error = agent.refusal("begin_consolidation", board_id="beta", source_type="spec", source_id="s", source_version=1)

    assert facts(error) == (403, "permission_denied", False)
    assert error["details"] == {"board_id": "beta"}


def test_reserved_edge_type(agent: Agent) -> None:
    session = two_decisions(agent)

    error = agent.refusal("add_edge_candidate", **{**arguments("add_edge_candidate", session.session_id), "rel_type": "derives_from"})

    assert facts(error) == (403, "reserved_edge_type", False)
    assert error["details"]["allowed"] == ["supersedes", "contradicts", "depends_on", "relates_to", "validates"]


@pytest.mark.parametrize("tool", SESSION_TOOLS)
def test_session_ownership_mismatch(world: World, agent: Agent, tool: str) -> None:
    session = two_decisions(agent)

    error = world.agent("bob").refusal(tool, **arguments(tool, session.session_id))

    assert facts(error) == (403, "session_ownership_mismatch", False)


# 404.


@pytest.mark.parametrize("tool", SESSION_TOOLS)
def test_session_not_found(agent: Agent, tool: str) -> None:
    assert facts(agent.refusal(tool, **arguments(tool, "kgs_01KDVDNZG0000000000000000Z"))) == (404, "session_not_found", False)


def test_candidate_not_found_names_every_end_that_is_missing(agent: Agent) -> None:
    session = agent.begin()
    session.decide("One")

    similar = agent.refusal("get_similar_nodes", session_id=session.session_id, candidate_id="cand_002")
    edge = agent.refusal(
        "add_edge_candidate",
        session_id=session.session_id,
        src={"candidate_id": "cand_007"},
        dst={"candidate_id": "cand_008"},
        rel_type="relates_to",
    )

    assert facts(similar) == facts(edge) == (404, "candidate_not_found", False)
    assert edge["details"]["candidate_ids"] == ["cand_007", "cand_008"]


def test_node_not_found_names_every_end_that_is_missing(agent: Agent) -> None:
    session = agent.begin()
    ends = {"src": {"node_id": "dec_1"}, "dst": {"node_id": "dec_2"}}

    error = agent.refusal("add_edge_candidate", session_id=session.session_id, rel_type="relates_to", **ends)

    assert facts(error) == (404, "node_not_found", False)
    assert error["details"]["node_ids"] == ["dec_1", "dec_2"]


def test_tool_not_found(agent: Agent) -> None:
    error = agent.refusal("okto_pulse_kg_begin")

    assert facts(error) == (404, "tool_not_found", False)
    assert error["details"]["tools"] == sorted(f"okto_pulse_kg_{tool.name}" for tool in all_tools())


# 409: the states of a session.


def _expired(world: World, session: Consolidation) -> None:
    world.clock.advance(seconds=HOUR)


def _aborted(world: World, session: Consolidation) -> None:
    session.abort()


def _committed(world: World, session: Consolidation) -> None:
    session.commit()


STATES = {"expired": _expired, "aborted": _aborted, "committed": _committed}
ANSWERS = {("expired", "abort_consolidation"), ("aborted", "abort_consolidation"), ("committed", "commit_consolidation")}
"""Calls of a closed session that answer what they answered before."""


@pytest.mark.parametrize("tool", SESSION_TOOLS)
@pytest.mark.parametrize("state", STATES)
def test_a_closed_session_says_how_it_was_closed(world: World, agent: Agent, tool: str, state: str) -> None:
    session = two_decisions(agent)
    STATES[state](world, session)
    before = dump(world.container)

    outcome = agent.try_call(tool, arguments(tool, session.session_id))

    assert outcome.is_error == ((state, tool) not in ANSWERS)
    if outcome.is_error:
        code = "session_already_committed" if state == "committed" else f"session_{state}"
        assert facts(outcome.body["error"]) == (409, code, False)
    elif tool == "abort_consolidation":
        assert outcome.body == {"session_id": session.session_id, "aborted": True}
    assert dump(world.container) == before


def test_session_expired_tells_when(world: World, agent: Agent) -> None:
    session = two_decisions(agent)
    world.clock.advance(seconds=2 * HOUR)

    assert agent.refusal("propose_reconciliation", session_id=session.session_id)["details"] == {"expired_at": "2026-01-01T01:00:00.000Z"}


def test_activity_does_not_prolong_a_session(world: World, agent: Agent) -> None:
    session = two_decisions(agent)
    for _ in range(3):
        world.clock.advance(seconds=HOUR / 4)
        session.decide(f"At {world.clock.now()}")
        session.propose()
    world.clock.advance(seconds=HOUR / 4 - 0.001)
    session.decide("In the last millisecond")

    world.clock.advance(seconds=0.001)

    assert agent.refusal("commit_consolidation", session_id=session.session_id)["code"] == "session_expired"
    assert list(world.container.graph.all_nodes("alpha")) == []


@pytest.mark.parametrize("tool", SESSION_TOOLS)
@pytest.mark.parametrize("state", STATES)
def test_after_a_day_of_grace_a_session_is_forgotten(world: World, agent: Agent, tool: str, state: str) -> None:
    session = two_decisions(agent)
    STATES[state](world, session)
    world.clock.time = START + (HOUR + DAY) * 1_000 - 1
    remembered = agent.try_call(tool, arguments(tool, session.session_id)).body

    world.clock.advance(seconds=0.001)

    assert remembered.get("error", {}).get("code") != "session_not_found"
    assert agent.refusal(tool, **arguments(tool, session.session_id))["code"] == "session_not_found"
    agent.begin("another")  # which sweeps
    assert agent.refusal(tool, **arguments(tool, session.session_id))["code"] == "session_not_found"


def test_a_commit_that_is_repeated_gives_the_first_answer_and_with_other_overrides_it_is_in_the_details(agent: Agent) -> None:
    session = two_decisions(agent)
    override = {"candidate_id": "cand_001", "hint": "ADD", "rationale": "It is new."}
    first = session.commit(override)

    assert session.commit(override) == first
    for others in ((), ({**override, "rationale": "It is very new."},), (override, {**override, "candidate_id": "cand_002"})):
        with pytest.raises(Refused) as refused:
            session.commit(*others)
        assert facts(refused.value.error) == (409, "session_already_committed", False)
        assert refused.value.details["answer"] == first
    abort = agent.refusal("abort_consolidation", session_id=session.session_id)
    assert (facts(abort), abort["details"]["answer"]) == ((409, "session_already_committed", False), first)


def test_no_overrides_and_an_empty_list_of_them_are_the_same(agent: Agent) -> None:
    session = two_decisions(agent)
    first = session.commit()

    assert agent.call("commit_consolidation", session_id=session.session_id, agent_overrides=[]) == first


# 409: conflicts.


def test_commit_conflict_names_the_nodes_and_leaves_the_session_its_candidates(world: World, agent: Agent) -> None:
    first = agent.begin("spec_001")
    first.decide("Retries stop after a day")
    head = first.commit()["applied"]["added"][0]["node_id"]
    mine, rival = agent.begin("spec_002"), agent.begin("spec_003")
    for session, title in ((mine, "Retries stop after two days"), (rival, "Retries never stop")):
        session.edge(session.decide(title), "supersedes", head)
        session.propose()
    rival.commit()

    with pytest.raises(Refused) as refused:
        mine.commit()

    assert facts(refused.value.error) == (409, "commit_conflict", False)
    assert refused.value.details["nodes"] == [head]
    stored = world.container.sessions.load(mine.session_id)
    assert (stored.state, stored.committable, stored.nodes, stored.edges) == ("open", False, 1, 1)
    assert str(stored.reason).startswith("commit_conflict: ")
    mine.propose()
    assert world.container.sessions.load(mine.session_id).committable is True
    assert mine.commit()["committed"] is True


@pytest.mark.parametrize("proposed", [True, False])
def test_a_commit_without_a_propose_goes_by_the_board_as_it_is(agent: Agent, proposed: bool) -> None:
    mine, rival = agent.begin("spec_002"), agent.begin("spec_003")
    for session in (mine, rival):
        session.decide("Retries stop after a day")
    if proposed:
        mine.propose()
    rival.commit()

    outcome = agent.try_call("commit_consolidation", {"session_id": mine.session_id})

    if proposed:
        assert facts(outcome.body["error"]) == (409, "commit_conflict", False)
    else:
        assert len(outcome.body["applied"]["noop"]) == 1


NODE: dict[str, Any] = {"node_type": "Decision", "title": "One", "body": "-", "attributes": {"confidence": 0.5, "rationale": "so"}}
EDGE: dict[str, Any] = {"src": {"candidate_id": "cand_001"}, "dst": {"candidate_id": "cand_002"}, "rel_type": "relates_to"}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (NODE, NODE, True),
        (NODE, {**NODE, "attributes": {"rationale": "so", "confidence": 0.5}}, True),
        (NODE, {**NODE, "attributes": None}, False),
        (NODE, {**NODE, "title": "one"}, False),
        (NODE, {**NODE, "body": "- "}, False),
        (NODE, {**NODE, "node_type": "Constraint"}, False),
        (NODE, {**NODE, "source_ref": {"spec_id": "spec_007"}}, False),
        ({**NODE, "attributes": {"confidence": 1}}, {**NODE, "attributes": {"confidence": 1.0}}, True),
        ({**NODE, "attributes": {"mood": 1}}, {**NODE, "attributes": {"mood": 2}}, False),
        ({**NODE, "attributes": {}}, {**NODE, "attributes": None}, True),
        (EDGE, EDGE, True),
        (EDGE, {**EDGE, "attributes": {}}, True),
        (EDGE, {**EDGE, "attributes": {"reason": "so"}}, False),
        (EDGE, {**EDGE, "rel_type": "depends_on"}, False),
        (EDGE, {**EDGE, "src": EDGE["dst"], "dst": EDGE["src"]}, False),
        (NODE, EDGE, False),
        (EDGE, NODE, False),
    ],
)
def test_idempotency_conflict(world: World, agent: Agent, first: dict[str, Any], second: dict[str, Any], same: bool) -> None:
    session = two_decisions(agent)

    def tool(draft: dict[str, Any]) -> str:
        return "add_edge_candidate" if "src" in draft else "add_node_candidate"

    made = agent.call(tool(first), session_id=session.session_id, idempotency_key="k", **first)
    before = dump(world.container)

    again = agent.try_call(tool(second), {"session_id": session.session_id, "idempotency_key": "k", **second}).body

    if same:
        assert again == made
    else:
        assert facts(again["error"]) == (409, "idempotency_conflict", False)
        assert again["error"]["details"] == {"candidate_id": made.get("candidate_id") or made.get("edge_candidate_id")}
    assert dump(world.container) == before


# 413.


@pytest.mark.parametrize("character", ["x", "é", "語", "🙂"])
def test_a_body_is_measured_in_bytes(agent: Agent, character: str) -> None:
    session = agent.begin()
    fits = 32_768 // len(character.encode())
    assert session.decide("It fits", character * fits) == "cand_001"

    error = agent.refusal(
        "add_node_candidate", session_id=session.session_id, node_type="Decision", title="One more", body=character * (fits + 1)
    )

    assert facts(error) == (413, "payload_too_large", False)
    assert error["details"]["limit_bytes"] == 32_768
    assert error["details"]["path"] == "body"


def test_a_candidate_is_measured_as_a_whole(agent: Agent) -> None:
    session = agent.begin()
    body, part = "b" * 32_768, "a" * 4_000
    assert session.add("TestScenario", "It fits", body, attributes={"given": part, "when": part, "then": part}) == "cand_001"

    error = agent.refusal(
        "add_node_candidate",
        session_id=session.session_id,
        node_type="TestScenario",
        title="It does not",
        body=body,
        attributes={"given": part, "when": part, "then": part, "else": part, "finally": part},
    )

    assert facts(error) == (413, "payload_too_large", False)
    assert error["details"]["limit_bytes"] == 49_152


@pytest.fixture
def small() -> Iterator[Agent]:
    """An agent where three nodes, two edges and two open sessions are the limit."""
    limits = {"PULSE_KG_MAX_NODE_CANDIDATES": "3", "PULSE_KG_MAX_EDGE_CANDIDATES": "2", "PULSE_KG_MAX_OPEN_SESSIONS": "2"}
    with opened(environment=limits) as world:
        world.board("alpha")
        yield world.agent()


def test_one_node_more_than_a_session_holds(small: Agent) -> None:
    session = small.begin()
    for number in (1, 2, 3):
        session.decide(f"Number {number}", idempotency_key=None) if number < 3 else session.add("Decision", "Three", idempotency_key="k")
    more = {"session_id": session.session_id, "node_type": "Decision", "title": "Four"}

    error = small.refusal("add_node_candidate", **more)

    assert facts(error) == (413, "payload_too_large", False)
    assert error["details"] == {"limit": 3, "kind": "node_candidates"}
    assert session.add("Decision", "Three", idempotency_key="k") == "cand_003"  # a retry is not one more
    assert len(session.commit()["applied"]["added"]) == 3


def test_one_edge_more_than_a_session_holds(small: Agent) -> None:
    session = two_decisions(small)
    session.edge("cand_001", "relates_to", "cand_002")
    session.edge("cand_001", "depends_on", "cand_002")

    error = small.refusal("add_edge_candidate", **{**arguments("add_edge_candidate", session.session_id), "rel_type": "contradicts"})

    assert facts(error) == (413, "payload_too_large", False)
    assert error["details"] == {"limit": 2, "kind": "edge_candidates"}
    assert len(session.commit()["edges_added"]) == 2


# 422.


def test_a_commit_of_nothing_is_invalid(agent: Agent) -> None:
    session = agent.begin()

    error = agent.refusal("commit_consolidation", session_id=session.session_id)

    assert facts(error) == (422, "invalid_argument", False)
    assert "abort" in error["message"]
    assert agent.call("propose_reconciliation", session_id=session.session_id)["proposals"] == []


def test_a_session_of_edges_alone_is_something(world: World, agent: Agent) -> None:
    first = two_decisions(agent)
    one, two = (a["node_id"] for a in first.commit()["applied"]["added"])
    session = agent.begin("spec_008")
    session.edge(one, "depends_on", two)

    assert session.propose() == {}
    assert [e["rel"] for e in session.commit()["edges_added"]] == ["depends_on"]


def test_unknown_attribute_names_them_all(world: World, agent: Agent) -> None:
    world.container.boards.set_setting("alpha", "strict_attributes", value=True)
    session = two_decisions(agent)
    for tool in ("add_node_candidate", "add_edge_candidate"):
        error = agent.refusal(tool, **{**arguments(tool, session.session_id), "attributes": {"mood": 1, "tone": 2}})
        assert facts(error) == (422, "unknown_attribute", False)
        assert [p["path"] for p in error["details"]["problems"]] == ["attributes.mood", "attributes.tone"]


def test_invalid_attribute_names_them_all(agent: Agent) -> None:
    session = two_decisions(agent)
    wrong = {"confidence": 7, "reason": [], "evidence": 1, "rationale": {}, "status": "no", "decided_at": "-"}
    expected = {
        "add_node_candidate": ["confidence", "decided_at", "rationale", "status"],
        "add_edge_candidate": ["confidence", "evidence", "reason"],
    }
    for tool, keys in expected.items():
        error = agent.refusal(tool, **{**arguments(tool, session.session_id), "attributes": wrong})
        assert facts(error) == (422, "invalid_attribute", False)
        assert [p["path"] for p in error["details"]["problems"]] == [f"attributes.{key}" for key in keys]


def test_any_number_of_unknown_attributes_leaves_the_answers_readable(world: World, agent: Agent) -> None:
    session = agent.begin()
    for number in range(6):
        attributes = {f"k{number}{key:04d}": 0 for key in range(3_000)} | {"l" * 5_000: 0}
        added = agent.call(
            "add_node_candidate", session_id=session.session_id, node_type="Decision", title=f"Number {number}", attributes=attributes
        )
        assert len(str(added)) < 20_000

    answer = session.commit()

    assert len(str(answer)) < 20_000
    assert answer["warnings"][-1].startswith("17906 more attributes")
    row = world.container.commits.audit_row("alpha", 1)
    assert row is not None
    assert len(row["candidates"]["nodes"][5]["attributes"]) == 3_001


def test_invalid_edge_endpoints_tells_the_allowed_pairs(agent: Agent) -> None:
    session = agent.begin()
    session.add("Entity", "One")
    session.add("Bug", "Two")

    error = agent.refusal("add_edge_candidate", **{**arguments("add_edge_candidate", session.session_id), "rel_type": "validates"})

    assert facts(error) == (422, "invalid_edge_endpoints", False)
    assert error["details"]["pair"] == ["Entity", "Bug"]
    assert ["Learning", "Bug"] in error["details"]["allowed_pairs"]


def test_invalid_edge_endpoints_for_a_loop_a_cycle_and_a_curated_node(world: World, agent: Agent) -> None:
    first = two_decisions(agent)
    old, curated = (a["node_id"] for a in first.commit()["applied"]["added"])
    administer(world, curated)
    second = agent.begin("spec_008")
    second.edge(second.decide("Retries stop after an hour"), "supersedes", old)
    new = second.commit()["applied"]["added"][0]["node_id"]
    session = two_decisions(agent, "spec_009")
    session.edge("cand_001", "supersedes", "cand_002")
    session.edge("cand_002", "supersedes", new)

    def refused(src: str, dst: str, rel_type: str = "supersedes") -> Mapping[str, Any]:
        ends = {"src": _end(src), "dst": _end(dst)}
        error = agent.refusal("add_edge_candidate", session_id=session.session_id, rel_type=rel_type, **ends)
        assert facts(error) == (422, "invalid_edge_endpoints", False)
        details: Mapping[str, Any] = error["details"]
        return details

    assert refused("cand_001", "cand_001", "relates_to") == {"self_loop": True}
    assert refused(old, old, "contradicts") == {"self_loop": True}
    assert refused("cand_002", "cand_001")["cycle"] == ["cand_002", "cand_001", "cand_002"]
    assert refused(old, new)["cycle"] == [old, new, old]
    assert refused(old, "cand_001")["cycle"] == [old, "cand_001", "cand_002", new, old]
    assert refused("cand_001", curated) == {"node_id": curated, "human_curated": True}


def _end(label: str) -> dict[str, str]:
    return {"candidate_id": label} if label.startswith("cand_") else {"node_id": label}


def test_a_cycle_that_only_the_mapping_of_candidates_to_nodes_closes_is_found_at_commit(world: World, agent: Agent) -> None:
    first = agent.begin("spec_001")
    first.decide("Retries stop after a day")
    old = first.commit()["applied"]["added"][0]["node_id"]
    second = agent.begin("spec_002")
    second.edge(second.decide("Retries stop after an hour"), "supersedes", old)
    new = second.commit()["applied"]["added"][0]["node_id"]
    session = agent.begin("spec_003")
    session.edge(old, "supersedes", session.decide("Retries stop after an hour"))
    before = world.container.graph.counts("alpha")

    with pytest.raises(Refused) as refused:
        session.commit()

    assert facts(refused.value.error) == (422, "invalid_edge_endpoints", False)
    assert refused.value.details["cycle"] == [old, new, old]
    assert world.container.graph.counts("alpha") == before
    assert world.container.sessions.load(session.session_id).committable is False
    answer = session.commit({"candidate_id": "cand_001", "hint": "ADD", "rationale": "It is another one."})
    assert answer["superseded_nodes"] == [{"node_id": answer["applied"]["added"][0]["node_id"], "superseded_by": old}]
    assert verify_board("alpha", world.container.services).clean


def test_a_loop_that_only_the_mapping_makes_is_dropped_with_a_warning(agent: Agent) -> None:
    session = agent.begin()
    session.decide("Retries stop after a day")
    session.decide("Retries stop after a  DAY")
    session.edge("cand_001", "relates_to", "cand_002")

    answer = session.commit()

    assert [len(answer["applied"][hint]) for hint in ("added", "noop")] == [1, 1]
    assert answer["edges_added"] == []
    assert answer["warnings"][0].startswith("edge_cand_001 dropped")


def test_invalid_override_tells_every_reason_together_and_changes_nothing(world: World, agent: Agent) -> None:
    first = agent.begin("spec_001")
    first.decide("Retries stop after a day")
    first.add("Learning", "Peers recover together")
    first.decide("A person looks after this one")
    old, learning, curated = (a["node_id"] for a in first.commit()["applied"]["added"])
    administer(world, curated)
    second = agent.begin("spec_002")
    second.edge(second.decide("Jitter is added to every delay"), "supersedes", old)
    second.commit()
    other = world.agent("eve", boards=("beta",)).begin("spec_001", board_id="beta")
    other.decide("Of the other board")
    far = other.commit()["applied"]["added"][0]["node_id"]
    session = agent.begin("spec_003")
    for title in ("apple", "banana", "cherry", "damson", "elder", "fig"):
        session.decide(title)
    session.propose()
    before = dump(world.container)

    def override(candidate: str, hint: str, target: str | None = None) -> dict[str, Any]:
        return {"candidate_id": candidate, "hint": hint, "rationale": "So.", **({"target_node": target} if target else {})}

    with pytest.raises(Refused) as refused:
        session.commit(
            override("cand_999", "ADD"),
            override("cand_001", "UPDATE"),
            override("cand_001", "ADD"),
            override("cand_002", "SUPERSEDE", learning),
            override("cand_003", "SUPERSEDE", far),
            override("cand_004", "UPDATE", old),
            override("cand_005", "SUPERSEDE", curated),
            override("cand_006", "NOOP", "dec_0000000000000000"),
        )

    assert facts(refused.value.error) == (422, "invalid_override", False)
    problems = {p["path"]: p["problem"] for p in refused.value.details["problems"]}
    assert list(problems) == [
        "agent_overrides[0].candidate_id",
        "agent_overrides[1].target_node",
        "agent_overrides[2].candidate_id",
        *(f"agent_overrides[{n}].target_node" for n in range(3, 8)),
    ]
    wanted = ("no node candidate", "needs a target_node", "twice", "of type Learning", "no node", "superseded by", "curated", "no node")
    assert [word for word, problem in zip(wanted, problems.values(), strict=True) if word not in problem] == []
    assert dump(world.container) == before


def test_resource_exhausted_names_the_budget() -> None:
    with opened(environment={"PULSE_KG_MAX_RESPONSE_BYTES": "65536"}) as world:
        world.board("alpha")
        agent = world.agent()
        session = agent.begin()
        for number in range(50):
            session.decide(f"{number:02d}" + "語" * 498, f"number {number}")
        session.commit()
        again = agent.begin("spec_008")
        again.decide("語" * 500)

        error = agent.refusal("get_similar_nodes", session_id=again.session_id, candidate_id="cand_001", k=50)

        assert facts(error) == (422, "resource_exhausted", False)
        assert error["details"]["budget"] == "response_bytes"
        assert len(agent.call("get_similar_nodes", session_id=again.session_id, candidate_id="cand_001", k=5)["matches"]) == 5


# 429.


def test_too_many_open_sessions_are_all_told_with_the_time_to_wait(small: Agent) -> None:
    clock = small.world.clock
    one = small.begin("one")
    clock.advance(seconds=100.5)
    two = small.begin("two")
    begin = {"board_id": "alpha", "source_type": "spec", "source_id": "three", "source_version": 1}
    before = dump(small.world.container)

    error = small.refusal("begin_consolidation", **begin)

    assert facts(error) == (429, "rate_limit", True)
    assert error["details"] == {
        "retry_after_seconds": 3_500,
        "open_sessions": [
            {"session_id": one.session_id, "board_id": "alpha", "expires_at": "2026-01-01T01:00:00.000Z"},
            {"session_id": two.session_id, "board_id": "alpha", "expires_at": "2026-01-01T01:01:40.500Z"},
        ],
    }
    assert dump(small.world.container) == before
    one.abort()
    assert small.call("begin_consolidation", **begin)["session_id"] is not None
    clock.advance(seconds=error["details"]["retry_after_seconds"])  # `two` is still open, and `three` too
    assert small.refusal("begin_consolidation", **{**begin, "source_id": "four"})["code"] == "rate_limit"
    clock.advance(seconds=101)
    assert small.call("begin_consolidation", **{**begin, "source_id": "four"})["session_id"] is not None


def test_agents_that_begin_at_once_do_not_get_beyond_the_open_sessions(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db", environment={"PULSE_KG_MAX_OPEN_SESSIONS": "5"}) as world:
        world.board("alpha")
        ada = world.agent("ada")
        shared = open_container(world.container.settings, embedder=HashingEmbedder(), clock=world.clock)  # ids that threads may share
        barrier = Barrier(16)

        def begin(number: int) -> ToolOutcome:
            arguments = {"board_id": "alpha", "source_type": "spec", "source_id": f"s{number}", "source_version": 1}
            barrier.wait(30)
            return tools.call(tools.authenticate(ada.api_key), "begin_consolidation", arguments, correlation_id="c0ffee")

        try:
            tools = shared.tool_host()
            with ThreadPoolExecutor(16) as threads:
                outcomes = list(threads.map(begin, range(16)))
        finally:
            shared.close()
        begun = {o.body["session_id"] for o in outcomes if not o.is_error}
        assert len(begun) == 5
        assert {s.session_id for s in world.container.sessions.open_sessions(now=world.clock.now())} == begun
        for error in (o.body["error"] for o in outcomes if o.is_error):
            assert facts(error) == (429, "rate_limit", True)
            assert error["details"]["retry_after_seconds"] == 3_600
            assert {s["session_id"] for s in error["details"]["open_sessions"]} == begun


def test_consolidations_a_minute_are_counted_for_each_agent_and_a_refused_one_is_not_counted() -> None:
    with opened(environment={"PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "2"}) as world:
        world.board("alpha")
        ada, bob = world.agent("ada"), world.agent("bob")
        for name in ("a", "b"):
            ada.begin(name)
        begin = {"board_id": "alpha", "source_type": "spec", "source_id": "c", "source_version": 1}
        for _ in range(3):
            error = ada.refusal("begin_consolidation", **begin)
            assert facts(error) == (429, "rate_limit", True)
            assert error["details"] == {"retry_after_seconds": 60, "limit_per_minute": 2}
        bob.begin("a")
        world.clock.advance(seconds=60)
        ada.begin("c")
        ada.begin("d")


# 503: the embedder and the store.


class FickleEmbedder(HashingEmbedder):
    """Fails while it is told to."""

    failure: Exception | None = None

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        if self.failure is not None:
            raise self.failure
        return super().embed(texts, timeout_seconds=timeout_seconds)


@pytest.mark.parametrize(
    ("failure", "code"), [(EmbedderTimeout(), "embedder_timeout"), (StoreUnavailable("embedder"), "store_unavailable")], ids=str
)
def test_an_embedder_that_fails_costs_a_session_nothing_but_time(failure: Exception, code: str) -> None:
    embedder = FickleEmbedder()
    with opened(embedder=embedder) as world:
        world.board("alpha")
        session = two_decisions(world.agent())
        embedder.failure = failure

        for tool in ("get_similar_nodes", "propose_reconciliation", "commit_consolidation"):
            assert facts(session.agent.refusal(tool, **arguments(tool, session.session_id))) == (503, code, True)

        stored = world.container.sessions.load(session.session_id)
        assert (stored.state, stored.committable) == ("open", False)
        assert str(stored.reason).startswith(f"{code}: ")
        assert world.container.graph.counts("alpha")["nodes"] == 0
        embedder.failure = None
        assert session.commit()["audit_row_id"] == 1
        assert verify_board("alpha", world.container.services).clean


def test_a_session_without_searchable_nodes_needs_no_embedder() -> None:
    embedder = FickleEmbedder()
    embedder.failure = EmbedderTimeout()
    with opened(embedder=embedder) as world:
        world.board("alpha")
        session = world.agent().begin()
        session.add("Criterion", "Ninety-nine in a hundred")
        session.propose()

        assert len(session.commit()["applied"]["added"]) == 1


def _calls_of_a_commit() -> list[str]:
    """The calls that a commit with a propose before it makes, in order."""
    with opened() as world:
        world.board("alpha")
        faults = Faults()
        session = two_decisions(world.agent())
        session.propose()
        world.host = faulty_host(world.container, faults)
        faults.arm(None)
        session.commit()
        return faults.calls


CALLS = _calls_of_a_commit()


@pytest.mark.parametrize("number", range(1, len(CALLS) + 1), ids=lambda n: f"{n}-{CALLS[n - 1]}")
@pytest.mark.parametrize("way_out", ["commit", "abort"])
def test_a_store_that_fails_before_the_decision_leaves_nothing_to_be_seen(world: World, agent: Agent, number: int, way_out: str) -> None:
    faults = Faults()
    session = two_decisions(agent)
    session.propose()
    world.host = faulty_host(world.container, faults)
    faults.arm(number)

    with pytest.raises(Refused) as refused:
        session.commit()

    faults.disarm()
    assert faults.struck == CALLS[number - 1]
    assert facts(refused.value.error) == (503, "store_unavailable", True)
    assert "decided" not in refused.value.details
    assert world.container.graph.counts("alpha")["nodes"] == 0
    assert list(world.container.commits.audit_rows("alpha")) == []
    stored = world.container.sessions.load(session.session_id)
    assert (stored.state, stored.nodes) == ("open", 2)
    if number > 1:  # before the session is loaded there is nothing to be marked
        assert stored.committable is False
        assert str(stored.reason).startswith("store_unavailable: ")
    if way_out == "commit":
        assert session.commit()["audit_row_id"] == 1
    else:
        assert session.abort()["aborted"] is True
    assert verify_board("alpha", world.container.services).clean


def test_a_commit_whose_answer_is_lost_is_there_and_answers_when_it_is_repeated(world: World, agent: Agent) -> None:
    faults = Faults()
    session = two_decisions(agent)
    world.host = faulty_host(world.container, faults)
    faults.arm(1, "after", only="turn.commit")

    with pytest.raises(Refused) as refused:
        session.commit()

    assert facts(refused.value.error) == (503, "store_unavailable", True)
    assert world.container.sessions.load(session.session_id).state == "committed"
    answer = session.commit()
    assert (answer["audit_row_id"], len(answer["applied"]["added"])) == (1, 2)
    assert world.container.graph.counts("alpha")["nodes"] == 2
    assert agent.refusal("abort_consolidation", session_id=session.session_id)["code"] == "session_already_committed"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["sessions.load_all", "embedder.embed", "sessions.save_vectors"])
def test_the_same_commit_called_twice_at_once_gives_both_the_same_answer(world: World, agent: Agent, step: str, when: When) -> None:
    session, rival = two_decisions(agent), two_decisions(agent, "spec_008")
    faults, plain, first = Faults(), world.host, list[ToolOutcome]()
    world.host = faulty_host(world.container, faults)

    def other(of: Consolidation) -> None:
        first.append(
            plain.call(plain.authenticate(agent.api_key), "commit_consolidation", {"session_id": of.session_id}, correlation_id="-")
        )

    faults.arm(1, when, only=step, instead=lambda: other(session))
    answer = session.commit()

    assert faults.struck == step
    assert first[0].body == answer
    faults.arm(1, when, only=step, instead=lambda: other(rival))
    with pytest.raises(Refused) as refused:
        rival.commit({"candidate_id": "cand_001", "hint": "ADD", "rationale": "It is new."})
    assert facts(refused.value.error) == (409, "session_already_committed", False)
    assert refused.value.details["answer"] == first[1].body
    assert len(list(world.container.commits.audit_rows("alpha"))) == 2


def test_a_bug_is_told_as_an_internal_error_and_only_the_log_knows_more(
    world: World, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    faults = Faults()
    session = two_decisions(agent)
    world.host = faulty_host(world.container, faults)
    faults.arm(1, error=KeyError("/secret/path of palladium"))

    with caplog.at_level(logging.ERROR):
        outcome = agent.try_call("propose_reconciliation", {"session_id": session.session_id})

    assert (outcome.status, outcome.body["error"]["code"], outcome.body["error"]["retryable"]) == (500, "internal_error", False)
    assert "palladium" not in str(outcome.body)
    assert outcome.body["error"]["details"] == {}
    assert "palladium" in caplog.text


class OtherModel(HashingEmbedder):
    """Another model."""

    def info(self) -> ModelInfo:
        return replace(super().info(), model_id="another-model", digest="sha256:" + "0" * 64)


def test_embedding_model_mismatch_until_the_right_model_is_back(tmp_path: Path) -> None:
    path, clock = tmp_path / "store.db", FixedClock()
    with opened(path, clock=clock) as world:
        world.board("alpha")
        agent = world.agent()
        two_decisions(agent).commit()
        session = agent.begin("spec_008")
        session.decide("Retries stop after an hour")
    with opened(path, clock=clock, embedder=OtherModel()) as world:
        agent.world = world
        before = world.container.graph.counts("alpha")
        for tool in ("get_similar_nodes", "propose_reconciliation", "commit_consolidation"):
            error = agent.refusal(tool, **arguments(tool, session.session_id))
            assert facts(error) == (503, "embedding_model_mismatch", False)
            assert error["details"]["got"]["model_id"] == "another-model"
            assert error["details"]["expected"]["model_id"] == "hashing-test-v1"
        assert world.container.graph.counts("alpha") == before
        stored = world.container.sessions.load(session.session_id)
        assert (stored.committable, str(stored.reason)[:26]) == (False, "embedding_model_mismatch: ")
    with opened(path, clock=clock) as world:
        agent.world = world
        assert session.commit()["audit_row_id"] == 2


# Which of two refusals wins: authenticate, flag, input, session, its board, owner, state, expiry.


@pytest.mark.parametrize("tool", TOOLS)
def test_the_key_comes_before_the_flag(world: World, tool: str) -> None:
    reader = world.agent("reader", preset="Reporter")

    with pytest.raises(Unauthorized):
        replace(reader, api_key=reader.api_key[:-1] + "?").try_call(tool, {})


@pytest.mark.parametrize("tool", TOOLS)
def test_the_flag_comes_before_the_input(world: World, tool: str) -> None:
    assert world.agent("reader", preset="Reporter").try_call(tool, ["no", "object"]).body["error"]["code"] == "permission_denied"


@pytest.mark.parametrize("tool", SESSION_TOOLS)
def test_the_input_comes_before_the_session(agent: Agent, tool: str) -> None:
    assert agent.refusal(tool, **arguments(tool, "nosuch"), colour="red")["code"] == "invalid_argument"


@pytest.mark.parametrize("tool", SESSION_TOOLS)
def test_the_session_comes_before_what_only_the_board_can_judge(agent: Agent, tool: str) -> None:
    hostile: dict[str, dict[str, Any]] = {
        "add_node_candidate": {"attributes": {"confidence": 7}, "body": "x" * 40_000},
        "add_edge_candidate": {"rel_type": "mentions", "attributes": {"confidence": 7}},
        "commit_consolidation": {"agent_overrides": [{"candidate_id": "cand_9", "hint": "NOOP", "rationale": "So."}]},
    }

    assert agent.refusal(tool, **{**arguments(tool, "nosuch"), **hostile.get(tool, {})})["code"] == "session_not_found"


@pytest.mark.parametrize("tool", SESSION_TOOLS)
def test_the_board_comes_before_the_owner(world: World, agent: Agent, tool: str) -> None:
    session = two_decisions(agent)

    assert world.agent("eve", boards=("beta",)).refusal(tool, **arguments(tool, session.session_id))["code"] == "session_not_found"


@pytest.mark.parametrize("tool", SESSION_TOOLS)
@pytest.mark.parametrize("state", STATES)
def test_the_owner_comes_before_the_state(world: World, agent: Agent, tool: str, state: str) -> None:
    session = two_decisions(agent)
    STATES[state](world, session)

    error = world.agent("bob").refusal(tool, **arguments(tool, session.session_id))

    assert error["code"] == "session_ownership_mismatch"


@pytest.mark.parametrize("tool", SESSION_TOOLS)
@pytest.mark.parametrize(("state", "code"), [("aborted", "session_aborted"), ("committed", "session_already_committed")])
def test_the_state_comes_before_the_expiry(world: World, agent: Agent, tool: str, state: str, code: str) -> None:
    session = two_decisions(agent)
    STATES[state](world, session)
    world.clock.advance(seconds=2 * HOUR)

    outcome = agent.try_call(tool, arguments(tool, session.session_id))

    assert (outcome.body["error"]["code"] == code) if outcome.is_error else ((state, tool) in ANSWERS)


@pytest.mark.parametrize("tool", SESSION_TOOLS[:-1])
def test_the_expiry_comes_before_the_candidates(world: World, agent: Agent, tool: str) -> None:
    session = agent.begin()
    world.clock.advance(seconds=HOUR)

    assert agent.refusal(tool, **arguments(tool, session.session_id))["code"] == "session_expired"


def test_a_board_that_is_not_granted_comes_before_nothing_changed_and_before_the_limits(small: Agent) -> None:
    session = small.begin("spec_007", 1, payload_hash="sha256:" + "ab" * 32)
    session.decide("One")
    session.commit()
    small.begin("one")
    small.begin("two")
    begin = {
        "board_id": "alpha",
        "source_type": "spec",
        "source_id": "spec_007",
        "source_version": 1,
        "payload_hash": "sha256:" + "ab" * 32,
    }
    assert small.call("begin_consolidation", **begin)["nothing_changed"] is True  # which needs no room for a session
    assert small.refusal("begin_consolidation", **{**begin, "source_id": "three"})["code"] == "rate_limit"

    container = small.world.container
    deny_board("ada", "alpha", identity=container.identity, boards=container.boards)

    assert small.refusal("begin_consolidation", **begin)["code"] == "permission_denied"
