"""The reads of `GraphQueries` over plain lists, as slow and as plain as their docstrings, to measure the stores against."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.schema import NODE_TYPES, NodeType, RelType
from pulse_kg.domain.text import fold
from pulse_kg.ports.reading import Direction, Ends, Lineage, Neighbourhood, Neighbours, Place, Placed


@dataclass(frozen=True)
class QueryModel:
    """One board.

    Attributes:
        node_by_id: Its nodes.
        edges: Its edges.
    """

    node_by_id: dict[str, Node]
    edges: list[Edge]

    @classmethod
    def of(cls, nodes: Iterable[Node], edges: Iterable[Edge]) -> QueryModel:
        """The board that consists of these."""
        return cls({n.node_id: n for n in nodes}, sorted(edges, key=lambda e: e.edge_id))

    def place(self, node_id: str) -> Place:
        """Where a node stands."""
        at = [e for e in self.edges if node_id in {e.src, e.dst}]
        ends = [(self.node_by_id[e.src], self.node_by_id[e.dst]) for e in at if e.rel_type == "contradicts"]
        return Place(len(at), any(all(n.live and not n.revoked for n in pair) for pair in ends))

    def placed(self, node_ids: Collection[str]) -> dict[str, Placed]:
        """See `GraphQueries.placed`."""
        return {i: (self.node_by_id[i], self.place(i)) for i in sorted(set(node_ids)) if i in self.node_by_id}

    def steps(self, node_id: str, rel_types: Collection[RelType] | None = None, direction: Direction = "both") -> list[tuple[Edge, str]]:
        """Each edge at a node that may be walked, with where it leads."""
        found = []
        for edge in self.edges:
            if rel_types is None or edge.rel_type in rel_types:
                found += [(edge, edge.dst)] if edge.src == node_id and direction in {"out", "both"} else []
                found += [(edge, edge.src)] if edge.dst == node_id and direction in {"in", "both"} else []
        return found

    def around(
        self, node_id: str, rel_types: Collection[RelType] | None, direction: Direction, max_depth: int, limit: int
    ) -> Neighbourhood:
        """See `GraphQueries.around`."""
        depths = {node_id: 0}
        for depth in range(1, max_depth + 1):
            for known in [n for n, d in depths.items() if d == depth - 1]:
                for _, other in self.steps(known, rel_types, direction):
                    depths.setdefault(other, depth)
        del depths[node_id]
        ordered = sorted(depths, key=lambda n: (depths[n], NODE_TYPES.index(self.node_by_id[n].node_type), n))
        kept = {n: depths[n] for n in ordered[:limit]}
        ends = {node_id, *kept}
        among = [e for e in self.edges if e.src in ends and e.dst in ends and (rel_types is None or e.rel_type in rel_types)]
        return Neighbourhood(kept, among, len(kept) < len(depths), self.placed(ends))

    def lineage(self, node_ids: Collection[str], most: int) -> Lineage:
        """See `GraphQueries.lineage`."""
        reached = {*node_ids} & self.node_by_id.keys()
        for _ in range(most):
            reached |= {other for n in reached for _, other in self.steps(n, ["supersedes"])}
        pairs = [(e.src, e.dst) for e in self.edges if e.rel_type == "supersedes" and {e.src, e.dst} <= reached]
        return Lineage(
            {n: self.node_by_id[n] for n in reached},
            {older: sorted(a for a, b in pairs if b == older) for _, older in pairs},
            {newer: sorted(b for a, b in pairs if a == newer) for newer, _ in pairs},
            {i: place for i, (_, place) in self.placed(node_ids).items()},
        )

    def neighbours(
        self,
        node_ids: Collection[str],
        rel_types: Collection[RelType] | None,
        direction: Direction,
        node_types: Collection[NodeType] | None,
        *,
        near: bool = False,
        placed: Ends | None = None,
    ) -> Neighbours:
        """See `GraphQueries.neighbours`."""
        steps = [step for n in set(node_ids) for step in self.steps(n, rel_types, direction)]
        pairs = [(edge, self.node_by_id[other]) for edge, other in steps]
        links = sorted((p for p in pairs if node_types is None or p[1].node_type in node_types), key=lambda p: (p[0].edge_id, p[1].node_id))
        asked = self.placed(node_ids)
        standing = {None: {}, "near": asked, "all": asked | self.placed([n.node_id for _, n in links])}[placed]
        return Neighbours(links, {i: n for i, (n, _) in asked.items()} if near else {}, {i: place for i, (_, place) in standing.items()})

    def contradictions(self, node_id: str | None, most: int | None = None) -> list[Edge]:
        """See `GraphQueries.contradictions`."""
        found = [e for e in self.edges if e.rel_type == "contradicts" and (node_id is None or node_id in {e.src, e.dst})]
        return sorted(found, key=lambda e: (-e.created_at, e.edge_id))[:most]

    def stated_in(self, artifact: str, node_types: Collection[NodeType]) -> list[Placed]:
        """See `GraphQueries.stated_in`."""
        return [p for p in self.placed(self.node_by_id).values() if p[0].artifact == artifact and p[0].node_type in node_types]

    def with_words(
        self, node_types: Collection[NodeType], phrase: str, words: Collection[str], at_least: int, *, bodies: bool
    ) -> list[Node]:
        """See `GraphQueries.with_words`, without times."""
        found = []
        for node_id in sorted(self.node_by_id):
            node = self.node_by_id[node_id]
            where = [fold(node.title)]
            if bodies:
                where.append(fold(node.body))
                where += [fold(node.attributes["area"])] if node.node_type == "Learning" and "area" in node.attributes else []
            hits = {w for w in words if w and any(w in text for text in where)}
            if node.node_type in node_types and ((phrase and phrase in where[0]) or len(hits) >= at_least):
                found.append(node)
        return found


def in_time(nodes: Iterable[Node], since: Instant | None, until: Instant | None) -> list[Node]:
    """Those that happened in the span."""
    return [n for n in nodes if (since is None or n.happened_at >= since) and (until is None or n.happened_at < until)]
