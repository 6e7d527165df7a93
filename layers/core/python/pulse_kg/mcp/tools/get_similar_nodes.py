"""get_similar_nodes: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pulse_kg.domain.model import Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput, whole
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import CandidateId, SessionId
from pulse_kg.usecases.get_similar_nodes import get_similar_nodes
from pulse_kg.usecases.services import Services

MAX_SIMILAR = 50


class SimilarInput(ToolInput):
    """Arguments of get_similar_nodes."""

    session_id: SessionId
    candidate_id: CandidateId
    k: Annotated[int, Field(ge=1, le=MAX_SIMILAR, description="How many nodes at most."), BeforeValidator(whole)] = 5


class MatchOutput(Answer):
    """A node that looks like the candidate."""

    node_id: str
    title: str
    score: float
    superseded_by: str | None = None
    status: str | None = None


class SimilarOutput(Answer):
    """Answer of get_similar_nodes."""

    candidate_id: str
    match_mode: Literal["hnsw", "exact", "title_prefix"]
    matches: list[MatchOutput]


def _similar(caller: Caller, given: SimilarInput, services: Services) -> Mapping[str, Any]:
    found = get_similar_nodes(caller, given.session_id, given.candidate_id, given.k, services)
    matches = [_match(node, score) for node, score in found.matches]
    return {"candidate_id": given.candidate_id, "match_mode": found.match_mode, "matches": matches}


def _match(node: Node, score: float) -> dict[str, Any]:
    match: dict[str, Any] = {"node_id": node.node_id, "title": node.title, "score": score}
    if node.superseded_by is not None:
        match["superseded_by"] = node.superseded_by
    if node.revoked:
        match["status"] = "revoked"
    return match


TOOL = Tool(
    "get_similar_nodes",
    "Find similar nodes",
    "See which nodes the board already has that look like a candidate of this session: by meaning for Decision, Constraint, "
    "Requirement, Entity and Learning, by the start of the title for the other types. Scores run from 0 to 1. A match with "
    "superseded_by is history. Use it to decide on a supersedes, contradicts or depends_on edge.",
    "kg.session.get_similar",
    hints(read_only=True, idempotent=True),
    SimilarInput,
    SimilarOutput,
    _similar,
)
