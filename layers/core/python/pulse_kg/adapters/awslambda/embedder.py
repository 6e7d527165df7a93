"""The embedding model in a function of its own, so that no other function carries it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pulse_kg.adapters.awslambda.invoker import LambdaInvoker
from pulse_kg.adapters.budget import seconds_left
from pulse_kg.adapters.embedding.batching import Deadline, readable
from pulse_kg.domain.model import TextVector
from pulse_kg.errors import EmbedderTimeout, EmbeddingModelMismatch, StoreUnavailable
from pulse_kg.ports.embedder import ModelInfo
from pulse_kg.ports.functions import FunctionFailed, FunctionInvoker, FunctionTimeout

MAX_TEXTS: Final = 64
"""Texts of one call: some seconds of work at most, so that a call's time is looked at between them."""

MAX_BYTES: Final = 3_000_000
"""Of the texts of one call, in UTF-8; the payload's limit is 6 MB, and JSON may double them."""


READ_SECONDS: Final = 20.0
"""How long one call's answer is waited for: a cold start and `MAX_TEXTS` long texts take less."""


class RemoteEmbedder:
    """The embedder that the embedding function runs; see `pulse_kg.ports.embedder.Embedder`.

    Args:
        function: The function's name.
        invoker: Calls it.
        info: The model that it is known to run; asked for once where that is not known.
    """

    def __init__(self, function: str, invoker: FunctionInvoker, *, info: ModelInfo | None = None) -> None:
        self._function = function
        self._invoker = invoker
        self._info = info

    def info(self) -> ModelInfo:
        """See the port; a call of the function only where the model was not named."""
        if self._info is None:
            self._info = self._model(self._ask({"texts": []}))
        return self._info

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        """See the port; equal texts are sent once."""
        if not texts:
            return []
        seconds = min(seconds_left(), float("inf") if timeout_seconds is None else timeout_seconds)
        deadline = Deadline(seconds)
        results: dict[str, TextVector] = {}
        for batch in _batches(list(dict.fromkeys(map(readable, texts)))):
            deadline.check()
            answer = self._ask({"texts": batch, "timeout_seconds": min(seconds_left(), seconds)})
            self._check_model(answer)
            results.update(zip(batch, _vectors(answer, len(batch)), strict=True))
        return [results[readable(text)] for text in texts]

    def _ask(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            answer = self._invoker.invoke(self._function, payload)
        except FunctionTimeout:
            raise EmbedderTimeout from None
        except FunctionFailed as error:
            raise StoreUnavailable("model") from error
        if not isinstance(answer, dict):
            raise StoreUnavailable("model")
        refusal = answer.get("error")
        if isinstance(refusal, dict):
            raise EmbedderTimeout if refusal.get("code") == EmbedderTimeout.code else StoreUnavailable("model")
        return answer

    def _model(self, answer: Mapping[str, Any]) -> ModelInfo:
        model = answer.get("model")
        if not isinstance(model, dict):
            raise StoreUnavailable("model")
        return ModelInfo(str(model.get("model_id")), int(model.get("dimension", 0)), str(model.get("digest")))

    def _check_model(self, answer: Mapping[str, Any]) -> None:
        runs, wanted = self._model(answer), self.info()
        if runs != wanted:
            raise EmbeddingModelMismatch(
                "The embedding function runs another model than this deployment names. An administrator has to deploy both alike.",
                {"expected": wanted.model_id, "found": runs.model_id},
            )


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if batch and (len(batch) == MAX_TEXTS or size + length > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


def _vectors(answer: Mapping[str, Any], count: int) -> list[TextVector]:
    try:
        vectors = [base64.b64decode(vector, validate=True) for vector in answer["vectors"]]
        truncated = [bool(flag) for flag in answer["truncated"]]
    except (KeyError, TypeError, binascii.Error):
        raise StoreUnavailable("model") from None
    if not len(vectors) == len(truncated) == count:
        raise StoreUnavailable("model")
    return [TextVector(vector, truncated=flag) for vector, flag in zip(vectors, truncated, strict=True)]


def embedder_from(environment: Mapping[str, str]) -> RemoteEmbedder:
    """The embedder that variables name: PULSE_KG_EMBED_FUNCTION, and PULSE_KG_EMBED_MODEL as ``ID DIMENSION DIGEST``.

    Raises:
        StoreUnavailable: They name no function.
    """
    function = environment.get("PULSE_KG_EMBED_FUNCTION", "").strip()
    if not function:
        raise StoreUnavailable("model", "PULSE_KG_EMBEDDER=lambda needs PULSE_KG_EMBED_FUNCTION, the name of the embedding function.")
    model = environment.get("PULSE_KG_EMBED_MODEL", "").split()
    info = ModelInfo(model[0], int(model[1]), model[2]) if len(model) == 3 and model[1].isdecimal() else None  # noqa: PLR2004
    return RemoteEmbedder(function, LambdaInvoker(read_seconds=READ_SECONDS), info=info)
