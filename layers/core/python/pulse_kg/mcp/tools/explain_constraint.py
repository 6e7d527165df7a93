"""explain_constraint: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.refs import Artifact
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId, NodeId
from pulse_kg.mcp.tools.reading import NodeMarks, NodeRef, node_ref, truncated_if
from pulse_kg.usecases.explain_constraint import explain_constraint
from pulse_kg.usecases.reading import Seen
from pulse_kg.usecases.services import Services


class ExplainInput(ToolInput):
    """Arguments of explain_constraint."""

    board_id: BoardId
    node_id: NodeId


class ConstraintOutput(NodeRef):
    """The constraint."""

    severity: str | None = None
    scope: str | None = None


class OriginOutput(NodeMarks):
    """Where it comes from: a node, with its type, or an artifact, with its kind."""

    type: str
    id: str
    title: str | None


class ViolationOutput(NodeRef):
    """A bug that broke it."""

    resolved_at: str | None


class ExplainOutput(Answer):
    """Answer of explain_constraint."""

    constraint: ConstraintOutput
    origin: OriginOutput | None
    related_constraints: list[NodeRef]
    violations: list[ViolationOutput]
    truncated: bool = False


def _explain(caller: Caller, given: ExplainInput, services: Services) -> Mapping[str, Any]:
    found = explain_constraint(caller, given.board_id, given.node_id, services)
    stated = {key: found.constraint.node.attributes[key] for key in ("severity", "scope") if key in found.constraint.node.attributes}
    answer = {
        "constraint": node_ref(found.constraint, **stated),
        "origin": _origin(found.origin),
        "related_constraints": [node_ref(seen) for seen in found.related],
        "violations": [node_ref(seen, resolved_at=seen.node.attributes.get("resolved_at")) for seen in found.violations],
    }
    return truncated_if(found.truncated, answer)


def _origin(origin: Seen | Artifact) -> dict[str, Any]:
    if isinstance(origin, Artifact):
        return {"type": origin.source_type, "id": origin.source_id, "title": None}
    return {"type": origin.node.node_type, "id": origin.node.node_id, "title": origin.node.title, **origin.marks}


TOOL = Tool(
    "explain_constraint",
    "Explain a constraint",
    "Where a Constraint comes from, what goes with it and how it fared. origin is the requirement, decision or entity that it derives from "
    "(type is the node type, id its node_id), else the artifact that states it (type is its kind, such as spec, id its own id, title null "
    "where it is not known). related_constraints are joined to it or have the same origin: keep them too. violations are bugs that broke "
    "it; resolved_at null means that it is still broken. Takes a Constraint; for other types use get_related_context.",
    "kg.query.constraint_explain",
    hints(read_only=True, idempotent=True),
    ExplainInput,
    ExplainOutput,
    _explain,
)
