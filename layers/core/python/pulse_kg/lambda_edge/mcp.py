"""The MCP endpoint as a function: the protocol here, each tool in its own function."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pulse_kg import __version__
from pulse_kg.adapters.budget import time_budget
from pulse_kg.errors import InvalidRequest
from pulse_kg.lambda_edge import environment
from pulse_kg.lambda_edge.answers import answered, outcome_of
from pulse_kg.lambda_edge.bounded_host import BoundedHost
from pulse_kg.lambda_edge.observed import Seen, observed
from pulse_kg.lambda_edge.remote_host import RemoteToolHost
from pulse_kg.lambda_edge.shapes import http_request, is_http
from pulse_kg.mcp.host import ToolHost, ToolOutcome
from pulse_kg.mcp.routes import HttpEdge
from pulse_kg.mcp.tools import INSTRUCTIONS

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container
    from pulse_kg.domain.permissions import Caller
    from pulse_kg.lambda_edge.tool import Handler
    from pulse_kg.ports.functions import FunctionInvoker

FUNCTION_PREFIX: Final = "PULSE_KG_FUNCTION_PREFIX"
"""What the names of the tools' functions begin with; unset, the tools run in the MCP function itself."""

_PROBED_BOARD: Final = "default"


def mcp_function(
    *,
    container: Callable[[], Container] = environment.container,
    authenticate: Callable[[str | None], Caller] = environment.authenticate,
    invoker: Callable[[], FunctionInvoker] | None = None,
) -> Handler:
    """The handler of ``/mcp``, ``/healthz`` and of tools that are called by their path.

    Args:
        container: Opens the stores, for health, and for tools that run here.
        authenticate: Tells the agent of a key: keys are checked here as well, before anything of a request is read.
        invoker: Calls the tools' functions; Lambda's by default.
    """
    kept = cache(invoker or _lambda_invoker)

    def host(seconds: float) -> ToolHost:
        prefix = os.environ.get(FUNCTION_PREFIX)
        bounded = BoundedHost(container, seconds, authenticate=authenticate)
        return bounded if prefix is None else RemoteToolHost(bounded, kept(), prefix)

    def handle(event: Any, context: Any) -> Any:
        seconds = environment.seconds_for(context)
        with observed("mcp", context) as seen, time_budget(seconds):
            if is_http(event):
                return answered(seen, lambda: _edge(host(seconds), container, seen).handle(http_request(event)))
            outcome = outcome_of(seen, _no_http)
            return {"status": outcome.status, "is_error": outcome.is_error, "body": outcome.body}

    return handle


def _edge(host: ToolHost, container: Callable[[], Container], seen: Seen) -> HttpEdge:
    return HttpEdge(
        host,
        server_name="pulse-kg",
        server_title="Pulse KG",
        server_version=__version__,
        instructions=INSTRUCTIONS,
        check_health=lambda: _check_health(container()),
        allowed_origins=environment.settings().allowed_origins,
        new_correlation_id=lambda: seen.correlation_id,
    )


def _check_health(container: Container) -> None:
    container.boards.board(_PROBED_BOARD)


def _no_http() -> ToolOutcome:
    raise InvalidRequest("This function answers HTTP events of API Gateway. A tool's own function takes direct calls.")


def _lambda_invoker() -> FunctionInvoker:
    from pulse_kg.adapters.awslambda.invoker import LambdaInvoker

    return LambdaInvoker()
