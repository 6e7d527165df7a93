"""The vector index: every vector is compared, from a copy in memory that follows the file."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from pulse_kg.adapters.jsontext import from_json, id_list, to_json
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.domain.model import Node, TextVector
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.schema import SEARCHABLE_TYPES, NodeType
from pulse_kg.errors import EmbeddingModelMismatch
from pulse_kg.ports.embedder import ModelInfo
from pulse_kg.ports.vectors import Hit, IndexInfo

if TYPE_CHECKING:
    from pulse_kg.adapters.sqlite.matrix import Kept, Rows

VECTOR_CACHE_BYTES: Final = 256 * 1024 * 1024
"""Of all boards together: some 160,000 vectors of 384 numbers."""

_MODEL_KEY: Final = "embedding_model"
_CHUNK: Final = 4096  # rows of one step of a search straight from the file
_OVERHEAD: Final = 128  # bytes of a cached row beside its vector

_PUT: Final = (
    "INSERT INTO vectors (board_id, node_id, node_type, live, truncated, commit_seq, vector, happened_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (board_id, node_id) DO UPDATE SET node_type = excluded.node_type, live = excluded.live, truncated = excluded.truncated, "
    "commit_seq = excluded.commit_seq, vector = excluded.vector, happened_at = excluded.happened_at "
    "WHERE excluded.commit_seq > vectors.commit_seq"
)
_PUT_STATE: Final = (
    "UPDATE vectors SET live = ?1, commit_seq = ?2, happened_at = coalesce(?5, happened_at) "
    "WHERE board_id = ?3 AND node_id = ?4 AND commit_seq < ?2"
)
# When a thing was decided may change where its text does not. The row's number changes with it, for copies in memory follow that.
_PUT_TIME: Final = (
    "UPDATE vectors SET happened_at = ?1, commit_seq = ?2 "
    "WHERE board_id = ?3 AND node_id = ?4 AND commit_seq < ?2 AND happened_at IS NOT ?1"
)
_REMOVE_OTHERS: Final = "DELETE FROM vectors WHERE board_id = ?1 AND node_id NOT IN (SELECT value FROM json_each(?2)) AND commit_seq <= ?3"
_PUT_AGAIN: Final = _PUT.replace("excluded.commit_seq > vectors.commit_seq", "excluded.commit_seq >= vectors.commit_seq")
_LAST_SEQ: Final = "SELECT max(commit_seq) FROM vectors WHERE board_id = ? AND node_type = ?"
_COUNT: Final = "SELECT count(*) FROM vectors INDEXED BY vectors_by_seq WHERE board_id = ? AND node_type = ?"
_ALL: Final = "SELECT node_id, live, happened_at, commit_seq, vector FROM vectors WHERE board_id = ? AND node_type = ?"
_CHANGES: Final = (
    "SELECT node_id, live, happened_at, commit_seq, vector FROM vectors "
    "WHERE board_id = ? AND node_type = ? AND commit_seq > ? ORDER BY commit_seq, node_id"
)


class SqliteVectorIndex:
    """The index.

    Args:
        database: Where the vectors are.
        cache_bytes: Bound of the copies in memory. A board's type that is larger is searched straight from the file.
    """

    def __init__(self, database: Database, *, cache_bytes: int = VECTOR_CACHE_BYTES) -> None:
        self._database = database
        self._cache_bytes = cache_bytes
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def match_mode(self) -> Literal["hnsw", "exact"]:
        """Every vector is compared."""
        return "exact"

    def check_model(self, info: ModelInfo) -> None:
        """See `VectorIndex.check_model`."""
        got = {"model_id": info.model_id, "dimension": info.dimension, "digest": info.digest}
        expected = self._model()
        if expected is None:
            with self._database.writing() as connection:
                connection.execute("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", (_MODEL_KEY, to_json(got)))
            expected = self._model()
        if expected != got:
            raise EmbeddingModelMismatch(
                "The store was filled with another embedding model, and vectors of two models can't be compared. "
                "Use the model that the store was filled with, or make a new store with the new one by 'pulse-kg rebuild'.",
                {"expected": expected, "got": got},
            )

    def _model(self) -> dict[str, Any] | None:
        with self._database.reading() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (_MODEL_KEY,)).fetchone()
        return None if row is None else from_json(row[0])

    def nearest(self, board_id: str, node_type: NodeType, vectors: Sequence[bytes], *, limit: int, live_only: bool) -> list[list[Hit]]:
        """See `VectorIndex.nearest`."""
        if not vectors:
            return []
        # Not at the top: a process that never searches must not pay for it.
        from pulse_kg.adapters.sqlite import matrix

        with self._database.reading() as connection:
            rows = self._cached(connection, board_id, node_type, len(vectors[0]))
            if rows is None:
                return _from_file(connection, board_id, node_type, vectors, limit=limit, live_only=live_only)
        return matrix.nearest(rows, vectors, limit=limit, live_only=live_only)

    def batches(self, connection: sqlite3.Connection, board_id: str, node_type: NodeType, vector_bytes: int) -> Iterator[Rows]:
        """All vectors of a type as this transaction sees them: at once from memory, or some at a time from the file."""
        rows = self._cached(connection, board_id, node_type, vector_bytes)
        if rows is not None:
            yield rows
        else:
            yield from _in_steps(connection, board_id, node_type)

    def similarities(self, board_id: str, vector: bytes, node_ids: Collection[str]) -> dict[str, float]:
        """See `VectorIndex.similarities`."""
        if not node_ids:
            return {}
        from pulse_kg.adapters.sqlite import matrix

        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT node_id, vector FROM vectors WHERE board_id = ?1 AND node_id IN (SELECT value FROM json_each(?2)) ORDER BY node_id",
                (board_id, id_list(node_ids)),
            ).fetchall()
        scores = matrix.cosines([kept for _, kept in found], vector) if found else []
        return {node_id: score for (node_id, _), score in zip(found, scores, strict=True)}

    def all_vectors(self, board_id: str) -> Iterator[tuple[str, TextVector, bool]]:
        """See `VectorIndex.all_vectors`; all of one snapshot."""
        statement = "SELECT node_id, vector, truncated, live FROM vectors WHERE board_id = ? ORDER BY node_id"
        rows = self._database.stream(statement, (board_id,))
        return ((node_id, TextVector(vector, bool(truncated)), bool(live)) for node_id, vector, truncated, live in rows)

    def describe(self, board_id: str) -> list[IndexInfo]:  # noqa: ARG002 - one table serves all boards
        """See `VectorIndex.describe`; none before the model is known."""
        model = self._model()
        return [] if model is None else [IndexInfo(t, model["dimension"], "cosine", model["model_id"]) for t in SEARCHABLE_TYPES]

    def apply(self, plan: CommitPlan) -> None:
        """See `VectorIndex.apply`."""
        board_id, seq = plan.board_id, plan.seq
        times = {node.node_id: node.happened_at for node in plan.nodes if node.node_type in SEARCHABLE_TYPES}
        whole = [
            (board_id, w.node_id, w.node_type, w.live, w.text_vector.truncated, seq, w.text_vector.vector, times.get(w.node_id))
            for w in plan.vectors
            if w.text_vector is not None
        ]
        states = [(w.live, seq, board_id, w.node_id, times.get(w.node_id)) for w in plan.vectors if w.text_vector is None]
        others = times.keys() - {w.node_id for w in plan.vectors}
        with self._database.writing() as connection:
            connection.executemany(_PUT, whole)
            connection.executemany(_PUT_STATE, states)
            connection.executemany(_PUT_TIME, [(times[node_id], seq, board_id, node_id) for node_id in sorted(others)])

    def replace_all(self, board_id: str, vectors: Sequence[tuple[Node, TextVector]], *, seq: int) -> int:
        """See `VectorIndex.replace_all`. Copies in the memory of other processes stay as they are until those start again."""
        rows = [(board_id, n.node_id, n.node_type, n.live, v.truncated, n.commit_seq, v.vector, n.happened_at) for n, v in vectors]
        with self._database.writing() as connection:
            others = connection.execute(_REMOVE_OTHERS, (board_id, id_list(node.node_id for node, _ in vectors), seq))
            connection.executemany(_PUT_AGAIN, rows)
        self.forget(board_id)
        return others.rowcount

    def forget(self, board_id: str) -> None:
        """Drops the board's copies in memory."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == board_id]:
                del self._kept[key]

    @property
    def cached_bytes(self) -> int:
        """What the copies in memory take, about."""
        with self._lock:
            return self._size()

    def _size(self) -> int:
        return sum(kept.rows.size for kept in self._kept.values() if kept.rows is not None)

    def _cached(self, connection: sqlite3.Connection, board_id: str, node_type: NodeType, vector_bytes: int) -> Rows | None:
        """The rows as this transaction sees them; None where they can't be kept in memory."""
        from pulse_kg.adapters.sqlite.matrix import Kept

        if self._database.changed():  # what the transaction wrote may be rolled back, and must not stay here
            return None
        (seq,) = connection.execute(_LAST_SEQ, (board_id, node_type)).fetchone()
        key = (board_id, node_type)
        with self._lock:
            if seq is None:
                self._kept.pop(key, None)
                return None
            kept = self._kept.get(key)
        if kept is None or kept.rows is None or kept.rows.seq < seq:
            if not self._fits(connection, key, vector_bytes):
                return None
            with self._lock:
                kept = self._kept.setdefault(key, Kept())
        with kept.lock:
            before = 0 if kept.rows is None else kept.rows.seq
            if before < seq:
                kept.update(connection.execute(_CHANGES, (*key, before)).fetchall())
            rows = kept.rows
        self._used(key, grown=before < seq)
        # An older snapshot than the copy's must not see what came after it.
        return rows if rows is not None and rows.seq == seq else None

    def _fits(self, connection: sqlite3.Connection, key: tuple[str, str], vector_bytes: int) -> bool:
        (count,) = connection.execute(_COUNT, key).fetchone()
        return bool(count * (vector_bytes + _OVERHEAD) <= self._cache_bytes)

    def _used(self, newest: tuple[str, str], *, grown: bool) -> None:
        with self._lock:
            if newest in self._kept:
                self._kept.move_to_end(newest)
            while grown and len(self._kept) > 1 and self._size() > self._cache_bytes:
                self._kept.popitem(last=False)


def _from_file(
    connection: sqlite3.Connection, board_id: str, node_type: NodeType, vectors: Sequence[bytes], *, limit: int, live_only: bool
) -> list[list[Hit]]:
    """The same search in steps that need little memory."""
    from pulse_kg.adapters.sqlite import matrix

    best: list[list[Hit]] = [[] for _ in vectors]
    for rows in _in_steps(connection, board_id, node_type):
        found = matrix.nearest(rows, vectors, limit=limit, live_only=live_only)
        best = [matrix.ordered([*earlier, *now], limit) for earlier, now in zip(best, found, strict=True)]
    return best


def _in_steps(connection: sqlite3.Connection, board_id: str, node_type: NodeType) -> Iterator[Rows]:
    from pulse_kg.adapters.sqlite import matrix

    rows = connection.execute(_ALL, (board_id, node_type))
    while some := rows.fetchmany(_CHUNK):
        yield matrix.loaded(some)
