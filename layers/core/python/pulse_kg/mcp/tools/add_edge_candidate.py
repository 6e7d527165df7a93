"""add_edge_candidate: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from pulse_kg.domain.model import EdgeDraft, EdgeEnd
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import RelType
from pulse_kg.mcp.arguments import ToolInput, ToolModel
from pulse_kg.mcp.tools.base import Answer, Tool, hints, with_warnings
from pulse_kg.mcp.tools.fields import CandidateId, IdempotencyKey, NodeId, SessionId
from pulse_kg.usecases.add_edge_candidate import add_edge_candidate
from pulse_kg.usecases.services import Services


class EdgeEndInput(ToolModel):
    """One end of an edge: exactly one of a candidate of this session and an existing node."""

    candidate_id: CandidateId | None = None
    node_id: NodeId | None = None

    @model_validator(mode="after")
    def _one(self) -> EdgeEndInput:
        if (self.candidate_id is None) == (self.node_id is None):
            raise ValueError("takes exactly one of candidate_id and node_id")
        return self

    def end(self) -> EdgeEnd:
        """The end as the domain has it."""
        return EdgeEnd(self.candidate_id, self.node_id)


class AddEdgeInput(ToolInput):
    """Arguments of add_edge_candidate."""

    session_id: SessionId
    src: Annotated[
        EdgeEndInput, Field(description='Where the edge starts: {"candidate_id": …} or {"node_id": …}. For supersedes the newer one.')
    ]
    dst: Annotated[EdgeEndInput, Field(description="Where it ends. For supersedes the older one.")]
    rel_type: Annotated[
        RelType,
        Field(description="Agents write supersedes, contradicts, depends_on, relates_to and validates; the other six are the worker's."),
    ]
    attributes: Annotated[dict[str, Any], Field(default_factory=dict, description="reason, evidence (texts) and confidence (0 to 1).")]
    idempotency_key: IdempotencyKey | None = None

    def draft(self) -> EdgeDraft:
        """The edge as the domain has it."""
        return EdgeDraft(self.src.end(), self.rel_type, self.dst.end(), self.attributes)


class AddEdgeOutput(Answer):
    """Answer of add_edge_candidate."""

    edge_candidate_id: str
    rel_type: RelType
    valid: bool
    warnings: list[str] = Field(default_factory=list)


def _add_edge(caller: Caller, given: AddEdgeInput, services: Services) -> Mapping[str, Any]:
    added = add_edge_candidate(caller, given.session_id, given.draft(), given.idempotency_key, services)
    answer = {"edge_candidate_id": added.candidate.candidate_id, "rel_type": given.rel_type, "valid": True}
    return with_warnings(answer, added.warnings)


TOOL = Tool(
    "add_edge_candidate",
    "Add an edge",
    "Relate two statements: a candidate of this session or an existing node at each end. supersedes goes from the newer to the "
    "older of one type; contradicts, depends_on and relates_to say what their names say (Decision relates_to Alternative: "
    "considered and discarded); validates goes from a Learning or TestScenario to what it bears out. The other relationships belong "
    "to the deterministic worker.",
    "kg.session.add_edge",
    hints(),
    AddEdgeInput,
    AddEdgeOutput,
    _add_edge,
)
