"""Calls functions of this deployment that run elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pulse_kg.errors import StoreUnavailable


class FunctionTimeout(StoreUnavailable):
    """The function did not answer in time; whether it did its work is not known."""

    def __init__(self) -> None:
        super().__init__(
            "function", "The tool did not answer in time and may or may not have done its work. Look at the session, then try again."
        )


class FunctionFailed(Exception):
    """The function broke off, or answered what nobody can read. No refusal: a fault of the deployment, for the log.

    Attributes:
        kind: The kind of error that the platform told.
    """

    def __init__(self, function: str, kind: str) -> None:
        super().__init__(f"the function {function} failed: {kind}")
        self.kind = kind


class FunctionInvoker(Protocol):
    """Calls a function and waits for its answer.

    Delivery: once; nothing is tried again, for the function may have done its work.
    Tenancy: none; the payload carries the caller's key, and the function checks it.
    Limits: 6 MB for a payload, and as much for an answer.
    Errors: StoreUnavailable (retryable) where the function did not start: throttled, or out of reach; FunctionTimeout;
        PayloadTooLarge; ResourceExhausted for an answer that is too large; FunctionFailed.
    """

    def invoke(self, function: str, payload: Mapping[str, Any]) -> Any:
        """Calls the function of that name.

        Args:
            function: Its full name.
            payload: JSON-ready.

        Returns:
            The answer, decoded.
        """
        ...
