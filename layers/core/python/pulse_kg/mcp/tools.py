"""The tools: for each its name, words, flag, models, and the use case it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pulse_kg.domain import model
from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp import models
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.host import TOOL_PREFIX, Annotations, ToolSpec
from pulse_kg.mcp.models import Answer
from pulse_kg.mcp.schemas import input_schema, output_schema
from pulse_kg.usecases.abort_consolidation import abort_consolidation
from pulse_kg.usecases.add_edge_candidate import add_edge_candidate
from pulse_kg.usecases.add_node_candidate import add_node_candidate
from pulse_kg.usecases.begin_consolidation import begin_consolidation
from pulse_kg.usecases.commit_consolidation import commit_consolidation
from pulse_kg.usecases.get_similar_nodes import get_similar_nodes
from pulse_kg.usecases.propose_reconciliation import propose_reconciliation
from pulse_kg.usecases.services import Services

INSTRUCTIONS = (
    "Pulse KG remembers what a team decided, per board. To record: begin_consolidation, then add_node_candidate and add_edge_candidate "
    "for each statement, propose_reconciliation to see what the board already has, and commit_consolidation (or abort_consolidation). "
    "Nothing is visible to others before the commit. An error's message says what to do next; retry only where retryable is true."
)
"""What a client is told of the server as a whole."""

InputT = TypeVar("InputT", bound=ToolInput)


@dataclass(frozen=True)
class Tool(Generic[InputT]):
    """A tool.

    Attributes:
        name: Without the prefix.
        title: For people.
        description: For a model.
        flag: The permission it needs.
        annotations: The protocol's hints.
        input_model: Its arguments.
        output_model: Its answer.
        run: From checked arguments to the answer, JSON-ready.
    """

    name: str
    title: str
    description: str
    flag: str
    annotations: Annotations
    input_model: type[InputT]
    output_model: type[Answer]
    run: Callable[[Caller, InputT, Services], Mapping[str, Any]]

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as the catalogue shows it."""
        return ToolSpec(
            name=TOOL_PREFIX + self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema(self.input_model),
            output_schema=output_schema(self.output_model),
            annotations=self.annotations,
        )

    def __call__(self, caller: Caller, arguments: object, services: Services) -> dict[str, Any]:
        """Checks the arguments, runs the tool, and checks the answer."""
        answer = self.run(caller, self.input_model.read(arguments), services)
        return self.output_model.model_validate(answer).model_dump(mode="json", exclude_unset=True)


def _with_warnings(answer: dict[str, Any], warnings: tuple[str, ...]) -> dict[str, Any]:
    return {**answer, "warnings": list(warnings)} if warnings else answer


def _begin(caller: Caller, given: models.BeginInput, services: Services) -> Mapping[str, Any]:
    begun = begin_consolidation(caller, given.board_id, given.source(), given.payload_hash, services)
    if begun.session is None:
        return {"session_id": None, "content_hash": begun.content_hash, "nothing_changed": True}
    return {
        "session_id": begun.session.session_id,
        "content_hash": begun.content_hash,
        "nothing_changed": False,
        "expires_at": format_instant(begun.session.expires_at),
        "hash_basis": begun.basis,
    }


def _add_node(caller: Caller, given: models.AddNodeInput, services: Services) -> Mapping[str, Any]:
    added = add_node_candidate(caller, given.session_id, given.draft(), given.idempotency_key, services)
    answer = {"candidate_id": added.candidate.candidate_id, "node_type": given.node_type, "embedding_status": "queued"}
    return _with_warnings(answer, added.warnings)


def _add_edge(caller: Caller, given: models.AddEdgeInput, services: Services) -> Mapping[str, Any]:
    added = add_edge_candidate(caller, given.session_id, given.draft(), given.idempotency_key, services)
    answer = {"edge_candidate_id": added.candidate.candidate_id, "rel_type": given.rel_type, "valid": True}
    return _with_warnings(answer, added.warnings)


def _similar(caller: Caller, given: models.SimilarInput, services: Services) -> Mapping[str, Any]:
    found = get_similar_nodes(caller, given.session_id, given.candidate_id, given.k, services)
    matches = [_match(node, score) for node, score in found.matches]
    return {"candidate_id": given.candidate_id, "match_mode": found.match_mode, "matches": matches}


def _match(node: model.Node, score: float) -> dict[str, Any]:
    match: dict[str, Any] = {"node_id": node.node_id, "title": node.title, "score": score}
    if node.superseded_by is not None:
        match["superseded_by"] = node.superseded_by
    if node.revoked:
        match["status"] = "revoked"
    return match


def _propose(caller: Caller, given: models.ProposeInput, services: Services) -> Mapping[str, Any]:
    proposals = propose_reconciliation(caller, given.session_id, services)
    return {"session_id": given.session_id, "proposals": [_proposal(p) for p in proposals]}


