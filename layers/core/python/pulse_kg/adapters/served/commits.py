"""The commit protocol over a journal, a graph and a vector index: one decision, and a rest that anybody can finish.

    1  the board is taken by a lease, and what was decided before is finished
    2  what does not fit into the decision is staged
    3  one transaction decides: from here on the commit is a fact
    4  the graph, then the index get what is new; each again without harm
    5  the record is marked as applied, the board's applied mark raised, the lease given back
    6  the event goes out (by the relay)

A crash before 3 leaves nothing that counts; after it the next lease holder or the relay goes on from the record.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, Protocol

from pulse_kg.adapters.dynamodb.journal import DynamoJournal, Lease, being_erased
from pulse_kg.adapters.served.marks import Marks
from pulse_kg.adapters.served.writes import plan_of
from pulse_kg.domain.audit import AuditRow
from pulse_kg.domain.instants import Instant, parse_instant
from pulse_kg.domain.model import Board
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.refs import Artifact
from pulse_kg.errors import PermissionDenied, PulseError, StoreUnavailable
from pulse_kg.ports.commits import OutboxRecord, Swept
from pulse_kg.ports.events import EventPublisher

LEASE_MS: Final = 15_000
LATE_MS: Final = 600_000
"""After how long what the relay does each minute was plainly not done."""
_SHORTEST_WAIT: Final = 0.02
_LONGEST_WAIT: Final = 0.25

_log = logging.getLogger(__name__)


class Applies(Protocol):
    """A store that takes the writes of a decided commit, again without harm."""

    def apply(self, plan: CommitPlan) -> None:
        """Writes them."""
        ...


class ServedCommitLog:
    """The commit log of the served form.

    Args:
        journal: Decides.
        graph: Gets nodes, edges and scores.
        vectors: Gets vectors.
        marks: What readers of this process see.
        publisher: Where events go; None where there is no queue: then records stay `applied`.
        now: The time, in epoch milliseconds; leases are compared by it, so that the clocks of all callers should agree to a second.
        holder: Makes names of tries that nobody else has.
        lease_ms: How long a board is held at most by one who does not answer any more.
        on_applied: Told the board of each commit, to have its event sent soon. Its failure changes nothing.
        sleep: Waits.
        randomness: Numbers from 0 to 1 that spread the tries of those who wait.
        monotonic: Seconds that only go forward.
    """

    def __init__(
        self,
        journal: DynamoJournal,
        graph: Applies,
        vectors: Applies,
        *,
        marks: Marks,
        publisher: EventPublisher | None,
        now: Callable[[], Instant],
        holder: Callable[[], str],
        randomness: Callable[[], float],
        lease_ms: int = LEASE_MS,
        on_applied: Callable[[str], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal, self._graph, self._vectors, self._marks, self._publisher = journal, graph, vectors, marks, publisher
        self._now, self._holder, self._randomness, self._lease_ms = now, holder, randomness, lease_ms
        self._on_applied, self._sleep, self._monotonic = on_applied, sleep, monotonic
        self._here: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    @contextmanager
    def turn(self, board_id: str, *, wait_seconds: float) -> Iterator[ServedTurn]:
        """See `CommitLog.turn`. Finishes first what was decided before and not carried out.

        Raises:
            PermissionDenied: There is no such board.
        """
        end = self._monotonic() + wait_seconds
        here = self._here[board_id]  # those of one process wait for each other without asking the store
        if not here.acquire(timeout=max(0.0, wait_seconds)):
            raise _held()
        try:
            lease = self._lease(board_id, end)
            turn = ServedTurn(self, lease)
            try:
                self.finish(lease)
                with self._marks.holding(board_id, lease.board.commit_seq):
                    yield turn
            finally:
                if not turn.released:
                    with suppress(StoreUnavailable):  # it runs out by itself
                        self._journal.release(lease)
        finally:
            here.release()
        if turn.committed and self._on_applied is not None:
            try:
                self._on_applied(board_id)
            except PulseError as error:  # whatever it is: the commit is a fact, and its caller is told so
                _log.warning("the event of a commit of %s goes out with the next run of the relay: %s", board_id, error.code)

    def _lease(self, board_id: str, end: float) -> Lease:
        longest = _SHORTEST_WAIT
        holder = self._holder()
        while True:
            taken = self._journal.acquire(board_id, holder, now=self._now(), lease_ms=self._lease_ms)
            if isinstance(taken, Lease):
                return taken
            pause = longest * (0.5 + self._randomness() / 2)
            if self._monotonic() + pause > end:
                raise _held()
            self._sleep(pause)
            longest = min(longest * 2, _LONGEST_WAIT)

    def finish(self, lease: Lease) -> int:
        """Carries out what was decided on a board and not carried out; returns how many commits it were."""
        finished = 0
        for seq in range(lease.applied_seq + 1, lease.board.commit_seq + 1):
            found = self._journal.decided(lease.board.board_id, seq)
            if found is not None:
                writes, committed_at, row = found
                self.carry_out(plan_of(lease.board.board_id, seq, committed_at, writes, audit=row), lease, release=False)
                finished += 1
        return finished

    def decide(self, plan: CommitPlan, lease: Lease) -> Lease:
        """Stages what is large, and decides; gives the lease as it was prolonged."""
        staged = self._journal.stage(plan, lease, now=self._now())
        now = self._now()
        self._journal.decide(plan, staged, lease, now=now, lease_ms=self._lease_ms)
        return replace(lease, until=now + self._lease_ms)

    def carry_out(self, plan: CommitPlan, lease: Lease, *, release: bool) -> None:
        """Gives a decided commit to graph and index, and notes it.

        Raises:
            StoreUnavailable: A store did not take all of it; the commit stays decided, and anybody can go on.
        """
        for store in (self._graph, self._vectors):
            # An erasure waits for leases and for nothing else: who comes late must not write to what it has emptied.
            if self._now() >= lease.until and self._journal.progress(plan.board_id).erasing:
                raise being_erased(plan.board_id)
            store.apply(plan)
        self._journal.mark_applied(plan.board_id, plan.seq, lease, release=release)
        self._marks.raise_to(plan.board_id, plan.seq)

    def settle(self, board_id: str, seq: int, *, wait_seconds: float) -> None:
        """See `CommitLog.settle`."""
        if self._journal.applied(board_id) >= seq:
            return
        try:
            with self.turn(board_id, wait_seconds=wait_seconds):
                pass
        except StoreUnavailable as error:
            raise StoreUnavailable(str(error.details.get("store")), error.message, {**error.details, "decided": True}) from error

    def last_hash(self, board_id: str, artifact: Artifact) -> str | None:
        """See `CommitLog.last_hash`."""
        return self._journal.last_hash(board_id, artifact)

    def ingested_hash(self, board_id: str, artifact: Artifact, version: int) -> str | None:
        """See `CommitLog.ingested_hash`."""
        return self._journal.ingested_hash(board_id, artifact, version)

    def record_ingested(self, board_id: str, artifact: Artifact, version: int, content_hash: str, *, now: Instant) -> None:
        """See `CommitLog.record_ingested`."""
        self._journal.record_ingested(board_id, artifact, version, content_hash, now=now)

    def audit_rows(self, board_id: str, *, after: int = 0) -> Iterator[AuditRow]:
        """See `CommitLog.audit_rows`."""
        return self._journal.audit_rows(board_id, after=after, until=self._marks.applied(board_id))

    def audit_row(self, board_id: str, seq: int) -> AuditRow | None:
        """See `CommitLog.audit_row`."""
        return self._journal.audit_row(board_id, seq) if seq <= self._marks.applied(board_id) else None

    def outbox(self, board_id: str, *, after: int = 0) -> Iterator[OutboxRecord]:
        """See `CommitLog.outbox`."""
        return self._journal.outbox(board_id, after=after, until=self._marks.applied(board_id))

    def unfinished(self, board_id: str, *, now: Instant) -> tuple[str, ...]:
        """See `CommitLog.unfinished`. Events are late after ten minutes; where there is no queue, none is."""
        progress = self._journal.progress(board_id)
        found = [f"commit {seq} is decided and not carried out" for seq in range(progress.applied_seq + 1, progress.commit_seq + 1)]
        if self._publisher is not None:
            records = self._journal.outbox(board_id, after=progress.published_seq, until=progress.applied_seq)
            late = [r for r in records if r.state != "published" and parse_instant(r.event["time"]) + LATE_MS <= now]
            found += [f"the event of commit {record.seq} was not sent" for record in late]
        overdue = self._journal.staged(board_id, until=now - LATE_MS)
        return (*found, *(f"the texts of a commit that was never decided, {token}, are still there" for token in overdue))

    def pending_boards(self) -> tuple[str, ...]:
        """See `Outbox.pending_boards`."""
        return self._journal.pending_boards()

    def sweep(self, board_id: str, *, wait_seconds: float) -> Swept:
        """See `Outbox.sweep`."""
        try:
            progress = self._journal.progress(board_id)
        except PermissionDenied:  # it is gone, and the list of open work lags behind
            return Swept()
        if progress.erasing:
            return Swept()
        unstaged = self._journal.sweep_staged(board_id, now=self._now())
        applied = 0
        try:
            if progress.applied_seq < progress.commit_seq:
                with self.turn(board_id, wait_seconds=wait_seconds) as turn:
                    applied = turn.finished
        finally:  # a commit that can't be carried out now does not keep back the events of those before it
            published = self.publish(board_id)
        return Swept(applied, published, unstaged)

    def publish(self, board_id: str) -> int:
        """Sends the events of a board that are due, in order; returns how many. Stops at the first that can't be sent."""
        if self._publisher is None:
            return 0
        progress = self._journal.progress(board_id)
        published = 0
        for record in self._journal.outbox(board_id, after=progress.published_seq, until=progress.applied_seq):
            if record.state == "decided":  # read in the middle of another's note; what follows has to wait for it
                break
            if record.state == "applied":
                self._publisher.publish(board_id, record.seq, record.event)
                # The mark last: nobody looks again at a commit that has it.
                self._journal.drop_writes(board_id, record.seq)
                self._journal.mark_published(board_id, record.seq)
                published += 1
        return published


