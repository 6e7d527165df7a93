"""Arguments of a call: from a decoded JSON value to a checked model, with every problem at once.

One model class yields both the advertised schema and the validation, so that neither can say more than the other. Two
courtesies go beyond the schema: null for an optional argument means absent, and a whole number may be written as 4.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from pulse_kg.domain import ids
from pulse_kg.domain.text import brief, text_fault
from pulse_kg.errors import InvalidArgument, Problem

MAX_DEPTH = 32
_MAX_PROBLEMS = 50  # more than that helps nobody to mend a call
_MAX_BITS = 1_023  # of an integer: what the floating-point numbers hold that most readers of JSON make of it


class ToolModel(BaseModel):
    """A model of the tools' edge: strict, closed, and tolerant of null where a value may be left out."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)  # built when used: a process often runs one tool

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        optional = {name for name, f in cls.model_fields.items() if not f.is_required()}
        return {k: v for k, v in value.items() if not (v is None and k in optional)}


class ToolInput(ToolModel):
    """The arguments of a tool."""

    @classmethod
    def read(cls, arguments: object) -> Self:
        """Checks arguments.

        Raises:
            InvalidArgument: With every problem of the input.
        """
        if not isinstance(arguments, dict):
            raise _refused([Problem("", "the arguments must be one JSON object")])
        problems = list(_faults(arguments, "", 1))
        if any(p.problem == _TOO_DEEP for p in problems):
            raise _refused(problems)
        try:
            model = cls.model_validate(arguments)
        except ValidationError as error:
            spoken = {p.path for p in problems}
            problems += [p for p in (_problem(e, cls) for e in error.errors(include_url=False)) if p.path not in spoken]
            raise _refused([*problems, *cls.more_problems(arguments)]) from None
        if problems:
            raise _refused(problems)
        return model

    @classmethod
    def more_problems(cls, arguments: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG003 - for models that can say more
        """Problems that the schema can't express, told beside those it found."""
        return []


def _refused(problems: list[Problem]) -> InvalidArgument:
    count = len(problems)
    shown = problems[:_MAX_PROBLEMS]
    one = f"'{shown[0].path}' {shown[0].problem}" if shown[0].path else shown[0].problem
    return InvalidArgument(
        f"{count} problem{'s' if count > 1 else ''} in the arguments, and nothing was stored: {one}"
        + ("; the others are in details.problems." if count > 1 else ". Correct it and call again."),
        shown,
    )


_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"


def _faults(value: object, path: str, depth: int) -> Iterator[Problem]:
    """What no string, number or nesting of an argument may be, whatever the tool."""
    if isinstance(value, str):
        fault = text_fault(value)
        if fault:
            yield Problem(path, fault)
    elif isinstance(value, float) and not math.isfinite(value):
        yield Problem(path, "must be a finite number")
    elif isinstance(value, int) and value.bit_length() > _MAX_BITS:
        yield Problem(path, "is too large a number")
    elif isinstance(value, dict | list) and depth > MAX_DEPTH:
        yield Problem(path, _TOO_DEEP)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]", depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            fault = text_fault(key)
            if fault:
                yield Problem(path, f"has a key that {fault}")
            else:
                yield from _faults(item, _under(path, key), depth + 1)


def _under(path: str, name: str) -> str:
    return f"{path}.{brief(name)}" if path else brief(name)


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path = f"{path}[{part}]" if isinstance(part, int) else _under(path, part)
    return path.encode("utf-8", "replace").decode()


_PATTERNS = {
    ids.BOARD_ID.pattern: "must be 1 to 64 characters of a-z, 0-9 and _, the first one no _",
    ids.NODE_ID.pattern: "must have the form of a node's id, such as dec_0123456789abcdef",
    ids.SOURCE_TYPE.pattern: "must be 1 to 32 characters of a-z, 0-9 and _, the first one a letter",
    ids.CONTENT_HASH.pattern: "must be 'sha256:' and 64 hex digits in lower case",
}
_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda _: "is required",
    "string_type": lambda _: "must be a string",
    "int_type": lambda _: "must be a whole number",
    "bool_type": lambda _: "must be true or false",
    "list_type": lambda _: "must be a list",
    "dict_type": lambda _: "must be an object",
    "model_type": lambda _: "must be an object",
    "model_attributes_type": lambda _: "must be an object",
    "string_too_long": lambda c: f"has more than the allowed {c['max_length']} characters",
    "string_too_short": lambda _: "must not be empty",
    "too_short": lambda c: f"must have {c['min_length']} or more entries",
    "too_long": lambda c: f"has more than the allowed {c['max_length']} entries",
    "greater_than_equal": lambda c: f"must be {c['ge']} or more",
    "less_than_equal": lambda c: f"must be {c['le']} or less",
    "literal_error": lambda c: "must be one of " + str(c["expected"]).replace("'", "").replace(" or ", ", "),
    "value_error": lambda c: str(c["error"]),
    "string_pattern_mismatch": lambda c: _PATTERNS.get(str(c["pattern"])[1:-1], f"must match {c['pattern']}"),
}
"""Pydantic's kind of error → our words for it."""


def _problem(error: ErrorDetails, model: type[ToolModel]) -> Problem:
    path, kind, context = _path(error["loc"]), error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        known = _model_at(model, error["loc"][:-1])
        where = "of this tool" if known is model else "here"
        return Problem(path, f"is not an argument {where}" + (f"; it takes {', '.join(known.model_fields)}" if known else ""))
    words = _WORDS.get(kind)
    return Problem(path, words(context) if words else error["msg"].replace("Input should", "should", 1))


def _model_at(model: type[ToolModel], location: tuple[int | str, ...]) -> type[ToolModel] | None:
    """The model that stands at a place of another; None where something else does."""
    for part in location:
        if isinstance(part, int):  # the list's own model was found with its name
            continue
        found = _models_in(model.model_fields[part].annotation) if part in model.model_fields else []
        if not found:
            return None
        model = found[0]
    return model


def _models_in(annotation: Any) -> list[type[ToolModel]]:
    if isinstance(annotation, type) and issubclass(annotation, ToolModel):
        return [annotation]
    return [m for part in get_args(annotation) for m in _models_in(part)]


def whole(value: object) -> object:
    """4.0 as 4: JSON Schema calls both an integer. For `BeforeValidator`, after the bounds."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
