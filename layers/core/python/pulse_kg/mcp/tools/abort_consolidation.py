"""abort_consolidation: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import SessionId
from pulse_kg.usecases.abort_consolidation import abort_consolidation
from pulse_kg.usecases.services import Services


class AbortInput(ToolInput):
    """Arguments of abort_consolidation."""

    session_id: SessionId


class AbortOutput(Answer):
    """Answer of abort_consolidation."""

    session_id: str
    aborted: bool


def _abort(caller: Caller, given: AbortInput, services: Services) -> Mapping[str, Any]:
    abort_consolidation(caller, given.session_id, services)
    return {"session_id": given.session_id, "aborted": True}


TOOL = Tool(
    "abort_consolidation",
    "Abort the session",
    "Drop an open session and its candidates; nothing of it was ever visible. Use it when you can't finish, or when nothing turned "
    "out to be new. Repeating it is safe. A committed session can't be aborted.",
    "kg.session.abort",
    hints(destructive=True, idempotent=True),
    AbortInput,
    AbortOutput,
    _abort,
)
