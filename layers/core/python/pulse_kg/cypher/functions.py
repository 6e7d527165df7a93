"""The functions of a query, by name. Null in is null out, but where a function says otherwise; aggregates are in `aggregates`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, ROUND_UP, Context, Decimal
from heapq import heapify, heappop, heapreplace
from typing import Any, Final, Protocol

from pulse_kg.cypher import temporal
from pulse_kg.cypher.aggregates import AGGREGATES
from pulse_kg.cypher.faults import Fault, value_fault
from pulse_kg.cypher.kinds import ANY, BOOLEAN, FLOAT, INTEGER, MAP, NODE, RELATIONSHIPS, STRING, Kind, list_of
from pulse_kg.cypher.temporal import Date, DateTime, Duration
from pulse_kg.cypher.values import (
    MAX_INTEGER,
    MIN_INTEGER,
    Path,
    equals,
    integer,
    list_room,
    text_made,
    text_room,
    text_searched,
    to_text,
    wrong_type,
)
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.records import record
from pulse_kg.ports.graph_source import GraphEdge, GraphNode


class EvaluationContext(Protocol):
    """What a function may use beside its arguments."""

    @property
    def now(self) -> Instant:
        """The time at which the statement began."""
        ...

    def node(self, node_id: str) -> GraphNode | None:
        """A node of the board; None if it has none of that id."""
        ...

    def chance(self) -> float:
        """The next of the numbers from 0 to 1 that belong to the query's text."""
        ...

    def spend(self, amount: int, /) -> None:
        """Takes so much of the budget; see `values.Spend`.

        Raises:
            ResourceExhausted: There is not so much left.
        """
        ...


Kinds = frozenset[str] | None
"""Names of kinds, as `kinds.Kind` has them; None for any. Null is always taken."""


@record
class Function:
    """A function of the language.

    Attributes:
        name: As it is written in documentation; a query may write it in any case.
        low: The fewest arguments.
        high: The most; None for any number.
        call: Takes the context and the arguments' values, and raises a Fault for a value that it can't take.
        kinds: For each argument the kinds that it can be; an expression that is seen to be of another kind is a fault of the text.
        gives: The kind of its value, if that does not hang on the arguments.
        time_dependent: Whether what it gives may depend on the time of the statement, with few enough arguments.
        reads_graph: Whether it asks the context for nodes.
    """

    name: str
    low: int
    high: int | None
    call: Callable[..., Any]
    kinds: tuple[Kinds, ...] = ()
    gives: Kind = ANY
    time_dependent: bool = False
    reads_graph: bool = False

    def takes(self, arguments: int) -> bool:
        """Whether it can have so many arguments."""
        return self.low <= arguments and (self.high is None or arguments <= self.high)

    @property
    def arity(self) -> str:
        """How many arguments it takes, as in ``1``, ``2 or 3`` or ``at least 1``."""
        if self.high is None:
            return f"at least {self.low}"
        return " or ".join(str(count) for count in range(self.low, self.high + 1))


FUNCTIONS: dict[str, Function] = {}
"""By name in lower case."""

_GRAPH: Final = frozenset({"node", "relationship"})
_NODE: Final = frozenset({"node"})
_RELATIONSHIP: Final = frozenset({"relationship"})
_PATH: Final = frozenset({"path"})
_KEYED: Final = frozenset({"node", "relationship", "map"})
_SIZED: Final = frozenset({"list", "string", "map"})

_STRINGS: Final = list_of(STRING)
_TEMPORAL: Final = Kind("temporal")

_Call = Callable[..., Any]


