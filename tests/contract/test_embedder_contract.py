"""What `Embedder` promises, of every embedder; and that the default one is equal to the reference.

The sentence-transformers embedder takes part where the extra `torch` is installed; elsewhere its comparison is skipped, with the
reason shown, and numbers recorded from it stand in.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.adapters.embedding.model_files import packaged_weights
from pulse_kg.adapters.embedding.onnx import OnnxEmbedder
from pulse_kg.domain.model import TextVector
from pulse_kg.errors import EmbedderTimeout
from pulse_kg.ports.embedder import Embedder

MODEL_DIR = Path(sys.prefix) / "share" / "pulse-kg" / "model"
NO_TORCH = "the extra 'torch' is not installed (pip install 'pulse-kg[torch]')"
EMBEDDERS = ["hashing", "onnx", *(["sentence_transformers"] if importlib.util.find_spec("sentence_transformers") else [])]

TEXTS = [
    "The commit is all or nothing.",
    "A commit writes everything or it writes nothing.",
    "",
    "   \n\t ",
    "x",
    "Bananas are yellow and sweet.",
    "Ünïcödé naïve café – 日本語",
    "\x00",
    "a lone surrogate \ud800 as JSON can hold it",
    "🙂",
    "release notes " * 30,
    "the board owns its graph and no other board sees it " * 8,
    "release notes " * 400,
]


def reference() -> Embedder:
    pytest.importorskip("sentence_transformers", reason=NO_TORCH)
    from pulse_kg.adapters.embedding.sentence_transformers import SentenceTransformersEmbedder

    weights_dir = packaged_weights()
    assert weights_dir is not None
    return SentenceTransformersEmbedder(weights_dir)


@pytest.fixture(scope="module", params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "hashing":
        return HashingEmbedder()
    if request.param == "onnx":
        return OnnxEmbedder(MODEL_DIR)
    return reference()


def matrix(embeddings: list[TextVector]) -> npt.NDArray[np.float32]:
    return np.stack([np.frombuffer(embedding.vector, "<f4") for embedding in embeddings])


def test_the_info_names_the_model_its_dimension_and_a_sha256(embedder: Embedder) -> None:
    info = embedder.info()
    assert info.model_id
    assert info.dimension == 384
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", info.digest)
    assert embedder.info() == info


def test_no_texts_give_no_embeddings_even_without_time(embedder: Embedder) -> None:
    assert embedder.embed([]) == []
    assert embedder.embed((), timeout_seconds=0.0) == []


def test_a_vector_has_the_dimension_and_length_one(embedder: Embedder) -> None:
    embeddings = embedder.embed(TEXTS)
    assert {len(embedding.vector) for embedding in embeddings} == {4 * embedder.info().dimension}
    assert np.linalg.norm(matrix(embeddings), axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-6)


def test_results_are_in_the_order_of_the_texts(embedder: Embedder) -> None:
    forward, backward = matrix(embedder.embed(TEXTS)), matrix(embedder.embed(TEXTS[::-1]))
    assert np.abs(forward - backward[::-1]).max() <= 1e-6


def test_a_text_has_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    together = matrix(embedder.embed(TEXTS))
    alone = matrix([embedder.embed([text])[0] for text in TEXTS])
    assert np.abs(together - alone).max() <= 1e-6


def test_equal_texts_have_equal_results_in_one_call(embedder: Embedder) -> None:
    first, _, second, _, third = embedder.embed([TEXTS[0], TEXTS[-1], TEXTS[0], "", TEXTS[0]])
    assert first == second == third


def test_the_same_call_gives_the_same_bytes_again(embedder: Embedder) -> None:
    assert embedder.embed(TEXTS) == embedder.embed(TEXTS)


def test_only_texts_beyond_the_limit_are_marked_as_truncated(embedder: Embedder) -> None:
    assert [embedding.truncated for embedding in embedder.embed(TEXTS)] == [False] * (len(TEXTS) - 1) + [True]


def test_what_comes_after_the_limit_has_no_influence(embedder: Embedder) -> None:
    head = "graph " * 256
    one, other = embedder.embed([head + "and this", head + "or something else entirely"])
    assert one == other
    assert one.truncated


def test_texts_that_say_the_same_are_nearer_than_others(embedder: Embedder) -> None:
    statement, paraphrase, unrelated = matrix(embedder.embed([TEXTS[0], TEXTS[1], TEXTS[5]]))
    assert statement @ paraphrase > statement @ unrelated + 0.1


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_without_time_left_nothing_is_embedded(embedder: Embedder, seconds: float) -> None:
    with pytest.raises(EmbedderTimeout):
        embedder.embed(["x"], timeout_seconds=seconds)


def test_with_time_enough_the_result_is_the_same_as_without_limit(embedder: Embedder) -> None:
    assert embedder.embed(TEXTS[:3], timeout_seconds=60.0) == embedder.embed(TEXTS[:3])


def test_many_threads_get_what_one_gets(embedder: Embedder) -> None:
    expected = embedder.embed(TEXTS[:6])
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: embedder.embed(TEXTS[:6]), range(8)))
    assert results == [expected] * 8


def test_onnx_and_sentence_transformers_give_equal_vectors() -> None:
    other, default = reference(), OnnxEmbedder(MODEL_DIR)
    assert other.info() == default.info()
    theirs, ours = other.embed(TEXTS), default.embed(TEXTS)
    assert np.abs(matrix(theirs) - matrix(ours)).max() <= 1e-4
    assert [embedding.truncated for embedding in theirs] == [embedding.truncated for embedding in ours]


@pytest.mark.parametrize(
    ("text", "every_64th_number"),
    [
        ("", [-0.1188384, -0.0758384, 0.0073346, -0.0864778, -0.0506326, -0.0467246]),
        ("The commit is all or nothing.", [0.0403753, 0.0735201, 0.0879287, -0.030077, -0.1628109, -0.0260003]),
        ("Ünïcödé naïve café – 日本語", [-0.007346, -0.0104458, 0.060083, -0.0501012, -0.0214175, -0.0314635]),
        ("release notes " * 200, [-0.015183, -0.0754287, -0.0347682, -0.0348217, -0.0203358, -0.0699648]),
    ],
    ids=["empty", "short", "unicode", "truncated"],
)
def test_onnx_gives_what_sentence_transformers_gave_when_it_was_recorded(text: str, every_64th_number: list[float]) -> None:
    """Recorded with sentence-transformers 5.7.0 and torch 2.15.0, so that the reference counts also where it is not installed."""
    vector = matrix(OnnxEmbedder(MODEL_DIR).embed([text]))[0]
    assert vector[::64] == pytest.approx(every_64th_number, abs=1e-5)
