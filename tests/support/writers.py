"""What other processes do to a store file; importable, because a spawned process imports what it runs."""

from __future__ import annotations

from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

from pulse_kg.adapters.sqlite import open_store
from tests.support.plans import NOW, Content, commit, edge, node, session


def commit_many(path: str, board_id: str, worker: int, count: int) -> None:
    """Commits `count` sessions of two nodes and an edge."""
    store = open_store(path, create=False)
    try:
        for number in range(count):
            content = Content([node(f"w{worker} n{number}"), node("thing", "Entity")], [edge("cand_001", "mentions", "cand_002")])
            commit(store, session(1000 * worker + number, board_id), content)
    finally:
        store.close()


def create_at_once(path: str, barrier: Barrier, made: Queue[bool]) -> None:
    """Opens a store that may not be there yet, together with others, and makes one board."""
    barrier.wait(60)
    store = open_store(path, create=True)
    try:
        made.put(store.boards.create("alpha", "Alpha", now=NOW))
    finally:
        store.close()
