"""`pulse-kg tick`, and that what it writes upsets neither `verify` nor `rebuild`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.sqlite import open_store
from tests.support.cli import Shell
from tests.support.world import START, opened


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    with opened(made.store) as world:
        for board in ("web", "api"):
            world.board(board)
            session = world.agent(f"of_{board}", boards=(board,)).begin(board_id=board)
            session.decide("Retry twice", section="retry")
            node_id = session.commit()["applied"]["added"][0]["node_id"]
            world.container.services.hits.count(board, [node_id, node_id], now=START)
    return made


def nodes(shell: Shell, board: str = "web") -> list[Any]:
    store = open_store(shell.store, create=False)
    try:
        return list(store.graph.all_nodes(board))
    finally:
        store.close()


def test_a_tick_folds_the_hits_in_and_tells_what_it_did(shell: Shell) -> None:
    report = shell.done("tick")
    assert report == {"running": False, "boards": 2, "nodes": 2, "hits": 4, "failed": {}, "left": 0}
    (node,) = nodes(shell)
    assert (node.query_hits, node.last_queried_at, node.version) == (2, START, 1)
    assert node.last_recomputed_at > START
    assert shell.done("tick")["hits"] == 0


def test_one_board_alone(shell: Shell) -> None:
    assert shell.done("tick", "--board", "web")["boards"] == 1
    assert [n.query_hits for board in ("web", "api") for n in nodes(shell, board)] == [2, 0]
    ran = shell.run("tick", "--board", "wep", "--json")
    assert (ran.code, ran.error["code"]) == (1, "invalid_argument")
    assert "nearest: 'web'" in ran.error["message"]


def test_a_second_run_at_once_is_refused_and_says_so(shell: Shell) -> None:
    store = open_store(shell.store, create=False)
    assert store.ticks.take("other", now=0, until=1 << 50) is not None
    store.close()
    ran = shell.run("tick")
    assert ran.code == 1
    assert "Another run is under way" in ran.out
    ran = shell.run("tick", "--json")
    assert (ran.code, ran.json["running"], ran.json["boards"]) == (1, True, 0)


def test_what_a_tick_wrote_is_no_fault_and_no_part_of_a_rebuild(shell: Shell) -> None:
    shell.done("tick")
    assert shell.done("verify")["clean"]
    rebuilt = Shell(shell.folder, shell.variables)
    shell.bare("rebuild", "--from", f"sqlite:{shell.store}", "--to", f"sqlite:{shell.folder / 'again.db'}", "--json")
    again = open_store(shell.folder / "again.db", create=False)
    old = open_store(shell.store, create=False)
    try:
        (made,), (ticked,) = again.graph.all_nodes("web"), old.graph.all_nodes("web")
        assert (made.query_hits, ticked.query_hits) == (0, 2)
        board, before = again.boards.board("web"), old.boards.board("web")
        assert board is not None
        assert before is not None
        assert (board.last_commit_at, board.ticked_at) == (before.last_commit_at, None)
    finally:
        again.close()
        old.close()
    assert rebuilt.bare("--store", f"sqlite:{shell.folder / 'again.db'}", "tick", "--json").code == 0


def test_an_erased_board_leaves_no_hits(shell: Shell) -> None:
    left = shell.done("boards", "erase", "web", "--yes")["left"]
    assert left["hits"] == 0
    assert shell.done("tick")["boards"] == 1