def _function(
    names: str,
    low: int,
    high: int | None = -1,
    *,
    kinds: tuple[Kinds, ...] = (),
    gives: Kind = ANY,
    nulls: bool = False,
    time_dependent: bool = False,
    reads_graph: bool = False,
) -> Callable[[_Call], _Call]:
    """Enters a function under its names, the first of which is the one in documentation.

    Args:
        names: Separated by blanks.
        low: The fewest arguments.
        high: The most; as many as the fewest if it is not given.
        kinds: See Function.
        gives: See Function.
        nulls: Whether it wants to see nulls; without it a null among the arguments makes null of the call.
        time_dependent: See Function.
        reads_graph: See Function.
    """

    def enter(inner: _Call) -> _Call:
        call = inner if nulls or high == 0 else _unary(inner) if (low, high) == (1, -1) else _strict(inner)
        for name in names.split():
            FUNCTIONS[name.lower()] = Function(name, low, low if high == -1 else high, call, kinds, gives, time_dependent, reads_graph)
        return inner

    return enter


def _unary(inner: _Call) -> _Call:
    def call(context: EvaluationContext, value: Any) -> Any:
        return None if value is None else inner(context, value)

    return call


def _strict(inner: _Call) -> _Call:
    def call(context: EvaluationContext, *values: Any) -> Any:
        for value in values:
            if value is None:
                return None
        return inner(context, *values)

    return call


def lookup(name: str) -> Function | None:
    """The function of that name, in any case; None if there is none."""
    return FUNCTIONS.get(name.lower())


def nearest(name: str) -> list[str]:
    """Up to three names of functions and aggregates that look like this one, the likest first."""
    known = {lower: function.name for lower, function in FUNCTIONS.items()}
    known |= {lower: aggregate.name for lower, aggregate in AGGREGATES.items()}
    from difflib import get_close_matches

    return [known[lower] for lower in get_close_matches(name.lower()[:60], known, n=3, cutoff=0.6)]


_NOT_REPEATABLE: Final = "The same query gives the same answer here. rand() draws numbers, the same ones each time."
_ONE_TIME: Final = "The time of the statement is datetime(), date() or timestamp()."
_UTC_ONLY: Final = "Instants are in UTC: use datetime(…) or date(…)."
_COMPREHENSION: Final = "Use a list comprehension: [x IN list WHERE condition | expression]."

REFUSED_FUNCTIONS: Final[Mapping[str, str]] = {
    "random": _NOT_REPEATABLE,
    "randomuuid": _NOT_REPEATABLE,
    "gen_random_uuid": _NOT_REPEATABLE,
    "uuid": _NOT_REPEATABLE,
    **dict.fromkeys(
        [f"{kind}.{clock}" for kind in ("date", "datetime", "time") for clock in ("realtime", "transaction", "statement")], _ONE_TIME
    ),
    "current_date": _ONE_TIME,
    "current_timestamp": _ONE_TIME,
    "now": _ONE_TIME,
    "time": _UTC_ONLY,
    "localtime": _UTC_ONLY,
    "localdatetime": _UTC_ONLY,
    "list_transform": _COMPREHENSION,
    "list_filter": _COMPREHENSION,
    "list_reduce": "Use reduce(total = start, x IN list | expression).",
    "list_contains": "Use: x IN list.",
    "list_has": "Use: x IN list.",
    "list_len": "Use size(list).",
    "len": "Use size() for lists and texts, length() for paths.",
    "list_extract": "Use list[index], from 0.",
    "list_element": "Use list[index], from 0.",
    "list_slice": "Use list[from..to], from 0.",
    "list_concat": "Use: list + list.",
    "list_append": "Use: list + item.",
    "list_prepend": "Use: item + list.",
    "list_distinct": "Use UNWIND and collect(DISTINCT x).",
    "list_sort": "Use UNWIND, ORDER BY and collect(x).",
    "list_creation": "Write the list: [a, b].",
    "concat": "Use: text + text.",
    "contains": "Use: text CONTAINS part.",
    "starts_with": "Use: text STARTS WITH part.",
    "prefix": "Use: text STARTS WITH part.",
    "ends_with": "Use: text ENDS WITH part.",
    "suffix": "Use: text ENDS WITH part.",
    "regexp_matches": "Use: text =~ pattern, which matches the whole text.",
    "regexp_full_match": "Use: text =~ pattern.",
    "substr": "Use substring(text, start, length), from 0.",
    "string_split": "Use split(text, separator).",
    "cast": "Use toInteger(), toFloat(), toString() or toBoolean().",
    "ifnull": "Use coalesce(a, b).",
    "date_part": "Use a component, as in datetime(text).year.",
    "date_trunc": "Use date.truncate(unit, value) or datetime.truncate(unit, value).",
    "interval": "Use duration('P30D') or duration({days: 30}).",
    "epoch_ms": "Use datetime({epochMillis: number}), or datetime(text).epochMillis.",
    "is_trail": "Every match is a trail: no relationship comes twice.",
    "is_acyclic": "Compare size(nodes(path)) with the distinct ones.",
}
"""Names that other dialects have, or that give another answer each time, in lower case → what to write instead, or why not."""


