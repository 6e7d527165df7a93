"""Runs the tools in this process."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.text import brief
from pulse_kg.errors import PermissionDenied, PulseError, ResourceExhausted, ToolNotFound
from pulse_kg.mcp.envelope import envelope, internal_error
from pulse_kg.mcp.host import TOOL_PREFIX, CallerHandle, ToolOutcome, ToolSpec
from pulse_kg.mcp.tools import TOOL_NAMES, all_tools, find_tool
from pulse_kg.usecases.services import Services

_log = logging.getLogger(__name__)


class LocalToolHost:
    """The tool host of the embedded form; see `pulse_kg.mcp.host.ToolHost`."""

    def __init__(
        self,
        services: Services,
        authenticate: Callable[[str | None], Caller],
        *,
        max_response_bytes: int,
    ) -> None:
        self._services = services
        self._authenticate = authenticate
        self._max_response_bytes = max_response_bytes

    def authenticate(self, api_key: str | None) -> Caller:
        """The agent of a key."""
        return self._authenticate(api_key)

    @cached_property
    def _specs(self) -> tuple[ToolSpec, ...]:
        return tuple(sorted((tool.spec for tool in all_tools()), key=lambda spec: spec.name))

    def tools(self) -> Sequence[ToolSpec]:
        """All tools, sorted by name."""
        return self._specs

    def call(self, caller: CallerHandle, name: str, arguments: object, *, correlation_id: str) -> ToolOutcome:
        """Runs one tool; the one place where an exception that nobody foresaw is caught."""
        try:
            return ToolOutcome(self._run(caller, name, arguments), is_error=False)
        except PulseError as error:
            _log.info("%r of %s refused: %s, correlation id %s", brief(name), caller.agent_id, error.code, correlation_id)
            return ToolOutcome(envelope(error, correlation_id), is_error=True, status=error.status)
        except Exception:  # noqa: BLE001 - the outer edge of every tool: what nobody foresaw is logged and told as internal_error
            _log.exception("%r of %s failed, correlation id %s", brief(name), caller.agent_id, correlation_id)
            return ToolOutcome(internal_error(correlation_id), is_error=True, status=500)

    def _run(self, caller: CallerHandle, name: str, arguments: object) -> dict[str, Any]:
        tool = find_tool(name.removeprefix(TOOL_PREFIX))
        if tool is None:
            raise ToolNotFound(
                "There is no such tool. List the tools to see their names.", {"tools": [TOOL_PREFIX + n for n in sorted(TOOL_NAMES)]}
            )
        if not isinstance(caller, Caller) or not caller.may(tool.flag):
            raise PermissionDenied.for_flag(tool.flag)
        with self._services.one_call():
            answer = tool(caller, arguments, self._services)
        if not tool.annotations.read_only:  # bounded by what was put in; and what was written must not look refused
            return answer
        size = len(json.dumps(answer, ensure_ascii=False).encode())
        if size > self._max_response_bytes:
            raise ResourceExhausted(
                f"The answer would have {size} bytes, and {self._max_response_bytes} are allowed. Ask for less.",
                {"budget": "response_bytes", "limit": self._max_response_bytes, "bytes": size},
            )
        return answer
