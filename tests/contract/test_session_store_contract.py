"""What `SessionStore` promises, of every store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.model import Candidates, Proposal, Session, Target, TextVector
from pulse_kg.errors import (
    CandidateNotFound,
    IdempotencyConflict,
    PayloadTooLarge,
    SessionAborted,
    SessionAlreadyCommitted,
    SessionExpired,
    SessionNotFound,
)
from pulse_kg.ports.sessions import GRACE_MS, Appended
from tests.support.plans import HOUR, NOW, Content, commit, edge, node, session, session_id, unit
from tests.support.stores import Stores

RICH = {"text": "Grüße, \u2028 日本語 🙂", "n": 1, "f": 1.0, "list": [1, 2.5, None, True], "deep": {"b": 1, "a": {"z": "\n\t"}}}


@pytest.fixture
def of(store: Stores) -> Session:
    """An open session on alpha."""
    made = session(1)
    store.sessions.create(made)
    return made


def append_node(store: Stores, title: str = "A", *, of: Session, now: int = NOW, key: str | None = None, **more: Any) -> Appended:
    more = {"unknown_keys": (), "limit": 500, **more}
    return store.sessions.append_node(of.session_id, node(title), idempotency_key=key, now=now, **more)


def append_edge(store: Stores, *, of: Session, now: int = NOW, key: str | None = None, **more: Any) -> Appended:
    more = {"unknown_keys": (), "limit": 500, "target_was_live": None, "draft": edge("cand_001", "supersedes", "dec_1"), **more}
    return store.sessions.append_edge(of.session_id, idempotency_key=key, now=now, **more)


def test_a_session_comes_back_as_it_was_stored(store: Stores, of: Session) -> None:
    assert store.sessions.load(of.session_id) == of
    full = session(2, reason="because", committable=False, nodes=3, edges=4, proposed_nodes=2, proposed_edges=1)
    store.sessions.create(full)
    assert store.sessions.load(full.session_id) == full


def test_an_unknown_session_is_not_found(store: Stores) -> None:
    with pytest.raises(SessionNotFound):
        store.sessions.load(session_id(9))


def test_candidates_are_numbered_from_one_and_come_back_in_order_as_they_were_given(store: Stores, of: Session) -> None:
    draft = node("Grüße", "Requirement", "body\n\tmore", attributes=RICH, source_ref="spec:spec_007#a%3Ab")
    assert store.sessions.append_node(of.session_id, draft, unknown_keys=["n"], idempotency_key=None, limit=9, now=NOW) == Appended(
        "cand_001"
    )
    assert append_node(store, "second", of=of) == Appended("cand_002")
    edge_draft = replace(edge("cand_001", "mentions", "ent_2", **RICH), layer="deterministic", rule_id="spec/1")
    assert append_edge(store, of=of, draft=edge_draft, unknown_keys=["f"], target_was_live=False) == Appended("edge_cand_001")
    assert append_edge(store, of=of) == Appended("edge_cand_002")
    found = store.sessions.candidates(of.session_id)
    assert [c.candidate_id for c in found.nodes] == ["cand_001", "cand_002"]
    assert found.nodes[0].draft == draft
    assert found.nodes[0].unknown_keys == ("n",)
    assert list(found.nodes[0].draft.attributes) == list(RICH)
    assert isinstance(found.nodes[0].draft.attributes["f"], float)
    assert [c.candidate_id for c in found.edges] == ["edge_cand_001", "edge_cand_002"]
    assert found.edges[0].draft == edge_draft
    assert (found.edges[0].unknown_keys, found.edges[0].target_was_live) == (("f",), False)
    assert found.edges[1].target_was_live is None
    assert store.sessions.edge_candidates(of.session_id) == found.edges
    assert store.sessions.node_candidate(of.session_id, "cand_002") == found.nodes[1]
    loaded = store.sessions.load(of.session_id)
    assert (loaded.nodes, loaded.edges) == (2, 2)


def test_numbers_go_beyond_three_digits(store: Stores, of: Session) -> None:
    ids = [append_node(store, of=of, limit=2000).candidate_id for _ in range(1001)]
    assert ids[-1] == "cand_1001"
    assert store.sessions.node_candidate(of.session_id, "cand_1001").candidate_id == "cand_1001"
    assert [c.candidate_id for c in store.sessions.candidates(of.session_id).nodes] == ids


@pytest.mark.parametrize(
    "candidate_id", ["cand_002", "cand_1", "cand_0001", "edge_cand_001", "cand_", "", "cand_-1", "cand_²", "cand_" + "9" * 30]
)
def test_another_candidate_id_is_not_found(store: Stores, of: Session, candidate_id: str) -> None:
    append_node(store, of=of)
    append_edge(store, of=of)
    with pytest.raises(CandidateNotFound):
        store.sessions.node_candidate(of.session_id, candidate_id)


def test_a_session_without_candidates_has_none(store: Stores, of: Session) -> None:
    assert store.sessions.candidates(of.session_id) == Candidates()
    assert store.sessions.candidates(session_id(9)) == Candidates()
    assert store.sessions.edge_candidates(of.session_id) == ()


def test_a_repeated_key_with_equal_content_gives_the_first_candidate_even_at_the_limit(store: Stores, of: Session) -> None:
    assert append_node(store, of=of, key="k", limit=1) == Appended("cand_001", replayed=False)
    assert append_node(store, of=of, key="k", limit=1) == Appended("cand_001", replayed=True)
    assert append_edge(store, of=of, key="e", limit=1) == Appended("edge_cand_001", replayed=False)
    again = append_edge(store, of=of, key="e", limit=1, target_was_live=True, unknown_keys=["x"])
    assert again == Appended("edge_cand_001", replayed=True)
    assert len(store.sessions.candidates(of.session_id).nodes) == 1


def test_a_repeated_key_with_other_content_is_a_conflict(store: Stores, of: Session) -> None:
    append_node(store, "one", of=of, key="k")
    append_edge(store, of=of, key="e")
    with pytest.raises(IdempotencyConflict) as refused:
        append_node(store, "two", of=of, key="k")
    assert refused.value.details["candidate_id"] == "cand_001"
    with pytest.raises(IdempotencyConflict):
        append_edge(store, of=of, key="k")
    with pytest.raises(IdempotencyConflict):
        append_node(store, "one", of=of, key="e")
    with pytest.raises(IdempotencyConflict):
        append_edge(store, of=of, key="e", draft=edge("cand_001", "supersedes", "dec_1", confidence=True))
    loaded = store.sessions.load(of.session_id)
    assert (loaded.nodes, loaded.edges) == (1, 1)


def test_true_and_one_are_different_content(store: Stores, of: Session) -> None:
    def add(value: object) -> Appended:
        draft = node("A", attributes={"v": value})
        return store.sessions.append_node(of.session_id, draft, unknown_keys=(), idempotency_key="k", limit=5, now=NOW)

    add(1)
    assert add(1.0).replayed
    with pytest.raises(IdempotencyConflict):
        add(True)


def test_a_key_belongs_to_its_session(store: Stores, of: Session) -> None:
    other = session(2)
    store.sessions.create(other)
    append_node(store, "one", of=of, key="k")
    assert append_node(store, "two", of=other, key="k") == Appended("cand_001")


def test_the_limit_counts_nodes_and_edges_apart(store: Stores, of: Session) -> None:
    append_node(store, of=of, limit=1)
    append_edge(store, of=of, limit=1)
    with pytest.raises(PayloadTooLarge) as refused:
        append_node(store, of=of, limit=1)
    assert refused.value.details["limit"] == 1
    with pytest.raises(PayloadTooLarge):
        append_edge(store, of=of, limit=1)
    assert store.sessions.load(of.session_id).nodes == 1


def test_threads_that_append_at_once_get_numbers_without_gaps(store: Stores, of: Session) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: append_node(store, f"t{n}", of=of, key=f"k{n // 2}" if n % 2 else None).candidate_id, range(48)))
    assert sorted(made) == [f"cand_{n:03d}" for n in range(1, 49)]
    assert store.sessions.load(of.session_id).nodes == 48


def test_threads_that_send_one_key_at_once_make_one_candidate(store: Stores, of: Session) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: append_node(store, of=of, key="same"), range(16)))
    assert {m.candidate_id for m in made} == {"cand_001"}
    assert sum(not m.replayed for m in made) == 1


def test_vectors_and_proposals_are_kept_with_the_candidates(store: Stores, of: Session) -> None:
    for title in "abc":
        append_node(store, title, of=of)
    append_edge(store, of=of, target_was_live=True)
    append_edge(store, of=of, target_was_live=True)
    vectors = {"cand_001": TextVector(unit(1)), "cand_003": TextVector(unit(0, 1), truncated=True)}
    store.sessions.save_vectors(of.session_id, vectors, now=NOW)
    proposals = (
        Proposal("cand_001", "ADD", 6, "None is near.", warnings=("w",), seen_seq=3),
        Proposal("cand_002", "SUPERSEDE", 2, "An edge.", (Target("dec_1", 2), Target("dec_2", 1)), score=0.8765, seen_seq=3),
    )
    store.sessions.save_proposals(of.session_id, proposals, edges_seen=1, targets_live={"edge_cand_001": False}, now=NOW)
    found = store.sessions.candidates(of.session_id)
    assert dict(found.vectors) == vectors
    assert dict(found.proposals) == {p.candidate_id: p for p in proposals}
    assert [e.target_was_live for e in found.edges] == [False, True]
    loaded = store.sessions.load(of.session_id)
    assert (loaded.proposed_nodes, loaded.proposed_edges) == (2, 1)


def test_saved_proposals_replace_the_earlier_ones(store: Stores, of: Session) -> None:
    append_node(store, of=of)
    append_node(store, of=of)
    both = [Proposal("cand_001", "ADD", 6, "x"), Proposal("cand_002", "NOOP", 1, "x", twin="cand_001")]
    store.sessions.save_proposals(of.session_id, both, edges_seen=0, targets_live={}, now=NOW)
    store.sessions.save_proposals(of.session_id, both[:1], edges_seen=0, targets_live={}, now=NOW)
    assert dict(store.sessions.candidates(of.session_id).proposals) == {"cand_001": both[0]}
    assert store.sessions.load(of.session_id).proposed_nodes == 1


def test_a_failed_commit_is_noted_and_a_propose_heals_it(store: Stores, of: Session) -> None:
    store.sessions.mark_uncommittable(of.session_id, "dec_1 changed", now=NOW)
    loaded = store.sessions.load(of.session_id)
    assert (loaded.committable, loaded.reason, loaded.state) == (False, "dec_1 changed", "open")
    store.sessions.save_proposals(of.session_id, (), edges_seen=0, targets_live={}, now=NOW)
    loaded = store.sessions.load(of.session_id)
    assert (loaded.committable, loaded.reason) == (True, None)


WRITES: dict[str, Callable[[Stores, Session, int], object]] = {
    "append_node": lambda store, of, now: append_node(store, of=of, now=now),
    "append_node with a known key": lambda store, of, now: append_node(store, of=of, now=now, key="before"),
    "append_edge": lambda store, of, now: append_edge(store, of=of, now=now),
    "save_vectors": lambda store, of, now: store.sessions.save_vectors(of.session_id, {"cand_001": TextVector(unit(1))}, now=now),
    "save_proposals": lambda store, of, now: store.sessions.save_proposals(of.session_id, (), edges_seen=0, targets_live={}, now=now),
}


@pytest.mark.parametrize("write", WRITES)
def test_an_expired_session_takes_no_writes(store: Stores, of: Session, write: str) -> None:
    append_node(store, of=of, key="before")
    WRITES[write](store, of, of.expires_at - 1)
    before = store.sessions.load(of.session_id), store.sessions.candidates(of.session_id)
    with pytest.raises(SessionExpired) as refused:
        WRITES[write](store, of, of.expires_at)
    assert refused.value.details == {"expired_at": format_instant(of.expires_at)}
    assert (store.sessions.load(of.session_id), store.sessions.candidates(of.session_id)) == before


@pytest.mark.parametrize("write", WRITES)
def test_an_aborted_session_takes_no_writes_even_after_its_expiry(store: Stores, of: Session, write: str) -> None:
    append_node(store, of=of, key="before")
    store.sessions.abort(of.session_id, now=NOW)
    for now in (NOW, of.expires_at + 1):
        with pytest.raises(SessionAborted):
            WRITES[write](store, of, now)
    assert store.sessions.candidates(of.session_id) == Candidates()


@pytest.mark.parametrize("write", WRITES)
def test_a_committed_session_takes_no_writes(store: Stores, write: str) -> None:
    of = session(5)
    commit(store, of, Content([node("A")]))
    for now in (NOW, of.expires_at + 1):
        with pytest.raises(SessionAlreadyCommitted):
            WRITES[write](store, of, now)
    assert store.sessions.candidates(of.session_id) == Candidates()


@pytest.mark.parametrize("write", WRITES)
def test_an_unknown_session_takes_no_writes(store: Stores, write: str) -> None:
    with pytest.raises(SessionNotFound):
        WRITES[write](store, session(9), NOW)


def test_an_abort_drops_the_candidates_and_may_be_repeated(store: Stores, of: Session) -> None:
    append_node(store, of=of)
    append_edge(store, of=of)
    store.sessions.abort(of.session_id, now=NOW)
    store.sessions.abort(of.session_id, now=NOW)
    assert store.sessions.load(of.session_id).state == "aborted"
    assert store.sessions.candidates(of.session_id) == Candidates()
    with pytest.raises(CandidateNotFound):
        store.sessions.node_candidate(of.session_id, "cand_001")


def test_an_abort_leaves_an_expired_session_as_it_is(store: Stores, of: Session) -> None:
    append_node(store, of=of)
    store.sessions.abort(of.session_id, now=of.expires_at)
    assert store.sessions.load(of.session_id).state == "open"


def test_an_abort_of_a_committed_or_unknown_session_is_refused(store: Stores) -> None:
    of = session(5)
    commit(store, of, Content([node("A")]))
    with pytest.raises(SessionAlreadyCommitted):
        store.sessions.abort(of.session_id, now=NOW)
    with pytest.raises(SessionNotFound):
        store.sessions.abort(session_id(9), now=NOW)


def test_marking_does_nothing_to_a_session_that_is_not_open(store: Stores, of: Session) -> None:
    done = session(5)
    commit(store, done, Content([node("A")]))
    store.sessions.mark_uncommittable(done.session_id, "late", now=NOW)
    assert store.sessions.load(done.session_id).committable
    store.sessions.mark_uncommittable(of.session_id, "late", now=of.expires_at)
    assert store.sessions.load(of.session_id).committable
    store.sessions.abort(of.session_id, now=NOW)
    store.sessions.mark_uncommittable(of.session_id, "late", now=NOW)
    assert store.sessions.load(of.session_id).committable


def test_open_sessions_are_those_that_are_open_and_not_expired(store: Stores) -> None:
    made = [
        session(1, started_at=NOW + 2),
        session(2, started_at=NOW + 1),
        session(3, "beta", started_at=NOW + 1),
        session(4, agent_id="agt_bob"),
        session(5, expires_at=NOW + 10),
        session(6),
    ]
    for each in made:
        store.sessions.create(each)
    store.sessions.abort(made[5].session_id, now=NOW)
    one, two, three, four, *_ = made
    now = NOW + 10
    assert store.sessions.open_sessions(agent_id="agt_ada", now=now) == (two, three, one)
    assert store.sessions.open_sessions(board_id="alpha", now=now) == (four, two, one)
    assert store.sessions.open_sessions(agent_id="agt_ada", board_id="beta", now=now) == (three,)
    assert store.sessions.open_sessions(agent_id="agt_nobody", now=now) == ()
    assert len(store.sessions.open_sessions(now=NOW)) == 5


def test_a_session_beyond_the_limit_is_not_stored(store: Stores) -> None:
    limited: dict[str, Any] = {"limit": 2, "counted_boards": {"alpha"}}
    for number, board, changes in ((1, "alpha", {}), (2, "beta", {}), (3, "alpha", {"agent_id": "agt_bob"})):
        assert store.sessions.create(session(number, board, **changes), **limited)
    ended = session(4, expires_at=NOW + 10)
    assert store.sessions.create(ended, **limited)
    assert not store.sessions.create(session(5, started_at=NOW + 9), **limited)
    with pytest.raises(SessionNotFound):
        store.sessions.load(session_id(5))
    assert store.sessions.create(session(5, started_at=NOW + 10), **limited)
    assert not store.sessions.create(session(6, started_at=NOW + 10), **limited)
    store.sessions.abort(session_id(1), now=NOW)
    assert store.sessions.create(session(6, started_at=NOW + 10), **limited)
    assert store.sessions.create(session(7))


def test_callers_at_once_do_not_get_beyond_the_limit(store: Stores) -> None:
    barrier = Barrier(16)

    def create(number: int) -> bool:
        barrier.wait(30)
        return store.sessions.create(session(number), limit=5, counted_boards={"alpha", "beta"})

    with ThreadPoolExecutor(16) as threads:
        made = list(threads.map(create, range(1, 17)))
    assert sum(made) == 5
    assert {s.session_id for s in store.sessions.open_sessions(now=NOW)} == {session_id(n) for n, was in enumerate(made, 1) if was}


def test_sessions_are_remembered_until_their_grace_ends_and_then_purged_in_portions(store: Stores) -> None:
    for number in range(1, 6):
        store.sessions.create(session(number))
    append_node(store, of=session(1))
    store.sessions.abort(session_id(2), now=NOW)
    end = NOW + HOUR + GRACE_MS
    assert store.sessions.purge(now=end - 1) == 0
    assert store.sessions.load(session_id(1)).nodes == 1
    assert store.sessions.purge(now=end, at_most=3) == 3
    assert store.sessions.purge(now=end, at_most=3) == 2
    assert store.sessions.purge(now=end) == 0
    with pytest.raises(SessionNotFound):
        store.sessions.load(session_id(1))
    assert store.sessions.candidates(session_id(1)) == Candidates()


def test_sessions_of_two_boards_never_mix(store: Stores) -> None:
    store.sessions.create(session(1, "alpha"))
    store.sessions.create(session(2, "beta"))
    append_node(store, "alpha's", of=session(1))
    append_node(store, "beta's", of=session(2))
    assert [c.draft.title for c in store.sessions.candidates(session_id(1)).nodes] == ["alpha's"]
    assert [c.draft.title for c in store.sessions.candidates(session_id(2)).nodes] == ["beta's"]
    assert [s.board_id for s in store.sessions.open_sessions(board_id="beta", now=NOW)] == ["beta"]
