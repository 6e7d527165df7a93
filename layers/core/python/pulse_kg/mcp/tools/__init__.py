"""The tools, each in a module of its own, so that a process that runs one tool loads one tool."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pulse_kg.mcp.tools.base import Tool

INSTRUCTIONS = (
    "Pulse KG remembers what a team decided, per board. To record: begin_consolidation, then add_node_candidate and "
    "add_edge_candidate for each statement, propose_reconciliation to see what the board already has, and commit_consolidation (or "
    "abort_consolidation). Nothing is visible to others before the commit. To ask: query_natural for a question in plain words, "
    "get_decision_history for a topic over time, get_supersedence_chain for what replaced what, find_contradictions, "
    "list_alternatives, get_related_context for what lies around a node, query_cypher for counts, groups and what is missing; "
    "verify_grounding checks an answer against the nodes that it came from. An error's message says what to do next; retry only where "
    "retryable is true."
)
"""What a client is told of the server as a whole."""

TOOL_NAMES: Final = (
    "begin_consolidation",
    "add_node_candidate",
    "add_edge_candidate",
    "get_similar_nodes",
    "propose_reconciliation",
    "commit_consolidation",
    "abort_consolidation",
    "get_decision_history",
    "get_related_context",
    "get_supersedence_chain",
    "find_contradictions",
    "find_similar_decisions",
    "explain_constraint",
    "list_alternatives",
    "get_learning_from_bugs",
    "query_global",
    "query_cypher",
    "query_natural",
    "schema_info",
    "verify_grounding",
    "query_reflective",
)
"""Every tool, without the prefix: those that write in the order of a session, then those that read; each is a module of this package."""


@cache
def find_tool(name: str) -> Tool[Any] | None:
    """The tool of that name (without the prefix), or None; loads no other."""
    if name not in TOOL_NAMES:
        return None
    tool: Tool[Any] = import_module(f"{__name__}.{name}").TOOL
    return tool


def all_tools() -> tuple[Tool[Any], ...]:
    """Every tool, in the order of `TOOL_NAMES`."""
    return tuple(tool for name in TOOL_NAMES if (tool := find_tool(name)) is not None)
