"""Arguments and pieces of answers that the tools that read share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pulse_kg.domain import ids
from pulse_kg.domain.instants import parse_instant
from pulse_kg.domain.refs import parse_ref
from pulse_kg.mcp.arguments import whole
from pulse_kg.mcp.tools.base import Answer
from pulse_kg.usecases.reading import MAX_LISTED, Seen

MAX_QUERY = 4_000
_MAX_REF = 2_200  # a type of 32 characters, an id of 200 and a section of 500, each character of the two escaped


def not_blank(text: str) -> str:
    """The text itself, if there is more to it than white space; else ValueError."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _rfc3339(text: str) -> str:
    try:
        parse_instant(text)
    except ValueError as error:
        raise ValueError("must be an RFC 3339 date or instant, such as 2026-05-07 or 2026-05-07T16:30:00Z") from error
    return text


QueryText = Annotated[str, Field(min_length=1, max_length=MAX_QUERY), AfterValidator(not_blank)]
"""A question or topic: 1 to 4,000 characters, not blank. Give the field its own description."""
InstantText = Annotated[str, Field(max_length=64), AfterValidator(_rfc3339)]
"""An RFC 3339 date or instant, as text; `pulse_kg.domain.instants.parse_instant` reads it."""


def _node_or_ref(text: str) -> str:
    if ":" not in text:
        if not ids.NODE_ID.fullmatch(text):
            raise ValueError("must have the form of a node's id, such as dec_0123456789abcdef, or of a source reference")
        return text
    try:
        parse_ref(text)
    except ValueError as error:
        raise ValueError("must be a source reference in canonical form, such as spec:spec_007#retry-strategy") from error
    return text


NodeOrSourceRef = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_MAX_REF,
        description="An existing node, such as dec_4c20aa…, or the source reference of exactly one live node, such as "
        "spec:spec_007#retry-strategy.",
    ),
    AfterValidator(_node_or_ref),
]
Limit = Annotated[int, Field(ge=1, le=MAX_LISTED, description="How many results at most, 1 to 200."), BeforeValidator(whole)]
Limit100 = Annotated[int, Field(ge=1, le=100, description="How many results at most, 1 to 100."), BeforeValidator(whole)]
Limit50 = Annotated[int, Field(ge=1, le=50, description="How many results at most, 1 to 50."), BeforeValidator(whole)]


class NodeMarks(Answer):
    """What an answer says of a node that is not simply in force; left out for one that is.

    Attributes:
        superseded_by: The node that replaced it.
        status: It was taken back.
        contradicted: An unresolved contradicts edge touches it.
    """

    superseded_by: str | None = None
    status: Literal["revoked"] | None = None
    contradicted: bool = False


class NodeRef(NodeMarks):
    """A node in an answer."""

    node_id: str
    title: str


def node_ref(seen: Seen, **more: Any) -> dict[str, Any]:
    """A node as `NodeRef` and what derives from it take it: id, title, more of its fields, its marks."""
    return {"node_id": seen.node.node_id, "title": seen.node.title, **more, **seen.marks}


def truncated_if(cut: bool, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, with `truncated` where a list in it was cut short."""
    return {**answer, "truncated": True} if cut else dict(answer)
