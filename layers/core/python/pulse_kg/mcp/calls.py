"""The two methods on tools, as far as all revisions share them: the list and one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pulse_kg.mcp import jsontext
from pulse_kg.mcp.host import CallerHandle, ToolHost, ToolOutcome, ToolSpec
from pulse_kg.mcp.jsonrpc import INVALID_PARAMS, RpcError
from pulse_kg.mcp.revisions import FEATURES, Revision


@dataclass(frozen=True)
class About:
    """What the server says of itself.

    Attributes:
        name: For programs.
        version: The program's version, not the protocol's.
        title: For people; `None` if the name will do.
        instructions: How to use the server, for a model.
    """

    name: str
    version: str
    instructions: str
    title: str | None = None

    def as_implementation(self, revision: Revision) -> dict[str, str]:
        """Name, version and, where the revision has it, title."""
        shown = {"name": self.name, "version": self.version}
        if self.title is not None and FEATURES[revision].titles:
            shown["title"] = self.title
        return shown


CAPABILITIES: Mapping[str, Any] = {"tools": {"listChanged": False}}
"""Tools only, and a list that never changes while the server runs."""


def params_of(value: object) -> Mapping[str, Any]:
    """The parameters of a request, which must be given by name.

    Raises:
        RpcError: They are not an object.
    """
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, "The member 'params' must be an object.")
    return value


def list_tools(host: ToolHost, params: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """All tools, in the catalogue's order, on one page.

    Raises:
        RpcError: A cursor came: no answer of this server holds one.
    """
    if params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "The cursor is not valid: the whole list comes on one page, so call tools/list without one.")
    return {"tools": [_entry(spec, revision) for spec in host.tools()]}


def call_tool(
    host: ToolHost, caller: CallerHandle, params: Mapping[str, Any], revision: Revision, *, correlation_id: str
) -> dict[str, Any]:
    """Runs a tool; its refusals are results that a model can read.

    Raises:
        RpcError: The name is missing or not one of the catalogue.
    """
    name = params.get("name")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "The parameter 'name' must be a string: the name of a tool.")
    if all(spec.name != name for spec in host.tools()):
        raise _unknown_tool(name)
    arguments = params.get("arguments")
    outcome = host.call(caller, name, {} if arguments is None else arguments, correlation_id=correlation_id)
    if outcome.is_error and _code_of(outcome) == "tool_not_found":
        raise _unknown_tool(name)
    return _result(outcome, revision)


def _unknown_tool(name: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"There is no tool '{name[:128]}'. tools/list shows those there are.")


def _code_of(outcome: ToolOutcome) -> object:
    error = outcome.body.get("error")
    return error.get("code") if isinstance(error, dict) else None


def _result(outcome: ToolOutcome, revision: Revision) -> dict[str, Any]:
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": jsontext.encode_text(outcome.body)}],
        "isError": outcome.is_error,
    }
    # An envelope does not fit the tool's output schema, and some clients check structured content even of errors.
    if FEATURES[revision].structured_results and not outcome.is_error:
        result["structuredContent"] = outcome.body
    return result


def _entry(spec: ToolSpec, revision: Revision) -> dict[str, Any]:
    features = FEATURES[revision]
    entry: dict[str, Any] = {"name": spec.name}
    if features.titles:
        entry["title"] = spec.title
    entry["description"] = spec.description
    entry["inputSchema"] = spec.input_schema
    if features.structured_results:
        entry["outputSchema"] = spec.output_schema
    entry["annotations"] = {
        "title": spec.title,
        "readOnlyHint": spec.annotations.read_only,
        "destructiveHint": spec.annotations.destructive,
        "idempotentHint": spec.annotations.idempotent,
        "openWorldHint": spec.annotations.open_world,
    }
    return entry
