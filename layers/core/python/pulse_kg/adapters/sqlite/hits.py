"""How often nodes were returned, gathered in memory and written when nobody else is writing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from pulse_kg.adapters.sqlite.database import WRITE_WAIT_SECONDS, Database
from pulse_kg.domain.instants import Instant
from pulse_kg.errors import PulseError

CLOSING_SECONDS: Final = 0.25
"""How long a process that ends waits for others, to write what it still has."""
MOST_GATHERED: Final = 100_000
"""Nodes whose hits wait in memory at most; what comes beyond is lost."""

# A board that is gone, or going, takes none: a hit may come late.
_ADD: Final = (
    "INSERT INTO hits (board_id, node_id, hits, last_at) SELECT ?1, ?2, ?3, ?4 "
    "WHERE EXISTS (SELECT 1 FROM boards WHERE board_id = ?1 AND NOT erasing) "
    "ON CONFLICT (board_id, node_id) DO UPDATE SET hits = hits + excluded.hits, last_at = max(last_at, excluded.last_at)"
)
_ALL: Final = "SELECT node_id, hits, last_at FROM hits WHERE board_id = ? ORDER BY node_id"


class SqliteHitCounter:
    """The counter.

    What can be lost: the hits that a process gathered while others held the file, if it is killed before it counts again or closes the
    store; and the last hits before the machine loses its power, for a hit is not worth waiting for the disk.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._gathered: dict[tuple[str, str], tuple[int, Instant]] = {}

    def count(self, board_id: str, node_ids: Sequence[str], *, now: Instant) -> None:
        """See `HitCounter.count`."""
        with self._lock:
            for node_id in node_ids:
                self._gather((board_id, node_id), 1, now)
        with suppress(PulseError):  # a full disk, a file that may not be written: the read goes on without its count
            self._write(0)

    def counted(self, board_id: str) -> dict[str, tuple[int, Instant]]:
        """See `HitCounter.counted`; what other processes still gather is missing."""
        self._write(WRITE_WAIT_SECONDS)
        with self._database.reading() as connection:
            return {node_id: (hits, last_at) for node_id, hits, last_at in connection.execute(_ALL, (board_id,))}

    def forget_board(self, board_id: str) -> None:
        """Drops what was gathered of a board."""
        with self._lock:
            self._gathered = {key: kept for key, kept in self._gathered.items() if key[0] != board_id}

    def close(self) -> None:
        """Writes what was gathered, if the file is free soon."""
        with suppress(PulseError):
            self._write(CLOSING_SECONDS)

    def _gather(self, key: tuple[str, str], hits: int, last_at: Instant) -> None:
        before, earlier = self._gathered.get(key, (0, last_at))
        if before or len(self._gathered) < MOST_GATHERED:
            self._gathered[key] = (before + hits, max(earlier, last_at))

    def _write(self, wait_seconds: float) -> None:
        with self._lock:
            taken, self._gathered = self._gathered, {}
        if not taken:
            return
        written = False
        try:
            written = self._database.write_beside(_ADD, [(*key, *kept) for key, kept in taken.items()], wait_seconds=wait_seconds)
        finally:
            if not written:
                with self._lock:
                    for key, kept in taken.items():
                        self._gather(key, *kept)
