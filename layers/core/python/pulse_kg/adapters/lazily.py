"""A driver's client that is made when it is first used: making one takes a cold function a tenth of a second."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Lazily:
    """Stands for what `make` makes, which is made at the first use of any of its attributes."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._made is None:
                self._made = self._make()
        return getattr(self._made, name)
