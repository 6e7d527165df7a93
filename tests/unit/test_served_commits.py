"""The commit protocol of the served stores, step by step: a step that fails, a process that dies there, one that wakes too late."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from pulse_kg.adapters.budget import seconds_left, time_budget
from pulse_kg.adapters.dynamodb import blobs, keys
from pulse_kg.adapters.dynamodb.journal import STAGED_GRACE_MS, Lease
from pulse_kg.adapters.served.store import PUBLISH_SECONDS
from pulse_kg.adapters.served.writes import plan_of, writes_of
from pulse_kg.errors import PermissionDenied, SessionAborted, StoreUnavailable
from pulse_kg.ports.commits import Swept
from pulse_kg.usecases.boards import erase_board
from pulse_kg.usecases.verify import verify_board
from tests.support.dynamo_faults import PREFIX, refused_by_driver
from tests.support.dynamo_faults import faulty as moto
from tests.support.emulated import Crash, Process, Servers, When, applied, lost, servers
from tests.support.plans import Content, edge, node, plan, session
from tests.support.world import Agent, Consolidation, Refused

LEASE = 15_000
BEFORE_THE_DECISION = ("journal.acquire", "journal.stage")
AFTER_THE_DECISION = ("graph.apply", "vectors.apply", "journal.mark_applied")
AFTER_THE_ANSWER = ("journal.progress", "journal.outbox", "publisher.publish", "journal.drop_writes", "journal.mark_published")
OF_A_COMMIT = (*BEFORE_THE_DECISION, "journal.decide", *AFTER_THE_DECISION, *AFTER_THE_ANSWER)
WHENS: tuple[When, ...] = ("before", "after")
POINTS = [(step, when) for step in OF_A_COMMIT for when in WHENS]


class Ground:
    """Two processes on one set of servers, the boards alpha and beta, and an agent at each process."""

    def __init__(self, of: Servers) -> None:
        self.servers = of
        self.one, self.two = of.process(), of.process()
        for board in ("alpha", "beta"):
            of.board(self.one, board)
        self.ada = of.world(self.one).agent("ada", boards=("alpha", "beta"))
        self.worlds = {id(p): of.world(p) for p in (self.one, self.two)}

    def at(self, process: Process) -> Agent:
        """The agent at a process."""
        world = self.worlds.setdefault(id(process), self.servers.world(process))
        return Agent(world, self.ada.api_key, self.ada.agent_id, "ada")

    def open(self, *titles: str, process: Process | None = None, board: str = "alpha") -> Consolidation:
        """A session with decisions; the first has a stable reference, by which later ones update it."""
        made = self.at(process or self.one).begin(board_id=board)
        for number, title in enumerate(titles):
            made.decide(title, section="s1" if number == 0 else None)
        return made

    def large(self, *, process: Process | None = None) -> Consolidation:
        """A session whose texts do not fit into the decision."""
        made = self.open("one", process=process)
        for number in range(8):
            made.decide(f"Large number {number}", long_text(10_000 + number))
        return made

    def again(self, of: Consolidation, process: Process | None = None) -> Mapping[str, Any]:
        """The same commit, called at another process."""
        return Consolidation(self.at(process or self.two), of.session_id).commit()

    def let_the_lease_end(self) -> None:
        self.servers.clock.advance(seconds=LEASE / 1_000 + 1)

    def audit(self, board: str = "alpha") -> list[int]:
        """What a reader sees of the audit log."""
        return [row["audit_row_id"] for row in self.two.container.commits.audit_rows(board)]

    def states(self, board: str = "alpha") -> list[str]:
        return [record.state for record in self.two.container.commits.outbox(board)]

    def check(self, commits: int, board: str = "alpha", process: Process | None = None) -> None:
        """All is there, once, after a run of the relay."""
        (process or self.two).container.relay_outbox(60)
        result = verify_board(board, (process or self.two).container.services)
        assert result.findings == ()
        assert result.commits == commits
        assert self.states(board) == ["published"] * commits
        assert self.servers.queue.first(board) == list(range(1, commits + 1))
        nodes, _, vectors = self.servers.stored(board)
        assert set(nodes) == set(vectors)


@pytest.fixture
def ground() -> Iterator[Ground]:
    with servers() as made:
        yield Ground(made)


def long_text(characters: int) -> str:
    """A text that can't be packed much: some 2 bytes for each character."""
    return "".join(map(chr, random.Random(characters).choices(range(0x4E00, 0x9000), k=characters)))


