"""Many at once on the real servers: processes and threads on one board and on several, and a reader beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any

import pytest

from pulse_kg.endpoints import Endpoints
from pulse_kg.usecases.boards import create_board
from tests.support.crash_checks import chain_of, check_board
from tests.support.crash_worker import Committer, new_agent
from tests.support.processes import Child
from tests.support.served import fresh_endpoints
from tests.support.served_worker import commit_so_many, read_until_told, served_process

PROCESSES, THREADS = range(4), range(8)
COMMITS = int(os.environ.get("PULSE_TEST_SERVED_COMMITS", "5"))
LEASE_MS = 15_000
Report = Callable[..., None]
Answers = list[Mapping[str, Any]]

pytestmark = [pytest.mark.slow, pytest.mark.served, pytest.mark.timeout(300)]


class Ground:
    """Empty servers with boards, each with a first node that a chain can grow from, and an agent for each worker."""

    def __init__(self, endpoints: Endpoints, boards: tuple[str, ...]) -> None:
        self.endpoints, self.boards = endpoints, boards
        self.first: dict[str, Mapping[str, Any]] = {}
        with served_process(endpoints) as container:
            for board in boards:
                create_board(board, None, boards=container.boards, now=container.clock.now())
            self.keys = [new_agent(container, f"worker {number}", *boards) for number in THREADS]
            for board in boards:
                self.first[board] = Committer(container, self.keys[0], board, f"first on {board}").commit_one()

    def root(self, board: str) -> str:
        """The node that the board's chain begins with."""
        node_id: str = self.first[board]["applied"]["added"][2]["node_id"]
        return node_id


@pytest.fixture
def endpoints() -> Iterator[Endpoints]:
    with fresh_endpoints() as made:
        yield made


@pytest.mark.parametrize("boards", [1, 4])
def test_four_processes_lose_nothing_and_do_nothing_twice_while_a_reader_sees_commits_wholly(
    endpoints: Endpoints, report: Report, boards: int
) -> None:
    ground = Ground(endpoints, tuple(f"board_{number}" for number in range(boards)))
    answers: dict[str, Answers] = {board: [first] for board, first in ground.first.items()}
    conflicts = 0
    with ExitStack() as stack:
        reader = Child(read_until_told, endpoints, "board_0")
        stack.callback(reader.close)
        workers = []
        for number in PROCESSES:
            board = ground.boards[number % boards]
            child = Child(commit_so_many, endpoints, ground.keys[number], board, f"worker {number}", ground.root(board), COMMITS)
            stack.callback(child.close)
            workers.append((board, child))
        assert [child.hear() for _, child in workers] == ["ready"] * len(PROCESSES)
        assert reader.hear() == "ready"
        for _, child in workers:
            child.tell("go")
        for board, child in workers:
            *told, fought = child.hear_all()
            assert child.finished() == 0
            assert len(told) == COMMITS
            answers[board] += told
            conflicts += fought
        reader.tell("enough")
        looks, states, faults = reader.hear()

    assert faults == []
    assert states > 2, "the reader saw no commit come, and the test shows nothing"
    with served_process(endpoints) as container:
        commits = sum(check_board(container, board, answers[board]) for board in ground.boards)
        chains = [len(chain_of(container, board, ground.root(board))) for board in ground.boards]
    assert commits == len(PROCESSES) * COMMITS + boards
    assert sum(chains) == len(PROCESSES) * (COMMITS // 2) + boards
    assert conflicts == 0 or boards == 1
    report(commits=commits, boards=boards, conflicts=conflicts, looks=looks, states=states)


def test_eight_threads_of_one_process_on_one_board_lose_nothing(endpoints: Endpoints, report: Report) -> None:
    ground = Ground(endpoints, ("alpha",))
    with served_process(endpoints, lease_ms=LEASE_MS) as container:
        barrier = Barrier(len(THREADS))

        def work(number: int) -> tuple[Answers, int]:
            committer = Committer(container, ground.keys[number], "alpha", f"worker {number}", ground.root("alpha"))
            barrier.wait(60)
            return [committer.commit_one() for _ in range(COMMITS - 1)], committer.conflicts

        with ThreadPoolExecutor(len(THREADS)) as pool:
            done = list(pool.map(work, THREADS))
        told = [answer for answers, _ in done for answer in answers]
        commits = check_board(container, "alpha", [ground.first["alpha"], *told])
        chain = chain_of(container, "alpha", ground.root("alpha"))
    assert commits == len(THREADS) * (COMMITS - 1) + 1
    assert len(chain) == len(THREADS) * ((COMMITS - 1) // 2) + 1
    report(commits=commits, conflicts=sum(fought for _, fought in done), chain=len(chain))


def test_one_session_that_eight_callers_commit_at_once_is_one_commit_with_one_answer(endpoints: Endpoints, report: Report) -> None:
    ground = Ground(endpoints, ("alpha",))
    with ExitStack() as stack:
        containers = [stack.enter_context(served_process(endpoints, lease_ms=LEASE_MS)) for _ in range(2)]
        hosts = [container.tool_host() for container in containers]

        def call(tool: str, number: int = 0, **arguments: Any) -> Mapping[str, Any]:
            host = hosts[number % 2]
            outcome = host.call(host.authenticate(ground.keys[0]), tool, arguments, correlation_id="-")
            assert not outcome.is_error, outcome.body
            return outcome.body

        for version in range(3):
            begun = call("begin_consolidation", board_id="alpha", source_type="run", source_id="shared", source_version=version)
            session_id = begun["session_id"]
            call("add_node_candidate", session_id=session_id, node_type="Decision", title=f"Number {version}")
            barrier = Barrier(len(THREADS))

            def commit(number: int, barrier: Barrier = barrier, session_id: str = session_id) -> Mapping[str, Any]:
                barrier.wait(60)
                return call("commit_consolidation", number, session_id=session_id)

            with ThreadPoolExecutor(len(THREADS)) as pool:
                answers = list(pool.map(commit, THREADS))
            assert all(answer == answers[0] for answer in answers)
            assert answers[0]["audit_row_id"] == version + 2
    report(sessions=3, callers=len(THREADS), processes=2)
