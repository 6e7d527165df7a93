"""Agents, their keys and grants, and the shared counter of calls."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.adapters.sqlite.database import WRITE_WAIT_SECONDS, Database
from pulse_kg.domain.instants import Instant
from pulse_kg.errors import StoreUnavailable
from pulse_kg.ports.identity import Agent, KeyRecord

_AGENTS: Final = "SELECT agent_id, name, preset, added_flags, removed_flags, created_at, revoked_at FROM agents"
_KEYS: Final = "SELECT public_id, agent_id, secret_sha256, created_at, revoked_at FROM api_keys"
_PUT_KEY: Final = "INSERT INTO api_keys (public_id, agent_id, secret_sha256, created_at, revoked_at) VALUES (?, ?, ?, ?, ?)"


class SqliteIdentityStore:
    """Agents and keys; a change is visible at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_agent(self, agent: Agent, key: KeyRecord) -> bool:
        """See `IdentityStore.create_agent`."""
        with self._database.writing() as connection:
            made = connection.execute(
                "INSERT INTO agents (agent_id, name, preset, added_flags, removed_flags, created_at, revoked_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (name) DO NOTHING",
                (
                    agent.agent_id,
                    agent.name,
                    agent.preset,
                    to_json(sorted(agent.added_flags)),
                    to_json(sorted(agent.removed_flags)),
                    agent.created_at,
                    agent.revoked_at,
                ),
            )
            if made.rowcount != 1:
                return False
            _put_boards(connection, agent)
            connection.execute(_PUT_KEY, _key_row(key))
        return True

    def by_key(self, public_id: str) -> tuple[Agent, KeyRecord] | None:
        """See `IdentityStore.by_key`."""
        with self._database.reading() as connection:
            row = connection.execute(_KEYS + " WHERE public_id = ?", (public_id,)).fetchone()
            if row is None:
                return None
            key = KeyRecord(*row)
            agent = _agent(connection, " WHERE agent_id = ?", key.agent_id)
        return None if agent is None else (agent, key)

    def by_name(self, name: str) -> Agent | None:
        """See `IdentityStore.by_name`."""
        with self._database.reading() as connection:
            return _agent(connection, " WHERE name = ?", name)

    def agents(self) -> tuple[Agent, ...]:
        """See `IdentityStore.agents`."""
        with self._database.reading() as connection:
            return tuple(_agent_of(connection, row) for row in connection.execute(_AGENTS + " ORDER BY name").fetchall())

    def keys(self, agent_id: str) -> tuple[KeyRecord, ...]:
        """See `IdentityStore.keys`."""
        with self._database.reading() as connection:
            rows = connection.execute(_KEYS + " WHERE agent_id = ? ORDER BY created_at, public_id", (agent_id,))
            return tuple(KeyRecord(*row) for row in rows)

    def save_agent(self, agent: Agent) -> None:
        """See `IdentityStore.save_agent`; does nothing for an agent that was never made."""
        with self._database.writing() as connection:
            saved = connection.execute(
                "UPDATE agents SET added_flags = ?, removed_flags = ?, revoked_at = ? WHERE agent_id = ?",
                (to_json(sorted(agent.added_flags)), to_json(sorted(agent.removed_flags)), agent.revoked_at, agent.agent_id),
            )
            if saved.rowcount == 1:
                connection.execute("DELETE FROM agent_boards WHERE agent_id = ?", (agent.agent_id,))
                _put_boards(connection, agent)

    def add_key(self, key: KeyRecord) -> None:
        """See `IdentityStore.add_key`."""
        with self._database.writing() as connection:
            connection.execute(_PUT_KEY, _key_row(key))

    def revoke_keys(self, agent_id: str, *, now: Instant, but: str | None = None) -> int:
        """See `IdentityStore.revoke_keys`."""
        with self._database.writing() as connection:
            return connection.execute(
                "UPDATE api_keys SET revoked_at = ? WHERE agent_id = ? AND revoked_at IS NULL AND public_id IS NOT ?", (now, agent_id, but)
            ).rowcount


