"""Ways to look at a syntax tree as a whole: its parts, its shape without places, a copy with parts exchanged."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pulse_kg.cypher import ast


def parts_of(tree: Any) -> Iterator[Any]:
    """The tree's own node and all below it, each before what it holds."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting.extend(reversed(part))
        elif is_dataclass(part) and not isinstance(part, ast.Span | type):
            yield part
            waiting.extend(getattr(part, field.name) for field in reversed(fields(part)))


def shape_of(tree: Any) -> Hashable:
    """What two trees share that say the same in different places of a text."""
    if isinstance(tree, tuple):
        return tuple(shape_of(item) for item in tree)
    if isinstance(tree, ast.Constant):
        return (ast.Constant, type(tree.value), tree.value)
    if is_dataclass(tree):
        return (type(tree), *(shape_of(getattr(tree, field.name)) for field in fields(tree) if field.name != "span"))
    return tree  # type: ignore[no-any-return]


def exchanged(tree: Any, swap: Callable[[Any], Any]) -> Any:
    """A copy of the tree in which `swap` gave another part for some, from the outside inwards; where it gives None, the part stays."""
    if isinstance(tree, tuple):
        return tuple(exchanged(item, swap) for item in tree)
    if not is_dataclass(tree) or isinstance(tree, ast.Span | type):
        return tree
    other = swap(tree)
    if other is not None:
        return other
    return replace(tree, **{field.name: exchanged(getattr(tree, field.name), swap) for field in fields(tree) if field.name != "span"})
