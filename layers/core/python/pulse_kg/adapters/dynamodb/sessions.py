"""Consolidation sessions and their candidates.

A session is one item; what belongs to it lies in the same partition, and is written in one transaction with a condition on that item.
"""

from __future__ import annotations

import hashlib
import threading
import uuid
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from pulse_kg.adapters.dynamodb import blobs, keys
from pulse_kg.adapters.dynamodb.client import STORE, Dynamo, Item, Refused, Value, Write, check, put, update
from pulse_kg.adapters.dynamodb.gate import board_refusal, board_takes_changes
from pulse_kg.adapters.dynamodb.session_items import (
    CONTENT_DAYS,
    OPEN,
    SESSION,
    Draft,
    candidate_key,
    candidates_of,
    check_open,
    edge_draft,
    edge_of,
    item_of,
    named,
    node_draft,
    node_of,
    number_of,
    open_at,
    packed_live,
    packed_overrides,
    session_of,
    ttl,
    vector_items,
    why_closed,
)
from pulse_kg.adapters.dynamodb.session_lists import Opened, opened_of, remove_sessions
from pulse_kg.adapters.dynamodb.tables import PK, SESSIONS, SK, TTL
from pulse_kg.domain.audit import proposal_dict
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Candidates, EdgeCandidate, EdgeDraft, NodeCandidate, NodeDraft, Proposal, Session, TextVector
from pulse_kg.errors import (
    CandidateNotFound,
    IdempotencyConflict,
    PayloadTooLarge,
    PulseError,
    SessionAlreadyCommitted,
    SessionNotFound,
    StoreUnavailable,
)
from pulse_kg.ports.sessions import GRACE_MS, Appended

_MAX_PARTS: Final = 10  # of `blobs.PART_BYTES`: a transaction takes 4 MB
_READS: Final = 8
_REMEMBERED: Final = 512


