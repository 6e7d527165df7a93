"""A tool host without a graph, and short ways to talk to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse_kg.errors import InvalidArgument, Problem, PulseError, SessionNotFound, StoreUnavailable, ToolNotFound, Unauthorized
from pulse_kg.mcp.envelope import envelope
from pulse_kg.mcp.host import TOOL_PREFIX, Annotations, CallerHandle, ToolOutcome, ToolSpec
from pulse_kg.mcp.http import HttpRequest, HttpResponse
from pulse_kg.mcp.routes import HttpEdge

KEY = "pk_test0001_secret"
ECHO, REFUSE, SLOW, BROKEN = (f"{TOOL_PREFIX}{name}" for name in ("echo", "refuse", "slow", "broken"))
SECRET_OF_A_BUG = "/var/lib/secret-path"
ABOUT = {"server_name": "fake", "server_version": "1.2.3", "instructions": "Call echo.", "server_title": "A fake"}

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "0"},
}


@dataclass(frozen=True)
class FakeCaller:
    agent_id: str = "tester"


@dataclass
class FakeHost:
    """Four tools: echo answers its text, refuse refuses, slow waits for `gate` (or a named pipe), broken is a bug.

    Attributes:
        keys: The keys that are good.
        failure: Raised by `authenticate` if set.
        calls: Tool and arguments of every call, in order of arrival.
        arrived: Released once for every call of slow.
        gate: Lets the calls of slow go on.
    """

    keys: set[str] = field(default_factory=lambda: {KEY})
    failure: Exception | None = None
    calls: list[tuple[str, object]] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    gate: threading.Event = field(default_factory=threading.Event)

    def authenticate(self, api_key: str | None) -> CallerHandle:
        if self.failure is not None:
            raise self.failure
        if api_key not in self.keys:
            raise Unauthorized
        return FakeCaller()

    def tools(self) -> Sequence[ToolSpec]:
        return sorted((_spec(name) for name in (ECHO, REFUSE, SLOW, BROKEN)), key=lambda spec: spec.name)

    def call(self, caller: CallerHandle, name: str, arguments: object, *, correlation_id: str) -> ToolOutcome:
        full = name if name.startswith(TOOL_PREFIX) else TOOL_PREFIX + name
        self.calls.append((full, arguments))
        try:
            return ToolOutcome(self._run(full, arguments), is_error=False)
        except PulseError as error:
            return ToolOutcome(envelope(error, correlation_id), is_error=True, status=error.status)

    def _run(self, name: str, arguments: object) -> dict[str, Any]:
        if not isinstance(arguments, dict):
            raise InvalidArgument("The arguments must be an object.", [Problem("", "must be an object")])
        unknown = sorted(arguments.keys() - {"text", "pipe"})
        if unknown:
            raise InvalidArgument("Some arguments are unknown.", [Problem(key, "is not an argument of this tool") for key in unknown])
        if name == ECHO:
            return {"text": arguments.get("text", ""), "length": len(arguments.get("text", ""))}
        if name == REFUSE:
            raise SessionNotFound
        if name == SLOW:
            self._wait(arguments)
            return {"text": "waited", "length": 0}
        if name == BROKEN:
            raise RuntimeError(SECRET_OF_A_BUG)
        raise ToolNotFound(f"There is no tool {name}.")

    def _wait(self, arguments: Mapping[str, Any]) -> None:
        self.arrived.release()
        if "pipe" in arguments:
            Path(arguments["pipe"]).read_bytes()
        else:
            assert self.gate.wait(60)


def _spec(name: str) -> ToolSpec:
    return ToolSpec(
        name=name,
        title=name.removeprefix(TOOL_PREFIX).capitalize(),
        description=f"The tool {name} of a test.",
        input_schema={
            "type": "object",
            "properties": {"text": {"type": "string"}, "pipe": {"type": "string"}},
            "additionalProperties": False,
        },
        output_schema={
            "type": "object",
            "properties": {"text": {"type": "string"}, "length": {"type": "integer"}},
            "required": ["text", "length"],
            "additionalProperties": False,
        },
        annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    )


def fake_edge(host: FakeHost, **options: Any) -> HttpEdge:
    """All HTTP routes over a host; a store that fails is told by `host.failure`."""

    def check_health() -> None:
        if host.failure is not None:
            raise StoreUnavailable("graph") from host.failure

    return HttpEdge(host, **{**ABOUT, "check_health": check_health, **options})


@dataclass(frozen=True)
class Answer:
    """A response and its JSON."""

    response: HttpResponse

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def json(self) -> Any:
        return json.loads(self.response.body)

    @property
    def result(self) -> Any:
        assert self.status == 200, self.response
        return self.json["result"]

    @property
    def error(self) -> Any:
        return self.json["error"]


class Wire:
    """Sends requests to the routes as a client would put them on the wire, the key included unless told otherwise."""

    def __init__(self, host: FakeHost, **options: Any) -> None:
        self.edge = fake_edge(host, **options)

    def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str | None] | None = None) -> Answer:
        """One request; a header whose value is `None` is left out."""
        usual = {"content-type": "application/json", "accept": "application/json, text/event-stream", "authorization": f"Bearer {KEY}"}
        merged = {name: value for name, value in {**usual, **(headers or {})}.items() if value is not None}
        return Answer(self.edge.handle(HttpRequest(method, path, merged, body)))

    def post(self, body: object, headers: Mapping[str, str | None] | None = None) -> Answer:
        """One POST to the MCP endpoint; bytes go as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send("POST", "/mcp", data, headers)

    def legacy(self, revision: str | None, method: str, params: object = None, **members: Any) -> Answer:
        """A request in a revision that begins with `initialize`."""
        return self.post(rpc(method, params, **members), {"mcp-protocol-version": revision})

    def stateless(self, method: str, params: Mapping[str, Any] | None = None, headers: Mapping[str, str | None] | None = None) -> Answer:
        """A request in the stateless revision, well-formed but for what the arguments change."""
        body = rpc(method, {"_meta": META, **(params or {})})
        return self.post(body, {**stateless_headers(body), **(headers or {})})


def rpc(method: str, params: object = None, **members: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, **members}
    return body if params is None else {**body, "params": params}


def stateless_headers(body: Mapping[str, Any]) -> dict[str, str | None]:
    """The headers that a request of the stateless revision repeats its body in."""
    headers: dict[str, str | None] = {"mcp-protocol-version": "2026-07-28", "mcp-method": body["method"]}
    name = body["params"].get("name")
    if isinstance(name, str):
        headers["mcp-name"] = name
    return headers
