"""Agents, their keys and grants."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.client import MAX_WRITES, STORE, Dynamo, Item, Refused, Value, Write, put, update
from pulse_kg.adapters.dynamodb.tables import IDENTITY, PK, SK
from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.domain.instants import Instant
from pulse_kg.errors import StoreUnavailable
from pulse_kg.ports.identity import Agent, KeyRecord

_REMEMBERED: Final = 1_000
_FREE: Final = "attribute_not_exists(pk)"

Found = tuple[Agent, KeyRecord]


class _Recent:
    """What keys opened in the last seconds."""

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds, self._monotonic = seconds, monotonic
        self._lock = threading.Lock()
        self._found: dict[str, tuple[float, Found]] = {}
        self._changes = 0

    def get(self, public_id: str) -> Found | None:
        with self._lock:
            until, found = self._found.get(public_id, (0.0, None))
        return found if found is not None and self._monotonic() < until else None

    def begin(self) -> tuple[int, float]:
        """Noted before a read: what is read is as old as this."""
        with self._lock:
            return self._changes, self._monotonic() + self._seconds

    def note(self, public_id: str, found: Found, begun: tuple[int, float]) -> None:
        changes, until = begun
        with self._lock:
            if changes != self._changes or self._seconds <= 0:  # it was read before a change of this process
                return
            self._found.pop(public_id, None)
            if len(self._found) >= _REMEMBERED:
                del self._found[next(iter(self._found))]
            self._found[public_id] = until, found

    def forget(self) -> None:
        with self._lock:
            self._changes += 1
            self._found.clear()


class DynamoIdentityStore:
    """Agents and keys. `by_key` may be behind by some seconds; a change of this process is seen at once.

    Args:
        dynamo: Where they are.
        cache_seconds: How long `by_key` answers from memory, 0..60; 0 asks each time. A key that is not there is asked for each time.
        monotonic: Seconds that never go back.
    """

    def __init__(self, dynamo: Dynamo, *, cache_seconds: float = 30.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._dynamo = dynamo
        self._recent = _Recent(cache_seconds, monotonic)

    def create_agent(self, agent: Agent, key: KeyRecord) -> bool:
        """See `IdentityStore.create_agent`.

        Raises:
            StoreUnavailable: The public part of the key is another key's already; the next try has another one.
        """
        writes = [
            put(IDENTITY, keys.AGENT_LIST, agent.name, {"agent_id": agent.agent_id}, condition=_FREE),
            put(IDENTITY, keys.agent(agent.agent_id), keys.HEAD, _item_of(agent), condition=_FREE),
            *_key_writes(key),
        ]
        try:
            self._dynamo.transact(writes)
        except Refused as refused:
            if refused.items[0] is None:
                raise StoreUnavailable(STORE) from None
            return False
        return True

    def by_key(self, public_id: str) -> Found | None:
        """See `IdentityStore.by_key`."""
        known = self._recent.get(public_id)
        if known is not None:
            return known
        begun = self._recent.begin()
        item = self._dynamo.get(IDENTITY, keys.api_key(public_id), keys.HEAD)
        agent = None if item is None else self._agent(item["agent_id"])
        if item is None or agent is None:
            return None
        found = agent, _key_of(item)
        self._recent.note(public_id, found, begun)
        return found

    def by_name(self, name: str) -> Agent | None:
        """See `IdentityStore.by_name`."""
        item = self._dynamo.get(IDENTITY, keys.AGENT_LIST, name)
        return None if item is None else self._agent(item["agent_id"])

    def _agent(self, agent_id: str) -> Agent | None:
        item = self._dynamo.get(IDENTITY, keys.agent(agent_id), keys.HEAD)
        return None if item is None else _agent_of(item)

    def agents(self) -> tuple[Agent, ...]:
        """See `IdentityStore.agents`."""
        return tuple(sorted(map(_agent_of, _all_agents(self._dynamo)), key=lambda agent: agent.name))

    def keys(self, agent_id: str) -> tuple[KeyRecord, ...]:
        """See `IdentityStore.keys`."""
        listed = self._dynamo.query(IDENTITY, keys.agent(agent_id), begins=keys.KEYS, only=(SK,))
        found = self._dynamo.get_many(IDENTITY, [(item[SK], keys.HEAD) for item in listed])
        return tuple(sorted(map(_key_of, found), key=lambda key: (key.created_at, key.public_id)))

    def save_agent(self, agent: Agent) -> None:
        """See `IdentityStore.save_agent`; does nothing for an agent that was never made."""
        values = {name: value for name, value in _item_of(agent).items() if name in _CHANGEABLE and value is not None}
        sets = ", ".join(f"#{name} = :{name}" for name in values)
        try:
            self._dynamo.update(
                update(
                    IDENTITY,
                    keys.agent(agent.agent_id),
                    keys.HEAD,
                    f"SET {sets}" if "revoked_at" in values else f"SET {sets} REMOVE #revoked_at",
                    condition="attribute_exists(pk)",
                    **values,
                )
            )
        except Refused:
            return
        finally:
            self._recent.forget()

    def add_key(self, key: KeyRecord) -> None:
        """See `IdentityStore.add_key`.

        Raises:
            StoreUnavailable: The public part of the key is another key's already; the next try has another one.
        """
        try:
            self._dynamo.transact(_key_writes(key))
        except Refused:
            raise StoreUnavailable(STORE) from None

    def revoke_keys(self, agent_id: str, *, now: Instant, but: str | None = None) -> int:
        """See `IdentityStore.revoke_keys`; of more than a hundred keys, a hundred at a time."""
        revoked = 0
        try:
            for _ in self._dynamo.tries():
                doomed = [key for key in self.keys(agent_id) if key.revoked_at is None and key.public_id != but]
                try:
                    for start in range(0, len(doomed), MAX_WRITES):
                        some = doomed[start : start + MAX_WRITES]
                        self._dynamo.transact([_revocation(key.public_id, now) for key in some])
                        revoked += len(some)
                except Refused:  # another revoked some of them meanwhile
                    continue
                break
        finally:
            self._recent.forget()
        return revoked


_CHANGEABLE: Final = frozenset({"added_flags", "removed_flags", "boards", "denied", "revoked_at"})


def forget_board(dynamo: Dynamo, board_id: str) -> int:
    """Takes a board out of all grants and denials; returns how many are left. May be repeated."""
    for item in _all_agents(dynamo):
        _forget_of(dynamo, item, board_id)
    return sum(board_id in from_json(item[name]) for item in _all_agents(dynamo) for name in ("boards", "denied"))


def _forget_of(dynamo: Dynamo, seen: Item, board_id: str) -> None:
    item: Item | None = seen
    for _ in dynamo.tries():
        if item is None:
            return
        before = {name: item[name] for name in ("boards", "denied")}
        after = {name: to_json([b for b in from_json(text) if b != board_id]) for name, text in before.items()}
        if after == before:
            return
        try:
            dynamo.update(
                update(
                    IDENTITY,
                    item[PK],
                    keys.HEAD,
                    "SET #boards = :boards, #denied = :denied",
                    condition="#boards = :boards_before AND #denied = :denied_before",
                    **after,
                    **{f"{name}_before": text for name, text in before.items()},
                )
            )
        except Refused as refused:
            item = refused.items[0] or None
        else:
            return


def _all_agents(dynamo: Dynamo) -> list[Item]:
    listed = dynamo.query(IDENTITY, keys.AGENT_LIST, only=("agent_id",))
    return dynamo.get_many(IDENTITY, [(keys.agent(item["agent_id"]), keys.HEAD) for item in listed])


def _key_writes(key: KeyRecord) -> list[Write]:
    item: dict[str, Value] = {
        "agent_id": key.agent_id,
        "secret_sha256": key.secret_sha256,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }
    return [
        put(IDENTITY, keys.api_key(key.public_id), keys.HEAD, item, condition=_FREE),
        put(IDENTITY, keys.agent(key.agent_id), keys.api_key(key.public_id), {}),
    ]


def _revocation(public_id: str, now: Instant) -> Write:
    condition = "attribute_exists(pk) AND attribute_not_exists(revoked_at)"
    return update(IDENTITY, keys.api_key(public_id), keys.HEAD, "SET revoked_at = :now", condition=condition, now=now)


def _key_of(item: Item) -> KeyRecord:
    public_id = item[PK].removeprefix(keys.KEYS)
    return KeyRecord(public_id, item["agent_id"], item["secret_sha256"], item["created_at"], item.get("revoked_at"))


def _item_of(agent: Agent) -> dict[str, Value]:
    return {
        "name": agent.name,
        "preset": agent.preset,
        "added_flags": _sorted(agent.added_flags),
        "removed_flags": _sorted(agent.removed_flags),
        "boards": _sorted(agent.boards),
        "denied": _sorted(agent.denied),
        "created_at": agent.created_at,
        "revoked_at": agent.revoked_at,
    }


def _sorted(words: Iterable[str]) -> str:
    return to_json(sorted(set(words)))


def _agent_of(item: Item) -> Agent:
    def words(name: str) -> tuple[str, ...]:
        found: Sequence[str] = from_json(item[name])
        return tuple(found)

    return Agent(
        agent_id=item[PK].removeprefix(keys.agent("")),
        name=item["name"],
        preset=item["preset"],
        added_flags=words("added_flags"),
        removed_flags=words("removed_flags"),
        boards=words("boards"),
        denied=words("denied"),
        created_at=item["created_at"],
        revoked_at=item.get("revoked_at"),
    )
