"""Where consolidation sessions live until commit, abort or expiry."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Candidates, EdgeCandidate, EdgeDraft, NodeCandidate, NodeDraft, Proposal, Session, TextVector

GRACE_MS = 86_400_000
"""How long after its expiry a session is still remembered, so that a late call gets its state and not a 404."""


@dataclass(frozen=True)
class Appended:
    """A numbered candidate, and whether the idempotency key had made it before."""

    candidate_id: str
    replayed: bool = False


class SessionStore(Protocol):
    """Keeps consolidation sessions and their candidates.

    Atomicity: each method is one atomic change; `append_*` numbers and stores in the same step, from 1 without gaps.
    Order: candidates come back in the order of their numbers.
    Consistency: a write is visible to every later read, from any process.
    Tenancy: the session id is the key; the board it belongs to is part of what is returned and never an argument.
    State: every write but `create` and `purge` is conditional on the session being open and not expired at `now`, in the
        same atomic step. A session is closed as committed by `CommitLog` only.
    Limits: as given to `append_*`; one candidate is at most 48 KiB encoded (checked by the caller).
    Errors: SessionNotFound; SessionExpired, SessionAlreadyCommitted, SessionAborted by state; StoreUnavailable (retryable).
    """

    def create(self, session: Session, *, limit: int | None = None, counted_boards: Collection[str] = ()) -> bool:
        """Stores a new open session, unless its agent has too many.

        The agent's sessions that are open and not expired at `session.started_at` are counted in the same atomic step, so
        that no number of callers at once gets beyond the limit.

        Args:
            session: The session.
            limit: How many open sessions its agent may have, this one included; None for any number.
            counted_boards: The boards whose sessions count.

        Returns:
            Whether it was stored; False where the limit is reached.
        """
        ...

    def load(self, session_id: str) -> Session:
        """The session in whatever state, expired ones too until the grace ends.

        Raises:
            SessionNotFound: There is none, or its grace is over.
        """
        ...

    def load_all(self, session_id: str) -> tuple[Session, Candidates]:
        """`load` and `candidates` of one state, in one read where the store has such.

        Raises:
            SessionNotFound: As `load`.
        """
        ...

    def append_node(
        self,
        session_id: str,
        draft: NodeDraft,
        *,
        unknown_keys: Sequence[str],
        idempotency_key: str | None,
        limit: int,
        now: Instant,
    ) -> Appended:
        """Adds a node candidate and numbers it.

        The same idempotency key with an equal draft gives the first candidate again, even where the limit is reached.

        Raises:
            IdempotencyConflict: The key was used in this session, for a node or an edge, with other content.
            PayloadTooLarge: The session has `limit` node candidates.
        """
        ...

    def append_edge(
        self,
        session_id: str,
        draft: EdgeDraft,
        *,
        unknown_keys: Sequence[str],
        target_was_live: bool | None,
        idempotency_key: str | None,
        limit: int,
        now: Instant,
    ) -> Appended:
        """The same for an edge candidate. Equality of content looks at the draft alone."""
        ...

    def candidates(self, session_id: str) -> Candidates:
        """All candidates with their vectors and stored proposals. Empty where the session has none or is closed."""
        ...

    def node_candidate(self, session_id: str, candidate_id: str) -> NodeCandidate:
        """One node candidate.

        Raises:
            CandidateNotFound: The session has none of that id.
        """
        ...

    def edge_candidates(self, session_id: str) -> tuple[EdgeCandidate, ...]:
        """The edge candidates alone."""
        ...

    def save_vectors(self, session_id: str, vectors: Mapping[str, TextVector], *, now: Instant) -> None:
        """Keeps vectors of node candidates, by candidate id."""
        ...

    def save_proposals(
        self, session_id: str, proposals: Sequence[Proposal], *, edges_seen: int, targets_live: Mapping[str, bool], now: Instant
    ) -> None:
        """Replaces the stored proposals and makes the session committable.

        Args:
            session_id: The session.
            proposals: Of the first `len(proposals)` node candidates, in order.
            edges_seen: How many edge candidates they took into account.
            targets_live: Edge candidate id → `target_was_live` as this propose saw it.
            now: The time.
        """
        ...

    def mark_uncommittable(self, session_id: str, reason: str, *, now: Instant) -> None:
        """Notes why the last commit failed. Does nothing to a session that is not open any more."""
        ...

    def abort(self, session_id: str, *, now: Instant) -> None:
        """Drops the candidates and closes the session; an aborted or expired session stays as it is.

        Raises:
            SessionAlreadyCommitted: It was committed.
        """
        ...

    def open_sessions(self, *, agent_id: str | None = None, board_id: str | None = None, now: Instant) -> tuple[Session, ...]:
        """The open sessions that are not expired, of an agent, of a board, or of both; by (started_at, id)."""
        ...

    def purge(self, *, now: Instant, at_most: int = 100) -> int:
        """Forgets sessions whose grace is over, with their candidates; returns how many."""
        ...