def _proposal(proposal: model.Proposal) -> dict[str, Any]:
    shown: dict[str, Any] = {"candidate_id": proposal.candidate_id, "hint": proposal.hint}
    if proposal.targets:
        shown["target_node"] = proposal.targets[0].node_id
    shown["rationale"] = proposal.rationale
    if proposal.score is not None:
        shown["score"] = proposal.score
    return _with_warnings(shown, proposal.warnings)


def _commit(caller: Caller, given: models.CommitInput, services: Services) -> Mapping[str, Any]:
    return commit_consolidation(caller, given.session_id, [o.override() for o in given.agent_overrides], services)


def _abort(caller: Caller, given: models.AbortInput, services: Services) -> Mapping[str, Any]:
    abort_consolidation(caller, given.session_id, services)
    return {"session_id": given.session_id, "aborted": True}


def _hints(*, read_only: bool = False, destructive: bool = False, idempotent: bool = False) -> Annotations:
    return Annotations(read_only, destructive, idempotent, open_world=False)


WRITE_TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "begin_consolidation",
        "Begin a consolidation",
        "Start recording what an artifact (a spec, a card, a bug) decided, on one board. Answers a session_id, a handle that you pass "
        "to the other consolidation tools; it lives for an hour unless expires_at says otherwise. If the same content was committed "
        "before, session_id is null and nothing_changed is true: stop there. Without payload_hash the answer goes by the version number "
        "alone, so pass payload_hash if the content may have changed. Next: add_node_candidate for each statement.",
        "kg.session.begin",
        _hints(),
        models.BeginInput,
        models.BeginOutput,
        _begin,
    ),
    Tool(
        "add_node_candidate",
        "Add a node",
        "Add one statement (a decision, constraint, requirement, alternative, learning, …) to an open session; nothing is visible to "
        "others before the commit. One statement a call; say in the title what holds and in the body why. Give source_ref with a "
        "section, so that a later version of the artifact finds the same node again. Unknown attributes are named in warnings. Next: "
        "add_edge_candidate for relations, then propose_reconciliation.",
        "kg.session.add_node",
        _hints(),
        models.AddNodeInput,
        models.AddNodeOutput,
        _add_node,
    ),
    Tool(
        "add_edge_candidate",
        "Add an edge",
        "Relate two statements: a candidate of this session or an existing node at each end. supersedes goes from the newer to the "
        "older of one type; contradicts, depends_on and relates_to say what their names say (Decision relates_to Alternative: "
        "considered and discarded); validates goes from a Learning or TestScenario to what it bears out. The other relationships belong "
        "to the deterministic worker.",
        "kg.session.add_edge",
        _hints(),
        models.AddEdgeInput,
        models.AddEdgeOutput,
        _add_edge,
    ),
    Tool(
        "get_similar_nodes",
        "Find similar nodes",
        "See which nodes the board already has that look like a candidate of this session: by meaning for Decision, Constraint, "
        "Requirement, Entity and Learning, by the start of the title for the other types. Scores run from 0 to 1. A match with "
        "superseded_by is history. Use it to decide on a supersedes, contradicts or depends_on edge.",
        "kg.session.get_similar",
        _hints(read_only=True, idempotent=True),
        models.SimilarInput,
        models.SimilarOutput,
        _similar,
    ),
    Tool(
        "propose_reconciliation",
        "Propose what becomes of each candidate",
        "Compare all candidates with the board: ADD (new), UPDATE (refines target_node), SUPERSEDE (replaces target_node, which stays "
        "as history) or NOOP (there already), each with its reason. Nothing is written. Look at every hint, in particular at rationales "
        "that name a possible duplicate; a supersedes or contradicts edge says what you know better. Call it again after a "
        "commit_conflict. Next: commit_consolidation.",
        "kg.session.propose",
        _hints(idempotent=True),
        models.ProposeInput,
        models.ProposeOutput,
        _propose,
    ),
    Tool(
        "commit_consolidation",
        "Commit the session",
        "Write the whole session at once, as proposed, or with agent_overrides where you disagree (each with its reason). All of it "
        "becomes visible or none of it. Repeating the same call is safe and gives the same answer. On commit_conflict the board "
        "changed: propose again, look, commit again. Look at warnings: they say what was dropped or merged.",
        "kg.session.commit",
        _hints(idempotent=True),
        models.CommitInput,
        models.CommitOutput,
        _commit,
    ),
    Tool(
        "abort_consolidation",
        "Abort the session",
        "Drop an open session and its candidates; nothing of it was ever visible. Use it when you can't finish, or when nothing turned "
        "out to be new. Repeating it is safe. A committed session can't be aborted.",
        "kg.session.abort",
        _hints(destructive=True, idempotent=True),
        models.AbortInput,
        models.AbortOutput,
        _abort,
    ),
)
