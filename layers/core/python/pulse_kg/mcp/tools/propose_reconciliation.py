"""propose_reconciliation: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pulse_kg.domain.model import Hint, Proposal
from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints, with_warnings
from pulse_kg.mcp.tools.fields import SessionId
from pulse_kg.usecases.propose_reconciliation import propose_reconciliation
from pulse_kg.usecases.services import Services


class ProposeInput(ToolInput):
    """Arguments of propose_reconciliation."""

    session_id: SessionId


class ProposalOutput(Answer):
    """A hint for one candidate."""

    candidate_id: str
    hint: Hint
    target_node: str | None = None
    rationale: str
    score: float | None = None
    warnings: list[str] = Field(default_factory=list)


class ProposeOutput(Answer):
    """Answer of propose_reconciliation."""

    session_id: str
    proposals: list[ProposalOutput]


def _propose(caller: Caller, given: ProposeInput, services: Services) -> Mapping[str, Any]:
    proposals = propose_reconciliation(caller, given.session_id, services)
    return {"session_id": given.session_id, "proposals": [_proposal(p) for p in proposals]}


def _proposal(proposal: Proposal) -> dict[str, Any]:
    shown: dict[str, Any] = {"candidate_id": proposal.candidate_id, "hint": proposal.hint}
    if proposal.targets:
        shown["target_node"] = proposal.targets[0].node_id
    shown["rationale"] = proposal.rationale
    if proposal.score is not None:
        shown["score"] = proposal.score
    return with_warnings(shown, proposal.warnings)


TOOL = Tool(
    "propose_reconciliation",
    "Propose what becomes of each candidate",
    "Compare all candidates with the board: ADD (new), UPDATE (refines target_node), SUPERSEDE (replaces target_node, which stays "
    "as history) or NOOP (there already), each with its reason. Nothing is written. Look at every hint, in particular at rationales "
    "that name a possible duplicate; a supersedes or contradicts edge says what you know better. Call it again after a "
    "commit_conflict. Next: commit_consolidation.",
    "kg.session.propose",
    hints(idempotent=True),
    ProposeInput,
    ProposeOutput,
    _propose,
)
