"""Values are compared, ordered and told apart as openCypher says, and operators refuse what they can't take."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.cypher import values
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.temporal import Date, DateTime, Duration
from pulse_kg.cypher.values import MAX_INTEGER, MAX_ITEMS, MAX_TEXT, MIN_INTEGER, Path, compare, equals, equivalence_key, in_list, order_key
from pulse_kg.domain.instants import parse_instant
from pulse_kg.errors import InvalidCypher, ResourceExhausted
from tests.property.profile import fixed
from tests.support import cypher_values as some
from tests.support.cypher_answers import column_of
from tests.support.cypher_values import AB, ONE_OF_EACH, A, B, Counting, edge, node

NAN, INF = math.nan, math.inf
TRUTHS = (True, False, None)


def kind_of_fault(call: Callable[[], Any]) -> str:
    with pytest.raises(Fault) as refused:
        call()
    assert refused.value.phase == "run"
    return refused.value.kind


def same(one: Any, other: Any) -> bool:
    """Whether two results are the same down to their types and to NaN."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isnan(one) and math.isnan(other) if math.isnan(one) or math.isnan(other) else repr(one) == repr(other)
    return type(one) is type(other) and bool(one == other)


def shuffled(ordered: list[Any]) -> list[Any]:
    return random.Random(7).sample(ordered, len(ordered))


class TestEquality:
    @pytest.mark.parametrize(
        ("a", "b", "answer"),
        [
            (1, 1.0, True),
            ((1 << 53) + 1, float(1 << 53), False),  # exact: the float has not that last digit
            (MAX_INTEGER, float(1 << 63), False),
            (True, 1, False),
            (0, False, False),
            ("1", 1, False),
            (NAN, NAN, False),
            (0.0, -0.0, True),
            (INF, INF, True),
            ("a", "a", True),
            ("a", "A", False),
            (None, None, None),
            (None, 1, None),
            ([], [], True),
            ([], {}, False),
            ([], None, None),
            ([1, 2], [1.0, 2.0], True),
            ([1, 2], [1], False),
            ([1, None], [1, 2], None),
            ([1, None], [2, None], False),
            ([None], [None, None], False),
            ([[None]], [[1]], None),
            ([NAN], [NAN], False),
            ({}, {}, True),
            ({"k": 1}, {"k": 1.0}, True),
            ({"k": 1}, {"l": 1}, False),
            ({"k": None}, {}, False),
            ({"k": None}, {"k": None}, None),
            ({"k": None, "l": 1}, {"k": None, "l": 2}, False),
            (A, node("a", "Other", name="Eve"), True),
            (A, B, False),
            (A, edge("a"), False),
            (AB, edge("ab", "x", "y"), True),
            (Path((A, B), (AB,)), Path((A, B), (AB,)), True),
            (Path((A, B), (AB,)), Path((B, A), (AB,)), False),
            (Path((A,), ()), [A], False),
            (DateTime(0), DateTime(0), True),
            (DateTime(0), Date(0), True),
            (DateTime(1), Date(0), False),
            (Duration(months=1), Duration(months=1), True),
            (Duration(months=12), Duration(days=365), False),
            (Duration(), DateTime(0), False),
            (Duration(), "P0D", False),
        ],
    )
    def test_two_values_are_equal_different_or_it_is_not_known(self, a: Any, b: Any, answer: bool | None) -> None:
        assert equals(a, b) is answer
        assert equals(b, a) is answer

    def test_values_of_two_kinds_differ_but_for_the_two_kinds_of_numbers_and_of_moments(self) -> None:
        for (one, a), (other, b) in itertools.permutations(ONE_OF_EACH.items(), 2):
            assert equals(a, b) is (None if "null" in {one, other} else False), (one, other)

    @pytest.mark.parametrize("text", ["2026-05-07T16:30:00.000Z", "2026-05-07T18:30:00+02:00", "2026-05-07t16:30:00z"])
    def test_a_text_that_is_an_instant_equals_the_datetime_of_that_instant(self, text: str) -> None:
        moment = DateTime(parse_instant("2026-05-07T16:30:00Z"))
        assert equals(text, moment) is True
        assert equals(moment, text) is True
        assert in_list(text, [moment]) is True

    @pytest.mark.parametrize("text", ["", "2026", "2026-13-01", "2026-05-07T16:30", "today", "2026-02-30T00:00:00Z"])
    def test_any_other_text_differs_from_every_datetime_and_has_no_order_with_it(self, text: str) -> None:
        assert equals(text, DateTime(0)) is False
        assert compare("<", text, DateTime(0)) is None

    @fixed(300)
    @given(some.values, some.values)
    def test_equality_is_symmetric_and_never_contradicts_equivalence(self, a: Any, b: Any) -> None:
        answer = equals(a, b)
        assert equals(b, a) is answer
        if answer is True and type(a) in {bool, int, float, str}:
            assert (equivalence_key(a) == equivalence_key(b)) or isinstance(b, DateTime | Date)


