"""The machine's own clock and randomness."""

from __future__ import annotations

import base64
import secrets
import time

from pulse_kg.domain.ids import ulid
from pulse_kg.domain.instants import Instant


class SystemClock:
    """The wall clock."""

    def now(self) -> Instant:
        """Epoch milliseconds, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds of a clock that only goes forward."""
        return time.monotonic()


class RandomIds:
    """Identifiers from the system's randomness."""

    def session_id(self, now: Instant) -> str:
        """`kgs_` + ULID."""
        return f"kgs_{ulid(now, secrets.token_bytes(10))}"

    def agent_id(self, now: Instant) -> str:
        """`agt_` + ULID."""
        return f"agt_{ulid(now, secrets.token_bytes(10))}"

    def correlation_id(self) -> str:
        """32 hex digits."""
        return secrets.token_hex(16)

    def key_parts(self) -> tuple[str, str]:
        """8 public characters, and 32 random bytes in base32, both lower case."""
        public = base64.b32encode(secrets.token_bytes(5)).decode().lower()
        return public, base64.b32encode(secrets.token_bytes(32)).decode().rstrip("=").lower()
