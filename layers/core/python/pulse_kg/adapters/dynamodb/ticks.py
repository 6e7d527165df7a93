"""Who runs the decay tick, and how far it came."""

from __future__ import annotations

from dataclasses import asdict

from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.client import Dynamo, Refused, update
from pulse_kg.adapters.dynamodb.tables import BOARDS
from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.domain.instants import Instant
from pulse_kg.ports.ticks import TakenRun, TickPlace


class DynamoTickLog:
    """The log: one item. Times are compared by the clocks of the callers, which should agree to some seconds."""

    def __init__(self, dynamo: Dynamo) -> None:
        self._dynamo = dynamo

    def take(self, holder: str, *, now: Instant, until: Instant) -> TakenRun | None:
        """See `TickLog.take`."""
        taking = update(
            BOARDS,
            keys.TICK,
            keys.HEAD,
            "SET #lease_holder = :holder, #lease_until = :until",
            condition="attribute_not_exists(#lease_until) OR #lease_until <= :now OR #lease_holder = :holder",
            holder=holder,
            until=until,
            now=now,
        )
        try:
            item = self._dynamo.update(taking)
        except Refused:
            return None
        place = item.get("place")
        return TakenRun(None if place is None else TickPlace(**from_json(place)))

    def keep(self, holder: str, place: TickPlace | None, *, until: Instant) -> bool:
        """See `TickLog.keep`."""
        mine = "#lease_holder = :holder"
        if place is None:
            change = update(
                BOARDS, keys.TICK, keys.HEAD, "SET #lease_until = :until REMOVE #place", condition=mine, holder=holder, until=until
            )
        else:
            shown = to_json(asdict(place))
            change = update(
                BOARDS,
                keys.TICK,
                keys.HEAD,
                "SET #lease_until = :until, #place = :place",
                condition=mine,
                holder=holder,
                until=until,
                place=shown,
            )
        try:
            self._dynamo.update(change)
        except Refused:
            return False
        return True

    def release(self, holder: str) -> None:
        """See `TickLog.release`."""
        free = update(BOARDS, keys.TICK, keys.HEAD, "SET #lease_until = :zero", condition="#lease_holder = :holder", holder=holder, zero=0)
        try:
            self._dynamo.update(free)
        except Refused:
            return
