"""Starts `program` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.protocol.fakes import KEY

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "layers/core/python")]),
    "PULSE_KG_API_KEY": KEY,
    # Text streams must not depend on the locale of whoever runs the tests.
    "LC_ALL": "C",
}
COMMAND = [sys.executable, "-m", "tests.protocol.program"]


@contextmanager
def program(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program with pipes for its streams; killed at the end if it still runs."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env={**ENVIRONMENT, **variables}, cwd=ROOT
    ) as process:
        try:
            yield process
        finally:
            process.kill()
