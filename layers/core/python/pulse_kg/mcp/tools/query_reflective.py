"""query_reflective: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId
from pulse_kg.mcp.tools.reading import Limit, NodeRef, QueryText, node_ref
from pulse_kg.usecases.query_reflective import query_reflective
from pulse_kg.usecases.services import Services


class ReflectiveInput(ToolInput):
    """Arguments of query_reflective."""

    board_id: BoardId
    query: Annotated[QueryText, Field(description="A question in plain words.")]
    limit: Limit = 10


class CandidateOutput(NodeRef):
    """A node that may answer the question."""

    score: float


class ReflectiveOutput(Answer):
    """Answer of query_reflective."""

    stub: Literal[True]
    candidates: list[CandidateOutput]
    critic_notes: str


def _reflective(caller: Caller, given: ReflectiveInput, services: Services) -> Mapping[str, Any]:
    found = query_reflective(caller, given.board_id, given.query, given.limit, services)
    return {
        "stub": True,
        "candidates": [node_ref(c.seen, score=c.score) for c in found.candidates],
        "critic_notes": found.critic_notes,
    }


TOOL = Tool(
    "query_reflective",
    "Search and check",
    "One pass of query_natural's search with a plain critique of what it found: critic_notes names the words of the question that no "
    "candidate has, and the candidates that are superseded, revoked or contradicted. Use it to see whether a question needs other words "
    "before you rely on an answer. It is one pass only, which stub says; several passes with a model as the critic are in the Python API.",
    "kg.power.natural",
    hints(read_only=True, idempotent=True),
    ReflectiveInput,
    ReflectiveOutput,
    _reflective,
)
