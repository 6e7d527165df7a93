"""What is known of a value before a run: its kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of values.

    Attributes:
        name: As in ``integer``. "any" is everything; "data" is everything that a property can hold, so no part of the graph.
        item: Of a list, what its items are.
    """

    name: str
    item: Kind | None = None

    def __str__(self) -> str:
        """For a message, with its article."""
        if self.item is not None and self.item.name not in {"any", "data", "null"}:
            return f"a list of {self.item.name}s"
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"


ANY: Final = Kind("any")
DATA: Final = Kind("data")
NULL: Final = Kind("null")
BOOLEAN: Final = Kind("boolean")
INTEGER: Final = Kind("integer")
FLOAT: Final = Kind("float")
STRING: Final = Kind("string")
MAP: Final = Kind("map")
NODE: Final = Kind("node")
RELATIONSHIP: Final = Kind("relationship")
PATH: Final = Kind("path")
RELATIONSHIPS: Final = Kind("list", RELATIONSHIP)

_OPEN: Final = frozenset({"any", "null"})
_ELEMENTS: Final = frozenset({"node", "relationship", "path"})
_ADDED: Final = frozenset({"boolean", "node", "relationship", "path", "map"})
_NOT_NUMBERS: Final = _ADDED | {"string", "list"}
_PROPERTIED: Final = frozenset({"map", "node", "relationship", "temporal"})


def list_of(item: Kind) -> Kind:
    """A list of values of this kind."""
    return Kind("list", item)


def could_be(kind: Kind, *names: str) -> bool:
    """Whether a value of this kind may be of one of the named kinds; null may be of every kind."""
    if kind.name in _OPEN or kind.name in names:
        return True
    if kind.name == "data":
        return any(name not in _ELEMENTS for name in names)
    return kind.name in {"integer", "float"} and "number" in names


def could_be_a(kind: Kind, wanted: Kind) -> bool:
    """Whether a value may be of a kind, its items looked at too."""
    if not could_be(kind, wanted.name):
        return False
    return kind.item is None or wanted.item is None or kind.name in _OPEN or could_be_a(kind.item, wanted.item)


def could_be_a_number(kind: Kind) -> bool:
    """Whether arithmetic may take it: a number, or a temporal value."""
    return kind.name not in _NOT_NUMBERS


def could_be_added(kind: Kind) -> bool:
    """Whether `+` may take it, when no list is beside it."""
    return kind.name not in _ADDED


def has_properties(kind: Kind) -> bool:
    """Whether `.key` may be asked of it."""
    return could_be(kind, *_PROPERTIED)


def join(kinds: Iterable[Kind]) -> Kind:
    """The kind of a value that is of one of these kinds; null has no say."""
    known = {kind for kind in kinds if kind.name != "null"}
    if not known:
        return NULL
    if len(known) == 1:
        return known.pop()
    if all(kind.name == "list" for kind in known):
        return list_of(join(kind.item or ANY for kind in known))
    return ANY if any(holds_elements(kind) for kind in known) else DATA


def holds_elements(kind: Kind) -> bool:
    """Whether a value of this kind may be, or hold, a part of the graph."""
    if kind.name == "list":
        return kind.item is None or holds_elements(kind.item)
    return kind.name in {"any", "map", *_ELEMENTS}


def kind_of(value: Any) -> Kind:
    """The kind of a constant."""
    return {type(None): NULL, bool: BOOLEAN, int: INTEGER, float: FLOAT, str: STRING}[type(value)]
