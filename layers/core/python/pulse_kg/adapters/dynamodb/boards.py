"""Boards, and how one is erased."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pulse_kg.adapters.budget import seconds_left
from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.client import Dynamo, Item, Refused, Value, check, delete, put, update
from pulse_kg.adapters.dynamodb.gate import board_refusal
from pulse_kg.adapters.dynamodb.identity import forget_board
from pulse_kg.adapters.dynamodb.journal import seen_board_of
from pulse_kg.adapters.dynamodb.session_lists import erase_sessions
from pulse_kg.adapters.dynamodb.tables import BOARDS, SK
from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Board
from pulse_kg.errors import PermissionDenied, StoreUnavailable

Eraser = Callable[[str], Mapping[str, int]]
"""Removes a board's traces from one store, may be repeated, and returns how many are left by kind."""

_LOOK_SECONDS: Final = 0.2


class DynamoBoardStore:
    """The boards.

    Args:
        dynamo: Where they are.
        erasers: Remove what other stores have of a board.
        on_read: Told of each read of one board with its applied mark.
        now: The time, for leases.
        sleep: Waits for a lease to end.
    """

    def __init__(
        self,
        dynamo: Dynamo,
        *,
        erasers: Sequence[Eraser] = (),
        on_read: Callable[[Board, int], None] | None = None,
        now: Callable[[], Instant] = lambda: time.time_ns() // 1_000_000,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._dynamo, self._erasers, self._on_read, self._now, self._sleep = dynamo, tuple(erasers), on_read, now, sleep

    def create(self, board_id: str, name: str, *, now: Instant) -> bool:
        """See `BoardStore.create`."""
        item: dict[str, Value] = {
            "board_id": board_id,
            "name": name,
            "created_at": now,
            "commit_seq": 0,
            "applied_seq": 0,
            "settings": "{}",
            "added_attributes": "{}",
            "erasing": False,
        }
        free = "attribute_not_exists(pk)"
        writes = [
            put(BOARDS, keys.board(board_id), keys.HEAD, item, condition=free),
            put(BOARDS, keys.BOARD_LIST, board_id, {}),
            check(BOARDS, keys.erased(board_id), keys.HEAD, free),
        ]
        try:
            self._dynamo.transact(writes)
        except Refused:
            return False
        return True

    def board(self, board_id: str) -> Board | None:
        """See `BoardStore.board`."""
        item = self._item(board_id)
        if item is None:
            return None
        board = seen_board_of(item)
        if self._on_read is not None:
            self._on_read(board, item.get("applied_seq", 0))
        return board

    def _item(self, board_id: str) -> Item | None:
        return self._dynamo.get(BOARDS, keys.board(board_id), keys.HEAD)

    def boards(self) -> tuple[Board, ...]:
        """See `BoardStore.boards`."""
        listed = self._dynamo.query(BOARDS, keys.BOARD_LIST, only=(SK,))
        found = self._dynamo.get_many(BOARDS, [(keys.board(item[SK]), keys.HEAD) for item in listed])
        return tuple(sorted(map(seen_board_of, found), key=lambda board: board.board_id))

    def set_setting(self, board_id: str, key: str, value: Any) -> None:
        """See `BoardStore.set_setting`.

        Raises:
            PermissionDenied: There is no such board.
            StoreUnavailable: It is being erased.
        """
        self._change(board_id, "settings", lambda settings: {**settings, key: value})

    def add_attribute(self, board_id: str, node_type: str, key: str, kind: str) -> None:
        """See `BoardStore.add_attribute`.

        Raises:
            PermissionDenied: There is no such board.
            StoreUnavailable: It is being erased.
        """
        self._change(board_id, "added_attributes", lambda added: {**added, node_type: {**added.get(node_type, {}), key: kind}})

    def _change(self, board_id: str, attribute: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Changes a JSON attribute, again where another change came first."""
        item = self._item(board_id)
        for _ in self._dynamo.tries():
            if item is None or item.get("erasing"):
                raise board_refusal(board_id, item or {})
            before = item[attribute]
            try:
                self._dynamo.update(
                    update(
                        BOARDS,
                        keys.board(board_id),
                        keys.HEAD,
                        f"SET #{attribute} = :after",
                        condition=f"#{attribute} = :before AND #erasing = :no",
                        after=to_json(change(from_json(before))),
                        before=before,
                        no=False,
                    )
                )
            except Refused as refused:
                item = refused.items[0] or None
            else:
                return

    def note_tick(self, board_id: str, at: Instant) -> None:
        """See `BoardStore.note_tick`."""
        later = "attribute_exists(pk) AND (attribute_not_exists(#ticked_at) OR #ticked_at < :at)"
        try:
            self._dynamo.update(update(BOARDS, keys.board(board_id), keys.HEAD, "SET #ticked_at = :at", condition=later, at=at))
        except Refused:
            return

    def erase(self, board_id: str, *, now: Instant) -> Mapping[str, int]:
        """See `BoardStore.erase`. Waits for who holds the board; then everything goes, the board itself last.

        Raises:
            PermissionDenied: There is no such board, and never was.
            StoreUnavailable: Its holder did not end in the call's time, or a store can't be reached; erasing again goes on.
        """
        self._mark_erasing(board_id)
        left: dict[str, int] = {}
        for erase in self._erasers:
            left |= erase(board_id)
        left |= erase_sessions(self._dynamo, board_id)
        left["grants_and_denials"] = forget_board(self._dynamo, board_id)
        if any(left.values()):
            return {**left, "boards": int(self._item(board_id) is not None)}
        self._dynamo.transact(
            [
                put(BOARDS, keys.erased(board_id), keys.HEAD, {"erased_at": now}),
                delete(BOARDS, keys.BOARD_LIST, board_id),
                delete(BOARDS, keys.board(board_id), keys.HEAD),
            ]
        )
        return {**left, "boards": 0}

    def _mark_erasing(self, board_id: str) -> None:
        """Keeps everybody out, and returns when nobody is in; of a board that is gone, whatever came late is still to be removed."""
        mark = update(BOARDS, keys.board(board_id), keys.HEAD, "SET #erasing = :yes", condition="attribute_exists(pk)", yes=True)
        try:
            item: Item | None = self._dynamo.update(mark)
        except Refused:
            if self._dynamo.get(BOARDS, keys.erased(board_id), keys.HEAD) is None:
                raise PermissionDenied.for_board(board_id) from None
            return
        while item is not None and (left := item.get("lease_until", 0) - self._now()) > 0:
            pause = min(_LOOK_SECONDS, left / 1000)
            if pause >= seconds_left():
                raise StoreUnavailable(
                    "board", f"A commit of the board '{board_id}' is still running. Erase it again in a moment.", {"erasing": True}
                )
            self._sleep(pause)
            item = self._item(board_id)
