"""Consolidation sessions and their candidates."""

# ruff: noqa: S608 - statements are put together from constants of this module

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal

from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.gate import check_board
from pulse_kg.domain import ids
from pulse_kg.domain.audit import (
    edge_candidate_dict,
    edge_candidate_of,
    node_candidate_dict,
    node_candidate_of,
    proposal_dict,
    proposal_of,
)
from pulse_kg.domain.instants import Instant, format_instant
from pulse_kg.domain.model import (
    Candidates,
    EdgeCandidate,
    EdgeDraft,
    NodeCandidate,
    NodeDraft,
    Proposal,
    Session,
    Source,
    TextVector,
)
from pulse_kg.domain.refs import Artifact
from pulse_kg.domain.schema import canonical_json
from pulse_kg.errors import (
    CandidateNotFound,
    IdempotencyConflict,
    PayloadTooLarge,
    SessionAborted,
    SessionAlreadyCommitted,
    SessionExpired,
    SessionNotFound,
)
from pulse_kg.ports.sessions import GRACE_MS, Appended

_Kind = Literal["node", "edge"]

_COLUMNS: Final = (
    "session_id, board_id, agent_id, source_type, source_id, source_version, content_hash, hash_basis, started_at, expires_at, state, "
    "committable, reason, nodes, edges, proposed_nodes, proposed_edges, answer, overrides"
)
_SELECT: Final = "SELECT " + _COLUMNS + " FROM sessions"
_INSERT: Final = "INSERT INTO sessions (" + _COLUMNS + ") VALUES (?" + ", ?" * _COLUMNS.count(",") + ")"
_COUNT_UP: Final[Mapping[_Kind, str]] = {
    "node": "UPDATE sessions SET nodes = ? WHERE session_id = ?",
    "edge": "UPDATE sessions SET edges = ? WHERE session_id = ?",
}
_ID_OF: Final = {"node": ids.candidate_id, "edge": ids.edge_candidate_id}
_DROP_CANDIDATES: Final = "DELETE FROM candidates WHERE session_id = ?"


def drop_candidates(connection: sqlite3.Connection, session_id: str) -> None:
    """Forgets the candidates of a session that is closed."""
    connection.execute(_DROP_CANDIDATES, (session_id,))


