"""SQLite's errors as the project's own, and the refusals that only a file can earn."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from pulse_kg.errors import PulseError, StoreUnavailable

STORE: Final = "sqlite"
_PRIMARY_CODE = 0xFF  # an extended result code holds the primary one in its lowest byte


class StoreRefused(StoreUnavailable):
    """The file can't be used as it is, now or later: a person has to do something."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(STORE, message)


class StoreMissing(StoreRefused):
    """There is no store where one was expected."""

    def __init__(self) -> None:
        super().__init__(
            "There is no Pulse KG store at that place yet. Make one with 'pulse-kg boards create BOARD', or name another place."
        )


def busy() -> StoreUnavailable:
    """Others held the store for all of the time that there was."""
    return StoreUnavailable(STORE, "Other calls are writing to the store. Try the same call again in a moment.")


def closed() -> StoreUnavailable:
    """The store was closed under the call."""
    return StoreUnavailable(STORE, "The store is being closed. Try the same call again in a moment.")


def lost_transaction() -> StoreUnavailable:
    """SQLite rolled the transaction back by itself after an earlier error of it."""
    return StoreUnavailable(STORE, "The change was rolled back after a fault of the store. Try the same call again in a moment.")


def damaged() -> StoreRefused:
    """The file's bytes are no sound database."""
    return StoreRefused(
        "The store's file is damaged and is left as it is. Keep a copy, then restore a backup, or make a new store with 'pulse-kg rebuild'."
    )


def not_a_store() -> StoreRefused:
    """The file is something else, and is left alone."""
    return StoreRefused("The file is no Pulse KG store and was left as it is. Name another place for the store.")


def unopenable() -> StoreRefused:
    """No file can be opened or made there."""
    return StoreRefused(
        "The store can't be opened: its folder is missing, or its file may not be read and written. Make the folder, or give this program "
        "the right to."
    )


def translate(error: sqlite3.Error) -> PulseError | None:
    """What a driver's error means for the caller; None for one that only a fault of this program can cause."""
    if isinstance(error, sqlite3.OperationalError) and str(error).startswith(_NO_TEXT):
        return damaged()  # Python's own error, which has no code
    code = getattr(error, "sqlite_errorcode", None)
    meaning = None if code is None else _MEANINGS.get(code & _PRIMARY_CODE)
    return None if meaning is None else meaning()


_NO_TEXT: Final = "Could not decode to UTF-8"


def _full() -> StoreUnavailable:
    return StoreUnavailable(STORE, "The disk of the store is full and nothing was written. Make room, then try the same call again.")


def _readonly() -> StoreRefused:
    return StoreRefused("The store may not be written. Give this program the right to write its file and folder, then try again.")


def _unavailable() -> StoreUnavailable:
    return StoreUnavailable(STORE)


_MEANINGS: Final[Mapping[int, Callable[[], PulseError]]] = {
    sqlite3.SQLITE_BUSY: busy,
    sqlite3.SQLITE_LOCKED: busy,
    sqlite3.SQLITE_FULL: _full,
    sqlite3.SQLITE_READONLY: _readonly,
    sqlite3.SQLITE_PERM: _readonly,
    sqlite3.SQLITE_CORRUPT: damaged,
    sqlite3.SQLITE_NOTADB: not_a_store,
    sqlite3.SQLITE_CANTOPEN: unopenable,
    sqlite3.SQLITE_IOERR: _unavailable,
    sqlite3.SQLITE_NOMEM: _unavailable,
    sqlite3.SQLITE_PROTOCOL: _unavailable,
    sqlite3.SQLITE_INTERRUPT: _unavailable,
    sqlite3.SQLITE_NOLFS: _unavailable,
}
