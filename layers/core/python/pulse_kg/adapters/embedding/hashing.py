"""An embedder without a model, for tests: texts that share words and parts of words have similar vectors."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from pulse_kg.adapters.embedding.batching import MAX_TOKENS, Deadline, readable
from pulse_kg.domain.model import TextVector
from pulse_kg.ports.embedder import ModelInfo

_WORD = re.compile(r"\w+")
_TRIGRAM_WEIGHT = 0.5


class HashingEmbedder:
    """Counts hashed words and character trigrams; knows nothing of meaning.

    The same on every machine and Python: a feature's place and sign come from BLAKE2b, and the sums are exact in float64.
    A text longer than 256 words is cut there and says so. A text without a word gets the first unit vector.

    Args:
        dimension: Numbers in a vector, at least 1.
    """

    def __init__(self, dimension: int = 384) -> None:
        if dimension < 1:
            message = f"the dimension must be at least 1, not {dimension}"
            raise ValueError(message)
        model_id = "hashing-test-v1"
        digest = hashlib.sha256(f"{model_id} {dimension}".encode()).hexdigest()
        self._info = ModelInfo(model_id, dimension, f"sha256:{digest}")

    def info(self) -> ModelInfo:
        """See `Embedder.info`; the digest is over the name and the dimension."""
        return self._info

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        """See `Embedder.embed`."""
        deadline = Deadline(timeout_seconds)
        results = []
        for text in texts:
            deadline.check()
            results.append(self._embed_one(text))
        return results

    def _embed_one(self, text: str) -> TextVector:
        found = _WORD.finditer(readable(text).casefold())
        words = [match.group() for match in islice(found, MAX_TOKENS)]
        sums: defaultdict[int, float] = defaultdict(float)
        for feature, weight in _features(words):
            number = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")
            place, sign = number >> 1, 1.0 if number & 1 else -1.0
            sums[place % self._info.dimension] += sign * weight
        norm = math.sqrt(sum(value * value for value in sums.values()))
        vector = np.zeros(self._info.dimension, "<f4")
        if norm == 0.0:
            vector[0] = 1.0
        else:
            for place, value in sums.items():
                vector[place] = value / norm
        return TextVector(vector.tobytes(), truncated=next(found, None) is not None)


def _features(words: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Each word, and each three characters in a row of it with its ends marked."""
    for word in words:
        yield word, 1.0
        marked = f"<{word}>"
        for start in range(len(marked) - 2):
            yield f"#{marked[start : start + 3]}", _TRIGRAM_WEIGHT
