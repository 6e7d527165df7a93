"""What every write to a board asks first."""

from __future__ import annotations

import sqlite3

from pulse_kg.adapters.sqlite.errors import STORE
from pulse_kg.errors import PermissionDenied, StoreUnavailable


def check_board(connection: sqlite3.Connection, board_id: str) -> None:
    """Looks the board up in the transaction that writes to it.

    Raises:
        PermissionDenied: There is no such board, or it was erased.
        StoreUnavailable: It is being erased, as ``details.erasing`` says.
    """
    row = connection.execute("SELECT erasing FROM boards WHERE board_id = ?", (board_id,)).fetchone()
    if row is None:
        raise PermissionDenied.for_board(board_id)
    if row[0]:
        raise StoreUnavailable(
            STORE, f"The board '{board_id}' is being erased and takes no more changes. Use another board.", {"erasing": True}
        )
