"""JSON of any size in items of at most 400 KB: compressed, and in parts where it has to be."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any, Final

from pulse_kg.adapters.jsontext import from_json, to_json

INLINE_BYTES: Final = 100_000
"""What is kept in the item that refers to it; several of them fit in one item, and in one transaction."""
PART_BYTES: Final = 350_000


def packed(value: object) -> bytes:
    """The bytes of a JSON value; equal values give equal bytes."""
    return zlib.compress(to_json(value).encode(), 6)


def unpacked(content: bytes) -> Any:
    """The inverse of `packed`."""
    return from_json(zlib.decompress(content).decode())


def parts_of(content: bytes) -> list[bytes]:
    """The content cut in parts of at most `PART_BYTES`."""
    return [content[start : start + PART_BYTES] for start in range(0, len(content), PART_BYTES)]


def digest(content: bytes) -> str:
    """SHA-256 of the content, 64 hex digits."""
    return hashlib.sha256(content).hexdigest()