# Elements of the graph.


def _bad(what: str, value: Any, wanted: str) -> Fault:
    """The fault of a value that only a run could show to be of a wrong kind, as the conformance kit names it."""
    return value_fault("InvalidArgumentValue", wrong_type(what, value, wanted).message)


@_function("labels", 1, kinds=(_NODE,), gives=_STRINGS)
def _labels(_: EvaluationContext, node: Any) -> list[str]:
    if type(node) is not GraphNode:
        raise _bad("labels()", node, "a node")
    return list(node.labels)


@_function("type", 1, kinds=(_RELATIONSHIP,), gives=STRING)
def _type(_: EvaluationContext, edge: Any) -> str:
    if type(edge) is not GraphEdge:
        raise _bad("type()", edge, "a relationship")
    return edge.rel_type


@_function("label", 1, kinds=(_GRAPH,), gives=STRING)
def _label(_: EvaluationContext, element: Any) -> str | None:
    if type(element) is GraphNode:
        return element.labels[0] if element.labels else None
    if type(element) is GraphEdge:
        return element.rel_type
    raise _bad("label()", element, "a node or a relationship")


@_function("id", 1, kinds=(_GRAPH,), gives=STRING)
@_function("elementId", 1, kinds=(_GRAPH,), gives=STRING)
def _id(_: EvaluationContext, element: Any) -> str:
    if type(element) is GraphNode:
        return element.node_id
    if type(element) is GraphEdge:
        return element.edge_id
    raise _bad("id()", element, "a node or a relationship")


@_function("startNode", 1, kinds=(_RELATIONSHIP,), gives=NODE, reads_graph=True)
def _start_node(context: EvaluationContext, edge: Any) -> GraphNode | None:
    if type(edge) is not GraphEdge:
        raise _bad("startNode()", edge, "a relationship")
    return context.node(edge.src)


@_function("endNode", 1, kinds=(_RELATIONSHIP,), gives=NODE, reads_graph=True)
def _end_node(context: EvaluationContext, edge: Any) -> GraphNode | None:
    if type(edge) is not GraphEdge:
        raise _bad("endNode()", edge, "a relationship")
    return context.node(edge.dst)


@_function("nodes", 1, kinds=(_PATH,), gives=list_of(NODE))
def _nodes(context: EvaluationContext, path: Any) -> list[GraphNode]:
    if type(path) is not Path:
        raise _bad("nodes()", path, "a path")
    list_room(len(path.nodes), context.spend, copied=True)
    return list(path.nodes)


@_function("relationships rels", 1, kinds=(_PATH,), gives=RELATIONSHIPS)
def _relationships(context: EvaluationContext, path: Any) -> list[GraphEdge]:
    if type(path) is not Path:
        raise _bad("relationships()", path, "a path")
    list_room(len(path.rels), context.spend, copied=True)
    return list(path.rels)


@_function("length", 1, kinds=(_PATH,), gives=INTEGER)
def _length(_: EvaluationContext, path: Any) -> int:
    if type(path) is Path:
        return len(path.rels)
    fault = wrong_type("length()", path, "a path")
    fault.hint = "The length of a list or text is size()."
    raise fault