def _key_row(key: KeyRecord) -> tuple[Any, ...]:
    return key.public_id, key.agent_id, key.secret_sha256, key.created_at, key.revoked_at


def _put_boards(connection: sqlite3.Connection, agent: Agent) -> None:
    rows = [(agent.agent_id, board, denied) for denied, boards in ((0, agent.boards), (1, agent.denied)) for board in sorted(set(boards))]
    connection.executemany("INSERT INTO agent_boards (agent_id, board_id, denied) VALUES (?, ?, ?)", rows)


def _agent(connection: sqlite3.Connection, condition: str, value: str) -> Agent | None:
    row = connection.execute(_AGENTS + condition, (value,)).fetchone()
    return None if row is None else _agent_of(connection, row)


def _agent_of(connection: sqlite3.Connection, row: Sequence[Any]) -> Agent:
    agent_id, name, preset, added, removed, created_at, revoked_at = row
    named = connection.execute("SELECT denied, board_id FROM agent_boards WHERE agent_id = ? ORDER BY board_id", (agent_id,)).fetchall()
    return Agent(
        agent_id=agent_id,
        name=name,
        preset=preset,
        added_flags=tuple(from_json(added)),
        removed_flags=tuple(from_json(removed)),
        boards=tuple(board for denied, board in named if not denied),
        denied=tuple(board for denied, board in named if denied),
        created_at=created_at,
        revoked_at=revoked_at,
    )


class SqliteRateLimiter:
    """Windows begin at multiples of their length since the epoch. A clock that runs behind counts in the newest window.

    A call that could not wait to be counted is counted in memory, and written with the next one that is: other processes see it then.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()  # always taken inside a transaction
        self._unwritten: dict[tuple[str, int], tuple[int, int]] = {}

    def take(self, key: str, *, limit: int, window_seconds: int, now: Instant, patience: float | None = None) -> int | None:
        """See `RateLimiter.take`; a refused call is not counted."""
        length = window_seconds * 1000
        try:
            with ExitStack() as until_written:
                with self._database.writing(wait_seconds=WRITE_WAIT_SECONDS if patience is None else patience) as connection:
                    until_written.enter_context(self._lock)
                    number, taken = self._window(connection, key, window_seconds, now)
                    if taken < limit:
                        connection.execute(
                            "INSERT INTO rate_windows (key, window_seconds, number, taken) VALUES (?, ?, ?, ?) "
                            "ON CONFLICT (key, window_seconds) DO UPDATE SET number = excluded.number, taken = excluded.taken",
                            (key, window_seconds, number, taken + 1),
                        )
                if taken < limit:
                    self._unwritten.pop((key, window_seconds), None)
        except StoreUnavailable:
            if patience is None:
                raise
            with self._database.reading() as connection, self._lock:  # which tells a store that is really away
                number, taken = self._window(connection, key, window_seconds, now)
                if taken < limit:
                    before, unwritten = self._unwritten.get((key, window_seconds), (number, 0))
                    self._unwritten[key, window_seconds] = (number, (unwritten if before == number else 0) + 1)
        return max(1, -((now - (number + 1) * length) // 1000)) if taken >= limit else None

    def _window(self, connection: sqlite3.Connection, key: str, window_seconds: int, now: Instant) -> tuple[int, int]:
        """The number of the current window, and what is taken of it, with what is not written yet."""
        row = connection.execute(
            "SELECT number, taken FROM rate_windows WHERE key = ? AND window_seconds = ?", (key, window_seconds)
        ).fetchone()
        number, taken = max((now // (window_seconds * 1000), 0), row or (-1, 0))
        before, unwritten = self._unwritten.get((key, window_seconds), (number, 0))
        return number, taken + (unwritten if before == number else 0)
