"""A small MCP client over HTTP, of the stateless revision: what `pulse-kg demo` talks to the server with.

It is an agent's side of the protocol and knows nothing of this package's insides but the shape of a tool's outcome.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

from pulse_kg import __version__
from pulse_kg.mcp.host import TOOL_PREFIX, ToolOutcome
from pulse_kg.mcp.modern import CAPABILITIES_KEY, CLIENT_KEY, VERSION_KEY
from pulse_kg.mcp.revisions import Revision

Call = Callable[[str, Mapping[str, Any]], ToolOutcome]
"""One tool call: the tool's name without the prefix, its arguments; refusals are outcomes."""

REVISION: Final = Revision.JULY_2026.value

_OK: Final = 200


class ProtocolFailure(Exception):
    """The server's answer is not one that the protocol has for the request."""


class McpClient:
    """Calls tools as one agent, over a connection for each call: the revision is stateless, and none can go stale.

    Args:
        url: Of the MCP endpoint, such as ``http://127.0.0.1:8765/mcp``.
        api_key: The agent's key.
        timeout_seconds: How long an answer may take.
    """

    def __init__(self, url: str, api_key: str, *, timeout_seconds: float = 60.0) -> None:
        parts = urlsplit(url)
        self._path = parts.path or "/"
        self._host, self._port = parts.hostname or "", parts.port
        self._timeout_seconds = timeout_seconds
        self._api_key = api_key
        self._requests = 0

    @property
    def requests(self) -> int:
        """How many requests were made."""
        return self._requests

    def discover(self) -> dict[str, Any]:
        """What the server says of itself."""
        return self.request("server/discover", {})

    def tools(self) -> list[dict[str, Any]]:
        """The catalogue."""
        listed: list[dict[str, Any]] = self.request("tools/list", {})["tools"]
        return listed

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Calls a tool.

        Args:
            name: Without the prefix.
            arguments: By name.

        Returns:
            The answer, or the envelope of its refusal.

        Raises:
            ProtocolFailure: The call never reached the tool.
            OSError: The server can't be reached.
        """
        result = self.request("tools/call", {"name": TOOL_PREFIX + name, "arguments": dict(arguments)})
        body = json.loads(result["content"][0]["text"])
        if not result["isError"]:
            return ToolOutcome(body, is_error=False)
        return ToolOutcome(body, is_error=True, status=body["error"]["status"])

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Sends one request and reads its result.

        Raises:
            ProtocolFailure: The answer is an error, or not JSON-RPC.
            OSError: The server can't be reached.
        """
        self._requests += 1
        meta = {VERSION_KEY: REVISION, CAPABILITIES_KEY: {}, CLIENT_KEY: {"name": "pulse-kg-demo", "version": __version__}}
        message = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": {**params, "_meta": meta}}
        with closing(http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)) as connection:
            connection.request("POST", self._path, json.dumps(message).encode(), self._headers(method, params))
            try:
                response = connection.getresponse()
                body = response.read()
            except http.client.HTTPException as error:
                raise ProtocolFailure(f"{method}: the answer is not HTTP: {error!r}") from error
        return _result(method, response.status, body)

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = {
            "Connection": "close",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self._api_key}",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": method,
        }
        return {**headers, "Mcp-Name": params["name"]} if "name" in params else headers


def _result(method: str, status: int, body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        raise ProtocolFailure(f"{method}: HTTP {status}, and the body is not JSON") from None
    result = answer.get("result") if isinstance(answer, dict) else None
    if status != _OK or not isinstance(result, dict):
        problem = answer.get("error", {}) if isinstance(answer, dict) else {}
        raise ProtocolFailure(f"{method}: HTTP {status}: {problem.get('message', 'no result')}")
    return result
