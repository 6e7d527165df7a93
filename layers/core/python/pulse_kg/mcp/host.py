"""What the protocol code needs of the tools: who calls, which tools there are, and one call.

The protocol code knows nothing of sessions, graphs or stores; it speaks to a `ToolHost`. In process the host runs
the use case; behind API Gateway it invokes the tool's own function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

TOOL_PREFIX = "okto_pulse_kg_"


@dataclass(frozen=True)
class Annotations:
    """The four hints of the protocol, all stated for every tool."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the catalogue shows it.

    Attributes:
        name: The full name, `TOOL_PREFIX` included; at most 64 characters.
        title: A short name for people.
        description: What the tool does, when to use it and what to do next, for a model.
        input_schema: JSON Schema 2020-12; the root is an object with `additionalProperties: false`.
        output_schema: JSON Schema 2020-12; the root is an object.
        annotations: The four hints.
    """

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    annotations: Annotations


@dataclass(frozen=True)
class ToolOutcome:
    """What a call came to.

    Attributes:
        body: The answer, or the error envelope ``{"error": {...}}``; JSON-ready, free of lone surrogates.
        is_error: Whether `body` is the envelope.
        status: The HTTP status of a direct route: 200, or the envelope's.
    """

    body: dict[str, Any]
    is_error: bool
    status: int = 200


class CallerHandle(Protocol):
    """An authenticated agent, opaque to the protocol code."""

    @property
    def agent_id(self) -> str:
        """The agent's id, for logs."""
        ...


class ToolHost(Protocol):
    """Authenticates a key and runs tools.

    Errors: `authenticate` raises `Unauthorized`, or `StoreUnavailable` when the identity store is down. `call` never
    raises: every refusal is an outcome with `is_error`, an unforeseen exception included (`internal_error`).
    Threads: all methods may be called from several threads at once.
    """

    def authenticate(self, api_key: str | None) -> CallerHandle:
        """The agent of a key; `None` stands for a call without one."""
        ...

    def tools(self) -> Sequence[ToolSpec]:
        """All tools, sorted by name; the same at each call."""
        ...

    def call(self, caller: CallerHandle, name: str, arguments: object, *, correlation_id: str) -> ToolOutcome:
        """Runs one tool.

        Args:
            caller: What `authenticate` gave.
            name: With or without `TOOL_PREFIX`; an unknown one is an outcome with code `tool_not_found`.
            arguments: The decoded JSON value; anything but an object is an outcome with code `invalid_argument`.
            correlation_id: Shown in the envelope and in the log.
        """
        ...
