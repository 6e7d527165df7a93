"""commit_consolidation: its words and models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, field_validator

from pulse_kg.domain.model import Hint, Override
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import RelType
from pulse_kg.errors import InvalidArgument, InvalidOverride
from pulse_kg.mcp.arguments import ToolInput, ToolModel
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import CandidateId, NodeId, SessionId
from pulse_kg.usecases.commit_consolidation import commit_consolidation
from pulse_kg.usecases.services import Services

MAX_RATIONALE = 4_000
MAX_OVERRIDES = 500
_REASON = re.compile(r"agent_overrides\[\d+\]\.rationale")


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

    @classmethod
    def read(cls, arguments: object) -> Self:
        """Checks arguments.

        Raises:
            InvalidOverride: All that is wrong is the reason of overrides.
            InvalidArgument: With every problem of the input.
        """
        try:
            return super().read(arguments)
        except InvalidArgument as error:
            if all(_REASON.match(p.path) for p in error.problems):
                raise InvalidOverride("Each override needs its rationale, a text; nothing was changed.", error.problems) from None
            raise


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


def _commit(caller: Caller, given: CommitInput, services: Services) -> Mapping[str, Any]:
    return commit_consolidation(caller, given.session_id, [o.override() for o in given.agent_overrides], services)


TOOL = Tool(
    "commit_consolidation",
    "Commit the session",
    "Write the whole session at once, as proposed, or with agent_overrides where you disagree (each with its reason). All of it "
    "becomes visible or none of it. Repeating the same call is safe and gives the same answer. On commit_conflict the board "
    "changed: propose again, look, commit again. Look at warnings: they say what was dropped or merged.",
    "kg.session.commit",
    hints(idempotent=True),
    CommitInput,
    CommitOutput,
    _commit,
)
