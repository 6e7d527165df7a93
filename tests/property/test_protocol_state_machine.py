"""The session protocol under any order of calls, of two agents on two boards, with a fault at any call of any port.

The model knows which sessions there are and which commits were acknowledged. After every step the store must hold exactly those
commits, whole, and at the end `verify` must find nothing wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from pulse_kg.errors import StoreUnavailable
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.ports.sessions import GRACE_MS
from pulse_kg.usecases.verify import verify_board
from tests.support.bad_input import Dump, dump, fault_of_envelope
from tests.support.crash_points import Faults, When, faults_inside_a_commit, faulty_host
from tests.support.world import Agent, World, opened

BOARDS = ("alpha", "beta")
AGENTS = ("ada", "bob")
TITLES = ("Retries stop after a day", "Retries stop after two days", "Jitter is added to every delay", "Logs are kept", "Peers wait")
TYPES = ("Decision", "Decision", "Constraint", "Learning", "Criterion")
RELATIONS = ("supersedes", "supersedes", "contradicts", "depends_on", "relates_to", "validates")
PRIVATE = ("sessions", "candidates", "rate_windows", "meta")
"""Tables that no reader of a board sees: a commit that failed may leave vectors and its reason there."""

WORTH_REACHING = (
    *("taken", "replayed", "commit_conflict", "invalid_edge_endpoints", "store_unavailable"),
    *("session_expired", "session_aborted", "session_already_committed", "session_ownership_mismatch", "session_not_found"),
    *("fault before turn.commit", "fault after turn.commit", "fault inside the store's transaction", "fault before a read"),
    *("fault after a read", "superseded", "updated", "noop"),
)
"""What the exploration must have come by, or it proves little."""

STEPS = (
    *["turn.commit"] * 10,
    *["inside.graph.apply", "inside.vectors.apply", "commits.turn"] * 3,
    *("sessions.load_all", "sessions.save_vectors", "vectors.check_model", "vectors.nearest", "embedder.embed"),
    *("graph.nodes", "graph.with_digests", "graph.with_refs", "graph.survey", "graph.survey", "graph.supersedes_below"),
)
"""Calls of a commit that may fail."""

numbers = st.integers(0, 1_000)


@dataclass
class Session:
    """A session as the model knows it."""

    session_id: str
    agent: str
    board: str
    expires_at: int
    state: str = "open"
    nodes: int = 0
    edges: int = 0
    answer: Mapping[str, Any] | None = None
    overrides: list[dict[str, Any]] = field(default_factory=list)


def reference(section: int) -> dict[str, Any]:
    """A stable reference, or none."""
    return {"source_ref": {"spec_id": "spec_1", "section": f"s{section}"}} if section else {}


class Protocol(RuleBasedStateMachine):
    """The protocol and its model."""

    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.world: World = self.stack.enter_context(opened(environment={"PULSE_KG_MAX_OPEN_SESSIONS": "10000"}))
        self.faults = Faults()
        self.sessions: list[Session] = []
        self.commits: dict[str, list[Session]] = {board: [] for board in BOARDS}
        self.calls = 0

    @initialize()
    def begin_with_boards_and_agents(self) -> None:
        for board in BOARDS:
            self.world.board(board)
        self.agents: dict[str, Agent] = {name: self.world.agent(name, boards=BOARDS) for name in AGENTS}
        self.world.host = faulty_host(self.world.container, self.faults)
        self.stack.enter_context(faults_inside_a_commit(self.world.container, self.faults))

    # What the model foresees.

    def picked(self, number: int) -> Session:
        """A session: mostly an open one, for most that can happen happens to these."""
        now = self.world.clock.now()
        fit = [s for s in self.sessions if s.state == "open" and now < s.expires_at] if number % 8 else []
        return (fit or self.sessions)[-1 - number // 8 % min(5, len(fit or self.sessions))]

    def refusal_of(self, session: Session, agent: str) -> str | None:
        """The code that every tool but commit and abort answers, by the contract's order of checks."""
        now = self.world.clock.now()
        if now >= session.expires_at + GRACE_MS:
            return "session_not_found"
        if agent != session.agent:
            return "session_ownership_mismatch"
        if session.state != "open":
            return "session_already_committed" if session.state == "committed" else "session_aborted"
        return "session_expired" if now >= session.expires_at else None

    def call(self, agent: str, tool: str, **arguments: Any) -> ToolOutcome:
        outcome = self.agents[agent].try_call(tool, arguments)
        if outcome.is_error:
            assert fault_of_envelope(outcome.body) is None
            self.reached[outcome.body["error"]["code"]] += 1
        return outcome

    def expect(self, outcome: ToolOutcome, refusal: str | None, *, or_else: Sequence[str] = ()) -> bool:
        """Whether it was taken; a refusal is the one foreseen, or one of those that depend on the graph."""
        code = outcome.body["error"]["code"] if outcome.is_error else None
        assert code == refusal or (refusal is None and code in or_else), outcome.body
        return code is None

    # Calls.

    @rule(
        agent=st.sampled_from(AGENTS),
        board=st.sampled_from(("alpha", "alpha", "beta")),
        source=st.integers(1, 2),
        version=st.integers(1, 3),
        titles=st.lists(st.sampled_from(TITLES), max_size=3),
        propose=st.booleans(),
    )
    def begin(self, agent: str, board: str, source: int, version: int, titles: list[str], propose: bool) -> None:
        self.calls += 1
        begun = self.call(
            agent,
            "begin_consolidation",
            board_id=board,
            source_type="spec",
            source_id=f"spec_{source}",
            source_version=version,
            payload_hash=f"sha256:{self.calls:064x}",
        )
        self.expect(begun, None)
        session = Session(begun.body["session_id"], agent, board, self.world.clock.now() + 3_600_000)
        self.sessions.append(session)
        for title in titles:
            self.add_to(session, title, 0)
        if propose:
            self.expect(self.call(agent, "propose_reconciliation", session_id=session.session_id), None)

    @precondition(lambda self: self.sessions)
    @rule(number=numbers, title=st.sampled_from(TITLES), kind=st.sampled_from(TYPES), section=st.integers(0, 3), own=st.integers(0, 7))
    def add_node(self, number: int, title: str, kind: str, section: int, own: int) -> None:
        session, agent = self.caller(number, own)
        ref = reference(section)
        outcome = self.call(agent, "add_node_candidate", session_id=session.session_id, node_type=kind, title=title, **ref)
        if self.expect(outcome, self.refusal_of(session, agent)):
            session.nodes += 1
            assert outcome.body["candidate_id"] == f"cand_{session.nodes:03d}"

    @precondition(lambda self: self.sessions)
    @rule(number=numbers, rel_type=st.sampled_from(RELATIONS), src=numbers, dst=numbers, own=st.integers(0, 7))
    def add_edge(self, number: int, rel_type: str, src: int, dst: int, own: int) -> None:
        session, agent = self.caller(number, own)
        ends = {"src": self.end(session, src), "dst": self.end(session, dst)}
        outcome = self.call(agent, "add_edge_candidate", session_id=session.session_id, rel_type=rel_type, **ends)
        graph_says = ("invalid_edge_endpoints", "candidate_not_found", "node_not_found")
        if self.expect(outcome, self.refusal_of(session, agent), or_else=graph_says):
            session.edges += 1
            assert outcome.body["edge_candidate_id"] == f"edge_cand_{session.edges:03d}"

    @precondition(lambda self: self.sessions)
    @rule(number=numbers, candidate=st.integers(1, 4), own=st.integers(0, 7))
    def get_similar(self, number: int, candidate: int, own: int) -> None:
        session, agent = self.caller(number, own)
        outcome = self.call(agent, "get_similar_nodes", session_id=session.session_id, candidate_id=f"cand_{candidate:03d}")
        refusal = self.refusal_of(session, agent) or (None if candidate <= session.nodes else "candidate_not_found")
        if self.expect(outcome, refusal):
            assert {m["node_id"] for m in outcome.body["matches"]} <= self.added(session.board)

    @precondition(lambda self: self.sessions)
    @rule(number=numbers, own=st.integers(0, 7))
    def propose(self, number: int, own: int) -> None:
        session, agent = self.caller(number, own)
        outcome = self.call(agent, "propose_reconciliation", session_id=session.session_id)
        if self.expect(outcome, self.refusal_of(session, agent)):
            assert len(outcome.body["proposals"]) == session.nodes
            targets = {p.get("target_node") for p in outcome.body["proposals"]} - {None}
            assert targets <= self.added(session.board)

    @precondition(lambda self: self.sessions)
    @rule(number=numbers, own=st.integers(0, 7), hints=st.lists(st.sampled_from(("ADD", "NOOP", "UPDATE", "SUPERSEDE")), max_size=2))
    def commit(self, number: int, own: int, hints: list[str]) -> None:
        session, agent = self.caller(number, own)
        overrides = [{"candidate_id": f"cand_{place:03d}", "hint": hint, "rationale": "So."} for place, hint in enumerate(hints, start=1)]
        if self.committed(session, agent, overrides) or self.last_code != "commit_conflict":
            return
        self.expect(self.call(agent, "propose_reconciliation", session_id=session.session_id), None)
        self.committed(session, agent, [])
        assert self.last_code in {None, "invalid_edge_endpoints"}, "a propose made it no better"

    @rule(
        number=numbers,
        titles=st.lists(st.sampled_from(TITLES), min_size=1, max_size=3),
        step=st.sampled_from(STEPS),
        at=st.sampled_from((1, 1, 1, 2)),
        when=st.sampled_from(("before", "after")),
        proposed=st.booleans(),
    )
    def commit_with_a_fault(self, number: int, titles: list[str], step: str, at: int, when: When, proposed: bool) -> None:
        now = self.world.clock.now()
        filled = [s for s in self.sessions if s.state == "open" and s.nodes and now < s.expires_at] if number % 3 == 0 else []
        if not filled:
            self.begin(AGENTS[number % 2], BOARDS[number // 2 % 2], 1, 1, titles, propose=False)
            filled = self.sessions[-1:]
        session = filled[number % len(filled)]
        if proposed:
            self.expect(self.call(session.agent, "propose_reconciliation", session_id=session.session_id), None)
        before = self.public()
        self.faults.arm(at, when, only=step)
        outcome = self.call(session.agent, "commit_consolidation", session_id=session.session_id)
        self.faults.disarm()
        struck = str(self.faults.struck)
        self.reached[f"fault {when} {struck}" if struck == "turn.commit" else f"fault {when} a read" if "." in struck else "no fault"] += 1
        self.reached["fault inside the store's transaction"] += struck.startswith("inside.")
        if self.faults.struck is None or not outcome.is_error:  # it never struck, or only the mark of another failure
            self.note(session, [], outcome)
            return
        assert outcome.body["error"]["code"] in {"store_unavailable", "commit_conflict", "invalid_edge_endpoints"}
        assert isinstance(self.faults.error, StoreUnavailable | None)
        if (self.faults.struck, when) == ("turn.commit", "after"):
            session.state = "committed"  # it was decided, and only its answer was lost: to be had by the same call
            self.commits[session.board].append(session)
            again = self.call(session.agent, "commit_consolidation", session_id=session.session_id)
            self.expect(again, None)
            session.answer = again.body
        else:
            assert self.public() == before, f"{self.faults.struck} failed {when} its work, and something can be seen"

    @rule(board=st.sampled_from(BOARDS), title=st.sampled_from(TITLES), section=st.integers(0, 3), faithful=st.booleans())
    def two_say_the_same(self, board: str, title: str, section: int, faithful: bool) -> None:
        """Two sessions that both were proposed before the first of them is committed."""
        rivals, hints = [], []
        for agent, text in zip(AGENTS, (title, title if faithful else f"{title} at most"), strict=True):
            self.begin(agent, board, 1, 1, [], propose=False)
            rivals.append(self.sessions[-1])
            self.add_to(rivals[-1], text, section)
            proposed = self.call(agent, "propose_reconciliation", session_id=rivals[-1].session_id)
            self.expect(proposed, None)
            hints.append(proposed.body["proposals"][0]["hint"])
        assert self.committed(rivals[0], AGENTS[0], [])
        if self.committed(rivals[1], AGENTS[1], []):
            assert not faithful or hints != ["ADD", "ADD"], "the same statement was added twice"
            return
        assert self.last_code == "commit_conflict"

    @precondition(lambda self: any(self.commits.values()))
    @rule(number=numbers, board=st.sampled_from(BOARDS))
    def commit_again(self, number: int, board: str) -> None:
        commits = self.commits[board] or [s for some in self.commits.values() for s in some]
        session = commits[number % len(commits)]
        self.committed(session, session.agent, session.overrides)

    @precondition(lambda self: self.sessions)
    @rule(
        number=numbers,
        at=st.sampled_from(range(1, 13)),
        when=st.sampled_from(("before", "after")),
        tool=st.sampled_from(("add", "add", "propose", "propose", "abort")),
    )
    def another_call_with_a_fault(self, number: int, at: int, when: When, tool: str) -> None:
        session = self.picked(number)
        refusal = self.refusal_of(session, session.agent)
        if refusal is not None:
            return
        self.calls += 1
        arguments: dict[str, Any] = {"session_id": session.session_id}
        if tool == "add":
            arguments |= {"node_type": "Decision", "title": f"Number {self.calls}", "idempotency_key": f"key {self.calls}"}
        name = {"add": "add_node_candidate", "propose": "propose_reconciliation", "abort": "abort_consolidation"}[tool]
        before = self.public()
        self.faults.arm(at, when)
        self.expect(self.call(session.agent, name, **arguments), None, or_else=("store_unavailable",))
        self.faults.disarm()
        assert self.public() == before
        again = self.call(session.agent, name, **arguments)
        self.expect(again, None)
        if tool == "add":
            session.nodes += 1
            assert again.body["candidate_id"] == f"cand_{session.nodes:03d}", "a retry made one more"
        elif tool == "abort":
            session.state = "aborted"

    @precondition(lambda self: self.sessions)
    @rule(number=numbers, own=st.integers(0, 7))
    def abort(self, number: int, own: int) -> None:
        session, agent = self.caller(number - number % 8 * (number % 3 > 0), own)  # mostly one that may be closed already
        refusal = self.refusal_of(session, agent)
        outcome = self.call(agent, "abort_consolidation", session_id=session.session_id)
        if self.expect(outcome, None if refusal in {"session_aborted", "session_expired"} else refusal) and refusal is None:
            session.state = "aborted"

    @rule(minutes=st.sampled_from((*[1] * 20, 10, 50, 60, 25 * 60)))
    def time_passes(self, minutes: int) -> None:
        self.world.clock.advance(seconds=60 * minutes)

    @precondition(lambda self: self.sessions)
    @rule(
        number=numbers,
        hours=st.sampled_from((1, 1, 1, 25)),
        tool=st.sampled_from(("propose_reconciliation", "commit_consolidation", "abort_consolidation")),
    )
    def too_late(self, number: int, hours: int, tool: str) -> None:
        session = self.picked(number)
        left = session.expires_at - self.world.clock.now()
        if left > 0:
            self.world.clock.advance(seconds=left / 1_000)
        self.world.clock.advance(seconds=3_600 * (hours - 1))
        refusal = self.refusal_of(session, session.agent)
        answers = {("abort_consolidation", "session_aborted"), ("abort_consolidation", "session_expired")}
        if session.state == "committed" and tool == "commit_consolidation":
            self.committed(session, session.agent, session.overrides)
        else:
            self.expect(self.call(session.agent, tool, session_id=session.session_id), None if (tool, refusal) in answers else refusal)

    # Helpers.

    def caller(self, number: int, own: int) -> tuple[Session, str]:
        """A session and who calls: mostly its owner."""
        session = self.picked(number)
        return session, session.agent if own else next(a for a in AGENTS if a != session.agent)

    def add_to(self, session: Session, title: str, section: int) -> None:
        session.nodes += 1
        arguments = {"session_id": session.session_id, "node_type": "Decision", "title": title, **reference(section)}
        self.expect(self.call(session.agent, "add_node_candidate", **arguments), None)

    def end(self, session: Session, number: int) -> dict[str, str]:
        nodes = sorted(self.added(session.board))
        if number % 2 and nodes:
            return {"node_id": nodes[number // 2 % len(nodes)]}
        return {"candidate_id": f"cand_{number // 2 % max(session.nodes + (number % 16 == 0), 1) + 1:03d}"}

    def added(self, board: str) -> set[str]:
        return {n["node_id"] for s in self.commits[board] if s.answer for n in s.answer["applied"]["added"]}

    def public(self) -> Dump:
        return {table: rows for table, rows in dump(self.world.container).items() if table not in PRIVATE}

    def committed(self, session: Session, agent: str, overrides: list[dict[str, Any]]) -> bool:
        before = self.public()
        more = {"agent_overrides": overrides} if overrides else {}
        outcome = self.call(agent, "commit_consolidation", session_id=session.session_id, **more)
        refusal = self.refusal_of(session, agent)
        self.last_code = outcome.body["error"]["code"] if outcome.is_error else None
        if refusal == "session_already_committed":
            same = overrides == session.overrides
            assert self.expect(outcome, None if same else refusal) == same
            self.reached["replayed"] += same
            assert (outcome.body if same else outcome.body["error"]["details"]["answer"]) == session.answer
            assert self.public() == before
            return False
        if refusal is None and not session.nodes and not session.edges:
            refusal = "invalid_argument"
        if not self.expect(outcome, refusal, or_else=("commit_conflict", "invalid_override", "invalid_edge_endpoints")):
            assert self.public() == before
            return False
        self.note(session, overrides, outcome)
        return True

    def note(self, session: Session, overrides: list[dict[str, Any]], outcome: ToolOutcome) -> None:
        """Takes a commit that was acknowledged into the model."""
        if outcome.is_error:
            assert outcome.body["error"]["code"] in {"commit_conflict", "invalid_edge_endpoints"}, outcome.body
            return
        session.state, session.answer, session.overrides = "committed", outcome.body, overrides
        self.commits[session.board].append(session)
        self.reached["taken"] += 1
        for hint in ("superseded", "updated", "noop"):
            self.reached[hint] += len(outcome.body["applied"][hint])
        assert outcome.body["audit_row_id"] == len(self.commits[session.board])
        named = [c["candidate_id"] for hint in ("added", "updated", "noop") for c in outcome.body["applied"][hint]]
        assert sorted(named) == [f"cand_{number:03d}" for number in range(1, session.nodes + 1)]

    # What always holds.

    @invariant()
    def the_boards_hold_exactly_the_commits(self) -> None:
        container = self.world.container
        for board_id, commits in self.commits.items():
            board = container.boards.board(board_id)
            rows = list(container.commits.audit_rows(board_id))
            assert [(r["audit_row_id"], r["session_id"]) for r in rows] == [(n, s.session_id) for n, s in enumerate(commits, start=1)]
            assert board is None or board.commit_seq == len(commits)
            assert {n.node_id for n in container.graph.all_nodes(board_id)} == self.added(board_id)
            told = {e["edge_id"] for s in commits if s.answer for e in s.answer["edges_added"]}
            assert {e.edge_id for e in container.graph.all_edges(board_id)} == told
            assert [r.seq for r in container.commits.outbox(board_id)] == list(range(1, len(commits) + 1))

    @invariant()
    def every_chain_ends_in_one_live_head(self) -> None:
        for board_id in self.commits:
            nodes = {n.node_id: n for n in self.world.container.graph.all_nodes(board_id)}
            for edge in self.world.container.graph.all_edges(board_id):
                assert edge.rel_type != "supersedes" or not nodes[edge.dst].live
            for node in nodes.values():
                seen = {node.node_id}
                while node.superseded_by is not None:
                    node = nodes[node.superseded_by]  # noqa: PLW2901 - up to the head
                    assert node.node_id not in seen, "superseded in a circle"
                    seen.add(node.node_id)

    def teardown(self) -> None:
        try:
            for session in self.sessions:
                if session.answer is not None and self.refusal_of(session, session.agent) == "session_already_committed":
                    overrides = {"agent_overrides": session.overrides} if session.overrides else {}
                    again = self.call(session.agent, "commit_consolidation", session_id=session.session_id, **overrides)
                    assert again.body == session.answer
            for board_id in self.commits:
                if self.world.container.boards.board(board_id) is not None:
                    assert verify_board(board_id, self.world.container.services).findings == ()
        finally:
            self.stack.close()


@pytest.mark.slow
@pytest.mark.timeout(600)  # where it fails, the shortest way to the failure is looked for
def test_any_order_of_calls_and_faults_leaves_exactly_the_acknowledged_commits() -> None:
    Protocol.reached.clear()
    bounds = settings(
        max_examples=100,
        stateful_step_count=50,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )

    run_state_machine_as_test(Protocol, settings=bounds)

    unreached = {what for what in WORTH_REACHING if not Protocol.reached[what]}
    assert unreached == set(), f"the exploration got about too little: {dict(Protocol.reached)}"
