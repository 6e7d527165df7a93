"""get_decision_history: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from pulse_kg.domain.instants import format_instant, parse_instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId
from pulse_kg.mcp.tools.reading import InstantText, Limit, NodeRef, QueryText, node_ref
from pulse_kg.usecases.get_decision_history import HistoryEntry, get_decision_history
from pulse_kg.usecases.services import Services


class HistoryInput(ToolInput):
    """Arguments of get_decision_history."""

    board_id: BoardId
    topic: Annotated[QueryText, Field(description="What the decisions are about, such as retry strategy for webhooks.")]
    limit: Limit = 20
    since: Annotated[
        InstantText | None,
        Field(description="Only decisions of this time or later: their decided_at, or where they have none, when they were recorded."),
    ] = None


class HistoryDecision(NodeRef):
    """A decision about the topic; superseded_by is null where it still holds."""

    type: Literal["Decision"]
    created_at: str
    rationale: str | None = None
    superseded_by: str | None
    score: float
    decided_at: str | None = None


class ChainOutput(Answer):
    """Decisions that superseded one another, from the one that holds to the first."""

    head: str
    ids: list[str]


class HistoryOutput(Answer):
    """Answer of get_decision_history."""

    topic: str
    match_mode: Literal["hybrid"]
    results: list[HistoryDecision]
    chains: list[ChainOutput]


def _history(caller: Caller, given: HistoryInput, services: Services) -> Mapping[str, Any]:
    since = None if given.since is None else parse_instant(given.since)
    found = get_decision_history(caller, given.board_id, given.topic, given.limit, since, services)
    return {
        "topic": given.topic,
        "match_mode": "hybrid",
        "results": [_decision(entry) for entry in found.entries],
        "chains": [{"head": chain.head, "ids": list(chain.ids)} for chain in found.chains],
    }


def _decision(entry: HistoryEntry) -> dict[str, Any]:
    node = entry.seen.node
    shown: dict[str, Any] = {
        "type": node.node_type,
        "created_at": format_instant(node.created_at),
        "superseded_by": None,
        "score": entry.score,
    }
    if entry.rationale is not None:
        shown["rationale"] = entry.rationale
    if isinstance(decided := node.attributes.get("decided_at"), str):
        shown["decided_at"] = decided
    return shown | node_ref(entry.seen)


TOOL = Tool(
    "get_decision_history",
    "Decision history",
    "What was decided about a topic, in the order of time, newest first: the first thing to ask before a decision is made or changed. "
    "It finds decisions by meaning and by the words of their titles, superseded ones too. superseded_by null means that the decision "
    "still holds; chains gives for each line of decisions its head, which holds, and the ids from it to the first. The order is that of "
    "time, so look at score, 0 to 1, for how well a decision fits.",
    "kg.query.decision_history",
    hints(read_only=True, idempotent=True),
    HistoryInput,
    HistoryOutput,
    _history,
)
