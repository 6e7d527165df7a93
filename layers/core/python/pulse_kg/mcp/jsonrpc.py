"""JSON-RPC 2.0 as the protocol uses it: one message, ids that are strings or integers, parameters by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.mcp import jsontext

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

RequestId = str | int


class RpcError(Exception):
    """A protocol error, for the `error` member of a response.

    Attributes:
        code: The JSON-RPC code.
        message: One sentence.
        data: JSON-ready facts, or `None` for none.
        id: The id of the request at fault, if it could be read and the receiver does not know it otherwise.
    """

    def __init__(self, code: int, message: str, *, data: Mapping[str, Any] | None = None, id: RequestId | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


@dataclass(frozen=True)
class Call:
    """A request that is owed a response. `params` is any JSON value; absent and null are an empty object."""

    id: RequestId
    method: str
    params: Any


@dataclass(frozen=True)
class Notification:
    """A message that is owed nothing."""

    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """A response that the client sent; this server asks clients nothing, so it belongs to no request."""


Message = Call | Notification | Reply


def parse(data: bytes) -> Message:
    """Reads one message.

    Raises:
        RpcError: `PARSE_ERROR` if the bytes are no JSON, `INVALID_REQUEST` if the JSON is no single message.
    """
    try:
        value = jsontext.decode(data)
    except jsontext.MalformedJson as error:
        raise RpcError(PARSE_ERROR, f"The message is not JSON that can be read: {error.reason}.") from None
    if isinstance(value, list):
        raise RpcError(INVALID_REQUEST, "Batches are not supported: send one message at a time.")
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "A message is one JSON object.")
    return _message(value)


def response(request_id: RequestId, result: Mapping[str, Any]) -> dict[str, Any]:
    """A response with a result."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_response(request_id: RequestId | None, error: RpcError) -> dict[str, Any]:
    """A response with an error; the id is null if the request's could not be read."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = dict(error.data)
    return {"jsonrpc": "2.0", "id": request_id, "error": body}


def _message(value: dict[str, Any]) -> Message:
    request_id = value.get("id")
    # A bool is an int to Python, and a request with id `true` would be answered as 1.
    valid_id = request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None
    if value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "The member 'jsonrpc' must be \"2.0\".", id=valid_id)
    if "method" not in value and ("result" in value or "error" in value):
        return Reply()
    method = value.get("method")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "The member 'method' must be a string.", id=valid_id)
    params = value.get("params")
    if "id" not in value:
        if not isinstance(params, dict | None):
            raise RpcError(INVALID_REQUEST, "The member 'params' of a notification must be an object.")
        return Notification(method, params or {})
    if valid_id is None:
        raise RpcError(INVALID_REQUEST, "The member 'id' must be a string or an integer.")
    return Call(valid_id, method, {} if params is None else params)