def check_open(connection: sqlite3.Connection, session_id: str, now: Instant) -> tuple[int, int]:
    """The numbers of node and edge candidates of an open session, read in the transaction that changes it.

    Raises:
        SessionNotFound, SessionExpired, SessionAlreadyCommitted, SessionAborted: It is not open.
    """
    row = connection.execute("SELECT state, expires_at, nodes, edges FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
    if row is None:
        raise SessionNotFound
    state, expires_at, nodes, edges = row
    if state == "committed":
        raise SessionAlreadyCommitted(
            "The session was committed and takes no more changes. Open a new one with begin_consolidation.", {"session_id": session_id}
        )
    if state == "aborted":
        raise SessionAborted
    if now >= expires_at:
        raise SessionExpired(format_instant(expires_at))
    return nodes, edges


class SqliteSessionStore:
    """The session store. Without a clock, `load` finds a session until `purge` has removed it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, session: Session, *, limit: int | None = None, counted_boards: Collection[str] = ()) -> bool:
        """See `SessionStore.create`.

        Raises:
            PermissionDenied: There is no such board; a session of it would be a trace that no erasure finds.
            StoreUnavailable: The board is being erased.
        """
        with self._database.writing() as connection:
            check_board(connection, session.board_id)
            if limit is not None and _open_on(connection, session.agent_id, counted_boards, session.started_at) >= limit:
                return False
            connection.execute(_INSERT, _row_of(session))
        return True

    def load(self, session_id: str) -> Session:
        """See `SessionStore.load`."""
        with self._database.reading() as connection:
            row = connection.execute(_SELECT + " WHERE session_id = ?", (session_id,)).fetchone()
        if row is None:
            raise SessionNotFound
        return _session_of(row)

    def load_all(self, session_id: str) -> tuple[Session, Candidates]:
        """See `SessionStore.load_all`."""
        with self._database.reading():
            return self.load(session_id), self.candidates(session_id)

    def append_node(
        self,
        session_id: str,
        draft: NodeDraft,
        *,
        unknown_keys: Sequence[str],
        idempotency_key: str | None,
        limit: int,
        now: Instant,
    ) -> Appended:
        """See `SessionStore.append_node`."""
        content = node_candidate_dict(NodeCandidate("", draft, tuple(unknown_keys)))
        return self._append(session_id, "node", content, None, idempotency_key, limit, now)

    def append_edge(
        self,
        session_id: str,
        draft: EdgeDraft,
        *,
        unknown_keys: Sequence[str],
        target_was_live: bool | None,
        idempotency_key: str | None,
        limit: int,
        now: Instant,
    ) -> Appended:
        """See `SessionStore.append_edge`."""
        content = edge_candidate_dict(EdgeCandidate("", draft, tuple(unknown_keys)))
        return self._append(session_id, "edge", content, target_was_live, idempotency_key, limit, now)

    def _append(
        self,
        session_id: str,
        kind: _Kind,
        content: Mapping[str, Any],
        target_was_live: bool | None,
        idempotency_key: str | None,
        limit: int,
        now: Instant,
    ) -> Appended:
        text = to_json(content)
        with self._database.writing() as connection:
            nodes, edges = check_open(connection, session_id, now)
            if idempotency_key is not None:
                earlier = _earlier(connection, session_id, kind, content, idempotency_key)
                if earlier is not None:
                    return Appended(earlier, replayed=True)
            number = (nodes if kind == "node" else edges) + 1
            if number > limit:
                raise PayloadTooLarge(
                    f"The session has {limit} {kind} candidates, and more do not fit in one. Commit it, then go on in a new session.",
                    {"limit": limit, "kind": f"{kind}_candidates"},
                )
            connection.execute(
                "INSERT INTO candidates (session_id, kind, number, content, idempotency_key, target_was_live) VALUES (?, ?, ?, ?, ?, ?)",
                (session_id, kind, number, text, idempotency_key, target_was_live),
            )
            connection.execute(_COUNT_UP[kind], (number, session_id))
        return Appended(_ID_OF[kind](number))

    def candidates(self, session_id: str) -> Candidates:
        """See `SessionStore.candidates`."""
        with self._database.reading() as connection:
            nodes = connection.execute(
                "SELECT number, content, vector, truncated, proposal FROM candidates "
                "WHERE session_id = ? AND kind = 'node' ORDER BY number",
                (session_id,),
            ).fetchall()
            edges = _edge_rows(connection, session_id)
        names = {number: ids.candidate_id(number) for number, *_ in nodes}
        return Candidates(
            nodes=tuple(_node_candidate(number, content) for number, content, *_ in nodes),
            edges=tuple(_edge_candidate(*row) for row in edges),
            vectors={names[number]: TextVector(vector, bool(cut)) for number, _, vector, cut, _ in nodes if vector is not None},
            proposals={names[number]: proposal_of(from_json(proposal)) for number, *_, proposal in nodes if proposal is not None},
        )

    def node_candidate(self, session_id: str, candidate_id: str) -> NodeCandidate:
        """See `SessionStore.node_candidate`."""
        number = _number(candidate_id, "node")
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT content FROM candidates WHERE session_id = ? AND kind = 'node' AND number = ?", (session_id, number)
            ).fetchone()
        if row is None:
            raise CandidateNotFound(
                f"The session has no node candidate '{candidate_id}'. Use an id that add_node_candidate answered.",
                {"candidate_id": candidate_id},
            )
        return _node_candidate(number, row[0])

    def edge_candidates(self, session_id: str) -> tuple[EdgeCandidate, ...]:
        """See `SessionStore.edge_candidates`."""
        with self._database.reading() as connection:
            rows = _edge_rows(connection, session_id)
        return tuple(_edge_candidate(*row) for row in rows)

    def save_vectors(self, session_id: str, vectors: Mapping[str, TextVector], *, now: Instant) -> None:
        """See `SessionStore.save_vectors`; ids that the session has not are passed over."""
        rows = [(v.vector, v.truncated, session_id, _number(candidate, "node")) for candidate, v in vectors.items()]
        with self._database.writing() as connection:
            check_open(connection, session_id, now)
            connection.executemany(
                "UPDATE candidates SET vector = ?, truncated = ? WHERE session_id = ? AND kind = 'node' AND number = ?", rows
            )

    def save_proposals(
        self, session_id: str, proposals: Sequence[Proposal], *, edges_seen: int, targets_live: Mapping[str, bool], now: Instant
    ) -> None:
        """See `SessionStore.save_proposals`."""
        rows = [(to_json(proposal_dict(p)), session_id, _number(p.candidate_id, "node")) for p in proposals]
        live = [(was_live, session_id, _number(candidate, "edge")) for candidate, was_live in targets_live.items()]
        with self._database.writing() as connection:
            check_open(connection, session_id, now)
            connection.execute(
                "UPDATE candidates SET proposal = NULL WHERE session_id = ? AND kind = 'node' AND number > ? AND proposal IS NOT NULL",
                (session_id, len(proposals)),
            )
            connection.executemany("UPDATE candidates SET proposal = ? WHERE session_id = ? AND kind = 'node' AND number = ?", rows)
            connection.executemany("UPDATE candidates SET target_was_live = ? WHERE session_id = ? AND kind = 'edge' AND number = ?", live)
            connection.execute(
                "UPDATE sessions SET proposed_nodes = ?, proposed_edges = ?, committable = 1, reason = NULL WHERE session_id = ?",
                (len(proposals), edges_seen, session_id),
            )

    def mark_uncommittable(self, session_id: str, reason: str, *, now: Instant) -> None:
        """See `SessionStore.mark_uncommittable`."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE sessions SET committable = 0, reason = ? WHERE session_id = ? AND state = 'open' AND expires_at > ?",
                (reason, session_id, now),
            )

    def abort(self, session_id: str, *, now: Instant) -> None:
        """See `SessionStore.abort`."""
        with self._database.writing() as connection:
            try:
                check_open(connection, session_id, now)
            except (SessionAborted, SessionExpired):
                return
            connection.execute("UPDATE sessions SET state = 'aborted' WHERE session_id = ?", (session_id,))
            drop_candidates(connection, session_id)

    def open_sessions(self, *, agent_id: str | None = None, board_id: str | None = None, now: Instant) -> tuple[Session, ...]:
        """See `SessionStore.open_sessions`."""
        conditions = ["state = 'open'", "expires_at > ?"]
        parameters: list[Any] = [now]
        for column, value in (("agent_id = ?", agent_id), ("board_id = ?", board_id)):
            if value is not None:
                conditions.append(column)
                parameters.append(value)
        statement = f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY started_at, session_id"
        with self._database.reading() as connection:
            return tuple(_session_of(row) for row in connection.execute(statement, parameters))

    def purge(self, *, now: Instant, at_most: int = 100) -> int:
        """See `SessionStore.purge`."""
        with self._database.writing() as connection:
            over = connection.execute(
                "SELECT session_id FROM sessions WHERE expires_at <= ? ORDER BY expires_at, session_id LIMIT ?", (now - GRACE_MS, at_most)
            ).fetchall()
            connection.executemany(_DROP_CANDIDATES, over)
            connection.executemany("DELETE FROM sessions WHERE session_id = ?", over)
        return len(over)