class TestComparison:
    @pytest.mark.parametrize(
        ("a", "b", "less"),
        [
            (1, 2, True),
            (2, 1, False),
            (1, 1.5, True),
            (float(1 << 53), (1 << 53) + 1, True),
            (1, NAN, False),
            (NAN, 1.0, False),
            (NAN, NAN, False),
            (-INF, MIN_INTEGER, True),
            ("a", "b", True),
            ("Z", "a", True),
            ("", "a", True),
            (False, True, True),
            (True, False, False),
            ([1], [2], True),
            ([1], [1, 0], True),
            ([1, 0], [1], False),
            ([], [None], True),
            ([2, None], [1, None], False),
            ([1, None], [1, 2], None),
            ([1, "a"], [1, 2], None),
            ([1, "a"], [2, 2], True),
            (DateTime(0), DateTime(1), True),
            (Date(0), Date(1), True),
            (Date(0), DateTime(1), True),
            (None, 1, None),
            (1, None, None),
            (None, None, None),
        ],
    )
    def test_one_is_less_or_not_or_there_is_no_order(self, a: Any, b: Any, less: bool | None) -> None:
        assert compare("<", a, b) is less
        assert compare(">", b, a) is less

    def test_between_unlike_kinds_there_is_no_order(self) -> None:
        for (one, a), (other, b) in itertools.permutations(ONE_OF_EACH.items(), 2):
            known = {one, other} in ({"integer", "float"}, {"datetime", "date"})
            for op in ("<", "<=", ">", ">="):
                assert (compare(op, a, b) is not None) is known, (one, op, other)

    @pytest.mark.parametrize("kind", ["map", "node", "relationship", "path", "duration"])
    def test_some_kinds_have_no_order_even_with_themselves(self, kind: str) -> None:
        for op in ("<", "<=", ">", ">="):
            assert compare(op, ONE_OF_EACH[kind], ONE_OF_EACH[kind]) is None

    @pytest.mark.parametrize(
        ("a", "b"), [(1, 1), (1, 1.0), ("a", "a"), (True, True), ([1, "a"], [1.0, "a"]), (DateTime(5), DateTime(5)), (Date(1), Date(1))]
    )
    def test_equal_values_are_neither_less_nor_greater(self, a: Any, b: Any) -> None:
        assert [compare(op, a, b) for op in ("<", "<=", ">", ">=")] == [False, True, False, True]

    def test_of_two_lists_the_first_pair_that_differs_decides_and_an_unknown_one_makes_it_unknown(self) -> None:
        assert compare(">=", [1, 2], [3, None]) is False
        assert compare(">=", [1, 2], [1, None]) is None
        assert compare(">=", [1, None], [1]) is True
        assert compare("<=", [NAN], [NAN]) is False

    def test_a_text_that_is_an_instant_compares_with_a_datetime_or_date_as_that_instant(self) -> None:
        noon = "2026-05-07T12:00:00+02:00"
        assert compare("<", noon, DateTime(parse_instant("2026-05-07T10:00:00.001Z"))) is True
        assert compare(">", noon, Date(parse_instant("2026-05-07") // 86_400_000)) is True
        assert compare(">=", DateTime(parse_instant("2026-05-07T10:00:00Z")), noon) is True
        assert compare("<", noon, "2026-05-07T12:00:00+03:00") is True  # two texts are only texts

    @fixed(300)
    @given(some.values, some.values)
    def test_the_four_comparisons_agree_with_each_other(self, a: Any, b: Any) -> None:
        less, at_most, greater, at_least = (compare(op, a, b) for op in ("<", "<=", ">", ">="))
        assert {less, at_most, greater, at_least} in ({None}, {True, False}, {False})
        assert not (less and greater)
        if at_most is not None and (at_most or at_least):
            assert (at_most, at_least) == ((not greater), (not less))
        assert compare(">", b, a) is less
        assert compare(">=", b, a) is at_most


class TestMembership:
    @pytest.mark.parametrize(
        ("value", "items", "answer"),
        [
            (1, [1, None], True),
            (1, [None, 1.0], True),
            (2, [1, None], None),
            (2, [1], False),
            (None, [1], None),
            (None, [], False),
            (1, None, None),
            (None, None, None),
            ([1, None], [[1, 2]], None),
            ([1, None], [[2, 2], [1]], False),
            (True, [1], False),
            (NAN, [NAN], False),
        ],
    )
    def test_a_value_is_in_a_list_or_not_or_it_is_not_known(self, value: Any, items: Any, answer: bool | None) -> None:
        assert in_list(value, items) is answer

    def test_the_same_list_asked_again_gives_the_same_unknown(self) -> None:
        items = [[1, None], [1, None]]
        assert [in_list(items[0], items) for _ in range(3)] == [None, None, None]

    @pytest.mark.parametrize("items", ["abc", 1, True, {"k": 1}, A])
    def test_what_is_no_list_is_refused(self, items: Any) -> None:
        assert kind_of_fault(lambda: in_list(1, items)) == "InvalidArgumentType"


class TestEquivalence:
    @pytest.mark.parametrize(
        ("a", "b", "one"),
        [
            (None, None, True),
            (NAN, -NAN, True),
            (1, 1.0, True),
            ((1 << 53) + 1, float(1 << 53), False),
            (1, True, False),
            (0, False, False),
            (1.0, True, False),
            ([1, None, NAN], [1.0, None, NAN], True),
            ([1], [True], False),
            ([], {}, False),
            ([], None, False),
            ({"k": None}, {"k": None}, True),
            ({"k": None}, {}, False),
            ({"k": 1, "l": 2}, {"l": 2.0, "k": 1}, True),
            ("a", "a", True),
            (A, node("a"), True),
            (A, "a", False),
            (Path((A,), ()), [A], False),
            (DateTime(0), "1970-01-01T00:00:00.000Z", False),
            (DateTime(0), Date(0), False),
            (DateTime(0), 0, False),
        ],
    )
    def test_two_values_count_as_one_or_as_two(self, a: Any, b: Any, one: bool) -> None:
        assert (len({equivalence_key(a), equivalence_key(b)}) == 1) is one

    @fixed(500)
    @given(some.values, some.values)
    def test_two_values_count_as_one_exactly_where_the_order_puts_them_at_one_place(self, a: Any, b: Any) -> None:
        assert (equivalence_key(a) == equivalence_key(b)) is (order_key(a) == order_key(b))
        if equivalence_key(a) == equivalence_key(b):
            assert hash(equivalence_key(a)) == hash(equivalence_key(b))


class TestOrder:
    def test_kinds_stand_in_one_order(self) -> None:
        kinds = "map node relationship list path datetime date duration string boolean integer float null".split()
        assert sorted(kinds, key=lambda kind: order_key(ONE_OF_EACH[kind])) == kinds
        assert order_key(INF) < order_key(NAN) < order_key(None)

    def test_a_mixed_column_sorts_without_a_fault_and_descending_puts_null_first(self) -> None:
        mixed: list[Any] = [None, 3.14, {}, True, NAN, "", [2], 1]
        ascending = sorted(mixed, key=order_key)
        assert [values.type_name(value) for value in ascending] == "map list string boolean integer float float null".split()
        descending = sorted(mixed, key=order_key, reverse=True)
        assert descending[0] is None

    def test_lists_sort_by_their_first_items_that_differ(self) -> None:
        ordered: list[list[Any]] = [[], ["a"], ["a", 1], [1], [1, "a"], [1, None], [None, 1], [None, 2]]
        assert sorted(shuffled(ordered), key=order_key) == ordered

    def test_maps_sort_by_size_then_keys_then_values(self) -> None:
        ordered: list[dict[str, Any]] = [{}, {"a": 9}, {"b": 1}, {"b": None}, {"a": 1, "b": 1}, {"a": 1, "b": 2}]
        assert sorted(shuffled(ordered), key=order_key) == ordered

    def test_false_stands_before_true_and_numbers_mix(self) -> None:
        assert sorted([True, False], key=order_key) == [False, True]
        assert sorted([2, 1.5, -INF, 1, MAX_INTEGER], key=order_key) == [-INF, 1, 1.5, 2, MAX_INTEGER]

    def test_durations_sort_by_about_how_long_they_are(self) -> None:
        ordered = [Duration(days=-1), Duration(), Duration(days=30), Duration(months=1), Duration(days=31), Duration(days=366)]
        assert sorted(shuffled(ordered), key=order_key) == ordered

    @fixed(300)
    @given(st.lists(some.values, min_size=3, max_size=3))
    def test_the_order_is_total_and_transitive(self, three: list[Any]) -> None:
        keys = [order_key(value) for value in three]
        for one, other in itertools.combinations(keys, 2):
            assert (one < other) + (one == other) + (one > other) == 1
        low, middle, high = sorted(keys)
        assert low <= middle <= high
        assert low <= high

    @fixed(300)
    @given(some.values, some.values)
    def test_the_order_agrees_with_every_comparison_that_has_an_answer(self, a: Any, b: Any) -> None:
        if compare("<", a, b) is True and type(a) is type(b) and type(a) is not list:
            assert order_key(a) < order_key(b)


def logic(text: str, a: Any, b: Any = None, c: Any = None) -> Any:
    return column_of(f"RETURN {text} AS found", a=a, b=b, c=c)[0]


class TestLogic:
    def test_and_is_false_as_soon_as_one_is(self) -> None:
        for a, b in itertools.product(TRUTHS, repeat=2):
            expected = False if a is False or b is False else None if a is None or b is None else True
            assert logic("$a AND $b", a, b) is expected

    def test_or_is_true_as_soon_as_one_is(self) -> None:
        for a, b in itertools.product(TRUTHS, repeat=2):
            expected = True if a is True or b is True else None if a is None or b is None else False
            assert logic("$a OR $b", a, b) is expected

    def test_exclusive_or_and_not_are_unknown_of_the_unknown(self) -> None:
        for a, b in itertools.product(TRUTHS, repeat=2):
            assert logic("$a XOR $b", a, b) is (None if a is None or b is None else a is not b)
        assert [logic("NOT $a", a) for a in TRUTHS] == [False, True, None]

    @pytest.mark.parametrize("law", ["AND", "OR", "XOR"])
    def test_the_order_of_the_operands_and_of_the_steps_does_not_matter(self, law: str) -> None:
        for a, b, c in itertools.product(TRUTHS, repeat=3):
            assert logic(f"$a {law} $b", a, b) is logic(f"$b {law} $a", a, b)
            assert logic(f"$a {law} ($b {law} $c)", a, b, c) is logic(f"$a {law} $b {law} $c", a, b, c)

    def test_not_turns_and_into_or(self) -> None:
        for a, b in itertools.product(TRUTHS, repeat=2):
            assert logic("NOT ($a AND $b)", a, b) is logic("NOT $a OR NOT $b", a, b)

    @pytest.mark.parametrize("other", [0, 1, 0.5, "true", [True], {"a": True}])
    def test_what_is_no_boolean_is_refused_where_it_is_looked_at(self, other: Any) -> None:
        for text in ("NOT $a", "$a AND true", "$a OR false", "true AND $a", "false OR $a", "$a XOR true", "true XOR $a", "null AND $a"):
            with pytest.raises(InvalidCypher) as refused:
                logic(text, other)
            assert refused.value.details["kind"] == "InvalidArgumentType"

    def test_what_decides_alone_lets_the_rest_unlooked_at(self) -> None:
        assert logic("false AND $a", 1) is False
        assert logic("true OR $a", 1) is True


BINARY = [values.add, values.subtract, values.multiply, values.divide, values.modulo, values.power]


class TestArithmetic:
    @pytest.mark.parametrize(
        ("apply", "a", "b", "result"),
        [
            (values.add, 1, 2, 3),
            (values.add, 1, 2.0, 3.0),
            (values.add, "a", "b", "ab"),
            (values.add, "a", 1, "a1"),
            (values.add, 1, "a", "1a"),
            (values.add, "a", 1.0, "a1.0"),
            (values.add, "a", True, "atrue"),
            (values.add, [1], [2], [1, 2]),
            (values.add, [1], 2, [1, 2]),
            (values.add, 1, [2], [1, 2]),
            (values.add, "a", ["b"], ["a", "b"]),
            (values.add, [[1]], [2], [[1], 2]),
            (values.subtract, 1, 2, -1),
            (values.subtract, 1.5, 1, 0.5),
            (values.multiply, 3, -2, -6),
            (values.multiply, 3, 0.5, 1.5),
            (values.divide, 7, 2, 3),
            (values.divide, -7, 2, -3),
            (values.divide, 7, -2, -3),
            (values.divide, -7, -2, 3),
            (values.divide, MAX_INTEGER, 1, MAX_INTEGER),
            (values.divide, 7, 2.0, 3.5),
            (values.divide, 1, 0.0, INF),
            (values.divide, -1.0, 0, -INF),
            (values.divide, 1, -0.0, -INF),
            (values.divide, 0.0, 0.0, NAN),
            (values.divide, NAN, 0, NAN),
            (values.modulo, 7, 3, 1),
            (values.modulo, -7, 3, -1),
            (values.modulo, 7, -3, 1),
            (values.modulo, -7.5, 2, -1.5),
            (values.modulo, 7.5, 0, NAN),
            (values.modulo, INF, 2, NAN),
            (values.modulo, 2, INF, 2.0),
            (values.power, 2, 3, 8.0),
            (values.power, 4, 0.5, 2.0),
            (values.power, -8, 1 / 3, NAN),
            (values.power, 10, 400, INF),
            (values.power, -10, 401, -INF),
            (values.power, 0, -1, INF),
            (values.power, -0.0, -1, -INF),
            (values.power, 0, 0, 1.0),
            (values.add, MAX_INTEGER, 1.0, float(1 << 63)),
            (values.add, 1e308, 1e308, INF),
        ],
    )
    def test_an_operator_gives(self, apply: Callable[[Any, Any], Any], a: Any, b: Any, result: Any) -> None:
        assert same(apply(a, b), result)

    @pytest.mark.parametrize("apply", BINARY)
    def test_null_makes_null_whatever_stands_beside_it(self, apply: Callable[[Any, Any], Any]) -> None:
        for value in ONE_OF_EACH.values():
            assert apply(None, value) is None
            assert apply(value, None) is None
        assert values.negate(None) is None
        assert values.plus(None) is None

    @pytest.mark.parametrize(
        ("apply", "a", "b"),
        [
            (values.add, MAX_INTEGER, 1),
            (values.add, MIN_INTEGER, -1),
            (values.subtract, MIN_INTEGER, 1),
            (values.multiply, MAX_INTEGER, 2),
            (values.multiply, MIN_INTEGER, -1),
            (values.divide, MIN_INTEGER, -1),
        ],
    )
    def test_an_integer_beyond_64_bits_is_refused(self, apply: Callable[[Any, Any], Any], a: int, b: int) -> None:
        assert kind_of_fault(lambda: apply(a, b)) == "IntegerOverflow"

    def test_the_ends_of_the_integers_are_reached(self) -> None:
        assert values.add(MAX_INTEGER - 1, 1) == MAX_INTEGER
        assert values.subtract(MIN_INTEGER + 1, 1) == MIN_INTEGER
        assert values.negate(MAX_INTEGER) == MIN_INTEGER + 1
        assert kind_of_fault(lambda: values.negate(MIN_INTEGER)) == "IntegerOverflow"

    @pytest.mark.parametrize("apply", [values.divide, values.modulo])
    def test_an_integer_by_zero_is_refused(self, apply: Callable[[Any, Any], Any]) -> None:
        assert kind_of_fault(lambda: apply(1, 0)) == "DivisionByZero"

    @fixed(200)
    @given(some.integers, some.integers.filter(bool))
    def test_quotient_and_rest_give_the_dividend_back(self, a: int, b: int) -> None:
        if (a, b) != (MIN_INTEGER, -1):
            assert values.divide(a, b) * b + values.modulo(a, b) == a
            assert abs(values.modulo(a, b)) < abs(b)

    @pytest.mark.parametrize(
        ("apply", "kinds"),
        [
            (values.subtract, {("integer", "float"), ("datetime", "duration"), ("date", "duration"), ("duration", "duration")}),
            (values.multiply, {("integer", "float"), ("integer", "duration"), ("float", "duration")}),
            (values.divide, {("integer", "float"), ("duration", "integer"), ("duration", "float")}),
            (values.modulo, {("integer", "float")}),
            (values.power, {("integer", "float")}),
        ],
    )
    def test_every_other_pair_of_kinds_is_refused(self, apply: Callable[[Any, Any], Any], kinds: set[tuple[str, str]]) -> None:
        numbers = {"integer", "float"}
        for (one, a), (other, b) in itertools.product(ONE_OF_EACH.items(), repeat=2):
            taken = {one, other} <= numbers or (one, other) in kinds or (apply is values.multiply and (other, one) in kinds)
            if taken or "null" in {one, other}:
                apply(a, b)
            else:
                assert kind_of_fault(functools.partial(apply, a, b)) == "InvalidArgumentType", (one, other)

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            (True, 1),
            (1, False),
            (True, True),
            ({}, {}),
            (A, 1),
            ("a", A),
            ("a", {}),
            ("a", DateTime(0)),
            (DateTime(0), Date(0)),
            (1, Date(0)),
        ],
    )
    def test_a_plus_between_other_kinds_is_refused(self, a: Any, b: Any) -> None:
        assert kind_of_fault(lambda: values.add(a, b)) == "InvalidArgumentType"

    def test_a_duration_beside_a_text_is_refused_and_the_way_is_shown(self) -> None:
        with pytest.raises(Fault, match=r"datetime\(\)"):
            values.add("2026-05-07T16:30:00Z", Duration(days=1))
        with pytest.raises(Fault, match=r"datetime\(\)"):
            values.subtract("2026-05-07T16:30:00Z", Duration(days=1))
        with pytest.raises(Fault, match=r"duration\.between"):
            values.subtract(DateTime(1), "2026-05-07T16:30:00Z")

    def test_a_sign_stands_before_a_number_or_duration_alone(self) -> None:
        assert same(values.negate(1.5), -1.5)
        assert same(values.negate(0.0), 0.0)
        assert same(values.negate(NAN), NAN)
        assert values.negate(Duration(1, -2, 3)) == Duration(-1, 2, -3)
        assert values.plus(1) == 1
        unsigned: list[Any] = ["1", True, [1], {}, A, DateTime(0)]
        for value in unsigned:
            assert kind_of_fault(functools.partial(values.negate, value)) == "InvalidArgumentType"
            assert kind_of_fault(functools.partial(values.plus, value)) == "InvalidArgumentType"

    def test_operators_leave_their_operands_as_they_were(self) -> None:
        one, other = [1], [2]
        values.add(one, other)
        values.add(one, 3)
        assert (one, other) == ([1], [2])


