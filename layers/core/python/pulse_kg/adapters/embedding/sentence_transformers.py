"""The same weights by sentence-transformers: the reference that the ONNX embedder is held against.

Needs the extra ``torch``. No run uses it by default: the import alone takes seconds and half a gigabyte.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pulse_kg.adapters.embedding.batching import MAX_TOKENS, SHORT_BATCH, Deadline, plan_batches, readable
from pulse_kg.adapters.embedding.model_files import MODEL_ID, TOKENIZER, WEIGHTS, FileFacts, model_digest, model_unavailable
from pulse_kg.domain.model import TextVector
from pulse_kg.ports.embedder import ModelInfo

_DIMENSION = 384


class SentenceTransformersEmbedder:
    """The embedder over a folder in sentence-transformers' own form.

    Args:
        weights_dir: The folder with ``model.safetensors`` and ``tokenizer.json``, as `packaged_weights` finds it.
    """

    def __init__(self, weights_dir: Path) -> None:
        self._weights_dir = weights_dir
        self._lock = threading.Lock()
        self._info: ModelInfo | None = None
        self._model: Any = None

    def info(self) -> ModelInfo:
        """See `Embedder.info`; the first call reads the weights (90 MB) for their digest."""
        if self._info is None:
            try:
                digest = model_digest(FileFacts.of(self._weights_dir / WEIGHTS), FileFacts.of(self._weights_dir / TOKENIZER))
            except OSError as error:
                raise model_unavailable() from error
            self._info = ModelInfo(MODEL_ID, _DIMENSION, digest)
        return self._info

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        """See `Embedder.embed`; equal texts are computed once."""
        if not texts:
            return []
        deadline = Deadline(timeout_seconds)
        deadline.check()
        model = self._loaded()
        unique = list(dict.fromkeys(texts))
        read = [readable(text) for text in unique]
        counts = [len(ids) for ids in model.tokenizer(read, truncation=False, padding=False, verbose=False)["input_ids"]]
        results: dict[str, TextVector] = {}
        for batch in plan_batches(counts):
            deadline.check()
            rows = model.encode(
                [read[position] for position in batch], batch_size=SHORT_BATCH, normalize_embeddings=True, show_progress_bar=False
            )
            for position, row in zip(batch, rows, strict=True):
                results[unique[position]] = TextVector(row.astype("<f4").tobytes(), truncated=counts[position] > MAX_TOKENS)
        return [results[text] for text in texts]

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                self.info()
                from sentence_transformers import SentenceTransformer

                try:
                    self._model = SentenceTransformer(str(self._weights_dir), device="cpu", local_files_only=True)
                except (OSError, ValueError) as error:
                    raise model_unavailable() from error
                self._model.max_seq_length = MAX_TOKENS
            return self._model
