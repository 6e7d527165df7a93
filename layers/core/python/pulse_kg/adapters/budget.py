"""How long a call may still take, for adapters that wait or try again.

A tool's call sets it at the outer edge; an adapter asks for it before it waits. Without one there are some seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

DEFAULT_SECONDS: Final = 10.0

_patience: ContextVar[float] = ContextVar("patience", default=DEFAULT_SECONDS)
_end: ContextVar[float | None] = ContextVar("end_of_call", default=None)


@contextmanager
def time_budget(seconds: float) -> Iterator[None]:
    """Bounds what is called inside it, in this thread; a shorter one around it stays in force."""
    end = time.monotonic() + seconds
    outer = _end.get()
    token = _end.set(end if outer is None else min(end, outer))
    try:
        yield
    finally:
        _end.reset(token)


def be_patient(seconds: float) -> None:
    """From here on each request may take that long where nobody set a bound: for programs that read whole boards at once."""
    _patience.set(seconds)


def seconds_left() -> float:
    """What is left for the running call, 0 or more; `DEFAULT_SECONDS`, or what `be_patient` said, where nobody set a bound."""
    end = _end.get()
    return _patience.get() if end is None else max(0.0, end - time.monotonic())
