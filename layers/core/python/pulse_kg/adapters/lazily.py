"""Parts that are made when they are first used: a cold function pays only for the drivers that its tool needs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Lazily:
    """Stands for what `make` makes, which is made once, at the first use of any of its attributes; threads may share it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.RLock()
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._made is None:
                self._made = self._make()
        return getattr(self._made, name)


def made(part: Any) -> Any:
    """What a part stands for, None while it was not made."""
    return part._made if isinstance(part, Lazily) else part  # noqa: SLF001 - two halves of one thing
