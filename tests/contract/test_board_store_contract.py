"""What `BoardStore` promises, of every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pulse_kg.domain.model import Board
from pulse_kg.domain.refs import Artifact
from pulse_kg.errors import PermissionDenied, SessionNotFound
from pulse_kg.ports.identity import Agent, KeyRecord
from tests.support.plans import NOW, Content, add, commit, edge, node, session, unit
from tests.support.stores import Stores

ARTIFACT = Artifact("spec", "spec_007")


def test_a_board_comes_back_as_it_was_made(store: Stores) -> None:
    assert store.boards.create("gamma", "Gämma ⚙", now=NOW + 1)
    assert store.boards.board("gamma") == Board("gamma", "Gämma ⚙", NOW + 1)
    assert store.boards.board("nowhere") is None
    assert [b.board_id for b in store.boards.boards()] == ["alpha", "beta", "gamma"]


def test_a_taken_id_makes_nothing(store: Stores) -> None:
    assert not store.boards.create("alpha", "Other", now=NOW + 1)
    assert store.boards.board("alpha") == Board("alpha", "Alpha", NOW)


def test_of_threads_that_make_one_board_at_once_one_wins(store: Stores) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda n: store.boards.create("gamma", f"g{n}", now=NOW), range(8))) == 1


def test_settings_are_set_one_by_one(store: Stores) -> None:
    store.boards.set_setting("alpha", "strict_attributes", True)
    store.boards.set_setting("alpha", "other", {"n": [1, 2.5, None]})
    store.boards.set_setting("alpha", "strict_attributes", False)
    found = store.boards.board("alpha")
    assert found is not None
    assert found.settings == {"strict_attributes": False, "other": {"n": [1, 2.5, None]}}
    assert store.boards.board("beta") == Board("beta", "Beta", NOW)


def test_attributes_are_added_to_a_node_type(store: Stores) -> None:
    store.boards.add_attribute("alpha", "Decision", "cost", "number")
    store.boards.add_attribute("alpha", "Decision", "owner", "text")
    store.boards.add_attribute("alpha", "Bug", "cost", "text")
    found = store.boards.board("alpha")
    assert found is not None
    assert found.added_attributes == {"Decision": {"cost": "number", "owner": "text"}, "Bug": {"cost": "text"}}


def test_threads_that_change_one_board_lose_nothing(store: Stores) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.boards.set_setting("alpha", f"k{n}", n), range(16)))
    found = store.boards.board("alpha")
    assert found is not None
    assert found.settings == {f"k{n}": n for n in range(16)}


def test_changes_of_an_unknown_board_are_refused(store: Stores) -> None:
    with pytest.raises(PermissionDenied):
        store.boards.set_setting("nowhere", "k", 1)
    with pytest.raises(PermissionDenied):
        store.boards.add_attribute("nowhere", "Bug", "k", "text")
    with pytest.raises(PermissionDenied):
        store.boards.erase("nowhere", now=NOW)
    assert store.boards.create("nowhere", "now it is there", now=NOW)


def fill(store: Stores, board_id: str, number: int) -> None:
    """Something of every kind on a board."""
    content = Content([node("A"), node("B", "Entity")], [edge("cand_001", "mentions", "cand_002")])
    commit(store, session(number, board_id), content)
    store.sessions.create(session(number + 1, board_id))
    store.sessions.append_node(session(number + 1).session_id, node("open"), unknown_keys=(), idempotency_key="k", limit=9, now=NOW)
    store.commits.record_ingested(board_id, ARTIFACT, 1, "sha256:1", now=NOW)
    agent = Agent(f"agt_{number}", f"agent {number}", "QA", (), (), ("alpha", "beta"), ("alpha", "beta"), NOW)
    store.identity.create_agent(agent, KeyRecord(f"aaaaaa{number:02d}", agent.agent_id, "f" * 64, NOW))


def test_an_erased_board_leaves_no_trace_and_its_id_is_never_used_again(store: Stores) -> None:
    fill(store, "alpha", 1)
    fill(store, "beta", 3)
    store.vectors.nearest("alpha", "Decision", [unit(1)], limit=1, live_only=True)
    beta = (store.boards.board("beta"), list(store.graph.all_nodes("beta")), list(store.commits.audit_rows("beta")))
    left = store.boards.erase("alpha", now=NOW + 1)
    assert set(left.values()) == {0}
    assert store.boards.board("alpha") is None
    assert [b.board_id for b in store.boards.boards()] == ["beta"]
    assert list(store.graph.all_nodes("alpha")) == []
    assert list(store.graph.all_edges("alpha")) == []
    assert list(store.vectors.all_vectors("alpha")) == []
    assert store.vectors.nearest("alpha", "Decision", [unit(1)], limit=1, live_only=True) == [[]]
    assert list(store.commits.audit_rows("alpha")) == []
    assert list(store.commits.outbox("alpha")) == []
    assert store.commits.last_hash("alpha", session(1).source.artifact) is None
    assert store.commits.ingested_hash("alpha", ARTIFACT, 1) is None
    for number in (1, 2):
        with pytest.raises(SessionNotFound):
            store.sessions.load(session(number).session_id)
    assert all("alpha" not in (*a.boards, *a.denied) for a in store.identity.agents())
    assert not store.boards.create("alpha", "again", now=NOW + 2)
    assert beta == (store.boards.board("beta"), list(store.graph.all_nodes("beta")), list(store.commits.audit_rows("beta")))
    assert len(store.sessions.open_sessions(board_id="beta", now=NOW)) == 1
    assert {b for a in store.identity.agents() for b in (*a.boards, *a.denied)} == {"beta"}


def test_an_erasure_may_be_repeated(store: Stores) -> None:
    fill(store, "alpha", 1)
    store.boards.erase("alpha", now=NOW)
    assert set(store.boards.erase("alpha", now=NOW + 1).values()) == {0}


def test_an_erased_board_takes_no_turn_and_no_session(store: Stores) -> None:
    store.boards.erase("alpha", now=NOW)
    with pytest.raises(PermissionDenied), store.commits.turn("alpha", wait_seconds=1):
        raise AssertionError
    add(store, 1, node("A"), board_id="beta")
