"""The values of a query: how they are compared, ordered, told apart, and put together by operators.

A value is None (null), bool, int (64 bits), float, str, list, dict (a map), GraphNode, GraphEdge, Path, DateTime, Date or Duration.
Three relations differ on purpose: equality (`=`) has null for an unknown answer, equivalence (DISTINCT, grouping) and order (ORDER BY, min,
max) are total. What an operator can't take raises a Fault with a kind in the words of the conformance kit.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pulse_kg.cypher import temporal
from pulse_kg.cypher.faults import Fault, value_fault
from pulse_kg.cypher.temporal import Date, DateTime, Duration
from pulse_kg.errors import ResourceExhausted
from pulse_kg.ports.graph_source import GraphEdge, GraphNode

MAX_TEXT: Final = 1_000_000
"""The most characters of a text that a query may make."""
MAX_ITEMS: Final = 2_000_000
"""The most items of a list that a query may make."""
_TEXT_UNIT: Final = 64  # bytes of a text that is made that count as much as an item of a list
_SCAN_UNIT: Final = 1_024  # characters of a text that is searched that do
_KEY_UNIT: Final = 8  # items that take as much memory as the key of an empty list or map
_COPY_UNIT: Final = 8  # items that are only copied or looked at, and count as much

MIN_INTEGER: Final = -(1 << 63)
MAX_INTEGER: Final = (1 << 63) - 1

KINDS: Final = frozenset(
    """IntegerOverflow DivisionByZero NumberOutOfRange NegativeIntegerArgument InvalidArgumentType InvalidArgumentValue
    MapElementAccessByNonString ListElementAccessByNonInteger InvalidNumberOfArguments UnknownFunction""".split()
)
"""The kinds of the faults that values and functions raise."""

Spend = Callable[[int], None]
"""Takes so much of the budget of a run, or raises ResourceExhausted.

One for each item of a list or map that is made, for each 64 bytes of a text that is, for each 1,024 characters of one that is searched,
and for each 8 items that are copied or compared; and for each list or map that is gone through, for one of lists that share their items
is made with little and has no end.
"""


def no_spend(_amount: int) -> None:
    """Where nothing counts."""


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""An end of a slice that was not written, where null would make the slice null."""


@dataclass(frozen=True, slots=True)
class Path:
    """A walk through the graph: one node more than relationships, each relationship between its neighbours, in either direction."""

    nodes: tuple[GraphNode, ...]
    rels: tuple[GraphEdge, ...]


_TYPE_NAMES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "string",
    list: "list",
    dict: "map",
    GraphNode: "node",
    GraphEdge: "relationship",
    Path: "path",
    DateTime: "datetime",
    Date: "date",
    Duration: "duration",
}


def type_name(value: Any) -> str:
    """The kind of a value, as in ``integer`` or ``relationship``; ``null`` for null."""
    return _TYPE_NAMES[type(value)]


def wrong_type(what: str, value: Any, wanted: str) -> Fault:
    """The fault of an operand or argument of another kind than `wanted`."""
    return value_fault("InvalidArgumentType", f"{what} takes {wanted}, not {_article(type_name(value))}.")


def _article(name: str) -> str:
    return name if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def text_room(characters: int) -> None:
    """Asks for room for a text before it is made.

    Raises:
        ResourceExhausted: It would be longer than MAX_TEXT.
    """
    if characters > MAX_TEXT:
        raise ResourceExhausted(
            f"The query would make a text of more than {MAX_TEXT:,} characters.", {"budget": "text_characters", "limit": MAX_TEXT}
        )


