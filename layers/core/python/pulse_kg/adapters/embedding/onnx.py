"""all-MiniLM-L6-v2 by onnxruntime: the embedder of every run.

Importing this module is cheap. onnxruntime and tokenizers are imported, and the model is loaded, by the first `embed` of a text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic as system_monotonic
from typing import TYPE_CHECKING, Any, Protocol

from pulse_kg.adapters.embedding.batching import MAX_TOKENS, Deadline, plan_batches, readable
from pulse_kg.adapters.embedding.model_files import (
    GRAPH,
    TOKENIZER,
    Manifest,
    ModelUnavailable,
    check_files,
    model_unavailable,
    read_manifest,
)
from pulse_kg.domain.model import TextVector
from pulse_kg.ports.embedder import ModelInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Encoding, Tokenizer


class _Session(Protocol):
    """The one method used of onnxruntime's session, which has no types of its own."""

    def run(self, output_names: list[str], feed: Mapping[str, npt.NDArray[np.int64]]) -> list[npt.NDArray[np.float32]]: ...


@dataclass(frozen=True)
class _Model:
    tokenizer: Tokenizer
    session: _Session


class OnnxEmbedder:
    """The embedder over a folder that `minilm_build` wrote.

    A failed load is tried again by the next call, so that ``make setup`` heals a running server.

    Args:
        model_dir: The folder with ``model.json``, ``model.onnx`` and ``tokenizer.json``.
        threads: Threads of one call's arithmetic. A fixed number, because the machine's count is not what a container may use.
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(self, model_dir: Path, threads: int = 2, *, monotonic: Callable[[], float] = system_monotonic) -> None:
        self._model_dir = model_dir
        self._threads = threads
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._manifest: Manifest | None = None
        self._model: _Model | None = None

    def info(self) -> ModelInfo:
        """See `Embedder.info`; reads ``model.json`` once."""
        return self._read_manifest().info()

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        """See `Embedder.embed`; equal texts are computed once."""
        if not texts:
            return []
        deadline = Deadline(timeout_seconds, self._monotonic)
        deadline.check()
        model = self._loaded()
        encodings = {}
        for text in dict.fromkeys(texts):
            deadline.check()
            # One at a time: a batch would start the tokenizer's own thread pool, which does not survive a fork.
            encodings[text] = model.tokenizer.encode(readable(text))
        unique = list(encodings)
        results: dict[str, TextVector] = {}
        for batch in plan_batches([len(encoding.ids) for encoding in encodings.values()]):
            deadline.check()
            members = [unique[position] for position in batch]
            rows = _run(model.session, [encodings[text] for text in members])
            for text, row in zip(members, rows, strict=True):
                results[text] = TextVector(row.tobytes(), truncated=bool(encodings[text].overflowing))
        return [results[text] for text in texts]

    def _read_manifest(self) -> Manifest:
        if self._manifest is None:
            self._manifest = read_manifest(self._model_dir)
        return self._manifest

    def _loaded(self) -> _Model:
        if self._model is None:
            with self._lock:
                if self._model is None:
                    self._model = self._load()
        return self._model

    def _load(self) -> _Model:
        manifest = self._read_manifest()
        try:
            # 60 ms, once: a damaged graph may load and give vectors that look like any other.
            check_files(self._model_dir, manifest)
        except ModelUnavailable:
            self._manifest = None
            raise
        return _Model(_open_tokenizer(self._model_dir / TOKENIZER), _open_session(self._model_dir / GRAPH, self._threads))


def _open_tokenizer(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    # The file pads and cuts at 128 tokens, from the model's training; sentence-transformers overrides both as well.
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _open_session(path: Path, threads: int) -> _Session:
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Fatal only: an error is raised, and needs no second way to stderr.
    options.log_severity_level = 4
    # Between calls the threads sleep rather than spin: the other core belongs to the stores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session: _Session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    # onnxruntime's errors have no common base; these are what an unreadable or damaged file raises.
    except (
        native.Fail,
        native.InvalidArgument,
        native.InvalidGraph,
        native.InvalidProtobuf,
        native.NoSuchFile,
        native.RuntimeException,
    ) as error:
        raise model_unavailable() from error
    return session


def _run(session: _Session, encodings: Sequence[Encoding]) -> npt.NDArray[np.float32]:
    """The vectors of a batch: float32, little-endian, one row of L2 norm 1 for each encoding."""
    import numpy as np

    shape = len(encodings), max(len(encoding.ids) for encoding in encodings)
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, encoding in enumerate(encodings):
        count = len(encoding.ids)
        ids[row, :count] = encoding.ids
        mask[row, :count] = 1
    vectors: npt.NDArray[Any] = session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})[0]
    return vectors.astype("<f4", copy=False)
