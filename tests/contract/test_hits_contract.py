"""What `HitCounter`, `RelevanceStore` and `TickLog` promise, of every store."""

from __future__ import annotations

import threading
from pathlib import Path

from pulse_kg.ports.ticks import Rescored, TakenRun, TickPlace
from tests.support.plans import HOUR, NOW, Content, add, commit, edge, node, session
from tests.support.stores import STORES, Stores


def test_hits_add_up_with_the_time_of_the_last(store: Stores) -> None:
    store.hits.count("alpha", ["dec_2", "dec_1"], now=NOW)
    store.hits.count("alpha", ["dec_1"], now=NOW + 5)
    store.hits.count("alpha", [], now=NOW + 9)
    assert store.hits.counted("alpha") == {"dec_1": (2, NOW + 5), "dec_2": (1, NOW)}
    assert list(store.hits.counted("alpha")) == ["dec_1", "dec_2"]


def test_boards_are_counted_apart(store: Stores) -> None:
    store.hits.count("alpha", ["dec_1"], now=NOW)
    store.hits.count("beta", ["dec_1", "dec_canary"], now=NOW)
    assert store.hits.counted("alpha") == {"dec_1": (1, NOW)}
    assert store.hits.counted("nowhere") == {}


def test_many_at_once_are_all_counted(store: Stores) -> None:
    def count() -> None:
        for _ in range(5):
            store.hits.count("alpha", ["dec_1", "dec_2"], now=NOW)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.hits.counted("alpha") == {"dec_1": (20, NOW), "dec_2": (20, NOW)}


def test_counting_changes_no_node_and_no_commit(store: Stores) -> None:
    (a,) = add(store, 1, node("A"))
    before = store.graph.nodes("alpha", [a]), store.boards.board("alpha")
    store.hits.count("alpha", [a], now=NOW + HOUR)
    store.hits.counted("alpha")
    assert (store.graph.nodes("alpha", [a]), store.boards.board("alpha")) == before


def test_a_board_that_is_not_there_or_was_erased_takes_no_hits(store: Stores) -> None:
    store.hits.count("nowhere", ["dec_1"], now=NOW)
    assert store.hits.counted("nowhere") == {}
    store.hits.count("alpha", ["dec_1"], now=NOW)
    store.hits.count("beta", ["dec_1"], now=NOW)
    assert not any(store.boards.erase("alpha", now=NOW).values())
    store.hits.count("alpha", ["dec_1"], now=NOW)
    assert store.hits.counted("alpha") == {}
    assert store.hits.counted("beta") == {"dec_1": (1, NOW)}


# The relevance of all nodes.


def test_standings_come_by_id_in_portions_with_what_is_around_each_node(store: Stores) -> None:
    edges = [edge("cand_001", "contradicts", "cand_002", confidence=0.4), edge("cand_002", "relates_to", "cand_003")]
    made = add(store, 1, *(node(t) for t in "ABCDE"), edges=edges)
    add(store, 2, node("canary"), board_id="beta")
    portions = list(store.relevances.standings("alpha", after="", at_a_time=2))
    assert [[s.node.node_id for s in p] for p in portions] == [sorted(made)[n : n + 2] for n in (0, 2, 4)]
    standings = {s.node.node_id: s for p in portions for s in p}
    assert {n: s.node for n, s in standings.items()} == store.graph.nodes("alpha", made)
    assert {n: s.surroundings for n, s in standings.items()} == store.graph.surroundings("alpha", made)
    middle = sorted(made)[2]
    assert [s.node.node_id for p in store.relevances.standings("alpha", after=middle, at_a_time=9) for s in p] == sorted(made)[3:]
    assert list(store.relevances.standings("nowhere", after="", at_a_time=2)) == []


def _standing(store: Stores, node_id: str) -> int:
    return next(s.seen for p in store.relevances.standings("alpha", after="", at_a_time=50) for s in p if s.node.node_id == node_id)


def test_rescoring_writes_relevance_and_hits_and_nothing_else(store: Stores) -> None:
    a, b = add(store, 1, node("A"), node("B"))
    before, board = store.graph.nodes("alpha", [a, b]), store.boards.board("alpha")
    rows = [Rescored(a, _standing(store, a), 0.25, 3, NOW + 5), Rescored(b, _standing(store, b), 0.5, 0, None)]
    assert store.relevances.rescore("alpha", rows, at=NOW + HOUR) == 2
    after = store.graph.nodes("alpha", [a, b])
    one, two = after[a], after[b]
    assert (one.relevance_score, one.query_hits, one.last_queried_at, one.last_recomputed_at) == (0.25, 3, NOW + 5, NOW + HOUR)
    assert (two.relevance_score, two.query_hits, two.last_queried_at, two.last_recomputed_at) == (0.5, 0, None, NOW + HOUR)
    assert (one.version, one.commit_seq, one.updated_at) == (before[a].version, before[a].commit_seq, before[a].updated_at)
    assert store.boards.board("alpha") == board
    assert store.relevances.rescore("alpha", rows, at=NOW + HOUR) == 2
    assert store.graph.nodes("alpha", [a, b]) == after


