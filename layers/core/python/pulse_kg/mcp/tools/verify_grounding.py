"""verify_grounding: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId, NodeId
from pulse_kg.mcp.tools.reading import truncated_if
from pulse_kg.usecases.reading import MAX_LISTED
from pulse_kg.usecases.services import Services
from pulse_kg.usecases.verify_grounding import verify_grounding

MAX_RETRIEVED = 200


class GroundingInput(ToolInput):
    """Arguments of verify_grounding."""

    board_id: BoardId
    answer_text: Annotated[str, Field(description="Your answer, up to 32 KiB, as you are going to give it.")]
    retrieved_nodes: Annotated[
        list[NodeId],
        Field(min_length=1, max_length=MAX_RETRIEVED, description="The ids of the nodes that you made it from, 1 to 200."),
    ]


class GroundingOutput(Answer):
    """Answer of verify_grounding."""

    grounded: bool
    score: float
    matched_entities: list[str]
    unmatched_phrases: list[str]
    missing_nodes: list[str]
    superseded_nodes: list[str]
    truncated: bool = False


def _verify(caller: Caller, given: GroundingInput, services: Services) -> Mapping[str, Any]:
    found = verify_grounding(caller, given.board_id, given.answer_text, given.retrieved_nodes, services)
    matched, unmatched = found.grounding.matched, found.grounding.unmatched
    answer = {
        "grounded": found.grounding.grounded,
        "score": found.grounding.score,
        "matched_entities": list(matched[:MAX_LISTED]),
        "unmatched_phrases": list(unmatched[:MAX_LISTED]),
        "missing_nodes": list(found.missing),
        "superseded_nodes": list(found.superseded),
    }
    return truncated_if(max(len(matched), len(unmatched)) > MAX_LISTED, answer)


TOOL = Tool(
    "verify_grounding",
    "Check an answer against its sources",
    "Before you give an answer that you made from nodes of a board, see whether they say it. The check goes by words, not by meaning: it "
    "looks for your quotes, numbers, names and phrases in the title, body and attributes of the nodes and in the titles of their "
    "neighbours. score is the share that was found, 0 to 1; grounded needs 0.7, every number, and no 'not' that stands on one side only. "
    "unmatched_phrases is what to correct, to leave out or to find a source for; use the nodes' own words where you can. missing_nodes "
    "are ids that the board does not have; superseded_nodes do not hold any more, so don't state what they say as the present. An answer "
    "may be true and not grounded, and grounded does not make it true.",
    "kg.power.natural",
    hints(read_only=True, idempotent=True),
    GroundingInput,
    GroundingOutput,
    _verify,
)
