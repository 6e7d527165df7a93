"""begin_consolidation: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from pulse_kg.domain import ids
from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.model import Source
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.refs import Artifact
from pulse_kg.mcp.arguments import ToolInput, whole
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import MAX_SOURCE_ID, BoardId, printable
from pulse_kg.usecases.begin_consolidation import begin_consolidation
from pulse_kg.usecases.services import Services

MAX_VERSION = 2**53 - 1  # the largest integer that every JSON reader keeps


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
        return printable(value)

    def source(self) -> Source:
        """The version of the artifact."""
        return Source(Artifact(self.source_type, self.source_id), self.source_version)


class BeginOutput(Answer):
    """Answer of begin_consolidation."""

    session_id: str | None
    content_hash: str
    nothing_changed: bool
    expires_at: str | None = None
    hash_basis: Literal["payload", "artifact", "version"] | None = None


def _begin(caller: Caller, given: BeginInput, services: Services) -> Mapping[str, Any]:
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


TOOL = Tool(
    "begin_consolidation",
    "Begin a consolidation",
    "Start recording what an artifact (a spec, a card, a bug) decided, on one board. Answers a session_id, a handle that you pass "
    "to the other consolidation tools; it lives for an hour unless expires_at says otherwise. If the same content was committed "
    "before, session_id is null and nothing_changed is true: stop there. Without payload_hash the answer goes by the version number "
    "alone, so pass payload_hash if the content may have changed. Next: add_node_candidate for each statement.",
    "kg.session.begin",
    hints(),
    BeginInput,
    BeginOutput,
    _begin,
)