def test_a_node_that_a_commit_wrote_since_it_was_read_stays_as_it_is(store: Stores) -> None:
    a, b = add(store, 1, node("A"), node("B"))
    rows = [Rescored(n, _standing(store, n), 0.1, 9, NOW) for n in (a, b)]
    add(store, 2, node("C"), edges=[edge("cand_001", "relates_to", a)])
    committed = store.graph.nodes("alpha", [a])[a]
    assert store.relevances.rescore("alpha", rows, at=NOW + HOUR) == 1
    assert store.graph.nodes("alpha", [a])[a] == committed
    assert store.graph.nodes("alpha", [b])[b].relevance_score == 0.1


def test_an_earlier_tick_does_not_undo_a_later_one(store: Stores) -> None:
    (a,) = add(store, 1, node("A"))
    seen = _standing(store, a)
    assert store.relevances.rescore("alpha", [Rescored(a, seen, 0.2, 2, NOW)], at=NOW + 2 * HOUR) == 1
    assert store.relevances.rescore("alpha", [Rescored(a, seen, 0.1, 1, NOW)], at=NOW + HOUR) == 0
    assert store.graph.nodes("alpha", [a])[a].relevance_score == 0.2


def test_a_rescored_node_is_still_committed_to(store: Stores) -> None:
    (a,) = add(store, 1, node("A"))
    store.relevances.rescore("alpha", [Rescored(a, _standing(store, a), 0.2, 2, NOW)], at=NOW + HOUR)
    commit(store, session(2), Content([node("A", body="more")], hints={"cand_001": ("UPDATE", a)}), now=NOW + 1)
    kept = store.graph.nodes("alpha", [a])[a]
    assert (kept.version, kept.body, kept.query_hits, kept.last_recomputed_at) == (2, "more", 2, NOW + 1)


def test_no_other_boards_node_is_rescored(store: Stores) -> None:
    (a,) = add(store, 1, node("A"))
    (b,) = add(store, 2, node("B"), board_id="beta")
    before = store.graph.nodes("beta", [b])
    assert store.relevances.rescore("alpha", [Rescored(b, 1, 0.9, 9, NOW), Rescored("dec_nobody", 1, 0.9, 9, NOW)], at=NOW + HOUR) == 0
    assert store.graph.nodes("beta", [b]) == before
    assert store.graph.nodes("alpha", [a, "dec_nobody"]).keys() == {a}


# Who runs the tick.


def test_one_runs_at_a_time_and_the_next_goes_on_where_it_broke_off(store: Stores) -> None:
    ticks, place = store.ticks, TickPlace("beta", NOW, "dec_7")
    assert ticks.take("one", now=NOW, until=NOW + 10) == TakenRun(None)
    assert ticks.take("two", now=NOW + 9, until=NOW + 20) is None
    assert ticks.keep("one", place, until=NOW + 30)
    assert ticks.take("two", now=NOW + 29, until=NOW + 40) is None
    assert ticks.take("two", now=NOW + 30, until=NOW + 40) == TakenRun(place)
    assert not ticks.keep("one", None, until=NOW + 50)
    ticks.release("one")
    assert ticks.take("three", now=NOW + 31, until=NOW + 50) is None
    assert ticks.keep("two", None, until=NOW + 40)
    ticks.release("two")
    assert ticks.take("three", now=NOW + 31, until=NOW + 50) == TakenRun(None)


def test_a_lost_answer_does_not_lock_its_own_caller_out(store: Stores) -> None:
    assert store.ticks.take("one", now=NOW, until=NOW + 10) == TakenRun(None)
    assert store.ticks.take("one", now=NOW, until=NOW + 10) == TakenRun(None)


def test_what_a_process_gathered_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    with STORES["sqlite-file"](tmp_path) as store:
        store.boards.create("alpha", "Alpha", now=NOW)
        with store.commits.turn("alpha", wait_seconds=1):
            store.hits.count("alpha", ["dec_1"], now=NOW)  # the file is locked: it neither waits nor fails
    with STORES["sqlite-file"](tmp_path) as store:
        assert store.hits.counted("alpha") == {"dec_1": (1, NOW)}
