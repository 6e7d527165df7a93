"""Plans a commit again from its audit row, on whatever graph has the state before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from pulse_kg.domain.audit import AuditRow, administration_of, replayed
from pulse_kg.domain.completion import administer, complete, texts_to_embed
from pulse_kg.domain.instants import parse_instant
from pulse_kg.domain.model import Edge, Node, TextVector
from pulse_kg.domain.plan import Around, CommitPlan, Contradiction, Outline, Surroundings, outline
from pulse_kg.ports.graph import GraphReads, Survey


def surveyed(board_id: str, sketch: Outline, there: Survey, graph: GraphReads) -> Around:
    """What a plan needs to know of the graph around its nodes and edges, out of a survey that has all of these nodes.

    An edge that exists already has both of its ends among them, for no new node has edges yet.

    Args:
        board_id: The tenant.
        sketch: The outline.
        there: A survey of every existing node that a target or an end of an edge names.
        graph: The graph before the commit; asked only where a supersedes edge hangs below an existing node.
    """
    touched = _touched(sketch, there.nodes)
    return Around(
        nodes=there.nodes,
        existing_edges=there.edges_between & {e.edge_id for e in sketch.edges},
        surroundings={n: there.surroundings[n] for n in sorted(touched)},
        supersedes=_below(board_id, sketch, there.nodes, graph),
    )


def around(board_id: str, sketch: Outline, nodes: Mapping[str, Node], graph: GraphReads) -> Around:
    """Reads what a plan needs to know of the graph around its nodes and edges.

    Args:
        board_id: The tenant.
        sketch: The outline.
        nodes: Every existing node that a target or an end of an edge names.
        graph: The graph before the commit.
    """
    touched = _touched(sketch, nodes)
    return Around(
        nodes=nodes,
        existing_edges=graph.existing_edges(board_id, {e.edge_id for e in sketch.edges}),
        surroundings=graph.surroundings(board_id, touched) if touched else {},
        supersedes=_below(board_id, sketch, nodes, graph),
    )


def _touched(sketch: Outline, nodes: Mapping[str, Node]) -> set[str]:
    return {n for n in (*sketch.node_ids.values(), *sketch.existing_ends()) if n in nodes}


def _below(board_id: str, sketch: Outline, nodes: Mapping[str, Node], graph: GraphReads) -> Mapping[str, Sequence[str]]:
    supersedes = [e for e in sketch.edges if e.rel_type == "supersedes"]
    if not any(e.src in nodes for e in supersedes):  # no new edge hangs below an existing node, and no old path can close a cycle
        return {}
    return graph.supersedes_below(board_id, {n for e in supersedes for n in (e.src, e.dst) if n in nodes})


def replay_row(row: AuditRow, graph: GraphReads, embed: Callable[[Sequence[str]], Mapping[str, TextVector]]) -> CommitPlan:
    """The plan of the commit that an audit row records.

    The plan's own audit row is made anew as well: for a sound row the two are equal in all that follows from the rest.

    Args:
        row: The audit row.
        graph: The graph as it was before that commit.
        embed: Texts to vectors.
    """
    board_id, seq, now = row["board_id"], row["audit_row_id"], parse_instant(row["committed_at"])
    if row["kind"] == "administration":
        action = administration_of(row)
        node = graph.nodes(board_id, [action.node_id])[action.node_id]
        surroundings = graph.surroundings(board_id, [action.node_id]).get(action.node_id, Surroundings())
        return replace(administer(action, node, surroundings, seq=seq, now=now), restored=True)
    resolved = replayed(row)
    named = {t.node_id for r in resolved.resolutions for t in r.targets}
    named |= {end.node_id for e in resolved.candidates.edges for end in (e.draft.src, e.draft.dst) if end.node_id is not None}
    nodes = graph.nodes(board_id, named)
    sketch = outline(resolved, nodes)
    vectors = embed(texts_to_embed(resolved, nodes))
    plan = complete(resolved, sketch, around(board_id, sketch, nodes, graph), vectors, seq=seq, now=now)
    return replace(plan, restored=True)


class ReplayedGraph:
    """The graph of one board in memory, as its audit rows make it; the reads take a board to fit the port, and have but one."""

    def __init__(self) -> None:
        self.node_by_id: dict[str, Node] = {}
        self.edge_by_id: dict[str, Edge] = {}
        self._at: dict[str, list[Edge]] = defaultdict(list)

    def apply(self, plan: CommitPlan) -> None:
        """Takes over what a plan writes, but for relevance scores of nodes that change in nothing else."""
        for node in plan.nodes:
            self.node_by_id[node.node_id] = node
        for edge in plan.edges:
            self.edge_by_id[edge.edge_id] = edge
            self._at[edge.src].append(edge)
            self._at[edge.dst].append(edge)

    def nodes(self, board_id: str, node_ids: Collection[str]) -> dict[str, Node]:  # noqa: ARG002
        """The nodes of these ids."""
        return {n: self.node_by_id[n] for n in node_ids if n in self.node_by_id}

    def existing_edges(self, board_id: str, edge_ids: Collection[str]) -> frozenset[str]:  # noqa: ARG002
        """Those of these edges that there are."""
        return frozenset(e for e in edge_ids if e in self.edge_by_id)

    def surroundings(self, board_id: str, node_ids: Collection[str]) -> dict[str, Surroundings]:  # noqa: ARG002
        """Degrees and incoming contradictions."""
        found = {}
        for node_id in node_ids:
            if node_id in self.node_by_id:
                edges = self._at[node_id]
                incoming = sorted((e for e in edges if e.rel_type == "contradicts" and e.dst == node_id), key=lambda e: e.src)
                contradictions = tuple(Contradiction(e.src, e.confidence, self._resolved(e.src)) for e in incoming)
                found[node_id] = Surroundings(len(edges), contradictions)
        return found

    def _resolved(self, node_id: str) -> bool:
        node = self.node_by_id[node_id]
        return not node.live or node.revoked

    def supersedes_below(self, board_id: str, node_ids: Collection[str]) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """What these nodes supersede, and what that supersedes."""
        below: dict[str, list[str]] = {}
        todo = sorted(node_ids)
        while todo:
            here = todo.pop()
            if here not in below:
                below[here] = sorted(e.dst for e in self._at[here] if e.rel_type == "supersedes" and e.src == here)
                todo += below[here]
        return below