def text_made(text: str, spend: Spend = no_spend) -> str:
    """Counts a text that was made, by the memory that it takes: a character has 1 to 4 bytes.

    Raises:
        ResourceExhausted: It is longer than MAX_TEXT, or the budget is spent.
    """
    text_room(len(text))
    spend(max(1, sys.getsizeof(text) // _TEXT_UNIT))
    return text


def text_searched(text: str, spend: Spend = no_spend) -> None:
    """Counts a text that is gone through."""
    if len(text) >= _SCAN_UNIT:
        spend(len(text) // _SCAN_UNIT)


def list_room(items: int, spend: Spend = no_spend, *, copied: bool = False) -> None:
    """Asks for room for a list before it is made; errors as for `text_room`, with MAX_ITEMS.

    Args:
        items: How many it will have.
        spend: Takes from the budget.
        copied: Whether the items are there already, in another list.
    """
    if items > MAX_ITEMS:
        raise ResourceExhausted(
            f"The query would make a list of more than {MAX_ITEMS:,} items.", {"budget": "list_items", "limit": MAX_ITEMS}
        )
    spend(1 + items // _COPY_UNIT if copied else items)


# Equality and comparison: three-valued.


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def equals(a: Any, b: Any, spend: Spend = no_spend) -> bool | None:
    """`a = b`: null if either is null or holds a null that matters; values of different kinds differ.

    An integer equals the float of exactly its value; NaN equals nothing; nodes and relationships are equal by their ids. An extension: a
    text that is an RFC 3339 date or instant equals the DateTime or Date of that instant, for that is how nodes hold their instants.
    """
    if a is None or b is None:
        return None
    kind, other = type(a), type(b)
    if kind is other:
        if kind is list:
            return _lists_equal(a, b, spend)
        if kind is dict:
            return _maps_equal(a, b, spend)
        return bool(a == b)
    if (kind is int or kind is float) and (other is int or other is float):
        return bool(a == b)
    if _meet_as_instants(kind, other):
        one, two = temporal.instant_in(a), temporal.instant_in(b)
        return one is not None and one == two
    return False


_MOMENTS: Final = frozenset({DateTime, Date})


def _meet_as_instants(kind: type, other: type) -> bool:
    return (kind in _MOMENTS and (other is str or other in _MOMENTS)) or (kind is str and other in _MOMENTS)


def _lists_equal(a: list[Any], b: list[Any], spend: Spend) -> bool | None:
    if len(a) != len(b):
        return False
    spend(1 + len(a) // _COPY_UNIT)
    answer: bool | None = True
    for one, two in zip(a, b, strict=True):
        same = equals(one, two, spend)
        if same is False:
            return False
        if same is None:
            answer = None
    return answer


def _maps_equal(a: dict[str, Any], b: dict[str, Any], spend: Spend) -> bool | None:
    if a.keys() != b.keys():
        return False
    spend(1 + len(a) // _COPY_UNIT)
    answer: bool | None = True
    for key, one in a.items():
        same = equals(one, b[key], spend)
        if same is False:
            return False
        if same is None:
            answer = None
    return answer


def compare(op: str, a: Any, b: Any, spend: Spend = no_spend) -> bool | None:
    """`a op b` for ``<``, ``<=``, ``>`` and ``>=``: null if either is null, or if there is no order between such kinds.

    Numbers, texts (by code point), booleans (false first), lists (by their first items that differ), DateTimes and Dates have one; NaN is
    neither less nor greater than a number. A text that is an RFC 3339 date or instant compares with a DateTime or Date as that instant.
    """
    if a is None or b is None:
        return None
    kind, other = type(a), type(b)
    if kind is not other:
        if not ((kind is int or kind is float) and (other is int or other is float)):
            if not _meet_as_instants(kind, other):
                return None
            a, b = temporal.instant_in(a), temporal.instant_in(b)
            if a is None or b is None:
                return None
    elif kind is list:
        return _lists_compare(op, a, b, spend)
    elif kind is DateTime or kind is Date:
        a, b = a.instant, b.instant
    elif kind not in _ORDERED:
        return None
    answer: bool = a < b if op == "<" else a <= b if op == "<=" else a > b if op == ">" else a >= b
    return answer


_ORDERED: Final = frozenset({int, float, str, bool})


def _lists_compare(op: str, a: list[Any], b: list[Any], spend: Spend) -> bool | None:
    spend(1 + min(len(a), len(b)) // _COPY_UNIT)
    for one, two in zip(a, b, strict=False):
        same = equals(one, two, spend)
        if same is None:
            return None
        if not same:
            return compare(op, one, two, spend)
    return compare(op, len(a), len(b))


def in_list(value: Any, items: Any, spend: Spend = no_spend) -> bool | None:
    """`value IN items`: true if one of them equals it, else null if that of one of them is unknown, else false.

    Raises:
        Fault: `items` is neither a list nor null.
    """
    if items is None:
        return None
    if type(items) is not list:
        raise wrong_type("IN", items, "a list on its right")
    spend(len(items) // _COPY_UNIT)
    answer: bool | None = False
    for item in items:
        same = equals(value, item, spend)
        if same:
            return True
        if same is None:
            answer = None
    return answer


# Equivalence and order: total.


class _Kind(Enum):
    BOOLEAN = 1
    LIST = 2
    MAP = 3
    NAN = 4


def equivalence_key(value: Any, spend: Spend = no_spend) -> Hashable:
    """A key that two values share if and only if DISTINCT and grouping take them for one: null is null, NaN is NaN, 1 is 1.0."""
    kind = type(value)
    if kind is bool:
        return (_Kind.BOOLEAN, value)
    if kind is float and value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return _Kind.NAN
    if kind is list:
        spend(_KEY_UNIT + len(value))
        return (_Kind.LIST, tuple([equivalence_key(item, spend) for item in value]))
    if kind is dict:
        spend(_KEY_UNIT + len(value))
        return (_Kind.MAP, frozenset([(key, equivalence_key(item, spend)) for key, item in value.items()]))
    key: Hashable = value
    return key


OrderKey = tuple[Any, ...]

_NAN_KEY: Final[OrderKey] = (11,)
_NULL_KEY: Final[OrderKey] = (12,)


def order_key(value: Any, spend: Spend = no_spend) -> OrderKey:
    """A key to sort by: map, node, relationship, list, path, DateTime, Date, Duration, text, boolean, number, NaN, null.

    Inside of a kind: maps by size, then keys, then values; nodes and relationships by id; lists by their first items that differ; paths
    by the ids along them; durations by their mean length, then by their parts; text by code point; false before true. Keys are equal
    where those of `equivalence_key` are.
    """
    kind = type(value)
    if kind is str:
        return (8, value)
    if kind is int:
        return (10, value)
    if value is None:
        return _NULL_KEY
    if kind is float:
        return (10, value) if value == value else _NAN_KEY  # noqa: PLR0124 - NaN alone differs from itself
    if kind is list:
        spend(_KEY_UNIT + len(value))
        return (3, [order_key(item, spend) for item in value])
    if kind is dict:
        spend(_KEY_UNIT + len(value))
        keys = sorted(value)
        return (0, len(keys), keys, [order_key(value[key], spend) for key in keys])
    return _ORDER_KEYS[kind](value)


def _path_key(value: Path) -> OrderKey:
    ids = [value.nodes[0].node_id]
    for rel, node in zip(value.rels, value.nodes[1:], strict=True):
        ids += (rel.edge_id, node.node_id)
    return (4, ids)


_ORDER_KEYS: Final[Mapping[type, Callable[[Any], OrderKey]]] = {
    GraphNode: lambda value: (1, value.node_id),
    GraphEdge: lambda value: (2, value.edge_id),
    Path: _path_key,
    DateTime: lambda value: (5, value.instant),
    Date: lambda value: (6, value.day),
    Duration: lambda value: (7, value.mean, value.months, value.days, value.milliseconds),
    bool: lambda value: (9, value),
}


# Arithmetic.


def integer(value: int) -> int:
    """The value if it is a 64-bit integer.

    Raises:
        Fault: It is not.
    """
    if MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    raise value_fault("IntegerOverflow", "The result is outside of the 64-bit integers; toFloat() of an operand gives an approximate one.")


def _operands(op: str, a: Any, b: Any) -> Fault:
    message = f"{_article(type_name(a)).capitalize()} can't stand before {op} and {_article(type_name(b))} after it."
    if {type(a), type(b)} == {str, Duration}:
        message += " Make an instant of the text with datetime(), or a text of the duration with toString()."
    elif op == "-" and {type(a), type(b)} <= {DateTime, Date, str}:
        message += " The time between two instants is duration.between(from, to)."
    return value_fault("InvalidArgumentType", message)


def add(a: Any, b: Any, spend: Spend = no_spend) -> Any:
    """`a + b`: of numbers, texts (and a text with a number or boolean), lists (or a list and an item), moments and durations.

    Raises:
        Fault: Other kinds; an integer that overflows.
        ResourceExhausted: The text or list would be too large, or the budget is spent.
    """
    if a is None or b is None:
        return None
    kind, other = type(a), type(b)
    if kind is int and other is int:
        return integer(a + b)
    if (kind is int or kind is float) and (other is int or other is float):
        return a + b
    if kind is list or other is list:
        left = a if kind is list else [a]
        right = b if other is list else [b]
        list_room(len(left) + len(right), spend, copied=True)
        return left + right
    if (kind is str or other is str) and kind in _TEXTUAL and other in _TEXTUAL:
        left_text, right_text = to_text(a), to_text(b)
        text_room(len(left_text) + len(right_text))
        return text_made(left_text + right_text, spend)
    if other is Duration:
        if kind is Duration:
            return temporal.add_durations(a, b)
        if kind in _MOMENTS:
            return temporal.shift(a, b)
    elif kind is Duration and other in _MOMENTS:
        return temporal.shift(b, a)
    raise _operands("+", a, b)


_TEXTUAL: Final = frozenset({str, int, float, bool})


def subtract(a: Any, b: Any) -> Any:
    """`a - b`: of numbers, of a moment or duration and a duration; errors as for `add`."""
    if a is None or b is None:
        return None
    kind, other = type(a), type(b)
    if kind is int and other is int:
        return integer(a - b)
    if _is_number(a) and _is_number(b):
        return a - b
    if other is Duration:
        if kind is Duration:
            return temporal.add_durations(a, temporal.negated(b))
        if kind in _MOMENTS:
            return temporal.shift(a, temporal.negated(b))
    raise _operands("-", a, b)


def multiply(a: Any, b: Any) -> Any:
    """`a * b`: of numbers, of a duration and a number; errors as for `add`."""
    if a is None or b is None:
        return None
    if type(a) is int and type(b) is int:
        return integer(a * b)
    if _is_number(a) and _is_number(b):
        return a * b
    if type(a) is Duration and _is_number(b):
        return temporal.scale(a, b)
    if _is_number(a) and type(b) is Duration:
        return temporal.scale(b, a)
    raise _operands("*", a, b)


def _division_by_zero() -> Fault:
    return value_fault("DivisionByZero", "An integer can't be divided by zero.")


def divide(a: Any, b: Any) -> Any:
    """`a / b`: of integers cut toward zero; a float by zero is an infinity or NaN.

    Raises:
        Fault: Other kinds than numbers, or a duration and a number; an integer by zero; an overflow.
    """
    if a is None or b is None:
        return None
    if type(a) is int and type(b) is int:
        if b == 0:
            raise _division_by_zero()
        quotient = abs(a) // abs(b)
        return integer(-quotient if (a < 0) is not (b < 0) else quotient)
    if _is_number(a) and _is_number(b):
        if b == 0:
            if a == 0 or a != a:  # noqa: PLR0124 - NaN alone differs from itself
                return math.nan
            return math.copysign(math.inf, a) * math.copysign(1.0, b)
        return a / b
    if type(a) is Duration and _is_number(b):
        if b == 0:
            raise value_fault("DivisionByZero", "A duration can't be divided by zero.")
        return temporal.scale(a, 1 / b)
    raise _operands("/", a, b)


def modulo(a: Any, b: Any) -> Any:
    """`a % b` with the sign of `a`; errors as for `divide`."""
    if a is None or b is None:
        return None
    if type(a) is int and type(b) is int:
        if b == 0:
            raise _division_by_zero()
        rest = abs(a) % abs(b)
        return -rest if a < 0 else rest
    if _is_number(a) and _is_number(b):
        return math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)
    raise _operands("%", a, b)


def power(a: Any, b: Any) -> Any:
    """`a ^ b`, a float; NaN where the result is no real number, an infinity where it is too large."""
    if a is None or b is None:
        return None
    if not (_is_number(a) and _is_number(b)):
        raise _operands("^", a, b)
    try:
        return math.pow(a, b)
    except OverflowError:
        odd = b == int(b) and int(b) % 2 == 1
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        if a != 0:
            return math.nan
        odd = b == int(b) and int(b) % 2 == 1
        return math.copysign(math.inf, a) if odd else math.inf


def negate(a: Any) -> Any:
    """`-a`; of a zero the one without a sign, as the conformance kit has it."""
    if a is None:
        return None
    if type(a) is int:
        return integer(-a)
    if type(a) is float:
        return 0.0 - a
    if type(a) is Duration:
        return temporal.negated(a)
    raise wrong_type("-", a, "a number")


def plus(a: Any) -> Any:
    """`+a`: the value, if there is a negative of it."""
    if a is None or _is_number(a) or type(a) is Duration:
        return a
    raise wrong_type("+", a, "a number")


# Access.


def property_of(value: Any, key: str) -> Any:
    """`value.key`: of a map, node, relationship or null, null if it has none; of a temporal value its component.

    Raises:
        Fault: The value has no properties; a temporal value has no such component.
    """
    kind = type(value)
    if kind is GraphNode or kind is GraphEdge:
        return value.properties.get(key)
    if value is None:
        return None
    if kind is dict:
        return value.get(key)
    if kind is DateTime or kind is Date or kind is Duration:
        return temporal.component(value, key)
    message = f"{_article(type_name(value)).capitalize()} has no property {key[:60]!r}; nodes, relationships and maps have properties."
    if kind is str and temporal.instant_of(value) is not None:
        message += " The components of an instant are those of datetime(text)."
    raise value_fault("InvalidArgumentType", message)


def index(of: Any, at: Any) -> Any:
    """`of[at]`: an item of a list (from its end if negative), a value of a map, a property; null if there is none.

    Raises:
        Fault: `of` has no items, or `at` is no integer for a list, no text for a map or element.
    """
    if of is None:
        return None
    kind = type(of)
    if kind is list:
        if type(at) is int:
            return of[at] if -len(of) <= at < len(of) else None
        if at is None:
            return None
        raise value_fault("ListElementAccessByNonInteger", f"An item of a list is taken by an integer, not by {_article(type_name(at))}.")
    if kind is dict or kind is GraphNode or kind is GraphEdge:
        if type(at) is str:
            return property_of(of, at)
        if at is None:
            return None
        raise value_fault("MapElementAccessByNonString", f"A property is taken by a string, not by {_article(type_name(at))}.")
    raise wrong_type("[ ]", of, "a list, map, node or relationship before it")


def slice_list(of: Any, low: Any = ABSENT, high: Any = ABSENT, spend: Spend = no_spend) -> list[Any] | None:
    """`of[low..high]`: from `low`, inclusive, to `high`, exclusive; negative ends count from the end; null if one of the three is.

    Args:
        of: The list.
        low: ABSENT for its beginning.
        high: ABSENT for its end.
        spend: Takes from the budget.

    Raises:
        Fault: No list, or an end that is no integer.
    """
    if of is None or low is None or high is None:
        return None
    if type(of) is not list:
        raise wrong_type("[ .. ]", of, "a list before it")
    for end in (low, high):
        if end is not ABSENT and type(end) is not int:
            raise wrong_type("[ .. ]", end, "integers")
    first, after, _ = slice(None if low is ABSENT else low, None if high is ABSENT else high).indices(len(of))
    list_room(max(0, after - first), spend, copied=True)
    return of[first:after]


def has_labels(value: Any, labels: Iterable[str]) -> bool | None:
    """`value:A:B`: whether a node has all of the labels, or a relationship that type; null of null.

    Raises:
        Fault: It is neither.
    """
    if type(value) is GraphNode:
        return all(label in value.labels for label in labels)
    if type(value) is GraphEdge:
        return all(label == value.rel_type for label in labels)
    if value is None:
        return None
    raise wrong_type("A label test", value, "a node or a relationship")


# Text.


def starts_with(a: Any, b: Any) -> bool | None:
    """`a STARTS WITH b`; null unless both are texts."""
    return a.startswith(b) if type(a) is str and type(b) is str else None


def ends_with(a: Any, b: Any) -> bool | None:
    """`a ENDS WITH b`; null unless both are texts."""
    return a.endswith(b) if type(a) is str and type(b) is str else None


def contains(a: Any, b: Any, spend: Spend = no_spend) -> bool | None:
    """`a CONTAINS b`; null unless both are texts."""
    if type(a) is not str or type(b) is not str:
        return None
    text_searched(a, spend)
    return b in a


def float_text(value: float) -> str:
    """A float as text: the shortest digits that give it back, ``1.0E21`` beyond 16 of them, ``NaN``, ``Infinity``, ``-Infinity``."""
    if math.isfinite(value):
        mantissa, exponent, power_of_ten = repr(value).partition("e")
        if not exponent:
            return mantissa
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(power_of_ten)}"
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def to_text(value: Any) -> str:
    """The text of a text, boolean, number or temporal value."""
    kind = type(value)
    if kind is str:
        text: str = value
        return text
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return float_text(value)
    return str(value) if kind is int else str(value.text)
