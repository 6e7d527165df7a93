"""`=~`: whole matches by RE2, whose time is linear in the text whatever the pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pulse_kg.cypher.faults import value_fault
from pulse_kg.cypher.values import Spend, no_spend
from pulse_kg.errors import ResourceExhausted

MAX_PATTERN: Final = 1_000
"""The most characters of a pattern."""
MAX_WORK: Final = 64_000_000
"""The most instructions of a pattern times characters of a text: where the pattern has too many states, each pair may cost 10 ns."""
_CACHED: Final = 64  # patterns
_PROGRAM_UNIT: Final = 256  # instructions whose making counts as much as an item of a list that is made
_WORK_UNIT: Final = 65_536  # pairs of instruction and character that do
_MEMORY: Final = 4 << 20  # bytes that a compiled pattern may use


def matches(text: Any, pattern: Any, spend: Spend = no_spend) -> bool | None:
    """`text =~ pattern`: whether the whole text matches; null unless both are texts.

    The syntax is RE2's: no look-around, no back-references; ``(?i)`` ignores case, ``(?s)`` lets a dot match a newline.

    Raises:
        Fault: The pattern is too long, or none that RE2 can take.
        ResourceExhausted: Text and pattern are too large for each other, or the budget is spent.
    """
    if type(text) is not str or type(pattern) is not str:
        return None
    try:
        compiled = _compiled(pattern)
        work = compiled.programsize * (1 + len(text))
        if work > MAX_WORK:
            raise ResourceExhausted(
                f"The pattern of =~ is too large for a text of {len(text):,} characters. Repeat less in it, or match a part of the text.",
                {"budget": "pattern_work", "limit": MAX_WORK},
            )
        spend(compiled.programsize // _PROGRAM_UNIT + work // _WORK_UNIT)
        return compiled.fullmatch(text) is not None
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
