"""Walks over a graph, whatever store holds it: what is reached, in which order, and what stays where there is too much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from pulse_kg.domain.schema import NODE_TYPES, NodeType

TYPE_ORDER: Final[Mapping[NodeType, int]] = {node_type: place for place, node_type in enumerate(NODE_TYPES)}

Hop = Callable[[Collection[str]], Mapping[str, NodeType]]
"""From some nodes to all that one edge leads to, with their types; those that were seen before may be among them."""


def breadth_first(anchor: str, hop: Hop, *, max_depth: int, limit: int) -> tuple[dict[str, int], bool]:
    """What lies around a node.

    Args:
        anchor: Where it starts.
        hop: One step of all nodes of one depth.
        max_depth: Most hops.
        limit: Most nodes; where there are more, those of the least (depth, order of types, id) stay.

    Returns:
        Node id → depth, 1 or more, in that order; and whether nodes were left out for the limit.
    """
    depths: dict[str, int] = {}
    frontier: Collection[str] = [anchor]
    for depth in range(1, max_depth + 1):
        fresh = {n: t for n, t in hop(frontier).items() if n != anchor and n not in depths}
        if not fresh:
            break
        frontier = sorted(fresh, key=lambda node_id: (TYPE_ORDER[fresh[node_id]], node_id))
        kept = frontier[: limit - len(depths)]
        depths |= dict.fromkeys(kept, depth)
        if len(kept) < len(fresh):
            return depths, True
    return depths, False


def within_steps(starts: Collection[str], pairs: Iterable[tuple[str, str]], most: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Supersedes edges among what is at most so many steps from the nearest of some nodes, whichever way an edge is walked.

    Args:
        starts: The nodes.
        pairs: (newer, older) of each edge.
        most: Steps.

    Returns:
        Older id → newer ids, and newer id → older ids, all sorted.
    """
    newer, older = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for above, below in pairs:
        newer[below].add(above)
        older[above].add(below)
    reached, last = set(starts), set(starts)
    for _ in range(most):
        last = {n for node_id in last for n in (*newer.get(node_id, ()), *older.get(node_id, ()))} - reached
        if not last:
            break
        reached |= last

    def among(links: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
        kept = {node_id: sorted(reached.intersection(links[node_id])) for node_id in sorted(links) if node_id in reached}
        return {node_id: others for node_id, others in kept.items() if others}

    return among(newer), among(older)
