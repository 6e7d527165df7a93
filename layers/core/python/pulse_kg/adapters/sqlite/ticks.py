"""The decay tick's reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.graph import SqliteGraphStore
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.plan import Surroundings
from pulse_kg.ports.ticks import Rescored, Standing, TakenRun, TickPlace

_PORTION: Final = "SELECT node_id, applied_seq FROM nodes WHERE board_id = ? AND node_id > ? ORDER BY node_id LIMIT ?"
_RESCORE: Final = (
    "UPDATE nodes SET relevance_score = ?1, query_hits = ?2, last_queried_at = ?3, last_recomputed_at = ?4 "
    "WHERE board_id = ?5 AND node_id = ?6 AND applied_seq = ?7 AND coalesce(last_recomputed_at, ?4) <= ?4"
)
_TAKE: Final = (
    "INSERT INTO ticks (only, holder, held_until) VALUES (1, ?1, ?2) "
    "ON CONFLICT (only) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until WHERE held_until <= ?3 OR holder = ?1"
)
_KEEP: Final = "UPDATE ticks SET place = ?, held_until = ? WHERE holder = ?"
_RELEASE: Final = "UPDATE ticks SET holder = NULL, held_until = 0 WHERE holder = ?"


class SqliteRelevanceStore:
    """The relevance of all nodes."""

    def __init__(self, database: Database, graph: SqliteGraphStore) -> None:
        self._database, self._graph = database, graph

    def standings(self, board_id: str, *, after: str, at_a_time: int) -> Iterator[Sequence[Standing]]:
        """See `RelevanceStore.standings`; each portion is of one snapshot."""
        while True:
            with self._database.reading() as connection:
                seen = dict(connection.execute(_PORTION, (board_id, after, at_a_time)).fetchall())
                nodes = self._graph.nodes(board_id, seen)
                around = self._graph.surroundings(board_id, seen)
            if not seen:
                return
            yield [Standing(node, around.get(node_id, Surroundings()), seen[node_id]) for node_id, node in nodes.items()]
            after = max(seen)

    def rescore(self, board_id: str, rescored: Sequence[Rescored], *, at: Instant) -> int:
        """See `RelevanceStore.rescore`; all in one change."""
        rows = [(r.relevance_score, r.query_hits, r.last_queried_at, at, board_id, r.node_id, r.seen) for r in rescored]
        with self._database.writing() as connection:
            return connection.executemany(_RESCORE, rows).rowcount


class SqliteTickLog:
    """Who runs the tick."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, holder: str, *, now: Instant, until: Instant) -> TakenRun | None:
        """See `TickLog.take`."""
        with self._database.writing() as connection:
            if connection.execute(_TAKE, (holder, until, now)).rowcount != 1:
                return None
            (place,) = connection.execute("SELECT place FROM ticks").fetchone()
            return TakenRun(None if place is None else TickPlace(**from_json(place)))

    def keep(self, holder: str, place: TickPlace | None, *, until: Instant) -> bool:
        """See `TickLog.keep`."""
        with self._database.writing() as connection:
            shown = None if place is None else to_json(asdict(place))
            return connection.execute(_KEEP, (shown, until, holder)).rowcount == 1

    def release(self, holder: str) -> None:
        """See `TickLog.release`."""
        with self._database.writing() as connection:
            connection.execute(_RELEASE, (holder,))
