"""Stores of earlier versions of the schema, made from a store of today by taking back what later migrations added."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pulse_kg.adapters.sqlite.schema import MIGRATIONS

TAKEN_BACK: Final[Mapping[int, tuple[str, ...]]] = {
    2: (
        "DROP TABLE hits",
        "DROP TABLE ticks",
        "ALTER TABLE boards DROP COLUMN last_commit_at",
        "ALTER TABLE boards DROP COLUMN ticked_at",
    ),
    3: (
        "DROP INDEX contradictions",
        "DROP INDEX nodes_by_artifact",
        "ALTER TABLE vectors DROP COLUMN happened_at",
        "ALTER TABLE nodes DROP COLUMN folded_body",
    ),
}
"""Version → what takes it back to the one before."""


def make_old(path: Path, version: int) -> None:
    """Takes a closed store back to a version."""
    connection = sqlite3.connect(path, isolation_level=None)
    for later in range(len(MIGRATIONS), version, -1):
        for statement in TAKEN_BACK[later]:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
