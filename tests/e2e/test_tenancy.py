"""Two boards in one store: what one knows, nobody learns through the other, and what was taken away is gone at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from pulse_kg.errors import InvalidArgument, Unauthorized
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.mcp.tools import all_tools
from pulse_kg.usecases.boards import erase_board
from pulse_kg.usecases.identity import change_flags, deny_board, grant_board, revoke_agent, revoke_keys, rotate_key
from tests.support.bad_input import Dump, arguments_of, dump, replaced
from tests.support.world import Agent, Consolidation, World, opened

MARK = {"alpha": "zirconium", "beta": "palladium"}
"""What stands in every text of a board, and nowhere else."""

SESSION_TOOLS = [tool for tool in all_tools() if tool.flag.startswith("kg.session.")]
"""Those that read have canaries of their own."""
SCHEMAS = {tool.name: tool.spec.input_schema for tool in SESSION_TOOLS}
FLAGS = {tool.name: tool.flag for tool in SESSION_TOOLS}


@dataclass
class Watched(Agent):
    """An agent that remembers all it was told.

    Attributes:
        heard: The answers and refusals, as JSON.
    """

    heard: list[str] = field(default_factory=list)

    def try_call(self, tool: str, arguments: object) -> ToolOutcome:
        outcome = super().try_call(tool, arguments)
        self.heard.append(json.dumps(outcome.body, ensure_ascii=False))
        return outcome


@dataclass
class Boards:
    """Two boards with the same story, told in each one's own words.

    Attributes:
        world: The world.
        nodes: Board → its decision.
        sessions: Board → an open session of its own agent, with candidates.
    """

    world: World
    nodes: dict[str, str]
    sessions: dict[str, Consolidation]

    def watched(self, name: str, *boards: str, preset: str = "Full Control") -> Watched:
        agent = self.world.agent(name, boards=boards, preset=preset)
        return Watched(agent.world, agent.api_key, agent.agent_id, agent.name)

    def of(self, board_id: str) -> Dump:
        """All that the store has of a board."""
        return dump(self.world.container, board_id)


@pytest.fixture
def boards() -> Iterator[Boards]:
    with opened() as world:
        nodes, sessions = {}, {}
        for board_id, mark in MARK.items():
            world.board(board_id)
            teller = world.agent(f"teller of {board_id}", boards=(board_id,))
            told = teller.begin("spec_001", 1, board_id=board_id)
            told.decide(
                f"The {mark} queue is first in, first out", f"Because {mark} said so.", section="queue", spec="spec_001", rationale=mark
            )
            nodes[board_id] = told.commit()["applied"]["added"][0]["node_id"]
            open_one = teller.begin("spec_002", 1, board_id=board_id)
            for number in range(4):
                open_one.decide(f"The {mark} queue has number {number}", mark)
            sessions[board_id] = open_one
        yield Boards(world, nodes, sessions)


def _good(tool: str, session: Consolidation, node_id: str) -> dict[str, Any]:
    """Arguments that name something wherever something can be named."""
    begin = {"board_id": "alpha", "source_type": "spec", "source_id": "spec_003", "source_version": 1}
    node = {
        "node_type": "Decision",
        "title": "The queue",
        "body": "-",
        "attributes": {},
        "source_ref": {"spec_id": "spec_003", "section": "s"},
    }
    edge = {"src": {"candidate_id": "cand_001"}, "dst": {"node_id": node_id}, "rel_type": "relates_to", "attributes": {}}
    override = {"candidate_id": "cand_001", "hint": "UPDATE", "rationale": "It says more.", "target_node": node_id}
    good: dict[str, dict[str, Any]] = {
        "begin_consolidation": begin,
        "add_node_candidate": node,
        "add_edge_candidate": edge,
        "get_similar_nodes": {"candidate_id": "cand_001"},
        "propose_reconciliation": {},
        "commit_consolidation": {"agent_overrides": [override]},
        "abort_consolidation": {},
    }
    return good[tool] | ({} if tool == "begin_consolidation" else {"session_id": session.session_id})


@pytest.mark.parametrize("tool", SCHEMAS)
def test_ids_of_the_other_board_forged_into_any_argument_reach_nothing_of_it(boards: Boards, tool: str) -> None:
    mallory = boards.watched("mallory", "alpha")
    mine = mallory.begin("spec_003", 1)
    mine.decide("The queue")
    before = boards.of("beta")
    far = (boards.sessions["beta"].session_id, boards.nodes["beta"], "cand_004", "beta", f"{boards.nodes['beta']}%", "spec:spec_001#queue")

    for argument in arguments_of(SCHEMAS[tool]):
        for forged in far:
            for value in (forged, {"node_id": forged}, {"candidate_id": forged}, {"session_id": forged}, [forged], {"spec_id": forged}):
                good = _good(tool, mine, boards.nodes["alpha"])
                if argument.path.partition(".")[0].partition("[")[0] in good or argument.path in {"payload_hash", "idempotency_key", "k"}:
                    mallory.try_call(tool, _put(good, argument.path, value))

    assert boards.of("beta") == before
    assert len(mallory.heard) > 6
    assert [told for told in mallory.heard if MARK["beta"] in told] == []


def _put(arguments: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    try:
        return replaced(arguments, path, value)
    except (KeyError, TypeError):  # the other way to name an end, say
        return arguments


def test_an_agent_of_both_boards_can_not_join_them(boards: Boards) -> None:
    both = boards.watched("both", "alpha", "beta")
    session = both.begin("spec_003", 1)
    session.decide("The queue is first in, first out")
    far = boards.nodes["beta"]
    override = {"candidate_id": "cand_001", "hint": "SUPERSEDE", "rationale": "It is newer.", "target_node": far}
    for ends in (
        {"src": {"candidate_id": "cand_001"}, "dst": {"node_id": far}},
        {"src": {"node_id": far}, "dst": {"candidate_id": "cand_001"}},
    ):
        error = both.refusal("add_edge_candidate", session_id=session.session_id, rel_type="supersedes", **ends)
        assert (error["code"], error["details"]["node_ids"]) == ("node_not_found", [far])

    refused = both.refusal("commit_consolidation", session_id=session.session_id, agent_overrides=[override])

    assert refused["code"] == "invalid_override"
    assert refused["details"]["problems"] == [
        {"path": "agent_overrides[0].target_node", "problem": f"there is no node '{far}' on this board"}
    ]
    assert boards.world.node(far, "beta").superseded_by is None


def test_likeness_and_sameness_end_at_the_board(boards: Boards) -> None:
    both = boards.watched("both", "alpha", "beta")
    session = both.begin("spec_001", 2)
    title, body = f"The {MARK['beta']} queue is first in, first out", f"Because {MARK['beta']} said so."
    session.decide(title, body, section="queue", spec="spec_001", rationale=MARK["beta"])
    similar = both.call("get_similar_nodes", session_id=session.session_id, candidate_id="cand_001", k=50)
    assert [m["node_id"] for m in similar["matches"]] == [boards.nodes["alpha"]]

    proposal = session.propose()["cand_001"]
    answer = session.commit()

    assert proposal["hint"] == "ADD"  # on beta it would be a NOOP
    assert boards.nodes["beta"] not in json.dumps([proposal, answer])
    assert boards.world.node(boards.nodes["beta"], "beta").version == 1


def test_what_was_committed_on_one_board_is_news_on_the_other(boards: Boards) -> None:
    both = boards.watched("both", "alpha", "beta")
    content_hash = "sha256:" + "ab" * 32
    first = both.begin("spec_009", 1, payload_hash=content_hash)
    first.decide("Calls end after a minute")
    first_answer = first.commit()

    second = both.begin("spec_009", 1, board_id="beta", payload_hash=content_hash)

    assert second.begun["nothing_changed"] is False
    second.decide("Calls end after a minute")
    assert second.propose()["cand_001"]["hint"] == "ADD"
    second_answer = second.commit()
    assert first_answer["audit_row_id"] == second_answer["audit_row_id"] == 2
    assert first_answer["applied"]["added"] != second_answer["applied"]["added"]


def test_a_board_that_is_not_there_and_one_that_is_not_granted_look_the_same(boards: Boards) -> None:
    agent = boards.watched("mallory", "alpha", "beta")
    world, container = boards.world, boards.world.container
    deny_board("mallory", "beta", identity=container.identity, boards=container.boards)
    world.board("gamma")
    world.board("delta")
    erase_board("delta", boards=container.boards, now=world.clock.now())
    begin = {"source_type": "spec", "source_id": "spec_001", "source_version": 1}

    told = set()
    for board_id in ("beta", "gamma", "delta", "nosuch"):
        outcome = agent.try_call("begin_consolidation", {"board_id": board_id, **begin})
        assert outcome.status == 403
        told.add(json.dumps(outcome.body).replace(board_id, "…"))

    assert len(told) == 1


def test_a_session_that_is_not_there_and_one_of_a_board_that_is_not_granted_look_the_same(boards: Boards) -> None:
    agent = boards.watched("mallory", "alpha")
    far, committed = boards.sessions["beta"], boards.sessions["beta"].agent.begin("spec_004", board_id="beta")
    committed.decide("Done")
    committed.commit()
    for tool in SCHEMAS:
        if tool == "begin_consolidation":
            continue
        told = set()
        for session_id in (far.session_id, committed.session_id, "kgs_01KDVDNZG0000000000000000Z", "nosuch"):
            arguments = {**_good(tool, far, boards.nodes["alpha"]), "session_id": session_id}
            outcome = agent.try_call(tool, arguments)
            assert (outcome.status, outcome.body["error"]["code"]) == (404, "session_not_found")
            told.add(json.dumps(outcome.body))
        assert len(told) == 1, tool


def test_a_session_of_another_agent_is_not_ones_own_even_on_a_shared_board(boards: Boards) -> None:
    agent = boards.watched("mallory", "alpha")
    session = boards.sessions["alpha"]
    before = dump(boards.world.container)
    for tool in SCHEMAS:
        if tool != "begin_consolidation":
            error = agent.refusal(tool, **_good(tool, session, boards.nodes["alpha"]))
            assert (error["status"], error["code"]) == (403, "session_ownership_mismatch"), tool
            assert MARK["alpha"] not in json.dumps(error)
    assert dump(boards.world.container) == before


def _session_tools_refuse(agent: Agent, session: Consolidation, node_id: str, code: str) -> None:
    for tool in SCHEMAS:
        if tool != "begin_consolidation":
            assert agent.refusal(tool, **_good(tool, session, node_id))["code"] == code, tool


Change = Callable[[World], object]


def _deny(world: World) -> object:
    return deny_board("ada", "alpha", identity=world.container.identity, boards=world.container.boards)


def _grant(world: World) -> object:
    return grant_board("ada", "alpha", identity=world.container.identity, boards=world.container.boards)


def test_a_board_that_is_denied_in_the_middle_of_a_session_is_gone_and_comes_back_with_a_grant(boards: Boards) -> None:
    ada = boards.watched("ada", "alpha")
    session = ada.begin("spec_003", 1)
    session.decide("Calls end after a minute")
    session.propose()
    before = boards.of("alpha")

    _deny(boards.world)

    heard = len(ada.heard)
    _session_tools_refuse(ada, session, boards.nodes["alpha"], "session_not_found")
    assert ada.refusal("begin_consolidation", **_good("begin_consolidation", session, ""))["code"] == "permission_denied"
    assert [told for told in ada.heard[heard:] if MARK["alpha"] in told] == []
    _grant(boards.world)
    assert boards.of("alpha") == before
    assert session.commit()["applied"]["added"][0]["candidate_id"] == "cand_001"


@pytest.mark.parametrize("tool", SCHEMAS)
def test_a_flag_that_is_taken_away_in_the_middle_of_a_session_is_missed_at_the_next_call(boards: Boards, tool: str) -> None:
    ada = boards.watched("ada", "alpha")
    session = ada.begin("spec_003", 1)
    session.decide("Calls end after a minute")
    identity = boards.world.container.identity

    change_flags("ada", (), (FLAGS[tool],), identity=identity)

    error = ada.refusal(tool, **_good(tool, session, boards.nodes["alpha"]))
    assert (error["status"], error["code"]) == (403, "permission_denied")
    assert error["details"] == {"required_permission": FLAGS[tool]}
    change_flags("ada", (FLAGS[tool],), (), identity=identity)
    assert not ada.try_call(tool, _good(tool, session, boards.nodes["alpha"])).is_error


def test_the_qa_preset_may_do_all_but_commit(boards: Boards) -> None:
    session = boards.watched("quinn", "alpha", preset="QA").begin("spec_003", 1)
    session.decide("Calls end after a minute")
    session.propose()

    error = session.agent.refusal("commit_consolidation", session_id=session.session_id)

    assert error["details"] == {"required_permission": "kg.session.commit"}
    assert session.abort()["aborted"] is True


@pytest.mark.parametrize("preset", ["Executor", "Reporter", "Sprint Manager"])
def test_the_reading_presets_may_write_nothing(boards: Boards, preset: str) -> None:
    agent = boards.watched("reader", "alpha", preset=preset)
    for tool in SCHEMAS:
        error = agent.refusal(tool, **_good(tool, boards.sessions["alpha"], boards.nodes["alpha"]))
        assert error["details"] == {"required_permission": FLAGS[tool]}


def test_a_key_that_is_revoked_or_replaced_in_the_middle_of_a_session_opens_nothing_more(boards: Boards) -> None:
    ada, container = boards.watched("ada", "alpha"), boards.world.container
    session = ada.begin("spec_003", 1)
    session.decide("Calls end after a minute")

    issued = rotate_key("ada", identity=container.identity, ids=boards.world.ids, now=boards.world.clock.now())

    with pytest.raises(Unauthorized):
        session.propose()
    ada.api_key = issued.api_key
    assert session.propose()["cand_001"]["hint"] == "ADD"
    revoke_keys("ada", identity=container.identity, now=boards.world.clock.now())
    with pytest.raises(Unauthorized):
        session.commit()
    ada.api_key = rotate_key("ada", identity=container.identity, ids=boards.world.ids, now=boards.world.clock.now()).api_key
    assert session.commit()["committed"] is True
    revoke_agent("ada", identity=container.identity, now=boards.world.clock.now())
    with pytest.raises(Unauthorized):
        session.commit()


def test_open_sessions_on_a_board_that_was_taken_away_are_neither_named_nor_counted() -> None:
    with opened(environment={"PULSE_KG_MAX_OPEN_SESSIONS": "2"}) as world:
        world.board("alpha")
        world.board("beta")
        ada = world.agent("ada", boards=("alpha", "beta"))
        ada.begin("one")
        there = ada.begin("two", board_id="beta")
        begin = {"board_id": "beta", "source_type": "spec", "source_id": "three", "source_version": 1}
        assert len(ada.refusal("begin_consolidation", **begin)["details"]["open_sessions"]) == 2

        _deny(world)

        assert ada.call("begin_consolidation", **begin)["nothing_changed"] is False
        details = ada.refusal("begin_consolidation", **{**begin, "source_id": "four"})["details"]
        assert {s["board_id"] for s in details["open_sessions"]} == {"beta"}
        assert there.session_id in {s["session_id"] for s in details["open_sessions"]}


def test_a_board_that_is_erased_in_the_middle_of_a_session_takes_the_session_with_it(boards: Boards) -> None:
    session = boards.sessions["beta"]
    kept = boards.of("alpha")

    left = erase_board("beta", boards=boards.world.container.boards, now=boards.world.clock.now())

    assert set(left.values()) == {0}
    _session_tools_refuse(session.agent, session, boards.nodes["beta"], "session_not_found")
    begin = {"board_id": "beta", "source_type": "spec", "source_id": "spec_001", "source_version": 1}
    assert session.agent.refusal("begin_consolidation", **begin)["code"] == "permission_denied"
    assert not any(boards.of("beta").values())
    assert MARK["beta"] not in repr(dump(boards.world.container))
    assert boards.of("alpha") == kept


def test_idempotency_keys_are_of_their_session(boards: Boards) -> None:
    both = boards.watched("both", "alpha", "beta")
    one, two = both.begin("spec_003", 1), both.begin("spec_003", 1, board_id="beta")

    assert one.add("Decision", "One", idempotency_key="k") == "cand_001"
    assert two.add("Learning", "Two", idempotency_key="k") == "cand_001"
    assert one.add("Decision", "One", idempotency_key="k") == "cand_001"


def test_the_audit_and_the_events_of_a_board_hold_nothing_of_the_other(boards: Boards) -> None:
    both = boards.watched("both", "alpha", "beta")
    for board_id, mark in MARK.items():
        session = both.begin("spec_005", 1, board_id=board_id)
        session.edge(session.decide(f"Of {mark}"), "supersedes", boards.nodes[board_id])
        answer = session.commit()
        other = "beta" if board_id == "alpha" else "alpha"
        written = [answer, *boards.world.container.commits.audit_rows(board_id)]
        written += [record.event for record in boards.world.container.commits.outbox(board_id)]
        assert MARK[other] not in json.dumps(written)
        assert boards.nodes[other] not in json.dumps(written)


def test_erasing_a_board_again_ends_the_same_and_one_that_never_was_is_refused(boards: Boards) -> None:
    container, now = boards.world.container, boards.world.clock.now()
    first = erase_board("beta", boards=container.boards, now=now)

    assert erase_board("beta", boards=container.boards, now=now) == first
    assert set(first.values()) == {0}
    with pytest.raises(InvalidArgument):
        erase_board("nosuch", boards=container.boards, now=now)
