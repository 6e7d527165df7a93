"""get_learning_from_bugs: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.model import Node
from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId
from pulse_kg.mcp.tools.reading import Limit, NodeRef, QueryText, node_ref
from pulse_kg.usecases.get_learning_from_bugs import get_learning_from_bugs
from pulse_kg.usecases.services import Services


class LearningInput(ToolInput):
    """Arguments of get_learning_from_bugs."""

    board_id: BoardId
    area: Annotated[QueryText, Field(description="What you are about to work on, such as webhook delivery.")]
    limit: Limit = 10


class LearningFromBugOutput(Answer):
    """A learning and the bug that it was drawn from."""

    learning: NodeRef
    bug: NodeRef
    captured_at: str
    score: float


class LearningOutput(Answer):
    """Answer of get_learning_from_bugs."""

    results: list[LearningFromBugOutput]


def _learning(caller: Caller, given: LearningInput, services: Services) -> Mapping[str, Any]:
    found = get_learning_from_bugs(caller, given.board_id, given.area, given.limit, services)
    return {
        "results": [
            {
                "learning": node_ref(pair.learning),
                "bug": node_ref(pair.bug),
                "captured_at": _captured_at(pair.learning.node),
                "score": pair.score,
            }
            for pair in found
        ]
    }


def _captured_at(learning: Node) -> str:
    stated = learning.attributes.get("captured_at")
    return stated if isinstance(stated, str) else format_instant(learning.created_at)


TOOL = Tool(
    "get_learning_from_bugs",
    "Learnings from bugs",
    "What earlier bugs taught about an area: each result is a learning with a bug that it was drawn from. Ask before you change code that "
    "has failed before. A pair is found where the learning is near to the area by meaning or by its words, or the bug by its words; best "
    "first, score 0 to 1. captured_at tells when it was learnt.",
    "kg.query.learning_from_bugs",
    hints(read_only=True, idempotent=True),
    LearningInput,
    LearningOutput,
    _learning,
)
