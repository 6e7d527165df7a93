"""What the DynamoDB stores do beyond the contract: guesses, caches, lifetimes, and what a crash leaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.dynamodb import blobs, keys
from pulse_kg.adapters.dynamodb.boards import DynamoBoardStore
from pulse_kg.adapters.dynamodb.client import Dynamo, Refused, update
from pulse_kg.adapters.dynamodb.identity import DynamoIdentityStore
from pulse_kg.adapters.dynamodb.rates import DynamoRateLimiter
from pulse_kg.adapters.dynamodb.session_items import node_draft
from pulse_kg.adapters.dynamodb.sessions import DynamoSessionStore
from pulse_kg.adapters.dynamodb.tables import BOARDS, PK, SESSIONS, SK, TTL
from pulse_kg.domain.model import Board, Proposal, Session, TextVector
from pulse_kg.errors import (
    IdempotencyConflict,
    PayloadTooLarge,
    PermissionDenied,
    SessionAborted,
    SessionAlreadyCommitted,
    SessionExpired,
    SessionNotFound,
    StoreUnavailable,
)
from pulse_kg.ports.identity import Agent, KeyRecord
from pulse_kg.ports.sessions import GRACE_MS, Appended
from tests.support.dynamo_faults import WRITES, Faulty, dynamo_on, faulty, items
from tests.support.plans import HOUR, NOW, edge, node, session, unit

DAY = 86_400_000


@pytest.fixture
def driver() -> Iterator[Faulty]:
    with faulty() as made:
        yield made


@pytest.fixture
def dynamo(driver: Faulty) -> Dynamo:
    made = dynamo_on(driver)
    boards = DynamoBoardStore(made)
    boards.create("alpha", "Alpha", now=NOW)
    boards.create("beta", "Beta", now=NOW)
    return made


@pytest.fixture
def sessions(dynamo: Dynamo) -> DynamoSessionStore:
    return DynamoSessionStore(dynamo)


@pytest.fixture
def of(sessions: DynamoSessionStore) -> Session:
    made = session(1)
    sessions.create(made)
    return made


def append(store: DynamoSessionStore, title: str = "A", *, key: str | None = None, limit: int = 99, now: int = NOW) -> Appended:
    return store.append_node(session(1).session_id, node(title), unknown_keys=(), idempotency_key=key, limit=limit, now=now)


def requests(dynamo: Dynamo, call: Callable[[], object]) -> int:
    before = dynamo.requests
    call()
    return dynamo.requests - before


class TestSessions:
    def test_a_candidate_of_a_session_that_was_just_loaded_costs_one_request(
        self, dynamo: Dynamo, sessions: DynamoSessionStore, of: Session
    ) -> None:
        sessions.load(of.session_id)
        assert [requests(dynamo, lambda: append(sessions)) for _ in range(3)] == [1, 1, 1]

    def test_what_another_process_added_is_counted_although_it_was_not_seen(self, dynamo: Dynamo, of: Session) -> None:
        one, other = DynamoSessionStore(dynamo), DynamoSessionStore(dynamo)
        ids = [append(store).candidate_id for store in (one, other, one, other, other, one)]
        assert ids == [f"cand_{n:03d}" for n in range(1, 7)]
        assert one.load(of.session_id).nodes == 6

    def test_a_guess_is_no_reason_for_a_refusal(self, dynamo: Dynamo, of: Session) -> None:
        one, other = DynamoSessionStore(dynamo), DynamoSessionStore(dynamo)
        append(one, key="k")
        assert append(other, key="k") == Appended("cand_001", replayed=True)
        append(one)
        with pytest.raises(PayloadTooLarge):
            append(one, limit=2)
        assert append(one, key="k", limit=2) == Appended("cand_001", replayed=True)
        with pytest.raises(IdempotencyConflict):
            append(other, "B", key="k", limit=2)
        other.abort(of.session_id, now=NOW)
        for now in (NOW, of.expires_at + 1):
            with pytest.raises(SessionAborted):
                append(one, key="k", now=now)

    def test_a_key_that_another_process_used_meanwhile_makes_nothing_new(self, dynamo: Dynamo, of: Session) -> None:
        one, other = DynamoSessionStore(dynamo), DynamoSessionStore(dynamo)
        append(one)  # and thinks to know the session from here on
        append(other)
        append(other, "B", key="k")
        assert append(one, "B", key="k") == Appended("cand_003", replayed=True)
        with pytest.raises(IdempotencyConflict):
            append(one, "C", key="k")
        assert one.load(of.session_id).nodes == 3

    def test_every_item_of_a_session_ends_and_what_leads_to_it_ends_last(
        self, driver: Faulty, sessions: DynamoSessionStore, of: Session
    ) -> None:
        append(sessions, key="k")
        sessions.append_edge(
            of.session_id,
            edge("cand_001", "supersedes", "dec_1"),
            unknown_keys=(),
            target_was_live=True,
            idempotency_key=None,
            limit=9,
            now=NOW,
        )
        sessions.save_vectors(of.session_id, {"cand_001": TextVector(unit(1))}, now=NOW)
        sessions.save_proposals(of.session_id, [Proposal("cand_001", "ADD", 6, "x")], edges_seen=1, targets_live={}, now=NOW)
        lives = {(item[PK]["S"], item[SK]["S"]): int(item[TTL]["N"]) for item in driver.scan(TableName="test_sessions")["Items"]}
        assert len(lives) == 10
        end = (of.expires_at + GRACE_MS) // 1000
        own = {sk: life for (pk, sk), life in lives.items() if pk == keys.session(of.session_id)}
        assert own.pop(keys.HEAD) == min(lives.values()) == end
        assert set(own.values()) == {end + DAY // 1000}
        assert lives[keys.board("alpha"), keys.opened(of.session_id)] == max(lives.values()) > max(own.values())

    def test_a_commits_answer_comes_back_from_the_session_or_from_its_parts(self, dynamo: Dynamo, sessions: DynamoSessionStore) -> None:
        answer = {"audit_row_id": 7, "text": "Grüße " * 10}
        content = blobs.packed(answer)
        for number, inline in ((1, True), (2, False)):
            of = session(number)
            sessions.create(of)
            token = "" if inline else "7-3"
            halves = (content[:20], content[20:])
            dynamo.put_many(
                SESSIONS, [(keys.session(of.session_id), keys.part("answer#7-3", n), {"part": part}) for n, part in enumerate(halves)]
            )
            sessions.mark_uncommittable(of.session_id, "why", now=NOW)
            write = sessions.closing_write(of, answer=content if inline else None, answer_token=token, overrides='["ö"]', committed_at=NOW)
            dynamo.transact([write])
            loaded, candidates = sessions.load_all(of.session_id)
            assert loaded == sessions.load(of.session_id)
            assert loaded == replace(of, state="committed", answer=answer, overrides='["ö"]')
            assert candidates.nodes == ()

    def test_an_answer_with_a_hole_in_it_is_an_outage(self, dynamo: Dynamo, sessions: DynamoSessionStore, of: Session) -> None:
        dynamo.put_many(SESSIONS, [(keys.session(of.session_id), keys.part("answer#t", 0), {"part": blobs.packed({"a": 1})[:8]})])
        dynamo.transact([sessions.closing_write(of, answer=None, answer_token="t", overrides="[]", committed_at=NOW)])
        with pytest.raises(StoreUnavailable):
            sessions.load(of.session_id)

    def test_overrides_that_fit_in_no_item_are_refused_before_anything_is_written(self, sessions: DynamoSessionStore, of: Session) -> None:
        noise = "".join(chr(0x4E00 + (n * 7919) % 20_000) for n in range(250_000))
        with pytest.raises(PayloadTooLarge):
            sessions.closing_write(of, answer=b"", answer_token=None, overrides=noise, committed_at=NOW)

    CHANGES: ClassVar[dict[str, tuple[Callable[[DynamoSessionStore], object], int, type[Exception]]]] = {
        "a candidate more": (append, NOW, StoreUnavailable),
        "proposals for more": (
            lambda store: store.save_proposals(
                session(1).session_id, [Proposal("cand_001", "ADD", 6, "x")], edges_seen=0, targets_live={}, now=NOW
            ),
            NOW,
            StoreUnavailable,
        ),
        "an abort": (lambda store: store.abort(session(1).session_id, now=NOW), NOW, SessionAborted),
        "its end": (lambda store: None, NOW + HOUR, SessionExpired),
        "its removal": (lambda store: store.purge(now=NOW + HOUR + GRACE_MS), NOW, SessionNotFound),
    }

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_session_that_changed_since_it_was_loaded_is_not_closed(
        self, dynamo: Dynamo, sessions: DynamoSessionStore, of: Session, change: str
    ) -> None:
        happens, now, expected = self.CHANGES[change]
        write = sessions.closing_write(of, answer=b"", answer_token=None, overrides="[]", committed_at=now)
        happens(sessions)
        with pytest.raises(Refused) as refused:
            dynamo.transact([write])
        assert isinstance(sessions.refusal(refused.value.items[0] or {}, of, now), expected)

    def test_a_session_of_another_board_or_agent_is_not_there(self, dynamo: Dynamo, sessions: DynamoSessionStore, of: Session) -> None:
        for wrong in (replace(of, board_id="beta"), replace(of, agent_id="agt_bob")):
            with pytest.raises(Refused) as refused:
                dynamo.transact([sessions.closing_write(wrong, answer=b"", answer_token=None, overrides="[]", committed_at=NOW)])
            assert isinstance(sessions.refusal(refused.value.items[0] or {}, wrong, NOW), SessionNotFound)

    def test_a_session_is_closed_once(self, dynamo: Dynamo, sessions: DynamoSessionStore, of: Session) -> None:
        write = sessions.closing_write(of, answer=blobs.packed({}), answer_token=None, overrides="[]", committed_at=NOW)
        dynamo.transact([write])
        with pytest.raises(Refused) as refused:
            dynamo.transact([write])
        assert isinstance(sessions.refusal(refused.value.items[0] or {}, of, NOW), SessionAlreadyCommitted)

    def test_five_hundred_candidates_are_proposed_in_two_writes(self, dynamo: Dynamo, sessions: DynamoSessionStore, of: Session) -> None:
        vectors = {f"cand_{n:03d}": TextVector(bytes([n % 256]) * 1536, truncated=n % 2 == 0) for n in range(1, 501)}
        proposals = [Proposal(candidate, "ADD", 6, f"Why {candidate}.") for candidate in vectors]
        drafts = [(f"n#{n:06d}", node_draft(node(f"t{n}"), ()).item(of.expires_at)) for n in range(1, 501)]
        dynamo.put_many(SESSIONS, [(keys.session(of.session_id), sk, item) for sk, item in drafts])
        dynamo.update(update(SESSIONS, keys.session(of.session_id), keys.HEAD, "SET nodes = :n", n=500))
        sessions.load(of.session_id)
        assert requests(dynamo, lambda: sessions.save_vectors(of.session_id, vectors, now=NOW)) == 1
        assert requests(dynamo, lambda: sessions.save_proposals(of.session_id, proposals, edges_seen=0, targets_live={}, now=NOW)) == 1
        loaded, found = sessions.load_all(of.session_id)
        assert (loaded.nodes, loaded.proposed_nodes, len(found.nodes)) == (500, 500, 500)
        assert dict(found.vectors) == vectors
        assert tuple(found.proposals.values()) == tuple(proposals)

    def test_later_vectors_replace_earlier_ones_and_those_of_no_candidate_are_passed_over(
        self, sessions: DynamoSessionStore, of: Session
    ) -> None:
        append(sessions)
        append(sessions)
        later = {"cand_001": TextVector(unit(2)), "cand_009": TextVector(unit(9)), "nonsense": TextVector(unit(9))}
        sessions.save_vectors(of.session_id, later, now=NOW + 1)
        sessions.save_vectors(of.session_id, {"cand_001": TextVector(unit(1)), "cand_002": TextVector(unit(3))}, now=NOW)
        sessions.save_vectors(of.session_id, {}, now=NOW)
        assert sessions.candidates(of.session_id).vectors == {"cand_001": TextVector(unit(2)), "cand_002": TextVector(unit(3))}

    def test_a_state_of_which_a_part_is_not_to_be_seen_is_read_again(
        self, driver: Faulty, dynamo: Dynamo, sessions: DynamoSessionStore, of: Session
    ) -> None:
        append(sessions)
        sessions.save_proposals(of.session_id, [Proposal("cand_001", "ADD", 6, "x")], edges_seen=0, targets_live={}, now=NOW)
        whole = sessions.candidates(of.session_id)
        pk = keys.session(of.session_id)
        for sk in (keys.candidate("n", 1), keys.part("p", 0)):
            item = dynamo.get(SESSIONS, pk, sk)
            assert item is not None
            dynamo.delete_many(SESSIONS, [(pk, sk)])
            with pytest.raises(StoreUnavailable):
                sessions.candidates(of.session_id)
            reads = 0

            def appears(operation: str, item: dict[str, Any] = item) -> None:
                nonlocal reads
                reads += operation == "query"
                if reads == 2 and operation == "query":
                    reads += 1
                    dynamo.put_many(SESSIONS, [(item[PK], item[SK], item)])

            driver.fault = appears
            assert sessions.candidates(of.session_id) == whole
            driver.fault = lambda operation: None

    def test_while_nothing_can_be_over_nothing_is_asked(self, dynamo: Dynamo, sessions: DynamoSessionStore) -> None:
        for number in (1, 2, 3):
            sessions.create(session(number, expires_at=NOW + number * HOUR))
        assert requests(dynamo, lambda: sessions.purge(now=NOW)) == 1
        assert requests(dynamo, lambda: sessions.purge(now=NOW + GRACE_MS - 1)) == 0
        assert sessions.purge(now=NOW + GRACE_MS + HOUR) == 1
        sessions.create(session(4, expires_at=NOW + GRACE_MS + HOUR + 1))  # a short one, in the meantime
        assert requests(dynamo, lambda: sessions.purge(now=NOW + GRACE_MS + 2 * HOUR - 1)) == 0
        assert sessions.purge(now=NOW + 2 * GRACE_MS + HOUR + 1) == 3
        assert dynamo.client.scan(TableName="test_sessions")["Items"] == []

    def test_one_that_was_opened_last_counts_although_the_list_does_not_show_it_yet(
        self, dynamo: Dynamo, sessions: DynamoSessionStore, of: Session
    ) -> None:
        dynamo.delete_many(SESSIONS, [(keys.agent(of.agent_id), keys.opened(of.session_id))])
        assert not sessions.create(session(2), limit=1, counted_boards={"alpha"})
        assert sessions.open_sessions(agent_id=of.agent_id, now=NOW) == (of,)

    def test_a_session_that_is_opened_between_count_and_write_counts(
        self, driver: Faulty, dynamo: Dynamo, sessions: DynamoSessionStore
    ) -> None:
        other = DynamoSessionStore(dynamo)
        done: list[str] = []

        def meanwhile(operation: str) -> None:
            if operation == "transact_write_items" and not done:
                done.append(operation)
                assert other.create(session(2))

        driver.fault = meanwhile
        assert not sessions.create(session(1), limit=1, counted_boards={"alpha"})

    def test_an_abort_that_died_in_the_middle_shows_no_candidates(self, driver: Faulty, sessions: DynamoSessionStore, of: Session) -> None:
        append(sessions)
        driver.fault = lambda operation: Died() if operation == "batch_write_item" else None
        with pytest.raises(Died):
            sessions.abort(of.session_id, now=NOW)
        driver.fault = lambda operation: None
        assert sessions.candidates(of.session_id).nodes == ()
        assert sessions.open_sessions(now=NOW) == ()
        sessions.abort(of.session_id, now=NOW)

    def test_an_abort_succeeds_although_the_candidates_can_not_be_removed_now(
        self, driver: Faulty, sessions: DynamoSessionStore, of: Session
    ) -> None:
        append(sessions)
        driver.fault = lambda operation: None if operation == "update_item" else StoreUnavailable("sessions")
        sessions.abort(of.session_id, now=NOW)
        driver.fault = lambda operation: None
        assert sessions.load(of.session_id).state == "aborted"


class Died(Exception):
    """The process ended here."""


class TestBoards:
    def fill(self, dynamo: Dynamo, board_id: str, number: int) -> None:
        sessions, identity = DynamoSessionStore(dynamo), DynamoIdentityStore(dynamo)
        for more in (0, 1):
            of = session(number + more, board_id, agent_id=f"agt_{board_id}")
            sessions.create(of)
            for key in ("k", None):
                sessions.append_node(of.session_id, node("A"), unknown_keys=(), idempotency_key=key, limit=9, now=NOW)
            sessions.save_vectors(of.session_id, {"cand_001": TextVector(unit(1))}, now=NOW)
        agent = Agent(f"agt_{number}", f"agent {number}", "QA", (), (), ("alpha", "beta"), ("alpha",), NOW)
        identity.create_agent(agent, KeyRecord(f"aaaaaa{number:02d}", agent.agent_id, "f" * 64, NOW))

    def test_an_erasure_that_dies_anywhere_goes_on_when_it_is_repeated(self, driver: Faulty) -> None:
        dynamo = dynamo_on(driver)
        boards = DynamoBoardStore(dynamo, erasers=[lambda board_id: {"nodes": 0}])
        self.fill_all(dynamo, boards)
        trace = re.compile("alpha|" + "|".join(session(number).session_id for number in (1, 2)))
        beta = [item for item in items(driver) if not trace.search(str(item))]
        died = 0
        while True:
            left = died + 1

            def dies(operation: str) -> Exception | None:
                nonlocal left
                left -= operation in WRITES
                return Died() if left == 0 else None

            driver.fault = dies
            try:
                assert set(boards.erase("alpha", now=NOW).values()) == {0}
                break
            except Died:
                died += 1
                driver.fault = lambda operation: None
                board = boards.board("alpha")
                assert board is None or board.erasing == (died > 1)
            finally:
                driver.fault = lambda operation: None
        assert died > 3
        tombstone = {PK: {"S": "erased#alpha"}, SK: {"S": "#"}, "erased_at": {"N": str(NOW)}}
        after = items(driver)
        assert [item for item in after if trace.search(str(item))] == [tombstone]
        assert len(beta) > 15
        assert [item for item in beta if item not in after] == []
        assert not boards.create("alpha", "again", now=NOW)

    def fill_all(self, dynamo: Dynamo, boards: DynamoBoardStore) -> None:
        for number, board_id in enumerate(("alpha", "beta")):
            boards.create(board_id, board_id, now=NOW)
            self.fill(dynamo, board_id, 10 * number + 1)

    def test_what_is_left_keeps_the_board_erasing(self, driver: Faulty, dynamo: Dynamo) -> None:
        left = [3]
        boards = DynamoBoardStore(dynamo, erasers=[lambda board_id: {"nodes": left[0]}])
        assert boards.erase("alpha", now=NOW) == {"nodes": 3, "sessions": 0, "candidates": 0, "grants_and_denials": 0, "boards": 1}
        board = boards.board("alpha")
        assert board is not None
        assert board.erasing
        with pytest.raises(StoreUnavailable) as refused:
            boards.set_setting("alpha", "k", 1)
        assert refused.value.details["erasing"] is True
        with pytest.raises(StoreUnavailable) as refused:
            DynamoSessionStore(dynamo).create(session(1))
        assert refused.value.details["erasing"] is True
        left[0] = 0
        assert boards.erase("alpha", now=NOW)["boards"] == 0
        with pytest.raises(PermissionDenied):
            DynamoSessionStore(dynamo).create(session(1))

    def test_an_erasure_waits_for_who_holds_the_board(self, dynamo: Dynamo) -> None:
        clock = [NOW]
        erased: list[int] = []

        def sleep(seconds: float) -> None:
            clock[0] += round(seconds * 1000)

        def erase(board_id: str) -> dict[str, int]:
            erased.append(clock[0])
            return {}

        boards = DynamoBoardStore(dynamo, erasers=[erase], now=lambda: clock[0], sleep=sleep)
        lease = update(BOARDS, keys.board("alpha"), keys.HEAD, "SET lease_until = :until", until=NOW + 1500)
        dynamo.update(lease)
        with time_budget(0), pytest.raises(StoreUnavailable) as refused:
            boards.erase("alpha", now=NOW)
        assert refused.value.details["erasing"] is True
        assert erased == []
        boards.erase("alpha", now=NOW)
        assert erased == [NOW + 1500]

    def test_who_reads_a_board_may_hear_of_its_applied_mark(self, dynamo: Dynamo) -> None:
        heard: list[tuple[Board, int]] = []
        boards = DynamoBoardStore(dynamo, on_read=lambda board, seq: heard.append((board, seq)))
        dynamo.update(update(BOARDS, keys.board("alpha"), keys.HEAD, "SET commit_seq = :c, applied_seq = :a", c=8, a=7))
        assert boards.board("nowhere") is None
        assert heard == []
        assert boards.board("alpha") == Board("alpha", "Alpha", NOW, 8)
        assert heard == [(Board("alpha", "Alpha", NOW, 8), 7)]


class TestIdentity:
    def agent(self, **changes: Any) -> Agent:
        return replace(Agent("agt_ada", "ada", "QA", (), (), ("alpha",), (), NOW), **changes)

    def key(self, public_id: str = "aaaaaaaa", agent_id: str = "agt_ada") -> KeyRecord:
        return KeyRecord(public_id, agent_id, "f" * 64, NOW)

    def test_a_key_is_remembered_for_some_seconds_and_no_longer(self, dynamo: Dynamo) -> None:
        clock = [100.0]
        here = DynamoIdentityStore(dynamo, cache_seconds=30, monotonic=lambda: clock[0])
        there = DynamoIdentityStore(dynamo)
        there.create_agent(self.agent(), self.key())
        assert [requests(dynamo, lambda: here.by_key("aaaaaaaa")) for _ in range(3)] == [2, 0, 0]
        there.save_agent(self.agent(revoked_at=NOW))
        clock[0] += 29.9
        assert here.by_key("aaaaaaaa") == (self.agent(), self.key())
        clock[0] += 0.1
        assert here.by_key("aaaaaaaa") == (self.agent(revoked_at=NOW), self.key())

    def test_a_change_of_this_process_is_seen_at_once(self, dynamo: Dynamo) -> None:
        here = DynamoIdentityStore(dynamo)
        here.create_agent(self.agent(), self.key())
        here.by_key("aaaaaaaa")
        here.save_agent(self.agent(boards=()))
        found = here.by_key("aaaaaaaa")
        assert found is not None
        assert found[0].boards == ()
        here.revoke_keys("agt_ada", now=NOW + 1)
        found = here.by_key("aaaaaaaa")
        assert found is not None
        assert found[1].revoked_at == NOW + 1

    def test_what_was_read_before_a_change_is_not_remembered_after_it(self, driver: Faulty, dynamo: Dynamo) -> None:
        here = DynamoIdentityStore(dynamo)
        here.create_agent(self.agent(), self.key())
        gets = 0

        def between(operation: str) -> None:
            nonlocal gets
            gets += operation == "get_item"
            if gets == 2:  # the key was read, and its agent was not yet
                gets += 1
                here.revoke_keys("agt_ada", now=NOW)

        driver.fault = between
        stale = here.by_key("aaaaaaaa")
        assert stale is not None
        assert stale[1].revoked_at is None
        found = here.by_key("aaaaaaaa")
        assert found is not None
        assert found[1].revoked_at == NOW

    def test_a_key_that_is_not_there_is_asked_for_each_time(self, dynamo: Dynamo) -> None:
        here = DynamoIdentityStore(dynamo)
        assert here.by_key("aaaaaaaa") is None
        DynamoIdentityStore(dynamo).create_agent(self.agent(), self.key())
        assert here.by_key("aaaaaaaa") == (self.agent(), self.key())

    def test_the_public_part_of_a_key_is_never_taken_over(self, dynamo: Dynamo) -> None:
        here = DynamoIdentityStore(dynamo)
        here.create_agent(self.agent(), self.key())
        with pytest.raises(StoreUnavailable):
            here.create_agent(self.agent(agent_id="agt_eve", name="eve"), self.key(agent_id="agt_eve"))
        with pytest.raises(StoreUnavailable):
            here.add_key(self.key(agent_id="agt_eve"))
        assert here.by_key("aaaaaaaa") == (self.agent(), self.key())
        assert here.by_name("eve") is None

    def test_names_of_any_letters_are_names(self, dynamo: Dynamo) -> None:
        here = DynamoIdentityStore(dynamo)
        names = sorted(["ada", "Ada", "ädä", "日本語", "🙂 #", "#", "a#b", "x" * 250])
        for number, name in enumerate(names):
            here.create_agent(self.agent(agent_id=f"agt_{number}", name=name), self.key(f"aaaaaaa{number}", f"agt_{number}"))
        assert [agent.name for agent in here.agents()] == names
        assert all(here.by_name(name) is not None for name in names)


class TestRates:
    def test_a_call_costs_one_request_and_the_first_of_a_window_one_more(self, dynamo: Dynamo) -> None:
        rates = DynamoRateLimiter(dynamo)

        def take(now: int) -> int:
            return requests(dynamo, lambda: rates.take("ada", limit=3, window_seconds=60, now=now))

        assert [take(NOW), take(NOW), take(NOW), take(NOW)] == [2, 1, 1, 1]
        assert [take(NOW + 60_000), take(NOW + 60_000)] == [2, 1]

    def test_a_window_is_forgotten_a_day_after_its_end(self, driver: Faulty, dynamo: Dynamo) -> None:
        DynamoRateLimiter(dynamo).take("ada", limit=1, window_seconds=60, now=NOW + 1)
        (item,) = driver.scan(TableName="test_rates")["Items"]
        assert int(item[TTL]["N"]) == (NOW + 60_000 + DAY) // 1000