@pytest.fixture
def staging(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred bytes are too many for the decision: every commit stages its texts, in parts."""
    monkeypatch.setattr(blobs, "INLINE_BYTES", 300)
    monkeypatch.setattr(blobs, "PART_BYTES", 1_000)


@pytest.fixture(params=[False, True], ids=["inline", "staged"])
def staged(request: pytest.FixtureRequest) -> bool:
    """Whether commits stage their texts; both."""
    if request.param:
        request.getfixturevalue("staging")
    return bool(request.param)


def refusal(of: Consolidation) -> Mapping[str, Any]:
    return of.agent.refusal("commit_consolidation", session_id=of.session_id)


def nothing_is_seen(ground: Ground) -> bool:
    services = ground.two.container.services
    found = services.vectors.nearest("alpha", "Decision", [services.embedder.embed(["one"])[0].vector], limit=9, live_only=False)
    return not (list(services.graph.all_nodes("alpha")) or found[0] or ground.audit() or ground.states())


class TestAStepFails:
    @pytest.mark.usefixtures("staged")
    @pytest.mark.parametrize(("step", "when"), POINTS)
    def test_a_commit_is_whole_or_nothing_of_it_is_there_and_again_gives_the_same_answer(
        self, ground: Ground, step: str, when: When
    ) -> None:
        of = ground.open("one", "two")
        ground.one.steps.at(step, when, lost)
        if step in AFTER_THE_ANSWER:
            answer = of.commit()
            assert ground.audit() == [1]
        else:
            error = refusal(of)
            assert (error["code"], error["retryable"]) == ("store_unavailable", True)
            assert error["details"].get("decided", False) is (step in AFTER_THE_DECISION)
            assert nothing_is_seen(ground) or (step, when) == ("journal.mark_applied", "after")
            answer = of.commit()
        assert ground.one.steps.struck
        assert ground.again(of) == answer
        ground.check(1)

    @pytest.mark.parametrize(("step", "when"), POINTS)
    @pytest.mark.parametrize("by", ["the agent", "the relay", "another commit"])
    def test_what_a_dead_process_left_is_finished_by_whoever_comes_next(
        self, ground: Ground, step: str, when: When, by: str, *, staged: bool
    ) -> None:
        of = ground.open("one", "two")
        ground.one.steps.at(step, when, ground.one.steps.crash)
        with pytest.raises(Crash):
            of.commit()
        decided = step not in BEFORE_THE_DECISION and (step, when) != ("journal.decide", "before")
        ground.let_the_lease_end()
        if by == "the relay":
            ground.two.container.relay_outbox(60)
            assert ground.audit() == [1] * decided
            assert ground.states() == ["published"] * decided
        elif by == "another commit":
            other = ground.open("three", process=ground.two).commit()
            assert other["audit_row_id"] == 1 + decided
        answer = ground.again(of)
        assert answer["audit_row_id"] == (2 if by == "another commit" and not decided else 1)
        assert ground.again(of) == answer
        ground.check(2 if by == "another commit" else 1)
        ground.servers.clock.advance(seconds=STAGED_GRACE_MS / 1_000)
        ground.check(2 if by == "another commit" else 1)
        assert bool(ground.servers.staged()) == staged
        assert set(ground.servers.staged()) == parts_in_use(ground)

    def test_who_can_not_finish_the_commit_of_another_is_not_told_that_his_own_was_decided(self, ground: Ground) -> None:
        left, mine = ground.open("one"), ground.open("two", process=ground.two, board="alpha")
        ground.one.steps.at("graph.apply", "before", lost)
        assert refusal(left)["details"]["decided"] is True
        ground.two.steps.at("graph.apply", "before", lost)
        error = refusal(mine)
        assert (error["code"], error["details"].get("decided")) == ("store_unavailable", None)
        assert mine.commit()["audit_row_id"] == 2
        ground.check(2)

    def test_a_commit_that_can_not_be_carried_out_does_not_keep_back_events_of_earlier_ones(self, ground: Ground) -> None:
        ground.servers.queue.full = True
        ground.open("one").commit()
        ground.one.steps.at("graph.apply", "before", lost)
        refusal(ground.open("two"))
        ground.servers.queue.full = False
        ground.two.steps.at("graph.apply", "before", lost)
        report = ground.two.container.relay_outbox(60)
        assert report["failed"] == {"alpha": "store_unavailable"}
        assert ground.servers.queue.first("alpha") == [1]
        ground.check(2)


def parts_in_use(ground: Ground) -> set[tuple[str, str]]:
    """The keys of the parts that something names for good: of audit rows by their records, of answers by their sessions."""
    tables = ground.servers.tables.tables
    tokens = {item["token"]["S"] for (_, sk), item in tables["boards"].items() if sk.startswith("audit#") and "token" in item}
    rows = {(pk, sk) for pk, sk in tables["boards"] if pk in {keys.parts("alpha", t) for t in tokens} and sk.startswith("audit#")}
    answers = [(pk, item["answer_token"]["S"]) for (pk, _), item in tables["sessions"].items() if "answer_token" in item]
    return rows | {(pk, sk) for pk, sk in tables["sessions"] for owner, t in answers if pk == owner and sk.startswith(f"answer#{t}#")}


class TestTooLate:
    POINTS = (
        *[("journal.acquire", "after"), ("journal.stage", "before"), ("journal.stage", "after"), ("journal.decide", "before")],
        *[("journal.decide", "after"), ("graph.apply", "before"), ("graph.apply", "after"), ("vectors.apply", "before")],
        *[("vectors.apply", "after"), ("journal.mark_applied", "before"), ("journal.mark_applied", "after")],
        *[("publisher.publish", "before"), ("publisher.publish", "after"), ("journal.mark_published", "before")],
    )

    @pytest.mark.parametrize(("step", "when"), POINTS)
    @pytest.mark.usefixtures("staged")
    def test_a_holder_that_wakes_after_its_lease_overwrites_nothing(self, ground: Ground, step: str, when: When) -> None:
        ground.open("Retries stop after a day").commit()
        rival = ground.open("Retries stop after a month", process=ground.two)
        of = ground.open("Retries stop after a week")
        told: list[Mapping[str, Any]] = []

        def meanwhile() -> None:
            ground.let_the_lease_end()
            told.append(rival.commit())

        ground.one.steps.at(step, when, meanwhile)
        decided = step not in BEFORE_THE_DECISION and (step, when) != ("journal.decide", "before")
        if decided:
            answer = of.commit()
            assert (answer["audit_row_id"], told[0]["audit_row_id"]) == (2, 3)
            last = told[0]
        else:
            error = refusal(of)
            assert (error["code"], error["details"].get("decided")) == ("store_unavailable", None)
            assert told[0]["audit_row_id"] == 2
            last = of.commit()  # it had not been proposed: what it does follows from the board as it is now
            assert last["audit_row_id"] == 3
        assert ground.one.steps.struck
        ground.check(3)
        (head,) = [n for n in ground.servers.stored("alpha")[0].values() if n.title.startswith("Retries") and n.live]
        assert head.commit_seq == 3
        assert head.title == ("Retries stop after a month" if decided else "Retries stop after a week")
        assert last["audit_row_id"] == 3

    def test_a_board_that_is_held_is_not_taken_and_who_waits_is_refused_in_time(self, ground: Ground) -> None:
        with ground.one.container.commits.turn("alpha", wait_seconds=1):
            began = ground.servers.clock.now()
            self._held(ground)
            assert ground.servers.clock.now() - began <= 1_000
        with ground.two.container.commits.turn("alpha", wait_seconds=0):
            pass

    def _held(self, ground: Ground) -> None:
        with (
            pytest.raises(StoreUnavailable, match="held the board"),
            ground.servers.process().container.commits.turn("alpha", wait_seconds=1),
        ):
            pass

    def test_who_lost_the_board_does_not_decide_though_nobody_committed_meanwhile(self, ground: Ground) -> None:
        def meanwhile() -> None:
            ground.let_the_lease_end()
            ground.two.store.journal.acquire("alpha", "another", now=ground.servers.clock.now(), lease_ms=LEASE)

        of = ground.open("one")
        ground.one.steps.at("journal.decide", "before", meanwhile)
        assert "taken by another" in refusal(of)["message"]
        assert nothing_is_seen(ground)
        ground.let_the_lease_end()
        assert of.commit()["audit_row_id"] == 1
        ground.check(1)

    @pytest.mark.parametrize("step", ["journal.release", "journal.mark_applied"])
    def test_who_wakes_late_does_not_free_a_board_that_another_holds(self, ground: Ground, step: str) -> None:
        def meanwhile() -> None:
            ground.let_the_lease_end()
            taken = ground.two.store.journal.acquire("alpha", "another", now=ground.servers.clock.now(), lease_ms=LEASE)
            assert isinstance(taken, Lease)

        ground.one.steps.at(step, "before", meanwhile)
        if step == "journal.release":
            with ground.one.container.commits.turn("alpha", wait_seconds=1):
                pass
        else:
            assert ground.open("one").commit()["audit_row_id"] == 1
        assert ground.one.steps.struck
        self._held(ground)
        ground.let_the_lease_end()
        ground.check(int(step == "journal.mark_applied"))

    @pytest.mark.parametrize("late", range(3))
    def test_the_writes_of_an_older_commit_sent_again_change_nothing(self, ground: Ground, late: int) -> None:
        plans = []
        for number in range(3):
            of = ground.open(f"Retries stop after {number + 1} days", f"Number {number}")
            ground.one.steps.at("graph.apply", "after", lost)
            refusal(of)
            writes, at, row = ground.two.store.journal.decided("alpha", number + 1) or pytest.fail("it is decided")
            plans.append(plan_of("alpha", number + 1, at, writes, audit=row))
            of.commit()
        before = ground.servers.stored("alpha")
        applied(ground.two, plans[late])
        assert ground.servers.stored("alpha") == before
        ground.check(3)

    @pytest.mark.parametrize(("step", "when"), [(s, w) for s in AFTER_THE_DECISION for w in WHENS])
    def test_who_wakes_after_the_board_was_erased_writes_nothing_there(self, ground: Ground, step: str, when: When) -> None:
        of = ground.open("one", "two")

        def meanwhile() -> None:
            ground.let_the_lease_end()
            boards = ground.two.container.boards
            assert not any(erase_board("alpha", boards=boards, now=ground.servers.clock.now()).values())

        ground.one.steps.at(step, when, meanwhile)
        outcome = of.agent.try_call("commit_consolidation", {"session_id": of.session_id})
        if (step, when) == ("graph.apply", "before") or (step, when) == ("vectors.apply", "before"):
            # It was past the look, and on its way: nobody sees what it writes there, and erasing again removes it.
            assert outcome.is_error
            erase_board("alpha", boards=ground.two.container.boards, now=ground.servers.clock.now())
        assert outcome.is_error is ((step, when) != ("journal.mark_applied", "after"))
        assert ground.servers.stored("alpha") == ({}, {}, {})
        assert ground.servers.staged() == []


class TestSweeps:
    @pytest.mark.parametrize("when", WHENS)
    @pytest.mark.parametrize(
        "step",
        [
            *("journal.progress", "journal.sweep_staged", "journal.acquire", "journal.decided", "graph.apply", "vectors.apply"),
            *("journal.mark_applied", "journal.release", "journal.outbox", "publisher.publish", "journal.drop_writes"),
            "journal.mark_published",
        ],
    )
    @pytest.mark.usefixtures("staging")
    @pytest.mark.parametrize("lease_ends", [False, True])
    def test_two_at_once_do_everything_once(self, ground: Ground, step: str, when: When, *, lease_ends: bool) -> None:
        dead = ground.servers.process()
        of = ground.open("one", "two", process=dead)
        dead.steps.at("journal.decide", "after", dead.steps.crash)
        with pytest.raises(Crash):
            of.commit()
        ground.let_the_lease_end()

        def another() -> None:
            if lease_ends:
                ground.let_the_lease_end()
            ground.two.container.outbox.sweep("alpha", wait_seconds=1)  # type: ignore[union-attr]

        ground.one.steps.at(step, when, another if lease_ends else lambda: _unless_held(another))
        assert ground.one.container.outbox is not None
        ground.one.container.outbox.sweep("alpha", wait_seconds=30)
        assert ground.one.steps.struck
        ground.check(1)
        assert set(ground.servers.staged()) == parts_in_use(ground)
        assert ground.again(of)["audit_row_id"] == 1

    def test_one_on_a_board_that_is_being_erased_does_nothing(self, ground: Ground) -> None:
        of = ground.open("one")
        ground.one.steps.at("journal.decide", "after", ground.one.steps.crash)
        with pytest.raises(Crash):
            of.commit()
        ground.two.store.boards._sleep = _stopped
        with pytest.raises(InterruptedError):  # while it waits for the dead process's lease
            erase_board("alpha", boards=ground.two.container.boards, now=ground.servers.clock.now())
        ground.let_the_lease_end()
        other = ground.servers.process()
        assert other.container.outbox is not None
        assert other.container.outbox.sweep("alpha", wait_seconds=60) == Swept()
        assert other.steps.calls == ["journal.progress"]
        assert ground.servers.stored("alpha") == ({}, {}, {})
        assert ground.servers.queue.sent == []

    def test_one_on_a_board_that_is_gone_does_nothing(self, ground: Ground) -> None:
        ground.open("one").commit()
        erase_board("alpha", boards=ground.two.container.boards, now=ground.servers.clock.now())
        assert ground.one.container.outbox is not None
        assert ground.one.container.outbox.sweep("alpha", wait_seconds=60) == Swept()
        with pytest.raises(PermissionDenied), ground.one.container.commits.turn("alpha", wait_seconds=1):
            pass


def _unless_held(call: Callable[[], None]) -> None:
    try:
        call()
    except StoreUnavailable as error:
        assert error.details["store"] == "board"  # noqa: PT017 - it may also succeed


def _stopped(seconds: float) -> None:
    raise InterruptedError


class TestEvents:
    def test_a_full_queue_delays_the_event_and_not_the_commit(self, ground: Ground) -> None:
        ground.servers.queue.full = True
        answers = [ground.open(f"Number {n}").commit() for n in range(3)]
        assert [a["audit_row_id"] for a in answers] == [1, 2, 3]
        assert ground.states() == ["applied"] * 3
        assert ground.two.container.relay_outbox(60)["failed"] == {"alpha": "store_unavailable"}
        ground.servers.queue.full = False
        assert ground.two.container.relay_outbox(60)["published"] == 3
        ground.check(3)

    def test_a_commit_tries_to_send_its_event_for_a_short_time_only(self, ground: Ground) -> None:
        left: list[float] = []
        ground.one.steps.at("publisher.publish", "before", lambda: left.append(seconds_left()))
        ground.open("one").commit()
        assert 0 < left[0] <= PUBLISH_SECONDS

    def test_an_event_that_no_queue_takes_is_no_reason_to_refuse_a_commit(self, ground: Ground) -> None:
        def refuse() -> None:
            raise PermissionDenied("The queue takes no event of this board.")

        ground.one.steps.at("publisher.publish", "before", refuse)
        assert ground.open("one").commit()["audit_row_id"] == 1

    def test_an_event_that_is_not_sent_keeps_back_those_after_it_and_no_other_board(self, ground: Ground) -> None:
        ground.one.steps.at("publisher.publish", "before", lost)
        ground.open("one").commit()
        assert ground.servers.queue.sent == []
        ground.one.steps.at("publisher.publish", "before", lost)
        ground.open("two").commit()
        ground.open("three", board="beta").commit()
        assert [(board, seq) for board, seq, _ in ground.servers.queue.sent] == [("beta", 1)]
        ground.check(2)
        assert [(board, seq) for board, seq, _ in ground.servers.queue.sent] == [("beta", 1), ("alpha", 1), ("alpha", 2)]

    def test_an_event_sent_again_and_after_later_ones_has_the_id_of_the_first(self, ground: Ground) -> None:
        def meanwhile() -> None:
            ground.open("two", process=ground.two).commit()
            ground.open("three", process=ground.two).commit()

        ground.one.steps.at("publisher.publish", "before", meanwhile)
        ground.open("one").commit()
        sent = [(seq, event["id"]) for _, seq, event in ground.servers.queue.sent]
        assert sent == [(1, "alpha.1"), (2, "alpha.2"), (3, "alpha.3"), (1, "alpha.1")]
        assert ground.two.store.journal.progress("alpha").published_seq == 3
        assert ground.states() == ["published"] * 3
        ground.check(3)

    def test_without_a_queue_records_stay_applied_and_nothing_is_sent(self) -> None:
        with servers() as made:
            process = made.process(queue=False)
            ground = Ground(made)
            ground.open("one", process=process).commit()
            assert ground.states() == ["applied"]
            assert process.container.relay_outbox(60)["published"] == 0
            assert verify_board("alpha", process.container.services).clean


class TestThrottling:
    def _throttled(self, ground: Ground, first: int, count: int) -> None:
        """From the `first` request on, `count` are refused."""
        numbers = itertools.count(1)
        tables = ground.servers.tables

        class Throttled:
            def __getattr__(self, name: str) -> Any:
                if first <= next(numbers) < first + count:
                    raise refused_by_driver("ThrottlingException")
                return getattr(tables, name)

        ground.one.store.dynamo._client = _Calls(Throttled())

    def _calm(self, ground: Ground) -> None:
        ground.one.store.dynamo._client = ground.servers.tables

    @pytest.mark.parametrize("first", range(3, 18))  # the first two look for the agent
    def test_inside_the_calls_time_it_is_not_noticed(self, ground: Ground, first: int) -> None:
        of = ground.open("one", "two")
        self._throttled(ground, first, 3)
        assert of.commit()["audit_row_id"] == 1
        ground.check(1)

    @pytest.mark.parametrize("first", range(3, 18))
    def test_beyond_it_the_commit_is_refused_for_now_or_done_and_never_half(self, ground: Ground, first: int) -> None:
        of = ground.open("one", "two")
        self._throttled(ground, first, 1_000_000)
        with time_budget(0.05):
            outcome = of.agent.try_call("commit_consolidation", {"session_id": of.session_id})
        self._calm(ground)
        if outcome.is_error:
            assert outcome.body["error"]["code"] == "store_unavailable"
            assert outcome.body["error"]["retryable"] is True
            assert nothing_is_seen(ground)
        else:
            assert ground.audit() == [1]
        answer = ground.again(of)
        assert outcome.is_error or outcome.body == answer
        ground.check(1)


class _Calls:
    """A client whose attributes are looked up at each call, as a request each."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        def call(**parameters: Any) -> Any:
            return getattr(self._client, name)(**parameters)

        return call


class _Counted(_Calls):
    """A client that says each request before it is sent."""

    def __init__(self, client: Any, say: Callable[[], None]) -> None:
        super().__init__(client)
        self._say = say

    def __getattr__(self, name: str) -> Any:
        self._say()
        return getattr(self._client, name)


class TestStaging:
    def test_what_was_staged_and_never_decided_is_swept_after_its_grace_and_not_before(self, ground: Ground) -> None:
        of = ground.large()
        ground.one.steps.at("journal.stage", "after", ground.one.steps.crash)
        with pytest.raises(Crash):
            of.commit()
        staged = ground.servers.staged()
        assert {sk.partition("#")[0] for _, sk in staged} == {"stage", "audit", "writes"}
        assert ground.two.container.outbox is not None
        for advance, unstaged in ((STAGED_GRACE_MS - 1, 0), (1, 1), (0, 0)):
            ground.servers.clock.advance(seconds=advance / 1_000)
            assert ground.two.container.outbox.pending_boards() == (("alpha",) if unstaged or advance > 1 else ())
            assert ground.two.container.outbox.sweep("alpha", wait_seconds=1) == Swept(unstaged=unstaged)
            assert ground.servers.staged() == ([] if unstaged or not advance else staged)

    @pytest.mark.parametrize("when", WHENS)
    def test_a_decision_that_comes_after_the_sweep_is_refused(self, ground: Ground, when: When) -> None:
        of = ground.large()

        def sweep() -> None:
            ground.servers.clock.advance(seconds=STAGED_GRACE_MS / 1_000 + 1)
            assert ground.two.container.outbox is not None
            assert ground.two.container.outbox.sweep("alpha", wait_seconds=1) == Swept(unstaged=1)

        step = ("journal.decide", "before") if when == "before" else ("journal.stage", "after")
        ground.one.steps.at(step[0], step[1], sweep)  # type: ignore[arg-type]
        assert refusal(of)["code"] in {"session_expired", "store_unavailable"}
        assert ground.servers.staged() == []
        assert nothing_is_seen(ground)

    @pytest.mark.parametrize("requests", range(12))
    def test_a_decision_in_the_middle_of_the_sweep_is_refused_or_has_all_of_its_parts(self, ground: Ground, requests: int) -> None:
        of = ground.large()

        def half_a_sweep() -> None:
            ground.servers.clock.advance(seconds=STAGED_GRACE_MS / 1_000 + 1)
            dying, left = ground.servers.process(), iter(range(requests))

            def no_further() -> None:
                if next(left, None) is None:
                    dying.steps.crash()

            dying.store.dynamo._client = _Counted(ground.servers.tables, no_further)
            assert dying.container.outbox is not None
            with suppress(Crash):
                dying.container.outbox.sweep("alpha", wait_seconds=1)

        ground.one.steps.at("journal.decide", "before", half_a_sweep)
        outcome = of.agent.try_call("commit_consolidation", {"session_id": of.session_id})
        assert outcome.is_error is (requests > 2)  # board, staged commits, and the bar
        ground.check(0 if outcome.is_error else 1)
        assert set(ground.servers.staged()) == parts_in_use(ground)

    def test_a_sweep_that_dies_in_the_middle_is_finished_by_the_next(self, ground: Ground) -> None:
        of = ground.large()
        ground.one.steps.at("journal.stage", "after", ground.one.steps.crash)
        with pytest.raises(Crash):
            of.commit()
        ground.servers.clock.advance(seconds=STAGED_GRACE_MS / 1_000)
        deaths = 0
        while ground.servers.staged():
            dying = ground.servers.process()
            left = iter(range(deaths + 1))

            def no_further(left: Iterator[int] = left, dying: Process = dying) -> None:
                if next(left, None) is None:
                    dying.steps.crash()

            dying.store.dynamo._client = _Counted(ground.servers.tables, no_further)
            assert dying.container.outbox is not None
            with suppress(Crash):
                dying.container.outbox.sweep("alpha", wait_seconds=1)
            deaths += 1
        assert deaths > 3

    def test_an_answer_of_more_than_100_kb_lies_beside_its_session(self, ground: Ground) -> None:
        stores: Any = ground.one.store
        stores.sessions.create(session(1))
        with ground.one.container.commits.turn("alpha", wait_seconds=1) as turn:
            made = plan(stores, session(1), Content([node("one")]), seq=turn.board.commit_seq + 1, now=ground.servers.clock.now())
            text = long_text(150_000)
            made = replace(made, answer={**made.answer, "warnings": [text]})
            turn.commit(made)
        assert len(ground.servers.staged()) == 1
        assert ground.two.container.sessions.load(session(1).session_id).answer == made.answer
        ground.two.container.relay_outbox(60)
        assert ground.states() == ["published"]
        assert [sk.partition("#")[0] for _, sk in ground.servers.staged()] == ["answer"]

    def test_an_answer_that_was_staged_for_nothing_is_swept_too(self, ground: Ground) -> None:
        stores: Any = ground.one.store
        stores.sessions.create(session(1))
        text = long_text(150_000)
        ground.one.steps.at("journal.decide", "before", lost)
        for _ in range(2):
            try:
                with ground.one.container.commits.turn("alpha", wait_seconds=1) as turn:
                    made = plan(stores, session(1), Content([node("one")]), seq=1, now=ground.servers.clock.now())
                    turn.commit(replace(made, answer={**made.answer, "warnings": [text]}))
            except StoreUnavailable:
                assert not ground.audit()
        assert [sk.partition("#")[0] for _, sk in ground.servers.staged()] == ["stage", "answer", "answer"]
        ground.servers.clock.advance(seconds=STAGED_GRACE_MS / 1_000)
        assert ground.two.container.relay_outbox(60)["unstaged"] == 1
        assert set(ground.servers.staged()) == parts_in_use(ground)
        assert len(ground.servers.staged()) == 1
        assert ground.two.container.sessions.load(session(1).session_id).answer is not None

    @pytest.mark.usefixtures("staging")
    def test_a_turn_whose_first_commit_was_refused_mixes_no_parts(self, ground: Ground) -> None:
        stores: Any = ground.one.store
        for number in (1, 2):
            stores.sessions.create(session(number))
        stores.sessions.abort(session(1).session_id, now=ground.servers.clock.now())
        with ground.one.container.commits.turn("alpha", wait_seconds=1) as turn:
            now = ground.servers.clock.now()
            with pytest.raises(SessionAborted):
                turn.commit(plan(stores, session(1), Content([node("one", body=long_text(3_000))]), seq=1, now=now))
            ground.one.steps.at("graph.apply", "before", ground.one.steps.crash)
            with pytest.raises(Crash):
                turn.commit(plan(stores, session(2), Content([node("two")]), seq=1, now=now))
            ground.let_the_lease_end()
            ground.one.steps.dead = False
        ground.two.container.relay_outbox(60)
        assert [row["session_id"] for row in ground.two.container.commits.audit_rows("alpha")] == [session(2).session_id]
        assert [n.title for n in ground.servers.stored("alpha")[0].values()] == ["two"]

    def test_parts_that_go_between_two_reads_are_no_damage(self, ground: Ground) -> None:
        of = ground.large()
        ground.one.steps.at("journal.decide", "after", ground.one.steps.crash)
        with pytest.raises(Crash):
            of.commit()
        ground.let_the_lease_end()
        journal = ground.servers.process().store.journal
        read = journal._dynamo.get

        def then_another_finishes(*key: Any) -> Any:
            found = read(*key)
            if ground.states() == []:
                ground.two.container.relay_outbox(60)
            return found

        journal._dynamo.get = then_another_finishes  # type: ignore[method-assign, assignment]
        assert journal.decided("alpha", 1) is None
        ground.check(1)

    def test_a_damaged_record_is_told_and_nothing_of_it_is_written(self, ground: Ground) -> None:
        of = ground.large()
        ground.one.steps.at("journal.decide", "after", ground.one.steps.crash)
        with pytest.raises(Crash):
            of.commit()
        table = ground.servers.tables.tables["boards"]
        part = next(key for key in table if key[1].startswith("writes#"))
        table[part]["part"] = {"B": b"!" + table[part]["part"]["B"][1:]}
        ground.let_the_lease_end()
        with pytest.raises(Refused) as error:
            ground.again(of)
        assert error.value.details["damaged"] is True
        assert nothing_is_seen(ground)
        assert ground.servers.stored("alpha") == ({}, {}, {})


class TestReaders:
    @pytest.mark.parametrize("step", ["graph.apply", "vectors.apply", "journal.mark_applied"])
    def test_nothing_of_a_commit_is_seen_before_all_of_it_is_there(self, ground: Ground, step: str) -> None:
        seen: list[bool] = []
        ground.one.steps.at(step, "before", lambda: seen.append(nothing_is_seen(ground)))
        of = ground.open("one", "two")
        of.commit()
        assert seen == [True]
        assert not nothing_is_seen(ground)
        assert ground.audit() == [1]

    def test_a_call_sees_one_state_of_a_board_from_its_first_read_to_its_last(self, ground: Ground) -> None:
        ground.open("one").commit()
        services = ground.two.container.services
        with services.one_call():
            before = ground.audit()
            ground.open("two", "three").commit()
            assert ground.audit() == before == [1]
            assert len(list(services.graph.all_nodes("alpha"))) == 1
            assert services.commits.audit_row("alpha", 2) is None
            assert len(ground.states()) == 1
        assert ground.audit() == [1, 2]
        assert len(list(services.graph.all_nodes("alpha"))) == 3

    def test_who_reads_the_board_first_sees_what_the_board_was_then(self, ground: Ground) -> None:
        ground.open("one").commit()
        with ground.two.container.services.one_call():
            ground.two.container.boards.board("alpha")
            ground.open("two").commit()
            assert ground.audit() == [1]

    def test_who_commits_sees_what_it_committed_in_the_same_call(self, ground: Ground) -> None:
        of = ground.open("one")
        services = ground.one.container.services
        with services.one_call():
            ground.one.container.boards.board("alpha")
            answer = of.agent.try_call("commit_consolidation", {"session_id": of.session_id}).body
        assert answer["audit_row_id"] == 1
        stores: Any = ground.one.store
        stores.sessions.create(session(2))
        with services.one_call():
            assert [row["audit_row_id"] for row in services.commits.audit_rows("alpha")] == [1]
            with services.commits.turn("alpha", wait_seconds=1) as turn:
                turn.commit(plan(stores, session(2), Content([node("two")]), seq=2, now=ground.servers.clock.now()))
            assert [row["audit_row_id"] for row in services.commits.audit_rows("alpha")] == [1, 2]


class TestTheWritesOfADecision:
    def test_they_are_the_same_when_they_come_back(self, ground: Ground) -> None:
        first = ground.open("Retries stop after a day", "Peers wait").commit()
        old, other = (e["node_id"] for e in first["applied"]["added"])
        stores: Any = ground.one.store
        content = Content(
            [node("Grüße ✓", body="x", attributes={"rationale": "so", "n": 1.5}), node("Peers wait"), node("Logs", "Constraint")],
            [edge("cand_001", "supersedes", old), edge("cand_003", "contradicts", other, confidence=0.25)],
            hints={"cand_002": ("UPDATE", other)},
        )
        made = plan(stores, session(9), content, seq=2, now=ground.servers.clock.now())
        assert made.nodes
        assert made.edges
        assert made.vectors
        again = plan_of("alpha", 2, made.committed_at, writes_of(made), audit=made.audit)
        for part in ("board_id", "seq", "committed_at", "nodes", "edges", "vectors", "relevances", "audit"):
            assert getattr(again, part) == getattr(made, part)


def test_the_tables_in_a_dict_hold_what_an_emulator_would() -> None:
    def everything(ground: Ground) -> None:
        ground.open("one", "two").commit()
        ground.large().commit()
        dead = ground.servers.process(prefix=prefix)
        of = ground.open("three", process=dead)
        dead.steps.at("journal.decide", "after", dead.steps.crash)
        with pytest.raises(Crash):
            of.commit()
        ground.let_the_lease_end()
        ground.open("four", board="beta").abort()
        ground.check(3)

    def plain(items: list[dict[str, Any]]) -> list[Any]:
        chance = ("lease_holder", "generation")
        return sorted(
            (sorted((n, _bytes(v)) for n, v in item.items() if n not in chance) for item in items), key=lambda item: repr(dict(item)["pk"])
        )

    prefix = ""
    with servers() as in_a_dict:
        everything(Ground(in_a_dict))
        mine = {name: plain(list(table.values())) for name, table in in_a_dict.tables.tables.items()}
    prefix = PREFIX
    with moto() as client, servers(client) as emulated:
        usual, emulated.process = emulated.process, lambda **more: usual(**{"prefix": PREFIX, **more})  # type: ignore[method-assign]
        everything(Ground(emulated))
        theirs = {name: plain(client.scan(TableName=PREFIX + name)["Items"]) for name in mine}
    assert {n: sorted(map(repr, t)) for n, t in mine.items()} == {n: sorted(map(repr, t)) for n, t in theirs.items()}


def _bytes(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return kind, bytes(content) if kind == "B" else content