class _Heads:
    """What sessions were like when they were last seen: guesses that spare a read, and that a condition checks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: dict[str, Item] = {}

    def get(self, session_id: str) -> Item | None:
        with self._lock:
            return self._items.get(session_id)

    def note(self, session_id: str, item: Item | None) -> None:
        with self._lock:
            self._items.pop(session_id, None)
            if item and item["state"] == "open":
                if len(self._items) >= _REMEMBERED:
                    del self._items[next(iter(self._items))]
                self._items[session_id] = {name: item[name] for name in ("nodes", "edges", "expires_at", "state")}


class DynamoSessionStore:
    """The session store. Without a clock, `load` finds a session until `purge` or DynamoDB has removed it."""

    def __init__(self, dynamo: Dynamo) -> None:
        self._dynamo = dynamo
        self._heads = _Heads()
        self._nothing_due_before: Instant = 0

    def create(self, session: Session, *, limit: int | None = None, counted_boards: Collection[str] = ()) -> bool:
        """See `SessionStore.create`.

        Raises:
            PermissionDenied: There is no such board; a session of it would be a trace that no erasure finds.
            StoreUnavailable: The board is being erased.
        """
        opened = Opened(session.session_id, session.board_id, session.agent_id, session.expires_at)
        for _ in self._dynamo.tries():
            last: Item | None = None
            if limit is not None:
                last, mine = self._opened_by(session.agent_id, session.started_at)
                counted = [o for o in mine if o.board_id in counted_boards]
                if len(counted) >= limit and len(counted) - self._drop_closed(counted) >= limit:
                    return False
            try:
                self._dynamo.transact(_creation(session, opened, last, limited=limit is not None))
            except Refused as refused:
                board, head, *_ = refused.items
                if board is not None:
                    raise board_refusal(session.board_id, board) from None
                if head is not None:
                    raise RuntimeError("a session id was used twice") from None
                continue  # the agent opened another one since they were counted
            return True
        raise AssertionError("unreachable: tries end by an error")

    def _opened_by(self, agent_id: str, now: Instant) -> tuple[Item | None, list[Opened]]:
        """What an agent opened last, and all that may still be open.

        A read beside a transaction may see one of its items and not the other. So the one that was opened last is counted by either.
        """
        found: dict[str, Opened] = {}
        last: Item | None = None
        for item in self._dynamo.query(SESSIONS, keys.agent(agent_id)):
            if item[SK] == keys.HEAD:
                last = item
            if item["expires_at"] > now:
                found[item["session_id"]] = opened_of(item)
        return last, list(found.values())

    def _drop_closed(self, opened: Sequence[Opened]) -> int:
        """Takes those out of their agent's list that are closed; returns how many. One that is not there is new, and not closed."""
        wanted = [(keys.session(o.session_id), keys.HEAD) for o in opened]
        found = self._dynamo.get_many(SESSIONS, wanted, only=(PK, "state"))
        closed = {item[PK] for item in found if item["state"] != "open"}
        gone = [o for o in opened if keys.session(o.session_id) in closed]
        self._dynamo.delete_many(SESSIONS, [o.places()[0] for o in gone])
        return len(gone)

    def load(self, session_id: str) -> Session:
        """See `SessionStore.load`."""
        item = self._dynamo.get(SESSIONS, keys.session(session_id), keys.HEAD)
        if item is None:
            raise SessionNotFound
        self._heads.note(session_id, item)
        return self._session(item, None)

    def _session(self, item: Item, others: Sequence[Item] | None) -> Session:
        answer = item.get("answer")
        if answer is None and item.get("answer_token"):
            begins = f"{keys.ANSWER}{item['answer_token']}#"
            parts = self._dynamo.query(SESSIONS, item[PK], begins=begins) if others is None else others
            answer = b"".join(part["part"] for part in parts if part[SK].startswith(begins))
        try:
            return session_of(item, answer)
        except zlib.error:  # a part of it is gone, or not there yet
            raise StoreUnavailable(STORE) from None

    def load_all(self, session_id: str) -> tuple[Session, Candidates]:
        """See `SessionStore.load_all`; one query of the session's partition."""
        found = self._all_of(session_id)
        if found is None:
            raise SessionNotFound
        head, others, candidates = found
        self._heads.note(session_id, head)
        return self._session(head, others), candidates

    def _all_of(self, session_id: str) -> tuple[Item, list[Item], Candidates] | None:
        # The session's own item sorts first, so that what it counts was there before the rest is read. A query beside a transaction may
        # still see only a part of what that wrote: then it is asked again.
        for _ in islice(self._dynamo.tries(), _READS):
            items = self._dynamo.query(SESSIONS, keys.session(session_id))
            head = next(items, None)
            if head is None or head[SK] != keys.HEAD:
                return None
            if head["state"] != "open" and not head.get("answer_token"):
                return head, [], Candidates()
            others = list(items)
            candidates = candidates_of(head, others)
            if candidates is not None:
                return head, others, candidates
        raise StoreUnavailable(STORE)

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
        """See `SessionStore.append_node`."""
        return self._append(session_id, node_draft(draft, unknown_keys), idempotency_key, limit, now)

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
        """See `SessionStore.append_edge`."""
        return self._append(session_id, edge_draft(draft, unknown_keys, target_was_live), idempotency_key, limit, now)

    def _append(self, session_id: str, draft: Draft, idempotency_key: str | None, limit: int, now: Instant) -> Appended:
        key = None if idempotency_key is None else keys.idempotency(hashlib.sha256(idempotency_key.encode()).hexdigest())
        head = self._heads.get(session_id)
        for _ in self._dynamo.tries():
            if head is None or head["expires_at"] <= now or head[draft.counter] >= limit:
                head, made = self._read(session_id, key)
                check_open(head, now)
                if made is not None:
                    return _replayed(made, draft)
                if head is not None and head[draft.counter] >= limit:
                    raise _full(draft, limit)
            head = head or {}
            number = head[draft.counter] + 1
            try:
                self._dynamo.transact(_appending(session_id, draft, number, key, head["expires_at"], now))
            except Refused as refused:
                seen, made = refused.items[0], refused.items[2] if key is not None else None
                self._heads.note(session_id, seen)
                if seen is not None:
                    check_open(seen, now)
                if made is not None:
                    return _replayed(made, draft)
                head = seen
                continue
            self._heads.note(session_id, {**head, draft.counter: number})
            return Appended(named(draft.kind, number))
        raise AssertionError("unreachable: tries end by an error")

    def _read(self, session_id: str, key: str | None) -> tuple[Item | None, Item | None]:
        """A session's own item, and what an idempotency key made in it."""
        pk = keys.session(session_id)
        found = self._dynamo.get_many(SESSIONS, [(pk, sk) for sk in (keys.HEAD, key) if sk is not None])
        by_key = {item[SK]: item for item in found}
        return by_key.get(keys.HEAD), by_key.get(key) if key is not None else None

    def candidates(self, session_id: str) -> Candidates:
        """See `SessionStore.candidates`."""
        found = self._all_of(session_id)
        return Candidates() if found is None else found[2]

    def node_candidate(self, session_id: str, candidate_id: str) -> NodeCandidate:
        """See `SessionStore.node_candidate`."""
        number = number_of(candidate_id, "node")
        head, item = self._read(session_id, candidate_key("node", number))
        if head is None or head["state"] != "open" or item is None:
            raise CandidateNotFound(
                f"The session has no node candidate '{candidate_id}'. Use an id that add_node_candidate answered.",
                {"candidate_id": candidate_id},
            )
        return node_of(item)

    def edge_candidates(self, session_id: str) -> tuple[EdgeCandidate, ...]:
        """See `SessionStore.edge_candidates`."""
        # Everything from the session's own item up to its edges is in one range.
        items = self._dynamo.query(SESSIONS, keys.session(session_id), after="", before=keys.EDGES + "~")
        head = next(items, None)
        if head is None or head[SK] != keys.HEAD or head["state"] != "open":
            return ()
        live = head.get("live", "")
        return tuple(edge_of(item, live) for item in items if item[SK].startswith(keys.EDGES))

    def save_vectors(self, session_id: str, vectors: Mapping[str, TextVector], *, now: Instant) -> None:
        """See `SessionStore.save_vectors`; ids that the session has not are passed over.

        Some thousand vectors are one change; more are several, which harms nobody: a vector that is there is right.
        """
        items = vector_items(vectors, now=now, expires_at=self._expires_at(session_id, now))
        pk = keys.session(session_id)
        for start in range(0, max(1, len(items)), _MAX_PARTS):
            self._change(check(SESSIONS, pk, keys.HEAD, OPEN, **open_at(now)), items[start : start + _MAX_PARTS], now)

    def save_proposals(
        self, session_id: str, proposals: Sequence[Proposal], *, edges_seen: int, targets_live: Mapping[str, bool], now: Instant
    ) -> None:
        """See `SessionStore.save_proposals`; of an edge that is not in `targets_live` counts what was seen when it was added.

        Raises:
            PayloadTooLarge: There is too much of them for one transaction, packed.
        """
        parts = blobs.parts_of(blobs.packed([proposal_dict(p) for p in proposals])) if proposals else []
        if len(parts) > _MAX_PARTS:
            raise PayloadTooLarge(
                "The session has too many candidates to be proposed at once. Abort it, and consolidate in several sessions.",
                {"limit": _MAX_PARTS * blobs.PART_BYTES, "kind": "proposals"},
            )
        generation = uuid.uuid4().hex
        more: dict[str, Value] = {"generation": generation, TTL: ttl(self._expires_at(session_id, now), days_more=CONTENT_DAYS)}
        write = update(
            SESSIONS,
            keys.session(session_id),
            keys.HEAD,
            "SET #proposed_nodes = :nodes, #proposed_edges = :edges, #committable = :yes, #proposals = :generation, "
            "#proposal_parts = :parts, #live = :live REMOVE #reason",
            condition=OPEN,
            nodes=len(proposals),
            edges=edges_seen,
            yes=True,
            generation=generation,
            parts=len(parts),
            live=packed_live(targets_live),
            **open_at(now),
        )
        self._change(write, [(keys.part(keys.PROPOSALS, n), {**more, "part": part}) for n, part in enumerate(parts)], now)

    def _expires_at(self, session_id: str, now: Instant) -> Instant:
        head = self._heads.get(session_id)
        if head is None:
            head = check_open(self._dynamo.get(SESSIONS, keys.session(session_id), keys.HEAD), now)
            self._heads.note(session_id, head)
        return int(head["expires_at"])

    def _change(self, head: Write, items: Iterable[tuple[str, Mapping[str, Value]]], now: Instant) -> None:
        """Writes to an open session and puts items beside it, all or nothing."""
        try:
            self._dynamo.transact([head, *(put(SESSIONS, head.pk, sk, item) for sk, item in items)])
        except Refused as refused:
            check_open(refused.items[0], now)
            raise StoreUnavailable(STORE) from None

    def mark_uncommittable(self, session_id: str, reason: str, *, now: Instant) -> None:
        """See `SessionStore.mark_uncommittable`."""
        change = "SET #committable = :no, #reason = :reason"
        with suppress(Refused):
            self._dynamo.update(
                update(SESSIONS, keys.session(session_id), keys.HEAD, change, condition=OPEN, no=False, reason=reason, **open_at(now))
            )

    def abort(self, session_id: str, *, now: Instant) -> None:
        """See `SessionStore.abort`. A crash in the middle leaves candidates that nobody sees, until DynamoDB removes them."""
        close = update(
            SESSIONS, keys.session(session_id), keys.HEAD, "SET #state = :aborted", condition=OPEN, aborted="aborted", **open_at(now)
        )
        try:
            item = self._dynamo.update(close)
        except Refused as refused:
            error = why_closed(refused.items[0], now)
            if isinstance(error, SessionNotFound | SessionAlreadyCommitted):
                raise error from None
            return
        self._heads.note(session_id, item)
        self.forget_candidates(session_id, item["agent_id"])

    def closing_write(
        self, session: Session, *, answer: bytes | None, answer_token: str | None, overrides: str, committed_at: Instant
    ) -> Write:
        """The write that closes a session as committed, for the transaction that decides the commit.

        It is refused unless the session is open and as it was loaded; `refusal` tells why.

        Args:
            session: The session as it was loaded.
            answer: The answer, packed; None where it lies in parts.
            answer_token: Names the parts of the answer beside the session, `answer#TOKEN#N`.
            overrides: The overrides, canonical JSON.
            committed_at: The time of the commit.

        Raises:
            PayloadTooLarge: The overrides are too long to be kept.
        """
        values: dict[str, Value] = {
            "committed": "committed",
            "yes": True,
            "overrides": packed_overrides(overrides),
            "board": session.board_id,
            "agent": session.agent_id,
            "nodes": session.nodes,
            "edges": session.edges,
            "proposed_nodes": session.proposed_nodes,
            "proposed_edges": session.proposed_edges,
            **open_at(committed_at),
        }
        change = "SET #state = :committed, #committable = :yes, #overrides = :overrides"
        for name, value in (("answer", answer), ("answer_token", answer_token or None)):
            if value is not None:
                change, values[name] = f"{change}, #{name} = :{name}", value
        return update(
            SESSIONS,
            keys.session(session.session_id),
            keys.HEAD,
            f"{change} REMOVE #reason, #live",
            condition=f"{OPEN} AND #board_id = :board AND #agent_id = :agent AND #nodes = :nodes AND #edges = :edges "
            "AND #proposed_nodes = :proposed_nodes AND #proposed_edges = :proposed_edges",
            **values,
        )

    def refusal(self, item: Item, session: Session, now: Instant) -> PulseError:
        """Why `closing_write` was refused.

        Args:
            item: The session's own item as it is, empty where there is none.
            session: The session as it was loaded.
            now: The time of the commit.
        """
        error = why_closed(item, now)
        if error is not None:
            return error
        if (item["board_id"], item["agent_id"]) != (session.board_id, session.agent_id):
            return SessionNotFound()
        return StoreUnavailable(
            STORE, "Candidates were added, or proposals made, while the session was committed. Nothing was written; commit again."
        )

    def forget_candidates(self, session_id: str, agent_id: str) -> None:
        """Removes what a closed session does not need any more; where that fails, DynamoDB does it later."""
        pk = keys.session(session_id)
        with suppress(StoreUnavailable):
            found = [(pk, item[SK]) for item in self._dynamo.query(SESSIONS, pk, only=(SK,))]
            kept = (keys.HEAD, keys.ANSWER)
            doomed = [(pk, sk) for pk, sk in found if not sk.startswith(kept)]
            self._dynamo.delete_many(SESSIONS, [*doomed, (keys.agent(agent_id), keys.opened(session_id))])

    def open_sessions(self, *, agent_id: str | None = None, board_id: str | None = None, now: Instant) -> tuple[Session, ...]:
        """See `SessionStore.open_sessions`."""
        if agent_id is not None:
            opened = self._opened_by(agent_id, now)[1]
        else:
            partition = keys.DUE if board_id is None else keys.board(board_id)
            opened = [opened_of(item) for item in self._dynamo.query(SESSIONS, partition) if item["expires_at"] > now]
        wanted = [(keys.session(o.session_id), keys.HEAD) for o in opened if board_id in (None, o.board_id)]
        found = self._dynamo.get_many(SESSIONS, wanted, only=(PK, *SESSION))
        sessions = [session_of(item, None) for item in found if item["state"] == "open"]
        return tuple(sorted(sessions, key=lambda s: (s.started_at, s.session_id)))

    def purge(self, *, now: Instant, at_most: int = 100) -> int:
        """See `SessionStore.purge`. While nothing can be due, nothing is asked: a session that begins now is not due for a day."""
        if now < self._nothing_due_before:
            return 0
        first = [opened_of(item) for item in islice(self._dynamo.query(SESSIONS, keys.DUE, page=at_most + 1), at_most + 1)]
        due = [o for o in first if o.expires_at + GRACE_MS <= now][:at_most]
        remove_sessions(self._dynamo, due)
        if len(due) < at_most:
            self._nothing_due_before = min([now, *(o.expires_at for o in first[len(due) :])]) + GRACE_MS
        return len(due)


