"""From a request to its response, for any transport: which era a request is of, and the one place where errors become JSON-RPC."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pulse_kg.mcp import legacy, modern
from pulse_kg.mcp.calls import About
from pulse_kg.mcp.host import CallerHandle, ToolHost
from pulse_kg.mcp.jsonrpc import INTERNAL_ERROR, Call, RpcError, error_response, response
from pulse_kg.mcp.revisions import Revision

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answered:
    """A response and the HTTP status that its revision gives it."""

    payload: dict[str, Any]
    status: int


class Dispatcher:
    """Answers requests of authenticated callers; holds no state of any client.

    Args:
        host: Runs the tools.
        about: What the server says of itself.
    """

    def __init__(self, host: ToolHost, about: About) -> None:
        self._host = host
        self._about = about

    def legacy(self, call: Call, caller: CallerHandle, revision: Revision, *, correlation_id: str) -> Answered:
        """Answers in a revision that `initialize` negotiated; protocol errors of it have no HTTP status of their own."""
        run = partial(legacy.answer, call, host=self._host, caller=caller, about=self._about, revision=revision)
        return _answered(call, run, lambda _code: 200, correlation_id)

    def stateless(self, call: Call, caller: CallerHandle, headers: Mapping[str, str] | None, *, correlation_id: str) -> Answered:
        """Answers in the stateless revision.

        Args:
            call: The request.
            caller: Who calls.
            headers: Those of HTTP, which must repeat parts of the body; `None` where the transport has none.
            correlation_id: Joins the answer to the log.
        """
        run = partial(modern.answer, call, host=self._host, caller=caller, about=self._about, headers=headers)
        return _answered(call, run, modern.status_of, correlation_id)


def _answered(call: Call, run: Callable[..., dict[str, Any]], status_of: Callable[[int], int], correlation_id: str) -> Answered:
    try:
        return Answered(response(call.id, run(correlation_id=correlation_id)), 200)
    except RpcError as error:
        return Answered(error_response(call.id, error), status_of(error.code))
    except Exception:
        # No revision gives an internal error a status of its own, so the response counts as delivered.
        logger.exception("JSON-RPC request failed: correlation_id=%s", correlation_id)
        return Answered(error_response(call.id, internal_error(correlation_id)), 200)


def internal_error(correlation_id: str) -> RpcError:
    """What a client sees of an exception that nobody foresaw; what it was stands in the log only."""
    return RpcError(
        INTERNAL_ERROR,
        f"Something went wrong inside the server. Report it with the correlation id {correlation_id}.",
        data={"correlation_id": correlation_id},
    )
