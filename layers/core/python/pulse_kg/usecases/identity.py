"""Agents, their keys and what they may do: the check of every call, and what administrators change.

The functions that change something are for administrators at the command line; no tool reaches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.keys import ApiKey, parse_key
from pulse_kg.domain.permissions import Caller, effective, find_preset, flag_fault, nearest, preset_fault
from pulse_kg.errors import Problem, Unauthorized
from pulse_kg.ports.identity import Agent, IdentityStore, KeyRecord
from pulse_kg.usecases.boards import board_fault, refused, require_board

if TYPE_CHECKING:
    from pulse_kg.ports.boards import BoardStore
    from pulse_kg.ports.clock import Ids

MAX_NAME: Final = 100
"""Characters of an agent's name."""

_NOBODY: Final = "0" * 64
"""Compared with where there is no such key, so that an unknown key costs the same work as a wrong one."""


@dataclass(frozen=True)
class IssuedKey:
    """A key that was just made; its text exists nowhere else.

    Attributes:
        agent: Whose it is.
        api_key: The key in the clear.
        keys_revoked: How many older keys ended with it.
    """

    agent: Agent
    api_key: str = field(repr=False)
    keys_revoked: int = 0


def authenticate(api_key: str | None, identity: IdentityStore) -> Caller:
    """The agent of a key, with the flags and boards it has right now.

    Raises:
        Unauthorized: No key, a malformed, unknown or revoked one, or that of a revoked agent; all look the same.
        StoreUnavailable: The identity store can't be asked.
    """
    key = parse_key(api_key or "")
    if key is None:
        raise Unauthorized
    found = identity.by_key(key.public_id)
    opened = key.opens(found[1].secret_sha256 if found else _NOBODY)
    if found is None or not opened or found[1].revoked_at is not None or found[0].revoked_at is not None:
        raise Unauthorized
    agent = found[0]
    return Caller(agent.agent_id, agent.name, effective_flags(agent), frozenset(agent.boards) - frozenset(agent.denied))


def effective_flags(agent: Agent) -> frozenset[str]:
    """The flags of an agent that are in force."""
    return effective(agent.preset, agent.added_flags, agent.removed_flags)


def create_agent(
    name: str,
    preset: str,
    board_ids: Sequence[str],
    flags: Sequence[str],
    *,
    identity: IdentityStore,
    boards: BoardStore,
    ids: Ids,
    now: Instant,
) -> IssuedKey:
    """Makes an agent with its first key.

    Args:
        name: 1..100 printable characters, unique, those of revoked agents included.
        preset: One of the seven, in whatever case.
        board_ids: Boards that are granted; none is allowed, and then it sees nothing.
        flags: Flags beyond the preset; may end in ``.*``.
        identity: Keeps it.
        boards: Knows the boards.
        ids: Makes the agent's id and key.
        now: The time.

    Raises:
        InvalidArgument: With every problem.
    """
    problems = [*_name_problems(name), *_flag_problems("flag", flags)]
    if fault := preset_fault(preset):
        problems.append(Problem("preset", f"'{preset}' {fault}"))
    problems += [Problem("board", fault) for board_id in dict.fromkeys(board_ids) if (fault := board_fault(board_id, boards))]
    if problems:
        raise refused("The agent was not made", problems)
    agent = Agent(
        agent_id=ids.agent_id(now),
        name=name,
        preset=find_preset(preset) or "",
        added_flags=_sorted(flags),
        removed_flags=(),
        boards=_sorted(board_ids),
        denied=(),
        created_at=now,
    )
    key = ApiKey(*ids.key_parts())
    if not identity.create_agent(agent, _record(key, agent, now)):
        raise refused(
            "The agent was not made", [Problem("name", f"the name '{name}' is taken (that of a revoked agent is not free again)")]
        )
    return IssuedKey(agent, key.text)


def find_agent(name: str, identity: IdentityStore) -> Agent:
    """The agent of that name, a revoked one too.

    Raises:
        InvalidArgument: There is none; the nearest name is told.
    """
    agent = identity.by_name(name)
    if agent is None:
        near = nearest(name, [a.name for a in identity.agents()])
        hint = f"nearest: '{near}'" if near else "pulse-kg agents list shows them all"
        raise refused("No agent was found", [Problem("name", f"there is no agent '{name}' ({hint})")])
    return agent


