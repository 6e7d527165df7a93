"""Aggregates skip nulls, say what an empty group gives, and refuse what they can't add up."""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.cypher.aggregates import AGGREGATES
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.temporal import Date, DateTime, Duration
from pulse_kg.cypher.values import MAX_INTEGER, MIN_INTEGER, equivalence_key, order_key
from pulse_kg.errors import ResourceExhausted
from tests.property.profile import fixed
from tests.support import cypher_values as some
from tests.support.cypher_values import ONE_OF_EACH, A, Counting

NAN, INF = math.nan, math.inf


def over(name: str, rows: list[Any], *more: Any) -> Any:
    aggregate = AGGREGATES[name.lower()]()
    for row in rows:
        aggregate.add(row, *more)
    return aggregate.result()


def kind_of_fault(name: str, rows: list[Any], *more: Any) -> str:
    with pytest.raises(Fault) as refused:
        over(name, rows, *more)
    assert refused.value.phase == "run"
    return refused.value.kind


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and (repr(one) == repr(other))


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        ("count", 0),
        ("sum", 0),
        ("avg", None),
        ("min", None),
        ("max", None),
        ("collect", []),
        ("stDev", 0.0),
        ("stDevP", 0.0),
        ("percentileCont", None),
        ("percentileDisc", None),
    ],
)
def test_a_group_of_nothing_and_one_of_nulls_give_the_same(name: str, empty: Any) -> None:
    more = (0.5,) if AGGREGATES[name.lower()].arguments == 2 else ()
    assert same(over(name, [], *more), empty)
    assert same(over(name, [None, None], *more), empty)


@pytest.mark.parametrize(
    ("name", "rows", "result"),
    [
        ("count", [1, None, "a", False], 3),
        ("sum", [1, None, 2], 3),
        ("sum", [1, 0.5], 1.5),
        ("sum", [1.0, 2.0], 3.0),
        ("sum", [0.1] * 10, 1.0),
        ("sum", [1e100, 1.0, -1e100], 1.0),
        ("sum", [INF, 1], INF),
        ("sum", [INF, -INF], NAN),
        ("sum", [MAX_INTEGER, 1, -1], MAX_INTEGER),  # only the result has to be an integer
        ("sum", [MAX_INTEGER, MAX_INTEGER, 0.0], 2.0 * (1 << 63)),
        ("avg", [1, 2, None], 1.5),
        ("avg", [1, 3], 2.0),
        ("avg", [MAX_INTEGER, MAX_INTEGER], float(1 << 63)),
        ("avg", [0.1] * 10, 0.1),
        ("min", [3, None, 1.5, 2], 1.5),
        ("max", [3, None, 1.5, 2], 3),
        ("min", [1, "a", True, [0], None], [0]),
        ("max", [1, "a", True, [0], None], 1),
        ("max", [1, NAN, INF], NAN),
        ("min", ["b", "a", "B"], "B"),
        ("min", [1, 1.0], 1),
        ("max", [1.0, 1], 1.0),
        ("max", [DateTime(1), DateTime(2)], DateTime(2)),
        ("collect", [2, None, 1, 2], [2, 1, 2]),
        ("collect", [[None], {}], [[None], {}]),
        ("stDev", [2, 4, 4, 4, 5, 5, 7, 9], 2.138089935299395),
        ("stDevP", [2, 4, 4, 4, 5, 5, 7, 9], 2.0),
        ("stDev", [7], 0.0),
        ("stDevP", [1e9 + 1, 1e9 + 2, 1e9 + 3], 0.816496580927726),
    ],
)
def test_an_aggregate_gives(name: str, rows: list[Any], result: Any) -> None:
    assert same(over(name, rows), result)


@pytest.mark.parametrize(
    ("share", "cont", "disc"),
    [
        (0, 10.0, 10),
        (0.0, 10.0, 10),
        (0.25, 17.5, 10),
        (0.3, 19.0, 20),
        (0.5, 25.0, 20),
        (0.75, 32.5, 30),
        (0.9, 37.0, 40),
        (1, 40.0, 40),
        (1.0, 40.0, 40),
    ],
)
def test_a_percentile_lies_between_two_values_or_is_one_of_them(share: float, cont: float, disc: int) -> None:
    rows = [30, 10, None, 40, 20]
    assert over("percentileCont", rows, share) == pytest.approx(cont, rel=1e-15)
    assert same(over("percentileDisc", rows, share), disc)


