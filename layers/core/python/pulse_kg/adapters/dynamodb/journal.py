"""The journal of commits: the lease of a board, what is staged, the one transaction that decides, and how far it was carried out."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pulse_kg.adapters.dynamodb import blobs, keys
from pulse_kg.adapters.dynamodb.client import STORE, Dynamo, Item, Refused, Value, Write, check, delete, put, update
from pulse_kg.adapters.dynamodb.tables import BOARDS, PENDING_AT, PENDING_SHARD, PK, SESSIONS, SK, TTL
from pulse_kg.adapters.jsontext import from_json
from pulse_kg.domain.audit import AuditRow
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Board, Session
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.refs import Artifact
from pulse_kg.errors import PermissionDenied, PulseError, StoreUnavailable
from pulse_kg.ports.commits import OutboxRecord
from pulse_kg.ports.sessions import GRACE_MS

SHARDS: Final = 8
"""Into how many keys the index of what is to be done is spread."""
STAGED_GRACE_MS: Final = 3_600_000
"""How long staged parts lie without a decision before they are swept: no call lives nearly as long."""

RecordState = Literal["decided", "applied", "published"]
SessionWrite = Callable[[Session, CommitPlan, "Staged"], Write]
SessionRefusal = Callable[[Item, Session, Instant], PulseError]
PlanWrites = Callable[[CommitPlan], Mapping[str, Any]]


@dataclass(frozen=True)
class Lease:
    """A board that is held.

    Attributes:
        board: The board as it was when it was taken.
        applied_seq: The last commit that graph and index have wholly.
        epoch: Raised each time that the board is taken: a decision of an older one is refused.
        until: When others may take it.
    """

    board: Board
    applied_seq: int
    epoch: int
    until: Instant


@dataclass(frozen=True)
class Staged:
    """A commit's large texts, packed, and where they are.

    Attributes:
        token: Names the parts; empty where everything goes into the decision itself.
        audit: The audit row.
        writes: What graph and index are to be given.
        answer: The caller's answer.
    """

    token: str
    audit: bytes
    writes: bytes
    answer: bytes

    @property
    def answer_token(self) -> str:
        """Names the answer's parts; empty where it goes into the session itself."""
        return self.token if len(self.answer) > blobs.INLINE_BYTES else ""


@dataclass(frozen=True)
class Progress:
    """How far a board is: its last decided, applied and published commit."""

    commit_seq: int
    applied_seq: int
    published_seq: int
    erasing: bool


def board_of(item: Item) -> Board:
    """The board of its item."""
    return Board(
        board_id=item["board_id"],
        name=item["name"],
        created_at=item["created_at"],
        commit_seq=item.get("commit_seq", 0),
        settings=from_json(item.get("settings", "{}")),
        added_attributes=from_json(item.get("added_attributes", "{}")),
        erasing=item.get("erasing", False),
        last_commit_at=item.get("last_commit_at"),
        ticked_at=item.get("ticked_at"),
    )


def seen_board_of(item: Item) -> Board:
    """The board as readers see it: its last commit is the last that is applied, while another is decided and not carried out yet."""
    board = board_of(item)
    return board if item.get("applied_seq", 0) >= board.commit_seq else replace(board, last_commit_at=item.get("commit_before_at"))


def shard_of(board_id: str) -> str:
    """The key of the index under which a board's open work is found."""
    return str(zlib.crc32(board_id.encode()) % SHARDS)


