"""Calls a tool by its module, whether or not the catalogue has it: checks, permission and envelope are those of a real call."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pulse_kg.errors import PermissionDenied, PulseError
from pulse_kg.mcp.envelope import envelope
from pulse_kg.mcp.tools.base import Tool
from tests.support.world import Agent, Refused


def tool_of(name: str) -> Tool[Any]:
    """The tool of that name, without the prefix."""
    tool: Tool[Any] = import_module(f"pulse_kg.mcp.tools.{name}").TOOL
    return tool


def ask(agent: Agent, tool_name: str, **arguments: Any) -> dict[str, Any]:
    """One call that is expected to succeed; raises `Refused` otherwise."""
    tool, container = tool_of(tool_name), agent.world.container
    try:
        caller = container.authenticate(agent.api_key)
        if not caller.may(tool.flag):
            raise PermissionDenied.for_flag(tool.flag)
        with container.services.one_call():
            return tool(caller, arguments, container.services)
    except PulseError as error:
        raise Refused(envelope(error, "c0ffee")["error"]) from error


def refusal(agent: Agent, tool_name: str, **arguments: Any) -> dict[str, Any]:
    """The envelope's content of a call that is expected to be refused."""
    try:
        answer = ask(agent, tool_name, **arguments)
    except Refused as refused:
        return dict(refused.error)
    raise AssertionError(f"{tool_name} was expected to be refused and answered {answer}")
