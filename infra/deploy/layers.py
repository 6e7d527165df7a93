"""Builds the layers that template.yaml names, from the locks and the sources: ``python -m infra.deploy.layers --architecture arm64``.

    build/layers/core           the package without its command line
    build/layers/edge           Powertools: all that a function needs beside the package to start
    build/layers/dependencies   pydantic and the drivers of the stores
    build/layers/model          onnxruntime, numpy, tokenizers and the built model, for the embedding function
    build/layers/*.zip          each of them, packed: what is deployed

A layer whose parts did not change is neither built nor packed again. The wheels are those of the functions' system, not of this machine.
Modules of Python 3.11 are compiled here: a function can't write to its layers, and would compile everything at each cold start.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulse_kg.adapters.embedding.model_files import GRAPH, MANIFEST, TOKENIZER
from pulse_kg.settings import default_model_dir

ROOT: Final = Path(__file__).parents[2]
LAYERS: Final = ROOT / "build" / "layers"
NAMES: Final = ("core", "edge", "dependencies", "model")
MAX_UNZIPPED_BYTES: Final = 250 * 1024 * 1024
"""Of a function with all its layers."""

FUNCTION_LAYERS: Final[Mapping[str, tuple[str, ...]]] = {
    "tool": ("core", "edge", "dependencies"),
    "embed": ("core", "edge", "model"),
}
"""Which layers go together; the template says the same."""

MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
_OLD_GLIBC, _NEW_GLIBC = 26, 34
"""Minor versions of glibc 2 in Lambda: of Python 3.11 (Amazon Linux 2), and of later ones (Amazon Linux 2023)."""

_EDGE: Final = frozenset({"aws-lambda-powertools", "jmespath", "typing-extensions"})
_MODEL: Final = frozenset({"numpy", "onnxruntime", "tokenizers"})
"""Of the lock's packages those that run the model; the others are for downloads, which the layer never makes."""

_NEVER_IMPORTED: Final = frozenset({"grpcio", "opensearch-protobufs", "protobuf"})
"""The lock has them because opensearch-py asks for them; it speaks no gRPC unless it is told to, and they are a third of the layer."""

_SERVICES: Final = frozenset({"dynamodb", "lambda", "sqs", "ssm", "sts"})
"""What of AWS the functions call; botocore describes four hundred services in 25 MB."""

_UNUSED: Final = (
    "bin",
    "onnxruntime/datasets",
    "onnxruntime/quantization",
    "onnxruntime/tools",
    "onnxruntime/transformers",
    "numpy/f2py",
    "boto3/data",
    "boto3/examples",
)
_UNUSED_NAMES: Final = ("tests", "__pycache__", "*.pyi", "*.c", "*.h", "*.pxd", "*.pyx", "*.a")
_TIME: Final = 1_577_836_800  # 2020-01-01: a zip of the same files is the same bytes
_NAME: Final = re.compile(r"^([a-z0-9][a-z0-9._-]*)==")


@dataclass(frozen=True)
class Target:
    """Where the functions run.

    Attributes:
        architecture: `arm64` or `x86_64`.
        embed_python: The embedding function's Python, as in ``3.12``; the others run 3.11.
        local: Whether this machine stands in for Lambda, with a system that is newer than Lambda's oldest.
    """

    architecture: str
    embed_python: str = "3.12"
    local: bool = False

    def platforms(self, python: str) -> list[str]:
        """The wheels' platforms that the system of that Python can load, newest first."""
        newest = _OLD_GLIBC if python == "3.11" and not self.local else _NEW_GLIBC
        machine = MACHINES[self.architecture]
        return [f"manylinux_2_{minor}_{machine}" for minor in range(newest, 4, -1)] + [f"manylinux2014_{machine}"]


def this_machine() -> Target:
    """The target of the local emulator, which runs functions with the Python of this machine."""
    return Target("arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64", "3.11", local=True)


def locked(text: str, chosen: Callable[[str], bool]) -> str:
    """The part of a lock that pins the chosen packages.

    Args:
        text: The lock: each package's line, followed by its hashes, indented.
        chosen: By the package's name.
    """
    lines: list[str] = []
    keep = False
    for line in text.splitlines():
        name = _NAME.match(line)
        if name:
            keep = chosen(name[1])
        if keep and (name or line.lstrip().startswith("--hash")):
            lines.append(line)
    return "\n".join(lines) + "\n"


