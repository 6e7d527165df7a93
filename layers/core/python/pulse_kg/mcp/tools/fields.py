"""Arguments that several tools take."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pulse_kg.domain import ids

MAX_SOURCE_ID = 200
MAX_IDEMPOTENCY_KEY = 128

_SESSION = "Handle from begin_consolidation, such as kgs_01HV…; it lives as long as its expires_at says."


BoardId = Annotated[
    str, Field(min_length=1, max_length=64, pattern=f"^{ids.BOARD_ID.pattern}$", description="The board, such as payments.")
]
SessionId = Annotated[str, Field(min_length=1, max_length=64, description=_SESSION)]
NodeId = Annotated[str, Field(max_length=128, pattern=f"^{ids.NODE_ID.pattern}$", description="An existing node, such as dec_4c20aa….")]
CandidateId = Annotated[str, Field(min_length=1, max_length=64, description="A node candidate of this session, such as cand_001.")]
IdempotencyKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_IDEMPOTENCY_KEY,
        description="A key of your own choice. The same key with the same content gives the same candidate again, so a retry adds nothing.",
    ),
]


def printable(text: str) -> str:
    """The text itself, if it is printable and not blank; else ValueError."""
    if not text.isprintable() or not text.strip():
        raise ValueError("must be printable and not blank")
    return text
