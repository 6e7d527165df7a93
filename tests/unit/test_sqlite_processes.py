"""Several processes on one store file."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

from pulse_kg.adapters.sqlite import open_store
from tests.support.plans import NOW
from tests.support.writers import commit_many, create_at_once

SPAWN = multiprocessing.get_context("spawn")


def test_processes_that_create_one_store_at_once_make_one(tmp_path: Path) -> None:
    path, barrier, made = str(tmp_path / "store.db"), SPAWN.Barrier(4), SPAWN.Queue()
    workers = [SPAWN.Process(target=create_at_once, args=(path, barrier, made)) for _ in range(4)]
    for worker in workers:
        worker.start()
    answers = [made.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0] * 4
    assert sorted(answers) == [False, False, False, True]


def test_processes_commit_one_after_the_other_and_nothing_is_lost(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    store = open_store(path, create=True)
    store.boards.create("alpha", "Alpha", now=NOW)
    store.boards.create("beta", "Beta", now=NOW)
    boards = ("alpha", "alpha", "alpha", "beta")
    workers = [SPAWN.Process(target=commit_many, args=(path, board, n, 10)) for n, board in enumerate(boards, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(90)
    assert [w.exitcode for w in workers] == [0] * 4
    for board_id, commits in (("alpha", 30), ("beta", 10)):
        assert [r["audit_row_id"] for r in store.commits.audit_rows(board_id)] == list(range(1, commits + 1))
        assert [r.seq for r in store.commits.outbox(board_id)] == list(range(1, commits + 1))
        assert store.graph.counts(board_id) == {"nodes": 2 * commits, "live_nodes": 2 * commits, "edges": commits}
        assert len(list(store.vectors.all_vectors(board_id))) == 2 * commits
    store.close()


def test_a_process_that_never_searches_does_not_import_numpy(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pulse_kg.adapters.sqlite import open_store\n"
        f"store = open_store({str(tmp_path / 'store.db')!r}, create=True)\n"
        "store.boards.create('alpha', 'Alpha', now=1)\n"
        "store.graph.counts('alpha')\n"
        "store.vectors.describe('alpha')\n"
        "store.close()\n"
        "assert 'numpy' not in sys.modules, 'numpy was imported'\n"
    )
    package = Path(__file__).parents[2] / "layers" / "core" / "python"
    done = subprocess.run([sys.executable, "-c", script], cwd=package, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
