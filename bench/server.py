"""A server of the package in a process of its own, as ``pulse-kg serve`` starts it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.world import Call, answer_of, environment_of
from pulse_kg.mcp.host import TOOL_PREFIX
from pulse_kg.mcp.modern import CAPABILITIES_KEY, CLIENT_KEY, VERSION_KEY
from pulse_kg.mcp.revisions import Revision

PROGRAM = str(Path(sys.executable).parent / "pulse-kg")
_REVISION = Revision.JULY_2026.value
_ANSWER_SECONDS = 60.0
_STOP_SECONDS = 20


@dataclass(frozen=True)
class Served:
    """A running server.

    Attributes:
        pid: Its process.
        call: Calls its tools over one connection.
        listening_ms: From the start of the process to the line that it listens.
        started: When the process was started, by `time.perf_counter`.
    """

    pid: int
    call: Call
    listening_ms: float
    started: float


class _Client:
    """An MCP client of the stateless revision that keeps its connection, as most do."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_ANSWER_SECONDS)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {key}",
            "MCP-Protocol-Version": _REVISION,
            "Mcp-Method": "tools/call",
        }

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Calls a tool; see `bench.world.Call`."""
        name = TOOL_PREFIX + tool
        meta = {VERSION_KEY: _REVISION, CAPABILITIES_KEY: {}, CLIENT_KEY: {"name": "bench", "version": "1"}}
        params = {"name": name, "arguments": dict(arguments), "_meta": meta}
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        self._connection.request("POST", self._path, message.encode(), {**self._headers, "Mcp-Name": name})
        result = json.loads(self._connection.getresponse().read())["result"]
        return answer_of(tool, json.loads(result["content"][0]["text"]), is_error=result["isError"])

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


@contextmanager
def serving(store: Path, key: str) -> Iterator[Served]:
    """Serves a store on a free port, and stops at the end."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [PROGRAM, "serve", "--port", "0", "--json"], env=environment_of(store, key), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        if process.stdout is None or not (line := process.stdout.readline()):
            raise RuntimeError("the server ended before it listened")
        listening_ms = (time.perf_counter() - started) * 1000
        with closing(_Client(json.loads(line)["listening"], key)) as client:
            yield Served(process.pid, client.call, listening_ms, started)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
