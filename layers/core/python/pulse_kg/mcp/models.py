"""Arguments and answers of the write tools; their schemas are what the catalogue advertises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from pulse_kg.domain import ids
from pulse_kg.domain.model import EdgeDraft, EdgeEnd, Hint, NodeDraft, Override, Source
from pulse_kg.domain.refs import KEYED_TYPES, Artifact, SourceRef
from pulse_kg.domain.schema import NODE_TYPES, NodeType, RelType, check_node_attributes
from pulse_kg.errors import Problem
from pulse_kg.mcp.arguments import ToolInput, ToolModel, whole

MAX_SOURCE_ID = 200
MAX_SECTION = 500
MAX_IDEMPOTENCY_KEY = 128
MAX_TITLE = 500
MAX_RATIONALE = 4_000
MAX_SIMILAR = 50
MAX_OVERRIDES = 500
MAX_VERSION = 2**53 - 1  # the largest integer that every JSON reader keeps

_SESSION = "Handle from begin_consolidation, such as kgs_01HV…; it lives as long as its expires_at says."


def _matching(pattern: str, what: str, *, longest: int, description: str) -> Any:
    return Field(pattern=f"^{pattern}$", max_length=longest, description=f"{what}. {description}".strip())


BoardId = Annotated[
    str, Field(min_length=1, max_length=64, pattern=f"^{ids.BOARD_ID.pattern}$", description="The board, such as payments.")
]
SessionId = Annotated[str, Field(min_length=1, max_length=64, description=_SESSION)]
NodeId = Annotated[str, Field(max_length=128, pattern=f"^{ids.NODE_ID.pattern}$", description="An existing node, such as dec_4c20aa….")]
CandidateId = Annotated[str, Field(min_length=1, max_length=64, description="A node candidate of this session, such as cand_001.")]
IdempotencyKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_IDEMPOTENCY_KEY,
        description="A key of your own choice. The same key with the same content gives the same candidate again, so a retry adds nothing.",
    ),
]


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be printable and not blank")
    return text


class BeginInput(ToolInput):
    """Arguments of begin_consolidation."""

    board_id: BoardId
    source_type: Annotated[
        str,
        Field(min_length=1, max_length=32, pattern=f"^{ids.SOURCE_TYPE.pattern}$", description="Kind of the artifact: spec, card, bug, …."),
    ]
    source_id: Annotated[str, Field(min_length=1, max_length=MAX_SOURCE_ID, description="The artifact's id, such as spec_007.")]
    source_version: Annotated[int, Field(ge=0, le=MAX_VERSION, description="The artifact's version, 0 or more."), BeforeValidator(whole)]
    payload_hash: Annotated[
        str | None,
        Field(
            pattern=f"^{ids.CONTENT_HASH.pattern}$",
            description="'sha256:' + 64 hex digits of the artifact's content. Pass it if that may have changed without a new version.",
        ),
    ] = None

    @field_validator("source_id")
    @classmethod
    def _source_id(cls, value: str) -> str:
        return _printable(value)

    def source(self) -> Source:
        """The version of the artifact."""
        return Source(Artifact(self.source_type, self.source_id), self.source_version)


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
        _printable(getattr(self, given[0]))
        if self.section is not None:
            _printable(self.section)
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


class SimilarInput(ToolInput):
    """Arguments of get_similar_nodes."""

    session_id: SessionId
    candidate_id: CandidateId
    k: Annotated[int, Field(ge=1, le=MAX_SIMILAR, description="How many nodes at most."), BeforeValidator(whole)] = 5


class ProposeInput(ToolInput):
    """Arguments of propose_reconciliation."""

    session_id: SessionId


class OverrideInput(ToolModel):
    """A hint of the agent's own."""

    candidate_id: CandidateId
    hint: Annotated[Hint, Field(description="ADD, UPDATE, SUPERSEDE or NOOP.")]
    rationale: Annotated[str, Field(min_length=1, max_length=MAX_RATIONALE, description="Why; it goes into the audit row.")]
    target_node: Annotated[NodeId | None, Field(description="For UPDATE, SUPERSEDE and NOOP, unless the proposal names one.")] = None

    @field_validator("rationale")
    @classmethod
    def _rationale(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    def override(self) -> Override:
        """The override as the domain has it."""
        return Override(self.candidate_id, self.hint, self.rationale, self.target_node)


class CommitInput(ToolInput):
    """Arguments of commit_consolidation."""

    session_id: SessionId
    agent_overrides: Annotated[
        list[OverrideInput],
        Field(
            default_factory=list, max_length=MAX_OVERRIDES, description="Hints that replace the proposed ones, one per candidate at most."
        ),
    ]


class AbortInput(ToolInput):
    """Arguments of abort_consolidation."""

    session_id: SessionId


class Answer(BaseModel):
    """What a tool answers; a field with a default is left out where it has nothing to say."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class BeginOutput(Answer):
    """Answer of begin_consolidation."""

    session_id: str | None
    content_hash: str
    nothing_changed: bool
    expires_at: str | None = None
    hash_basis: Literal["payload", "artifact", "version"] | None = None


class AddNodeOutput(Answer):
    """Answer of add_node_candidate."""

    candidate_id: str
    node_type: NodeType
    embedding_status: Literal["queued"]
    warnings: list[str] = []


class AddEdgeOutput(Answer):
    """Answer of add_edge_candidate."""

    edge_candidate_id: str
    rel_type: RelType
    valid: bool
    warnings: list[str] = []


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


class ProposalOutput(Answer):
    """A hint for one candidate."""

    candidate_id: str
    hint: Hint
    target_node: str | None = None
    rationale: str
    score: float | None = None
    warnings: list[str] = []


class ProposeOutput(Answer):
    """Answer of propose_reconciliation."""

    session_id: str
    proposals: list[ProposalOutput]


class AppliedNode(Answer):
    """A candidate and its node."""

    candidate_id: str
    node_id: str


class AppliedSupersede(AppliedNode):
    """A candidate, its new node, and the old one."""

    target_node: str


class Applied(Answer):
    """What became of the candidates."""

    added: list[AppliedNode]
    updated: list[AppliedNode]
    superseded: list[AppliedSupersede]
    noop: list[AppliedNode]


class EdgeOutput(Answer):
    """An edge that was added."""

    edge_id: str
    src: str
    rel: RelType
    dst: str


class SupersededNode(Answer):
    """An old node that changed."""

    node_id: str
    superseded_by: str


class CommitOutput(Answer):
    """Answer of commit_consolidation."""

    session_id: str
    committed: bool
    applied: Applied
    edges_added: list[EdgeOutput]
    audit_row_id: int
    outbox_event: str
    superseded_nodes: list[SupersededNode]
    warnings: list[str]


class AbortOutput(Answer):
    """Answer of abort_consolidation."""

    session_id: str
    aborted: bool
