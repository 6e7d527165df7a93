"""add_node_candidate: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from pulse_kg.domain import ids
from pulse_kg.domain.model import NodeDraft
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.refs import KEYED_TYPES, Artifact, SourceRef
from pulse_kg.domain.schema import NODE_TYPES, NodeType, check_node_attributes
from pulse_kg.errors import Problem
from pulse_kg.mcp.arguments import ToolInput, ToolModel
from pulse_kg.mcp.tools.base import Answer, Tool, hints, with_warnings
from pulse_kg.mcp.tools.fields import MAX_SOURCE_ID, IdempotencyKey, SessionId, printable
from pulse_kg.usecases.add_node_candidate import add_node_candidate
from pulse_kg.usecases.services import Services

MAX_SECTION = 500
MAX_TITLE = 500

_REF_KEYS = (*(f"{t}_id" for t in KEYED_TYPES), "artifact_id")
_RefId = Annotated[str | None, Field(min_length=1, max_length=MAX_SOURCE_ID)]


class SourceRefInput(ToolModel):
    """Where a node is stated: exactly one id, and the section if there is one."""

    spec_id: _RefId = None
    card_id: _RefId = None
    sprint_id: _RefId = None
    refinement_id: _RefId = None
    ideation_id: _RefId = None
    decision_id: _RefId = None
    bug_id: _RefId = None
    artifact_id: _RefId = None
    artifact_type: Annotated[str | None, Field(max_length=32, pattern=f"^{ids.SOURCE_TYPE.pattern}$")] = None
    section: Annotated[str | None, Field(min_length=1, max_length=MAX_SECTION)] = None

    @model_validator(mode="after")
    def _one_id(self) -> SourceRefInput:
        given = [k for k in _REF_KEYS if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"takes exactly one of {', '.join(_REF_KEYS)}; {len(given)} were given")
        if (self.artifact_id is None) != (self.artifact_type is None):
            raise ValueError("artifact_id and artifact_type go together")
        printable(getattr(self, given[0]))
        if self.section is not None:
            printable(self.section)
        return self

    def ref(self) -> SourceRef:
        """The reference."""
        key = next(k for k in _REF_KEYS if getattr(self, k) is not None)
        source_type = str(self.artifact_type) if key == "artifact_id" else key.removesuffix("_id")
        return SourceRef(Artifact(source_type, getattr(self, key)), self.section)


class AddNodeInput(ToolInput):
    """Arguments of add_node_candidate."""

    session_id: SessionId
    node_type: Annotated[NodeType, Field(description="What kind of statement it is.")]
    title: Annotated[str, Field(min_length=1, max_length=MAX_TITLE, description="One line that says what holds, 1 to 500 characters.")]
    body: Annotated[str, Field(description="The statement in full, up to 32 KiB; it is searched together with the title.")] = ""
    attributes: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            description="By type: confidence (0 to 1) for all; Decision rationale, status (active, revoked), decided_at; "
            "Criterion measure, threshold; Constraint severity (low, medium, high, critical), scope, rationale; Assumption rationale, "
            "validated; Requirement kind (functional, technical, business), priority (must, should, could, wont); Entity kind, aliases; "
            "APIContract method, path, request_schema, response_schema; TestScenario given, when, then; Bug severity (minor, major, "
            "critical), status, resolved_at; Learning area, captured_at; Alternative reason_discarded.",
        ),
    ]
    source_ref: Annotated[
        SourceRefInput | None,
        Field(
            description='Place, such as {"spec_id": "spec_007", "section": "retry-strategy"}. With a section it '
            "identifies the node in later versions. Left out: the session's artifact."
        ),
    ] = None
    idempotency_key: IdempotencyKey | None = None

    @field_validator("title")
    @classmethod
    def _title(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @classmethod
    def more_problems(cls, arguments: Mapping[str, Any]) -> list[Problem]:
        """The faults of attributes, told together with those of the other arguments."""
        node_type, attributes = arguments.get("node_type"), arguments.get("attributes")
        if node_type in NODE_TYPES and isinstance(attributes, dict):
            return list(check_node_attributes(node_type, attributes).problems)
        return []

    def draft(self) -> NodeDraft:
        """The node as the domain has it."""
        ref = self.source_ref.ref().canonical if self.source_ref else None
        return NodeDraft(self.node_type, self.title, self.body, self.attributes, ref)


class AddNodeOutput(Answer):
    """Answer of add_node_candidate."""

    candidate_id: str
    node_type: NodeType
    embedding_status: Literal["queued"]
    warnings: list[str] = Field(default_factory=list)


def _add_node(caller: Caller, given: AddNodeInput, services: Services) -> Mapping[str, Any]:
    added = add_node_candidate(caller, given.session_id, given.draft(), given.idempotency_key, services)
    answer = {"candidate_id": added.candidate.candidate_id, "node_type": given.node_type, "embedding_status": "queued"}
    return with_warnings(answer, added.warnings)


TOOL = Tool(
    "add_node_candidate",
    "Add a node",
    "Add one statement (a decision, constraint, requirement, alternative, learning, …) to an open session; nothing is visible to "
    "others before the commit. One statement a call; say in the title what holds and in the body why. Give source_ref with a "
    "section, so that a later version of the artifact finds the same node again. Unknown attributes are named in warnings. Next: "
    "add_edge_candidate for relations, then propose_reconciliation.",
    "kg.session.add_node",
    hints(),
    AddNodeInput,
    AddNodeOutput,
    _add_node,
)
