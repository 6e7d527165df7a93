"""Boards: the tenants and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Board


class BoardStore(Protocol):
    """Keeps the boards.

    Atomicity: each method is one atomic change.
    Consistency: a change is visible to every later read.
    Tenancy: the board id is the key.
    Errors: StoreUnavailable (retryable).
    """

    def create(self, board_id: str, name: str, *, now: Instant) -> bool:
        """Makes a board; False if the id is taken or was erased before (an erased id is never used again)."""
        ...

    def board(self, board_id: str) -> Board | None:
        """One board, or None; an erased one is None."""
        ...

    def boards(self) -> tuple[Board, ...]:
        """All boards, by id."""
        ...

    def set_setting(self, board_id: str, key: str, value: Any) -> None:
        """Sets one setting."""
        ...

    def add_attribute(self, board_id: str, node_type: str, key: str, kind: str) -> None:
        """Adds a key to a node type of the board."""
        ...

    def note_tick(self, board_id: str, at: Instant) -> None:
        """Notes for which time the relevance of the nodes was computed; an earlier one changes nothing, nor does one of no board."""
        ...

    def erase(self, board_id: str, *, now: Instant) -> Mapping[str, int]:
        """Marks the board as erasing, removes every trace of it, leaves a tombstone of the id without content.

        Returns:
            How many traces are left, by kind; all zero when it is done. Running it again goes on, and ends the same.

        Raises:
            PermissionDenied: There is no such board, and never was.
        """
        ...