@_function("properties", 1, kinds=(_KEYED,), gives=MAP)
def _properties(context: EvaluationContext, value: Any) -> dict[str, Any]:
    if type(value) is GraphNode or type(value) is GraphEdge:
        context.spend(1 + len(value.properties))
        return dict(sorted(value.properties.items()))  # by name, for stores differ in what they give first
    if type(value) is dict:
        return value
    raise wrong_type("properties()", value, "a node, a relationship or a map")


@_function("keys", 1, kinds=(_KEYED,), gives=_STRINGS)
def _keys(context: EvaluationContext, value: Any) -> list[str]:
    if type(value) is GraphNode or type(value) is GraphEdge:
        value = sorted(value.properties)
    elif type(value) is not dict:
        raise wrong_type("keys()", value, "a node, a relationship or a map")
    list_room(len(value), context.spend)
    return list(value)


# Nulls and conversions.


@_function("coalesce", 1, None, nulls=True)
def _coalesce(_: EvaluationContext, *values: Any) -> Any:
    return next((value for value in values if value is not None), None)


@_function("nullIf", 2, nulls=True)
def _null_if(context: EvaluationContext, value: Any, other: Any) -> Any:
    return None if equals(value, other, context.spend) else value


@_function("exists", 1, gives=BOOLEAN, nulls=True)
def _exists(_: EvaluationContext, value: Any) -> bool:
    return value is not None


# No part gives back what it took: the time to refuse a text stays linear in its length.
_INTEGER_TEXT: Final = re.compile(r"[+-]?\d++", re.ASCII)
_NUMBER_TEXT: Final = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
_DIGITS: Final = 20  # one more than a 64-bit integer has


def _float_of(text: str) -> float | None:
    """The float that a text is; None if it is none."""
    if _NUMBER_TEXT.fullmatch(text):
        return float(text)
    return {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}.get(text)


def _convert_integer(value: Any) -> int | None:
    kind = type(value)
    if kind is int:
        whole: int = value
        return whole
    if kind is bool:
        return int(value)
    if kind is str:
        text = value.strip()
        if _INTEGER_TEXT.fullmatch(text):
            # Python refuses to read thousands of digits; so many are too large in any case, but for leading zeros.
            sign, digits = ("-" if text[0] == "-" else ""), text.lstrip("+-").lstrip("0")
            whole = int(sign + (digits[:_DIGITS] or "0"))
            return _within(whole, value)
        value = _float_of(text)
        if value is None:
            return None
        kind = float
    if kind is float:
        return _within(math.trunc(value), value) if math.isfinite(value) else _within(None, value)
    raise _bad("toInteger()", value, "a number, a text or a boolean")


def _within(whole: int | None, value: object) -> int:
    if whole is None or not MIN_INTEGER <= whole <= MAX_INTEGER:
        raise value_fault("NumberOutOfRange", f"{str(value)[:60]} is outside of the 64-bit integers.")
    return whole


def _convert_float(value: Any) -> float | None:
    kind = type(value)
    if kind is float:
        number: float = value
        return number
    if kind is int:
        return float(value)
    if kind is str:
        return _float_of(value.strip())
    raise _bad("toFloat()", value, "a number or a text")


def _convert_boolean(value: Any) -> bool | None:
    kind = type(value)
    if kind is bool:
        known: bool = value
        return known
    if kind is str:
        return {"true": True, "false": False}.get(value.strip().lower())
    if kind is int:
        return bool(value != 0)
    raise _bad("toBoolean()", value, "a boolean, a text or an integer")


_TEXT_KINDS: Final = frozenset({str, bool, int, float, DateTime, Date, Duration})


def _convert_string(value: Any) -> str:
    if type(value) not in _TEXT_KINDS:
        raise _bad("toString()", value, "a text, a number, a boolean or a temporal value")
    return to_text(value)


