"""Runs `pulse-kg serve` as its users do: as a process of its own, on a free port of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import pulse_kg
from pulse_kg.endpoints import ADDRESSES
from pulse_kg.settings import PREFIX, Settings

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20.0
_SHOWN: Final = 2_000  # characters of the server's complaint


class ServerFailed(Exception):
    """The server did not start, or did not stop as it should."""


@dataclass
class Server:
    """A running server.

    Attributes:
        url: Of its MCP endpoint.
    """

    url: str


@contextmanager
def serving(settings: Settings, log: Path) -> Iterator[Server]:
    """Serves a store for as long as the block lasts.

    Args:
        settings: Those of the server; of the environment it sees only what is no setting.
        log: Where its standard error goes.

    Raises:
        ServerFailed: It did not start, or did not stop in time and without a failure.
    """
    command = [sys.executable, "-m", "pulse_kg.cli.main", "--store", settings.store, "serve", "--port", "0", "--json"]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=_environment(os.environ, settings)
        )
    with process:
        try:
            yield Server(_listening(process, log))
            process.terminate()
            _wait(process, log)
        finally:
            process.kill()


def _environment(environment: Mapping[str, str], settings: Settings) -> dict[str, str]:
    kept = {name: value for name, value in environment.items() if not name.startswith(PREFIX) or name in ADDRESSES}
    # A package that is not installed is found where this process found it.
    path = [str(Path(pulse_kg.__file__).parents[1]), *filter(None, [environment.get("PYTHONPATH")])]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(path),
        f"{PREFIX}MODEL_DIR": str(settings.model_dir),
        f"{PREFIX}EMBEDDER_THREADS": str(settings.embedder_threads),
    }


def _listening(process: subprocess.Popen[bytes], log: Path) -> str:
    """The URL in the line that the server prints when it listens."""
    timer = threading.Timer(_START_SECONDS, process.kill)
    timer.start()
    try:
        line = _stdout(process).readline()
    finally:
        timer.cancel()
    try:
        return str(json.loads(line)["listening"])
    except (ValueError, KeyError):
        process.kill()
        raise ServerFailed(f"The server did not start. It says: {last_words(log)}") from None


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    try:
        code = process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        raise ServerFailed(f"The server did not stop within {_STOP_SECONDS:g} s. It says: {last_words(log)}") from None
    if code and os.name == "posix":  # elsewhere there is no signal to be polite with
        raise ServerFailed(f"The server stopped with exit code {code}. It says: {last_words(log)}")


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise ServerFailed("The server has no standard output.")
    return process.stdout


def last_words(log: Path) -> str:
    """The end of what the server wrote on its standard error."""
    return log.read_text(encoding="utf-8", errors="replace")[-_SHOWN:].strip() or "nothing"
