"""find_contradictions: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId, NodeId
from pulse_kg.mcp.tools.reading import Limit, NodeRef, node_ref, truncated_if
from pulse_kg.usecases.find_contradictions import Pair, find_contradictions
from pulse_kg.usecases.services import Services


class ContradictionsInput(ToolInput):
    """Arguments of find_contradictions."""

    board_id: BoardId
    node_id: Annotated[NodeId | None, Field(description="Only pairs with this node, such as dec_4c20aa…. Left out: all of the board.")] = (
        None
    )
    limit: Limit = 100
    include_resolved: Annotated[bool, Field(description="Whether to list pairs too of which one side is superseded or revoked.")] = True


class PairOutput(Answer):
    """Two nodes that contradict each other."""

    left: NodeRef
    right: NodeRef
    edge_id: str
    created_at: str
    reason: str | None = None
    resolved: bool


class ContradictionsOutput(Answer):
    """Answer of find_contradictions."""

    anchor: str | None
    pairs: list[PairOutput]
    truncated: bool = False


def _contradictions(caller: Caller, given: ContradictionsInput, services: Services) -> Mapping[str, Any]:
    found = find_contradictions(caller, given.board_id, given.node_id, services, limit=given.limit, include_resolved=given.include_resolved)
    return truncated_if(found.truncated, {"anchor": given.node_id, "pairs": [_pair(p) for p in found.pairs]})


def _pair(pair: Pair) -> dict[str, Any]:
    edge = pair.edge
    shown = {
        "left": node_ref(pair.left),
        "right": node_ref(pair.right),
        "edge_id": edge.edge_id,
        "created_at": format_instant(edge.created_at),
        "resolved": pair.resolved,
    }
    return shown if edge.reason is None else {**shown, "reason": edge.reason}


TOOL = Tool(
    "find_contradictions",
    "Find contradictions",
    "Which statements of a board were found to contradict each other; with node_id only those that contradict this one, which then stands "
    "on the left. Look before you rely on a decision, and before you record one. Newest first. resolved is true where one side is "
    "superseded or revoked, so that the other one holds; with resolved false nobody has decided yet: ask, don't choose. reason says what "
    "clashes, where it was given. A contradiction that nobody recorded is not found.",
    "kg.query.contradictions",
    hints(read_only=True, idempotent=True),
    ContradictionsInput,
    ContradictionsOutput,
    _contradictions,
)
