"""The stateless revision, 2026-07-28: each request says in ``_meta`` which revision it speaks and what its client can."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pulse_kg.mcp.calls import CAPABILITIES, About, call_tool, list_tools, params_of
from pulse_kg.mcp.headers import decode_sentinel
from pulse_kg.mcp.host import CallerHandle, ToolHost
from pulse_kg.mcp.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Call,
    RpcError,
)
from pulse_kg.mcp.revisions import Revision, by_envelope, supported_names

HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"

_NAMED: Final[Mapping[str, str]] = MappingProxyType({"tools/call": "name", "prompts/get": "name", "resources/read": "uri"})
"""The methods whose Mcp-Name header repeats a parameter, and which one."""

_CACHE_MS: Final = 300_000
"""How long a client may keep the list of tools and the discovery: they change with a deployment only. Milliseconds."""


def has_envelope(params: object) -> bool:
    """Whether the parameters carry any of the reserved keys by which a request claims to be stateless.

    A half-built envelope counts, so that its author hears what is missing.
    """
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and not meta.keys().isdisjoint((VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY))


def status_of(code: int) -> int:
    """The HTTP status that this revision gives the protocol errors that are raised here."""
    return 404 if code == METHOD_NOT_FOUND else 400


def unsupported_version(requested: str) -> RpcError:
    """The refusal of a revision that is not served, or not this way."""
    return RpcError(
        UNSUPPORTED_VERSION,
        "This protocol version is not supported here. Those of 2025 begin with 'initialize'; later ones come in '_meta'.",
        data={"supported": supported_names(), "requested": requested},
    )


def answer(
    call: Call, *, host: ToolHost, caller: CallerHandle, about: About, headers: Mapping[str, str] | None, correlation_id: str
) -> dict[str, Any]:
    """The result of a request.

    Args:
        call: The request.
        host: Runs the tools.
        caller: Who calls.
        about: What discovery and each result's ``_meta`` say of the server.
        headers: Those of the HTTP request by lower-case name; `None` where the transport has none.
        correlation_id: Joins a tool's envelope to the log.

    Raises:
        RpcError: A protocol error; `status_of` gives the HTTP status.
    """
    revision = check(call, headers)
    params = params_of(call.params)
    match call.method:
        case "server/discover":
            _check_envelope(params)
            result = {"supportedVersions": supported_names(), "capabilities": dict(CAPABILITIES), "instructions": about.instructions}
            result |= _CACHEABLE
        case "tools/list":
            _check_envelope(params)
            result = list_tools(host, params, revision) | _CACHEABLE
        case "tools/call":
            _check_envelope(params)
            result = call_tool(host, caller, params, revision, correlation_id=correlation_id)
        case _:
            raise RpcError(METHOD_NOT_FOUND, f"This server has no method '{call.method[:128]}'.")
    return {"resultType": "complete", **result, "_meta": {SERVER_KEY: about.as_implementation(revision)}}


def check(call: Call, headers: Mapping[str, str] | None) -> Revision:
    """The checks that come before the method is looked up, in the order that the revision's clients rely on.

    A client that contradicts itself between header and body hears that first, whatever version it names.

    Raises:
        RpcError: The first check that failed.
    """
    meta = call.params.get("_meta") if isinstance(call.params, dict) else None
    if not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, f"The parameter '_meta' must be an object with '{VERSION_KEY}' and '{CAPABILITIES_KEY}'.")
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise RpcError(INVALID_PARAMS, f"The parameter '_meta' lacks {' and '.join(repr(key) for key in missing)}.")
    version = meta[VERSION_KEY]
    if headers is not None:
        _check_headers(call, version, headers)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"'{VERSION_KEY}' must be a string.")
    revision = by_envelope(version)
    if revision is None:
        raise unsupported_version(version)
    return revision


_CACHEABLE: Final[dict[str, Any]] = {"ttlMs": _CACHE_MS, "cacheScope": "private"}


def _check_headers(call: Call, version: object, headers: Mapping[str, str]) -> None:
    # Compared by presence too: a null in the body must not pass for an absent header.
    stated = headers.get("mcp-protocol-version")
    if stated is None or stated != version:
        raise _mismatch("MCP-Protocol-Version", f"'_meta' holds in '{VERSION_KEY}'")
    if headers.get("mcp-method") != call.method:
        raise _mismatch("Mcp-Method", "the body holds in 'method'")
    parameter = _NAMED.get(call.method)
    if parameter is None:
        return
    named = call.params.get(parameter)
    if named is not None and decode_sentinel(headers.get("mcp-name")) != named:
        raise _mismatch("Mcp-Name", f"the body holds in '{parameter}'")


def _mismatch(header: str, rest: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"The header {header} must be sent and equal what {rest}.")


def _check_envelope(params: Mapping[str, Any]) -> None:
    """The shape of the envelope's values, of which `check` sees only that they are there."""
    meta = params["_meta"]
    if not isinstance(meta[CAPABILITIES_KEY], dict):
        raise RpcError(INVALID_PARAMS, f"'{CAPABILITIES_KEY}' must be an object.")
    client = meta.get(CLIENT_KEY)
    if client is None:
        return
    if not isinstance(client, dict) or not all(isinstance(client.get(key), str) for key in ("name", "version")):
        raise RpcError(INVALID_PARAMS, f"'{CLIENT_KEY}' must be an object with the strings 'name' and 'version'.")
