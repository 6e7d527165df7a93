"""The commit protocol of the served stores under any order of calls of two agents on two boards, at two processes that fail and die.

A process may be paused at any step of any call while the other one acts, also after its lease ran out. What was decided is what the model
has; readers see it from the first commit up to some last one, each wholly; after a run of the relay graph, index, audit and outbox are the
model, and nothing that was staged is left over.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from pulse_kg.adapters.dynamodb import blobs, keys
from pulse_kg.adapters.dynamodb.journal import STAGED_GRACE_MS
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.usecases.verify import verify_board
from tests.support.bad_input import fault_of_envelope
from tests.support.emulated import STEPS, Crash, Process, Servers, lost
from tests.support.world import Agent

BOARDS, AGENTS, PROCESSES = ("alpha", "beta"), ("ada", "bob"), (0, 1)
LEASE_MS = 15_000
TITLES = ("Retries stop after a day", "Retries stop after two days", "Jitter is added to every delay", "Logs are kept", "Peers wait")
REFUSALS = (
    *("store_unavailable", "commit_conflict", "invalid_edge_endpoints", "session_aborted", "session_expired", "invalid_argument"),
    "session_not_found",
)
"""What a commit may be refused with and change nothing, or be decided and not yet carried out."""

WORTH_REACHING = (
    *(f"{kind} {when} a step" for kind in ("crash", "lost") for when in ("before", "after")),
    *(f"struck at {step}" for step in STEPS),
    *("paused: commit", "paused: late commit", "paused: sweep", "paused: late sweep", "paused: abort"),
    *("decided and not told", "told again", "taken", "swept", "commit_conflict", "session_aborted", "session_expired"),
)
"""What the exploration must have come by, or it proves little."""

numbers = st.integers(0, 1_000)
processes = st.sampled_from(PROCESSES)


@dataclass
class Session:
    """A session as the model knows it."""

    session_id: str
    agent: str
    board: str
    expires_at: int
    nodes: int = 0
    aborted: bool = False
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Disturbance:
    """What happens at a step of a call."""

    kind: str
    step: str
    when: Any
    occurrence: int
    number: int


_KINDS = ("lost", "lost", "crash", "crash", "commit", "late commit", "sweep", "late sweep", "abort")
_ONLY_FINISHING = ("journal.decided", "journal.release")
_ONLY_SWEEPING = ("journal.sweep_staged",)


def disturbances(*, without: tuple[str, ...]) -> st.SearchStrategy[Disturbance]:
    """From one number each: drawn one by one, the parts come in far fewer combinations."""
    steps = [step for step in STEPS if step not in without]

    def one(number: int) -> Disturbance:
        chance = random.Random(number)
        when = chance.choice(("before", "after"))
        return Disturbance(chance.choice(_KINDS), chance.choice(steps), when, chance.choice((1, 1, 1, 1, 1, 2)), chance.randrange(1_000))

    return st.integers(0, 2**32).map(one)


class Protocol(RuleBasedStateMachine):
    """The protocol and its model."""

    reached: ClassVar[Counter[str]] = Counter()
    favourite: ClassVar[str] = STEPS[0]
    """Where most of the disturbances are."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.servers = Servers()
        self.stack.callback(self.servers.close)
        self.processes: list[Process] = []
        self.sessions: list[Session] = []
        self.commits: dict[str, list[Session]] = {board: [] for board in BOARDS}
        self.running: list[tuple[Process, Session]] = []
        self.calls = 0

    @initialize(staging=st.booleans())
    def begin_with_boards_and_agents(self, staging: bool) -> None:
        if staging:  # the texts of every commit are too large for the decision
            patch = self.stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(blobs, "INLINE_BYTES", 300)
            patch.setattr(blobs, "PART_BYTES", 1_000)
        self.processes = [self.started() for _ in PROCESSES]
        for board in BOARDS:
            self.servers.board(self.processes[0], board)
        world = self.servers.world(self.processes[0])
        self.keys = {name: world.agent(name, boards=BOARDS) for name in AGENTS}

    def started(self) -> Process:
        """A new process; what it decides is in the model from that moment on."""
        process = self.servers.process(lease_ms=LEASE_MS)
        decide = process.store.journal.decide

        def noted(*arguments: Any, **more: Any) -> None:
            decide(*arguments, **more)
            (session,) = [s for p, s in self.running if p is process][-1:]
            assert session not in self.commits[session.board], "a session was decided twice"
            assert not session.aborted
            self.commits[session.board].append(session)

        process.store.journal.decide = noted  # type: ignore[method-assign]
        return process

    # Calls.

    def at(self, process: Process, agent: str) -> Agent:
        of = self.keys[agent]
        return Agent(self.servers.world(process), of.api_key, of.agent_id, agent)

    def call(self, place: int, agent: str, tool: str, **arguments: Any) -> ToolOutcome | None:
        """What a tool answers; None where the process died of it."""
        process = self.processes[place]
        try:
            outcome = self.at(process, agent).try_call(tool, arguments)
        except Crash:
            self.processes[place] = self.started()
            return None
        if outcome.is_error:
            assert fault_of_envelope(outcome.body) is None
            self.reached[outcome.body["error"]["code"]] += 1
        return outcome

    def disturbed(self, place: int, how: Disturbance | None, others: Callable[[int], list[Session]]) -> None:
        """Prepares what happens at a step of the process's next call."""
        if how is None:
            return
        process, other = self.processes[place], 1 - place
        step = self.favourite if how.number % 3 else how.step  # a number of 0 leaves it

        def happens() -> None:
            if how.kind in {"lost", "crash"}:
                self.reached[f"{how.kind} {how.when} a step"] += 1
                self.reached[f"struck at {step}"] += 1
                (lost if how.kind == "lost" else process.steps.crash)()
            if how.kind.startswith("late"):
                self.servers.clock.advance(seconds=LEASE_MS / 1_000 + 1)
            kind, rivals = how.kind.removeprefix("late "), others(how.number)
            if kind == "sweep":
                self.sweep_at(other)
            elif rivals and kind == "commit":
                self.commit_at(other, rivals[0])
            elif rivals:
                self.abort_at(other, rivals[0])
            else:
                return
            self.reached[f"paused: {how.kind}"] += 1

        process.steps.at(step, how.when, happens, occurrence=how.occurrence)

    def settled(self, place: int) -> None:
        """Nothing more is to happen there."""
        self.processes[place].steps._chosen = None

    @rule(
        place=processes,
        agent=st.sampled_from(AGENTS),
        board=st.sampled_from(("alpha", "alpha", "beta")),
        titles=st.lists(st.tuples(st.sampled_from(TITLES), st.integers(0, 3)), min_size=1, max_size=3),
        propose=st.booleans(),
    )
    def begin(self, place: int, agent: str, board: str, titles: list[tuple[str, int]], propose: bool) -> None:
        self.calls += 1
        begun = self.call(
            place,
            agent,
            "begin_consolidation",
            board_id=board,
            source_type="spec",
            source_id="spec_1",
            source_version=1,
            payload_hash=f"sha256:{self.calls:064x}",
        )
        assert begun is not None
        assert not begun.is_error
        session = Session(begun.body["session_id"], agent, board, self.servers.clock.now() + 3_600_000)
        self.sessions.append(session)
        for title, section in titles:
            self.add(place, session, title, section)
        if len(titles) > 1:
            ends = {"src": {"candidate_id": "cand_001"}, "dst": {"candidate_id": "cand_002"}}
            self.call(place, agent, "add_edge_candidate", session_id=session.session_id, rel_type="relates_to", **ends)
        if propose:
            self.call(place, agent, "propose_reconciliation", session_id=session.session_id)

    def add(self, place: int, session: Session, title: str, section: int) -> None:
        ref = {"source_ref": {"spec_id": "spec_1", "section": f"s{section}"}} if section else {}
        added = self.call(
            place, session.agent, "add_node_candidate", session_id=session.session_id, node_type="Decision", title=title, **ref
        )
        assert added is not None
        assert not added.is_error
        session.nodes += 1

    def open(self, number: int) -> list[Session]:
        """Sessions that may still be committed, some of them first; none that is being committed just now."""
        now, busy = self.servers.clock.now(), [s for _, s in self.running]
        fit = [s for s in self.sessions if not s.aborted and s not in self.decided and s not in busy and now < s.expires_at]
        return fit[number % len(fit) :] if fit else []

    @property
    def decided(self) -> list[Session]:
        return [s for commits in self.commits.values() for s in commits]

    @precondition(lambda self: self.open(0))
    @rule(place=processes, number=numbers, title=st.sampled_from(TITLES), section=st.integers(0, 3))
    def add_node(self, place: int, number: int, title: str, section: int) -> None:
        self.add(place, self.open(number)[0], title, section)

    @precondition(lambda self: self.open(0))
    @rule(place=processes, number=numbers)
    def propose(self, place: int, number: int) -> None:
        session = self.open(number)[0]
        outcome = self.call(place, session.agent, "propose_reconciliation", session_id=session.session_id)
        assert outcome is not None
        assert not outcome.is_error

    @precondition(lambda self: self.open(0))
    @rule(place=processes, number=numbers)
    def commit(self, place: int, number: int) -> None:
        self.commit_at(place, self.open(number)[0])

    @rule(
        place=processes,
        number=numbers,
        board=st.sampled_from(BOARDS),
        title=st.sampled_from(TITLES),
        section=st.integers(0, 2),
        how=disturbances(without=_ONLY_FINISHING + _ONLY_SWEEPING),
    )
    def commit_and_be_disturbed(self, place: int, number: int, board: str, title: str, section: int, how: Disturbance) -> None:
        if number % 3 or not self.open(number):  # a new one, and a rival that wants the same
            for agent, text in zip(AGENTS, (title, f"{title} at most"), strict=True):
                self.begin(place, agent, board, [(text, section), (f"Number {number}", 0)], propose=number % 2 == 0)
            session = self.sessions[-1]
        else:
            session = self.open(number)[0]
        # Mostly a rival on the same board; for an abort, the session itself.
        self.disturbed(place, how, lambda n: [session] if how.kind == "abort" else [s for s in self.open(n) if s.board == session.board])
        self.commit_at(place, session)
        self.settled(place)

    def commit_at(self, place: int, session: Session) -> None:
        known, before = session in self.decided, self.processes[place]
        self.running.append((before, session))
        outcome = self.call(place, session.agent, "commit_consolidation", session_id=session.session_id)
        self.running.pop()
        decided = session in self.decided
        if outcome is None:
            self.reached["decided and not told"] += decided and not known
            return
        if not outcome.is_error:
            assert decided, "a commit was acknowledged and never decided"
            assert session.answer in (None, outcome.body), "the same commit was told another answer"
            session.answer = outcome.body
            assert outcome.body["audit_row_id"] == self.commits[session.board].index(session) + 1
            # Acknowledged is durable, and seen by who committed.
            assert self.processes[place].store.journal.applied(session.board) >= outcome.body["audit_row_id"]
            self.reached["told again" if known else "taken"] += 1
            return
        error = outcome.body["error"]
        assert error["code"] in REFUSALS, error
        if error["details"].get("decided"):
            assert decided, "a commit that was not decided was told to be"
        elif decided and not known:
            assert before.steps.struck, "a decision got lost by itself"
            assert error["code"] == "store_unavailable"
            self.reached["decided and not told"] += 1

    @precondition(lambda self: self.decided)
    @rule(place=processes, number=numbers, how=disturbances(without=_ONLY_SWEEPING), undisturbed=st.booleans(), dies=st.booleans())
    def commit_again(self, place: int, number: int, how: Disturbance, undisturbed: bool, dies: bool) -> None:
        session = self.decided[number % len(self.decided)]
        if dies:
            self.commit_and_be_disturbed(1 - place, number, BOARDS[0], TITLES[0], 0, Disturbance("crash", "graph.apply", "before", 1, 0))
            session = self.decided[-1]
        self.disturbed(place, None if undisturbed else how, lambda n: [s for s in self.open(n) if s.board == session.board])
        self.commit_at(place, session)
        self.settled(place)

    @precondition(lambda self: self.open(0))
    @rule(place=processes, number=numbers)
    def abort(self, place: int, number: int) -> None:
        self.abort_at(place, self.open(number)[0])

    def abort_at(self, place: int, session: Session) -> None:
        outcome = self.call(place, session.agent, "abort_consolidation", session_id=session.session_id)
        assert outcome is not None
        code = outcome.body["error"]["code"] if outcome.is_error else None
        assert code == ("session_already_committed" if session in self.decided else None)
        session.aborted = code is None

    @rule(
        place=processes,
        how=disturbances(without=("journal.stage", "journal.decide")),
        undisturbed=st.booleans(),
        dies=st.none()
        | st.sampled_from(("graph.apply", "graph.apply", "journal.mark_applied", "publisher.publish", "journal.drop_writes")),
        number=numbers,
    )
    def sweep(self, place: int, how: Disturbance, undisturbed: bool, dies: str | None, number: int) -> None:
        """Mostly after a process died, so that there is something to do."""
        if dies is not None:
            death = Disturbance("crash", dies, "before", 1, 0)
            self.commit_and_be_disturbed(1 - place, number, BOARDS[number % 2], TITLES[number % 5], number % 3, death)
            self.servers.clock.advance(seconds=LEASE_MS / 1_000 + 1)
        self.disturbed(place, None if undisturbed else how, self.open)
        self.sweep_at(place)
        self.settled(place)

    def sweep_at(self, place: int) -> None:
        try:
            report = self.processes[place].container.relay_outbox(60)
        except Crash:
            self.processes[place] = self.started()
            return
        assert set(report["failed"].values()) <= {"store_unavailable"}
        self.reached["swept"] += report["applied"]

    @rule(seconds=st.sampled_from((*[1] * 12, *[LEASE_MS / 1_000 + 1] * 8, 600, 3_599)))
    def time_passes(self, seconds: float) -> None:
        self.servers.clock.advance(seconds=seconds)

    @precondition(lambda self: len(self.open(0)) == 1)
    @rule(place=processes, number=numbers)
    def commit_too_late(self, place: int, number: int) -> None:
        session = self.open(number)[0]
        self.servers.clock.advance(seconds=(session.expires_at - self.servers.clock.now()) / 1_000)
        self.commit_at(place, session)
        assert session not in self.decided

    # What always holds.

    @invariant()
    def readers_see_the_first_commits_and_each_of_them_wholly(self) -> None:
        if not self.processes:
            return
        container = self.processes[1].container
        for board_id, commits in self.commits.items():
            with container.services.one_call():
                board = container.boards.board(board_id)
                rows = list(container.commits.audit_rows(board_id))
                nodes, edges = list(container.graph.all_nodes(board_id)), list(container.graph.all_edges(board_id))
                outbox = list(container.commits.outbox(board_id))
            assert board is not None
            assert board.commit_seq == len(commits)
            assert [row["session_id"] for row in rows] == [s.session_id for s in commits[: len(rows)]]
            added = {(entry["node_id"], row["audit_row_id"]) for row in rows for entry in row["applied"]["added"]}
            assert {(n.node_id, n.created_seq) for n in nodes} == added
            assert {e.edge_id for e in edges} == {e["edge_id"] for row in rows for e in row["edges_added"]}
            assert [record.seq for record in outbox] == [row["audit_row_id"] for row in rows]
            sent = self.servers.queue.first(board_id)
            assert sent == list(range(1, len(sent) + 1)), "an event went out before one of an earlier commit"
            assert len(sent) <= len(rows), "an event went out before its commit could be seen"

    @invariant()
    def nothing_is_stored_of_what_was_not_decided(self) -> None:
        for board_id, commits in self.commits.items():
            nodes, edges, vectors = self.servers.stored(board_id)
            assert all(n.created_seq <= len(commits) for n in nodes.values())
            assert all(e.commit_seq <= len(commits) for e in edges.values())
            assert set(vectors) <= set(nodes)

    def teardown(self) -> None:
        try:
            if self.processes:
                self.ends_well()
        finally:
            self.stack.close()

    def ends_well(self) -> None:
        """The relay runs once, after everybody's lease."""
        self.servers.clock.advance(seconds=LEASE_MS / 1_000 + 1)
        self.processes = [self.started() for _ in PROCESSES]
        container = self.processes[0].container
        assert container.relay_outbox(600)["failed"] == {}
        for session in self.decided:
            self.commit_at(1, session)
            assert session.answer is not None
        self.readers_see_the_first_commits_and_each_of_them_wholly()
        for board_id, commits in self.commits.items():
            result = verify_board(board_id, container.services)
            assert (result.findings, result.commits) == ((), len(commits))
            assert [record.state for record in container.commits.outbox(board_id)] == ["published"] * len(commits)
            assert self.servers.queue.first(board_id) == list(range(1, len(commits) + 1))
        self.servers.clock.advance(seconds=STAGED_GRACE_MS / 1_000)
        container.relay_outbox(600)
        assert container.outbox is not None
        assert container.outbox.pending_boards() == ()
        assert set(self.servers.staged()) == self.parts_in_use()

    def parts_in_use(self) -> set[tuple[str, str]]:
        """The parts of audit rows, by their records, and of answers, by their sessions."""
        tables = self.servers.tables.tables
        named = {
            keys.parts(pk.removeprefix("board#"), item["token"]["S"])
            for (pk, sk), item in tables["boards"].items()
            if sk.startswith(keys.AUDIT) and "token" in item
        }
        answers = {(pk, f"answer#{i['answer_token']['S']}#") for (pk, _), i in tables["sessions"].items() if "answer_token" in i}
        return {key for key in tables["boards"] if key[0] in named and key[1].startswith("audit#")} | {
            key for key in tables["sessions"] if any(key[0] == pk and key[1].startswith(begins) for pk, begins in answers)
        }


@pytest.mark.slow
@pytest.mark.timeout(900)  # where it fails, the shortest way to the failure is looked for
def test_any_order_of_calls_faults_deaths_and_late_awakenings_leaves_exactly_what_was_decided() -> None:
    Protocol.reached.clear()
    bounds = settings(
        max_examples=18,
        stateful_step_count=40,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )

    for step in STEPS:
        run_state_machine_as_test(type("ProtocolAtAStep", (Protocol,), {"favourite": step}), settings=bounds)

    unreached = {what for what in WORTH_REACHING if not Protocol.reached[what]}
    assert unreached == set(), f"the exploration got about too little: {dict(Protocol.reached)}"