def _creation(session: Session, opened: Opened, last: Item | None, *, limited: bool) -> list[Write]:
    """The board's check first, then the session; the agent's last one is the third."""
    condition = None
    seen: dict[str, Value] = {}
    if limited and last is None:
        condition = "attribute_not_exists(pk)"
    elif limited and last is not None:
        condition, seen["seen"] = "session_id = :seen", last["session_id"]
    newest: dict[str, Value] = {
        "session_id": session.session_id,
        "board_id": session.board_id,
        "agent_id": session.agent_id,
        "expires_at": session.expires_at,
        TTL: ttl(session.expires_at),
    }
    return [
        board_takes_changes(session.board_id),
        put(SESSIONS, keys.session(session.session_id), keys.HEAD, item_of(session), condition="attribute_not_exists(pk)"),
        put(SESSIONS, keys.agent(session.agent_id), keys.HEAD, newest, condition=condition, **seen),
        *opened.writes(),
    ]


def _appending(session_id: str, draft: Draft, number: int, key: str | None, expires_at: Instant, now: Instant) -> list[Write]:
    """The session's count first, then the candidate, then what remembers the idempotency key."""
    pk = keys.session(session_id)
    free = "attribute_not_exists(pk)"
    writes = [
        update(
            SESSIONS,
            pk,
            keys.HEAD,
            f"SET #{draft.counter} = :number",
            condition=f"{OPEN} AND #{draft.counter} = :before",
            number=number,
            before=number - 1,
            **open_at(now),
        ),
        put(SESSIONS, pk, candidate_key(draft.kind, number), draft.item(expires_at), condition=free),
    ]
    if key is not None:
        made: dict[str, Value] = {
            "kind": draft.kind,
            "number": number,
            "digest": draft.digest,
            TTL: ttl(expires_at, days_more=CONTENT_DAYS),
        }
        writes.append(put(SESSIONS, pk, key, made, condition=free))
    return writes


def _replayed(made: Item, draft: Draft) -> Appended:
    """The candidate that an idempotency key made before, if its draft was equal."""
    first = named(made["kind"], made["number"])
    if (made["kind"], made["digest"]) != (draft.kind, draft.digest):
        raise IdempotencyConflict(
            f"This idempotency key made {first} of this session, with other content. Send new content with a new key.",
            {"candidate_id": first},
        )
    return Appended(first, replayed=True)


def _full(draft: Draft, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"The session has {limit} {draft.kind} candidates, and more do not fit in one. Commit it, then go on in a new session.",
        {"limit": limit, "kind": f"{draft.kind}_candidates"},
    )