def _enter_conversion(name: str, gives: Kind, convert: Callable[[Any], Any]) -> None:
    """Enters `toX`, and `toXOrNull` and `toXList`, which give null for what can't be converted."""

    def counted(context: EvaluationContext, value: Any) -> Any:
        if type(value) is str:
            text_searched(value, context.spend)
        made = convert(value)
        return made if type(made) is not str or made is value else text_made(made, context.spend)

    def or_null(context: EvaluationContext, value: Any) -> Any:
        try:
            return None if value is None else counted(context, value)
        except Fault:
            return None

    def for_list(context: EvaluationContext, items: Any) -> list[Any]:
        if type(items) is not list:
            raise wrong_type(f"{name}List()", items, "a list")
        list_room(len(items), context.spend)
        return [or_null(context, item) for item in items]

    _function(name, 1, gives=gives)(counted)
    _function(f"{name}OrNull", 1, gives=gives, nulls=True)(or_null)
    _function(f"{name}List", 1, gives=list_of(gives))(for_list)


_enter_conversion("toInteger", INTEGER, _convert_integer)
_enter_conversion("toFloat", FLOAT, _convert_float)
_enter_conversion("toBoolean", BOOLEAN, _convert_boolean)
_enter_conversion("toString", STRING, _convert_string)


# Lists.


def _list(what: str, value: Any) -> list[Any]:
    if type(value) is not list:
        raise wrong_type(what, value, "a list")
    return value


@_function("size", 1, kinds=(_SIZED,), gives=INTEGER)
def _size(_: EvaluationContext, value: Any) -> int:
    if type(value) is list or type(value) is str or type(value) is dict:
        return len(value)
    fault = wrong_type("size()", value, "a list, a text or a map")
    if type(value) is Path:
        fault.hint = "The length of a path is length()."
    raise fault


@_function("isEmpty", 1, kinds=(_SIZED,), gives=BOOLEAN)
def _is_empty(_: EvaluationContext, value: Any) -> bool:
    if type(value) is list or type(value) is str or type(value) is dict:
        return not value
    raise wrong_type("isEmpty()", value, "a list, a text or a map")


@_function("head", 1)
def _head(_: EvaluationContext, value: Any) -> Any:
    items = _list("head()", value)
    return items[0] if items else None


@_function("last", 1)
def _last(_: EvaluationContext, value: Any) -> Any:
    items = _list("last()", value)
    return items[-1] if items else None


@_function("tail", 1)
def _tail(context: EvaluationContext, value: Any) -> list[Any]:
    items = _list("tail()", value)
    list_room(len(items), context.spend, copied=True)
    return items[1:]


@_function("reverse", 1)
def _reverse(context: EvaluationContext, value: Any) -> list[Any] | str:
    if type(value) is str:
        return text_made(value[::-1], context.spend)
    if type(value) is not list:
        raise wrong_type("reverse()", value, "a list or a text")
    list_room(len(value), context.spend, copied=True)
    return value[::-1]


