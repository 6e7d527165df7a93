"""What `VectorSearch` promises, of every store."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.domain.instants import parse_instant
from pulse_kg.domain.schema import NodeType
from pulse_kg.ports.reading import Found
from tests.support.plans import HOUR, NOW, Content, add, commit, node, plan, session, unit
from tests.support.stores import STORES, Stores

MIDSUMMER = parse_instant("2025-06-21")


def search(
    store: Stores,
    vector: bytes,
    *,
    boards: Sequence[str] = ("alpha",),
    types: Sequence[NodeType] = ("Decision",),
    limit: int = 10,
    **more: Any,
) -> list[Found]:
    return store.search.search(boards, types, vector, limit=limit, **more)


def ids(found: Sequence[Found]) -> list[str]:
    return [one.node_id for one in found]


def test_the_best_come_first_with_board_type_score_and_liveness(store: Stores) -> None:
    (a,) = add(store, 1, node("A"), vectors={"A": unit(1)})
    (b,) = add(store, 2, node("B", "Learning"), board_id="beta", vectors={"B": unit(1, 1)})
    found = search(store, unit(1), boards=["beta", "alpha", "alpha"], types=["Learning", "Decision"])
    assert found == [Found("alpha", a, "Decision", 1.0, True), Found("beta", b, "Learning", 0.7071, True)]


def test_nothing_is_searched_without_boards_types_or_a_limit(store: Stores) -> None:
    add(store, 1, node("A"), vectors={"A": unit(1)})
    assert search(store, unit(1), boards=[]) == []
    assert search(store, unit(1), types=[]) == []
    assert search(store, unit(1), types=["Bug"]) == []
    assert search(store, unit(1), limit=0) == []
    assert search(store, unit(1), boards=["nowhere"]) == []


def test_boards_and_types_are_filtered_before_the_best_are_chosen(store: Stores) -> None:
    add(store, 1, *(node(f"b{n}") for n in range(40)), board_id="beta", vectors={f"b{n}": unit(1) for n in range(40)})
    add(store, 2, *(node(f"e{n}", "Entity") for n in range(40)), vectors={f"e{n}": unit(1) for n in range(40)})
    mine = add(store, 3, node("x"), node("y", "Requirement"), vectors={"x": unit(1, 3), "y": unit(1, 4)})
    assert ids(search(store, unit(1), types=["Decision", "Requirement", "Constraint"], limit=2)) == mine


def test_superseded_nodes_come_after_live_ones_of_their_score_and_can_be_left_out(store: Stores) -> None:
    (old, other) = add(store, 1, node("old"), node("other"), vectors={"old": unit(1), "other": unit(1)})
    (new,) = add(store, 2, node("new"), hints={"cand_001": ("SUPERSEDE", old)}, vectors={"new": unit(1)})
    (far,) = add(store, 3, node("far"), board_id="beta", vectors={"far": unit(1)})
    everywhere = search(store, unit(1), boards=["alpha", "beta"])
    assert [(f.board_id, f.node_id) for f in everywhere] == [*(("alpha", n) for n in sorted([new, other])), ("beta", far), ("alpha", old)]
    assert ids(search(store, unit(1), boards=["alpha", "beta"], live_only=True, limit=3)) == [*sorted([new, other]), far]


def test_the_order_of_equal_scores_is_total_wherever_the_limit_cuts(store: Stores) -> None:
    made = add(store, 1, *(node(f"n{n}") for n in range(40)), vectors={f"n{n}": unit(1) for n in range(40)})
    made += add(store, 2, *(node(f"m{n}", "Entity") for n in range(40)), vectors={f"m{n}": unit(1) for n in range(40)})
    for limit in (1, 7, 39, 80, 200):
        assert ids(search(store, unit(1), types=["Entity", "Decision"], limit=limit)) == sorted(made)[:limit]


def test_a_least_score_is_compared_with_the_rounded_one(store: Stores) -> None:
    a, b, _ = add(store, 1, node("A"), node("B"), node("C"), vectors={"A": unit(1), "B": unit(1, 1), "C": unit(0, 1)})
    assert ids(search(store, unit(1), min_score=0.7071)) == [a, b]
    assert ids(search(store, unit(1), min_score=0.7072)) == [a]
    assert len(search(store, unit(1), min_score=0.0)) == 3


def test_the_time_of_a_node_is_when_it_was_decided_or_else_made(store: Stores) -> None:
    dated = node("dated", attributes={"decided_at": "2025-06-21"})
    early, made = add(store, 1, dated, node("made"), vectors={"dated": unit(1), "made": unit(1)})
    assert ids(search(store, unit(1), since=MIDSUMMER, until=NOW)) == [early]
    assert ids(search(store, unit(1), since=MIDSUMMER + 1)) == [made]
    assert ids(search(store, unit(1), until=NOW)) == [early]
    assert ids(search(store, unit(1), until=MIDSUMMER)) == []
    assert ids(search(store, unit(1), since=NOW)) == [made]
    assert set(ids(search(store, unit(1), since=MIDSUMMER, until=NOW + 1))) == {early, made}


def test_the_time_is_filtered_before_the_best_are_chosen(store: Stores) -> None:
    near = [node(f"n{n}") for n in range(40)]
    vectors = {**{f"n{n}": unit(1) for n in range(40)}, "old": unit(1, 2), "older": unit(1, 3)}
    old = [node("old", attributes={"decided_at": "2025-06-21"}), node("older", attributes={"decided_at": "2025-06-22"})]
    *_, first, second = add(store, 1, *near, *old, vectors=vectors)
    assert ids(search(store, unit(1), until=NOW, limit=2)) == [first, second]


def test_a_decision_that_is_dated_anew_is_found_at_its_new_time(store: Stores) -> None:
    (kept,) = add(store, 1, node("A", attributes={"decided_at": "2025-06-21"}), vectors={"A": unit(1)})
    add(store, 2, node("A", attributes={"decided_at": "2025-06-25"}), hints={"cand_001": ("UPDATE", kept)}, vectors={"A": unit(1)})
    assert ids(search(store, unit(1), since=parse_instant("2025-06-25"))) == [kept]
    assert ids(search(store, unit(1), until=parse_instant("2025-06-25"))) == []
    (new,) = add(store, 3, node("B"), hints={"cand_001": ("SUPERSEDE", kept)}, vectors={"B": unit(0, 1)})
    assert ids(search(store, unit(1), until=parse_instant("2025-06-26"))) == [kept]
    assert ids(search(store, unit(1), since=NOW)) == [new]


def test_another_types_key_of_that_name_is_no_time(store: Stores) -> None:
    add(store, 1, node("L", "Learning", attributes={"decided_at": "last Tuesday"}), vectors={"L": unit(1)})
    assert len(search(store, unit(1), types=["Learning"], since=NOW)) == 1


def test_a_search_sees_a_commit_at_once(store: Stores) -> None:
    seen: list[str] = []
    for number in range(1, 6):
        seen += add(store, number, node(f"n{number}"), vectors={f"n{number}": unit(1)})
        assert ids(search(store, unit(1), boards=["alpha", "beta"])) == sorted(seen)


def test_inside_a_turn_a_search_sees_the_state_that_the_turn_holds(store: Stores) -> None:
    (a,) = add(store, 1, node("A"), vectors={"A": unit(1)})
    of = session(2)
    store.sessions.create(of)
    with store.commits.turn("alpha", wait_seconds=20) as turn:
        made = plan(store, of, Content([node("B")], vectors={"B": unit(1)}), seq=2)
        assert ids(search(store, unit(1))) == [a]
        turn.commit(made)
    assert len(search(store, unit(1))) == 2


def test_who_may_see_one_board_of_200_gets_as_many_as_it_has(store: Stores) -> None:
    mine = add(store, 1, *(node(f"n{n}") for n in range(12)), vectors={f"n{n}": unit(1, 5, n) for n in range(12)})
    for number in range(200):
        board = f"other_{number:03d}"
        store.boards.create(board, "Other", now=NOW)
        if number % 10 == 0:
            add(store, 1000 + number, node("near"), board_id=board, vectors={"near": unit(1)})
    assert set(ids(search(store, unit(1), limit=10))) < set(mine)
    assert len(search(store, unit(1), limit=10)) == 10
    boards = ["alpha", *(f"other_{number:03d}" for number in range(200))]
    assert len(search(store, unit(1), boards=boards, limit=50)) == 12 + 20
    assert {f.board_id for f in search(store, unit(1), boards=boards, limit=20)} == {f"other_{number:03d}" for number in range(0, 200, 10)}


def test_an_erased_board_is_not_found_any_more(store: Stores) -> None:
    add(store, 1, node("A"), vectors={"A": unit(1)})
    add(store, 2, node("B"), board_id="beta", vectors={"B": unit(1)})
    store.boards.erase("alpha", now=NOW)
    assert {f.board_id for f in search(store, unit(1), boards=["alpha", "beta"])} == {"beta"}


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_what_comparing_everything_finds(store_name: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    types: list[NodeType] = ["Decision", "Entity", "Learning"]
    with STORES[store_name](tmp_path) as store:
        kept: list[tuple[str, str, NodeType, bytes]] = []
        for number, board in enumerate(("alpha", "beta", "gamma"), 1):
            store.boards.create(board, board, now=NOW)
            drafts = [node(f"t{n}", chance.choice(types)) for n in range(25)]
            vectors = {d.title: unit(*(chance.randint(-1, 2) for _ in range(4)), 1) for d in drafts}
            made = add(store, number, *drafts, board_id=board, vectors=vectors)
            kept += [(board, n, d.node_type, vectors[d.title]) for n, d in zip(made, drafts, strict=True)]
        for _ in range(8):
            query = unit(*(chance.randint(-1, 2) for _ in range(4)), 1)
            boards, some = chance.sample(["alpha", "beta", "gamma"], 2), chance.sample(types, 2)
            limit, least = chance.choice([1, 5, 100]), chance.choice([0.0, 0.5])
            scores = {board: store.vectors.similarities(board, query, [n for b, n, *_ in kept if b == board]) for board in boards}
            wanted = [Found(b, n, t, scores[b][n], True) for b, n, t, _ in kept if b in boards and t in some and scores[b][n] >= least]
            wanted.sort(key=lambda f: (-f.score, f.board_id, f.node_id))
            assert search(store, query, boards=boards, types=some, limit=limit, min_score=least) == wanted[:limit]


def test_the_board_says_when_its_last_commit_was(store: Stores) -> None:
    board = store.boards.board("alpha")
    assert board is not None
    assert (board.as_of, board.last_commit_at) == (NOW, None)
    of = session(1)
    commit(store, of, Content([node("A")]), now=NOW + 5)
    board = store.boards.board("alpha")
    assert board is not None
    assert board.last_commit_at == board.as_of == NOW + 5
    (listed,) = [b for b in store.boards.boards() if b.board_id == "alpha"]
    assert listed == board
    store.boards.note_tick("alpha", NOW + HOUR)
    store.boards.note_tick("alpha", NOW + 7)
    board = store.boards.board("alpha")
    assert board is not None
    assert (board.ticked_at, board.as_of) == (NOW + HOUR, NOW + HOUR)
    assert replace(board, ticked_at=None).as_of == NOW + 5
    store.boards.note_tick("nowhere", NOW)
    assert store.boards.board("nowhere") is None
