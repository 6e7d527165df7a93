"""What a query should be told though it is no fault: names that the board does not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pulse_kg.cypher.ast import Span

_MOST: Final = 20


@dataclass(frozen=True)
class Vocabulary:
    """The names that there may be on a board.

    Attributes:
        labels: Node types.
        rel_types: Relationship types.
        node_keys: Properties of nodes.
        edge_keys: Properties of relationships.
    """

    labels: frozenset[str]
    rel_types: frozenset[str]
    node_keys: frozenset[str]
    edge_keys: frozenset[str]


def unknown_names(named: Iterable[tuple[str, str, Span]], vocabulary: Vocabulary) -> list[str]:
    """A sentence for each name that the board can't have, with the nearest one that it has; at most 20."""
    known = {
        "label": ("label", vocabulary.labels, "matches no node"),
        "type": ("relationship type", vocabulary.rel_types, "matches no relationship"),
        "node": ("property", vocabulary.node_keys, "is null"),
        "relationship": ("property of relationships", vocabulary.edge_keys, "is null"),
    }
    told: dict[str, None] = {}
    for sort, name, _ in named:
        if len(told) == _MOST:
            break
        what, names, follows = known[sort]
        if name not in names:
            from difflib import get_close_matches

            near = get_close_matches(name[:60], sorted(names), 1, 0.5) or [n for n in sorted(names) if n.lower() == name.lower()]
            told[f"unknown {what} '{name[:60]}': it {follows}" + (f"; did you mean '{near[0]}'?" if near else "")] = None
    return list(told)
