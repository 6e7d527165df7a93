"""Agents, their keys and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pulse_kg.domain.instants import Instant


@dataclass(frozen=True)
class Agent:
    """Who may call.

    Attributes:
        agent_id: `agt_` + ULID; the owner of sessions.
        name: Unique, for people.
        preset: The name of its preset.
        added_flags: Flags beyond the preset; may end in ``.*``. Sorted.
        removed_flags: Flags taken from it; they win over the preset and the added ones. Sorted.
        boards: Granted boards, sorted.
        denied: Denied boards, sorted; a denial wins over a grant.
        created_at: When it was made.
        revoked_at: From when it may nothing; None while it may.
    """

    agent_id: str
    name: str
    preset: str
    added_flags: tuple[str, ...]
    removed_flags: tuple[str, ...]
    boards: tuple[str, ...]
    denied: tuple[str, ...]
    created_at: Instant
    revoked_at: Instant | None = None


@dataclass(frozen=True)
class KeyRecord:
    """What is kept of an API key: never the key.

    Attributes:
        public_id: Its 8 public characters.
        agent_id: Whose it is.
        secret_sha256: SHA-256 of the secret, 64 hex digits.
        created_at: When it was made.
        revoked_at: From when it opens nothing.
    """

    public_id: str
    agent_id: str
    secret_sha256: str
    created_at: Instant
    revoked_at: Instant | None = None


class IdentityStore(Protocol):
    """Keeps agents, keys, grants and denials.

    Atomicity: each method is one atomic change.
    Consistency: a change is visible to `by_key` within 60 s, in every process.
    Tenancy: an agent belongs to no board; its grants name boards.
    Errors: StoreUnavailable (retryable).
    """

    def create_agent(self, agent: Agent, key: KeyRecord) -> bool:
        """Makes an agent with its first key; False if the name is taken."""
        ...

    def by_key(self, public_id: str) -> tuple[Agent, KeyRecord] | None:
        """The key of that public part and its agent, revoked ones too."""
        ...

    def by_name(self, name: str) -> Agent | None:
        """The agent of that name, revoked ones too."""
        ...

    def agents(self) -> tuple[Agent, ...]:
        """All agents, by name."""
        ...

    def keys(self, agent_id: str) -> tuple[KeyRecord, ...]:
        """The keys of an agent, by (created_at, public_id)."""
        ...

    def save_agent(self, agent: Agent) -> None:
        """Replaces flags, grants, denials and revocation of an agent."""
        ...

    def add_key(self, key: KeyRecord) -> None:
        """Adds a key."""
        ...

    def revoke_keys(self, agent_id: str, *, now: Instant, but: str | None = None) -> int:
        """Revokes all keys of an agent that are not revoked yet, but one; returns how many."""
        ...


class RateLimiter(Protocol):
    """Counts calls in windows of fixed length that all processes share.

    Atomicity: one call counts and decides in one step.
    Consistency: shared by all processes of the store.
    Tenancy: the key names the agent.
    Errors: StoreUnavailable (retryable).
    """

    def take(self, key: str, *, limit: int, window_seconds: int, now: Instant, patience: float | None = None) -> int | None:
        """Takes one of `limit` calls of the current window.

        Args:
            key: What is counted.
            limit: Calls of a window.
            window_seconds: How long a window is.
            now: The time.
            patience: For a call that only reads: seconds that it may wait where a store lets one process write at a time. When they are
                over the calls that this process knows of decide, and others may learn of this one later. None waits as every write does.

        Returns:
            None where there was one left; else the whole seconds, 1 or more, until the next window.
        """
        ...
