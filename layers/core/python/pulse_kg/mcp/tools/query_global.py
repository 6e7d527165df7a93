"""query_global: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import NodeType
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.reading import Limit100, NodeRef, QueryText, node_ref
from pulse_kg.usecases.query_global import query_global
from pulse_kg.usecases.services import Services


class GlobalInput(ToolInput):
    """Arguments of query_global."""

    query: Annotated[QueryText, Field(description="A question in plain words.")]
    limit: Limit100 = 20


class GlobalHitOutput(NodeRef):
    """A node of one of the boards."""

    board_id: str
    score: float
    type: NodeType


class GlobalOutput(Answer):
    """Answer of query_global."""

    results: list[GlobalHitOutput]
    boards_searched: int


def _global(caller: Caller, given: GlobalInput, services: Services) -> Mapping[str, Any]:
    found = query_global(caller, given.query, given.limit, services)
    results = [node_ref(hit.seen, board_id=hit.seen.node.board_id, score=hit.score, type=hit.seen.node.node_type) for hit in found.hits]
    return {"results": results, "boards_searched": found.boards_searched}


TOOL = Tool(
    "query_global",
    "Search all boards",
    "What any board that you may read knows about a question, best first, by meaning: Decisions, Constraints, Requirements, Entities and "
    "Learnings. Use it when you do not know the board, or to see how another team settled the same question; then go on with the tools of "
    "one board and the board_id of a result. boards_searched counts the boards that are granted to you; score runs from 0 to 1.",
    "kg.query.global",
    hints(read_only=True, idempotent=True),
    GlobalInput,
    GlobalOutput,
    _global,
)
