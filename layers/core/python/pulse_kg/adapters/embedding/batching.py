"""What the embedders share: the time left, texts a tokenizer can take, and batches of texts of like length."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pulse_kg.errors import EmbedderTimeout

MAX_TOKENS = 256
"""Tokens the model reads of a text, its two marks included: what all-MiniLM-L6-v2 was tuned with."""

SHORT_TOKENS = 64
"""Up to this length a batch is bound by the calls, above by the arithmetic and the memory."""

SHORT_BATCH = 32
LONG_BATCH = 8


class Deadline:
    """The moment at which a call has no time left."""

    def __init__(self, timeout_seconds: float | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends_at = None if timeout_seconds is None else monotonic() + timeout_seconds

    def check(self) -> None:
        """Returns while there is time.

        Raises:
            EmbedderTimeout: The time is over.
        """
        if self._ends_at is not None and self._monotonic() >= self._ends_at:
            raise EmbedderTimeout


def readable(text: str) -> str:
    r"""`text` with each lone surrogate (as JSON's ``"\ud800"`` makes one) replaced by U+FFFD: tokenizers take UTF-8 only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def plan_batches(token_counts: Sequence[int]) -> list[list[int]]:
    """Groups positions of `token_counts` so that little is padded and a batch stays small in memory.

    Returns:
        Each position once, shortest text first; a batch holds up to 32 texts of at most 64 tokens, or up to 8 longer ones.
    """
    batches: list[list[int]] = []
    limit = 0
    for position in sorted(range(len(token_counts)), key=token_counts.__getitem__):
        room = SHORT_BATCH if token_counts[position] <= SHORT_TOKENS else LONG_BATCH
        if room != limit or len(batches[-1]) == room:
            batches.append([])
            limit = room
        batches[-1].append(position)
    return batches
