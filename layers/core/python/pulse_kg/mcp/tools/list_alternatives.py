"""list_alternatives: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId, NodeId
from pulse_kg.mcp.tools.reading import NodeRef, node_ref, truncated_if
from pulse_kg.usecases.list_alternatives import list_alternatives
from pulse_kg.usecases.services import Services


class AlternativesInput(ToolInput):
    """Arguments of list_alternatives."""

    board_id: BoardId
    node_id: NodeId


class AlternativeOutput(NodeRef):
    """What was not chosen, and why."""

    reason_discarded: str | None


class AlternativesOutput(Answer):
    """Answer of list_alternatives."""

    decision: str
    alternatives: list[AlternativeOutput]
    truncated: bool = False


def _alternatives(caller: Caller, given: AlternativesInput, services: Services) -> Mapping[str, Any]:
    found = list_alternatives(caller, given.board_id, given.node_id, services)
    alternatives = [node_ref(seen, reason_discarded=seen.node.attributes.get("reason_discarded")) for seen in found.alternatives]
    return truncated_if(found.truncated, {"decision": given.node_id, "alternatives": alternatives})


TOOL = Tool(
    "list_alternatives",
    "List discarded alternatives",
    "What was considered for a Decision and not chosen, with the reason where one was recorded. Ask before you propose another way: it may "
    "have been looked at already. An empty list says only that none was recorded. Takes a Decision.",
    "kg.query.alternatives",
    hints(read_only=True, idempotent=True),
    AlternativesInput,
    AlternativesOutput,
    _alternatives,
)
