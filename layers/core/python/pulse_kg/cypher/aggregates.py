"""The aggregates of a query: each takes the values of a group one by one, in the order of its rows, and gives one value.

Nulls are skipped. DISTINCT is done by who feeds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from pulse_kg.cypher import temporal
from pulse_kg.cypher.faults import value_fault
from pulse_kg.cypher.temporal import Duration
from pulse_kg.cypher.values import MAX_ITEMS, OrderKey, Spend, integer, no_spend, order_key, wrong_type
from pulse_kg.domain.records import record
from pulse_kg.errors import ResourceExhausted


class Aggregate(Protocol):
    """The state of one aggregate over one group."""

    def add(self, value: Any, *more: Any) -> None:
        """Takes the next row's arguments.

        Raises:
            Fault: A value of a kind that it can't take.
            ResourceExhausted: It would hold too much, or the budget is spent.
        """
        ...

    def result(self) -> Any:
        """The value of what it took so far.

        Raises:
            Fault: It is outside of the 64-bit integers.
        """
        ...


class _Count:
    def __init__(self) -> None:
        self._rows = 0

    def add(self, value: Any, *_: Any) -> None:
        if value is not None:
            self._rows += 1

    def result(self) -> int:
        return self._rows


class _Total:
    """A sum of numbers, or of durations: exact for integers, and for floats with the error of each addition carried along."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.count = 0
        self._integers = 0
        self._floats = 0.0
        self._carried = 0.0
        self._has_floats = False
        self._durations: Duration | None = None

    def add(self, value: Any, *_: Any) -> None:
        kind = type(value)
        if value is None:
            return
        if kind is not int and kind is not float and kind is not Duration:
            raise wrong_type(self._what, value, "numbers or durations")
        if self.count and (kind is Duration) is not (self._durations is not None):
            raise value_fault("InvalidArgumentType", f"{self._what} takes numbers or durations, not both at once.")
        self.count += 1
        if kind is int:
            self._integers += value
        elif kind is float:
            self._has_floats = True
            self._add_float(value)
        else:
            self._durations = value if self._durations is None else temporal.add_durations(self._durations, value)

    def _add_float(self, value: float) -> None:
        total = self._floats + value
        if math.isfinite(total):
            larger, smaller = (self._floats, value) if abs(self._floats) >= abs(value) else (value, self._floats)
            self._carried += (larger - total) + smaller
        self._floats = total

    @property
    def exact(self) -> int | None:
        """The sum if all values were integers, of any size."""
        return None if self._has_floats or self._durations is not None else self._integers

    @property
    def durations(self) -> Duration | None:
        """The sum if the values were durations."""
        return self._durations

    @property
    def real(self) -> float:
        """The sum as a float."""
        if not math.isfinite(self._floats):
            return self._floats
        return self._floats + self._carried + self._integers


class _Sum:
    def __init__(self) -> None:
        self._total = _Total("sum()")
        self.add = self._total.add

    def result(self) -> Any:
        if self._total.durations is not None:
            return self._total.durations
        exact = self._total.exact
        return self._total.real if exact is None else integer(exact)


class _Average:
    def __init__(self) -> None:
        self._total = _Total("avg()")
        self.add = self._total.add

    def result(self) -> Any:
        total = self._total
        if total.count == 0:
            return None
        if total.durations is not None:
            return temporal.scale(total.durations, 1 / total.count)
        return (total.real if total.exact is None else total.exact) / total.count


class _Extreme:
    """The first or last value of the order of `order_key`; of equal ones the first that came."""

    def __init__(self, largest: bool, spend: Spend) -> None:
        self._largest = largest
        self._spend = spend
        self._value: Any = None
        self._key: OrderKey | None = None

    def add(self, value: Any, *_: Any) -> None:
        if value is None:
            return
        key = order_key(value, self._spend)
        if self._key is None or (key > self._key if self._largest else key < self._key):
            self._value, self._key = value, key

    def result(self) -> Any:
        return self._value


class _Collect:
    def __init__(self, spend: Spend) -> None:
        self._spend = spend
        self._items: list[Any] = []

    def add(self, value: Any, *_: Any) -> None:
        if value is None:
            return
        _hold(self._items, value, self._spend)

    def result(self) -> list[Any]:
        return self._items


