"""The revisions that begin with `initialize`: 2025-03-26, 2025-06-18 and 2025-11-25.

Served without sessions: the version comes with each request, and a session id that a client sends is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulse_kg.mcp.calls import CAPABILITIES, About, call_tool, list_tools, params_of
from pulse_kg.mcp.host import CallerHandle, ToolHost
from pulse_kg.mcp.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Call, RpcError
from pulse_kg.mcp.revisions import NEWEST_BY_INITIALIZE, Revision, by_initialize


def answer(call: Call, *, host: ToolHost, caller: CallerHandle, about: About, revision: Revision, correlation_id: str) -> dict[str, Any]:
    """The result of a request.

    Args:
        call: The request.
        host: Runs the tools.
        caller: Who calls.
        about: What `initialize` says of the server.
        revision: The negotiated one.
        correlation_id: Joins a tool's envelope to the log.

    Raises:
        RpcError: A protocol error.
    """
    params = params_of(call.params)
    match call.method:
        case "initialize":
            return _initialize(params, about)
        case "ping":
            return {}
        case "tools/list":
            return list_tools(host, params, revision)
        case "tools/call":
            return call_tool(host, caller, params, revision, correlation_id=correlation_id)
        case _:
            raise RpcError(METHOD_NOT_FOUND, f"This server has no method '{call.method[:128]}'.")


def _initialize(params: Mapping[str, Any], about: About) -> dict[str, Any]:
    requested = params.get("protocolVersion")
    if not isinstance(requested, str):
        raise RpcError(INVALID_PARAMS, "The parameter 'protocolVersion' must be a string.")
    # A client decides for itself whether it can go on with another revision than it asked for.
    revision = by_initialize(requested) or NEWEST_BY_INITIALIZE
    return {
        "protocolVersion": revision.value,
        "capabilities": dict(CAPABILITIES),
        "serverInfo": about.as_implementation(revision),
        "instructions": about.instructions,
    }
