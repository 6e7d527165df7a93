"""`=~`: whole matches by RE2, whose time is linear in the text whatever the pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pulse_kg.cypher.faults import value_fault
from pulse_kg.cypher.values import Spend, no_spend, text_searched

MAX_PATTERN: Final = 1_000
"""The most characters of a pattern."""
_CACHED: Final = 64  # patterns
_MEMORY: Final = 4 << 20  # bytes that a compiled pattern may use


def matches(text: Any, pattern: Any, spend: Spend = no_spend) -> bool | None:
    """`text =~ pattern`: whether the whole text matches; null unless both are texts.

    The syntax is RE2's: no look-around, no back-references; ``(?i)`` ignores case, ``(?s)`` lets a dot match a newline.

    Raises:
        Fault: The pattern is too long, or none that RE2 can take.
    """
    if type(text) is not str or type(pattern) is not str:
        return None
    text_searched(text, spend)
    try:
        return _compiled(pattern).fullmatch(text) is not None
    except UnicodeEncodeError:
        return False  # a lone surrogate is no character, and so no pattern matches it


@lru_cache(_CACHED)
def _compiled(pattern: str) -> Any:
    # Not at the top: most queries have no pattern, and the library is binary code that a cold start would load.
    import re2

    if len(pattern) > MAX_PATTERN:
        raise value_fault("InvalidArgumentValue", f"The pattern of =~ has more than {MAX_PATTERN:,} characters.")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        said = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise value_fault(
            "InvalidArgumentValue",
            f"The pattern of =~ can't be read: {said[:200]}. It is in RE2 syntax, without look-around and back-references.",
        ) from error
