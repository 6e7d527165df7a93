"""Many results of one request, kept outside of memory until they are wanted one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, Self

from pulse_kg.adapters.jsontext import from_json, to_json

IN_MEMORY_BYTES: Final = 8 * 1024 * 1024
"""Up to this size there is no file; a few thousand nodes."""


class Spool:
    """Takes results as they come and gives them back in the order of a key: in memory are the keys only.

    Args:
        key: Of a result.
    """

    def __init__(self, key: Callable[[Any], str]) -> None:
        self._key = key
        self._places: list[tuple[str, int]] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def emptied(self) -> Self:
        """Itself, without what a try that failed had left."""
        self._places.clear()
        self._file.seek(0)
        self._file.truncate()
        return self

    def extend(self, results: list[Any], /) -> None:
        """Keeps maps, lists, strings, numbers and booleans."""
        for result in results:
            self._places.append((self._key(result), self._file.tell()))
            self._file.write(to_json(result).encode() + b"\n")

    def in_order(self) -> Iterator[Any]:
        """All that was kept, by key; after it no more is taken."""
        for _, place in sorted(self._places):
            self._file.seek(place)
            yield from_json(self._file.readline().decode())