def grant_board(name: str, board_id: str, *, identity: IdentityStore, boards: BoardStore) -> Agent:
    """Grants a board and lifts a denial of it; doing it again changes nothing.

    Raises:
        InvalidArgument: No such agent or board, or the agent is revoked.
    """
    agent = _active(name, identity)
    require_board(board_id, boards)
    return _saved(
        replace(agent, boards=_sorted((*agent.boards, board_id)), denied=tuple(b for b in agent.denied if b != board_id)), identity
    )


def deny_board(name: str, board_id: str, *, identity: IdentityStore, boards: BoardStore) -> Agent:
    """Denies a board, which wins over any grant of it; doing it again changes nothing.

    Raises:
        InvalidArgument: No such agent or board, or the agent is revoked.
    """
    agent = _active(name, identity)
    # A denial of a misspelt board would protect nothing and say so to nobody.
    require_board(board_id, boards)
    return _saved(replace(agent, denied=_sorted((*agent.denied, board_id))), identity)


def change_flags(name: str, add: Sequence[str], remove: Sequence[str], *, identity: IdentityStore) -> Agent:
    """Adds flags and takes flags away, beyond and against the preset.

    Adding lifts an earlier removal of the same flag or wildcard and the other way round; a removal that is left wins
    over every addition.

    Raises:
        InvalidArgument: No such agent, it is revoked, or flags that can't be; with every problem.
    """
    agent = _active(name, identity)
    problems = _flag_problems("flags", (*add, *remove))
    problems += [Problem("flags", f"'{flag}' is both added and removed") for flag in _sorted(set(add) & set(remove))]
    if problems:
        raise refused("No flag was changed", problems)
    return _saved(
        replace(
            agent,
            added_flags=_sorted((set(agent.added_flags) | set(add)) - set(remove)),
            removed_flags=_sorted((set(agent.removed_flags) | set(remove)) - set(add)),
        ),
        identity,
    )


def revoke_agent(name: str, *, identity: IdentityStore, now: Instant) -> tuple[Agent, int]:
    """Ends an agent and its keys for good; doing it again keeps the first time.

    Returns:
        The agent, and how many keys ended.

    Raises:
        InvalidArgument: There is none.
    """
    agent = find_agent(name, identity)
    if agent.revoked_at is None:
        agent = _saved(replace(agent, revoked_at=now), identity)
    return agent, identity.revoke_keys(agent.agent_id, now=now)


def rotate_key(name: str, *, identity: IdentityStore, ids: Ids, now: Instant) -> IssuedKey:
    """Makes a new key and ends all older ones. Ended half-way, both work; doing it again finishes.

    Raises:
        InvalidArgument: No such agent, or it is revoked.
    """
    agent = _active(name, identity)
    key = ApiKey(*ids.key_parts())
    identity.add_key(_record(key, agent, now))
    return IssuedKey(agent, key.text, identity.revoke_keys(agent.agent_id, now=now, but=key.public_id))


def revoke_keys(name: str, *, identity: IdentityStore, now: Instant) -> tuple[Agent, int]:
    """Ends all keys of an agent, which stays and can get a new one by `rotate_key`.

    Returns:
        The agent, and how many keys ended.

    Raises:
        InvalidArgument: There is none.
    """
    agent = find_agent(name, identity)
    return agent, identity.revoke_keys(agent.agent_id, now=now)


def _active(name: str, identity: IdentityStore) -> Agent:
    agent = find_agent(name, identity)
    if agent.revoked_at is not None:
        problem = Problem("name", f"'{name}' is revoked, which is final (pulse-kg agents create makes a new one)")
        raise refused("Nothing was changed", [problem])
    return agent


def _saved(agent: Agent, identity: IdentityStore) -> Agent:
    identity.save_agent(agent)
    return agent


def _record(key: ApiKey, agent: Agent, now: Instant) -> KeyRecord:
    return KeyRecord(key.public_id, agent.agent_id, key.secret_sha256, now)


def _name_problems(name: str) -> list[Problem]:
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip() or name[0] in "+-":
        wanted = f"1..{MAX_NAME} printable characters, without blanks at the ends and not starting with + or -"
        return [Problem("name", f"the name must be {wanted}")]
    return []


def _flag_problems(path: str, flags: Sequence[str]) -> list[Problem]:
    return [Problem(path, f"'{flag}' {fault}") for flag in dict.fromkeys(flags) if (fault := flag_fault(flag))]


def _sorted(words: Sequence[str] | set[str]) -> tuple[str, ...]:
    return tuple(sorted(set(words)))
