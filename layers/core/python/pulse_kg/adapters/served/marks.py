"""The applied mark of a board: up to which commit its graph and its index are wholly written.

A reader drops what is of a later commit, so that it sees a commit as a whole or not at all. Within one call all reads of a board use
one mark; inside a turn it is the last commit, for the turn finished what was decided before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar


class Marks:
    """Applied marks as the running call knows them.

    Args:
        read: Asks the store for the applied mark of a board.
        read_many: Asks it for those of many boards, in few requests; None for one by one.
    """

    def __init__(self, read: Callable[[str], int], read_many: Callable[[Collection[str]], Mapping[str, int]] | None = None) -> None:
        self._read, self._read_many = read, read_many
        self._known: ContextVar[dict[str, int] | None] = ContextVar("applied_marks", default=None)

    def applied(self, board_id: str) -> int:
        """The mark of a board; asks the store where the call does not know it yet.

        Raises:
            StoreUnavailable: It can't be asked.
        """
        known = self._known.get()
        if known is None:
            return self._read(board_id)
        if board_id not in known:
            known[board_id] = self._read(board_id)
        return known[board_id]

    def applied_many(self, board_ids: Collection[str]) -> dict[str, int]:
        """The marks of many boards, by board; asks the store for those that the call does not know yet.

        Raises:
            StoreUnavailable: It can't be asked.
        """
        known = self._known.get()
        marks = {} if known is None else {board_id: known[board_id] for board_id in board_ids if board_id in known}
        missing = [board_id for board_id in board_ids if board_id not in marks]
        if missing:
            marks |= {board_id: self._read(board_id) for board_id in missing} if self._read_many is None else self._read_many(missing)
        if known is not None:
            known |= marks
        return marks

    def note(self, board_id: str, seq: int) -> None:
        """What a read of the board showed; the first one of a call counts for all of it."""
        known = self._known.get()
        if known is not None:
            known.setdefault(board_id, seq)

    def raise_to(self, board_id: str, seq: int) -> None:
        """What the running call applied itself."""
        known = self._known.get()
        if known is not None:
            known[board_id] = max(seq, known.get(board_id, 0))

    @contextmanager
    def call(self) -> Iterator[None]:
        """One call: its reads of a board all see the same commits. A call inside another one is a part of it."""
        if self._known.get() is not None:
            yield
            return
        token = self._known.set({})
        try:
            yield
        finally:
            self._known.reset(token)

    @contextmanager
    def holding(self, board_id: str, seq: int) -> Iterator[None]:
        """A turn: until its end the board's mark is the last commit that it found, or made."""
        with self.call():
            self.raise_to(board_id, seq)
            yield
