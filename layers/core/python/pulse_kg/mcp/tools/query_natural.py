"""query_natural: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pulse_kg.domain.instants import parse_instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import NodeType, RelType
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId
from pulse_kg.mcp.tools.reading import InstantText, Limit50, NodeRef, QueryText, node_ref, truncated_if
from pulse_kg.usecases.query_natural import Span, query_natural
from pulse_kg.usecases.services import Services


class NaturalInput(ToolInput):
    """Arguments of query_natural."""

    board_id: BoardId
    query: Annotated[QueryText, Field(description="A question in plain words, such as why a decision was made.")]
    since: Annotated[
        InstantText | None,
        Field(description="Only nodes of this time or later: a decision's decided_at where it has one, else when it was recorded."),
    ] = None
    until: Annotated[InstantText | None, Field(description="Only nodes before this time.")] = None
    limit: Limit50 = 10


class AnswerNodeOutput(NodeRef):
    """A node of the answer, and the piece of its text that fits the question best."""

    snippet: str
    score: float
    type: NodeType


class EdgeRef(Answer):
    """An edge between two nodes."""

    src: str
    rel: RelType
    dst: str


class NaturalOutput(Answer):
    """Answer of query_natural."""

    answer_nodes: list[AnswerNodeOutput]
    supporting_edges: list[EdgeRef]
    truncated: bool = False


def _natural(caller: Caller, given: NaturalInput, services: Services) -> Mapping[str, Any]:
    since, until = (None if text is None else parse_instant(text) for text in (given.since, given.until))
    found = query_natural(caller, given.board_id, given.query, Span(since, until), given.limit, services)
    answer = {
        "answer_nodes": [node_ref(a.seen, snippet=a.snippet, score=a.score, type=a.node.node_type) for a in found.nodes],
        "supporting_edges": [{"src": e.src, "rel": e.rel_type, "dst": e.dst} for e in found.edges],
    }
    return truncated_if(found.truncated, answer)


TOOL = Tool(
    "query_natural",
    "Ask in plain words",
    "Ask a board a question in plain words. It searches all types by meaning and title, takes in neighbours of what it finds where they "
    "count for more than its last answer, and answers with nodes, best first, each with the piece of its text that fits best, and with the "
    "edges that start at them (an end that is no answer can be looked up with get_related_context). No model writes the answer: read the "
    "snippets and draw it from them. A node with superseded_by no longer holds. Each returned node counts as used.",
    "kg.power.natural",
    hints(read_only=True, idempotent=True),
    NaturalInput,
    NaturalOutput,
    _natural,
)
