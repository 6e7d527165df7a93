"""The commit log: the one way in which a board changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from pulse_kg.domain.audit import AuditRow
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Board
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.refs import Artifact


@dataclass(frozen=True)
class OutboxRecord:
    """An event of the outbox.

    Attributes:
        board_id: The tenant.
        seq: The commit it tells of.
        event: The CloudEvent.
        state: `decided`, `applied` or `published`.
    """

    board_id: str
    seq: int
    event: Mapping[str, Any]
    state: str


@dataclass(frozen=True)
class Swept:
    """What a sweep of a board did.

    Attributes:
        applied: Decided commits that it carried out.
        published: Events that it sent.
        unstaged: Commits without a decision whose parts it removed.
    """

    applied: int = 0
    published: int = 0
    unstaged: int = 0


class Outbox(Protocol):
    """Finishes what commits left behind; a store that decides and applies in one step has none.

    Idempotency: everything may be done twice, and by several at once.
    Errors: StoreUnavailable (retryable).
    """

    def pending_boards(self) -> tuple[str, ...]:
        """The boards with open work, by id; what is some seconds old may be missing."""
        ...

    def sweep(self, board_id: str, *, wait_seconds: float) -> Swept:
        """Carries out what is decided, sends the events that are due in the order of their commits, removes what was never decided.

        Does nothing on a board that is being erased.
        """
        ...


class Turn(Protocol):
    """A caller's turn to change a board: while it is held nobody else commits there."""

    @property
    def board(self) -> Board:
        """The board as this turn sees it; `commit_seq` is the last commit."""
        ...

    def commit(self, plan: CommitPlan) -> None:
        """Decides and applies the plan: audit row, outbox record, session state, artifact hash, graph and vectors.

        Raises:
            SessionExpired, SessionAlreadyCommitted, SessionAborted: The session changed since it was loaded.
            StoreUnavailable: Before the decision, nothing happened; after it, ``details.decided`` is true and the same
                commit again resumes.
        """
        ...


class CommitLog(Protocol):
    """Serialises the commits of a board, and remembers them.

    Atomicity: a plan's commit is visible as a whole or not at all, through any port, from any process.
    Durability: when `commit` returns, the commit survives the end of the process and of the machine.
    Order: commit_seq is 1, 2, 3 … on each board, without gaps; boards don't wait for each other longer than a write lasts.
    Consistency: reads through the other ports inside `turn` see the state that the plan is applied to.
    Errors: StoreUnavailable (retryable); NotErasing is told as StoreUnavailable with ``details.erasing``.
    """

    def turn(self, board_id: str, *, wait_seconds: float) -> AbstractContextManager[Turn]:
        """Waits for the board and holds it; leaving without `commit` changes nothing.

        Raises:
            StoreUnavailable: Others held the board for `wait_seconds`.
        """
        ...

    def settle(self, board_id: str, seq: int, *, wait_seconds: float) -> None:
        """Returns when a decided commit is wholly carried out; carries it out itself where its caller died.

        Raises:
            StoreUnavailable: It could not be in that time; ``details.decided`` is true.
        """
        ...

    def last_hash(self, board_id: str, artifact: Artifact) -> str | None:
        """The content hash of the last commit of an artifact, whatever its version."""
        ...

    def ingested_hash(self, board_id: str, artifact: Artifact, version: int) -> str | None:
        """The canonical hash of that artifact version, if the deterministic worker ingested it."""
        ...

    def record_ingested(self, board_id: str, artifact: Artifact, version: int, content_hash: str, *, now: Instant) -> None:
        """Remembers the canonical hash of an artifact version."""
        ...

    def audit_rows(self, board_id: str, *, after: int = 0) -> Iterator[AuditRow]:
        """The rows with a number above `after`, in order."""
        ...

    def audit_row(self, board_id: str, seq: int) -> AuditRow | None:
        """One row."""
        ...

    def outbox(self, board_id: str, *, after: int = 0) -> Iterator[OutboxRecord]:
        """The records with a number above `after`, in order."""
        ...

    def unfinished(self, board_id: str, *, now: Instant) -> tuple[str, ...]:
        """What is left of commits and should not be, a clause each: decided and not carried out, staged or not sent for far too long.

        A store that decides and applies in one step leaves nothing.
        """
        ...
