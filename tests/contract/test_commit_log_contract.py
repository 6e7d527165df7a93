"""What `CommitLog` promises, of every store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pulse_kg.domain.audit import replayed
from pulse_kg.domain.model import Candidates, Session
from pulse_kg.domain.refs import Artifact
from pulse_kg.errors import PermissionDenied, SessionAborted, SessionAlreadyCommitted, SessionExpired, SessionNotFound, StoreUnavailable
from tests.support.plans import NOW, Content, add, administered, commit, edge, node, plan, session, session_id, unit
from tests.support.stores import READERS_NEVER_WAIT, Stores

SPEC = Artifact("spec", "spec_007")
FULL = Content([node("A", body="text"), node("B", "Entity")], [edge("cand_001", "mentions", "cand_002", reason="why")])


def everything(store: Stores, board_id: str = "alpha", *sessions: Session) -> dict[str, Any]:
    """All that can be seen of a board."""
    return {
        "board": store.boards.board(board_id),
        "nodes": list(store.graph.all_nodes(board_id)),
        "edges": list(store.graph.all_edges(board_id)),
        "vectors": list(store.vectors.all_vectors(board_id)),
        "audit": list(store.commits.audit_rows(board_id)),
        "outbox": list(store.commits.outbox(board_id)),
        "hash": store.commits.last_hash(board_id, SPEC),
        "sessions": [store.sessions.load(s.session_id) for s in sessions],
        "candidates": [store.sessions.candidates(s.session_id) for s in sessions],
    }


def test_a_commit_is_visible_as_a_whole_through_every_port(store: Stores) -> None:
    of = session(1)
    store.sessions.create(of)
    store.sessions.append_node(of.session_id, FULL.nodes[0], unknown_keys=(), idempotency_key="k", limit=9, now=NOW)
    made = commit(store, of, FULL, now=NOW + 5, create=False)
    seen = everything(store, "alpha", of)
    assert (seen["nodes"], seen["edges"]) == (list(made.nodes), list(made.edges))
    assert [v[0] for v in seen["vectors"]] == [w.node_id for w in made.vectors]
    assert seen["audit"] == [made.audit] == [store.commits.audit_row("alpha", 1)]
    assert [(r.board_id, r.seq, r.event) for r in seen["outbox"]] == [("alpha", 1, made.event)]
    assert seen["outbox"][0].state in {"applied", "published"}
    assert seen["board"].commit_seq == 1
    assert seen["hash"] == of.content_hash
    (closed,) = seen["sessions"]
    assert (closed.state, closed.answer, closed.overrides, closed.nodes) == ("committed", made.answer, "[]", 1)
    assert seen["candidates"] == [Candidates()]


def test_an_audit_row_keeps_all_that_a_replay_needs(store: Stores) -> None:
    made = commit(store, session(1), FULL)
    row = store.commits.audit_row("alpha", 1)
    assert row is not None
    assert replayed(row) == replayed(made.audit)
    assert replayed(row).candidates.nodes[0].draft == FULL.nodes[0]
    assert store.commits.audit_row("alpha", 2) is None
    assert store.commits.audit_row("beta", 1) is None


def test_a_turn_left_without_a_commit_changes_nothing(store: Stores) -> None:
    add(store, 1, node("before"))
    of = session(2)
    store.sessions.create(of)
    before = everything(store, "alpha", of)
    with store.commits.turn("alpha", wait_seconds=1) as turn:
        plan(store, of, FULL, seq=turn.board.commit_seq + 1)
    assert everything(store, "alpha", of) == before


def test_a_turn_left_by_an_exception_changes_nothing(store: Stores) -> None:
    of = session(2)
    store.sessions.create(of)
    before = everything(store, "alpha", of)
    with pytest.raises(KeyError), store.commits.turn("alpha", wait_seconds=1):
        raise KeyError("x")
    assert everything(store, "alpha", of) == before
    commit(store, of, FULL, create=False)


def test_commits_are_numbered_without_gaps_on_each_board(store: Stores) -> None:
    for number, board_id in enumerate(["alpha", "beta", "alpha", "beta", "alpha"], 1):
        add(store, number, node(f"n{number}"), board_id=board_id)
    assert [r["audit_row_id"] for r in store.commits.audit_rows("alpha")] == [1, 2, 3]
    assert [r.seq for r in store.commits.outbox("alpha")] == [1, 2, 3]
    assert [r["audit_row_id"] for r in store.commits.audit_rows("beta")] == [1, 2]
    assert [r["audit_row_id"] for r in store.commits.audit_rows("alpha", after=1)] == [2, 3]
    assert [r.seq for r in store.commits.outbox("alpha", after=2)] == [3]
    assert {r["board_id"] for r in store.commits.audit_rows("alpha")} == {"alpha"}


def test_the_turn_shows_the_board_and_its_last_commit(store: Stores) -> None:
    with store.commits.turn("alpha", wait_seconds=1) as turn:
        assert turn.board == store.boards.board("alpha")
    add(store, 1, node("A"))
    with store.commits.turn("alpha", wait_seconds=1) as turn:
        assert turn.board.commit_seq == 1


def test_a_plan_that_is_not_the_next_one_is_refused(store: Stores) -> None:
    of = session(1)
    store.sessions.create(of)
    for seq in (0, 2):
        with store.commits.turn("alpha", wait_seconds=1) as turn, pytest.raises(ValueError, match="commit"):
            turn.commit(plan(store, of, FULL, seq=seq))
    with store.commits.turn("beta", wait_seconds=1) as turn, pytest.raises(ValueError, match="commit"):
        turn.commit(plan(store, of, FULL, seq=1))
    assert everything(store)["audit"] == []


def test_a_turn_commits_once(store: Stores) -> None:
    of = session(1)
    store.sessions.create(of)
    with store.commits.turn("alpha", wait_seconds=1) as turn:
        made = plan(store, of, FULL, seq=1)
        turn.commit(made)
        assert store.graph.counts("alpha")["nodes"] == 2
        with pytest.raises(RuntimeError):
            turn.commit(made)
    with pytest.raises(RuntimeError):
        turn.commit(made)
    assert len(everything(store)["audit"]) == 1


def test_a_session_that_changed_since_it_was_loaded_is_not_committed(store: Stores) -> None:
    expired, aborted, done, unknown, theirs = session(1), session(2), session(3), session(9), session(4)
    for each in (expired, aborted, done, theirs):
        store.sessions.create(each)
    store.sessions.abort(aborted.session_id, now=NOW)
    commit(store, done, Content([node("done")]), create=False)
    before = everything(store, "alpha", expired, aborted, done)
    cases: list[tuple[Session, int, type[Exception]]] = [
        (expired, expired.expires_at, SessionExpired),
        (aborted, NOW, SessionAborted),
        (done, NOW, SessionAlreadyCommitted),
        (unknown, NOW, SessionNotFound),
        (session(4, agent_id="agt_other"), NOW, SessionNotFound),
    ]
    for of, now, error in cases:
        with pytest.raises(error), store.commits.turn("alpha", wait_seconds=1) as turn:
            turn.commit(plan(store, of, FULL, seq=turn.board.commit_seq + 1, now=now))
        with store.commits.turn("alpha", wait_seconds=1) as turn, pytest.raises(error):
            turn.commit(plan(store, of, FULL, seq=turn.board.commit_seq + 1, now=now))
    assert everything(store, "alpha", expired, aborted, done) == before


def test_after_a_refused_commit_the_same_turn_may_commit_another_session(store: Stores) -> None:
    aborted, good = session(1), session(2)
    store.sessions.create(aborted)
    store.sessions.create(good)
    store.sessions.abort(aborted.session_id, now=NOW)
    with store.commits.turn("alpha", wait_seconds=1) as turn:
        with pytest.raises(SessionAborted):
            turn.commit(plan(store, aborted, FULL, seq=1))
        assert store.graph.counts("alpha")["nodes"] == 0
        turn.commit(plan(store, good, Content([node("good")]), seq=1))
    assert [r["session_id"] for r in store.commits.audit_rows("alpha")] == [good.session_id]
    assert store.graph.counts("alpha")["nodes"] == 1


def test_what_a_turn_reads_is_what_it_commits_to(store: Stores) -> None:
    (old,) = add(store, 1, node("old"))
    started, release = threading.Event(), threading.Event()

    def other() -> None:
        started.set()
        release.wait(5)
        add(store, 3, node("other"), hints={"cand_001": ("SUPERSEDE", old)})

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(other)
        with store.commits.turn("alpha", wait_seconds=5):
            started.wait(5)
            release.set()
            for _ in range(20):
                assert store.graph.nodes("alpha", [old])[old].live
                assert store.vectors.nearest("alpha", "Decision", [unit(1)], limit=5, live_only=True)[0][0].node_id == old
        late.result(20)
    assert not store.graph.nodes("alpha", [old])[old].live


def test_the_writes_of_a_turn_through_other_ports_belong_to_it(store: Stores) -> None:
    of = session(1)
    store.sessions.create(of)
    with store.commits.turn("alpha", wait_seconds=1):
        store.sessions.append_node(of.session_id, node("A"), unknown_keys=(), idempotency_key=None, limit=9, now=NOW)
        assert store.sessions.load(of.session_id).nodes == 1
    after = store.sessions.load(of.session_id)
    assert after.nodes == len(store.sessions.candidates(of.session_id).nodes)


def test_a_turn_waits_no_longer_than_it_may(store: Stores) -> None:
    def waiting() -> StoreUnavailable:
        with pytest.raises(StoreUnavailable) as refused, store.commits.turn("alpha", wait_seconds=0.05):
            raise AssertionError
        return refused.value

    with ThreadPoolExecutor(1) as pool, store.commits.turn("alpha", wait_seconds=1):
        error = pool.submit(waiting).result(10)
    assert error.retryable
    assert error.details["store"]
    add(store, 1, node("A"))


def test_threads_commit_one_after_the_other_and_nothing_is_lost(store: Stores) -> None:
    def work(worker: int) -> list[int]:
        boards = ("alpha", "beta")
        return [
            commit(store, session(100 * worker + n, boards[n % 2]), Content([node(f"w{worker} n{n}"), node("x", "Entity")])).seq
            for n in range(6)
        ]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(1, 9)))
    for board_id in ("alpha", "beta"):
        assert [r["audit_row_id"] for r in store.commits.audit_rows(board_id)] == list(range(1, 25))
        assert [r.seq for r in store.commits.outbox(board_id)] == list(range(1, 25))
        assert store.graph.counts(board_id)["nodes"] == 48
        nodes = list(store.graph.all_nodes(board_id))
        assert sorted(n.created_seq for n in nodes) == sorted([*range(1, 25), *range(1, 25)])
        assert len(list(store.vectors.all_vectors(board_id))) == 48


def test_of_threads_that_commit_one_session_at_once_one_wins(store: Stores) -> None:
    of = session(1)
    store.sessions.create(of)

    def attempt(_: int) -> bool:
        try:
            commit(store, of, FULL, create=False)
        except SessionAlreadyCommitted:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1
    assert store.graph.counts("alpha")["nodes"] == 2


def test_readers_go_on_while_a_turn_is_held(store: Stores, store_name: str) -> None:
    if store_name not in READERS_NEVER_WAIT:
        pytest.skip("all threads of this store share one connection")
    add(store, 1, node("A"))

    def read() -> dict[str, Any]:
        store.vectors.nearest("alpha", "Decision", [unit(1)], limit=1, live_only=True)
        return everything(store)

    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(read).result(10)
        with store.commits.turn("alpha", wait_seconds=1) as turn:
            of = session(2)
            store.sessions.create(of)
            made = plan(store, of, FULL, seq=turn.board.commit_seq + 1)
            assert pool.submit(read).result(10) == before
            turn.commit(made)
        assert len(pool.submit(read).result(10)["audit"]) == 2


def test_an_administrative_commit_has_its_row_and_event_and_leaves_the_artifact(store: Stores) -> None:
    (a,) = add(store, 1, node("A"))
    made = administered(store, "alpha", a, kind="revoke")
    assert made.seq == 2
    assert store.commits.audit_row("alpha", 2) == made.audit
    assert [r.event for r in store.commits.outbox("alpha", after=1)] == [made.event]
    assert store.commits.last_hash("alpha", SPEC) == session(1).content_hash
    board = store.boards.board("alpha")
    assert board is not None
    assert board.commit_seq == 2


def test_the_last_hash_is_that_of_the_last_commit_whatever_its_version(store: Stores) -> None:
    assert store.commits.last_hash("alpha", SPEC) is None
    commit(store, session(1), FULL)
    commit(store, session(2), Content([node("C")]))
    commit(store, session(3, "beta"), FULL)
    assert store.commits.last_hash("alpha", SPEC) == session(2).content_hash
    assert store.commits.last_hash("beta", SPEC) == session(3).content_hash
    assert store.commits.last_hash("alpha", Artifact("spec", "other")) is None
    assert store.commits.last_hash("alpha", Artifact("card", "spec_007")) is None


def test_ingested_hashes_are_kept_by_artifact_version(store: Stores) -> None:
    odd = Artifact("spec", "a:b#c%d é")
    store.commits.record_ingested("alpha", odd, 1, "sha256:1", now=NOW)
    store.commits.record_ingested("alpha", odd, 2, "sha256:2", now=NOW)
    store.commits.record_ingested("alpha", odd, 1, "sha256:3", now=NOW + 1)
    assert store.commits.ingested_hash("alpha", odd, 1) == "sha256:3"
    assert store.commits.ingested_hash("alpha", odd, 2) == "sha256:2"
    assert store.commits.ingested_hash("alpha", odd, 3) is None
    assert store.commits.ingested_hash("beta", odd, 1) is None
    assert store.commits.last_hash("alpha", odd) is None


def test_an_unknown_board_has_no_turn(store: Stores) -> None:
    with pytest.raises(PermissionDenied) as refused, store.commits.turn("nowhere", wait_seconds=1):
        raise AssertionError
    assert refused.value.details == {"board_id": "nowhere"}


def test_commits_of_one_board_leave_the_other_as_it_is(store: Stores) -> None:
    commit(store, session(1, "beta"), FULL)
    before = everything(store, "beta")
    commit(store, session(2), FULL)
    commit(store, session(3), Content([node("more")]))
    assert everything(store, "beta") == before
    assert session_id(2) not in str(everything(store, "beta"))
