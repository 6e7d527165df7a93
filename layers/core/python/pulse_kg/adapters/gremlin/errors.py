"""The graph server's refusals as the project's own; the only place that reads its codes and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Final

from pulse_kg.errors import StoreUnavailable

STORE: Final = "graph"

_FAILED_STEP, _TEMPORARY, _TIMED_OUT = 595, 596, 598
_NOT_ALLOWED: Final = frozenset({401, 403, 407})

# What a transaction that met another one is told: by Neptune, by JanusGraph over any of its backends, by BerkeleyDB, by TinkerGraph.
_CONFLICT: Final = re.compile(
    r"ConcurrentModificationException|ConcurrentModificationFailure|LockingException|LockTimeout|LockConflict|LockNotAvailable"
    r"|Could not commit transaction due to exception during persistence|Could not acquire lock|Local lock contention"
    r"|violates a uniqueness constraint|Vertex with given id already exists|ConstraintViolationException|Conflict: element modified"
    # Some of Neptune's engines call a conflict an internal failure; repeating is safe because every request is idempotent.
    r"|InternalFailureException|TemporaryBackendException"
)
# After a failover the address leads to another machine, and the open connection to one that only reads.
_MOVED: Final = re.compile(r"ReadOnlyViolationException|Server disconnected|ServerShutdownException")


class Fault(Enum):
    """What to do about an error that the server answered with."""

    CONFLICT = "the whole request again, after a moment"
    MOVED = "the whole request again, over a new connection"
    FAILED_STEP = "a guard of the request stopped it: repeating is useless"
    NOT_ALLOWED = "a person has to give this program the right"
    OTHER = "not now"


class ServerFault(Exception):
    """The server's answer to a request was an error; nothing of the request was written.

    Attributes:
        code: TinkerPop's status.
        text: The server's message with its attributes: driver text, never for a caller.
        fault: What to do about it.
    """

    def __init__(self, code: int, message: str | None, attributes: Mapping[str, Any] | None = None) -> None:
        self.code = code
        self.text = f"{message or ''} {attributes or ''}"
        super().__init__(f"{code}: {self.text[:500]}")

    @property
    def fault(self) -> Fault:
        """The kind of it."""
        if self.code in _NOT_ALLOWED:
            return Fault.NOT_ALLOWED
        if self.code == _FAILED_STEP:
            return Fault.FAILED_STEP
        if _MOVED.search(self.text):
            return Fault.MOVED
        if self.code == _TEMPORARY or (self.code != _TIMED_OUT and _CONFLICT.search(self.text)):
            return Fault.CONFLICT
        return Fault.OTHER


class ConnectionLost(Exception):
    """The connection ended before the answer came: whether the request was done is not known."""


class NotReachable(Exception):
    """No connection could be made."""


class NotAllowed(NotReachable):
    """The server answered the handshake with a refusal."""


class GraphRefused(StoreUnavailable):
    """The graph can't be used as it is, now or later: a person has to do something."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(STORE, message, details)


def unavailable() -> StoreUnavailable:
    """The server is not there, or could not do it."""
    return StoreUnavailable(STORE)


def busy() -> StoreUnavailable:
    """Others changed the same things for all of the time that there was."""
    return StoreUnavailable(STORE, "Other calls are writing to the graph. Try the same call again in a moment.")


def too_slow() -> StoreUnavailable:
    """The time of the call was over before the answer came."""
    return StoreUnavailable(STORE, "The graph store did not answer in time. Try the same call again in a moment.")


def closed() -> StoreUnavailable:
    """The store was closed under the call."""
    return StoreUnavailable(STORE, "The store is being closed. Try the same call again in a moment.")


def not_allowed() -> GraphRefused:
    """The server knows this program, and does not let it in."""
    return GraphRefused("The graph store refuses this program. Give its role the right to connect to it, to read and to write.")


_REPAIR: Final = "Run 'pulse-kg verify', and restore a backup or make the store anew with 'pulse-kg rebuild'."


def incomplete() -> GraphRefused:
    """A commit names an element that the graph has lost."""
    return GraphRefused(f"The graph is damaged: a node that the commit builds on is missing, and nothing was written. {_REPAIR}")


def not_taken() -> StoreUnavailable:
    """The server answered that it did something else than what was sent."""
    return StoreUnavailable(STORE, "The graph store did not take all of a commit. Try the same call again in a moment.")


def damaged() -> GraphRefused:
    """An element has not all that was written of it."""
    return GraphRefused(f"The graph is damaged: a part of a node or edge is missing. {_REPAIR}")


def unfit(reason: str, advice: str) -> GraphRefused:
    """The server answers, but does not keep what this store needs."""
    return GraphRefused(f"The graph store can't be used: {reason}. {advice}", {"reason": reason})


def foreign_element() -> GraphRefused:
    """The last guard between boards; no request of this package should ever let it speak."""
    return GraphRefused(
        "The graph answered with an element of another board, and the answer was thrown away. Report this, and run 'pulse-kg verify'."
    )


def translate(error: ServerFault) -> StoreUnavailable:
    """What a fault that is not, or no more, repeated means for the caller."""
    match error.fault:
        case Fault.CONFLICT:
            return busy()
        case Fault.NOT_ALLOWED:
            return not_allowed()
        case Fault.FAILED_STEP:
            return incomplete()
        case _:
            return unavailable()
