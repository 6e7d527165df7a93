"""The tables of the store, as forward migrations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulse_kg.adapters.sqlite.rows import folded_body
from pulse_kg.domain.instants import parse_instant

APPLICATION_ID: Final = 0x504B4731
"""`PKG1` in the file's header: what tells a store from any other SQLite file."""

Migration = tuple[str, ...]
"""Statements that take a store from one version to the next, in one transaction."""

_VERSION_1: Final[Migration] = (
    """
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE boards (
        board_id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        commit_seq INTEGER NOT NULL DEFAULT 0,
        settings TEXT NOT NULL DEFAULT '{}',
        added_attributes TEXT NOT NULL DEFAULT '{}',
        erasing INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
    # The id alone: it bars reuse, and holds nothing of what was there.
    """
    CREATE TABLE erased_boards (
        erased_id TEXT PRIMARY KEY,
        erased_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY,
        board_id TEXT NOT NULL REFERENCES boards (board_id),
        agent_id TEXT NOT NULL,
        source_type TEXT NOT NULL,
        source_id TEXT NOT NULL,
        source_version INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        hash_basis TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'committed', 'aborted')),
        committable INTEGER NOT NULL DEFAULT 1,
        reason TEXT,
        nodes INTEGER NOT NULL DEFAULT 0,
        edges INTEGER NOT NULL DEFAULT 0,
        proposed_nodes INTEGER NOT NULL DEFAULT 0,
        proposed_edges INTEGER NOT NULL DEFAULT 0,
        answer TEXT,
        overrides TEXT
    ) STRICT
    """,
    "CREATE INDEX sessions_by_agent ON sessions (agent_id, state, expires_at)",
    "CREATE INDEX sessions_by_board ON sessions (board_id, state, expires_at)",
    "CREATE INDEX sessions_by_expiry ON sessions (expires_at)",
    """
    CREATE TABLE candidates (
        session_id TEXT NOT NULL REFERENCES sessions (session_id),
        kind TEXT NOT NULL CHECK (kind IN ('node', 'edge')),
        number INTEGER NOT NULL,
        content TEXT NOT NULL,
        idempotency_key TEXT,
        target_was_live INTEGER,
        vector BLOB,
        truncated INTEGER,
        proposal TEXT,
        PRIMARY KEY (session_id, kind, number)
    ) STRICT
    """,
    "CREATE UNIQUE INDEX candidates_by_key ON candidates (session_id, idempotency_key) WHERE idempotency_key IS NOT NULL",
    """
    CREATE TABLE nodes (
        board_id TEXT NOT NULL REFERENCES boards (board_id),
        node_id TEXT NOT NULL,
        node_type TEXT NOT NULL,
        title TEXT NOT NULL,
        body TEXT NOT NULL,
        attributes TEXT NOT NULL,
        source_ref TEXT NOT NULL,
        artifact TEXT NOT NULL,
        artifact_version INTEGER,
        source_session_id TEXT NOT NULL,
        created_seq INTEGER NOT NULL,
        commit_seq INTEGER NOT NULL,
        version INTEGER NOT NULL,
        content_digest TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        created_by TEXT NOT NULL,
        confidence REAL NOT NULL,
        relevance_score REAL NOT NULL,
        query_hits INTEGER NOT NULL,
        last_queried_at INTEGER,
        last_recomputed_at INTEGER,
        priority_boost REAL NOT NULL,
        superseded_by TEXT,
        superseded_at INTEGER,
        revocation_reason TEXT,
        human_curated INTEGER NOT NULL,
        status TEXT,
        truncated INTEGER NOT NULL,
        folded_title TEXT NOT NULL,
        applied_seq INTEGER NOT NULL,
        PRIMARY KEY (board_id, node_id)
    ) STRICT
    """,
    "CREATE INDEX nodes_by_digest ON nodes (board_id, content_digest)",
    "CREATE INDEX nodes_by_ref ON nodes (board_id, source_ref)",
    # The last two columns let a search by title read the index alone.
    "CREATE INDEX nodes_by_title ON nodes (board_id, node_type, folded_title, node_id, superseded_by)",
    """
    CREATE TABLE edges (
        board_id TEXT NOT NULL,
        edge_id TEXT NOT NULL,
        src TEXT NOT NULL,
        rel_type TEXT NOT NULL,
        dst TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        created_by TEXT NOT NULL,
        commit_seq INTEGER NOT NULL,
        source_session_id TEXT NOT NULL,
        reason TEXT,
        evidence TEXT,
        confidence REAL NOT NULL,
        layer TEXT NOT NULL,
        rule_id TEXT,
        PRIMARY KEY (board_id, edge_id),
        FOREIGN KEY (board_id, src) REFERENCES nodes (board_id, node_id),
        FOREIGN KEY (board_id, dst) REFERENCES nodes (board_id, node_id)
    ) STRICT
    """,
    "CREATE INDEX edges_by_src ON edges (board_id, src, rel_type, dst)",
    "CREATE INDEX edges_by_dst ON edges (board_id, dst, rel_type, src)",
    # No foreign key to nodes: an index stands for itself, as on the served stores, and `verify` compares the two.
    """
    CREATE TABLE vectors (
        board_id TEXT NOT NULL REFERENCES boards (board_id),
        node_id TEXT NOT NULL,
        node_type TEXT NOT NULL,
        live INTEGER NOT NULL,
        truncated INTEGER NOT NULL,
        commit_seq INTEGER NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (board_id, node_id)
    ) STRICT
    """,
    "CREATE INDEX vectors_by_seq ON vectors (board_id, node_type, commit_seq)",
    """
    CREATE TABLE audit (
        board_id TEXT NOT NULL REFERENCES boards (board_id),
        seq INTEGER NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (board_id, seq)
    ) STRICT
    """,
    """
    CREATE TABLE outbox (
        board_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('decided', 'applied', 'published')),
        PRIMARY KEY (board_id, seq),
        FOREIGN KEY (board_id, seq) REFERENCES audit (board_id, seq)
    ) STRICT
    """,
    """
    CREATE TABLE artifacts (
        board_id TEXT NOT NULL REFERENCES boards (board_id),
        artifact TEXT NOT NULL,
        version INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        commit_seq INTEGER NOT NULL,
        PRIMARY KEY (board_id, artifact)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE ingested (
        board_id TEXT NOT NULL REFERENCES boards (board_id),
        artifact TEXT NOT NULL,
        version INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        ingested_at INTEGER NOT NULL,
        PRIMARY KEY (board_id, artifact, version)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE agents (
        agent_id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        preset TEXT NOT NULL,
        added_flags TEXT NOT NULL,
        removed_flags TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        revoked_at INTEGER
    ) STRICT
    """,
    # No foreign key to boards: a denial may come before the board. A board may be granted and denied; the denial wins.
    """
    CREATE TABLE agent_boards (
        agent_id TEXT NOT NULL REFERENCES agents (agent_id),
        board_id TEXT NOT NULL,
        denied INTEGER NOT NULL,
        PRIMARY KEY (agent_id, board_id, denied)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX agent_boards_by_board ON agent_boards (board_id)",
    """
    CREATE TABLE api_keys (
        public_id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL REFERENCES agents (agent_id),
        secret_sha256 TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        revoked_at INTEGER
    ) STRICT
    """,
    "CREATE INDEX api_keys_by_agent ON api_keys (agent_id)",
    """
    CREATE TABLE rate_windows (
        key TEXT NOT NULL,
        window_seconds INTEGER NOT NULL,
        number INTEGER NOT NULL,
        taken INTEGER NOT NULL,
        PRIMARY KEY (key, window_seconds)
    ) STRICT, WITHOUT ROWID
    """,
)

_VERSION_2: Final[Migration] = (
    "ALTER TABLE boards ADD COLUMN last_commit_at INTEGER",
    "ALTER TABLE boards ADD COLUMN ticked_at INTEGER",
    # An audit row says its time as `2026-05-07T16:30:00.000Z`.
    """
    UPDATE boards SET last_commit_at = (
        SELECT 1000 * CAST(strftime('%s', substr(committed_at, 1, 19)) AS INTEGER) + CAST(substr(committed_at, 21, 3) AS INTEGER)
        FROM (
            SELECT json_extract(content, '$.committed_at') AS committed_at FROM audit
            WHERE audit.board_id = boards.board_id AND audit.seq = boards.commit_seq
        )
    )
    """,
    # No foreign keys: a hit may be of a node that a rebuild has not made again yet, and is then counted all the same.
    """
    CREATE TABLE hits (
        board_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        hits INTEGER NOT NULL,
        last_at INTEGER NOT NULL,
        PRIMARY KEY (board_id, node_id)
    ) STRICT, WITHOUT ROWID
    """,
    # One row at most: the run of the tick that is under way, or that broke off.
    """
    CREATE TABLE ticks (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        holder TEXT,
        held_until INTEGER NOT NULL,
        place TEXT
    ) STRICT
    """,
)

# Texts as bytes: a row that is damaged must not keep the rest of the store closed.
_VERSION_3: Final[Migration] = (
    # What is searched for words beside the title.
    "ALTER TABLE nodes ADD COLUMN folded_body TEXT NOT NULL DEFAULT ''",
    "UPDATE nodes SET folded_body = pulse_folded_body(node_type, CAST(body AS BLOB), CAST(attributes AS BLOB))",
    # The time of the node, beside its vector: NULL where it is not known, and then no span of time has it.
    "ALTER TABLE vectors ADD COLUMN happened_at INTEGER",
    """
    UPDATE vectors SET happened_at = (
        SELECT pulse_happened_at(n.node_type, CAST(n.attributes AS BLOB), n.created_at) FROM nodes n
        WHERE n.board_id = vectors.board_id AND n.node_id = vectors.node_id
    )
    """,
    "CREATE INDEX nodes_by_artifact ON nodes (board_id, artifact)",
    "CREATE INDEX contradictions ON edges (board_id, created_at DESC, edge_id) WHERE rel_type = 'contradicts'",
)


def _attributes(given: bytes) -> dict[str, Any]:
    found = json.loads(given)
    if not isinstance(found, dict):
        raise TypeError("attributes that are no object")
    return found


def _folded_body(node_type: str, body: bytes, attributes: bytes) -> str:
    try:
        return folded_body(node_type, body.decode(), _attributes(attributes))
    except (ValueError, TypeError):
        return ""


def _happened_at(node_type: str, attributes: bytes, created_at: int) -> int | None:
    try:
        stated = _attributes(attributes).get("decided_at") if node_type == "Decision" else None
        return parse_instant(stated) if isinstance(stated, str) else created_at
    except (ValueError, TypeError):
        return None


FUNCTIONS: Final[Mapping[str, Callable[[str, bytes, Any], str | int | None]]] = {
    "pulse_folded_body": _folded_body,
    "pulse_happened_at": _happened_at,
}
"""What statements of migrations call with three arguments; of a row that is damaged they make nothing."""

MIGRATIONS: Final[tuple[Migration, ...]] = (_VERSION_1, _VERSION_2, _VERSION_3)
"""The one at index n leads from version n to n + 1. One that was released is never changed."""
