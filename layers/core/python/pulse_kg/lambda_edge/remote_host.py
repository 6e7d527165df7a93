"""The tools, each in a function of its own, as the protocol code sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pulse_kg.errors import PulseError, ToolNotFound
from pulse_kg.lambda_edge.catalogue import catalogue
from pulse_kg.lambda_edge.observed import logger
from pulse_kg.mcp.envelope import envelope, internal_error
from pulse_kg.mcp.host import TOOL_PREFIX, CallerHandle, ToolHost, ToolOutcome, ToolSpec
from pulse_kg.ports.functions import FunctionFailed

if TYPE_CHECKING:
    from pulse_kg.ports.functions import FunctionInvoker


@dataclass(frozen=True)
class KeyedCaller:
    """An agent with the key that it came with: the tool's function checks it again.

    Attributes:
        agent_id: The agent.
        api_key: Never logged.
    """

    agent_id: str
    api_key: str = field(repr=False)


class RemoteToolHost:
    """The tool host of the MCP function; see `pulse_kg.mcp.host.ToolHost`.

    Args:
        identity: Checks keys.
        invoker: Calls the functions.
        prefix: What their names begin with; the tool's name follows.
    """

    def __init__(self, identity: ToolHost, invoker: FunctionInvoker, prefix: str) -> None:
        self._identity = identity
        self._invoker = invoker
        self._prefix = prefix

    def authenticate(self, api_key: str | None) -> KeyedCaller:
        """The agent of a key, with the key."""
        return KeyedCaller(self._identity.authenticate(api_key).agent_id, api_key or "")

    def tools(self) -> Sequence[ToolSpec]:
        """All tools, sorted by name."""
        return catalogue()

    def call(self, caller: CallerHandle, name: str, arguments: object, *, correlation_id: str) -> ToolOutcome:
        """Calls the tool's function with the caller's key."""
        tool = name.removeprefix(TOOL_PREFIX)
        try:
            if not isinstance(caller, KeyedCaller):
                raise TypeError(type(caller).__name__)
            if all(spec.name != TOOL_PREFIX + tool for spec in catalogue()):
                raise ToolNotFound(
                    "There is no such tool. List the tools to see their names.", {"tools": [spec.name for spec in catalogue()]}
                )
            payload = {"tool": tool, "arguments": arguments, "api_key": caller.api_key, "correlation_id": correlation_id}
            return _outcome(tool, self._invoker.invoke(self._prefix + tool, payload))
        except PulseError as error:
            return ToolOutcome(envelope(error, correlation_id), is_error=True, status=error.status)
        except FunctionFailed as failed:
            logger().error("tool failed", extra={"tool": tool, "kind": failed.kind})
            return ToolOutcome(internal_error(correlation_id), is_error=True, status=500)


def _outcome(tool: str, answer: Any) -> ToolOutcome:
    """What a tool's function answered to a direct call.

    Raises:
        FunctionFailed: It is none of its answers.
    """
    said = answer if isinstance(answer, dict) else {}
    status, is_error, body = said.get("status"), said.get("is_error"), said.get("body")
    if not (isinstance(status, int) and isinstance(is_error, bool) and isinstance(body, dict)):
        raise FunctionFailed(tool, "its answer is none of a tool")
    return ToolOutcome(body, is_error=is_error, status=status)
