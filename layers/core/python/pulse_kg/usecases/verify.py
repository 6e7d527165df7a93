"""verify: proves that a board's graph, vectors and outbox are what its audit rows say, no more and no less."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pulse_kg.domain.model import Edge, Node, TextVector
from pulse_kg.domain.schema import SEARCHABLE_TYPES
from pulse_kg.errors import PermissionDenied, PulseError
from pulse_kg.usecases.replay import ReplayedGraph, replay_row
from pulse_kg.usecases.services import Services

_NORM_TOLERANCE = 1e-3
_LOOKS = 5
_MAX_FINDINGS = 200  # more than that is one fault many times over


@dataclass(frozen=True)
class Verification:
    """What was found on a board.

    Attributes:
        board_id: The board.
        commits: Audit rows read.
        nodes: Nodes compared.
        edges: Edges compared.
        vectors: Vectors compared.
        findings: What is wrong, one sentence each; empty for a sound board, at most 200.
    """

    board_id: str
    commits: int
    nodes: int
    edges: int
    vectors: int
    findings: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Nothing is wrong."""
        return not self.findings


def verify_board(board_id: str, services: Services, *, progress: Callable[[int, int], None] | None = None) -> Verification:
    """Replays the audit rows in memory and compares; where commits went on meanwhile, it looks again before it complains.

    Args:
        board_id: The board.
        services: The ports.
        progress: Called with commits read so far and commits in all.

    Raises:
        PermissionDenied: There is no such board.
    """
    for _ in range(_LOOKS - 1):
        before = _commit_seq(board_id, services)
        result = _look(board_id, before, services, progress)
        if result.clean or _commit_seq(board_id, services) == before:
            return result
    return _look(board_id, _commit_seq(board_id, services), services, progress)


def _commit_seq(board_id: str, services: Services) -> int:
    board = services.boards.board(board_id)
    if board is None:
        raise PermissionDenied.for_board(board_id)
    return board.commit_seq


def _look(board_id: str, last: int, services: Services, progress: Callable[[int, int], None] | None) -> Verification:
    findings: list[str] = []
    graph, commits = ReplayedGraph(), 0
    events = {record.seq: record for record in services.commits.outbox(board_id)}
    for row in services.commits.audit_rows(board_id):
        commits += 1
        seq = row["audit_row_id"]
        if seq != commits:
            findings.append(f"audit row {commits} is missing: the next one is {seq}")
            break
        record = events.pop(seq, None)
        if record is None:
            findings.append(f"commit {seq} has no outbox record")
        elif record.event.get("id") != row["event_id"]:
            findings.append(f"the outbox record of commit {seq} is another event than its audit row names")
        try:
            plan = replay_row(row, graph, _no_vectors)
        except (PulseError, KeyError) as error:
            findings.append(f"commit {seq} can't be replayed from its audit row ({type(error).__name__})")
            break
        graph.apply(plan)
        if progress is not None:
            progress(commits, last)
    findings += [f"an outbox record exists for commit {seq}, which has no audit row" for seq in sorted(events) if seq > commits]
    if commits != last and not findings:
        findings.append(f"the board counts {last} commits, and {commits} have an audit row")
    nodes = list(services.graph.all_nodes(board_id))
    edges = list(services.graph.all_edges(board_id))
    findings += _node_findings(nodes, graph)
    findings += _edge_findings(edges, nodes, graph)
    vectors, wrong = _vector_findings(board_id, nodes, services)
    return Verification(board_id, commits, len(nodes), len(edges), vectors, tuple([*findings, *wrong][:_MAX_FINDINGS]))


def _no_vectors(texts: Sequence[str]) -> dict[str, TextVector]:
    return {text: TextVector(b"") for text in texts}


def _comparable(node: Node) -> Node:
    """The node without what is counted, recomputed or measured outside its commits."""
    return replace(
        node,
        query_hits=0,
        last_queried_at=None,
        last_recomputed_at=None,
        relevance_score=0.0,
        truncated=False,
    )


def _node_findings(nodes: Sequence[Node], graph: ReplayedGraph) -> Iterator[str]:
    stored = {n.node_id: n for n in nodes}
    for node_id in sorted(stored.keys() | graph.node_by_id.keys()):
        node, expected = stored.get(node_id), graph.node_by_id.get(node_id)
        if expected is None:
            yield f"node {node_id} is in the graph, and no commit made it"
        elif node is None:
            yield f"node {node_id} of commit {expected.created_seq} is not in the graph"
        elif _comparable(node) != _comparable(expected):
            changed = [f for f in Node.__dataclass_fields__ if getattr(_comparable(node), f) != getattr(_comparable(expected), f)]
            yield f"node {node_id} differs from what its commits made of it in {', '.join(changed)}"


def _edge_findings(edges: Sequence[Edge], nodes: Sequence[Node], graph: ReplayedGraph) -> Iterator[str]:
    stored, ids = {e.edge_id: e for e in edges}, {n.node_id for n in nodes}
    for edge_id in sorted(stored.keys() | graph.edge_by_id.keys()):
        edge, expected = stored.get(edge_id), graph.edge_by_id.get(edge_id)
        if expected is None:
            yield f"edge {edge_id} is in the graph, and no commit made it"
        elif edge is None:
            yield f"edge {edge_id} of commit {expected.commit_seq} is not in the graph"
        elif edge != expected:
            yield f"edge {edge_id} differs from what its commit made"
        if edge is not None:
            for end in (edge.src, edge.dst):
                if end not in ids:
                    yield f"edge {edge_id} has an end {end} that is no node"


def _vector_findings(board_id: str, nodes: Sequence[Node], services: Services) -> tuple[int, list[str]]:
    wanted = {n.node_id: n for n in nodes if n.node_type in SEARCHABLE_TYPES}
    found, findings = 0, list[str]()
    for node_id, vector, live in services.vectors.all_vectors(board_id):
        found += 1
        node = wanted.pop(node_id, None)
        if node is None:
            findings.append(f"there is a vector of {node_id}, which is no searchable node")
            continue
        if live != node.live:
            findings.append(f"the vector of {node_id} is marked as {'live' if live else 'superseded'}, the node is not")
        if vector.truncated != node.truncated:
            findings.append(f"the vector of {node_id} and the node disagree on whether the text was cut")
        numbers = struct.unpack(f"<{len(vector.vector) // 4}f", vector.vector)
        if abs(math.sqrt(math.fsum(x * x for x in numbers)) - 1) > _NORM_TOLERANCE:
            findings.append(f"the vector of {node_id} is damaged: its length is not 1")
    findings += [f"node {node_id} has no vector" for node_id in sorted(wanted)]
    return found, findings
