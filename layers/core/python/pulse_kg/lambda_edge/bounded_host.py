"""The tools of this environment, within the time of one invocation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pulse_kg.errors import StoreUnavailable
from pulse_kg.lambda_edge.catalogue import catalogue
from pulse_kg.lambda_edge.environment import MIN_SECONDS
from pulse_kg.mcp.host import CallerHandle, ToolOutcome, ToolSpec

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container
    from pulse_kg.domain.permissions import Caller


class BoundedHost:
    """A tool host for one invocation; see `pulse_kg.mcp.host.ToolHost`.

    Args:
        container: Opens the stores, or gives those that are open.
        seconds: What the invocation may still take.
        authenticate: Tells the agent of a key, where that shall open less than the container.
    """

    def __init__(
        self, container: Callable[[], Container], seconds: float, *, authenticate: Callable[[str | None], Caller] | None = None
    ) -> None:
        self._container = container
        self._seconds = seconds
        self._authenticate = authenticate

    def authenticate(self, api_key: str | None) -> Caller:
        """The agent of a key."""
        if self._seconds < MIN_SECONDS:
            raise _no_time()
        return (self._authenticate or self._container().authenticate)(api_key)

    def tools(self) -> Sequence[ToolSpec]:
        """All tools, from the file of the catalogue: no tool is loaded for it."""
        return catalogue()

    def call(self, caller: CallerHandle, name: str, arguments: object, *, correlation_id: str) -> ToolOutcome:
        """Runs one tool."""
        from pulse_kg.mcp.local_host import LocalToolHost  # here, so that a function that only checks keys does without

        container = self._container()
        services = container.services
        limits = replace(services.limits, call_seconds=min(services.limits.call_seconds, self._seconds))
        host = LocalToolHost(
            replace(services, limits=limits), container.authenticate, max_response_bytes=container.settings.max_response_bytes
        )
        return host.call(caller, name, arguments, correlation_id=correlation_id)


def _no_time() -> StoreUnavailable:
    return StoreUnavailable("function", "No time was left to begin the call. Try the same call again.")
