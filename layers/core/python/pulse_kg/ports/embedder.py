"""The port to a model that turns texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pulse_kg.domain.model import TextVector


@dataclass(frozen=True)
class ModelInfo:
    """Which model makes the vectors; two stores may be compared only if this is equal.

    Attributes:
        model_id: The model's public name.
        dimension: Numbers in a vector.
        digest: ``sha256:`` and 64 hex digits over the model's weights and tokenizer. The runtime is no part of it:
            the same weights give the same vectors (to about 1e-6) in each of them.
    """

    model_id: str
    dimension: int
    digest: str


class Embedder(Protocol):
    """Embeds texts; the closer two texts in meaning, the higher their vectors' dot product.

    Ordering and duplicates: one result for each text, in the order given; equal texts have equal results within a call.
    Determinism: a text's vector does not depend on the texts beside it, nor on earlier calls, by more than 1e-6 in any number.
    Concurrency: one instance may be used by many threads.
    Inputs: any `str`, the empty one as well. What can't be written as UTF-8 counts as U+FFFD.
    Limits: MiniLM reads the first 256 tokens of a text; what comes after is cut, and the result says so.
    Tenancy: none; no text is kept or logged.
    Errors: `EmbedderTimeout` and `StoreUnavailable`, both retryable.
    """

    def info(self) -> ModelInfo:
        """Which model this is. Cheap: loads no model.

        Raises:
            StoreUnavailable: The model's files are missing, unreadable or damaged.
        """
        ...

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        """Embeds `texts`; an empty sequence gives an empty list, whatever the time left.

        Args:
            texts: Any number of texts of any length.
            timeout_seconds: Time left for this call, 0 or less for none, `None` for no limit. It is looked at between steps (the
                load, a text's tokens, a batch), so that a call may run over by one of them, never by more.

        Raises:
            EmbedderTimeout: The time was over before the last step had begun.
            StoreUnavailable: The model's files are missing, unreadable or damaged.
        """
        ...
