"""The shapes in which an invocation arrives, read into plain values.

- HTTP: an event of API Gateway's REST API (payload 1.0) or HTTP API (payload 2.0), also of a function URL.
- Gateway: the arguments alone, from a Bedrock AgentCore Gateway, which names the tool in the client context.
- Direct: ``{"tool"?, "arguments"?, "api_key", "correlation_id"?}``, as the MCP function calls the tools.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from pulse_kg.errors import InvalidArgument, InvalidRequest, Problem, Unauthorized
from pulse_kg.mcp import jsontext
from pulse_kg.mcp.headers import api_key
from pulse_kg.mcp.host import TOOL_PREFIX
from pulse_kg.mcp.http import HttpRequest, HttpResponse

MAX_ANSWER_BYTES: Final = 6_000_000
"""Of a function's answer as JSON; Lambda refuses more than 6 MiB."""

_GATEWAY_TOOL: Final = "bedrockAgentCoreToolName"
_GATEWAY_HEADERS: Final = "bedrockAgentCorePropagatedHeaders"
_TARGET_MARK: Final = "___"
_CORRELATION_ID: Final = re.compile(r"[0-9a-f]{16}")
_MEMBERS: Final = ("tool", "arguments", "api_key", "correlation_id")


@dataclass(frozen=True)
class ToolCall:
    """A call that came without HTTP.

    Attributes:
        tool: The tool's name without prefix; None if the call leaves it to the function.
        arguments: As they came.
        api_key: The caller's key; None for none.
    """

    tool: str | None
    arguments: object
    api_key: str | None = field(repr=False)


def is_http(event: object) -> bool:
    """Whether an event is one of API Gateway."""
    return isinstance(event, dict) and isinstance(event.get("requestContext"), dict) and ("httpMethod" in event or "routeKey" in event)


def http_request(event: Mapping[str, Any]) -> HttpRequest:
    """The request of an HTTP event.

    Raises:
        InvalidRequest: The body is said to be base64 and is not.
    """
    if "httpMethod" in event:
        return HttpRequest(str(event["httpMethod"]).upper(), _path_v1(event), _headers(event), _body(event))
    http = event["requestContext"].get("http") or {}
    return HttpRequest(str(http.get("method", "")).upper(), _path_v2(event), _headers(event), _body(event))


def http_response(response: HttpResponse) -> dict[str, Any]:
    """The response as both payload versions take it. All bodies of this project are UTF-8."""
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "body": response.body.decode("utf-8"),
        "isBase64Encoded": False,
    }


def is_too_large(answer: Mapping[str, Any]) -> bool:
    """Whether Lambda would refuse an answer for its size."""
    body = answer.get("body")
    # In the answer's own JSON each quote and backslash of a text gets one more; nothing short of that needs to be counted.
    if isinstance(body, str) and 2 * len(body.encode()) < MAX_ANSWER_BYTES:
        return False
    return len(jsontext.encode(answer)) > MAX_ANSWER_BYTES


def gateway_custom(context: object) -> Mapping[str, Any] | None:
    """What an AgentCore Gateway says beside the arguments; None for an invocation by anybody else."""
    custom = getattr(getattr(context, "client_context", None), "custom", None)
    return custom if isinstance(custom, dict) and isinstance(custom.get(_GATEWAY_TOOL), str) else None


def gateway_call(event: object, custom: Mapping[str, Any]) -> ToolCall:
    """A call by an AgentCore Gateway, with the key of a header that the target lets through."""
    name = str(custom[_GATEWAY_TOOL])
    # The target's name has no mark in it, and neither has a tool's: the first one parts them.
    target, mark, tool = name.partition(_TARGET_MARK)
    propagated = custom.get(_GATEWAY_HEADERS)
    headers = {str(n).lower(): str(v) for n, v in propagated.items()} if isinstance(propagated, dict) else {}
    # Authorization is the gateway's own where it checks a token, so our header goes first here.
    key = headers.get("x-api-key", "").strip() or api_key(headers)
    return ToolCall((tool if mark else target).removeprefix(TOOL_PREFIX), event, key)


def direct_call(event: object) -> ToolCall:
    """A direct call.

    Raises:
        Unauthorized: It brings no key, whatever else it says of its caller.
        InvalidArgument: It has members that no call has, or one of the wrong type.
    """
    given = event if isinstance(event, dict) else {}
    key = given.get("api_key")
    if not isinstance(key, str) or not key.strip():
        raise Unauthorized
    problems = [Problem(str(name)[:64], f"is no part of a call; it has {', '.join(_MEMBERS)}") for name in given if name not in _MEMBERS]
    tool = given.get("tool")
    if tool is not None and not isinstance(tool, str):
        problems.append(Problem("tool", "must be a string"))
    if problems:
        raise InvalidArgument(f"The call can't be read: '{problems[0].path}' {problems[0].problem}.", problems)
    arguments = given.get("arguments")
    return ToolCall(tool.removeprefix(TOOL_PREFIX) if isinstance(tool, str) else None, {} if arguments is None else arguments, key.strip())


def forwarded_correlation_id(event: object) -> str | None:
    """The id that a direct call brings, so that the logs of both functions can be joined; None without a usable one."""
    value = event.get("correlation_id") if isinstance(event, dict) and not is_http(event) else None
    return value if isinstance(value, str) and _CORRELATION_ID.fullmatch(value) else None


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    """By lower-case name; payload 1.0 has the values of a repeated header in a map of lists."""
    headers = {str(name).lower(): str(value) for name, value in (event.get("headers") or {}).items() if value is not None}
    many: dict[str, str] = {}
    for name, values in (event.get("multiValueHeaders") or {}).items():
        if values:
            many[str(name).lower()] = ", ".join(map(str, values))
    return headers | many


def _body(event: Mapping[str, Any]) -> bytes:
    body = event.get("body")
    if not isinstance(body, str):
        return b""
    if not event.get("isBase64Encoded"):
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        raise InvalidRequest("The body is said to be base64 and is not.") from None


def _path_v1(event: Mapping[str, Any]) -> str:
    """The path under the API, whatever stage, domain or base path it was called by: the route's own, with its parameters."""
    route = event.get("resource")
    if not isinstance(route, str):
        return str(event.get("path") or "/")
    for name, value in (event.get("pathParameters") or {}).items():
        route = route.replace("{" + str(name) + "}", str(value)).replace("{" + str(name) + "+}", str(value))
    return unquote(route)


def _path_v2(event: Mapping[str, Any]) -> str:
    path, stage = str(event.get("rawPath") or "/"), event["requestContext"].get("stage")
    if stage and path.startswith(f"/{stage}/"):
        path = path.removeprefix(f"/{stage}")
    return unquote(path)
