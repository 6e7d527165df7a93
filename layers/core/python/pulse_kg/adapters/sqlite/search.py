"""Search by meaning over several boards and types: every vector is compared."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Final

from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.vectors import SqliteVectorIndex
from pulse_kg.domain.instants import Instant, parse_instant
from pulse_kg.domain.schema import SEARCHABLE_TYPES, NodeType
from pulse_kg.ports.reading import Found

_TIMES: Final = (
    "SELECT node_id, created_at, CASE node_type WHEN 'Decision' THEN json_extract(attributes, '$.decided_at') END "
    "FROM nodes WHERE board_id = ? AND node_type = ?"
)
_EVER: Final = 1 << 62


class SqliteVectorSearch:
    """The search. One board and type after another, so that it needs no more memory than the largest of them.

    Measured with 10,000 vectors of one board in memory: 1.4 ms; with `since` or `until` the times of all its nodes are read, 28 ms.

    Args:
        database: Where nodes and vectors are.
        vectors: Keeps the vectors in memory.
    """

    def __init__(self, database: Database, vectors: SqliteVectorIndex) -> None:
        self._database, self._vectors = database, vectors

    def search(
        self,
        board_ids: Collection[str],
        node_types: Collection[NodeType],
        vector: bytes,
        *,
        limit: int,
        min_score: float = 0.0,
        live_only: bool = False,
        since: Instant | None = None,
        until: Instant | None = None,
    ) -> list[Found]:
        """See `VectorSearch.search`; all of one snapshot."""
        boards, types = sorted(set(board_ids)), [t for t in SEARCHABLE_TYPES if t in node_types]
        if not boards or not types or limit < 1:
            return []
        # Not at the top: a process that never searches must not pay for it.
        from pulse_kg.adapters.sqlite import matrix

        best: list[Found] = []
        with self._database.reading() as connection:
            for board_id in boards:
                for node_type in types:
                    allowed = None if since is None and until is None else _within(connection, board_id, node_type, since, until)
                    for rows in self._vectors.batches(connection, board_id, node_type, len(vector)):
                        # What is below the last of those that are found already can't be among the best any more.
                        at_least = max(min_score, best[-1].score) if len(best) == limit else min_score
                        hits = matrix.best_of(rows, vector, limit=limit, at_least=at_least, live_only=live_only, allowed=allowed)
                        if hits:
                            best += [Found(board_id, h.node_id, node_type, h.score, h.live) for h in hits]
                            best = sorted(best, key=_place)[:limit]
        return best


def _place(found: Found) -> tuple[float, bool, str, str]:
    return -found.score, not found.live, found.board_id, found.node_id


def _within(
    connection: sqlite3.Connection, board_id: str, node_type: NodeType, since: Instant | None, until: Instant | None
) -> frozenset[str]:
    """The nodes of a type whose time is in the span."""
    first, end = -_EVER if since is None else since, _EVER if until is None else until
    rows = connection.execute(_TIMES, (board_id, node_type))
    return frozenset(n for n, made, stated in rows if first <= (made if stated is None else parse_instant(stated)) < end)
