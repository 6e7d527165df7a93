"""The shared counter of calls."""

from __future__ import annotations

from typing import Final

from pulse_kg.adapters.dynamodb.client import Dynamo, Refused, update
from pulse_kg.adapters.dynamodb.tables import RATES
from pulse_kg.domain.instants import Instant

_KEPT_SECONDS: Final = 86_400  # a clock that is behind by less opens no window again


class DynamoRateLimiter:
    """Windows begin at multiples of their length since the epoch. A clock that runs behind counts in the newest window."""

    def __init__(self, dynamo: Dynamo) -> None:
        self._dynamo = dynamo

    def take(self, key: str, *, limit: int, window_seconds: int, now: Instant, patience: float | None = None) -> int | None:
        """See `RateLimiter.take`; a refused call is not counted. The first of a window costs a second request. Nobody waits here."""
        del patience
        length = window_seconds * 1000
        mine = now // length
        newest = mine
        while limit > 0:
            one_more = update(
                RATES,
                key,
                str(window_seconds),
                "SET #taken = #taken + :one",
                condition="#number >= :mine AND #taken < :limit",
                one=1,
                mine=mine,
                limit=limit,
            )
            try:
                self._dynamo.update(one_more)
            except Refused as refused:
                item = refused.items[0] or {}
                if item and item["number"] >= mine:
                    newest = item["number"]
                    break
            else:
                return None
            if self._opens(key, window_seconds, mine):
                return None
        return max(1, -((now - (newest + 1) * length) // 1000))

    def _opens(self, key: str, window_seconds: int, number: int) -> bool:
        """Takes the first call of a window; False where another call opened it."""
        ends = (number + 1) * window_seconds
        opening = update(
            RATES,
            key,
            str(window_seconds),
            "SET #number = :number, #taken = :one, #ttl = :ttl",
            condition="attribute_not_exists(pk) OR #number < :number",
            number=number,
            one=1,
            ttl=ends + _KEPT_SECONDS,
        )
        try:
            self._dynamo.update(opening)
        except Refused:
            return False
        return True
