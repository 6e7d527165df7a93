"""Every refusal of Pulse KG, as data.

    PulseError
    ├── InvalidRequest 400            ├── Unauthorized 401
    ├── PermissionDenied 403          ├── ReservedEdgeType 403        ├── SessionOwnershipMismatch 403
    ├── SessionNotFound 404           ├── CandidateNotFound 404       ├── NodeNotFound 404       ├── ToolNotFound 404
    ├── SessionExpired 409            ├── SessionAlreadyCommitted 409 ├── SessionAborted 409
    ├── CommitConflict 409            ├── IdempotencyConflict 409
    ├── PayloadTooLarge 413
    ├── InvalidArgument 422           ├── UnknownAttribute 422        ├── InvalidAttribute 422
    ├── InvalidEdgeEndpoints 422      ├── InvalidOverride 422         ├── ResourceExhausted 422
    ├── InvalidCypher 422           ├── UnsafeCypher 422
    ├── RateLimited 429
    ├── StoreUnavailable 503          ├── EmbedderTimeout 503         ├── EmbeddingModelMismatch 503
    └── QueryTimeout 504

`internal_error` 500 is no class: it is what the outer edge says of an exception that is not a PulseError.
A message tells an agent what to do next; it never holds a path, a host, driver text or anything of another board.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Problem:
    """One fault of an input.

    Attributes:
        path: Where it is, as in ``attributes.confidence`` or ``agent_overrides[2].hint``; ``""`` for the whole input.
        problem: What is wrong and what would be right, in one clause.
    """

    path: str
    problem: str

    def as_dict(self) -> dict[str, str]:
        """The problem as the envelope shows it."""
        return {"path": self.path, "problem": self.problem}


class PulseError(Exception):
    """A refusal with a stable code.

    Attributes:
        code: The contract's code.
        status: The HTTP status that goes with it.
        retryable: Whether the same call may succeed later, unchanged.
        message: One sentence for the caller.
        details: JSON-ready facts about the refusal.
    """

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})


class InvalidRequest(PulseError):
    """The request is not one that can be read (not JSON, not an object)."""

    code, status = "invalid_request", 400


class Unauthorized(PulseError):
    """No key, a malformed one, or one that is unknown or revoked; the three look the same."""

    code, status = "unauthorized", 401

    def __init__(self) -> None:
        super().__init__(
            "No valid API key came with the call. Send one as 'Authorization: Bearer pk_…' or 'X-API-Key: pk_…'; "
            "an administrator makes it with 'pulse-kg agents create'."
        )


class PermissionDenied(PulseError):
    """The agent lacks the flag, or the board is not granted (or does not exist: the same answer)."""

    code, status = "permission_denied", 403

    @classmethod
    def for_flag(cls, flag: str) -> PermissionDenied:
        """The agent's preset or flags do not hold `flag`."""
        return cls(
            f"This agent lacks the permission '{flag}'. Ask an administrator for it ('pulse-kg agents flags NAME +{flag}'), or go on "
            "without this tool.",
            {"required_permission": flag},
        )

    @classmethod
    def for_board(cls, board_id: str) -> PermissionDenied:
        """The board is unknown or not granted."""
        return cls(
            f"The board '{board_id}' is not granted to this agent, or there is none of that name. "
            "Use a board that was granted, or ask an administrator for a grant.",
            {"board_id": board_id},
        )


class ReservedEdgeType(PulseError):
    """An agent tried to write an edge that only the deterministic worker writes."""

    code, status = "reserved_edge_type", 403


class SessionOwnershipMismatch(PulseError):
    """The session belongs to another agent."""

    code, status = "session_ownership_mismatch", 403


class SessionNotFound(PulseError):
    """No such session on a board of this agent."""

    code, status = "session_not_found", 404

    def __init__(self) -> None:
        super().__init__("There is no such session for this agent. Open one with begin_consolidation.")


