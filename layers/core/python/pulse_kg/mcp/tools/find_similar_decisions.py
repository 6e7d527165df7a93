"""find_similar_decisions: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId
from pulse_kg.mcp.tools.reading import Limit50, NodeRef, QueryText, node_ref
from pulse_kg.usecases.find_similar_decisions import find_similar_decisions
from pulse_kg.usecases.services import Services


class SimilarDecisionsInput(ToolInput):
    """Arguments of find_similar_decisions."""

    board_id: BoardId
    query: Annotated[QueryText, Field(description="A question, or a decision that you are about to make, in plain words.")]
    limit: Limit50 = 5


class ComponentsOutput(Answer):
    """What a score is made of, each 0 to 1."""

    semantic: float
    graph_centrality: float
    recency: float
    confidence: float


class SimilarDecisionOutput(NodeRef):
    """A decision and its score."""

    score: float
    components: ComponentsOutput


class SimilarDecisionsOutput(Answer):
    """Answer of find_similar_decisions."""

    results: list[SimilarDecisionOutput]


def _similar(caller: Caller, given: SimilarDecisionsInput, services: Services) -> Mapping[str, Any]:
    found = find_similar_decisions(caller, given.board_id, given.query, given.limit, services)
    return {"results": [node_ref(s.seen, score=s.components.score, components=asdict(s.components)) for s in found]}


TOOL = Tool(
    "find_similar_decisions",
    "Find similar decisions",
    "The decisions of a board that are nearest to a question or to a decision that you are about to make, best first. The score is "
    "0.5·semantic + 0.2·graph_centrality + 0.2·recency + 0.1·confidence; components shows each of them. It always answers with the nearest "
    "there are, so a low semantic value means that nothing like it was decided. A result with superseded_by no longer holds.",
    "kg.query.similar_decisions",
    hints(read_only=True, idempotent=True),
    SimilarDecisionsInput,
    SimilarDecisionsOutput,
    _similar,
)