class TestAccess:
    @pytest.mark.parametrize(
        ("of", "key", "value"),
        [
            (A, "name", "Ada"),
            (A, "nothing", None),
            (AB, "since", 2020),
            ({"k": 1}, "k", 1),
            ({"k": 1}, "l", None),
            (None, "k", None),
            (Date(0), "year", 1970),
        ],
    )
    def test_a_property_of_an_element_map_or_null(self, of: Any, key: str, value: Any) -> None:
        assert values.property_of(of, key) == value

    @pytest.mark.parametrize("kind", ["boolean", "integer", "float", "string", "list", "path"])
    def test_what_has_no_properties_is_refused(self, kind: str) -> None:
        assert kind_of_fault(lambda: values.property_of(ONE_OF_EACH[kind], "k")) == "InvalidArgumentType"

    def test_who_asks_the_text_of_an_instant_for_its_year_is_told_how(self) -> None:
        with pytest.raises(Fault, match=r"datetime\(text\)"):
            values.property_of("2026-05-07T16:30:00.000Z", "year")

    @pytest.mark.parametrize(
        ("of", "at", "value"),
        [
            ([1, 2, 3], 0, 1),
            ([1, 2, 3], -1, 3),
            ([1, 2, 3], -3, 1),
            ([1, 2, 3], 3, None),
            ([1, 2, 3], -4, None),
            ([1], None, None),
            (None, 0, None),
            (None, "k", None),
            ({"k": 1}, "k", 1),
            ({"k": 1}, "K", None),
            ({"k": 1}, None, None),
            (A, "name", "Ada"),
            (AB, "since", 2020),
        ],
    )
    def test_an_item_by_its_place_or_key(self, of: Any, at: Any, value: Any) -> None:
        assert values.index(of, at) == value

    @pytest.mark.parametrize(
        ("of", "at", "kind"),
        [
            ([1], "0", "ListElementAccessByNonInteger"),
            ([1], 0.0, "ListElementAccessByNonInteger"),
            ([1], True, "ListElementAccessByNonInteger"),
            ({"k": 1}, 0, "MapElementAccessByNonString"),
            (A, 1.5, "MapElementAccessByNonString"),
            (100, 0, "InvalidArgumentType"),
            ("abc", 0, "InvalidArgumentType"),
            (True, None, "InvalidArgumentType"),
        ],
    )
    def test_a_place_or_key_of_a_wrong_kind_is_refused(self, of: Any, at: Any, kind: str) -> None:
        assert kind_of_fault(lambda: values.index(of, at)) == kind

    @pytest.mark.parametrize(
        ("ends", "part"),
        [
            ((1, 3), [2, 3]),
            ((values.ABSENT, 2), [1, 2]),
            ((3, values.ABSENT), [4, 5]),
            ((values.ABSENT, values.ABSENT), [1, 2, 3, 4, 5]),
            ((-3, -1), [3, 4]),
            ((-9, 2), [1, 2]),
            ((3, 99), [4, 5]),
            ((3, 1), []),
            ((0, 0), []),
            ((None, 2), None),
            ((1, None), None),
            ((None, None), None),
        ],
    )
    def test_a_part_of_a_list(self, ends: tuple[Any, Any], part: list[int] | None) -> None:
        assert values.slice_list([1, 2, 3, 4, 5], *ends) == part

    def test_a_part_of_null_is_null_and_of_anything_else_refused(self) -> None:
        assert values.slice_list(None, 0, 1) is None
        assert kind_of_fault(lambda: values.slice_list("abc", 0, 1)) == "InvalidArgumentType"
        assert kind_of_fault(lambda: values.slice_list([1], "0", 1)) == "InvalidArgumentType"
        assert kind_of_fault(lambda: values.slice_list([1], 0, 1.0)) == "InvalidArgumentType"

    def test_a_label_test_asks_a_node_for_all_labels_and_a_relationship_for_its_type(self) -> None:
        both = node("n", "A", "B")
        assert values.has_labels(both, ["A"]) is True
        assert values.has_labels(both, ["B", "A"]) is True
        assert values.has_labels(both, ["A", "C"]) is False
        assert values.has_labels(AB, ["KNOWS"]) is True
        assert values.has_labels(AB, ["KNOWS", "LIKES"]) is False
        assert values.has_labels(None, ["A"]) is None
        assert kind_of_fault(lambda: values.has_labels({"k": 1}, ["A"])) == "InvalidArgumentType"


