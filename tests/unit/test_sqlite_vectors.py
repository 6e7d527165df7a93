"""The vectors that the embedded store keeps in memory: that they follow the file, and how much they may take."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from pulse_kg.adapters.sqlite import SqliteStore, open_store
from pulse_kg.domain.instants import parse_instant
from pulse_kg.domain.model import TextVector
from pulse_kg.domain.plan import VectorWrite
from pulse_kg.ports.vectors import Hit
from tests.support.plans import NOW, Content, add, commit, node, plan, session, unit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def opened(path: Path, *, cache: int = 1 << 20) -> SqliteStore:
    store = open_store(path, create=True, vector_cache_bytes=cache)
    for board_id in ("alpha", "beta", "gamma"):
        store.boards.create(board_id, board_id, now=NOW)
    return store


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = opened(path)
    yield made
    made.close()


def fill(store: SqliteStore, count: int, *, board_id: str = "alpha", seq: int = 1, seed: int = 1) -> None:
    """Vectors without nodes, in one step."""
    numbers = random.Random(seed)
    writes = []
    for n in range(count):
        vector = TextVector(unit(*(numbers.gauss(0, 1) for _ in range(8))))
        writes.append(VectorWrite(f"dec_{n:05d}", "Decision", numbers.random() > 0.2, vector))
    store.vectors.apply(replace(plan(store, session(1, board_id), Content(), seq=seq), vectors=tuple(writes)))


def search(store: SqliteStore, board_id: str = "alpha", *, live: bool = False, limit: int = 5) -> list[list[Hit]]:
    queries = [unit(1, 2, 3), unit(-1, 0, 1, 5), unit(0, 0, 0, 0, 1, 1, 1)]
    return store.vectors.nearest(board_id, "Decision", queries, limit=limit, live_only=live)


def test_a_board_larger_than_the_bound_is_searched_from_the_file_with_equal_results(path: Path) -> None:
    kept, small = opened(path, cache=1 << 22), opened(path, cache=1000)
    fill(kept, 9000)
    for live in (True, False):
        assert search(small, live=live) == search(kept, live=live)
    assert (small.vectors.cached_bytes, kept.vectors.cached_bytes > 9000 * 32) == (0, True)
    kept.close()
    small.close()


def spanned(store: SqliteStore, **span: int) -> list[str]:
    found = store.search.search(["alpha"], ["Decision"], unit(1), limit=50, since=span.get("since"), until=span.get("until"))
    return [one.node_id for one in found]


def test_a_span_of_time_holds_in_memory_and_from_the_file(path: Path) -> None:
    kept, small = opened(path, cache=1 << 22), opened(path, cache=1000)
    dates = [f"2025-06-{day:02d}" for day in range(1, 31)]
    made = [node(date, attributes={"decided_at": date}) for date in dates]
    ids = add(kept, 1, *made, vectors={date: unit(1, n) for n, date in enumerate(dates)})
    for store in (kept, small):
        assert spanned(store, since=parse_instant("2025-06-10"), until=parse_instant("2025-06-20")) == ids[9:19]
    assert (small.vectors.cached_bytes, kept.vectors.cached_bytes > 0) == (0, True)
    kept.close()
    small.close()


def test_a_store_follows_a_date_that_another_one_changes(path: Path) -> None:
    store, other = opened(path), opened(path)
    (kept,) = add(store, 1, node("A", attributes={"decided_at": "2025-06-21"}), vectors={"A": unit(1)})
    july = parse_instant("2025-07-01")
    assert (spanned(store, until=july), spanned(store, since=july)) == ([kept], [])
    add(other, 2, node("A", attributes={"decided_at": "2025-08-01"}), hints={"cand_001": ("UPDATE", kept)}, vectors={"A": unit(1)})
    assert (spanned(store, until=july), spanned(store, since=july)) == ([], [kept])
    store.close()
    other.close()


def test_a_vector_of_no_known_time_is_in_no_span(store: SqliteStore) -> None:
    fill(store, 3)
    assert len(spanned(store)) == 3
    assert spanned(store, since=-(1 << 60)) == spanned(store, until=1 << 60) == []


def test_the_boards_searched_longest_ago_make_room(path: Path) -> None:
    store = opened(path, cache=400_000)
    for board_id in ("alpha", "beta", "gamma"):
        fill(store, 1000, board_id=board_id)
    first = search(store)
    alone = store.vectors.cached_bytes
    search(store, "beta")
    assert store.vectors.cached_bytes == 2 * alone
    search(store)
    search(store, "gamma")
    assert store.vectors.cached_bytes <= 400_000
    assert [key[0] for key in store.vectors._kept] == ["alpha", "gamma"]
    assert search(store) == first
    store.close()


def test_a_store_follows_what_another_one_commits(path: Path) -> None:
    one, two = opened(path), opened(path)
    (a,) = add(one, 1, node("A"), vectors={"A": unit(1)})
    assert [h.node_id for h in search(two)[0]] == [a]
    (b,) = add(one, 2, node("B"), hints={"cand_001": ("SUPERSEDE", a)}, vectors={"B": unit(1)})
    assert {(h.node_id, h.live) for h in search(two)[0]} == {(a, False), (b, True)}
    add(two, 3, node("C"), hints={"cand_001": ("UPDATE", b)}, vectors={"C": unit(0, 1)})
    assert search(one) == search(two)
    one.boards.erase("alpha", now=NOW)
    assert search(two) == [[], [], []]
    assert two.vectors.cached_bytes == 0
    one.close()
    two.close()


def test_a_turn_that_is_left_does_not_stay_in_memory(store: SqliteStore) -> None:
    (a,) = add(store, 1, node("A"), vectors={"A": unit(1)})
    before = search(store)
    of = session(2)
    store.sessions.create(of)
    content = Content([node("B")], hints={"cand_001": ("SUPERSEDE", a)}, vectors={"B": unit(1)})
    with store.commits.turn("alpha", wait_seconds=1):
        made = plan(store, of, content, seq=2)
        assert search(store) == before
        store.graph.apply(made)
        store.vectors.apply(made)
        assert {(h.node_id, h.live) for h in search(store)[0]} == {(a, False), (made.nodes[-1].node_id, True)}
    assert search(store) == before
    made = commit(store, of, Content([node("C")], vectors={"C": unit(0, 1)}), create=False)
    assert {h.node_id for h in search(store)[0]} == {a, made.nodes[0].node_id}


def test_a_snapshot_does_not_see_what_memory_learned_later(store: SqliteStore) -> None:
    add(store, 1, node("A"), vectors={"A": unit(1)})

    def later() -> int:
        add(store, 2, node("B"), vectors={"B": unit(1)})
        return len(search(store)[0])

    with ThreadPoolExecutor(1) as pool, store.snapshot():
        before = search(store)
        assert pool.submit(later).result(10) == 2
        assert search(store) == before
    assert len(search(store)[0]) == 2


def test_searches_are_not_disturbed_by_commits(store: SqliteStore) -> None:
    fill(store, 500)
    done = False

    def reader() -> int:
        rounds = 0
        while not done:
            for hits in search(store, limit=50):
                assert len({h.node_id for h in hits}) == 50
                assert hits == sorted(hits, key=lambda h: (-h.score, not h.live, h.node_id))
            rounds += 1
        return rounds

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(reader) for _ in range(3)]
        try:
            for seq in range(2, 40):
                fill(store, 20 * seq, seq=seq, seed=seq if seq % 2 else 1)
        finally:
            done = True
        assert all(r.result(30) > 0 for r in readers)
    fresh = opened(store._database._path or Path())
    assert search(fresh, limit=50) == search(store, limit=50)
    fresh.close()


def test_vectors_that_change_again_and_again_do_not_pile_up(store: SqliteStore) -> None:
    fill(store, 100)
    search(store)
    for seq in range(2, 60):
        fill(store, 100, seq=seq, seed=seq)
        search(store)
    kept = store.vectors._kept["alpha", "Decision"].rows
    assert kept is not None
    assert len(kept.states) <= 400


def test_many_equal_scores_at_the_border_are_decided_by_the_ids(store: SqliteStore) -> None:
    writes = [VectorWrite(f"dec_{n:05d}", "Decision", True, TextVector(_near(n))) for n in range(3000)]
    random.Random(1).shuffle(writes)
    store.vectors.apply(replace(plan(store, session(1), Content(), seq=1), vectors=tuple(writes)))
    (hits,) = store.vectors.nearest("alpha", "Decision", [unit(1)], limit=7, live_only=True)
    assert [h.node_id for h in hits] == [f"dec_{n:05d}" for n in range(7)]
    assert {h.score for h in hits} == {0.8}


def _near(number: int) -> bytes:
    """Scores that all round to 0.8, higher ones with higher ids."""
    return struct.pack("<8f", 0.79996 + number * 2e-8, 0.6, 0, 0, 0, 0, 0, 0)


def test_a_vector_of_another_length_does_no_lasting_harm(store: SqliteStore) -> None:
    add(store, 1, node("A"), vectors={"A": unit(1)})
    before = search(store)
    odd = VectorWrite("dec_odd", "Decision", True, TextVector(b"\0" * 8))
    empty = plan(store, session(2), Content(), seq=2)
    store.vectors.apply(replace(empty, vectors=(odd,)))
    with pytest.raises(ValueError, match="broadcast"):
        search(store)
    store.vectors.apply(replace(empty, seq=3, vectors=(replace(odd, live=False, text_vector=TextVector(unit(-1))),)))
    assert [h for h in search(store)[0] if h.live] == before[0]
