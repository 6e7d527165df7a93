"""What every write to a board asks first, in the transaction that writes."""

from __future__ import annotations

from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.client import Item, Write, check
from pulse_kg.adapters.dynamodb.journal import being_erased
from pulse_kg.adapters.dynamodb.tables import BOARDS
from pulse_kg.errors import PermissionDenied, PulseError


def board_takes_changes(board_id: str) -> Write:
    """Refuses the transaction where the board is not there or is being erased."""
    condition = "attribute_exists(pk) AND (attribute_not_exists(#erasing) OR #erasing = :no)"
    return check(BOARDS, keys.board(board_id), keys.HEAD, condition, no=False)


def board_refusal(board_id: str, item: Item) -> PulseError:
    """Why it was refused: the board is being erased where its item is there, else there is none."""
    return being_erased(board_id) if item else PermissionDenied.for_board(board_id)
