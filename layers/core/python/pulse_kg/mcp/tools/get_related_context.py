"""get_related_context: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import NodeType, RelType
from pulse_kg.mcp.arguments import ToolInput, whole
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId
from pulse_kg.mcp.tools.reading import Limit, NodeOrSourceRef, NodeRef, node_ref, truncated_if
from pulse_kg.ports.reading import Direction
from pulse_kg.usecases.get_related_context import get_related_context
from pulse_kg.usecases.services import Services

MAX_DEPTH = 4


class RelatedInput(ToolInput):
    """Arguments of get_related_context."""

    board_id: BoardId
    node_id: NodeOrSourceRef
    edge_types: Annotated[
        list[RelType] | None,
        Field(min_length=1, description="Only these relationships, on every hop. Left out: all."),
    ] = None
    direction: Annotated[Direction, Field(description="out: along the edges; in: against them; both. It holds on every hop.")] = "both"
    max_depth: Annotated[int, Field(ge=1, le=MAX_DEPTH, description="How many hops at most."), BeforeValidator(whole)] = 2
    limit: Limit = 200


class AnchorOutput(NodeRef):
    """The node that was asked for, in full."""

    type: NodeType
    body: str
    attributes: dict[str, Any]
    source_ref: str
    created_at: str


class RelatedNode(NodeRef):
    """A node near the anchor."""

    type: NodeType
    depth: int


class RelatedEdge(Answer):
    """An edge among the nodes of the answer."""

    edge_id: str
    src: str
    rel: RelType
    dst: str
    reason: str | None = None


class RelatedOutput(Answer):
    """Answer of get_related_context."""

    anchor: AnchorOutput
    nodes: list[RelatedNode]
    edges: list[RelatedEdge]
    truncated: bool = False


def _related(caller: Caller, given: RelatedInput, services: Services) -> Mapping[str, Any]:
    found = get_related_context(
        caller,
        given.board_id,
        given.node_id,
        services,
        rel_types=given.edge_types,
        direction=given.direction,
        max_depth=given.max_depth,
        limit=given.limit,
    )
    node = found.anchor.node
    anchor = node_ref(
        found.anchor,
        type=node.node_type,
        body=node.body,
        attributes=dict(node.attributes),
        source_ref=node.source_ref,
        created_at=format_instant(node.created_at),
    )
    nodes = [node_ref(seen, type=seen.node.node_type, depth=depth) for seen, depth in found.nodes]
    edges = []
    for edge in found.edges:
        shown = {"edge_id": edge.edge_id, "src": edge.src, "rel": edge.rel_type, "dst": edge.dst}
        edges.append(shown if edge.reason is None else {**shown, "reason": edge.reason})
    return truncated_if(found.truncated, {"anchor": anchor, "nodes": nodes, "edges": edges})


TOOL = Tool(
    "get_related_context",
    "Look around a node",
    "See what is connected to a node that you know: everything within max_depth hops (2 unless you say otherwise), nearest first, and the "
    "edges among all of it. Use it before you change something, to see which constraints, bugs, alternatives and older decisions hang on "
    "it. The anchor comes in full, with body and attributes; of the others call the tool again for one that matters. depth counts hops. A "
    "node with superseded_by or status revoked does not hold any more, and one with contradicted is disputed. Narrow it by edge_types "
    "and direction where truncated is true.",
    "kg.query.related_context",
    hints(read_only=True, idempotent=True),
    RelatedInput,
    RelatedOutput,
    _related,
)
