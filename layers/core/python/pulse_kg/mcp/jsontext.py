"""JSON in and out, stricter on the way in than the standard library.

Refused on the way in: bytes that are not UTF-8, numbers that JSON has no notation for (or that overflow to infinity),
a name that occurs twice in one object (two readers of one request must not see two requests), and nesting beyond
`MAX_NESTING`.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

MAX_NESTING: Final = 100
"""Levels of objects and arrays. Far above any real argument, and far enough below the interpreter's recursion limit
that later steps can walk the value recursively."""


class MalformedJson(ValueError):
    """The bytes are not one JSON text.

    Attributes:
        reason: What is wrong, without any part of the text itself.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def decode(data: bytes) -> Any:
    """The value of a JSON text in UTF-8, with or without a byte order mark.

    Lone surrogates, which JSON can spell with escapes, come through as they are: `encode` can write them.

    Raises:
        MalformedJson: It is not one JSON text, or one of those refused here.
    """
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
        value = _DECODER.decode(text)
    except MalformedJson:
        raise
    except UnicodeDecodeError:
        raise MalformedJson("the bytes are not UTF-8") from None
    except RecursionError:
        raise MalformedJson(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}") from None
    except ValueError:
        # The interpreter's own limit on the digits of an integer.
        raise MalformedJson("a number has too many digits") from None
    # Most texts have fewer brackets than levels are allowed, which needs no walk to see.
    if text.count("{") + text.count("[") > MAX_NESTING and _is_deeper_than(value, MAX_NESTING):
        raise MalformedJson(_TOO_DEEP)
    return value


def encode(value: object) -> bytes:
    """The compact JSON text of a value, in UTF-8.

    Raises:
        ValueError: The value holds a number that is not finite.
        TypeError: It holds something that JSON has no notation for.
    """
    text = encode_text(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # A lone surrogate, echoed from a request: only an escape can carry it.
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def encode_text(value: object) -> str:
    """Like `encode`, as text, which may hold lone surrogates if the value does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


_TOO_DEEP: Final = f"it is nested deeper than {MAX_NESTING} levels"


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise MalformedJson("a number is too large")
    return number


def _no_constant(_literal: str) -> float:
    raise MalformedJson("NaN and Infinity are not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise MalformedJson("a name occurs twice in one object")
    return result


def _is_deeper_than(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        below: list[object] = []
        for item in level:
            members = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
            below.extend(member for member in members if isinstance(member, dict | list))
        if not below:
            return False
        level = below
    return True


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_unique)
