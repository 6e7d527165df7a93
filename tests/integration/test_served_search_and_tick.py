"""Search and tick on the real servers: what the suites of the ports can't see."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.opensearch.layout import IndexSettings, current, make, mapping
from pulse_kg.adapters.opensearch.search import OpenSearchVectorSearch
from pulse_kg.adapters.opensearch.vectors import OpenSearchVectorIndex
from pulse_kg.adapters.served.store import ServedStore
from pulse_kg.domain.instants import parse_instant
from pulse_kg.domain.model import TextVector
from pulse_kg.usecases import decay_tick as tick_usecase
from pulse_kg.usecases.decay_tick import LEASE_MS, TickPorts, TickReport, decay_tick
from tests.support.plans import DIMENSION, HOUR, NOW, add, edge, node, unit
from tests.support.served import served
from tests.support.stores import CONTRACT_DIMENSION, STORES, Stores
from tests.support.world import FixedClock

pytestmark = pytest.mark.served

BOARDS = [f"b{number:02d}" for number in range(20)]


@pytest.fixture
def store() -> Iterator[ServedStore]:
    with served(dimension=CONTRACT_DIMENSION) as made:
        for board in ("alpha", "beta", *BOARDS):
            made.boards.create(board, board, now=NOW)
        yield made


def search_of(store: ServedStore, marks: Mapping[str, int] | None = None) -> OpenSearchVectorSearch:
    def applied(boards: Collection[str]) -> Mapping[str, int]:
        return {**store.marks.applied_many(boards), **(marks or {})}

    return OpenSearchVectorSearch(store.index_client, name=f"{store.dynamo.prefix}nodes", applied=applied)


def test_a_search_of_many_boards_is_one_request_and_their_marks_are_one_more(store: ServedStore) -> None:
    for number, board in enumerate(BOARDS[:3]):
        add(store, number, node("A"), board_id=board, vectors={"A": unit(1, number)})
    for boards in (BOARDS, BOARDS[:3], BOARDS[:1]):
        before = store.index_client.requests, store.dynamo.requests
        found = store.search.search(boards, ["Decision", "Entity"], unit(1), limit=10, min_score=0.3)
        assert [f.board_id for f in found] == boards[:3]
        assert (store.index_client.requests - before[0], store.dynamo.requests - before[1]) == (1, 1)


@pytest.mark.parametrize("boards", [BOARDS, BOARDS[:2]])
def test_what_a_commit_that_is_not_wholly_applied_wrote_is_not_found_and_takes_no_place(store: ServedStore, boards: list[str]) -> None:
    (old,) = add(store, 1, node("old"), board_id="b00", vectors={"old": unit(1, 3)})
    add(store, 2, *(node(f"n{n}") for n in range(40)), board_id="b00", vectors={f"n{n}": unit(1) for n in range(40)})
    (far,) = add(store, 3, node("far"), board_id="b01", vectors={"far": unit(1, 5)})
    early = search_of(store, {"b00": 1})
    assert [f.node_id for f in early.search(boards, ["Decision"], unit(1), limit=2)] == [old, far]
    assert len(store.search.search(boards, ["Decision"], unit(1), limit=50)) == 42


def test_an_index_of_an_older_version_learns_the_times(store: ServedStore) -> None:
    name = f"{store.dynamo.prefix}old"
    old = mapping(DIMENSION)
    del old["properties"]["at"]
    client = store.index_client
    index = OpenSearchVectorIndex(client, name=name, applied=lambda board: 1, dimension=DIMENSION)
    try:
        make(client, f"{name}_1", old, IndexSettings(replicas=0, refresh_interval="50ms"), alias=name)
        (a,) = add(store, 1, node("A", attributes={"decided_at": "2025-06-21"}))
        kept = store.graph.nodes("alpha", [a])[a]
        document = {"board_id": "alpha", "node_id": a, "node_type": "Decision", "live": True, "truncated": False, "commit_seq": 1}
        document |= {"created_seq": 1, "vector": [1.0] + [0.0] * (DIMENSION - 1)}
        client.request("PUT", f"/{name}/_doc/alpha:{a}", document, params={"routing": "alpha", "refresh": "true"})
        index.create_index()
        index.create_index()
        assert current(client, name) == f"{name}_1"
        index.probe()
        search = OpenSearchVectorSearch(client, name=name, applied=lambda boards: dict.fromkeys(boards, 1))
        since = parse_instant("2025-06-21")
        assert search.search(["alpha"], ["Decision"], unit(1), limit=5, since=since) == []
        assert [f.node_id for f in search.search(["alpha"], ["Decision"], unit(1), limit=5)] == [a]
        index.replace_all("alpha", [(kept, TextVector(unit(1)))], seq=1)
        assert [f.node_id for f in search.search(["alpha"], ["Decision"], unit(1), limit=5, since=since, until=since + 1)] == [a]
    finally:
        client.request("DELETE", f"/{name}_1", ignore=404)


def _ticked(store: Stores) -> dict[str, object]:
    """A board's nodes after two ticks, as the same commits, hits and times make them on every store."""
    edges = [edge("cand_001", "contradicts", "cand_002", confidence=0.4), edge("cand_003", "relates_to", "cand_001")]
    made = add(store, 1, *(node(t) for t in "ABCDE"), edges=edges)
    add(store, 2, node("B"), hints={"cand_001": ("SUPERSEDE", made[1])})
    store.hits.count("alpha", [made[0], made[0], made[2]], now=NOW + 1)
    clock = FixedClock(NOW + HOUR)
    for hours in (200, 900):
        clock.time = NOW + hours * HOUR
        report = decay_tick(TickPorts(store.boards, store.hits, store.relevances, store.ticks, clock), holder=f"at {hours}", seconds=60)
        assert (report.failed, report.nodes) == ({}, 6)
        store.hits.count("alpha", [made[0]], now=NOW + hours * HOUR)
    nodes = {n.title: asdict(n) for n in store.graph.all_nodes("alpha") if n.live}
    board = store.boards.board("alpha")
    assert board is not None
    return {**nodes, "board": (board.commit_seq, board.as_of, board.ticked_at)}


