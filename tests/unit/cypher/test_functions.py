"""Functions give what openCypher says, null of null, and a fault of what they can't take."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.cypher.aggregates import AGGREGATES
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.functions import FUNCTIONS, REFUSED_FUNCTIONS, arguments_fault, lookup, nearest
from pulse_kg.cypher.kinds import BOOLEAN, FLOAT, INTEGER, STRING
from pulse_kg.cypher.temporal import DAY, Date, DateTime, Duration
from pulse_kg.cypher.values import KINDS, MAX_INTEGER, MAX_ITEMS, MAX_TEXT, MIN_INTEGER, Path, type_name
from pulse_kg.errors import ResourceExhausted
from tests.property.profile import fixed
from tests.support import cypher_values as some
from tests.support.cypher_values import AB, NOW, ONE_OF_EACH, A, B, Counting, edge, node

NAN, INF = math.nan, math.inf
NO_NUMBERS: list[Any] = ["1", True, [1], {}, A]
NO_TEXTS: list[Any] = [1, True, ["a"], {}, A]


def call(name: str, *arguments: Any, context: Counting | None = None) -> Any:
    function = lookup(name)
    assert function is not None, name
    assert function.takes(len(arguments)), f"{name} takes {function.arity}"
    return function.call(context or Counting(A, B), *arguments)


def kind_of_fault(name: str, *arguments: Any) -> str:
    with pytest.raises(Fault) as refused:
        call(name, *arguments)
    assert refused.value.phase == "run"
    return refused.value.kind


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isnan(one) and math.isnan(other) if math.isnan(one) or math.isnan(other) else repr(one) == repr(other)
    return type(one) is type(other) and bool(one == other)


def repr_start(value: object) -> str:
    return repr(value)[:20]


class TestTable:
    @pytest.mark.parametrize("name", ["toUpper", "TOUPPER", "toupper", "tOuPPer"])
    def test_a_name_may_be_written_in_any_case(self, name: str) -> None:
        assert call(name, "a") == "A"

    def test_an_unknown_name_has_no_function_but_near_ones(self) -> None:
        assert lookup("foo") is None
        assert nearest("toUper")[0] == "toUpper"
        assert nearest("lenght")[0] == "length"
        assert nearest("colect")[0] == "collect"
        assert nearest("percentile") != []
        assert nearest("xqzw") == []
        assert len(nearest("to")) <= 3
        assert nearest("x" * 100_000) == []

    def test_what_is_refused_is_no_function_and_says_why_or_what_to_write(self) -> None:
        assert not REFUSED_FUNCTIONS.keys() & (FUNCTIONS.keys() | AGGREGATES.keys())
        assert {"randomuuid", "localdatetime"} <= REFUSED_FUNCTIONS.keys()
        assert all(name == name.lower() and hint.endswith(".") for name, hint in REFUSED_FUNCTIONS.items())

    @pytest.mark.parametrize(
        "names",
        [
            "size length head last tail reverse range keys labels type id elementId properties startNode endNode nodes relationships rels",
            "toInteger toFloat toString toBoolean toIntegerOrNull toFloatOrNull toStringOrNull toBooleanOrNull",
            "toIntegerList toFloatList toStringList toBooleanList coalesce exists isEmpty nullIf label",
            "abs ceil floor round sign sqrt exp log log10 e pi sin cos tan cot asin acos atan atan2 degrees radians haversin isNaN",
            "substring left right replace split trim ltrim rtrim btrim toLower toUpper lower upper char_length character_length",
            "timestamp datetime date duration date.truncate datetime.truncate datetime.fromEpoch datetime.fromEpochMillis",
            "duration.between duration.inMonths duration.inDays duration.inSeconds",
        ],
    )
    def test_these_functions_are_there(self, names: str) -> None:
        assert [name for name in names.split() if lookup(name) is None] == []

    def test_the_clock_and_the_graph_are_used_only_where_it_is_said(self) -> None:
        assert {f.name for f in FUNCTIONS.values() if f.time_dependent} == {
            "timestamp",
            "datetime",
            "date",
            "date.truncate",
            "datetime.truncate",
        }
        assert {f.name for f in FUNCTIONS.values() if f.reads_graph} == {"startNode", "endNode"}

    @pytest.mark.parametrize(
        ("name", "given", "said"),
        [
            ("size", 2, "size() takes 1 argument, not 2."),
            ("substring", 1, "substring() takes 2 or 3 arguments, not 1."),
            ("coalesce", 0, "coalesce() takes at least 1 argument, not 0."),
            ("pi", 1, "pi() takes 0 arguments, not 1."),
        ],
    )
    def test_a_wrong_number_of_arguments_is_told(self, name: str, given: int, said: str) -> None:
        function = FUNCTIONS[name]
        assert not function.takes(given)
        fault = arguments_fault(function, [None] * given)
        assert (fault.kind, fault.phase, fault.message) == ("InvalidNumberOfArguments", "compile", said)

    def test_null_in_is_null_out_but_where_nulls_are_what_it_is_about(self) -> None:
        about_nulls = {"coalesce", "exists", "nullIf"}
        for function in FUNCTIONS.values():
            if function.low and function.name not in about_nulls:
                assert function.call(Counting(), *([None] * function.low)) is None, function.name

    def test_each_value_of_each_kind_is_taken_or_refused_with_a_fault(self) -> None:
        faults = []
        for function in FUNCTIONS.values():
            for arguments in itertools.product(ONE_OF_EACH.values(), repeat=min(2, function.high if function.high is not None else 2)):
                if function.takes(len(arguments)):
                    try:
                        function.call(Counting(A, B), *arguments)
                    except Fault as fault:
                        faults.append(fault)
        assert {fault.phase for fault in faults} == {"run"}
        assert {fault.kind for fault in faults} <= KINDS
        assert all(fault.message.endswith(".") for fault in faults)

    def test_the_kind_that_is_said_is_the_kind_that_comes(self) -> None:
        said = {STRING: "string", INTEGER: "integer", FLOAT: "float", BOOLEAN: "boolean"}
        for function in FUNCTIONS.values():
            for value in ONE_OF_EACH.values():
                if function.gives in said and function.takes(1):
                    try:
                        found = type_name(function.call(Counting(A, B), value))
                    except Fault:
                        continue
                    assert found in {"null", said[function.gives]}, function.name

    def test_what_is_of_a_wrong_kind_by_its_text_is_refused_in_a_run_too(self) -> None:
        for function in FUNCTIONS.values():
            for wanted in function.kinds[:1]:
                assert wanted is not None
                for kind, value in ONE_OF_EACH.items():
                    if kind not in wanted and kind != "null":
                        assert kind_of_fault(function.name, value) in {"InvalidArgumentType", "InvalidArgumentValue"}


class TestElements:
    def test_of_a_node(self) -> None:
        assert call("labels", node("n", "A", "B")) == ["A", "B"]
        assert call("labels", node("n")) == []
        assert call("label", A) == "Person"
        assert call("label", node("n")) is None
        assert call("id", A) == call("elementId", A) == "a"
        assert call("keys", A) == ["age", "name"]  # sorted, for stores hand properties over in any order
        assert call("properties", A) == {"name": "Ada", "age": 36}

    def test_of_a_relationship(self) -> None:
        assert call("type", AB) == call("label", AB) == "KNOWS"
        assert call("id", AB) == "ab"
        assert call("startNode", AB) is A
        assert call("endNode", AB) is B
        assert call("endNode", edge("x", "a", "gone")) is None
        assert call("keys", AB) == ["since"]
        assert call("properties", AB) == {"since": 2020}

    def test_of_a_path(self) -> None:
        path = Path((A, B, A), (AB, edge("ba", "b", "a")))
        assert call("length", path) == 2
        assert call("length", Path((A,), ())) == 0
        assert call("nodes", path) == [A, B, A]
        assert [each.edge_id for each in call("relationships", path)] == [each.edge_id for each in call("rels", path)] == ["ab", "ba"]

    def test_of_a_map(self) -> None:
        assert call("keys", {"k": 1, "l": None}) == ["k", "l"]
        assert call("properties", {"k": 1, "l": None}) == {"k": 1, "l": None}

    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("labels", AB, "InvalidArgumentValue"),
            ("labels", 1, "InvalidArgumentValue"),
            ("type", A, "InvalidArgumentValue"),
            ("type", "", "InvalidArgumentValue"),
            ("properties", 1, "InvalidArgumentType"),
            ("properties", "Cypher", "InvalidArgumentType"),
            ("keys", [1], "InvalidArgumentType"),
            ("length", "abc", "InvalidArgumentType"),
            ("nodes", [A], "InvalidArgumentValue"),
            ("startNode", A, "InvalidArgumentValue"),
        ],
    )
    def test_what_has_none_of_it_is_refused(self, name: str, value: Any, kind: str) -> None:
        assert kind_of_fault(name, value) == kind

    def test_size_and_length_point_at_each_other(self) -> None:
        with pytest.raises(Fault) as size:
            call("size", ONE_OF_EACH["path"])
        with pytest.raises(Fault) as length:
            call("length", [1])
        assert "length()" in str(size.value.hint)
        assert "size()" in str(length.value.hint)


class TestConversions:
    @pytest.mark.parametrize(
        ("value", "whole"),
        [
            (5, 5),
            (82.9, 82),
            (-82.9, -82),
            (True, 1),
            (False, 0),
            ("42", 42),
            ("-42", -42),
            ("+7", 7),
            (" 42 ", 42),
            ("1.7", 1),
            ("2e3", 2000),
            (".5", 0),
            ("007", 7),
            ("0" * 5_000 + "1", 1),
            ("9223372036854775807", MAX_INTEGER),
            ("-9223372036854775808", MIN_INTEGER),
            ("", None),
            ("foo", None),
            ("1_000", None),
            ("0x10", None),
            ("٣", None),
            ("1 2", None),
            ("inf", None),
            ("9" * 900_000 + "x", None),
        ],
        ids=repr_start,
    )
    def test_to_integer(self, value: Any, whole: int | None) -> None:
        assert same(call("toInteger", value), whole)

    @pytest.mark.parametrize(
        "value",
        ["9223372036854775808", "-9223372036854775809", "9" * 900_000, "1e400", 1e30, float(1 << 63), INF, NAN, "NaN"],
        ids=repr_start,
    )
    def test_what_no_integer_can_hold_is_refused(self, value: Any) -> None:
        assert kind_of_fault("toInteger", value) == "NumberOutOfRange"
        assert call("toIntegerOrNull", value) is None

    @pytest.mark.parametrize(
        ("value", "number"),
        [
            (1, 1.0),
            (1.5, 1.5),
            ("1.5", 1.5),
            ("5", 5.0),
            ("5.", 5.0),
            ("-1e-3", -0.001),
            ("NaN", NAN),
            ("-Infinity", -INF),
            ("nan", None),
            ("", None),
            ("0." + "3" * 900_000, 1 / 3),
            ("9" * 900_000, INF),
        ],
        ids=repr_start,
    )
    def test_to_float(self, value: Any, number: float | None) -> None:
        assert same(call("toFloat", value), number)

    @pytest.mark.parametrize(
        ("value", "truth"),
        [
            (True, True),
            ("true", True),
            ("FALSE", False),
            (" true ", True),
            (" tru ", None),
            ("f alse", None),
            ("1", None),
            (1, True),
            (0, False),
            (-3, True),
        ],
    )
    def test_to_boolean(self, value: Any, truth: bool | None) -> None:
        assert call("toBoolean", value) is truth

    @pytest.mark.parametrize(
        ("value", "text"),
        [("a", "a"), (42, "42"), (4.0, "4.0"), (False, "false"), (DateTime(0), "1970-01-01T00:00:00.000Z"), (Duration(months=14), "P1Y2M")],
    )
    def test_to_string(self, value: Any, text: str) -> None:
        assert call("toString", value) == text

    @pytest.mark.parametrize(
        ("name", "refused"),
        [
            ("toInteger", "list map node relationship path datetime date duration"),
            ("toFloat", "boolean list map node relationship path datetime date duration"),
            ("toBoolean", "float list map node relationship path datetime date duration"),
            ("toString", "list map node relationship path"),
        ],
    )
    def test_what_can_not_be_converted_is_refused_and_is_null_in_the_other_forms(self, name: str, refused: str) -> None:
        for kind, value in ONE_OF_EACH.items():
            if kind in refused.split():
                assert kind_of_fault(name, value) == "InvalidArgumentValue"
                assert call(f"{name}OrNull", value) is None
            elif kind != "null":
                call(name, value)
        assert call(f"{name}List", [None, {}, A]) == [None, None, None]
        assert kind_of_fault(f"{name}List", "abc") == "InvalidArgumentType"

    def test_a_list_is_converted_item_by_item(self) -> None:
        assert call("toIntegerList", ["1", 2.5, "x", True]) == [1, 2, None, 1]
        assert call("toStringList", [1, None, True]) == ["1", None, "true"]

    @fixed(200)
    @given(st.one_of(some.integers, some.floats, st.booleans()))
    def test_a_number_or_truth_comes_back_from_its_text(self, value: Any) -> None:
        back = {bool: "toBoolean", int: "toInteger", float: "toFloat"}[type(value)]
        assert same(call(back, call("toString", value)), value)


class TestNulls:
    def test_coalesce_gives_the_first_that_is_not_null(self) -> None:
        assert call("coalesce", None, None, 0, 1) == 0
        assert call("coalesce", None) is None
        assert call("coalesce", False, True) is False

    def test_null_if_gives_null_where_both_are_equal(self) -> None:
        assert call("nullIf", 1, 1.0) is None
        assert call("nullIf", 1, 2) == 1
        assert call("nullIf", 1, None) == 1
        assert call("nullIf", None, 1) is None

    def test_exists_asks_for_a_value(self) -> None:
        assert call("exists", None) is False
        assert call("exists", False) is True


class TestLists:
    @pytest.mark.parametrize(
        ("name", "arguments", "result"),
        [
            ("size", [[1, None]], 2),
            ("size", ["añb"], 3),
            ("size", [{"k": None}], 1),
            ("isEmpty", [""], True),
            ("isEmpty", [[]], True),
            ("isEmpty", [{"k": 1}], False),
            ("head", [[1, 2]], 1),
            ("head", [[]], None),
            ("last", [[1, 2]], 2),
            ("last", [[]], None),
            ("tail", [[1, 2, 3]], [2, 3]),
            ("tail", [[]], []),
            ("reverse", [[1, [2], None]], [None, [2], 1]),
            ("reverse", ["raksO"], "Oskar"),
            ("range", [0, 3], [0, 1, 2, 3]),
            ("range", [3, 3], [3]),
            ("range", [3, 0], []),
            ("range", [0, 10, 3], [0, 3, 6, 9]),
            ("range", [10, 0, -5], [10, 5, 0]),
            ("range", [0, 10, -1], []),
            ("range", [0, 1, MAX_INTEGER], [0]),
            ("range", [MIN_INTEGER, MIN_INTEGER + 1], [MIN_INTEGER, MIN_INTEGER + 1]),
        ],
    )
    def test_a_function_of_a_list_gives(self, name: str, arguments: list[Any], result: Any) -> None:
        assert call(name, *arguments) == result

    def test_a_step_of_nothing_and_bounds_that_are_no_integers_are_refused(self) -> None:
        assert kind_of_fault("range", 2, 8, 0) == "NumberOutOfRange"
        for wrong in (True, -1.1, 0.0, "xyz", [0], {"start": 0}):
            for place in range(3):
                bounds: list[Any] = [0, 1, 1]
                bounds[place] = wrong
                assert kind_of_fault("range", *bounds) == "InvalidArgumentType"

    @pytest.mark.parametrize(
        ("name", "wrong"), [("head", "abc"), ("last", {}), ("tail", "abc"), ("reverse", 1), ("size", 1), ("isEmpty", A)]
    )
    def test_what_is_no_list_is_refused(self, name: str, wrong: Any) -> None:
        assert kind_of_fault(name, wrong) == "InvalidArgumentType"

    def test_the_list_that_was_given_stays_as_it_was(self) -> None:
        items = [1, 2, 3]
        for name in ("reverse", "tail", "toStringList"):
            call(name, items)
        assert items == [1, 2, 3]


class TestNumbers:
    @pytest.mark.parametrize(
        ("name", "arguments", "result"),
        [
            ("abs", [-1], 1),
            ("abs", [-1.5], 1.5),
            ("sign", [-2.5], -1),
            ("sign", [0], 0),
            ("sign", [3], 1),
            ("ceil", [1.2], 2.0),
            ("ceil", [-1.2], -1.0),
            ("ceil", [3], 3.0),
            ("floor", [-1.2], -2.0),
            ("floor", [INF], INF),
            ("floor", [NAN], NAN),
            ("round", [2.5], 3.0),
            ("round", [-2.5], -2.0),
            ("round", [-1.51], -2.0),
            ("round", [0.49999999999999994], 0.0),
            ("round", [3], 3.0),
            ("round", [2.675, 2], 2.68),
            ("round", [-2.675, 2], -2.68),
            ("round", [3.14159, 3], 3.142),
            ("round", [1e300, 2], 1e300),
            ("round", [5e-324, 3], 0.0),
            ("round", [1.5, 400], 1.5),
            ("round", [NAN, 1], NAN),
            ("round", [1.249, 1, "UP"], 1.3),
            ("round", [1.251, 1, "DOWN"], 1.2),
            ("round", [-1.25, 1, "CEILING"], -1.2),
            ("round", [-1.25, 1, "FLOOR"], -1.3),
            ("round", [1.25, 1, "HALF_UP"], 1.3),
            ("round", [1.25, 1, "HALF_DOWN"], 1.2),
            ("round", [1.25, 1, "half_even"], 1.2),
            ("round", [2.5, 0, "HALF_EVEN"], 2.0),
            ("sqrt", [16], 4.0),
            ("sqrt", [-1], NAN),
            ("exp", [0], 1.0),
            ("exp", [1000], INF),
            ("log", [1], 0.0),
            ("log", [0], -INF),
            ("log", [-1], NAN),
            ("log10", [1000], 3.0),
            ("sin", [0], 0.0),
            ("sin", [INF], NAN),
            ("cos", [0], 1.0),
            ("tan", [0], 0.0),
            ("cot", [0], INF),
            ("asin", [2], NAN),
            ("acos", [1], 0.0),
            ("atan", [0], 0.0),
            ("atan2", [0, 1], 0.0),
            ("degrees", [math.pi], 180.0),
            ("radians", [180], math.pi),
            ("haversin", [math.pi], 1.0),
            ("e", [], math.e),
            ("pi", [], math.pi),
            ("rand", [], 0.25),
            ("isNaN", [NAN], True),
            ("isNaN", [1], False),
        ],
    )
    def test_a_function_of_a_number_gives(self, name: str, arguments: list[Any], result: Any) -> None:
        assert same(call(name, *arguments), result)

    def test_the_least_integer_has_no_absolute_value(self) -> None:
        assert kind_of_fault("abs", MIN_INTEGER) == "IntegerOverflow"

    @pytest.mark.parametrize(
        "name", "abs sign ceil floor round sqrt exp log log10 sin cos tan cot asin acos atan degrees radians haversin isNaN".split()
    )
    def test_what_is_no_number_is_refused(self, name: str) -> None:
        for wrong in NO_NUMBERS:
            assert kind_of_fault(name, wrong) == "InvalidArgumentType"

    @pytest.mark.parametrize(
        ("arguments", "kind"),
        [
            ((1.5, -1), "NegativeIntegerArgument"),
            ((1.5, 1.0), "InvalidArgumentType"),
            ((1.5, 1, "SIDEWAYS"), "InvalidArgumentValue"),
            ((1.5, 1, 2), "InvalidArgumentValue"),
        ],
    )
    def test_a_precision_or_mode_that_is_none_is_refused(self, arguments: tuple[Any, ...], kind: str) -> None:
        assert kind_of_fault("round", *arguments) == kind


class TestTexts:
    @pytest.mark.parametrize(
        ("name", "arguments", "result"),
        [
            ("toLower", ["ÄB"], "äb"),
            ("lower", ["AB"], "ab"),
            ("toUpper", ["straße"], "STRASSE"),
            ("upper", ["ab"], "AB"),
            ("char_length", ["añb"], 3),
            ("left", ["hello", 2], "he"),
            ("left", ["hello", 9], "hello"),
            ("left", ["hello", 0], ""),
            ("right", ["hello", 2], "lo"),
            ("right", ["hello", 9], "hello"),
            ("right", ["hello", 0], ""),
            ("substring", ["hello", 1], "ello"),
            ("substring", ["hello", 1, 3], "ell"),
            ("substring", ["hello", 9], ""),
            ("substring", ["hello", 0, 0], ""),
            ("replace", ["hello", "l", "L"], "heLLo"),
            ("replace", ["hello", "l", ""], "heo"),
            ("replace", ["hello", "x", "y"], "hello"),
            ("replace", ["hello", "l", "L", 1], "heLlo"),
            ("replace", ["hello", "l", "L", 0], "hello"),
            ("replace", ["ab", "", "-"], "-a-b-"),
            ("split", ["one,two", ","], ["one", "two"]),
            ("split", [",one,", ","], ["", "one", ""]),
            ("split", ["one", ","], ["one"]),
            ("split", ["", ","], [""]),
            ("split", ["abc", ""], ["a", "b", "c"]),
            ("split", ["a,b;c.d", [",", ";"]], ["a", "b", "c.d"]),
            ("split", ["a->b-c", ["-", "->"]], ["a", "b", "c"]),
            ("split", ["a,b", []], ["a,b"]),
            ("trim", ["  a b\t\n"], "a b"),
            ("btrim", [" a "], "a"),
            ("ltrim", [" a "], "a "),
            ("rtrim", [" a "], " a"),
            ("trim", ["xxayx", "xy"], "a"),
            ("ltrim", ["xxayx", "x"], "ayx"),
            ("rtrim", ["xxayx", "x"], "xxay"),
        ],
    )
    def test_a_function_of_a_text_gives(self, name: str, arguments: list[Any], result: Any) -> None:
        assert call(name, *arguments) == result

    @pytest.mark.parametrize("name", "toLower toUpper lower upper char_length trim ltrim rtrim".split())
    def test_what_is_no_text_is_refused(self, name: str) -> None:
        for wrong in NO_TEXTS:
            assert kind_of_fault(name, wrong) == "InvalidArgumentType"

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("left", ("a", -1)),
            ("right", ("a", -1)),
            ("substring", ("a", -1)),
            ("substring", ("a", 0, -1)),
            ("replace", ("a", "a", "b", -1)),
        ],
    )
    def test_a_negative_count_is_refused(self, name: str, arguments: tuple[Any, ...]) -> None:
        assert kind_of_fault(name, *arguments) == "NegativeIntegerArgument"

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("left", ("a", 1.0)),
            ("substring", ("a", "1")),
            ("replace", ("a", 1, "b")),
            ("split", ("a", 1)),
            ("split", ("a", [1])),
            ("trim", ("a", 1)),
        ],
    )
    def test_further_arguments_of_a_wrong_kind_are_refused(self, name: str, arguments: tuple[Any, ...]) -> None:
        assert kind_of_fault(name, *arguments) == "InvalidArgumentType"

    def test_a_text_is_split_at_no_more_than_a_hundred_separators(self) -> None:
        assert kind_of_fault("split", "abc", [str(n) for n in range(101)]) == "InvalidArgumentValue"


class TestTime:
    def test_without_an_argument_it_is_the_time_of_the_statement(self) -> None:
        assert call("timestamp") == NOW
        assert call("datetime") == DateTime(NOW)
        assert call("date") == Date(NOW // DAY)
        assert call("datetime.truncate", "hour").text == "2026-05-07T16:00:00.000Z"
        assert call("date.truncate", "year").text == "2026-01-01"

    def test_with_one_it_is_what_the_argument_says(self) -> None:
        assert call("timestamp", "1970-01-01T00:00:01Z") == call("datetime", "1970-01-01T00:00:01Z") == DateTime(1000)
        assert call("date", {"year": 1970}) == Date(0)
        assert call("duration", "P30D") == call("duration", {"days": 30}) == Duration(days=30)
        assert call("datetime.fromEpochMillis", 1000) == call("datetime.fromEpoch", 0, 1_000_000_000) == DateTime(1000)
        assert call("date.truncate", "month", "1970-01-31") == Date(0)

    def test_the_time_between_two_moments_and_its_single_parts(self) -> None:
        ends = "2026-01-31T12:00:00Z", "2026-03-01T13:00:00Z"
        assert call("duration.between", *ends).text == "P1M1DT1H"
        assert call("duration.inMonths", *ends).text == "P1M"
        assert call("duration.inDays", *ends).text == "P29D"
        assert call("duration.inSeconds", *ends).text == "PT697H"

    @pytest.mark.parametrize(("name", "wrong"), [("datetime", 5), ("date", True), ("duration", 5), ("datetime.fromEpochMillis", "5")])
    def test_another_kind_is_refused(self, name: str, wrong: Any) -> None:
        assert kind_of_fault(name, wrong) == "InvalidArgumentType"


class TestRoom:
    @pytest.mark.parametrize(
        ("name", "arguments", "budget", "limit"),
        [
            ("range", [0, 10**12], "list_items", MAX_ITEMS),
            ("range", [MIN_INTEGER, MAX_INTEGER], "list_items", MAX_ITEMS),
            ("replace", ["x" * 1_000, "x", "y" * 10_000], "text_characters", MAX_TEXT),
            ("replace", ["x" * 1_000, "", "y" * 10_000], "text_characters", MAX_TEXT),
            ("toUpper", ["ß" * 600_000], "text_characters", MAX_TEXT),
        ],
    )
    def test_what_would_be_too_large_is_not_made(self, name: str, arguments: list[Any], budget: str, limit: int) -> None:
        with pytest.raises(ResourceExhausted) as refused:
            call(name, *arguments)
        assert refused.value.details == {"budget": budget, "limit": limit}

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("range", [1, 1_000]),
            ("split", ["a" * 1_000, ""]),
            ("split", ["," * 999, ","]),
            ("replace", ["a" * 32_000, "a", "bb"]),
            ("toUpper", ["a" * 64_000]),
            ("left", ["a" * 64_000, 64_000]),
            ("reverse", ["a" * 64_000]),
            ("reverse", [[0] * 8_000]),
            ("tail", [[0] * 8_000]),
            ("keys", [{str(n): n for n in range(1_000)}]),
            ("toStringList", [[0] * 1_000]),
            ("nodes", [Path((A,) * 8_000, (AB,) * 7_999)]),
        ],
    )
    def test_what_is_made_is_paid_for(self, name: str, arguments: list[Any]) -> None:
        context = Counting()
        call(name, *arguments, context=context)
        assert 1_000 <= context.spent <= 2_015
        with pytest.raises(ResourceExhausted):
            call(name, *arguments, context=Counting(limit=999))
