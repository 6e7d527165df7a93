"""What administrators do with boards: make, look at, set, widen their schema, erase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pulse_kg.domain.ids import BOARD_ID
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.permissions import nearest
from pulse_kg.domain.schema import ADDABLE_KINDS, ADDED_KEY, ATTRIBUTES, NODE_TYPES, RESERVED_KEYS, NodeType
from pulse_kg.errors import InvalidArgument, PermissionDenied, Problem

if TYPE_CHECKING:
    from pulse_kg.domain.model import Board
    from pulse_kg.ports.boards import BoardStore
    from pulse_kg.ports.graph import GraphStore
    from pulse_kg.ports.sessions import SessionStore

MAX_NAME: Final = 200
"""Characters of a board's name."""

DEFAULT_SETTINGS: Final[Mapping[str, Any]] = {"strict_attributes": False}
"""Setting → what a board has that never set it."""

_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}


@dataclass(frozen=True)
class BoardOverview:
    """A board as administrators see it.

    Attributes:
        board: The board.
        settings: All its settings, defaults included.
        counts: `nodes`, `live_nodes`, `edges`, `open_sessions`.
    """

    board: Board
    settings: Mapping[str, Any]
    counts: Mapping[str, int]


def refused(what: str, problems: Sequence[Problem]) -> InvalidArgument:
    """The refusal of an administrator's command; its message alone says everything, because scripts log only that."""
    return InvalidArgument(f"{what}: {'; '.join(p.problem for p in problems)}.", problems)


def require_board(board_id: str, boards: BoardStore) -> Board:
    """The board of that id.

    Raises:
        InvalidArgument: There is none; the nearest id is told.
    """
    board = _found(board_id, boards)
    if board is None:
        raise refused("No board was found", [Problem("board", _missing(board_id, boards))])
    return board


def board_fault(board_id: str, boards: BoardStore) -> str | None:
    """What is wrong with a board's id: that there is no such board, and the nearest id; None if it is there."""
    return None if _found(board_id, boards) is not None else _missing(board_id, boards)


def _found(board_id: str, boards: BoardStore) -> Board | None:
    return boards.board(board_id) if BOARD_ID.fullmatch(board_id) else None  # a store takes no text that is no Unicode


def _missing(board_id: str, boards: BoardStore) -> str:
    near = nearest(board_id, [b.board_id for b in boards.boards()])
    hint = f"nearest: '{near}'" if near else "pulse-kg boards list shows them all"
    return f"there is no board '{board_id}' ({hint})"


def create_board(board_id: str, name: str | None, *, boards: BoardStore, now: Instant) -> Board:
    """Makes a board.

    Args:
        board_id: `[a-z0-9][a-z0-9_]{0,63}`.
        name: 1..200 printable characters, for people; the id where it is None.
        boards: Keeps it.
        now: The time.

    Raises:
        InvalidArgument: The id or name can't be, or the id is or was in use.
    """
    check_new_board(board_id, name)
    if not boards.create(board_id, board_id if name is None else name, now=now):
        problem = Problem("board", f"the id '{board_id}' is taken, or was erased before (an erased id is never used again)")
        raise refused("The board was not made", [problem])
    return require_board(board_id, boards)


def check_new_board(board_id: str, name: str | None) -> None:
    """Refuses an id or name that no board can have; needs no store.

    Raises:
        InvalidArgument: With every problem.
    """
    problems = []
    if not BOARD_ID.fullmatch(board_id):
        problems.append(Problem("board", f"the id '{board_id}' must be 1..64 characters of a-z, 0-9 and _, the first one no _"))
    if name is not None and not (1 <= len(name) <= MAX_NAME and name.isprintable() and name.strip()):
        problems.append(Problem("name", f"the name must be 1..{MAX_NAME} printable characters, not blank"))
    if problems:
        raise refused("The board was not made", problems)


def show_board(board_id: str, *, boards: BoardStore, graph: GraphStore, sessions: SessionStore, now: Instant) -> BoardOverview:
    """A board with its counts and settings.

    Raises:
        InvalidArgument: There is none.
    """
    board = require_board(board_id, boards)
    counts = {**graph.counts(board_id), "open_sessions": len(sessions.open_sessions(board_id=board_id, now=now))}
    return BoardOverview(board, {**DEFAULT_SETTINGS, **board.settings}, counts)


def set_board(board_id: str, changes: Mapping[str, str], *, boards: BoardStore) -> Mapping[str, Any]:
    """Changes settings of a board.

    Args:
        board_id: The board.
        changes: Setting → value as text.
        boards: Keeps it.

    Returns:
        All its settings, after.

    Raises:
        InvalidArgument: No such board, unknown settings or values that can't be; nothing was changed.
    """
    board = require_board(board_id, boards)
    problems = []
    for key, text in changes.items():
        if key not in DEFAULT_SETTINGS:
            problems.append(Problem(key, f"'{key}' is no setting of a board (there are: {', '.join(DEFAULT_SETTINGS)})"))
        elif text.lower() not in _BOOLEANS:
            problems.append(Problem(key, f"'{key}' must be true or false, not '{text}'"))
    if problems:
        raise refused("Nothing was changed", problems)
    values = {key: _BOOLEANS[text.lower()] for key, text in changes.items()}
    for key, value in values.items():
        boards.set_setting(board_id, key, value)
    return {**DEFAULT_SETTINGS, **board.settings, **values}


def add_attribute(board_id: str, node_type: str, key: str, kind: str, *, boards: BoardStore) -> Board:
    """Adds an attribute key to a node type of a board; it can't be taken back.

    Raises:
        InvalidArgument: With every problem.
    """
    board = require_board(board_id, boards)
    problems = []
    if node_type not in NODE_TYPES:
        near = nearest(node_type, NODE_TYPES)
        hint = f"nearest: '{near}'" if near else "there are " + ", ".join(NODE_TYPES)
        problems.append(Problem("type", f"'{node_type}' is no node type ({hint})"))
    if fault := _key_fault(board, node_type, key):
        problems.append(Problem("key", f"the key '{key}' {fault}"))
    if kind not in ADDABLE_KINDS:
        problems.append(Problem("kind", f"the kind '{kind}' must be one of " + ", ".join(ADDABLE_KINDS)))
    if problems:
        raise refused("Nothing was added", problems)
    boards.add_attribute(board_id, node_type, key, kind)
    return require_board(board_id, boards)


def erase_board(board_id: str, *, boards: BoardStore, now: Instant) -> Mapping[str, int]:
    """Removes a board and every trace of it, for good.

    Returns:
        How many traces are left, by kind; where any is, doing it again goes on.

    Raises:
        InvalidArgument: There is none, and never was.
    """
    try:
        # Of a board whose erasure broke off near its end, only the store knows.
        return boards.erase(board_id, now=now)
    except PermissionDenied:
        require_board(board_id, boards)
        raise


def _key_fault(board: Board, node_type: str, key: str) -> str | None:
    if not ADDED_KEY.fullmatch(key):
        return "must be 1..64 characters of a-z, 0-9 and _, the first one a letter"
    if key in RESERVED_KEYS:
        return "is a name that every node uses already"
    known: NodeType | None = next((t for t in NODE_TYPES if t == node_type), None)
    if known is not None and (key in ATTRIBUTES[known] or key in board.added_attributes.get(known, {})):
        return f"is an attribute of {node_type} already"
    return None
