"""What a caller may do: flags, the presets that bundle them, and the boards that are granted.

Deny by default: what no preset and no added flag gives is denied, and what was taken away stays away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

FLAGS: Final[tuple[str, ...]] = (
    *(f"kg.session.{name}" for name in ("begin", "add_node", "add_edge", "get_similar", "propose", "commit", "abort")),
    *(
        f"kg.query.{name}"
        for name in (
            "decision_history",
            "related_context",
            "supersedence_chain",
            "contradictions",
            "similar_decisions",
            "constraint_explain",
            "alternatives",
            "learning_from_bugs",
            "global",
        )
    ),
    *(f"kg.power.{name}" for name in ("natural", "schema_info", "cypher")),
    *(f"kg.admin.{name}" for name in ("health", "dead_letters", "reprocess", "migrate", "tick")),
)
"""Every permission there is."""

_WILDCARD: Final = ".*"
_READING: Final = ("kg.query.*", "kg.power.natural", "kg.power.schema_info")

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "Full Control": ("kg.query.*", "kg.power.*", "kg.session.*", "kg.admin.*"),
    "Spec": (*_READING, "kg.session.*", "kg.admin.health", "kg.admin.dead_letters", "kg.admin.reprocess"),
    "Validator": (*_READING, "kg.session.*", "kg.admin.health"),
    "QA": (*_READING, *(f for f in FLAGS if f.startswith("kg.session.") and f != "kg.session.commit"), "kg.admin.health"),
    "Executor": (*_READING, "kg.admin.health"),
    "Reporter": (*_READING, "kg.admin.health"),
    "Sprint Manager": (*_READING, "kg.admin.health"),
}
"""Preset → its flags."""


@dataclass(frozen=True)
class Caller:
    """An authenticated agent and what it may do right now.

    Attributes:
        agent_id: `agt_` + ULID.
        name: For people.
        flags: Flags in force, without wildcards.
        boards: Boards granted and not denied.
    """

    agent_id: str
    name: str
    flags: frozenset[str]
    boards: frozenset[str]

    def may(self, flag: str) -> bool:
        """Whether it has a permission."""
        return allows(self.flags, flag)

    def sees(self, board_id: str) -> bool:
        """Whether the board is granted to it."""
        return board_id in self.boards


def expand(patterns: Iterable[str]) -> frozenset[str]:
    """The flags that these flags and wildcards stand for; unknown ones stand for none."""
    return _expanded(tuple(patterns))


@lru_cache(maxsize=256)  # every call asks for its agent's flags, and agents have few different ones
def _expanded(patterns: tuple[str, ...]) -> frozenset[str]:
    return frozenset(flag for flag in FLAGS if any(_covers(pattern, flag) for pattern in patterns))


def effective(preset: str, added: Iterable[str] = (), removed: Iterable[str] = ()) -> frozenset[str]:
    """The flags in force: the preset's and the added ones without the removed ones, which win.

    Args:
        preset: One of `PRESETS`; an unknown one gives nothing.
        added: Flags and wildcards.
        removed: Flags and wildcards.
    """
    return (expand(PRESETS.get(preset, ())) | expand(added)) - expand(removed)


def allows(flags: Collection[str], flag: str) -> bool:
    """Whether `flags`, which may hold wildcards, give the permission `flag`; a flag that does not exist is given by none."""
    return flag in FLAGS and (flag in flags or any(_covers(pattern, flag) for pattern in flags))


def find_preset(text: str) -> str | None:
    """The preset of that name, in whatever case, with blanks, hyphens or underscores between its words."""
    return {_folded(name): name for name in PRESETS}.get(_folded(text))


def preset_fault(text: str) -> str | None:
    """What is wrong with the name of a preset, and the nearest right one; None if it is right."""
    if find_preset(text) is not None:
        return None
    near = nearest(text, PRESETS)
    hint = f"nearest: '{near}'" if near else "there are " + ", ".join(PRESETS)
    return f"is no preset ({hint})"


def flag_fault(text: str) -> str | None:
    """What is wrong with a flag or wildcard, and the nearest right one; None if it is right."""
    if expand((text,)):
        return None
    groups = sorted({flag.rpartition(".")[0] + _WILDCARD for flag in FLAGS})
    near = nearest(text, (*FLAGS, *groups))
    hint = f"nearest: '{near}'" if near else "there are " + ", ".join(("kg.*", *groups))
    return f"is no permission ({hint})"


def nearest(text: str, words: Iterable[str]) -> str | None:
    """The one of `words` that looks most like `text`, or None if none does."""
    from difflib import get_close_matches  # only where something is wrong already

    known = {_folded(word): word for word in words}
    found = get_close_matches(_folded(text), list(known), n=1, cutoff=0.5)
    return known[found[0]] if found else None


def _covers(pattern: str, flag: str) -> bool:
    return pattern == flag or (pattern.endswith(_WILDCARD) and flag.startswith(pattern.removesuffix("*")))


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace("-", " ").replace("_", " ").split())
