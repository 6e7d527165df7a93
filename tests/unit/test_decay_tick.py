"""The decay tick: its numbers by hand, and what is left when a run breaks off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.sqlite import open_store
from pulse_kg.adapters.sqlite.store import SqliteStore
from pulse_kg.domain.model import Node
from pulse_kg.errors import StoreUnavailable
from pulse_kg.ports.ticks import TickPlace
from pulse_kg.usecases import decay_tick as module
from pulse_kg.usecases.decay_tick import LEASE_MS, TickPorts, TickReport, decay_tick
from tests.support.plans import NOW, Content, add, administered, commit, edge, node, session
from tests.support.world import FixedClock

DAY = 86_400_000
LATER = NOW + 30 * DAY


class Tick:
    """A store in memory with the boards alpha and beta, and its tick thirty days after the first commits."""

    def __init__(self, store: SqliteStore) -> None:
        self.store, self.clock = store, FixedClock(LATER)
        self.runs = 0

    def ports(self, wrap: Callable[[Any], Any] = lambda part: part) -> TickPorts:
        store = self.store
        return TickPorts(wrap(store.boards), wrap(store.hits), wrap(store.relevances), wrap(store.ticks), self.clock)

    def run(self, **more: Any) -> TickReport:
        self.runs += 1
        ports = more.pop("ports", None) or self.ports()
        return decay_tick(ports, holder=f"run {self.runs}", seconds=more.pop("seconds", 60.0), **more)

    def node(self, node_id: str, board_id: str = "alpha") -> Node:
        return self.store.graph.nodes(board_id, [node_id])[node_id]

    def everything(self) -> dict[str, Any]:
        boards = self.store.boards.boards()
        return {b.board_id: (b.ticked_at, list(self.store.graph.all_nodes(b.board_id))) for b in boards}


@pytest.fixture
def tick() -> Iterator[Tick]:
    store = open_store(":memory:", create=True)
    for board in ("alpha", "beta"):
        store.boards.create(board, board, now=NOW)
    yield Tick(store)
    store.close()


def test_the_numbers_are_those_of_the_formula(tick: Tick) -> None:
    edges = [edge("cand_001", "contradicts", "cand_002", confidence=0.2), edge("cand_002", "depends_on", "cand_003")]
    a, b, c = add(tick.store, 1, node("A", attributes={"confidence": 0.9}), node("B"), node("C"), edges=edges)
    tick.store.hits.count("alpha", [b, b, b, b], now=NOW)
    assert tick.run() == TickReport(boards=2, nodes=3, hits=4)
    expected = {
        a: 0.4 * 0.9 + 0.3 * math.log(2) / math.log(100),
        b: 0.4 * 0.7 + 0.3 * math.log(3) / math.log(100) + 0.3 * (4 * 0.5) / 10 - 0.2,
        c: 0.4 * 0.7 + 0.3 * math.log(2) / math.log(100),
    }
    for node_id, score in expected.items():
        kept = tick.node(node_id)
        assert kept.relevance_score == pytest.approx(score, abs=1e-12)
        assert kept.last_recomputed_at == LATER
        assert (kept.version, kept.commit_seq, kept.updated_at) == (1, 1, NOW)
    assert (tick.node(b).query_hits, tick.node(b).last_queried_at) == (4, NOW)
    board = tick.store.boards.board("alpha")
    assert board is not None
    assert (board.commit_seq, board.ticked_at, board.as_of) == (1, LATER, LATER)


def test_hits_halve_every_thirty_days_and_ten_are_as_many_as_count(tick: Tick) -> None:
    (a,) = add(tick.store, 1, node("A"))
    tick.store.hits.count("alpha", [a] * 40, now=NOW)
    base, scores = 0.4 * 0.7, []
    for days in (30, 60, 90):
        tick.clock.time = NOW + days * DAY
        tick.run()
        scores.append(tick.node(a).relevance_score - base)
    assert scores == pytest.approx([0.3, 0.3, 0.15])


def test_a_contradiction_that_was_resolved_since_weighs_nothing_any_more(tick: Tick) -> None:
    a, b = add(tick.store, 1, node("A"), node("B"), edges=[edge("cand_001", "contradicts", "cand_002", confidence=0.1)])
    contradicted = tick.node(b).relevance_score
    administered(tick.store, "alpha", a, kind="revoke")
    assert tick.node(b).relevance_score == contradicted  # no end of an added edge: the commit left it
    tick.run()
    assert tick.node(b).relevance_score == pytest.approx(contradicted + 0.1)


def test_a_second_tick_adds_no_hit_again(tick: Tick) -> None:
    (a,) = add(tick.store, 1, node("A"))
    tick.store.hits.count("alpha", [a, a], now=NOW)
    assert tick.run().hits == 2
    first = tick.everything()
    assert tick.run().hits == 0
    assert tick.everything() == first
    tick.store.hits.count("alpha", [a], now=NOW + DAY)
    assert tick.run().hits == 1
    assert (tick.node(a).query_hits, tick.node(a).last_queried_at) == (3, NOW + DAY)


def test_hits_that_a_commit_wrote_over_come_back_with_the_next_tick(tick: Tick) -> None:
    (a,) = add(tick.store, 1, node("A"))
    before = tick.node(a)
    tick.store.hits.count("alpha", [a], now=NOW)
    tick.run()
    with tick.store._database.writing() as connection:  # as a commit that had read the node before the tick leaves it
        connection.execute("UPDATE nodes SET query_hits = ?, last_queried_at = ?", (before.query_hits, before.last_queried_at))
    tick.run()
    assert (tick.node(a).query_hits, tick.node(a).last_queried_at) == (1, NOW)


def test_a_counter_that_lost_what_it_knew_takes_nothing_off(tick: Tick) -> None:
    (a,) = add(tick.store, 1, node("A"))
    tick.store.hits.count("alpha", [a, a], now=NOW)
    tick.run()
    with tick.store._database.writing() as connection:
        connection.execute("DELETE FROM hits")
    tick.run()
    assert (tick.node(a).query_hits, tick.node(a).last_queried_at) == (2, NOW)


def test_hits_of_nodes_that_are_not_there_and_of_other_boards_change_nothing(tick: Tick) -> None:
    (a,) = add(tick.store, 1, node("A"))
    (b,) = add(tick.store, 2, node("B"), board_id="beta")
    tick.store.hits.count("beta", [a, "dec_nobody"], now=NOW)
    tick.run()
    assert [tick.node(a).query_hits, tick.node(b, "beta").query_hits] == [0, 0]


def test_now_is_never_before_the_boards_last_commit(tick: Tick) -> None:
    commit(tick.store, session(1, expires_at=LATER + 2 * DAY), Content([node("A")]), now=LATER + DAY)
    tick.run()
    board = tick.store.boards.board("alpha")
    assert board is not None
    assert board.ticked_at == LATER + DAY


def test_one_board_alone(tick: Tick) -> None:
    add(tick.store, 1, node("A"))
    (b,) = add(tick.store, 2, node("B"), board_id="beta")
    assert tick.run(board_id="beta") == TickReport(boards=1, nodes=1)
    assert tick.node(b, "beta").last_recomputed_at == LATER
    assert [board.ticked_at for board in tick.store.boards.boards()] == [None, LATER]
    assert tick.run(board_id="nowhere") == TickReport()


def test_a_run_whose_time_is_over_is_gone_on_with_by_the_next(tick: Tick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_A_TIME", 2)
    made = sorted(add(tick.store, 1, *(node(f"n{n}") for n in range(5))))

    class Slow:
        def __init__(self, part: Any) -> None:
            self.part = part

        def __getattr__(self, name: str) -> Any:
            if name == "rescore":
                tick.clock.advance(seconds=10)
            return getattr(self.part, name)

    start = tick.clock.time
    assert tick.run(ports=tick.ports(Slow), seconds=15.0) == TickReport(nodes=4, left=2)
    assert {n: tick.node(n).last_recomputed_at for n in made} == {n: start if n in made[:4] else NOW for n in made}
    tick.clock.advance(days=1)
    assert tick.run() == TickReport(boards=2, nodes=1)
    assert {tick.node(n).last_recomputed_at for n in made} == {start}
    assert [board.ticked_at for board in tick.store.boards.boards()] == [start, tick.clock.time]
    assert tick.run() == TickReport(boards=2, nodes=5)


def test_of_two_runs_at_once_one_does_nothing(tick: Tick) -> None:
    (a,) = add(tick.store, 1, node("A"))
    assert tick.store.ticks.take("other", now=LATER, until=LATER + LEASE_MS) is not None
    assert tick.run() == TickReport(running=True)
    assert tick.node(a).last_recomputed_at == NOW
    tick.clock.time += LEASE_MS  # the other does not answer any more
    assert tick.run() == TickReport(boards=2, nodes=1)


def test_a_run_that_lost_its_turn_stops_and_what_it_wrote_is_right(tick: Tick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_A_TIME", 1)
    add(tick.store, 1, *(node(f"n{n}") for n in range(3)))
    inner: list[TickReport] = []

    class Overtaken:
        def __init__(self, part: Any) -> None:
            self.part = part

        def __getattr__(self, name: str) -> Any:
            if name == "rescore" and not inner:
                tick.clock.time += LEASE_MS
                inner.append(tick.run())
            return getattr(self.part, name)

    report = tick.run(ports=tick.ports(Overtaken))
    assert inner == [TickReport(boards=2, nodes=3)]
    assert report.left == 2  # it noted nothing, and its older number of the first node was refused
    assert {n.last_recomputed_at for n in tick.store.graph.all_nodes("alpha")} == {tick.clock.time}


def test_a_commit_in_between_is_neither_refused_nor_written_over(tick: Tick) -> None:
    a, b = add(tick.store, 1, node("A"), node("B"))
    tick.store.hits.count("alpha", [a, b], now=NOW)
    made: list[str] = []

    class Busy:
        def __init__(self, part: Any) -> None:
            self.part = part

        def __getattr__(self, name: str) -> Any:
            if name == "rescore" and not made:
                made.extend(add(tick.store, 2, node("C"), edges=[edge("cand_001", "relates_to", a)]))
            return getattr(self.part, name)

    # The commit's clock is behind that of the tick: times alone would not tell which of the two knew more.
    tick.run(ports=tick.ports(Busy))
    assert (tick.node(a).last_recomputed_at, tick.node(b).last_recomputed_at) == (NOW, LATER)
    assert tick.node(a).relevance_score == pytest.approx(0.4 * 0.7 + 0.3 * math.log(2) / math.log(100))
    assert (tick.node(a).query_hits, tick.node(b).query_hits) == (0, 1)
    tick.run()
    assert (tick.node(a).query_hits, tick.node(b).query_hits) == (1, 1)


class _Crash(Exception):
    pass


class _Crashing:
    """Counts the calls of all ports that it stands before, and breaks off after the chosen one."""

    def __init__(self, after: int) -> None:
        self.left = after

    def around(self, part: Any) -> Any:
        return _Part(self, part)


class _Part:
    def __init__(self, crash: _Crashing, part: Any) -> None:
        self._crash, self._part = crash, part

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)

        def call(*args: Any, **more: Any) -> Any:
            if self._crash.left < 0:
                raise _Crash  # a process that is gone gives nothing back either
            done = method(*args, **more)
            self._crash.left -= 1
            if self._crash.left < 0:
                raise _Crash
            return done

        return call


def _filled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Tick:
    store = open_store(":memory:", create=True)
    monkeypatch.setattr(module, "AT_A_TIME", 2)
    for board in ("alpha", "beta", "gamma"):
        store.boards.create(board, board, now=NOW)
    made = add(store, 1, *(node(f"n{n}") for n in range(5)), edges=[edge("cand_001", "contradicts", "cand_002")])
    other = add(store, 2, *(node(f"m{n}") for n in range(3)), board_id="beta")
    store.hits.count("alpha", made[:3] * 2, now=NOW + DAY)
    store.hits.count("beta", other[:1], now=NOW + DAY)
    return Tick(store)


def test_a_run_that_breaks_off_at_any_step_is_completed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _filled(tmp_path, monkeypatch)
    whole.run()
    expected = whole.everything()
    steps = 0
    while True:
        tick = _filled(tmp_path, monkeypatch)
        crash = _Crashing(steps)
        try:
            tick.run(ports=tick.ports(crash.around))
        except _Crash:
            tick.clock.time += LEASE_MS  # nobody gave the run back
            tick.run()
            late = tick.clock.time
            found = tick.everything()
            assert found.keys() == expected.keys()
            for board, (ticked_at, nodes) in expected.items():
                assert found[board][0] in {ticked_at, late}
                assert {n.last_recomputed_at for n in found[board][1]} <= {ticked_at, late}
                hits = [(n.node_id, n.query_hits, n.last_queried_at) for n in nodes]
                assert [(n.node_id, n.query_hits, n.last_queried_at) for n in found[board][1]] == hits
                scores = [pytest.approx(n.relevance_score, abs=1e-6) for n in nodes]
                assert [n.relevance_score for n in found[board][1]] == scores
        else:
            break
        finally:
            tick.store.close()
        steps += 1
    assert steps > 15  # every call of every port was the last one once
    whole.store.close()


def test_a_board_that_can_not_be_read_keeps_back_no_other(tick: Tick) -> None:
    add(tick.store, 1, node("A"))
    (b,) = add(tick.store, 2, node("B"), board_id="beta")

    class Broken:
        def __init__(self, part: Any) -> None:
            self.part = part

        def __getattr__(self, name: str) -> Any:
            return getattr(self.part, name)

        def counted(self, board_id: str) -> Any:
            if board_id == "alpha":
                raise StoreUnavailable("sessions")
            return self.part.counted(board_id)

    assert tick.run(ports=tick.ports(Broken)) == TickReport(boards=1, nodes=1, failed={"alpha": "store_unavailable"})
    assert tick.node(b, "beta").last_recomputed_at == LATER
    assert tick.run() == TickReport(boards=2, nodes=2)


def test_a_board_that_is_being_erased_is_passed_over(tick: Tick) -> None:
    add(tick.store, 1, node("A"))
    with tick.store._database.writing() as connection:
        connection.execute("UPDATE boards SET erasing = 1 WHERE board_id = 'alpha'")
    assert tick.run() == TickReport(boards=1)


def test_a_place_on_a_board_that_is_gone_is_no_trouble(tick: Tick) -> None:
    (b,) = add(tick.store, 2, node("B"), board_id="beta")
    assert tick.store.ticks.take("earlier", now=NOW, until=NOW) is not None
    assert tick.store.ticks.keep("earlier", TickPlace("alpine", NOW, "dec_1"), until=NOW)
    assert tick.run() == TickReport(boards=1, nodes=1)
    assert tick.node(b, "beta").last_recomputed_at == LATER
    assert tick.run().boards == 2