def _open_on(connection: sqlite3.Connection, agent_id: str, boards: Collection[str], now: Instant) -> int:
    """How many sessions an agent has open on these boards."""
    rows = connection.execute(
        "SELECT board_id, count(*) FROM sessions WHERE agent_id = ? AND state = 'open' AND expires_at > ? GROUP BY board_id",
        (agent_id, now),
    )
    return sum(count for board_id, count in rows if board_id in boards)


def _row_of(session: Session) -> tuple[Any, ...]:
    return (
        session.session_id,
        session.board_id,
        session.agent_id,
        session.source.artifact.source_type,
        session.source.artifact.source_id,
        session.source.version,
        session.content_hash,
        session.hash_basis,
        session.started_at,
        session.expires_at,
        session.state,
        session.committable,
        session.reason,
        session.nodes,
        session.edges,
        session.proposed_nodes,
        session.proposed_edges,
        None if session.answer is None else to_json(session.answer),
        session.overrides,
    )


def _session_of(row: Sequence[Any]) -> Session:
    session_id, board_id, agent_id, source_type, source_id, source_version, content_hash, basis, started, expires, state, fit, *rest = row
    reason, nodes, edges, proposed_nodes, proposed_edges, answer, overrides = rest
    return Session(
        session_id=session_id,
        board_id=board_id,
        agent_id=agent_id,
        source=Source(Artifact(source_type, source_id), source_version),
        content_hash=content_hash,
        hash_basis=basis,
        started_at=started,
        expires_at=expires,
        state=state,
        committable=bool(fit),
        reason=reason,
        nodes=nodes,
        edges=edges,
        proposed_nodes=proposed_nodes,
        proposed_edges=proposed_edges,
        answer=None if answer is None else from_json(answer),
        overrides=overrides,
    )


def _earlier(connection: sqlite3.Connection, session_id: str, kind: _Kind, content: Mapping[str, Any], key: str) -> str | None:
    """The candidate that the key made before, if its draft was equal."""
    row = connection.execute(
        "SELECT kind, number, content FROM candidates WHERE session_id = ? AND idempotency_key = ?", (session_id, key)
    ).fetchone()
    if row is None:
        return None
    made, number, text = row
    candidate_id = _ID_OF[made](number)
    if made != kind or canonical_json(_draft(from_json(text))) != canonical_json(_draft(content)):
        raise IdempotencyConflict(
            f"This idempotency key made {candidate_id} of this session, with other content. Send new content with a new key.",
            {"candidate_id": candidate_id},
        )
    return candidate_id


def _draft(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != "unknown_keys"}


def _number(candidate_id: str, kind: _Kind) -> int:
    """The number in a candidate's id; 0, which no candidate has, for any other text."""
    digits = candidate_id.rpartition("_")[2]
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0  # noqa: PLR2004 - far above every limit
    return number if _ID_OF[kind](number) == candidate_id else 0


def _edge_rows(connection: sqlite3.Connection, session_id: str) -> list[Any]:
    return connection.execute(
        "SELECT number, content, target_was_live FROM candidates WHERE session_id = ? AND kind = 'edge' ORDER BY number", (session_id,)
    ).fetchall()


def _node_candidate(number: int, content: str) -> NodeCandidate:
    return node_candidate_of({**from_json(content), "candidate_id": ids.candidate_id(number)})


def _edge_candidate(number: int, content: str, target_was_live: int | None) -> EdgeCandidate:
    live = None if target_was_live is None else bool(target_was_live)
    return edge_candidate_of({**from_json(content), "edge_candidate_id": ids.edge_candidate_id(number), "target_was_live": live})
