"""kill -9 at any moment: of a process that commits, that makes the store, that erases a board.

PULSE_TEST_KILLS is how often (50).
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.bootstrap import Container
from pulse_kg.errors import PermissionDenied
from pulse_kg.usecases.boards import create_board, erase_board
from pulse_kg.usecases.verify import verify_board
from tests.support.bad_input import dump
from tests.support.crash_checks import chain_of, check_board, check_sessions
from tests.support.crash_worker import Caller, Committer, commit_for_ever, erase, make_store, new_agent, store
from tests.support.processes import Child

KILLS = int(os.environ.get("PULSE_TEST_KILLS", "50"))
ERASURES = max(1, KILLS // 2)
Report = Callable[..., None]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60 + 4 * KILLS)]


def _spared(child: Child, chance: random.Random) -> tuple[list[Mapping[str, Any]], str | None]:
    """Kills a process that commits at a random moment; gives the answers that it told, and the session that was in flight."""
    heard: list[tuple[str, Any]] = []
    assert child.hear() == ("ready", None)
    if chance.random() < 0.5:  # anywhere
        time.sleep(chance.uniform(0, 0.2))
    else:  # in the middle of a commit: it takes some milliseconds
        for _ in range(chance.randrange(1, 4)):
            while (told := child.hear())[0] != "committing":
                heard.append(told)
        time.sleep(chance.uniform(0, 0.012))
    child.kill()
    heard += child.hear_all()
    answers = [what for kind, what in heard if kind == "committed"]
    begun = [what for kind, what in heard if kind == "begun"]
    in_flight = begun[-1] if begun and begun[-1] not in {answer["session_id"] for answer in answers} else None
    return answers, in_flight


def _finish(container: Container, key: str, session_id: str) -> Mapping[str, Any] | None:
    """What an agent does whose call was never answered: it calls again. None where there was nothing to commit yet."""
    caller = Caller(container.tool_host(), key)
    answer = caller.call("commit_consolidation", allowed=("invalid_argument", "commit_conflict"), session_id=session_id)
    if answer is None:
        assert caller.call("abort_consolidation", session_id=session_id) == {"session_id": session_id, "aborted": True}
    else:
        assert caller.call("commit_consolidation", session_id=session_id) == answer
    return answer


def test_a_process_that_is_killed_while_it_commits_leaves_what_it_acknowledged_and_nothing_half(tmp_path: Path, report: Report) -> None:
    path, chance = tmp_path / "store.db", random.Random(9)
    with store(path, create=True) as container:
        create_board("alpha", None, boards=container.boards, now=container.clock.now())
        key = new_agent(container, "ada", "alpha")
        answers = [Committer(container, key, "alpha", "first").commit_one()]
    root: str = answers[0]["applied"]["added"][2]["node_id"]
    decided = undecided = idle = 0

    for number in range(KILLS):
        child = Child(commit_for_ever, str(path), key, "alpha", f"round {number}", root)
        try:
            told, in_flight = _spared(child, chance)
        finally:
            child.close()
        answers += told
        with store(path) as container:
            commits = check_board(container, "alpha", answers, unacknowledged=1)
            check_sessions(container)
            if in_flight is None:
                assert commits == len(answers)
                idle += 1
                continue
            was_decided = commits == len(answers) + 1
            rows = list(container.commits.audit_rows("alpha", after=commits - 1))
            assert (rows[-1]["session_id"] == in_flight) == was_decided
            answer = _finish(container, key, in_flight)
            assert answer is not None or not was_decided
            if answer is not None:
                assert (answer["audit_row_id"] == commits) == was_decided
                answers.append(answer)
            decided += was_decided
            undecided += not was_decided

    with store(path) as container:
        commits = check_board(container, "alpha", answers)
        chain = chain_of(container, "alpha", root)
        sessions = check_sessions(container)
        unheard = container.sessions.open_sessions(board_id="alpha", now=container.clock.now())
    assert sessions["committed"] == commits == len(answers)
    assert [session for session in unheard if session.nodes or session.edges] == []  # begun, and killed before it could say so
    report(
        kills=KILLS,
        commits=commits,
        chain=len(chain),
        killed_before_the_decision=undecided,
        killed_between_decision_and_answer=decided,
        killed_between_sessions=idle,
        aborted=sessions["aborted"],
        begun_and_never_told=len(unheard),
    )


def test_a_process_that_is_killed_while_it_makes_the_store_leaves_one_that_can_be_finished(tmp_path: Path, report: Report) -> None:
    chance = random.Random(10)
    missing = partial = complete = 0
    for number in range(KILLS):
        path = tmp_path / f"store-{number}.db"
        child = Child(make_store, str(path), ("alpha", "beta"))
        try:
            assert child.hear() == "ready"
            time.sleep(chance.uniform(0, 0.06))
            child.kill()
            done = bool(child.hear_all())
        finally:
            child.close()
        missing, complete = missing + (not path.exists()), complete + done
        partial += path.exists() and not done

        with store(path, create=True) as container:
            there = [board.board_id for board in container.boards.boards()]
            assert there == ["alpha", "beta"][: len(there)]
            assert len(there) == 2 or not done
            for board in ("alpha", "beta"):
                if board not in there:
                    create_board(board, None, boards=container.boards, now=container.clock.now())
            key = new_agent(container, "bob", "alpha", "beta")
            answer = Committer(container, key, "beta", "first").commit_one()
            check_board(container, "beta", [answer])
            check_sessions(container)
    report(kills=KILLS, nothing_there_yet=missing, half_made=partial, complete=complete)


MARK = "palladium"


@pytest.fixture(scope="module")
def two_boards(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Mapping[str, Any]]]]:
    """A file with two boards of the same size; the titles of beta hold a mark."""
    path = tmp_path_factory.mktemp("two boards") / "store.db"
    answers: dict[str, list[Mapping[str, Any]]] = {}
    with store(path, create=True) as container:
        for board in ("alpha", "beta"):
            create_board(board, None, boards=container.boards, now=container.clock.now())
        key = new_agent(container, "ada", "alpha", "beta")
        for board in ("alpha", "beta"):
            committer = Committer(container, key, board, board)
            answers[board] = [committer.commit_one() for _ in range(20)]
        caller = Caller(container.tool_host(), key)
        begun = caller.call("begin_consolidation", board_id="beta", source_type="spec", source_id=MARK, source_version=1)
        assert begun is not None
        session_id = begun["session_id"]
        for number in range(100):
            title = f"The {MARK} queue has number {number}"
            caller.call("add_node_candidate", session_id=session_id, node_type="Decision", title=title, body=MARK * 100)
        caller.call("commit_consolidation", session_id=session_id)
    return path, answers


def _holds_the_mark(path: Path) -> bool:
    return any(MARK.encode() in file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def test_a_process_that_is_killed_while_it_erases_a_board_is_finished_by_erasing_again(
    tmp_path: Path, report: Report, two_boards: tuple[Path, dict[str, list[Mapping[str, Any]]]]
) -> None:
    (source, answers), chance = two_boards, random.Random(11)
    assert _holds_the_mark(source)
    untouched = marked = deleted = complete = 0
    for number in range(ERASURES):
        path = tmp_path / f"store-{number}.db"
        shutil.copy(source, path)
        child = Child(erase, str(path), "beta")
        try:
            assert child.hear() == "ready"
            time.sleep(chance.uniform(0, 0.06))
            child.kill()
            done = bool(child.hear_all())
        finally:
            child.close()

        with store(path) as container:
            beta = container.boards.board("beta")
            complete += done
            untouched += beta is not None and not beta.erasing
            marked += beta is not None and beta.erasing
            deleted += beta is None and not done
            check_board(container, "alpha", answers["alpha"])
            if beta is not None:
                assert verify_board("beta", container.services).findings == ()
            left = erase_board("beta", boards=container.boards, now=container.clock.now())
            assert set(left.values()) == {0}
            assert container.boards.create("beta", "again", now=container.clock.now()) is False
            with pytest.raises(PermissionDenied), container.commits.turn("beta", wait_seconds=1):
                pass
            assert not any(dump(container, "beta").values())
            check_board(container, "alpha", answers["alpha"])
            check_sessions(container)
        assert not _holds_the_mark(path)
        path.unlink()
    report(kills=ERASURES, before_the_mark=untouched, marked_only=marked, rows_deleted=deleted, complete=complete)
