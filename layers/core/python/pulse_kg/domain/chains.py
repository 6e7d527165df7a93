"""Chains of supersedence: from any member to the one that holds, and from that to the oldest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from pulse_kg.domain.model import Node


def head_of(node_id: str, nodes: Mapping[str, Node]) -> str:
    """The last node that is reached by going from each to what supersedes it; itself for a live one.

    Args:
        node_id: Where it starts; one of the nodes.
        nodes: What is known, by id; the walk ends where they end.
    """
    seen = {node_id}
    while (above := nodes[node_id].superseded_by) is not None and above in nodes and above not in seen:
        seen.add(above)
        node_id = above
    return node_id


def newest_to_oldest(head: str, older: Mapping[str, Sequence[str]], nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """The head and all that it supersedes, directly or not, each once.

    No node comes before one that supersedes it; of those that may come next the newest does, by its creation, then by id.

    Args:
        head: Where it starts; one of the nodes.
        older: Newer id → the ids that it supersedes.
        nodes: What is known, by id; others are passed over.
    """
    below = {head: [n for n in older.get(head, ()) if n in nodes and n != head]}
    todo = list(below[head])
    while todo:
        node_id = todo.pop()
        if node_id not in below:
            below[node_id] = [n for n in older.get(node_id, ()) if n in nodes and n != head]
            todo += below[node_id]
    above = Counter(n for others in below.values() for n in others)
    found: dict[str, None] = {}
    next_ones = [(-nodes[head].created_at, head)]
    while next_ones:
        _, node_id = heappop(next_ones)
        found[node_id] = None
        for n in below[node_id]:
            above[n] -= 1
            if not above[n]:
                heappush(next_ones, (-nodes[n].created_at, n))
    stuck = below.keys() - found.keys()  # a cycle, which no commit makes
    return (*found, *sorted(stuck, key=lambda n: (-nodes[n].created_at, n)))
