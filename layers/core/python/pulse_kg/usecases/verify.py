"""verify: proves that a board's graph, vectors and outbox are what its audit rows say, no more and no less."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pulse_kg.domain.audit import AuditRow
from pulse_kg.domain.model import Edge, Node, TextVector
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.refs import Artifact
from pulse_kg.domain.schema import SEARCHABLE_TYPES
from pulse_kg.errors import PermissionDenied, PulseError, StoreUnavailable
from pulse_kg.ports.commits import OutboxRecord
from pulse_kg.usecases.replay import ReplayedGraph, replay_row
from pulse_kg.usecases.services import Services

_NORM_TOLERANCE = 1e-3
_LOOKS = 5
_PAUSE_SECONDS = 0.3
_MAX_FINDINGS = 200  # more than that is one fault many times over
_DERIVED = ("event_id", "mapping", "applied", "edges_added", "superseded_nodes", "counts")
"""What of an audit row follows from the rest of it and the rows before; an administrative one has the first alone.

Warnings are left out: their wording may change from one version to the next.
"""
_DAMAGE = (PulseError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, struct.error)
"""What reading a damaged row can end in."""

Progress = Callable[[int, int], None]


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


def verify_board(
    board_id: str, services: Services, *, progress: Progress | None = None, pause: Callable[[float], None] = time.sleep
) -> Verification:
    """Replays the audit rows in memory and compares, all in one snapshot of the store.

    A store without snapshots may be written meanwhile: then it looks again before it complains. It changes nothing: what is decided and
    not carried out is told, unless who is just at it ends soon.

    Args:
        board_id: The board.
        services: The ports.
        progress: Called with commits read so far and commits in all.
        pause: Waits some seconds for a commit that is being carried out.

    Raises:
        PermissionDenied: There is no such board.
        StoreUnavailable: The store can't be read right now, or has no snapshots and was written during every look.
    """
    for look in range(1, _LOOKS + 1):
        with services.snapshot():
            before = _commit_seq(board_id, services)
            result = _Look(board_id, services).take(before, progress)
            quiet = _commit_seq(board_id, services) == before
        if result.clean or (quiet and (result.commits >= before or look == _LOOKS)):
            return result
        if quiet:
            pause(_PAUSE_SECONDS)
    raise StoreUnavailable(
        "graph", f"The board '{board_id}' is in use and changed during every look, so it could not be compared. Try again when it is quiet."
    )


def _commit_seq(board_id: str, services: Services) -> int:
    board = services.boards.board(board_id)
    if board is None:
        raise PermissionDenied.for_board(board_id)
    return board.commit_seq


class _Look:
    """One reading of everything that a board has, with what is wrong in it."""

    def __init__(self, board_id: str, services: Services) -> None:
        self._board_id, self._services = board_id, services
        self._findings: list[str] = []
        self._graph = ReplayedGraph()
        self._hashes: dict[Artifact, str] = {}
        self._replayed = 0
        self._unread: set[str] = set()
        self._every_node = True

    def take(self, last: int, progress: Progress | None) -> Verification:
        """Reads and compares a board whose last commit has that number."""
        commits, whole = self._replay(last, progress)
        nodes = self._nodes()
        edges = list[Edge]()
        edges_read = False
        with self._reading("the edges can't be read"):
            edges = list(self._services.graph.all_edges(self._board_id))
            edges_read = True
        if whole:
            self._compare_nodes(nodes)
            if edges_read:
                self._compare_edges(edges)
            self._compare_hashes()
        else:
            self._findings.append("nodes and edges were not compared, as the audit rows can't be replayed to their end")
        if self._every_node:
            self._check_ends(edges, nodes)
        vectors = self._compare_vectors(nodes)
        self._findings += self._services.commits.unfinished(self._board_id, now=self._services.clock.now())
        return Verification(self._board_id, commits, len(nodes), len(edges), vectors, tuple(self._findings[:_MAX_FINDINGS]))

    @contextmanager
    def _reading(self, failed: str) -> Iterator[None]:
        """Tells of whatever a damaged row breaks, and goes on; a store that is only busy is no finding."""
        try:
            yield
        except _DAMAGE as error:
            if isinstance(error, PulseError) and error.retryable:
                raise
            self._findings.append(f"{failed} ({type(error).__name__})")

    # Audit rows and the outbox.

    def _replay(self, last: int, progress: Progress | None) -> tuple[int, bool]:
        """How many rows there are, and whether the graph of all of them was made."""
        outbox = self._outbox()
        rows = iter(self._services.commits.audit_rows(self._board_id))
        commits = 0
        while True:
            row: AuditRow | None = None
            good = False
            with self._reading(f"audit row {commits + 1} can't be read"):
                row = next(rows, None)
                good = True
            if not good:
                return commits, False
            if row is None:
                break
            commits += 1
            self._replay_one(row, commits, outbox)
            if self._replayed != commits:
                return commits, False
            if progress is not None:
                progress(commits, last)
        orphans = [] if outbox is None else [seq for seq in sorted(outbox) if seq > commits]
        self._findings += [f"an outbox record exists for commit {seq}, which has no audit row" for seq in orphans]
        if commits != last and not orphans:
            self._findings.append(f"the board counts {last} commits, and {commits} have an audit row")
        return commits, True

    def _replay_one(self, row: AuditRow, seq: int, outbox: Mapping[int, OutboxRecord | None] | None) -> None:
        with self._reading(f"commit {seq} can't be replayed from its audit row"):
            found = row["audit_row_id"]
            if found != seq:
                self._findings.append(f"audit row {seq} is missing: the next one is {found}")
                return
            plan = replay_row(row, self._graph, _no_vectors)
            self._graph.apply(plan)
            self._compare_row(row, plan)
            if outbox is not None:
                self._compare_record(seq, plan.event, outbox)
            self._replayed = seq

    def _compare_row(self, row: AuditRow, plan: CommitPlan) -> None:
        if row["board_id"] != self._board_id:
            self._findings.append(f"audit row {plan.seq} names another board")
        changed = [key for key in _DERIVED if row.get(key) != plan.audit.get(key)]
        if changed:
            self._findings.append(f"audit row {plan.seq} differs from what its commit did in {', '.join(changed)}")
        if plan.session is not None:
            self._hashes[plan.session.source.artifact] = plan.session.content_hash

    def _compare_record(self, seq: int, event: Mapping[str, Any], outbox: Mapping[int, OutboxRecord | None]) -> None:
        if seq not in outbox:
            self._findings.append(f"commit {seq} has no outbox record")
            return
        record = outbox[seq]
        if record is None:  # unreadable, and told so
            return
        if record.event != event:
            self._findings.append(f"the outbox record of commit {seq} holds another event than the commit made")
        if record.state not in {"applied", "published"}:
            self._findings.append(f"the outbox record of commit {seq} is in the state '{record.state}', though the commit was applied")

    def _outbox(self) -> dict[int, OutboxRecord | None] | None:
        """The records by commit; None for one that can't be read, and for the whole where nothing can."""
        records: dict[int, OutboxRecord | None] = {}
        last = 0
        for _ in range(_MAX_FINDINGS):
            try:
                for record in self._services.commits.outbox(self._board_id, after=last):
                    records[record.seq] = record
                    last = record.seq
            except PulseError as error:
                if error.retryable:
                    raise
                break
            except _DAMAGE as error:
                last += 1  # records have no gaps; where they have, the missing one is told too
                records[last] = None
                self._findings.append(f"outbox record {last} can't be read ({type(error).__name__})")
            else:
                return records
        self._findings.append("the outbox can't be read")
        return None

    def _compare_hashes(self) -> None:
        for artifact, expected in self._hashes.items():
            with self._reading(f"the last content hash of '{artifact.canonical}' can't be read"):
                if self._services.commits.last_hash(self._board_id, artifact) != expected:
                    self._findings.append(f"the last content hash of '{artifact.canonical}' is not that of its last commit")

    # The graph.

    def _nodes(self) -> list[Node]:
        """All nodes; where a damaged one breaks the walk, those that the audit rows know, one by one."""
        nodes = list[Node]()
        self._every_node = False
        with self._reading("the nodes can't be read as a whole"):
            nodes = list(self._services.graph.all_nodes(self._board_id))
            self._every_node = True
        if self._every_node:
            return nodes
        for node_id in sorted(self._graph.node_by_id):
            self._unread.add(node_id)
            with self._reading(f"node {node_id} can't be read"):
                nodes += self._services.graph.nodes(self._board_id, [node_id]).values()
                self._unread.remove(node_id)
        return nodes

    def _compare_nodes(self, nodes: Sequence[Node]) -> None:
        stored, made = {n.node_id: n for n in nodes}, self._graph.node_by_id
        for node_id in sorted((stored.keys() | made.keys()) - self._unread):
            node, expected = stored.get(node_id), made.get(node_id)
            if expected is None:
                self._findings.append(f"node {node_id} is in the graph, and no commit made it")
            elif node is None:
                self._findings.append(f"node {node_id} of commit {expected.created_seq} is not in the graph")
            elif _comparable(node) != _comparable(expected):
                left, right = _comparable(node), _comparable(expected)
                changed = [f for f in Node.__dataclass_fields__ if getattr(left, f) != getattr(right, f)]
                self._findings.append(f"node {node_id} differs from what its commits made of it in {', '.join(changed)}")

    def _compare_edges(self, edges: Sequence[Edge]) -> None:
        stored, made = {e.edge_id: e for e in edges}, self._graph.edge_by_id
        for edge_id in sorted(stored.keys() | made.keys()):
            edge, expected = stored.get(edge_id), made.get(edge_id)
            if expected is None:
                self._findings.append(f"edge {edge_id} is in the graph, and no commit made it")
            elif edge is None:
                self._findings.append(f"edge {edge_id} of commit {expected.commit_seq} is not in the graph")
            elif edge != expected:
                self._findings.append(f"edge {edge_id} differs from what its commit made")

    def _check_ends(self, edges: Sequence[Edge], nodes: Sequence[Node]) -> None:
        ids = {n.node_id for n in nodes}
        for edge in edges:
            self._findings += [f"edge {edge.edge_id} has an end {end} that is no node" for end in (edge.src, edge.dst) if end not in ids]

    # The vectors.

    def _compare_vectors(self, nodes: Sequence[Node]) -> int:
        searchable = {n.node_id: n for n in nodes if n.node_type in SEARCHABLE_TYPES}
        sizes: dict[str, int] = {}
        described = False
        with self._reading("what the vector index is can't be read"):
            sizes = {info.node_type: 4 * info.dim for info in self._services.vectors.describe(self._board_id)}
            described = True
        found, sound = set[str](), True
        with self._reading("the vectors can't be read"):
            for node_id, vector, live in self._services.vectors.all_vectors(self._board_id):
                found.add(node_id)
                node = searchable.get(node_id)
                if node is not None:
                    with self._reading(f"the vector of {node_id} can't be read"):
                        wrong = _wrong_with(vector, live, node, sizes.get(node.node_type))
                        self._findings += [f"the vector of {node_id} {problem}" for problem in wrong]
                        sound = sound and not wrong
                elif self._every_node:
                    self._findings.append(f"there is a vector of {node_id}, which is no searchable node")
            self._findings += [f"node {node_id} has no vector" for node_id in sorted(searchable.keys() - found)]
        if found and described and not sizes:
            self._findings.append("there are vectors, and it is not recorded which model made them")
        elif sound and sizes:
            self._compare_types([n for n in searchable.values() if n.node_id in found], sizes, len(found))
        return len(found)

    def _compare_types(self, nodes: Sequence[Node], sizes: Mapping[str, int], limit: int) -> None:
        """Searches each type for all that it has: a vector filed under another type is not among them."""
        if self._services.vectors.match_mode != "exact":
            return
        for node_type in SEARCHABLE_TYPES:
            wanted = {n.node_id for n in nodes if n.node_type == node_type}
            if not wanted:
                continue
            with self._reading(f"the vectors of the type {node_type} can't be searched"):
                anything = struct.pack("<f", 1.0).ljust(sizes[node_type], b"\0")
                (hits,) = self._services.vectors.nearest(self._board_id, node_type, [anything], limit=limit, live_only=False)
                missing = sorted(wanted - {hit.node_id for hit in hits})
                self._findings += [f"the vector of {node_id} is not filed under the node's type {node_type}" for node_id in missing]


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


def _wrong_with(vector: TextVector, live: bool, node: Node, size: int | None) -> list[str]:
    wrong = list[str]()
    if live != node.live:
        wrong.append(f"is marked as {'live' if live else 'superseded'}, the node is not")
    if vector.truncated != node.truncated:
        wrong.append("and the node disagree on whether the text was cut")
    if len(vector.vector) % 4 or (size is not None and len(vector.vector) != size):
        wrong.append(f"is damaged: it has {len(vector.vector)} bytes")
        return wrong
    numbers = struct.unpack(f"<{len(vector.vector) // 4}f", vector.vector)
    if not all(map(math.isfinite, numbers)):
        wrong.append("is damaged: it has numbers that are not finite")
    elif abs(math.sqrt(math.fsum(x * x for x in numbers)) - 1) > _NORM_TOLERANCE:
        wrong.append("is damaged: its length is not 1")
    return wrong
