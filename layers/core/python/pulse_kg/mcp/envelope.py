"""The one error envelope of the project, as every transport shows it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from pulse_kg.errors import PulseError


def new_correlation_id() -> str:
    """A random id that joins an answer to its log line: 16 hex digits."""
    return secrets.token_hex(8)


def refusal(
    code: str,
    status: int,
    message: str,
    *,
    correlation_id: str,
    details: Mapping[str, Any] | None = None,
    retryable: bool = False,
) -> dict[str, Any]:
    """An envelope from its parts, for refusals that only a transport knows (a method, a content type).

    Args:
        code: One of the contract's codes.
        status: The HTTP status that goes with this refusal.
        message: One sentence that says what to do next.
        correlation_id: Joins the answer to the log.
        details: JSON-ready facts.
        retryable: Whether the same call may succeed later, unchanged.
    """
    return {
        "error": {
            "code": code,
            "status": status,
            "message": message,
            "details": dict(details or {}),
            "retryable": retryable,
            "correlation_id": correlation_id,
        }
    }


def envelope(error: PulseError, correlation_id: str) -> dict[str, Any]:
    """The envelope of a refusal."""
    return refusal(
        error.code,
        error.status,
        error.message,
        correlation_id=correlation_id,
        details=error.details,
        retryable=error.retryable,
    )


def internal_error(correlation_id: str) -> dict[str, Any]:
    """The envelope of an exception that nobody foresaw; what it was stands in the log only."""
    return refusal(
        "internal_error",
        500,
        f"Something went wrong inside the server. Report it with the correlation id {correlation_id}.",
        correlation_id=correlation_id,
    )
