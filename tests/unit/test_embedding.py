"""The embedders beyond their contract: batches, deadlines, loading, damage, and the builder of the model's files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse_kg.adapters.embedding import minilm_build
from pulse_kg.adapters.embedding import onnx as onnx_adapter
from pulse_kg.adapters.embedding.batching import Deadline, plan_batches, readable
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.adapters.embedding.model_files import (
    GRAPH,
    MANIFEST,
    TOKENIZER,
    WEIGHTS,
    FileFacts,
    Manifest,
    ModelUnavailable,
    check_files,
    packaged_weights,
)
from pulse_kg.adapters.embedding.onnx import OnnxEmbedder
from pulse_kg.errors import EmbedderTimeout, StoreUnavailable

MODEL_DIR = Path(sys.prefix) / "share" / "pulse-kg" / "model"


class SteppingClock:
    """Goes on by one second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def weights_dir() -> Path:
    folder = packaged_weights()
    assert folder is not None, "run make setup"
    return folder


@pytest.fixture
def model_copy(tmp_path: Path) -> Path:
    """The model's folder, to be damaged: the graph is linked, and must be replaced rather than written to."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / GRAPH).symlink_to(MODEL_DIR / GRAPH)
    for name in (TOKENIZER, MANIFEST):
        (folder / name).write_bytes((MODEL_DIR / name).read_bytes())
    return folder


class TestBatches:
    @settings(deadline=None)
    @given(st.lists(st.integers(2, 256), max_size=200))
    def test_every_position_is_in_one_batch_of_a_permitted_size(self, counts: list[int]) -> None:
        batches = plan_batches(counts)
        assert sorted(position for batch in batches for position in batch) == list(range(len(counts)))
        for batch in batches:
            longest = max(counts[position] for position in batch)
            assert 1 <= len(batch) <= (32 if longest <= 64 else 8)

    @settings(deadline=None)
    @given(st.lists(st.integers(2, 256), max_size=200))
    def test_shorter_texts_come_before_longer_ones(self, counts: list[int]) -> None:
        in_order = [counts[position] for batch in plan_batches(counts) for position in batch]
        assert in_order == sorted(counts)

    def test_short_and_long_texts_are_not_mixed(self) -> None:
        assert plan_batches([65, 64, 200, 3]) == [[3, 1], [0, 2]]


class TestDeadline:
    def test_no_limit_is_never_over(self) -> None:
        Deadline(None, SteppingClock()).check()

    def test_it_is_over_at_the_moment_itself(self) -> None:
        deadline = Deadline(2.0, SteppingClock())
        deadline.check()
        with pytest.raises(EmbedderTimeout):
            deadline.check()


class TestReadable:
    @settings(deadline=None)
    @given(st.text())
    def test_text_without_lone_surrogates_is_left_as_it_is(self, text: str) -> None:
        assert readable(text) == text

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("a\ud800b", "a\ufffdb"), ("\udc00", "\ufffd"), ("\ud83d\ude42", "🙂"), ("é\udfff🙂", "é\ufffd🙂")],
        ids=["high", "low", "pair", "beside others"],
    )
    def test_lone_surrogates_are_replaced_and_pairs_are_joined(self, text: str, expected: str) -> None:
        assert readable(text) == expected


class TestHashingEmbedder:
    def test_its_vectors_are_the_same_on_every_machine(self) -> None:
        vector = HashingEmbedder().embed(["The commit is all or nothing."])[0].vector
        assert hashlib.sha256(vector).hexdigest() == "5b89c8e368c3aa63cfcdc6d5ef4bcd7d1b0431ef913aec71ef43f84da9bce8dc"

    def test_case_and_punctuation_do_not_count(self) -> None:
        one, other = HashingEmbedder().embed(["Release, Notes!", "release notes"])
        assert one.vector == other.vector

    @pytest.mark.parametrize("text", ["", "  ", "!?"])
    def test_a_text_without_words_gets_the_first_unit_vector(self, text: str) -> None:
        assert HashingEmbedder(3).embed([text])[0].vector == np.array([1, 0, 0], "<f4").tobytes()

    def test_the_257th_word_makes_a_text_too_long(self) -> None:
        full, over = HashingEmbedder().embed(["word " * 256, "word " * 257])
        assert (full.truncated, over.truncated) == (False, True)

    def test_another_dimension_is_another_model(self) -> None:
        assert HashingEmbedder(8).info().model_id == "hashing-test-v1"
        assert HashingEmbedder(8).info() != HashingEmbedder(9).info()
        assert len(HashingEmbedder(8).embed(["x"])[0].vector) == 32

    def test_a_dimension_below_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 1"):
            HashingEmbedder(0)


class TestOnnxEmbedder:
    def test_info_imports_neither_onnxruntime_nor_tokenizers_nor_numpy(self) -> None:
        script = (
            "import sys; from pathlib import Path; from pulse_kg.adapters.embedding.onnx import OnnxEmbedder; "
            f"OnnxEmbedder(Path({str(MODEL_DIR)!r})).info(); "
            "print(sorted({'onnxruntime', 'tokenizers', 'numpy'} & set(sys.modules)))"
        )
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert run.stdout.strip() == "[]"

    def test_the_time_is_looked_at_between_batches(self) -> None:
        texts = [f"text number {number}" for number in range(40)]
        # Readings of the clock: one at the start, one before the load, one for each text, one for each of two batches.
        exact = len(texts) + 4
        with pytest.raises(EmbedderTimeout):
            OnnxEmbedder(MODEL_DIR, monotonic=SteppingClock()).embed(texts, timeout_seconds=exact - 1)
        assert len(OnnxEmbedder(MODEL_DIR, monotonic=SteppingClock()).embed(texts, timeout_seconds=exact)) == len(texts)

    def test_many_first_calls_load_the_model_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        opened = []
        open_session = onnx_adapter._open_session

        def counted(path: Path, threads: int) -> onnx_adapter._Session:
            opened.append(path)
            return open_session(path, threads)

        monkeypatch.setattr(onnx_adapter, "_open_session", counted)
        embedder = OnnxEmbedder(MODEL_DIR, threads=1)
        with ThreadPoolExecutor(6) as pool:
            results = list(pool.map(lambda _: embedder.embed(["x"]), range(6)))
        assert len(opened) == 1
        assert results == [results[0]] * 6

    def test_equal_texts_are_computed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes = []
        run = onnx_adapter._run

        def counted(session: onnx_adapter._Session, encodings: list[object]) -> object:
            sizes.append(len(encodings))
            return run(session, encodings)  # type: ignore[arg-type]

        monkeypatch.setattr(onnx_adapter, "_run", counted)
        OnnxEmbedder(MODEL_DIR).embed(["a", "b", "a", "a", "b"])
        assert sizes == [2]

    def test_without_model_files_it_says_what_to_do_and_no_path(self, tmp_path: Path) -> None:
        embedder = OnnxEmbedder(tmp_path / "absent")
        with pytest.raises(StoreUnavailable, match="make setup") as of_info:
            embedder.info()
        with pytest.raises(StoreUnavailable, match="make setup") as of_embed:
            embedder.embed(["x"])
        for refusal in (of_info.value, of_embed.value):
            assert refusal.details == {"store": "model"}
            assert str(tmp_path) not in refusal.message

    @pytest.mark.parametrize("name", [GRAPH, TOKENIZER, MANIFEST])
    def test_a_file_that_is_missing_makes_it_unavailable(self, model_copy: Path, name: str) -> None:
        (model_copy / name).unlink()
        with pytest.raises(StoreUnavailable, match="make setup"):
            OnnxEmbedder(model_copy).embed(["x"])

    @pytest.mark.parametrize("name", [GRAPH, TOKENIZER, MANIFEST])
    def test_a_file_cut_short_makes_it_unavailable(self, model_copy: Path, name: str) -> None:
        whole = (model_copy / name).read_bytes()
        (model_copy / name).unlink()
        (model_copy / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(StoreUnavailable, match="make setup"):
            OnnxEmbedder(model_copy).embed(["x"])

    @pytest.mark.parametrize("name", [GRAPH, TOKENIZER])
    def test_a_single_byte_that_is_another_makes_it_unavailable(self, model_copy: Path, name: str) -> None:
        content = bytearray((model_copy / name).read_bytes())
        content[len(content) // 2] ^= 1
        (model_copy / name).unlink()
        (model_copy / name).write_bytes(content)
        with pytest.raises(ModelUnavailable, match=f"{name} is not as it was built.*delete its folder.*make setup") as refused:
            OnnxEmbedder(model_copy).embed(["x"])
        assert (refused.value.state, refused.value.retryable) == ("damaged", False)

    def test_the_files_are_read_for_their_digests_once(self, model_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []
        real = FileFacts.of

        def counted(path: Path) -> FileFacts:
            read.append(path.name)
            return real(path)

        monkeypatch.setattr(FileFacts, "of", counted)
        embedder = OnnxEmbedder(model_copy)
        for _ in range(3):
            embedder.embed(["x"])
        assert sorted(read) == [GRAPH, TOKENIZER]

    def test_what_is_missing_is_told_apart_from_what_is_damaged(self, model_copy: Path) -> None:
        with pytest.raises(ModelUnavailable) as absent:
            check_files(model_copy / "absent")
        (model_copy / GRAPH).unlink()
        with pytest.raises(ModelUnavailable, match=GRAPH) as one:
            check_files(model_copy)
        (model_copy / GRAPH).mkdir()
        with pytest.raises(ModelUnavailable, match=GRAPH) as unreadable:
            check_files(model_copy)
        assert [e.value.state for e in (absent, one, unreadable)] == ["missing", "missing", "damaged"]
        assert not any(e.value.retryable for e in (absent, one, unreadable))

    @pytest.mark.parametrize("text", ["[]", "{}", "null", '{"recipe": 1, "files": 3}', "\x00"])
    def test_a_manifest_that_says_nothing_makes_it_unavailable(self, model_copy: Path, text: str) -> None:
        (model_copy / MANIFEST).write_text(text)
        with pytest.raises(StoreUnavailable, match="make setup"):
            OnnxEmbedder(model_copy).info()

    def test_it_works_as_soon_as_the_files_are_back(self, model_copy: Path) -> None:
        tokenizer = (model_copy / TOKENIZER).read_bytes()
        (model_copy / TOKENIZER).unlink()
        embedder = OnnxEmbedder(model_copy)
        with pytest.raises(StoreUnavailable):
            embedder.embed(["x"])
        (model_copy / TOKENIZER).write_bytes(tokenizer)
        assert len(embedder.embed(["x"])) == 1


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
class TestSetup:
    """`make setup` in a folder of its own, where the interpreter is a script that notes its calls and makes empty files."""

    MODEL = Path(".venv/share/pulse-kg/model")

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        shutil.copy(Path(__file__).parents[2] / "Makefile", tmp_path)
        builder = Path("layers/core/python/pulse_kg/adapters/embedding/minilm_build.py")
        for name in ("pyproject.toml", "requirements/dev.txt", "requirements/weights.txt", str(builder), ".venv/.installed"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        python = tmp_path / ".venv/bin/python"
        python.parent.mkdir()
        python.write_text('#!/bin/sh\necho "$@" >> calls\nmkdir -p "$3" && touch "$3"/model.onnx "$3"/tokenizer.json "$3"/model.json\n')
        python.chmod(0o755)
        self.setup(tmp_path)
        return tmp_path

    def setup(self, folder: Path) -> int:
        """Runs it; how often the builder was called."""
        (folder / "calls").unlink(missing_ok=True)
        subprocess.run(["make", "setup"], cwd=folder, check=True, capture_output=True)
        return len((folder / "calls").read_text().splitlines()) if (folder / "calls").exists() else 0

    def test_what_is_there_is_left_alone(self, folder: Path) -> None:
        assert self.setup(folder) == 0

    def test_a_model_that_is_gone_is_built_again(self, folder: Path) -> None:
        shutil.rmtree(folder / self.MODEL)
        assert [self.setup(folder), self.setup(folder)] == [1, 0]

    @pytest.mark.parametrize("name", [GRAPH, TOKENIZER, MANIFEST])
    def test_a_file_that_is_gone_is_built_again(self, folder: Path, name: str) -> None:
        (folder / self.MODEL / name).unlink()
        assert [self.setup(folder), self.setup(folder)] == [1, 0]

    @pytest.mark.parametrize("name", [GRAPH, TOKENIZER])
    def test_a_file_that_was_written_to_has_its_digest_read_again(self, folder: Path, name: str) -> None:
        later = (folder / self.MODEL / MANIFEST).stat().st_mtime + 0.5
        os.utime(folder / self.MODEL / name, (later, later))
        assert self.setup(folder) == 1


class TestManifest:
    def test_it_survives_its_own_text(self) -> None:
        facts = FileFacts(3, "ab")
        manifest = Manifest(2, "some/model", 4, "sha256:cd", {"a": facts}, {"b": facts})
        assert Manifest.from_json(manifest.as_json()) == manifest


class TestModelBuilder:
    @pytest.fixture
    def built(self, tmp_path: Path) -> Iterator[Path]:
        folder = tmp_path / "made" / "model"
        shutil.copytree(MODEL_DIR, folder)
        yield folder
        assert [entry.name for entry in folder.parent.iterdir()] == ["model"], "scratch files were left behind"

    def test_the_same_weights_make_the_same_bytes(self, tmp_path: Path, weights_dir: Path) -> None:
        built = tmp_path / "new" / "model"
        _, written = minilm_build.build(weights_dir, built)
        assert written
        for name in (GRAPH, TOKENIZER, MANIFEST):
            assert (built / name).read_bytes() == (MODEL_DIR / name).read_bytes(), name

    def test_it_leaves_files_alone_that_are_right(self, built: Path, weights_dir: Path) -> None:
        before = [(path.name, path.stat().st_mtime_ns, path.stat().st_ino) for path in sorted(built.iterdir())]
        manifest, written = minilm_build.build(weights_dir, built)
        assert not written
        assert manifest.info() == OnnxEmbedder(built).info()
        assert [(path.name, path.stat().st_mtime_ns, path.stat().st_ino) for path in sorted(built.iterdir())] == before

    @pytest.mark.parametrize("damage", ["graph", "manifest", "recipe"])
    def test_it_builds_again_over_what_is_wrong(self, built: Path, weights_dir: Path, damage: str) -> None:
        right = (built / MANIFEST).read_text()
        if damage == "graph":
            (built / GRAPH).write_bytes(b"")
        elif damage == "manifest":
            (built / MANIFEST).write_text("{}")
        else:
            (built / MANIFEST).write_text(replace(Manifest.from_json(right), recipe=0).as_json())
        _, written = minilm_build.build(weights_dir, built)
        assert written
        assert (built / MANIFEST).read_text() == right

    def test_a_model_of_another_kind_is_refused_and_nothing_is_written(self, tmp_path: Path, weights_dir: Path) -> None:
        other = tmp_path / "weights"
        other.mkdir()
        (other / WEIGHTS).symlink_to(weights_dir / WEIGHTS)
        (other / TOKENIZER).symlink_to(weights_dir / TOKENIZER)
        config = json.loads((weights_dir / "config.json").read_text())
        (other / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
        with pytest.raises(ValueError, match="hidden_act"):
            minilm_build.build(other, tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_weights_cut_short_are_refused(self, tmp_path: Path, weights_dir: Path) -> None:
        with (weights_dir / WEIGHTS).open("rb") as file:
            (tmp_path / WEIGHTS).write_bytes(file.read(1000))
        with pytest.raises(ValueError, match="no safetensors file"):
            minilm_build.read_weights(tmp_path / WEIGHTS)

    def test_the_command_prints_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert minilm_build.main([str(MODEL_DIR)]) == 0
        out, err = capsys.readouterr()
        assert (len(out.splitlines()), err) == (1, "")
        assert "up to date" in out

    def test_the_command_without_weights_says_how_to_get_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(minilm_build, "packaged_weights", lambda: None)
        assert minilm_build.main([str(tmp_path / "out")]) == 1
        assert "make setup" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
