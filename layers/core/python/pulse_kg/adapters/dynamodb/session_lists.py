"""The lists of sessions: those of an agent, those of a board, and all by when they may be forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.client import Dynamo, Item, Refused, Value, Write, delete, put
from pulse_kg.adapters.dynamodb.session_items import LIST_DAYS, ttl
from pulse_kg.adapters.dynamodb.tables import PK, SESSIONS, SK, TTL
from pulse_kg.domain.instants import Instant
from pulse_kg.ports.sessions import GRACE_MS


@dataclass(frozen=True)
class Opened:
    """A session as the lists name it; with it every item of the session and of the lists can be found."""

    session_id: str
    board_id: str
    agent_id: str
    expires_at: Instant

    def places(self) -> list[tuple[str, str]]:
        """Its items in the lists; that of its board is the last."""
        return [
            (keys.agent(self.agent_id), keys.opened(self.session_id)),
            (keys.DUE, keys.due(self.expires_at + GRACE_MS, self.session_id)),
            (keys.board(self.board_id), keys.opened(self.session_id)),
        ]

    def writes(self) -> list[Write]:
        """The writes that put it into the lists."""
        item: dict[str, Value] = {
            "session_id": self.session_id,
            "board_id": self.board_id,
            "agent_id": self.agent_id,
            "expires_at": self.expires_at,
            TTL: ttl(self.expires_at, days_more=LIST_DAYS),
        }
        return [put(SESSIONS, pk, sk, item) for pk, sk in self.places()]


def erase_sessions(dynamo: Dynamo, board_id: str) -> dict[str, int]:
    """Removes the sessions of a board that takes no new ones; returns what is left, by kind. May be repeated."""
    remove_sessions(dynamo, _of_board(dynamo, board_id))
    left = _of_board(dynamo, board_id)
    candidates = sum(item[SK] != keys.HEAD for o in left for item in dynamo.query(SESSIONS, keys.session(o.session_id), only=(SK,)))
    return {"sessions": len(left), "candidates": candidates}


def _of_board(dynamo: Dynamo, board_id: str) -> list[Opened]:
    return [opened_of(item) for item in dynamo.query(SESSIONS, keys.board(board_id))]


def remove_sessions(dynamo: Dynamo, opened: Sequence[Opened]) -> None:
    """Removes sessions and all that belongs to them. Ended half-way, the lists still name them."""
    partitions = [keys.session(o.session_id) for o in opened]
    dynamo.delete_many(SESSIONS, [(pk, keys.HEAD) for pk in partitions])  # first: from here on nobody adds to them
    dynamo.delete_many(SESSIONS, [(pk, item[SK]) for pk in partitions for item in dynamo.query(SESSIONS, pk, only=(SK,))])
    _forget_last(dynamo, opened)
    dynamo.delete_many(SESSIONS, [place for o in opened for place in o.places()[:-1]])
    dynamo.delete_many(SESSIONS, [o.places()[-1] for o in opened])  # last: by these an erasure finds all the others


def _forget_last(dynamo: Dynamo, opened: Sequence[Opened]) -> None:
    """Takes these sessions from agents that opened none since."""
    doomed = {o.session_id for o in opened}
    for item in dynamo.get_many(SESSIONS, [(keys.agent(o.agent_id), keys.HEAD) for o in opened]):
        if item["session_id"] in doomed:
            with suppress(Refused):  # now it has opened another
                dynamo.transact([delete(SESSIONS, item[PK], keys.HEAD, condition="session_id = :last", last=item["session_id"])])


def opened_of(item: Item) -> Opened:
    """The session that an item of a list names."""
    return Opened(item["session_id"], item["board_id"], item["agent_id"], item["expires_at"])
