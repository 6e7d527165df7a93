"""The commit log: a turn is SQLite's own write transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pulse_kg.adapters.jsontext import from_json, id_list, to_json
from pulse_kg.adapters.sqlite.boards import board_of
from pulse_kg.adapters.sqlite.connection import Owned
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.errors import StoreRefused
from pulse_kg.adapters.sqlite.gate import check_board
from pulse_kg.adapters.sqlite.graph import SqliteGraphStore
from pulse_kg.adapters.sqlite.sessions import check_open, drop_candidates
from pulse_kg.adapters.sqlite.vectors import SqliteVectorIndex
from pulse_kg.domain.audit import AuditRow
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Board, Session
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.refs import Artifact
from pulse_kg.errors import PermissionDenied, SessionNotFound
from pulse_kg.ports.commits import OutboxRecord

_APPLIED: Final = tuple(
    f"SELECT count(*) FROM {table} WHERE board_id = ?1 AND {seq} = ?2 AND {key} IN (SELECT value FROM json_each(?3))"  # noqa: S608 - constants
    for table, key, seq in (("nodes", "node_id", "applied_seq"), ("edges", "edge_id", "commit_seq"), ("vectors", "node_id", "commit_seq"))
)


class SqliteCommitLog:
    """The commit log. All boards share the file's one write lock, held from the beginning of a turn to its end."""

    def __init__(self, database: Database, graph: SqliteGraphStore, vectors: SqliteVectorIndex) -> None:
        self._database, self._graph, self._vectors = database, graph, vectors

    @contextmanager
    def turn(self, board_id: str, *, wait_seconds: float) -> Iterator[SqliteTurn]:
        """See `CommitLog.turn`. Whatever the turn's thread writes through any port before `commit` is a part of the turn.

        Raises:
            PermissionDenied: There is no such board.
        """
        with self._database.holding(wait_seconds=wait_seconds) as held:
            check_board(held.connection, board_id)
            board = board_of(held.connection, board_id)
            if board is None:
                raise PermissionDenied.for_board(board_id)
            yield SqliteTurn(self._database, held, board, self._graph, self._vectors)

    def settle(self, board_id: str, seq: int, *, wait_seconds: float) -> None:
        """See `CommitLog.settle`; deciding and carrying out are one step here."""

    def last_hash(self, board_id: str, artifact: Artifact) -> str | None:
        """See `CommitLog.last_hash`."""
        statement = "SELECT content_hash FROM artifacts WHERE board_id = ? AND artifact = ?"
        with self._database.reading() as connection:
            row = connection.execute(statement, (board_id, artifact.canonical)).fetchone()
        return None if row is None else row[0]

    def ingested_hash(self, board_id: str, artifact: Artifact, version: int) -> str | None:
        """See `CommitLog.ingested_hash`."""
        statement = "SELECT content_hash FROM ingested WHERE board_id = ? AND artifact = ? AND version = ?"
        with self._database.reading() as connection:
            row = connection.execute(statement, (board_id, artifact.canonical, version)).fetchone()
        return None if row is None else row[0]

    def record_ingested(self, board_id: str, artifact: Artifact, version: int, content_hash: str, *, now: Instant) -> None:
        """See `CommitLog.record_ingested`; a later hash of the same version replaces the earlier.

        Raises:
            PermissionDenied: There is no such board.
        """
        with self._database.writing() as connection:
            check_board(connection, board_id)
            connection.execute(
                "INSERT INTO ingested (board_id, artifact, version, content_hash, ingested_at) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (board_id, artifact, version) "
                "DO UPDATE SET content_hash = excluded.content_hash, ingested_at = excluded.ingested_at",
                (board_id, artifact.canonical, version, content_hash, now),
            )

    def audit_rows(self, board_id: str, *, after: int = 0) -> Iterator[AuditRow]:
        """See `CommitLog.audit_rows`; all of one snapshot."""
        rows = self._database.stream("SELECT content FROM audit WHERE board_id = ? AND seq > ? ORDER BY seq", (board_id, after))
        return (from_json(content) for (content,) in rows)

    def audit_row(self, board_id: str, seq: int) -> AuditRow | None:
        """See `CommitLog.audit_row`."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT content FROM audit WHERE board_id = ? AND seq = ?", (board_id, seq)).fetchone()
        return None if row is None else from_json(row[0])

    def outbox(self, board_id: str, *, after: int = 0) -> Iterator[OutboxRecord]:
        """See `CommitLog.outbox`; all of one snapshot."""
        statement = "SELECT board_id, seq, event, state FROM outbox WHERE board_id = ? AND seq > ? ORDER BY seq"
        rows = self._database.stream(statement, (board_id, after))
        return (OutboxRecord(board, seq, from_json(event), state) for board, seq, event, state in rows)

    def unfinished(self, board_id: str, *, now: Instant) -> tuple[str, ...]:  # noqa: ARG002 - a commit is one transaction
        """See `CommitLog.unfinished`: nothing."""
        return ()


class SqliteTurn:
    """A turn: the write transaction of one thread."""

    def __init__(self, database: Database, held: Owned, board: Board, graph: SqliteGraphStore, vectors: SqliteVectorIndex) -> None:
        self._database, self._held, self._board = database, held, board
        self._graph, self._vectors = graph, vectors
        self._thread = threading.get_ident()
        self._over = False

    @property
    def board(self) -> Board:
        """See `Turn.board`."""
        return self._board

    def commit(self, plan: CommitPlan) -> None:
        """See `Turn.commit`. It ends the turn: what the thread does after it is no part of it any more.

        Raises:
            RuntimeError: The turn is over, or another thread's.
            ValueError: The plan is not the board's next commit.
            StoreRefused: The store is damaged so that it would not take all of the plan; nothing was written.
        """
        if self._over or self._held.mode != "write" or threading.get_ident() != self._thread:
            raise RuntimeError("the turn is over, or another thread's")
        if plan.board_id != self._board.board_id or plan.seq != self._board.commit_seq + 1:
            message = f"commit {plan.seq} of the plan does not follow commit {self._board.commit_seq} of the board"
            raise ValueError(message)
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE boards SET commit_seq = ?, last_commit_at = ? WHERE board_id = ?", (plan.seq, plan.committed_at, plan.board_id)
            )
            if plan.session is not None and not plan.restored:
                self._close_session(plan, plan.session)
            self._graph.apply(plan)
            self._vectors.apply(plan)
            self._check_applied(plan)
            connection.execute(
                "INSERT INTO audit (board_id, seq, content) VALUES (?, ?, ?)", (plan.board_id, plan.seq, to_json(plan.audit))
            )
            # There is no queue here to publish to. A relay that reads the outbox may mark a record as published.
            connection.execute(
                "INSERT INTO outbox (board_id, seq, event, state) VALUES (?, ?, ?, 'applied')",
                (plan.board_id, plan.seq, to_json(plan.event)),
            )
            self._remember_artifact(plan)
        self._held.commit()
        self._over = True

    def _check_applied(self, plan: CommitPlan) -> None:
        """Applying passes over what is of a later commit, and in a turn nothing is: what was passed over here is damage."""
        nodes = [n.node_id for n in plan.nodes] + [w.node_id for w in plan.relevances]
        for statement, ids in zip(_APPLIED, (nodes, [e.edge_id for e in plan.edges], [w.node_id for w in plan.vectors]), strict=True):
            (applied,) = self._held.connection.execute(statement, (plan.board_id, plan.seq, id_list(ids))).fetchone()
            if applied != len(ids):
                raise StoreRefused(
                    "The store is damaged: it would not take all of the commit, and nothing of it was written. Run 'pulse-kg verify', and "
                    "restore a backup or make the store anew with 'pulse-kg rebuild'."
                )

    def _close_session(self, plan: CommitPlan, session: Session) -> None:
        connection = self._held.connection
        check_open(connection, session.session_id, plan.committed_at)
        closed = connection.execute(
            "UPDATE sessions SET state = 'committed', committable = 1, reason = NULL, answer = ?, overrides = ? "
            "WHERE session_id = ? AND board_id = ? AND agent_id = ? AND state = 'open'",
            (to_json(plan.answer), plan.overrides, session.session_id, plan.board_id, session.agent_id),
        )
        if closed.rowcount != 1:
            raise SessionNotFound
        drop_candidates(connection, session.session_id)

    def _remember_artifact(self, plan: CommitPlan) -> None:
        # From the audit row and not from the session, so that a rebuild, which has rows and no sessions, remembers it too.
        if plan.audit["kind"] != "consolidation":
            return
        source = plan.audit["source"]
        self._held.connection.execute(
            "INSERT INTO artifacts (board_id, artifact, version, content_hash, commit_seq) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (board_id, artifact) DO UPDATE SET version = excluded.version, content_hash = excluded.content_hash, "
            "commit_seq = excluded.commit_seq",
            (
                plan.board_id,
                Artifact(source["source_type"], source["source_id"]).canonical,
                source["source_version"],
                plan.audit["content_hash"],
                plan.seq,
            ),
        )