@_function("range", 2, 3, gives=list_of(INTEGER))
def _range(context: EvaluationContext, start: Any, end: Any, step: Any = 1) -> list[int]:
    for bound in (start, end, step):
        if type(bound) is not int:
            raise wrong_type("range()", bound, "integers")
    if step == 0:
        raise value_fault("NumberOutOfRange", "The step of range() can't be 0.")
    list_room(max(0, (end - start) // step + 1), context.spend)
    return list(range(start, end + (1 if step > 0 else -1), step))


# Numbers.


def _number(what: str, value: Any) -> float:
    """A number; as Python has it, an int is a float, too."""
    if type(value) is int or type(value) is float:
        return value
    raise wrong_type(what, value, "a number")


@_function("abs", 1)
def _abs(_: EvaluationContext, value: Any) -> float:
    number = _number("abs()", value)
    return integer(abs(number)) if type(number) is int else abs(number)


@_function("sign", 1, gives=INTEGER)
def _sign(_: EvaluationContext, value: Any) -> int:
    number = _number("sign()", value)
    return (number > 0) - (number < 0)


@_function("isNaN", 1, gives=BOOLEAN)
def _is_nan(_: EvaluationContext, value: Any) -> bool:
    return math.isnan(_number("isNaN()", value))


def _whole(rounded: Callable[[float], int], what: str, value: Any) -> float:
    number = _number(what, value)
    return float(rounded(number)) if math.isfinite(number) else float(number)


_function("ceil ceiling", 1, gives=FLOAT)(lambda _, value: _whole(math.ceil, "ceil()", value))
_function("floor", 1, gives=FLOAT)(lambda _, value: _whole(math.floor, "floor()", value))

_ROUNDING: Final[Mapping[str, str]] = {
    "UP": ROUND_UP,
    "DOWN": ROUND_DOWN,
    "CEILING": ROUND_CEILING,
    "FLOOR": ROUND_FLOOR,
    "HALF_UP": ROUND_HALF_UP,
    "HALF_DOWN": ROUND_HALF_DOWN,
    "HALF_EVEN": ROUND_HALF_EVEN,
}
_EXACT: Final = Context(prec=400)  # digits; more than a float has before and after the point


def _half_to_larger(number: float) -> int:
    below = math.floor(number)
    return below + 1 if number - below >= 0.5 else below  # noqa: PLR2004 - a half


@_function("round", 1, 3, gives=FLOAT)
def _round(_: EvaluationContext, value: Any, precision: Any = 0, mode: Any = None) -> float:
    """To so many digits after the point, halves away from zero; but to a whole number, without a mode, halves to the larger one."""
    number = _number("round()", value)
    if type(precision) is not int:
        raise wrong_type("The precision of round()", precision, "an integer")
    if precision < 0:
        raise value_fault("NegativeIntegerArgument", "The precision of round() can't be negative.")
    rounding = _ROUNDING.get(mode.upper()) if isinstance(mode, str) else None
    if mode is not None and rounding is None:
        raise value_fault("InvalidArgumentValue", f"The mode of round() is one of {', '.join(_ROUNDING)}.")
    if rounding is None and precision == 0:
        return _whole(_half_to_larger, "round()", number)
    if not math.isfinite(number):
        return float(number)
    # The digits that are shown are rounded, not those of the binary fraction: 2.675 to two digits is 2.68.
    digits = Decimal(repr(number))
    exponent = digits.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -precision:
        return float(number)
    return float(digits.quantize(Decimal(1).scaleb(-precision), rounding=rounding or ROUND_HALF_UP, context=_EXACT))


def _real(name: str, of: Callable[[float], float]) -> None:
    """Enters a function of a number: NaN outside of its domain, an infinity where the result is too large."""

    def call(_: EvaluationContext, value: Any) -> float:
        number = _number(f"{name}()", value)
        try:
            return of(number)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    _function(name, 1, gives=FLOAT)(call)


def _logarithm(of: Callable[[float], float]) -> Callable[[float], float]:
    return lambda number: -math.inf if number == 0 else of(number)


def _cotangent(number: float) -> float:
    tangent = math.tan(number)
    return math.copysign(math.inf, tangent) if tangent == 0 else 1 / tangent


for _name, _of in {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": _logarithm(math.log),
    "log10": _logarithm(math.log10),
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "cot": _cotangent,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "degrees": math.degrees,
    "radians": math.radians,
    "haversin": lambda number: (1 - math.cos(number)) / 2,
}.items():
    _real(_name, _of)


@_function("atan2", 2, gives=FLOAT)
def _atan2(_: EvaluationContext, y: Any, x: Any) -> float:
    return math.atan2(_number("atan2()", y), _number("atan2()", x))


_function("e", 0, gives=FLOAT)(lambda _: math.e)
_function("pi", 0, gives=FLOAT)(lambda _: math.pi)


# Texts.


def _text(what: str, value: Any) -> str:
    if type(value) is not str:
        raise wrong_type(what, value, "a text")
    return value


def _count(what: str, value: Any) -> int:
    """An integer from 0 on."""
    if type(value) is not int:
        raise wrong_type(what, value, "an integer")
    if value < 0:
        raise value_fault("NegativeIntegerArgument", f"{what} can't be negative.")
    return value


def _made(context: EvaluationContext, text: str) -> str:
    return text_made(text, context.spend)


@_function("toLower", 1, gives=STRING)
@_function("lower", 1, gives=STRING)
def _to_lower(context: EvaluationContext, value: Any) -> str:
    return _made(context, _text("toLower()", value).lower())


@_function("toUpper", 1, gives=STRING)
@_function("upper", 1, gives=STRING)
def _to_upper(context: EvaluationContext, value: Any) -> str:
    return _made(context, _text("toUpper()", value).upper())


@_function("char_length character_length", 1, gives=INTEGER)
def _char_length(_: EvaluationContext, value: Any) -> int:
    return len(_text("char_length()", value))


@_function("left", 2, gives=STRING)
def _left(context: EvaluationContext, value: Any, length: Any) -> str:
    return _made(context, _text("left()", value)[: _count("The length in left()", length)])


@_function("right", 2, gives=STRING)
def _right(context: EvaluationContext, value: Any, length: Any) -> str:
    text = _text("right()", value)
    return _made(context, text[max(0, len(text) - _count("The length in right()", length)) :])


@_function("substring", 2, 3, gives=STRING)
def _substring(context: EvaluationContext, value: Any, start: Any, length: Any = MAX_INTEGER) -> str:
    text, first = _text("substring()", value), _count("The start in substring()", start)
    return _made(context, text[first : first + _count("The length in substring()", length)])


@_function("replace", 3, 4, gives=STRING)
def _replace(context: EvaluationContext, value: Any, search: Any, by: Any, limit: Any = MAX_INTEGER) -> str:
    text, old, new = _text("replace()", value), _text("replace()", search), _text("replace()", by)
    text_searched(text, context.spend)
    times = min(text.count(old), _count("The limit of replace()", limit))
    text_room(len(text) + times * (len(new) - len(old)))
    return text_made(text.replace(old, new, times), context.spend)


_MOST_SEPARATORS: Final = 100
_SPLIT_UNIT: Final = 64  # bytes of the parts that count as much as one of them


@_function("split", 2, gives=_STRINGS)
def _split(context: EvaluationContext, value: Any, separator: Any) -> list[str]:
    """At each separator; an empty one is between all characters."""
    text = _text("split()", value)
    separators = [_text("split()", part) for part in (separator if type(separator) is list else [separator])]
    if not separators or not text:
        return [text]
    if len(separators) > _MOST_SEPARATORS:
        raise value_fault("InvalidArgumentValue", f"split() takes at most {_MOST_SEPARATORS} separators.")
    if "" in separators:
        list_room(len(text), context.spend)
        return [character for character in text if character not in separators]
    for part in separators:
        list_room(text.count(part), context.spend)
        text_searched(text, context.spend)
    context.spend(1 + len(text) // _SPLIT_UNIT)
    return text.split(separators[0]) if len(separators) == 1 else _split_at_any(text, separators)


def _split_at_any(text: str, separators: Iterable[str]) -> list[str]:
    """At the first of the separators, the longest of those that begin at one place; in time linear in the text for each of them."""
    nearest_first = [(text.find(part), -len(part), part) for part in dict.fromkeys(separators)]
    waiting = [place for place in nearest_first if place[0] >= 0]
    heapify(waiting)
    parts, after = [], 0
    while waiting:
        at, _, part = waiting[0]
        if at >= after:
            parts.append(text[after:at])
            after = at + len(part)
        following = text.find(part, after)
        if following < 0:
            heappop(waiting)
        else:
            heapreplace(waiting, (following, -len(part), part))
    return [*parts, text[after:]]


def _enter_trim(names: str, *, left: bool, right: bool) -> None:
    what = f"{names.partition(' ')[0]}()"

    def call(context: EvaluationContext, value: Any, characters: Any = None) -> str:
        text = _text(what, value)
        text_searched(text, context.spend)
        first, after = 0, len(text)
        if characters is None:
            first = after - len(text.lstrip()) if left else 0
            after = len(text.rstrip()) if right else after
        else:
            text_searched(_text(what, characters), context.spend)
            # Not str.strip, which looks through all the characters for each one of the text.
            cut = frozenset(characters)
            while left and first < after and text[first] in cut:
                first += 1
            while right and after > first and text[after - 1] in cut:
                after -= 1
        return _made(context, text[first:after])

    _function(names, 1, 2, gives=STRING)(call)


_enter_trim("trim btrim", left=True, right=True)
_enter_trim("ltrim", left=True, right=False)
_enter_trim("rtrim", left=False, right=True)


# Chance, which is the same each time.


@_function("rand", 0, gives=FLOAT)
def _rand(context: EvaluationContext) -> float:
    """From 0, inclusive, to 1, exclusive; a query that runs again draws the same numbers again."""
    return context.chance()


# Time.


@_function("timestamp", 0, 1, time_dependent=True)
def _timestamp(context: EvaluationContext, *values: Any) -> Instant | DateTime | None:
    """Without an argument epoch milliseconds; of a text the DateTime, as the dialects have it where instants are timestamps."""
    return temporal.make_datetime(values[0], context.now) if values else context.now


@_function("datetime", 0, 1, gives=_TEMPORAL, time_dependent=True)
def _datetime(context: EvaluationContext, *values: Any) -> DateTime | None:
    return temporal.make_datetime(values[0], context.now) if values else DateTime(context.now)


@_function("date", 0, 1, gives=_TEMPORAL, time_dependent=True)
def _date(context: EvaluationContext, *values: Any) -> Date | None:
    return temporal.make_date(values[0], context.now) if values else Date(context.now // temporal.DAY)


@_function("datetime.fromEpochMillis", 1, gives=_TEMPORAL)
def _from_epoch_millis(_: EvaluationContext, value: Any) -> DateTime:
    if type(value) is not int:
        raise wrong_type("datetime.fromEpochMillis()", value, "an integer")
    return temporal.date_time(value)


@_function("datetime.fromEpoch", 2, gives=_TEMPORAL)
def _from_epoch(_: EvaluationContext, seconds: Any, nanoseconds: Any) -> DateTime:
    if type(seconds) is not int or type(nanoseconds) is not int:
        raise wrong_type("datetime.fromEpoch()", seconds if type(seconds) is not int else nanoseconds, "integers")
    return temporal.date_time(seconds * temporal.SECOND + nanoseconds // 1_000_000)


@_function("date.truncate", 1, 2, gives=_TEMPORAL, time_dependent=True)
def _date_truncate(context: EvaluationContext, unit: Any, *values: Any) -> Date | None:
    return temporal.truncate_date(unit, values[0] if values else DateTime(context.now), context.now)


@_function("datetime.truncate", 1, 2, gives=_TEMPORAL, time_dependent=True)
def _datetime_truncate(context: EvaluationContext, unit: Any, *values: Any) -> DateTime | None:
    return temporal.truncate_datetime(unit, values[0] if values else DateTime(context.now), context.now)


_function("duration", 1, gives=_TEMPORAL)(lambda _, value: temporal.make_duration(value))
_function("duration.between", 2, gives=_TEMPORAL)(lambda _, start, end: temporal.between(start, end))
_function("duration.inMonths", 2, gives=_TEMPORAL)(lambda _, start, end: temporal.in_months(start, end))
_function("duration.inDays", 2, gives=_TEMPORAL)(lambda _, start, end: temporal.in_days(start, end))
_function("duration.inSeconds", 2, gives=_TEMPORAL)(lambda _, start, end: temporal.in_seconds(start, end))


def arguments_fault(function: Function, arguments: Sequence[object]) -> Fault:
    """The fault of a call with so many arguments, which the function can't take."""
    noun = "argument" if function.arity.endswith("1") else "arguments"
    return Fault("InvalidNumberOfArguments", f"{function.name}() takes {function.arity} {noun}, not {len(arguments)}.")
