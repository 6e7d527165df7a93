"""How often nodes were returned: one item for each, which everybody adds to."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from pulse_kg.adapters.budget import seconds_left, time_budget
from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.client import Dynamo, update
from pulse_kg.adapters.dynamodb.tables import BOARDS, SK
from pulse_kg.domain.instants import Instant
from pulse_kg.errors import StoreUnavailable

COUNT_SECONDS: Final = 0.15
"""How long a read may be held up by its count at most. A function is frozen when it has answered, so that what is left to do then is as
good as lost."""
KEPT_MS: Final = 2 * 365 * 86_400_000
"""How long a node's item stays after its last hit: what is that old has decayed to nothing."""

_AT_ONCE: Final = 8
"""Requests at a time: an item is added to by a request of its own, for a batch can only write whole items."""
_MOST_COUNTS: Final = 16
"""Counts under way in a process; with more the store is too slow to be worth it."""

_ADD: Final = "ADD #hits :one SET #last_at = :now, #ttl = :ttl"


class DynamoHitCounter:
    """The counter.

    What can be lost: hits that the store does not take within `COUNT_SECONDS`. A request whose answer is lost may count twice.

    Args:
        dynamo: The tables.
        seconds: Instead of `COUNT_SECONDS`.
    """

    def __init__(self, dynamo: Dynamo, *, seconds: float = COUNT_SECONDS) -> None:
        self._dynamo, self._seconds = dynamo, seconds
        self._room = threading.BoundedSemaphore(_MOST_COUNTS)
        self._lock = threading.Lock()
        self.lost = 0
        """How many hits this process knows it lost; for measuring."""

    def count(self, board_id: str, node_ids: Sequence[str], *, now: Instant) -> None:
        """See `HitCounter.count`."""
        if not node_ids:
            return
        if not self._room.acquire(blocking=False):
            self._lose(len(node_ids))
            return
        seconds = min(self._seconds, seconds_left())
        end = time.monotonic() + seconds
        # A thread that nobody has to wait for: neither the read beyond its time, nor the process when it ends.
        writer = threading.Thread(target=self._write, args=(board_id, list(node_ids), now, end), daemon=True)
        try:
            writer.start()
        except RuntimeError:  # no more threads
            self._room.release()
            self._lose(len(node_ids))
            return
        writer.join(seconds)

    def counted(self, board_id: str) -> dict[str, tuple[int, Instant]]:
        """See `HitCounter.counted`."""
        items = self._dynamo.query(BOARDS, keys.board(board_id), begins=keys.HIT)
        return {item[SK].removeprefix(keys.HIT): (item["hits"], item["last_at"]) for item in items}

    def _write(self, board_id: str, node_ids: list[str], now: Instant, end: float) -> None:
        try:
            if self._takes_hits(board_id, len(node_ids), end):
                shares = [node_ids[n::_AT_ONCE] for n in range(min(_AT_ONCE, len(node_ids)))]
                others = [threading.Thread(target=self._add, args=(board_id, share, now, end), daemon=True) for share in shares[1:]]
                for other in others:
                    other.start()
                self._add(board_id, shares[0], now, end)
                for other in others:
                    other.join()
        finally:
            self._room.release()

    def _takes_hits(self, board_id: str, hits: int, end: float) -> bool:
        """Whether the board is there to stay: one that is being erased must not be written to again."""
        try:
            with time_budget(end - time.monotonic()):
                head = self._dynamo.get(BOARDS, keys.board(board_id), keys.HEAD)
        except StoreUnavailable:
            self._lose(hits)
            return False
        return head is not None and not head.get("erasing")

    def _add(self, board_id: str, node_ids: list[str], now: Instant, end: float) -> None:
        for place, node_id in enumerate(node_ids):
            hit = update(BOARDS, keys.board(board_id), keys.HIT + node_id, _ADD, one=1, now=now, ttl=(now + KEPT_MS) // 1000)
            left = end - time.monotonic()
            if left <= 0:
                self._lose(len(node_ids) - place)
                return
            try:
                with time_budget(left):
                    self._dynamo.update(hit)
            except StoreUnavailable:
                self._lose(1)

    def _lose(self, hits: int) -> None:
        with self._lock:
            self.lost += hits
