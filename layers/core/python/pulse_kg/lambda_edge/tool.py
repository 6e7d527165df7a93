"""One tool as a function: every shape of event in, the tool's answer out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pulse_kg.adapters.budget import time_budget
from pulse_kg.errors import ToolNotFound
from pulse_kg.lambda_edge import environment
from pulse_kg.lambda_edge.answers import answered, outcome_of
from pulse_kg.lambda_edge.bounded_host import BoundedHost
from pulse_kg.lambda_edge.observed import Seen, observed
from pulse_kg.lambda_edge.shapes import direct_call, forwarded_correlation_id, gateway_call, gateway_custom, http_request, is_http
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.mcp.http import HttpGate, HttpResponse
from pulse_kg.mcp.routes import TOOLS_PATH, ToolRoutes
from pulse_kg.mcp.tools import TOOL_NAMES, find_tool

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container

Handler = Callable[[Any, Any], Any]
"""What Lambda calls: the event, the context."""


def tool_function(name: str, *, container: Callable[[], Container] = environment.container) -> Handler:
    """The handler of a tool's own function.

    The function checks the caller's key and permissions itself, whoever invokes it. An HTTP event is answered by an HTTP response, a
    call through an AgentCore Gateway by the answer or the envelope alone, a direct call by ``{"status", "is_error", "body"}``.

    Args:
        name: The tool, without the prefix.
        container: Opens the stores; called by the first invocation.

    Raises:
        ValueError: There is no such tool.
    """
    if name not in TOOL_NAMES:
        raise ValueError(name)
    find_tool(name)  # while the environment starts, which is faster than a call and does not count against one
    return _ToolFunction(name, container).handle


class _ToolFunction:
    def __init__(self, name: str, container: Callable[[], Container]) -> None:
        self._name = name
        self._container = container

    def handle(self, event: Any, context: Any) -> Any:
        """Answers one invocation; never raises."""
        seconds = environment.seconds_for(context)
        with observed(self._name, context, correlation_id=forwarded_correlation_id(event)) as seen, time_budget(seconds):
            host = BoundedHost(self._container, seconds)
            if is_http(event):
                return answered(seen, lambda: self._by_http(event, host, seen))
            custom = gateway_custom(context)
            outcome = outcome_of(seen, lambda: self._by_name(event, custom, host, seen))
            if custom is not None:
                return outcome.body
            return {"status": outcome.status, "is_error": outcome.is_error, "body": outcome.body}

    def _by_http(self, event: Mapping[str, Any], host: BoundedHost, seen: Seen) -> HttpResponse:
        gate = HttpGate(host, allowed_origins=environment.settings().allowed_origins, new_correlation_id=lambda: seen.correlation_id)
        # Whatever path leads here: this function has one tool.
        return ToolRoutes(host, gate).handle(replace(http_request(event), path=TOOLS_PATH + self._name))

    def _by_name(self, event: object, custom: Mapping[str, Any] | None, host: BoundedHost, seen: Seen) -> ToolOutcome:
        call = direct_call(event) if custom is None else gateway_call(event, custom)
        if call.tool not in (None, self._name):
            raise ToolNotFound(f"This function runs {self._name} and no other tool.", {"tools": [self._name]})
        key = call.api_key
        if key is None:  # a gateway's call: a direct one has been refused by now
            from pulse_kg.lambda_edge.bound_key import bound_key

            key = bound_key()
        return host.call(host.authenticate(key), self._name, call.arguments, correlation_id=seen.correlation_id)