class DynamoJournal:
    """The journal.

    Tenancy: the board is the partition of everything.
    Errors: StoreUnavailable.

    Args:
        dynamo: The tables.
        writes_of: What is kept of a plan to finish it.
        close_session: The write that closes a plan's session.
        session_refusal: Why that write was refused.
    """

    def __init__(self, dynamo: Dynamo, *, writes_of: PlanWrites, close_session: SessionWrite, session_refusal: SessionRefusal) -> None:
        self._dynamo, self._writes_of = dynamo, writes_of
        self._close_session, self._session_refusal = close_session, session_refusal

    def acquire(self, board_id: str, holder: str, *, now: Instant, lease_ms: int) -> Lease | Instant:
        """Takes a board.

        Args:
            board_id: The board.
            holder: Names this try, and no other.
            now: The time.
            lease_ms: How long it is held at most.

        Returns:
            The lease, or when the present holder's ends.

        Raises:
            PermissionDenied: There is no such board.
            StoreUnavailable: It is being erased.
        """
        take = update(
            BOARDS,
            keys.board(board_id),
            keys.HEAD,
            "SET #lease_epoch = if_not_exists(#lease_epoch, :zero) + :one, #lease_until = :until, #lease_holder = :holder",
            condition="attribute_exists(pk) AND (attribute_not_exists(#lease_until) OR #lease_until <= :now) "
            "AND (attribute_not_exists(#erasing) OR #erasing = :no)",
            zero=0,
            one=1,
            until=now + lease_ms,
            holder=holder,
            now=now,
            no=False,
        )
        try:
            item = self._dynamo.update(take)
        except Refused as refused:
            item = refused.items[0] or {}
            if not item:
                raise PermissionDenied.for_board(board_id) from None
            if item.get("erasing"):
                raise being_erased(board_id) from None
            if item.get("lease_holder") != holder:  # else the first try got it, and only its answer was lost
                return int(item["lease_until"])
        return Lease(board_of(item), item.get("applied_seq", 0), item["lease_epoch"], item["lease_until"])

    def release(self, lease: Lease) -> None:
        """Lets others take the board at once; does nothing where another has it."""
        free = update(
            BOARDS,
            keys.board(lease.board.board_id),
            keys.HEAD,
            "SET #lease_until = :zero",
            condition="#lease_epoch = :epoch",
            zero=0,
            epoch=lease.epoch,
        )
        try:
            self._dynamo.update(free)
        except Refused:
            return

    def stage(self, plan: CommitPlan, lease: Lease, *, now: Instant) -> Staged:
        """Writes what does not fit into the decision; for most commits that is nothing, and nothing is sent."""
        audit, writes, answer = blobs.packed(plan.audit), blobs.packed(self._writes_of(plan)), blobs.packed(plan.answer)
        large = {n: c for n, c in (("audit", audit), ("writes", writes), ("answer", answer)) if len(c) > blobs.INLINE_BYTES}
        # By its content too: a turn may try again with another plan, and the parts of two never mix.
        token = f"{plan.seq}-{lease.epoch}-{blobs.digest(audit + writes + answer)[:16]}" if large else ""
        if large:
            session = plan.session
            manifest: dict[str, Value] = {
                "epoch": lease.epoch,
                "staged_at": now,
                "session_id": None if session is None else session.session_id,
                **_pending(plan.board_id, now),
            }
            # Before the parts: a part that no manifest names would never be found again.
            self._dynamo.update(put(BOARDS, keys.board(plan.board_id), keys.STAGE + token, manifest))
            kept = {n: c for n, c in large.items() if n != "answer"}
            self._dynamo.put_many(
                BOARDS,
                (
                    (keys.parts(plan.board_id, token), keys.part(name, number), {"part": part})
                    for name, content in kept.items()
                    for number, part in enumerate(blobs.parts_of(content))
                ),
            )
            if "answer" in large and session is not None:
                ttl = -(-(session.expires_at + GRACE_MS) // 1000)
                self._dynamo.put_many(
                    SESSIONS,
                    (
                        (keys.session(session.session_id), keys.part(f"answer#{token}", number), {"part": part, TTL: ttl})
                        for number, part in enumerate(blobs.parts_of(answer))
                    ),
                )
        return Staged(token, audit, writes, answer)

    def decide(self, plan: CommitPlan, staged: Staged, lease: Lease, *, now: Instant, lease_ms: int) -> None:
        """Makes the commit a fact, in one transaction; holds the board for another `lease_ms`.

        Raises:
            SessionExpired, SessionAlreadyCommitted, SessionAborted: The session changed; nothing was decided.
            StoreUnavailable: The lease was lost, or the store can't be reached: then it may have been decided, and the session tells.
        """
        board = keys.board(plan.board_id)
        before_at = lease.board.last_commit_at  # of a commit that is applied, for this turn finished it
        noted = {} if before_at is None else {"commit_before_at": before_at}
        writes = [
            update(
                BOARDS,
                board,
                keys.HEAD,
                "SET #commit_seq = :seq, #last_commit_at = :at, #lease_until = :until" + "".join(f", #{name} = :{name}" for name in noted),
                condition="#commit_seq = :before AND #lease_epoch = :epoch AND (attribute_not_exists(#erasing) OR #erasing = :no)",
                seq=plan.seq,
                at=plan.committed_at,
                before=plan.seq - 1,
                until=now + lease_ms,
                epoch=lease.epoch,
                no=False,
                **noted,
            ),
            put(BOARDS, board, keys.audit(plan.seq), self._record(plan, staged), condition="attribute_not_exists(pk)"),
        ]
        if plan.audit["kind"] == "consolidation":
            writes.append(_artifact_write(plan))
        if staged.token:
            writes.append(
                delete(BOARDS, board, keys.STAGE + staged.token, condition="attribute_exists(pk) AND attribute_not_exists(#swept)")
            )
        session = plan.session if not plan.restored else None
        if session is not None:
            writes.append(self._close_session(session, plan, staged))
        try:
            self._dynamo.transact(writes)
        except Refused as refused:
            head = refused.items[0]
            if head is not None and head.get("erasing"):
                raise being_erased(plan.board_id) from None
            if session is not None and refused.items[-1] is not None:
                raise self._session_refusal(refused.items[-1], session, plan.committed_at) from None
            raise StoreUnavailable(STORE, "The board was taken by another commit meanwhile. Nothing was written; commit again.") from None

    def _record(self, plan: CommitPlan, staged: Staged) -> dict[str, Value]:
        record: dict[str, Value] = {
            "seq": plan.seq,
            "state": "decided",
            "committed_at": plan.committed_at,
            "session_id": None if plan.session is None else plan.session.session_id,
            "event": blobs.packed(plan.event),
            "audit_digest": blobs.digest(staged.audit),
            "writes_digest": blobs.digest(staged.writes),
            "token": staged.token or None,
            **_pending(plan.board_id, plan.committed_at),
        }
        texts = (("audit", staged.audit), ("writes", staged.writes))
        return record | {name: content for name, content in texts if len(content) <= blobs.INLINE_BYTES}

    def decided(self, board_id: str, seq: int) -> tuple[Mapping[str, Any], Instant, AuditRow] | None:
        """What a decided commit writes, when it was, and its audit row; None where it was carried out already."""
        item = self._dynamo.get(BOARDS, keys.board(board_id), keys.audit(seq))
        if item is None:
            raise StoreUnavailable(STORE, f"The board counts a commit {seq} that has no record. Run 'pulse-kg verify'.")
        if item["state"] != "decided":
            return None
        try:
            writes = self._content(board_id, item, "writes")
        except StoreUnavailable:
            # Its parts go once it was carried out: another may have done that between the two reads.
            now = self._dynamo.get(BOARDS, keys.board(board_id), keys.audit(seq))
            if now is not None and now["state"] != "decided":
                return None
            raise
        return writes, item["committed_at"], self._content(board_id, item, "audit")

    def _content(self, board_id: str, item: Item, name: str) -> Any:
        content = item.get(name)
        if content is None:
            found = self._dynamo.query(BOARDS, keys.parts(board_id, item["token"]), begins=f"{name}#")
            content = b"".join(part["part"] for part in found)
        if blobs.digest(content) != item[f"{name}_digest"]:
            raise StoreUnavailable(STORE, f"The record of commit {item['seq']} is damaged. Run 'pulse-kg verify'.", {"damaged": True})
        return blobs.unpacked(content)

    def mark_applied(self, board_id: str, seq: int, lease: Lease, *, release: bool) -> None:
        """Notes that graph and index have a commit wholly, and gives the board back if wanted; another may have noted it before."""
        record = update(
            BOARDS,
            keys.board(board_id),
            keys.audit(seq),
            "SET #state = :applied REMOVE #writes",
            condition="#state = :decided",
            applied="applied",
            decided="decided",
        )
        board = update(
            BOARDS,
            keys.board(board_id),
            keys.HEAD,
            "SET #applied_seq = :seq, #lease_until = :until" if release else "SET #applied_seq = :seq",
            condition="#lease_epoch = :epoch" if release else "attribute_exists(pk)",
            seq=seq,
            **({"until": 0, "epoch": lease.epoch} if release else {}),
        )
        try:
            self._dynamo.transact([record, board])
        except Refused as refused:
            there = refused.items[0]
            if there is not None:
                if there.get("state") in ("applied", "published"):
                    return
                raise StoreUnavailable(STORE, f"The record of commit {seq} is missing. Run 'pulse-kg verify'.") from None
            if not release:
                raise PermissionDenied.for_board(board_id) from None
            # Only the lease was lost: whoever has it now leaves this commit to us, or notes it first; both are well.
            self.mark_applied(board_id, seq, lease, release=False)

    def mark_published(self, board_id: str, seq: int) -> None:
        """Notes that a commit's event went out; another may have noted it before."""
        record = update(
            BOARDS,
            keys.board(board_id),
            keys.audit(seq),
            f"SET #state = :published REMOVE #{PENDING_SHARD}, #{PENDING_AT}",
            condition="#state = :applied",
            published="published",
            applied="applied",
        )
        board = update(BOARDS, keys.board(board_id), keys.HEAD, "SET #published_seq = :seq", condition="attribute_exists(pk)", seq=seq)
        with suppress(Refused):
            self._dynamo.transact([record, board])

    def progress(self, board_id: str) -> Progress:
        """How far a board is.

        Raises:
            PermissionDenied: There is no such board.
        """
        item = self._dynamo.get(BOARDS, keys.board(board_id), keys.HEAD)
        if item is None:
            raise PermissionDenied.for_board(board_id)
        return Progress(
            item.get("commit_seq", 0), item.get("applied_seq", 0), item.get("published_seq", 0), bool(item.get("erasing", False))
        )

    def applied(self, board_id: str) -> int:
        """The last commit that graph and index have wholly; 0 for a board that is not there."""
        item = self._dynamo.get(BOARDS, keys.board(board_id), keys.HEAD)
        return 0 if item is None else int(item.get("applied_seq", 0))

    def applied_many(self, board_ids: Collection[str]) -> dict[str, int]:
        """The same for many boards, 100 to a request."""
        found = self._dynamo.get_many(BOARDS, [(keys.board(board), keys.HEAD) for board in board_ids], only=("board_id", "applied_seq"))
        return dict.fromkeys(board_ids, 0) | {item["board_id"]: int(item.get("applied_seq", 0)) for item in found}

    def pending_boards(self) -> tuple[str, ...]:
        """The boards with a commit that is not published or parts that are staged, by id; what is seconds old may be missing."""
        found = {item[PK] for shard in range(SHARDS) for item in self._dynamo.pending(BOARDS, str(shard))}
        return tuple(sorted(pk.removeprefix(keys.board("")) for pk in found))

    def staged(self, board_id: str, *, until: Instant) -> dict[str, Item]:
        """The commits that were staged and not decided, and whose grace was over at `until`: token → what is noted of them."""
        found = self._dynamo.query(BOARDS, keys.board(board_id), begins=keys.STAGE)
        return {item[SK].removeprefix(keys.STAGE): item for item in found if item["staged_at"] + STAGED_GRACE_MS <= until}

    def sweep_staged(self, board_id: str, *, now: Instant) -> int:
        """Removes the parts of commits that were never decided, once their grace is over; returns of how many."""
        swept = 0
        for token, item in self.staged(board_id, until=now).items():
            # From here on the decision is refused; the manifest goes last, so that a crash in between leaves nothing unfound.
            bar = update(BOARDS, item[PK], item[SK], "SET #swept = :yes", condition="attribute_exists(pk)", yes=True)
            try:
                self._dynamo.update(bar)
            except Refused:  # decided just now, or swept by another
                continue
            self._drop_parts(board_id, token)
            if item.get("session_id"):
                pk = keys.session(item["session_id"])
                answers = self._dynamo.query(SESSIONS, pk, begins=f"answer#{token}#", only=(PK, SK))
                self._dynamo.delete_many(SESSIONS, [(a[PK], a[SK]) for a in answers])
            self._dynamo.delete_many(BOARDS, [(item[PK], item[SK])])
            swept += 1
        return swept

    def drop_writes(self, board_id: str, seq: int) -> None:
        """Forgets the parts that only served to finish a commit."""
        item = self._dynamo.get(BOARDS, keys.board(board_id), keys.audit(seq))
        if item is not None and item.get("token"):
            self._drop_parts(board_id, item["token"], "writes#")

    def _drop_parts(self, board_id: str, token: str, begins: str = "") -> None:
        found = self._dynamo.query(BOARDS, keys.parts(board_id, token), begins=begins, only=(PK, SK))
        self._dynamo.delete_many(BOARDS, [(item[PK], item[SK]) for item in found])

    def audit_rows(self, board_id: str, *, after: int, until: int) -> Iterator[AuditRow]:
        """The rows above `after` and up to `until`, in order."""
        for item in self._records(board_id, after, until):
            yield self._content(board_id, item, "audit")

    def audit_row(self, board_id: str, seq: int) -> AuditRow | None:
        """One row."""
        item = self._dynamo.get(BOARDS, keys.board(board_id), keys.audit(seq)) if seq > 0 else None
        return None if item is None else self._content(board_id, item, "audit")

    def outbox(self, board_id: str, *, after: int, until: int) -> Iterator[OutboxRecord]:
        """The events above `after` and up to `until`, in order."""
        for item in self._records(board_id, after, until, only=("seq", "event", "state")):
            yield OutboxRecord(board_id, item["seq"], blobs.unpacked(item["event"]), item["state"])

    def _records(self, board_id: str, after: int, until: int, only: tuple[str, ...] = ()) -> Iterator[Item]:
        if until <= after:
            return iter(())
        # One above the last would be a key's own end: sort keys are compared as text, and BETWEEN has its ends in it.
        return self._dynamo.query(
            BOARDS, keys.board(board_id), after=keys.audit(max(after, 0)), before=keys.audit(min(until, 10**12 - 1)), only=only
        )

    def last_hash(self, board_id: str, artifact: Artifact) -> str | None:
        """The content hash of the last commit of an artifact."""
        item = self._dynamo.get(BOARDS, keys.board(board_id), keys.ARTIFACT + _named(artifact))
        return None if item is None else str(item["content_hash"])

    def ingested_hash(self, board_id: str, artifact: Artifact, version: int) -> str | None:
        """The canonical hash of an artifact's version."""
        item = self._dynamo.get(BOARDS, keys.board(board_id), _ingested(artifact, version))
        return None if item is None else str(item["content_hash"])

    def record_ingested(self, board_id: str, artifact: Artifact, version: int, content_hash: str, *, now: Instant) -> None:
        """Remembers it.

        Raises:
            PermissionDenied: There is no such board.
            StoreUnavailable: It is being erased.
        """
        board = keys.board(board_id)
        item: dict[str, Value] = {
            "artifact": artifact.canonical,
            "version": version,
            "content_hash": content_hash,
            "ingested_at": now,
        }
        alive = "attribute_exists(pk) AND (attribute_not_exists(#erasing) OR #erasing = :no)"
        try:
            self._dynamo.transact(
                [check(BOARDS, board, keys.HEAD, alive, no=False), put(BOARDS, board, _ingested(artifact, version), item)]
            )
        except Refused as refused:
            if refused.items[0]:
                raise being_erased(board_id) from None
            raise PermissionDenied.for_board(board_id) from None

    def erase(self, board_id: str) -> dict[str, int]:
        """Removes audit rows, parts, outbox, artifacts; returns what is left. The board's own item stays."""
        board = keys.board(board_id)
        for item in self._dynamo.query(BOARDS, board):
            token = item[SK].removeprefix(keys.STAGE) if item[SK].startswith(keys.STAGE) else item.get("token")
            if token:
                self._drop_parts(board_id, token)
        doomed = [(i[PK], i[SK]) for i in self._dynamo.query(BOARDS, board, only=(PK, SK)) if i[SK] != keys.HEAD]
        self._dynamo.delete_many(BOARDS, doomed)
        left = [i[SK] for i in self._dynamo.query(BOARDS, board, only=(SK,)) if i[SK] != keys.HEAD]
        kinds = {
            "audit_rows": keys.AUDIT,
            "artifacts": keys.ARTIFACT,
            "ingested_versions": keys.INGESTED,
            "staged_commits": keys.STAGE,
            "hits": keys.HIT,
        }
        return {kind: sum(sk.startswith(begins) for sk in left) for kind, begins in kinds.items()}


def being_erased(board_id: str) -> StoreUnavailable:
    """What is said of a board that takes nothing new."""
    return StoreUnavailable("board", f"The board '{board_id}' is being erased and takes nothing new.", {"erasing": True})


def _pending(board_id: str, now: Instant) -> dict[str, Value]:
    return {PENDING_SHARD: shard_of(board_id), PENDING_AT: now}


def _named(artifact: Artifact) -> str:
    # A sort key has at most 1,024 bytes, and an artifact's name may have more.
    return hashlib.sha256(artifact.canonical.encode()).hexdigest()


def _ingested(artifact: Artifact, version: int) -> str:
    return f"{keys.INGESTED}{_named(artifact)}@{version}"


def _artifact_write(plan: CommitPlan) -> Write:
    # From the audit row and not from the session, so that a rebuild, which has rows and no sessions, remembers it too.
    source = plan.audit["source"]
    artifact = Artifact(source["source_type"], source["source_id"])
    item: dict[str, Value] = {
        "artifact": artifact.canonical,
        "version": source["source_version"],
        "content_hash": plan.audit["content_hash"],
        "commit_seq": plan.seq,
    }
    return put(BOARDS, keys.board(plan.board_id), keys.ARTIFACT + _named(artifact), item)
