"""Hostile arguments made from the schemas that the tools advertise, and what every refusal of them must look like."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pulse_kg.adapters.sqlite.store import SqliteStore
from pulse_kg.bootstrap import Container

Dump = Mapping[str, list[tuple[Any, ...]]]

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_OF_A_SESSION = "session_id IN (SELECT session_id FROM sessions WHERE board_id = ?)"


def dump(container: Container, board_id: str | None = None) -> Dump:
    """Every row of every table of the store, whatever tables it has; or those of one board, its candidates included."""
    store: Any = container.store
    if not isinstance(store, SqliteStore):
        from tests.support.served import dump_served

        return dump_served(store, board_id)
    with store._database.reading() as connection:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for (name,) in connection.execute(_TABLES).fetchall():
            columns = {column for _, column, *_ in connection.execute(f'PRAGMA table_info("{name}")')}
            condition, parameters = "1", tuple[str, ...]()
            if board_id is not None:
                parameters = (board_id,)
                condition = "board_id = ?" if "board_id" in columns else _OF_A_SESSION if "session_id" in columns else "0 = ?"
            rows = connection.execute(f'SELECT * FROM "{name}" WHERE {condition}', parameters)  # noqa: S608
            found[name] = sorted(rows.fetchall(), key=repr)
        return found


# What a refusal looks like.

MAX_ENVELOPE_BYTES = 64 * 1024
"""A refusal is for a model to read, however large the input was."""

_LEAKS = re.compile(
    r"/(?:home|root|work|tmp|var|usr|opt|etc|proc)/|[A-Za-z]:\\\\|\.py\b|\.db\b|Traceback|\bsqlite3?\b|pydantic|Errno|errno"
    r"|[A-Za-z]+Error\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|localhost|https?://|<class|object at 0x|SELECT |INSERT |UPDATE [a-z]+ SET",
)
_ENVELOPE = {"code", "status", "message", "details", "retryable", "correlation_id"}


def leaks_of(text: str) -> list[str]:
    """Paths, hosts, tracebacks and driver text in what a caller is told."""
    return [found.group(0) for found in _LEAKS.finditer(text)]


def fault_of_envelope(body: Mapping[str, Any], *, canaries: tuple[str, ...] = ()) -> str | None:
    """What is wrong with an error envelope itself; None for a sound one."""
    error = body.get("error")
    if set(body) != {"error"} or not isinstance(error, dict) or set(error) != _ENVELOPE:
        return f"it is no envelope: {str(body)[:200]}"
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (ValueError, TypeError) as failed:
        return f"it can't be written as JSON in UTF-8: {failed}"
    if size > MAX_ENVELOPE_BYTES:
        return f"it has {size} bytes"
    faults = {
        "it is an internal error": error["code"] == "internal_error",
        "its message is no sentence": not error["message"].strip().endswith((".", "?", "!")),
        "its status is none of a refusal": not 400 <= error["status"] < 600,
        f"it tells {leaks_of(text)}": bool(leaks_of(text)),
        f"it tells of another board: {text[:300]}": any(canary in text for canary in canaries),
    }
    return next((fault for fault, there in faults.items() if there), None)


# Hostile values.


@dataclass(frozen=True)
class Argument:
    """A place in the arguments of a tool.

    Attributes:
        path: As the envelope names it: ``source_ref.section``, ``agent_overrides[0].hint``.
        schema: What is advertised of it.
        required: Whether its object needs it.
    """

    path: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def kind(self) -> str:
        """Its JSON type."""
        kind = self.schema.get("type", "string")
        assert isinstance(kind, str)
        return kind


def arguments_of(schema: Mapping[str, Any], path: str = "") -> Iterator[Argument]:
    """Every argument that a schema describes, the inner ones of objects and lists too."""
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield Argument(here, inner, name in schema.get("required", ()))
        yield from arguments_of(inner, here)
        items = inner.get("items")
        if items is not None:
            yield Argument(f"{here}[0]", items, required=True)
            yield from arguments_of(items, f"{here}[0]")


def nested(levels: int, *, objects: bool = False) -> Any:
    """A value of so many levels."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value} if objects else [value]
    return value


TWENTY_MB = "x" * 20_000_000

HOSTILE_TEXT: Mapping[str, str] = {
    "NUL": "a\0b",
    "a C0 control": "a\x1b[31mb",
    "a carriage return": "a\rb",
    "a bell": "\x07",
    "DEL": "a\x7fb",
    "a C1 control": "a\x85b",
    "a one-byte CSI": "a\x9bb",
    "a lone high surrogate": "a\ud800",
    "a lone low surrogate": "\udfffa",
    "a pair the wrong way round": "\udc00\ud800",
}
DEEP: Mapping[str, Any] = {
    "33 lists": nested(33),
    "33 objects": nested(33, objects=True),
    "5,000 lists": nested(5_000),
    "5,000 objects": nested(5_000, objects=True),
}
OF_NO_USE: Mapping[str, Mapping[str, Any]] = {
    "string": {
        "a number": 7,
        "a fraction": 4.5,
        "a boolean": True,
        "an empty list": [],
        "a list": ["spec"],
        "an empty object": {},
        "an object": {"spec": "spec"},
        "20 MB": TWENTY_MB,
        **HOSTILE_TEXT,
        **DEEP,
    },
    "integer": {
        "a text": "5",
        "an empty text": "",
        "a boolean": True,
        "a fraction": 4.5,
        "1e999": math.inf,
        "minus 1e999": -math.inf,
        "no number": math.nan,
        "below zero": -1,
        "2**63": 2**63,
        "400 digits": 10**400,
        "5,000 digits": 10**5_000,
        "minus 5,000 digits": -(10**5_000),
        "a whole 1e300": 1e300,
        "a list": [5],
        "an object": {"five": 5},
        **DEEP,
    },
    "boolean": {
        "a text": "true",
        "an empty text": "",
        "a number": 2,
        "a fraction": 0.5,
        "a list": [True],
        "an object": {"a": True},
        **DEEP,
    },
    "object": {"a text": "x", "an empty text": "", "a number": 1, "a boolean": False, "a list": [], "a list of pairs": [["a", 1]], **DEEP},
    "array": {"a text": "x", "a number": 1, "a boolean": True, "an object": {"0": {}}, "5,000 lists": DEEP["5,000 lists"]},
}
"""JSON type → name → a value that no argument of that type takes."""

UNKNOWN_KEYS: Mapping[str, str] = {
    "another": "bord_id",
    "an empty one": "",
    "one with a dot": "a.b",
    "one like an index": "[0]",
    "a prototype": "__proto__",
    "an emoji": "🙂",
    "NUL": "a\0",
    "a lone surrogate": "\ud800",
    "a control": "\x1b",
    "a megabyte": "k" * 1_000_000,
}


def replaced(arguments: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of the arguments with another value at a place."""
    changed = copy.deepcopy(dict(arguments))
    here: Any = changed
    *steps, last = _steps(path)
    for step in steps:
        here = here[step]
    here[last] = value
    return changed


def removed(arguments: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A copy of the arguments without a place."""
    changed = copy.deepcopy(dict(arguments))
    here: Any = changed
    *steps, last = _steps(path)
    for step in steps:
        here = here[step]
    del here[last]
    return changed


def _steps(path: str) -> list[str | int]:
    parts = re.findall(r"\[(\d+)\]|([^.\[]+)", path)
    return [int(index) if index else name for index, name in parts]
