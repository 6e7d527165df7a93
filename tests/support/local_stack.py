"""The real local servers for tests: an emulator of AWS, JanusGraph and OpenSearch, started once for a run of the tests.

PULSE_TEST_STACK says which: a file of variables such as `pulse-kg up` writes, for servers that run already (their graph is EMPTIED);
`off` for none; not set for servers of the tests' own, in .local/test, which are stopped at the end.
PULSE_TEST_DEMAND=all makes it a failure, and no skip, where they can't be had.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from pulse_kg.cli.stack_prepare import endpoints_from
from pulse_kg.endpoints import Endpoints

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".local" / "test"
DEMANDED = os.environ.get("PULSE_TEST_DEMAND") == "all"
_CHOSEN = os.environ.get("PULSE_TEST_STACK", "")


@dataclass
class _Stack:
    endpoints: Endpoints | None = None
    missing: str = "no test asked for the local servers before the tests began"
    own: bool = False


_STACK = _Stack()


def start() -> None:
    """Starts the servers, or finds out why they can't be had."""
    if _CHOSEN == "off":
        _STACK.missing = "PULSE_TEST_STACK=off"
    elif _CHOSEN:
        _STACK.endpoints = read_endpoints(Path(_CHOSEN))
    elif lacking := [program for program in ("java", "mvn") if shutil.which(program) is None]:
        _STACK.missing = f"the local servers need {' and '.join(lacking)} (Java 17, Maven)"
    else:
        _start_own()


def _start_own() -> None:
    sys.stderr.write("\ntests: starting the local servers in .local/test (fetched the first time: some minutes)\n")
    sys.stderr.flush()
    ports = free_ports(3)
    options = [f"--{name}-port={port}" for name, port in zip(("aws", "gremlin", "opensearch"), ports, strict=True)]
    ran = _pulse_kg("up", *options)
    if ran.returncode == 0:
        _STACK.endpoints, _STACK.own = read_endpoints(FOLDER / "stack.env"), True
        return
    with suppress(ValueError, KeyError):
        _STACK.missing = f"the local servers did not start: {json.loads(ran.stdout)['error']['message']}"
        return
    _STACK.missing = f"the local servers did not start: {ran.stderr.strip()[-500:]}"


def stop() -> None:
    """Stops servers of the tests' own."""
    if _STACK.own:
        _pulse_kg("down", "--wipe")
        _STACK.own, _STACK.endpoints = False, None


def servers() -> Endpoints:
    """Where they are; skips the test, or fails it where they are demanded, if they can't be had."""
    if _STACK.endpoints is None:
        if DEMANDED:
            pytest.fail(f"the real servers are demanded: {_STACK.missing}", pytrace=False)
        pytest.skip(_STACK.missing)
    return _STACK.endpoints


def own_folder() -> Path | None:
    """The folder of servers of the tests' own, which a test may kill and start again; None for others."""
    return FOLDER if _STACK.own else None


def _pulse_kg(command: str, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "pulse_kg.cli.main", command, "--dir", str(FOLDER), *options, "--json"]
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=None if command == "up" else subprocess.PIPE, text=True, check=False)


def read_endpoints(path: Path) -> Endpoints:
    """Where the servers of a file of variables are."""
    lines = (line.partition("=") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return endpoints_from({name: value for name, _, value in lines})


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
