"""The MCP endpoint over HTTP: one URL, one message a request, always an answer in JSON.

Both eras are served at once. A request is of the stateless one if its ``_meta`` says so, or if its version header names
a revision that does not begin with `initialize`; everything else is of the older one.

Answers never stream, there are no sessions, and batches (which only 2025-03-26 had) are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pulse_kg.mcp import envelope, modern
from pulse_kg.mcp.calls import About
from pulse_kg.mcp.dispatch import Dispatcher
from pulse_kg.mcp.headers import DEFAULT_ALLOWED_ORIGINS
from pulse_kg.mcp.host import CallerHandle, ToolHost
from pulse_kg.mcp.http import DEFAULT_MAX_BODY_BYTES, HttpGate, HttpRequest, HttpResponse, json_response
from pulse_kg.mcp.jsonrpc import INVALID_REQUEST, Call, Reply, RequestId, RpcError, error_response, parse
from pulse_kg.mcp.revisions import ASSUMED_WITHOUT_HEADER, by_envelope, by_initialize, is_of_initialize_era

VERSION_HEADER = "mcp-protocol-version"


class McpEndpoint:
    """Answers HTTP requests to the MCP URL, whatever their path.

    Args:
        host: Knows the keys and runs the tools.
        server_name: For programs.
        server_version: The program's version.
        instructions: How to use the server, for a model.
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
        server_title: str | None = None,
        allowed_origins: Sequence[str] = DEFAULT_ALLOWED_ORIGINS,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        new_correlation_id: Callable[[], str] = envelope.new_correlation_id,
    ) -> None:
        self._dispatcher = Dispatcher(host, About(server_name, server_version, instructions, server_title))
        self._gate = HttpGate(host, allowed_origins=allowed_origins, max_body_bytes=max_body_bytes, new_correlation_id=new_correlation_id)

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Answers a request; never raises. May be called from several threads at once."""
        return self._gate.post(request, self._answer)

    def _answer(self, request: HttpRequest, caller: CallerHandle, correlation_id: str) -> HttpResponse:
        version = request.headers.get(VERSION_HEADER)
        try:
            message = parse(request.body)
            if not isinstance(message, Call):
                _check_unanswered(version, is_reply=isinstance(message, Reply))
                return HttpResponse(202)
        except RpcError as error:
            return _protocol_error(error.id, error)
        if modern.has_envelope(message.params) or not _is_legacy(version):
            answered = self._dispatcher.stateless(message, caller, request.headers, correlation_id=correlation_id)
            return json_response(answered.status, answered.payload)
        revision = ASSUMED_WITHOUT_HEADER if version is None else by_initialize(version)
        if revision is None:
            return _protocol_error(message.id, modern.unsupported_version(version or ""))
        answered = self._dispatcher.legacy(message, caller, revision, correlation_id=correlation_id)
        return json_response(answered.status, answered.payload)


def _is_legacy(version: str | None) -> bool:
    return version is None or is_of_initialize_era(version)


def _check_unanswered(version: str | None, *, is_reply: bool) -> None:
    """Refuses a notification of an unknown revision, and a response where the revision forbids clients to send one."""
    if is_reply and not _is_legacy(version):
        raise RpcError(INVALID_REQUEST, "A client sends requests and notifications, never responses.")
    if version is not None and by_initialize(version) is None and by_envelope(version) is None:
        raise modern.unsupported_version(version)


def _protocol_error(request_id: RequestId | None, error: RpcError) -> HttpResponse:
    return json_response(400, error_response(request_id, error))
