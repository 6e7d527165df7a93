"""Runs a function once with its sample event, as Lambda would: ``python -m infra.deploy.invoke begin_consolidation``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from infra.deploy.emulator import EmulatorError, Running, running
from infra.deploy.events import event_of
from infra.deploy.layers import LAYERS, ROOT

STACK_FILE: Final = ROOT / ".local" / "stack.env"
_PASSED: Final = ("AWS_", "PULSE_KG_")
_NOT_PASSED: Final = frozenset({"PULSE_KG_API_KEY", "AWS_PROFILE"})


@dataclass(frozen=True)
class Invoked:
    """A cold call and warm ones.

    Attributes:
        answer: Of the first call.
        cold_ms: From the start of the process to the first answer, the emulator's own start included.
        warm_ms: Of each further call.
    """

    answer: Any
    cold_ms: float
    warm_ms: tuple[float, ...]


def function_environment(
    function: str, environment: Mapping[str, str], *, stack_file: Path = STACK_FILE, layers: Path = LAYERS
) -> dict[str, str]:
    """A function's variables: those of the local servers where they are up, over them the caller's own.

    Args:
        function: Its name.
        environment: The caller's; of it what begins with AWS_ and PULSE_KG_, the key excepted.
        stack_file: Of the local servers.
        layers: The built layers.
    """
    variables = {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "POWERTOOLS_TRACE_DISABLED": "true"}
    if stack_file.is_file():
        lines = stack_file.read_text(encoding="utf-8").splitlines()
        variables |= dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    variables |= {name: value for name, value in environment.items() if name.startswith(_PASSED) and name not in _NOT_PASSED}
    if function == "embed":
        variables |= {"PULSE_KG_EMBEDDER": "minilm", "PULSE_KG_MODEL_DIR": str(layers / "model" / "model")}
    return variables


def invoke(function: str, event: Any, environment: Mapping[str, str], *, log: Path, warm: int = 0) -> Invoked:
    """Starts a function, calls it, and calls it again.

    Args:
        function: Its name.
        event: What it is called with.
        environment: Its variables.
        log: Gets its log.
        warm: How many further calls.

    Raises:
        EmulatorError: It can't be run here, or does not answer.
    """
    with running(function, environment, log=log) as started:
        answer = started.invoke(event)
        cold = (time.perf_counter() - started.started) * 1000
        return Invoked(answer, cold, tuple(_timed(started, event) for _ in range(warm)))


def _timed(started: Running, event: Any) -> float:
    begun = time.perf_counter()
    started.invoke(event)
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m infra.deploy.invoke", description="Runs a function once, as Lambda would.")
    parser.add_argument("function", help="its folder in functions/")
    parser.add_argument("--key-file", type=Path, help="holds the caller's API key; PULSE_KG_API_KEY otherwise")
    parser.add_argument("--warm", type=int, default=0, metavar="N", help="call it N more times")
    parser.add_argument("--log", action="store_true", help="show what the function and the emulator wrote")
    given = parser.parse_args()
    key = given.key_file.read_text(encoding="utf-8").strip() if given.key_file else os.environ.get("PULSE_KG_API_KEY")
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "function.log"
        try:
            event = event_of(given.function, key)
            done = invoke(given.function, event, function_environment(given.function, os.environ), log=log, warm=given.warm)
        except EmulatorError as error:
            said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
            sys.exit(f"{said}invoke: {error}")
        if given.log:
            sys.stderr.write(log.read_text(encoding="utf-8", errors="replace"))
    sys.stdout.write(json.dumps(done.answer, indent=2, ensure_ascii=False) + "\n")
    warm = f", warm {sorted(done.warm_ms)[len(done.warm_ms) // 2]:.1f} ms (median of {len(done.warm_ms)})" if done.warm_ms else ""
    sys.stderr.write(f"invoke: cold {done.cold_ms:.0f} ms{warm}\n")


if __name__ == "__main__":
    main()
