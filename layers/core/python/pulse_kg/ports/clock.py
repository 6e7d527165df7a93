"""Time and identity from outside, so that tests can fix both."""

from __future__ import annotations

from typing import Protocol

from pulse_kg.domain.instants import Instant


class Clock(Protocol):
    """The wall clock.

    Consistency: never earlier than what it said before, within one process, by more than the machine's own clock errs.
    """

    def now(self) -> Instant:
        """Epoch milliseconds, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that only goes forward; for time budgets."""
        ...


class Ids(Protocol):
    """Makes identifiers that nobody can foresee.

    Errors: none.
    """

    def session_id(self, now: Instant) -> str:
        """`kgs_` + ULID of the instant."""
        ...

    def agent_id(self, now: Instant) -> str:
        """`agt_` + ULID of the instant."""
        ...

    def correlation_id(self) -> str:
        """32 hex digits."""
        ...

    def key_parts(self) -> tuple[str, str]:
        """The public part (8 characters `[a-z2-7]`) and the secret (32 random bytes in base32, lower case) of an API key."""
        ...
