"""One function as Lambda runs it: AWS's runtime interface emulator and client, around the built layers. No container.

The emulator is a program inside the package of the SAM CLI (.local/sam); the client that runs the handler is alone in .local/runtime, so
that the function finds everything else in its layers or not at all.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from infra.deploy.layers import FUNCTION_LAYERS, LAYERS, ROOT

SAM: Final = ROOT / ".local" / "sam"
RUNTIME: Final = ROOT / ".local" / "runtime"
_PATH: Final = "/2015-03-31/functions/function/invocations"
_START_SECONDS: Final = 20.0
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")


class EmulatorError(RuntimeError):
    """The function can't be run here; the message says what to do."""


@dataclass
class Running:
    """A function that can be invoked.

    Attributes:
        port: Of the emulator.
        log: Where it writes.
        started: When its process was started, by `time.perf_counter`.
    """

    port: int
    log: Path
    started: float

    def invoke(self, event: Any, *, timeout_seconds: float = 60.0) -> Any:
        """Sends an event; gives the function's answer, decoded.

        Raises:
            EmulatorError: It does not answer.
        """
        deadline = time.monotonic() + _START_SECONDS
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_seconds)
            try:
                connection.request("POST", _PATH, json.dumps(event))
                return json.loads(connection.getresponse().read())
            except ConnectionRefusedError:  # it does not listen yet
                if time.monotonic() > deadline:
                    raise EmulatorError(f"The emulator does not listen; its log is {self.log}.") from None
                time.sleep(0.002)
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise EmulatorError(f"The function did not answer ({type(error).__name__}); its log is {self.log}.") from error
            finally:
                connection.close()


@contextmanager
def running(
    function: str,
    environment: Mapping[str, str],
    *,
    log: Path,
    timeout_seconds: int = 29,
    memory_mb: int = 1024,
    layers: Path = LAYERS,
    code: Path | None = None,
) -> Iterator[Running]:
    """Runs a function until the context ends.

    Args:
        function: Its folder's name in functions/.
        environment: Its variables, as the template would set them.
        log: Gets what it and the emulator write.
        timeout_seconds: After which the emulator ends a call.
        memory_mb: What it is told to have; nothing enforces it here.
        layers: The built layers.
        code: Another folder of the handler.

    Raises:
        EmulatorError: Something of it is missing.
    """
    code = code or ROOT / "functions" / function
    with tempfile.TemporaryDirectory() as scratch:
        program = _program(Path(scratch))
        port, api_port = _free_ports(2)
        command = [str(program), f"--runtime-interface-emulator-address=127.0.0.1:{port}", f"--runtime-api-address=127.0.0.1:{api_port}"]
        command += [str(RUNTIME / "bin" / "python"), "-m", "awslambdaric", "handler.handler"]
        variables = {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "AWS_LAMBDA_FUNCTION_NAME": function,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_seconds),
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory_mb),
            "PYTHONPATH": os.pathsep.join(map(str, (code, _opt(Path(scratch), function, layers)))),
            **environment,
        }
        with log.open("wb") as output:
            started = time.perf_counter()
            process = subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT, cwd=code, start_new_session=True)
            try:
                yield Running(port, log, started)
            finally:
                _end(process)


def _opt(scratch: Path, function: str, layers: Path) -> Path:
    """A function's layers in one folder, by links, as Lambda unpacks them over each other into /opt/python."""
    python = scratch / "python"
    (python / "__pycache__").mkdir(parents=True)
    for name in FUNCTION_LAYERS["embed" if function == "embed" else "tool"]:
        layer = layers / name / "python"
        if not layer.is_dir():
            raise EmulatorError(f"{layer.relative_to(ROOT) if layer.is_relative_to(ROOT) else layer} is missing. Run: make build")
        for path in (*layer.glob("[!_]*"), *layer.glob("_[!_]*"), *layer.glob("__pycache__/*")):
            (python / path.relative_to(layer)).symlink_to(path.resolve())
    return python


def _program(scratch: Path) -> Path:
    machine = "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"
    found = sorted(SAM.glob(f"lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-{machine}"))
    if not found or not (RUNTIME / "bin" / "python").exists():
        raise EmulatorError("The emulator of Lambda is not installed. Run: make functions-setup")
    # The package does not mark it as a program, and what is installed stays as it is.
    program = scratch / "aws-lambda-rie"
    shutil.copyfile(found[0], program)
    program.chmod(0o700)
    return program


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the emulator with the runtime that it started; both are of one group of processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
