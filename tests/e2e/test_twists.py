"""Sessions that twist the rules: twins with edges, what comes after the last propose, and what others do meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from pulse_kg.domain.model import Candidates, Session
from tests.support.world import Agent, Consolidation, Refused, World

LONG = " ".join(f"w{i}" for i in range(60))
TITLE = "Retry webhooks with backoff"


def made(session: Consolidation, candidate: str) -> str:
    """Commits; the node of a candidate."""
    applied = session.commit()["applied"]
    found = {e["candidate_id"]: e["node_id"] for kind in ("added", "updated", "noop") for e in applied[kind]}
    return found[candidate]


@pytest.fixture
def bob(world: World) -> Agent:
    """Another agent of the board."""
    return world.agent("bob")


# What others do between propose and commit


def test_a_possible_duplicate_that_came_to_say_the_same_is_a_conflict(agent: Agent, bob: Agent, world: World) -> None:
    session = bob.begin("spec_x", 1)
    node_id = made(session, session.add("Requirement", TITLE, LONG))
    mine = agent.begin("spec_y", 1)
    mine.add("Requirement", "Retry webhooks with exponential backoff", LONG)
    proposal = mine.propose()["cand_001"]
    assert (proposal["hint"], proposal["target_node"]) == ("ADD", node_id)
    theirs = bob.begin("spec_x", 2)
    theirs.add("Requirement", "Retry webhooks with exponential backoff", LONG)
    assert theirs.propose()["cand_001"]["hint"] == "UPDATE"
    theirs.commit()

    with pytest.raises(Refused) as refused:
        mine.commit()

    assert (refused.value.code, refused.value.details["nodes"]) == ("commit_conflict", [node_id])
    assert mine.propose()["cand_001"]["hint"] == "NOOP"
    mine.commit()
    assert world.container.graph.counts("alpha")["nodes"] == 1


def test_a_possible_duplicate_that_took_the_same_reference_is_a_conflict(agent: Agent, bob: Agent) -> None:
    before = " ".join(f"v{i}" for i in range(60))
    session = bob.begin("spec_r", 1)
    node_id = made(session, session.add("Requirement", "Poll often", before))
    mine = agent.begin("spec_r", 2)
    ref = {"spec_id": "spec_r", "section": "retry"}
    mine.add("Requirement", "Poll more often", " ".join([*(f"v{i}" for i in range(46)), *(f"u{i}" for i in range(14))]), source_ref=ref)
    assert mine.propose()["cand_001"]["hint"] == "ADD"
    theirs = bob.begin("spec_r", 3)
    theirs.add("Requirement", "Poll often", before + " x", source_ref=ref)
    assert theirs.commit()["applied"]["updated"] == [{"candidate_id": "cand_001", "node_id": node_id}]

    with pytest.raises(Refused) as refused:
        mine.commit()

    assert refused.value.code == "commit_conflict"


def test_a_statement_that_was_made_and_superseded_meanwhile_is_a_conflict_and_not_revived(agent: Agent, bob: Agent) -> None:
    mine = agent.begin("spec_y", 1)
    mine.decide(TITLE, LONG)
    mine.propose()
    theirs = bob.begin("spec_x", 1)
    old = theirs.decide(TITLE, LONG)
    theirs.edge(theirs.decide("Drop what fails"), "supersedes", old)
    theirs.commit()

    with pytest.raises(Refused) as refused:
        mine.commit()

    assert refused.value.code == "commit_conflict"
    assert mine.propose()["cand_001"]["hint"] == "NOOP"


def test_an_abort_that_comes_in_the_middle_of_a_commit_is_what_the_commit_is_told(
    agent: Agent, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = agent.begin("spec_y", 1)
    session.decide(TITLE)
    sessions = world.container.sessions
    read = sessions.load_all

    def aborted_after(session_id: str) -> tuple[Session, Candidates]:
        found = read(session_id)
        sessions.abort(session_id, now=world.clock.now())
        return found

    monkeypatch.setattr(sessions, "load_all", aborted_after)

    with pytest.raises(Refused) as refused:
        session.commit()

    assert (refused.value.status, refused.value.code) == (409, "session_aborted")


# Twins


@pytest.mark.parametrize("which", ["cand_001", "cand_002"])
def test_an_explicit_supersedes_edge_counts_from_whichever_twin_it_goes(agent: Agent, world: World, which: str) -> None:
    session = agent.begin("spec_x", 1)
    old = made(session, session.decide(TITLE, "body one", spec="spec_x", section="q"))
    session = agent.begin("spec_x", 2)
    for _ in range(2):
        session.decide(TITLE, "body two", spec="spec_x", section="q")
    session.edge(which, "supersedes", old)
    assert [p["hint"] for p in session.propose().values()] == ["SUPERSEDE", "NOOP"]
    session.commit()
    assert world.node(old).body == "body one"
    assert world.node(old).superseded_by is not None


@pytest.mark.parametrize("which", ["cand_001", "cand_002"])
def test_a_contradiction_counts_from_whichever_twin_it_goes(agent: Agent, world: World, which: str) -> None:
    session = agent.begin("spec_x", 1)
    old = made(session, session.add("Requirement", TITLE, LONG))
    session = agent.begin("spec_x", 2)
    for _ in range(2):
        session.add("Requirement", TITLE, LONG + " bis")
    session.edge(which, "contradicts", old)
    assert [p["hint"] for p in session.propose().values()] == ["ADD", "NOOP"]
    answer = session.commit()
    assert [e["rel"] for e in answer["edges_added"]] == ["contradicts"]
    assert world.node(old).version == 1


@pytest.mark.parametrize("order", ["ABC", "ACB", "BAC", "CBA"])
def test_equal_texts_at_two_places_are_two_nodes_in_any_order(agent: Agent, world: World, order: str) -> None:
    sections = {"A": "x", "B": None, "C": "y"}
    session = agent.begin("spec_x", 1)
    for letter in order:
        session.decide(TITLE, LONG, spec="spec_x", section=sections[letter])
    session.commit()
    assert world.container.graph.counts("alpha")["nodes"] == 2


# What comes after the last propose


@pytest.fixture
def proposed(agent: Agent) -> tuple[Consolidation, str]:
    """A session whose cand_001 was proposed to supersede a node, and that node."""
    session = agent.begin("spec_x", 1)
    old = made(session, session.decide("Retry webhooks after 3 s", LONG, spec="spec_x"))
    session = agent.begin("spec_x", 2)
    session.decide("Retry webhooks after 9 s", LONG, spec="spec_x")
    proposal = session.propose()["cand_001"]
    assert (proposal["hint"], proposal["target_node"]) == ("SUPERSEDE", old)
    return session, old


def outcome(answer: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Which candidates superseded, and which nodes were."""
    return [e["candidate_id"] for e in answer["applied"]["superseded"]], [n["node_id"] for n in answer["superseded_nodes"]]