def _hold(items: list[Any], value: Any, spend: Spend) -> None:
    if len(items) >= MAX_ITEMS:
        raise ResourceExhausted(
            f"The query would collect more than {MAX_ITEMS:,} values in one group.", {"budget": "list_items", "limit": MAX_ITEMS}
        )
    spend(1)
    items.append(value)


class _Deviation:
    """By the running mean and sum of squared distances, which doesn't lose digits to large means."""

    def __init__(self, what: str, sample: bool) -> None:
        self._what = what
        self._sample = sample
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0

    def add(self, value: Any, *_: Any) -> None:
        if value is None:
            return
        if type(value) is not int and type(value) is not float:
            raise wrong_type(self._what, value, "numbers")
        self._count += 1
        distance = value - self._mean
        self._mean += distance / self._count
        self._squares += distance * (value - self._mean)

    def result(self) -> float:
        """0.0 of fewer values than have a deviation; NaN or an infinity of values whose squares are beyond the floats."""
        divisor = self._count - 1 if self._sample else self._count
        if divisor <= 0:
            return 0.0
        return math.sqrt(self._squares / divisor) if self._squares >= 0 else math.nan


class _Percentile:
    def __init__(self, what: str, continuous: bool, spend: Spend) -> None:
        self._what = what
        self._continuous = continuous
        self._spend = spend
        self._share: float | None = None
        self._numbers: list[float] = []

    def add(self, value: Any, *more: Any) -> None:
        """Takes a value and the percentile, 0..1, of which the first one counts."""
        if self._share is None:
            (share,) = more
            if type(share) is not int and type(share) is not float:
                raise wrong_type(f"The percentile of {self._what}", share, "a number")
            if not 0 <= share <= 1:
                raise value_fault("NumberOutOfRange", f"The percentile of {self._what} is between 0 and 1.")
            self._share = share
        if value is None:
            return
        if type(value) is not int and type(value) is not float:
            raise wrong_type(self._what, value, "numbers")
        _hold(self._numbers, value, self._spend)

    def result(self) -> float | None:
        if not self._numbers or self._share is None:
            return None
        numbers = sorted(self._numbers, key=order_key)
        if not self._continuous:
            return numbers[max(0, math.ceil(self._share * len(numbers)) - 1)]
        place = self._share * (len(numbers) - 1)
        below = math.floor(place)
        if below == place:
            return float(numbers[below])
        low, high = numbers[below], numbers[below + 1]
        return low * (below + 1 - place) + high * (place - below)


@record
class AggregateKind:
    """An aggregate of the language.

    Attributes:
        name: As it is written in documentation; a query may write it in any case.
        arguments: How many it takes.
        start: Makes the state for a group; takes what counts the values that are kept, by default nothing.
    """

    name: str
    arguments: int
    start: Callable[[Spend], Aggregate]

    def __call__(self, spend: Spend = no_spend) -> Aggregate:
        """A new state."""
        return self.start(spend)


AGGREGATES: Final[Mapping[str, AggregateKind]] = {
    kind.name.lower(): kind
    for kind in (
        AggregateKind("count", 1, lambda _: _Count()),
        AggregateKind("sum", 1, lambda _: _Sum()),
        AggregateKind("avg", 1, lambda _: _Average()),
        AggregateKind("min", 1, lambda spend: _Extreme(largest=False, spend=spend)),
        AggregateKind("max", 1, lambda spend: _Extreme(largest=True, spend=spend)),
        AggregateKind("collect", 1, _Collect),
        AggregateKind("stDev", 1, lambda _: _Deviation("stDev()", sample=True)),
        AggregateKind("stDevP", 1, lambda _: _Deviation("stDevP()", sample=False)),
        AggregateKind("percentileCont", 2, lambda spend: _Percentile("percentileCont()", continuous=True, spend=spend)),
        AggregateKind("percentileDisc", 2, lambda spend: _Percentile("percentileDisc()", continuous=False, spend=spend)),
    )
}
"""By name in lower case."""