class ServedTurn:
    """A board that is held by its lease."""

    def __init__(self, log: ServedCommitLog, lease: Lease) -> None:
        self._log, self._lease = log, lease
        self.released = False
        self.committed = False

    @property
    def board(self) -> Board:
        """See `Turn.board`."""
        return self._lease.board

    @property
    def finished(self) -> int:
        """How many commits of others were carried out when the turn began."""
        return self._lease.board.commit_seq - self._lease.applied_seq

    def commit(self, plan: CommitPlan) -> None:
        """See `Turn.commit`."""
        if self.committed:
            raise RuntimeError("a turn commits once")
        if plan.board_id != self.board.board_id or plan.seq != self.board.commit_seq + 1:
            message = f"commit {plan.seq} of the plan does not follow commit {self.board.commit_seq} of the board"
            raise ValueError(message)
        lease = self._log.decide(plan, self._lease)
        self.committed = True
        try:
            self._log.carry_out(plan, lease, release=True)
        except StoreUnavailable as error:
            raise StoreUnavailable(
                str(error.details.get("store", "graph")),
                "The commit is decided and stays, but a store could not take all of it yet. Commit the same session again to go on.",
                {**error.details, "decided": True},
            ) from error
        self.released = True


def _held() -> StoreUnavailable:
    return StoreUnavailable("board", "Other commits held the board for all of the time. Try the same call again in a moment.")