class CandidateNotFound(PulseError):
    """The session has no candidate of that id."""

    code, status = "candidate_not_found", 404


class NodeNotFound(PulseError):
    """The board has no node of that id."""

    code, status = "node_not_found", 404


class ToolNotFound(PulseError):
    """No tool of that name."""

    code, status = "tool_not_found", 404


class SessionExpired(PulseError):
    """The session outlived its time; nothing of it was written."""

    code, status = "session_expired", 409

    def __init__(self, expired_at: str) -> None:
        super().__init__(
            f"The session expired at {expired_at} and nothing of it was written. "
            "Open a new one with begin_consolidation and add the candidates again.",
            {"expired_at": expired_at},
        )


class SessionAlreadyCommitted(PulseError):
    """The session was committed before; its first answer is in the details where the caller needs it."""

    code, status = "session_already_committed", 409


class SessionAborted(PulseError):
    """The session was aborted before."""

    code, status = "session_aborted", 409

    def __init__(self) -> None:
        super().__init__("The session was aborted and its candidates are gone. Open a new one with begin_consolidation.")


class CommitConflict(PulseError):
    """The board changed under the session since its last propose."""

    code, status = "commit_conflict", 409


class IdempotencyConflict(PulseError):
    """The idempotency key was used before with other content."""

    code, status = "idempotency_conflict", 409


class PayloadTooLarge(PulseError):
    """Too many bytes, or too many candidates."""

    code, status = "payload_too_large", 413


class _ProblemsError(PulseError):
    """A refusal that lists every problem of the input."""

    def __init__(self, message: str, problems: Sequence[Problem], details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, {"problems": [p.as_dict() for p in problems], **(details or {})})
        self.problems = tuple(problems)


class InvalidArgument(_ProblemsError):
    """One or more arguments are missing, unknown, of the wrong type or out of range."""

    code, status = "invalid_argument", 422


class UnknownAttribute(_ProblemsError):
    """A strict board refuses attribute keys that its schema does not have."""

    code, status = "unknown_attribute", 422


class InvalidAttribute(_ProblemsError):
    """An attribute's value is of the wrong type or out of range."""

    code, status = "invalid_attribute", 422


class InvalidEdgeEndpoints(PulseError):
    """The pair of node types is not allowed, the edge is a self-loop, or it would close a cycle."""

    code, status = "invalid_edge_endpoints", 422


class InvalidOverride(_ProblemsError):
    """One or more overrides of a commit can't be applied; nothing was changed."""

    code, status = "invalid_override", 422


class InvalidCypher(PulseError):
    """A query that can't be read, that makes no sense, or that failed on a value; `details` say where and what kind of fault it is."""

    code, status = "invalid_cypher", 422


class UnsafeCypher(PulseError):
    """A query that would do more than read one board; nothing of it ran."""

    code, status = "unsafe_cypher", 422


class ResourceExhausted(PulseError):
    """A bounded computation ran over its budget."""

    code, status = "resource_exhausted", 422


class RateLimited(PulseError):
    """Too many calls, or too many open sessions."""

    code, status, retryable = "rate_limit", 429, True


class StoreUnavailable(PulseError):
    """A store can't be reached or is busy; the same call may succeed later."""

    code, status, retryable = "store_unavailable", 503, True

    def __init__(self, store: str, message: str | None = None, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(
            message or f"The {store} store can't be used right now. Try the same call again in a moment.",
            {"store": store, **(details or {})},
        )


class EmbedderTimeout(PulseError):
    """The texts could not be embedded in the time left."""

    code, status, retryable = "embedder_timeout", 503, True

    def __init__(self) -> None:
        super().__init__("The texts could not be embedded in time. Try the same call again in a moment.")


class EmbeddingModelMismatch(PulseError):
    """The store was filled with another embedding model."""

    code, status = "embedding_model_mismatch", 503


class QueryTimeout(PulseError):
    """A read ran over its time."""

    code, status, retryable = "query_timeout", 504, True