def build(target: Target, folder: Path = LAYERS, *, only: Collection[str] = NAMES) -> dict[str, int]:
    """Builds what is missing or out of date.

    Args:
        target: Where the functions run.
        folder: Gets the layers, one folder each.
        only: The layers that are wanted.

    Returns:
        Each layer's size in bytes.

    Raises:
        SystemExit: A package can't be had, the model is not built, or a function would be too large.
    """
    functions, model = ((ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8") for name in ("functions", "model"))
    if "edge" in only:
        _built(folder / "edge", locked(functions, _EDGE.__contains__), target, "3.11")
    if "dependencies" in only:
        _built(folder / "dependencies", locked(functions, lambda name: name not in _EDGE | _NEVER_IMPORTED), target, "3.11")
    if "model" in only:
        _built(folder / "model", locked(model, _MODEL.__contains__), target, target.embed_python, _copy_model)
    if "core" in only:
        _core(folder / "core")
    sizes = {name: size_of(folder / name) for name in NAMES if name in only}
    check_sizes(sizes)
    return sizes


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Sees that each function fits.

    Args:
        sizes: Bytes of each layer.

    Raises:
        SystemExit: One does not.
    """
    for function, layers in FUNCTION_LAYERS.items():
        total = sum(sizes.get(layer, 0) for layer in layers)
        if total > MAX_UNZIPPED_BYTES:
            sys.exit(f"layers: {' + '.join(layers)} of the {function} function have {total} bytes; Lambda allows {MAX_UNZIPPED_BYTES}")


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def prune(folder: Path) -> None:
    """Removes what no function uses from a folder of installed packages."""
    for name in _UNUSED:
        shutil.rmtree(folder / name, ignore_errors=True)
    for pattern in _UNUSED_NAMES:
        for path in list(folder.rglob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    data = folder / "botocore" / "data"
    for service in data.glob("*/"):
        if service.is_dir() and service.name not in _SERVICES:
            shutil.rmtree(service)
    if (data / "endpoints.json").is_file():
        _prune_endpoints(data / "endpoints.json")


def _prune_endpoints(file: Path) -> None:
    """Keeps the regions, and the endpoints of the services that are called: the whole is read at each cold start, 1.2 MB."""
    endpoints = json.loads(file.read_text(encoding="utf-8"))
    for partition in endpoints["partitions"]:
        partition["services"] = {name: known for name, known in partition["services"].items() if name in _SERVICES}
    file.write_text(json.dumps(endpoints), encoding="utf-8")


def _built(layer: Path, lock: str, target: Target, python: str, more: Callable[[Path], None] | None = None) -> None:
    """Fills a layer with the packages of a lock, and with more."""

    def fill() -> None:
        _install(layer / "python", lock, target.platforms(python), python)
        prune(layer / "python")
        _compile(layer, python)
        if more is not None:
            more(layer)

    _filled(layer, [lock, target.architecture, python, *target.platforms(python)], fill)


def _filled(layer: Path, facts: Sequence[str], fill: Callable[[], None]) -> None:
    """Fills a layer and packs it, unless it was filled from the same facts."""
    made = hashlib.sha256("\n".join([Path(__file__).read_text(encoding="utf-8"), *facts]).encode()).hexdigest()
    stamp = layer.with_suffix(".made")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == made:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(layer, ignore_errors=True)
    fill()
    _stamp_times(layer)
    pack(layer, layer.with_suffix(".zip"))
    stamp.write_text(made, encoding="utf-8")


def pack(layer: Path, into: Path) -> None:
    """Packs a layer: the same bytes for the same files, so that an upload is only made where something changed."""
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(path for path in layer.rglob("*") if path.is_file()):
            packed.write(path, path.relative_to(layer))


def _install(folder: Path, lock: str, platforms: list[str], python: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch) / "lock.txt"
        requirements.write_text(lock, encoding="utf-8")
        # Without dependencies: the lock names every one that is wanted.
        options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--no-compile"]
        options += ["--implementation=cp", f"--python-version={python}"]
        options += [f"--platform={name}" for name in platforms]
        options += [f"--target={folder}", f"--requirement={requirements}"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", *options]
        ran = subprocess.run(command, check=False, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    if ran.returncode != 0:
        sys.exit(f"layers: the packages of {folder.parent.name} could not be installed")


def _copy_model(layer: Path) -> None:
    source = default_model_dir()
    (layer / "model").mkdir(parents=True)
    for name in (MANIFEST, GRAPH, TOKENIZER):
        if not (source / name).is_file():
            sys.exit("layers: the embedding model is not built; run: make setup")
        shutil.copyfile(source / name, layer / "model" / name)


def _core(layer: Path) -> None:
    package = ROOT / "layers" / "core" / "python" / "pulse_kg"

    def fill() -> None:
        # The command line brings libraries of its own; `minilm_build` is for the build alone.
        ignored = shutil.ignore_patterns("__pycache__", "cli", "minilm_build.py")
        shutil.copytree(package, layer / "python" / "pulse_kg", ignore=ignored)
        _compile(layer, "3.11")

    sources = sorted(path for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    _filled(layer, [f"{path.relative_to(package)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sources], fill)


def _compile(layer: Path, python: str) -> None:
    """Compiles modules where this interpreter is the functions' own, so that they count whatever a file's time and show no path of here."""
    if python != "{}.{}".format(*sys.version_info):
        return
    compileall.compile_dir(
        layer / "python",
        quiet=2,
        stripdir=str(layer),
        prependdir="/opt",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def _stamp_times(layer: Path) -> None:
    for path in layer.rglob("*"):
        os.utime(path, (_TIME, _TIME))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m infra.deploy.layers", description="Builds the layers of the functions.")
    parser.add_argument("--architecture", choices=sorted(MACHINES), default="arm64")
    parser.add_argument("--embed-python", choices=["3.12", "3.13"], default="3.12", help="of the embedding function")
    parser.add_argument("--local", action="store_true", help="for this machine instead, where the local emulator runs them")
    given = parser.parse_args()
    sizes = build(this_machine() if given.local else Target(given.architecture, given.embed_python))
    sys.stdout.write("layers: " + ", ".join(f"{name} {size / 1_000_000:.1f} MB" for name, size in sizes.items()) + "\n")


if __name__ == "__main__":
    main()
