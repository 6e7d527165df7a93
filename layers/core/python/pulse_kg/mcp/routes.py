"""All HTTP routes on plain values: `/mcp`, `/tools/<tool>` and `/healthz`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pulse_kg.errors import InvalidRequest
from pulse_kg.mcp import envelope, jsontext
from pulse_kg.mcp.headers import DEFAULT_ALLOWED_ORIGINS
from pulse_kg.mcp.host import CallerHandle, ToolHost
from pulse_kg.mcp.http import DEFAULT_MAX_BODY_BYTES, HttpGate, HttpRequest, HttpResponse, json_response
from pulse_kg.mcp.protocol import McpEndpoint

MCP_PATH: Final = "/mcp"
HEALTH_PATH: Final = "/healthz"
TOOLS_PATH: Final = "/tools/"


class ToolRoutes:
    """Each tool as a plain route: the arguments are the body, the answer or the envelope the response.

    Args:
        host: Runs the tools.
        gate: Admits the requests.
    """

    def __init__(self, host: ToolHost, gate: HttpGate) -> None:
        self._host = host
        self._gate = gate

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Answers a request whose path is `TOOLS_PATH` and a tool's name, with or without the prefix; never raises."""
        return self._gate.post(request, self._answer, empty_body=True)

    def _answer(self, request: HttpRequest, caller: CallerHandle, correlation_id: str) -> HttpResponse:
        name = request.path.removeprefix(TOOLS_PATH).rstrip("/")
        outcome = self._host.call(caller, name, _arguments(request.body), correlation_id=correlation_id)
        return json_response(outcome.status, outcome.body)


class HttpEdge:
    """Everything that is served over HTTP, under one server or another.

    Args:
        host: Knows the keys and runs the tools.
        server_name: For programs.
        server_version: The program's version.
        instructions: How to use the server, for a model.
        check_health: Returns if the stores answer, else raises `StoreUnavailable`.
        server_title: For people; the name will do if it is `None`.
        allowed_origins: Origins of browsers that may call; see `is_allowed_origin`.
        max_body_bytes: The largest body.
        new_correlation_id: Called once a request.
    """

    def __init__(
        self,
        host: ToolHost,
        *,
        server_name: str,
        server_version: str,
        instructions: str,
        check_health: Callable[[], None],
        server_title: str | None = None,
        allowed_origins: Sequence[str] = DEFAULT_ALLOWED_ORIGINS,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        new_correlation_id: Callable[[], str] = envelope.new_correlation_id,
    ) -> None:
        self.max_body_bytes = max_body_bytes
        self._check_health = check_health
        self._gate = HttpGate(host, allowed_origins=allowed_origins, max_body_bytes=max_body_bytes, new_correlation_id=new_correlation_id)
        self._tools = ToolRoutes(host, self._gate)
        self._mcp = McpEndpoint(
            host,
            server_name=server_name,
            server_version=server_version,
            instructions=instructions,
            server_title=server_title,
            allowed_origins=allowed_origins,
            max_body_bytes=max_body_bytes,
            new_correlation_id=new_correlation_id,
        )

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Answers a request; never raises. May be called from several threads at once."""
        path = request.path.rstrip("/")
        if path == MCP_PATH:
            return self._mcp.handle(request)
        if path == HEALTH_PATH:
            return self._gate.get(request, self._health)
        name = path.removeprefix(TOOLS_PATH)
        if name != path and name and "/" not in name:
            return self._tools.handle(request)
        return self._gate.not_found(request)

    def _health(self) -> HttpResponse:
        self._check_health()
        return json_response(200, {"status": "ok"})


def _arguments(body: bytes) -> object:
    if not body.strip():
        return {}
    try:
        arguments = jsontext.decode(body)
    except jsontext.MalformedJson as error:
        raise InvalidRequest(f"The body is not JSON that can be read: {error.reason}.") from None
    if not isinstance(arguments, dict):
        raise InvalidRequest("The body must be a JSON object: the tool's arguments by name.")
    return arguments
