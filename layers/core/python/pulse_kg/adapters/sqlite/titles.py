"""The search for titles with the longest common start, by ranges of an index instead of a scan."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_INDEX: Final = "FROM nodes INDEXED BY nodes_by_title WHERE board_id = ?1 AND node_type = ?2 AND folded_title "
_ABOVE: Final = "SELECT folded_title " + _INDEX + ">= ?3 ORDER BY folded_title LIMIT 1"
_BELOW: Final = "SELECT folded_title " + _INDEX + "< ?3 ORDER BY folded_title DESC LIMIT 1"
# Those whose common start ends at one place lie on both sides of those that share more. Shorter titles have higher scores.
_SIDE: Final = "SELECT max(?7, length(folded_title)) AS longer, superseded_by IS NOT NULL AS old, node_id " + _INDEX
_SHARING: Final = _SIDE + ">= ?3 AND folded_title < ?4 UNION ALL " + _SIDE + ">= ?5 AND folded_title < ?6 ORDER BY longer, old, node_id"

_DIGITS: Final = 4
_LAST: Final = "\U0010ffff"


@dataclass(frozen=True, order=True)
class Scored:
    """A node in the port's order: best first, live before superseded, by id."""

    minus_score: float
    old: int
    node_id: str


def nearest(connection: sqlite3.Connection, board_id: str, node_type: str, title: str, *, limit: int, live_only: bool) -> list[Scored]:
    """The best nodes for a folded title that is not empty."""
    best: list[Scored] = []
    for shared in range(_longest_start(connection, board_id, node_type, title), 0, -1):
        # Whoever shares less than this has at most this score, and could win with it by its id.
        if len(best) == limit and -best[-1].minus_score > _score(shared, len(title)):
            break
        start, more = title[:shared], title[: shared + 1]
        inner, after = (more, _first_after(more)) if len(more) > shared else (start, start)
        rows = connection.execute(_SHARING, (board_id, node_type, start, inner, after, _first_after(start), len(title)))
        best = sorted([*best, *_first(rows, shared, limit, live_only=live_only)])[:limit]
    return best


def _first(rows: Iterable[tuple[int, int, str]], shared: int, limit: int, *, live_only: bool) -> list[Scored]:
    """Those of the rows, which come in order of their length, that can be among the best."""
    found: list[Scored] = []
    length, of_length = 0, 0
    for longer, old, node_id in rows:
        if longer != length:
            if len(found) >= limit and -_score(shared, longer) > found[limit - 1].minus_score:
                break
            length, of_length = longer, 0
        if of_length < limit and not (old and live_only):
            found.append(Scored(-_score(shared, longer), old, node_id))
            of_length += 1
    return found


def _score(shared: int, longer: int) -> float:
    return round(shared / longer, _DIGITS)


def _longest_start(connection: sqlite3.Connection, board_id: str, node_type: str, title: str) -> int:
    """How many characters the title has in common with any other: its neighbours in the index have the most."""
    neighbours = [connection.execute(statement, (board_id, node_type, title)).fetchone() for statement in (_ABOVE, _BELOW)]
    return max((_shared(title, row[0]) for row in neighbours if row is not None), default=0)


def _shared(left: str, right: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _first_after(start: str) -> str:
    """The least text, in the order of code points, that is above every text with that start."""
    head = start.rstrip(_LAST)
    if not head:
        return _LAST * (len(start) + 10_000)  # above any title, of which folding makes at most 9,000 characters
    following = ord(head[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:  # noqa: PLR2004 - surrogates, which are no characters of a text
        following = 0xE000
    return head[:-1] + chr(following)