@pytest.mark.parametrize("name", ["percentileCont", "percentileDisc"])
def test_a_percentile_outside_of_0_to_1_is_refused(name: str) -> None:
    for share in (1000, -1, 1.1, NAN):
        assert kind_of_fault(name, [1], share) == "NumberOutOfRange"
        assert kind_of_fault(name, [None], share) == "NumberOutOfRange"
    for wrong in ("0.5", None, True):
        assert kind_of_fault(name, [1], wrong) == "InvalidArgumentType"


@pytest.mark.parametrize("name", ["sum", "avg", "stDev", "stDevP", "percentileCont", "percentileDisc"])
def test_what_is_no_number_is_refused(name: str) -> None:
    more = (0.5,) if AGGREGATES[name.lower()].arguments == 2 else ()
    for kind, value in ONE_OF_EACH.items():
        if kind in {"null", "integer", "float"} or (kind == "duration" and name in {"sum", "avg"}):
            over(name, [value], *more)
        else:
            assert kind_of_fault(name, [1, value], *more) == "InvalidArgumentType", kind


def test_a_sum_of_integers_beyond_64_bits_is_refused() -> None:
    assert kind_of_fault("sum", [MAX_INTEGER, 1]) == "IntegerOverflow"
    assert kind_of_fault("sum", [MIN_INTEGER, -1]) == "IntegerOverflow"


def test_durations_add_up_part_by_part_and_do_not_mix_with_numbers() -> None:
    lengths = [Duration(months=1), Duration(days=3), None, Duration(milliseconds=500)]
    assert over("sum", lengths) == Duration(1, 3, 500)
    assert over("avg", [Duration(days=1), Duration(days=2)]) == Duration(days=1, milliseconds=43_200_000)
    for mixed in ([0, Duration(days=1)], [Duration(days=1), 0], [0.5, Duration()]):
        assert kind_of_fault("sum", mixed) == "InvalidArgumentType"


def test_elements_of_the_graph_can_be_counted_collected_and_compared() -> None:
    assert over("count", [A, A, None]) == 2
    assert over("collect", [A, None]) == [A]
    assert over("max", [A, Date(0)]) == Date(0)


@fixed(200)
@given(st.lists(some.values, max_size=8))
def test_the_extremes_are_the_ends_of_the_order(rows: list[Any]) -> None:
    known = sorted((row for row in rows if row is not None), key=order_key)
    for name, place in (("min", 0), ("max", -1)):
        expected = known[place] if known else None
        assert equivalence_key(over(name, rows)) == equivalence_key(expected)


@fixed(200)
@given(st.lists(st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6)), min_size=1, max_size=30))
def test_sum_mean_and_deviation_are_those_of_exact_arithmetic(rows: list[float]) -> None:
    assert over("sum", rows) == pytest.approx(math.fsum(rows), rel=1e-12, abs=1e-9)
    assert over("avg", rows) == pytest.approx(statistics.fmean(rows), rel=1e-12, abs=1e-9)
    assert over("stDevP", rows) == pytest.approx(statistics.pstdev(rows), rel=1e-9, abs=1e-6)


def test_the_order_of_the_rows_does_not_change_a_sum_of_fractions() -> None:
    rows = [n / 10 for n in range(1, 1_000)]
    shuffled = random.Random(7).sample(rows, len(rows))
    assert over("sum", rows) == over("sum", shuffled) == math.fsum(rows)


@pytest.mark.parametrize(("name", "more"), [("collect", ()), ("percentileCont", (0.5,)), ("percentileDisc", (0.5,))])
def test_what_is_kept_is_paid_for(name: str, more: tuple[float, ...]) -> None:
    context = Counting(limit=3)
    aggregate = AGGREGATES[name.lower()](context.spend)
    for row in (1, 2, None, 3):
        aggregate.add(row, *more)
    assert context.spent == 3
    with pytest.raises(ResourceExhausted):
        aggregate.add(4, *more)


@pytest.mark.parametrize("name", ["min", "max"])
def test_the_extreme_of_a_list_that_holds_itself_doubled_again_and_again_is_not_looked_for_to_its_end(name: str) -> None:
    items: Any = [1]
    for _ in range(60):
        items = [items, items]
    with pytest.raises(ResourceExhausted):
        AGGREGATES[name](Counting(limit=10_000).spend).add(items)


def test_each_group_has_a_state_of_its_own() -> None:
    for kind in AGGREGATES.values():
        one, other = kind(), kind()
        more = (0.5,) if kind.arguments == 2 else ()
        one.add(1, *more)
        assert one.result() != other.result() or kind.name in {"stDev", "stDevP"}


def test_names_are_looked_up_in_lower_case_and_shown_as_documented() -> None:
    assert all(key == kind.name.lower() for key, kind in AGGREGATES.items())
    assert AGGREGATES["percentilecont"].name == "percentileCont"