class TestTexts:
    @pytest.mark.parametrize("ask", [values.starts_with, values.ends_with, values.contains])
    def test_every_text_begins_and_ends_with_nothing_and_contains_it(self, ask: Callable[[Any, Any], Any]) -> None:
        assert ask("abc", "") is True
        assert ask("abc", "abc") is True
        assert ask("abc", "ABC") is False
        assert ask("", "a") is False

    def test_where_a_part_stands_matters(self) -> None:
        asked = [[ask("abc", part) for part in ("ab", "b", "bc")] for ask in (values.starts_with, values.ends_with, values.contains)]
        assert asked == [[True, False, False], [False, False, True], [True, True, True]]

    @pytest.mark.parametrize("ask", [values.starts_with, values.ends_with, values.contains])
    def test_it_is_not_known_of_what_is_no_text(self, ask: Callable[[Any, Any], Any]) -> None:
        for kind, value in ONE_OF_EACH.items():
            if kind != "string":
                assert ask("abc", value) is None
                assert ask(value, "abc") is None

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("a", "a"),
            (True, "true"),
            (-1, "-1"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e21, "1.0E21"),
            (1.5e-7, "1.5E-7"),
            (NAN, "NaN"),
            (INF, "Infinity"),
            (-INF, "-Infinity"),
            (Date(0), "1970-01-01"),
            (DateTime(0), "1970-01-01T00:00:00.000Z"),
            (Duration(days=30), "P30D"),
        ],
    )
    def test_a_scalar_has_a_text(self, value: Any, text: str) -> None:
        assert values.to_text(value) == text


