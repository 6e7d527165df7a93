"""Eight at once on one file: as processes on one board, as processes on eight boards, and as threads of one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from pulse_kg.usecases.boards import create_board
from pulse_kg.usecases.verify import verify_board
from tests.support.crash_checks import chain_of, check_board, check_sessions
from tests.support.crash_worker import Committer, commit_so_many, new_agent, store
from tests.support.processes import Child

EIGHT = range(8)
COMMITS = 20
Report = Callable[..., None]
Answers = list[Mapping[str, Any]]

pytestmark = pytest.mark.slow


class Ground:
    """A file with boards, each with a first node that a chain can grow from, and eight agents."""

    def __init__(self, path: Path, boards: tuple[str, ...]) -> None:
        self.path, self.boards = path, boards
        self.first: dict[str, Mapping[str, Any]] = {}
        with store(path, create=True) as container:
            for board in boards:
                create_board(board, None, boards=container.boards, now=container.clock.now())
            self.keys = [new_agent(container, f"worker {number}", *boards) for number in EIGHT]
            for board in boards:
                self.first[board] = Committer(container, self.keys[0], board, f"first on {board}").commit_one()

    def root(self, board: str) -> str:
        """The node that the board's chain begins with."""
        node_id: str = self.first[board]["applied"]["added"][2]["node_id"]
        return node_id


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def run_eight(ground: Ground, board_of: Callable[[int], str]) -> tuple[dict[str, Answers], int, float]:
    """Lets eight processes commit at once; gives the answers by board, the conflicts, and the seconds."""
    answers: dict[str, Answers] = {board: [ground.first[board]] for board in ground.boards}
    with ExitStack() as stack:
        children = []
        for number, key in zip(EIGHT, ground.keys, strict=True):
            board = board_of(number)
            child = Child(commit_so_many, str(ground.path), key, board, f"worker {number}", ground.root(board), COMMITS)
            stack.callback(child.close)
            children.append(child)
        assert [child.hear() for child in children] == ["ready"] * 8
        began = time.monotonic()
        for child in children:
            child.tell("go")
        conflicts = 0
        for number, child in enumerate(children):
            *told, fought = child.hear_all()
            assert child.finished() == 0
            assert len(told) == COMMITS
            answers[board_of(number)] += told
            conflicts += fought
        return answers, conflicts, time.monotonic() - began


def test_eight_processes_on_one_board_lose_nothing_and_do_nothing_twice(path: Path, report: Report) -> None:
    ground = Ground(path, ("alpha",))

    answers, conflicts, seconds = run_eight(ground, lambda _: "alpha")

    with store(path) as container:
        commits = check_board(container, "alpha", answers["alpha"])
        chain = chain_of(container, "alpha", ground.root("alpha"))
        sessions = check_sessions(container)
        counts = container.graph.counts("alpha")
    assert commits == 8 * COMMITS + 1
    assert len(chain) == 8 * COMMITS // 2 + 1
    assert dict(sessions) == {"committed": commits}
    assert conflicts > 0, "nobody was in anybody's way, and the test shows nothing"
    report(commits=commits, conflicts=conflicts, chain=len(chain), **counts, seconds=round(seconds, 1))


def test_eight_processes_on_eight_boards_do_not_conflict(path: Path, report: Report) -> None:
    boards = tuple(f"board_{number}" for number in EIGHT)
    ground = Ground(path, boards)

    answers, conflicts, seconds = run_eight(ground, lambda number: boards[number])

    with store(path) as container:
        commits = [check_board(container, board, answers[board]) for board in boards]
        for board in boards:
            assert len(chain_of(container, board, ground.root(board))) == COMMITS // 2 + 1
        check_sessions(container)
    assert commits == [COMMITS + 1] * 8
    assert conflicts == 0
    report(commits=sum(commits), boards=len(boards), conflicts=conflicts, seconds=round(seconds, 1))


def test_eight_threads_of_one_process_on_one_board_lose_nothing(path: Path, report: Report) -> None:
    ground = Ground(path, ("alpha",))
    with store(path) as container:
        barrier = Barrier(8)

        def work(number: int) -> tuple[Answers, int]:
            committer = Committer(container, ground.keys[number], "alpha", f"worker {number}", ground.root("alpha"))
            barrier.wait(60)
            return [committer.commit_one() for _ in range(COMMITS)], committer.conflicts

        began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(work, EIGHT))
        seconds = time.monotonic() - began

        told = [answer for answers, _ in done for answer in answers]
        commits = check_board(container, "alpha", [ground.first["alpha"], *told])
        chain = chain_of(container, "alpha", ground.root("alpha"))
        check_sessions(container)
    conflicts = sum(fought for _, fought in done)
    assert commits == 8 * COMMITS + 1
    assert len(chain) == 8 * COMMITS // 2 + 1
    assert conflicts > 0
    report(commits=commits, conflicts=conflicts, chain=len(chain), seconds=round(seconds, 1))


def test_one_session_that_eight_threads_commit_at_once_is_one_commit_with_one_answer(path: Path, report: Report) -> None:
    ground = Ground(path, ("alpha",))
    with store(path) as container:
        host = container.tool_host()
        caller = host.authenticate(ground.keys[0])

        def call(tool: str, **arguments: Any) -> Mapping[str, Any]:
            outcome = host.call(caller, tool, arguments, correlation_id="-")
            assert not outcome.is_error, outcome.body
            return outcome.body

        for version in range(10):
            begun = call("begin_consolidation", board_id="alpha", source_type="run", source_id="shared", source_version=version)
            session_id = begun["session_id"]
            call("add_node_candidate", session_id=session_id, node_type="Decision", title=f"Number {version}")
            barrier = Barrier(8)

            def commit(_: int, barrier: Barrier = barrier, session_id: str = session_id) -> Mapping[str, Any]:
                barrier.wait(60)
                return call("commit_consolidation", session_id=session_id)

            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(commit, EIGHT))
            assert all(answer == answers[0] for answer in answers)
            assert answers[0]["audit_row_id"] == version + 2
        verification = verify_board("alpha", container.services)
    assert verification.findings == ()
    report(sessions=10, callers=8, commits=verification.commits)