def test_a_tick_writes_the_same_as_on_the_embedded_store(store: ServedStore, tmp_path: Path) -> None:
    with STORES["sqlite-memory"](tmp_path) as embedded:
        embedded.boards.create("alpha", "Alpha", now=NOW)
        assert _ticked(store) == _ticked(embedded)


class _Before:
    """The relevances, before each portion of which something happens."""

    def __init__(self, part: Any, happens: Callable[[], object]) -> None:
        self._part, self._happens = part, happens

    def __getattr__(self, name: str) -> Any:
        if name == "rescore":
            self._happens()
        return getattr(self._part, name)


def _filled(store: ServedStore) -> dict[str, list[str]]:
    """Three boards with three nodes each, which have one, two and three hits."""
    made = {
        board: add(store, number, *(node(t) for t in "ABC"), board_id=board) for number, board in enumerate(("alpha", "b00", "beta"), 1)
    }
    for number, (board, node_ids) in enumerate(made.items(), 1):
        for _ in range(number):
            store.hits.count(board, node_ids, now=NOW + 1)
    return made


def _hits(store: ServedStore, made: Mapping[str, list[str]]) -> dict[str, set[int]]:
    return {board: {n.query_hits for n in store.graph.nodes(board, node_ids).values()} for board, node_ids in made.items()}


def test_a_run_over_several_boards_goes_on_where_the_last_one_broke_off(store: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tick_usecase, "AT_A_TIME", 2)
    made = _filled(store)
    clock = FixedClock(NOW + HOUR)

    def run(holder: str, happens: Callable[[], object], seconds: float = 60) -> TickReport:
        relevances: Any = _Before(store.relevances, happens)
        return decay_tick(TickPorts(store.boards, store.hits, relevances, store.ticks, clock), holder=holder, seconds=seconds)

    first = run("first", lambda: clock.advance(seconds=10), seconds=25)  # three portions: two of alpha, one of the next
    assert (first.boards, first.nodes, first.hits, first.failed) == (1, 5, 3 + 2 * 2, {})
    assert first.left > 0
    assert _hits(store, made) == {"alpha": {1}, "b00": {0, 2}, "beta": {0}}

    second = run("second", lambda: None)
    assert (second.nodes, second.hits, second.failed, second.left) == (1 + 3, 2 + 3 * 3, {}, 0)
    assert _hits(store, made) == {"alpha": {1}, "b00": {2}, "beta": {3}}
    third = run("third", lambda: None)
    assert (third.nodes, third.hits) == (9, 0)  # of all boards again


def test_of_two_processes_one_runs_the_tick(store: ServedStore) -> None:
    made, clock, beside = _filled(store), FixedClock(NOW + HOUR), list[TickReport]()

    def ports(relevances: Any) -> TickPorts:
        return TickPorts(store.boards, store.hits, relevances, store.ticks, clock)

    def another() -> None:
        beside.append(decay_tick(ports(store.relevances), holder=f"another {len(beside)}", seconds=60))

    report = decay_tick(ports(_Before(store.relevances, another)), holder="one", seconds=60)
    assert (report.nodes, report.hits) == (9, 3 * (1 + 2 + 3))
    assert beside == [TickReport(running=True)] * 3
    assert _hits(store, made) == {"alpha": {1}, "b00": {2}, "beta": {3}}

    assert store.ticks.take("one that died", now=clock.now(), until=clock.now() + LEASE_MS) is not None
    another()
    assert beside[-1] == TickReport(running=True)
    clock.advance(seconds=LEASE_MS / 1000)
    another()
    assert (beside[-1].running, beside[-1].nodes) == (False, 9)