class TestRoom:
    def test_a_text_or_list_that_would_be_too_large_is_not_made(self) -> None:
        half, items = "x" * (MAX_TEXT // 2 + 1), [0] * (MAX_ITEMS // 2 + 1)
        with pytest.raises(ResourceExhausted) as text:
            values.add(half, half)
        assert text.value.details == {"budget": "text_characters", "limit": MAX_TEXT}
        with pytest.raises(ResourceExhausted) as too_many:
            values.add(items, items)
        assert too_many.value.details == {"budget": "list_items", "limit": MAX_ITEMS}
        with pytest.raises(ResourceExhausted):
            values.add([0] * MAX_ITEMS, 1)

    @pytest.mark.parametrize(
        "work",
        [
            lambda spend: values.add([0] * 800, [0] * 800, spend),
            lambda spend: values.add("x" * 6_400, "y" * 6_400, spend),
            lambda spend: values.equals([0] * 1_600, [0] * 1_600, spend),
            lambda spend: values.equals([[0] * 1_600], [[0] * 1_600], spend),
            lambda spend: values.equals({str(n): n for n in range(1_600)}, {str(n): n for n in range(1_600)}, spend),
            lambda spend: values.compare("<", [0] * 1_600, [0] * 1_600, spend),
            lambda spend: values.in_list(1, [0] * 1_600, spend),
            lambda spend: values.slice_list([0] * 1_600, spend=spend),
            lambda spend: values.order_key([0] * 200, spend),
            lambda spend: values.equivalence_key({str(n): n for n in range(200)}, spend),
        ],
    )
    def test_work_on_much_is_paid_for(self, work: Callable[[values.Spend], object]) -> None:
        context = Counting()
        work(context.spend)
        assert 200 <= context.spent <= 208
        poor = Counting(limit=199)
        with pytest.raises(ResourceExhausted):
            work(poor.spend)


WALKS: list[Callable[[Any, Any, values.Spend], object]] = [
    equals,
    lambda value, other, spend: in_list(value, [other], spend),
    lambda value, _other, spend: equivalence_key(value, spend),
    lambda value, _other, spend: order_key(value, spend),
]


@pytest.mark.parametrize(
    ("walk", "wrap"),
    [
        *itertools.product(WALKS, [lambda item: [item, item], lambda item: {"k": item, "l": item}]),
        (lambda value, other, spend: compare("<", value, other, spend), lambda item: [item, item]),
    ],
)
def test_a_value_that_holds_itself_doubled_again_and_again_is_not_walked_to_its_end(
    walk: Callable[[Any, Any, values.Spend], object], wrap: Callable[[Any], Any]
) -> None:
    one, other = 1, 1
    for _ in range(60):
        one, other = wrap(one), wrap(other)
    with pytest.raises(ResourceExhausted):
        walk(one, other, Counting(limit=10_000).spend)


def test_every_kind_has_a_name() -> None:
    assert {kind: values.type_name(value) for kind, value in ONE_OF_EACH.items()} == {kind: kind for kind in ONE_OF_EACH}


def test_a_message_names_the_kind_that_came_and_the_one_that_is_wanted() -> None:
    with pytest.raises(Fault) as refused:
        in_list(1, 2.5)
    assert refused.value.message == "IN takes a list on its right, not a float."
    assert operator.attrgetter("span")(refused.value) is None
