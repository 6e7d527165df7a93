"""Frozen dataclasses that are cheap to make and to fill."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """Makes a class a dataclass with slots that is frozen for the type checker, and equal to nothing but itself unless it says how.

    For classes that are many, as those of a syntax tree, or have very many instances, as the nodes of a graph: `dataclass` takes three
    times as long to make one that watches itself at run time, and its constructor twice as long to get past its own guard.
    """
    made: Any = dataclass(eq=False, repr=False, slots=True)(cls)
    made.__repr__ = _shown
    return made  # type: ignore[no-any-return]


def _shown(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in fields(self))})"