def test_an_edge_the_other_way_round_takes_back_what_was_proposed(proposed: tuple[Consolidation, str]) -> None:
    session, old = proposed
    session.edge(old, "supersedes", "cand_001")
    answer = session.commit()
    assert outcome(answer)[0] == []
    assert any(w.startswith("changed_since_propose") for w in answer["warnings"])


def test_a_later_candidate_that_supersedes_by_an_edge_is_the_only_one_that_does(proposed: tuple[Consolidation, str]) -> None:
    session, old = proposed
    session.edge(session.decide("Give up at once", spec="spec_x"), "supersedes", old)
    answer = session.commit()
    assert outcome(answer) == (["cand_002"], [old])
    assert len(answer["edges_added"]) == 1


def test_a_later_candidate_that_states_the_old_one_unchanged_keeps_it(proposed: tuple[Consolidation, str], world: World) -> None:
    session, old = proposed
    session.decide("Retry webhooks after 3 s", LONG, spec="spec_x")
    answer = session.commit()
    assert outcome(answer) == ([], [])
    assert answer["applied"]["noop"] == [{"candidate_id": "cand_002", "node_id": old}]
    assert world.node(old).live


def test_an_earlier_hint_that_session_and_board_both_changed_is_a_conflict(proposed: tuple[Consolidation, str], bob: Agent) -> None:
    session, old = proposed
    theirs = bob.begin("spec_z", 1)
    theirs.decide("Something else entirely")
    theirs.commit()
    session.edge(old, "supersedes", "cand_001")
    with pytest.raises(Refused) as refused:
        session.commit()
    assert refused.value.code == "commit_conflict"
    session.propose()
    assert session.commit()["committed"] is True


# Revoked


def test_what_an_administrator_revoked_no_agent_makes_active_again(agent: Agent, world: World) -> None:
    from pulse_kg.domain.audit import Administration
    from pulse_kg.usecases.administration import administer_node

    session = agent.begin("spec_x", 1)
    node_id = made(session, session.decide(TITLE, LONG, spec="spec_x", section="q"))
    administer_node(Administration("alpha", node_id, "revoke", "never meant", "root"), world.container.services)
    session = agent.begin("spec_x", 2)
    session.decide(TITLE, LONG + " more", spec="spec_x", section="q", status="active")
    session.commit()
    node = world.node(node_id)
    assert (node.version, node.status, node.revoked) == (2, "revoked", True)
