"""Reads back what the demo left on its board, and checks it against what the documents say."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.bootstrap import Container
from pulse_kg.cli.peps import Document
from pulse_kg.cli.story import STORY, GiveUp, Read, label
from pulse_kg.cli.story_run import Checks
from pulse_kg.domain.model import Edge, Node
from pulse_kg.usecases.verify import verify_board

_EVENT: Final = "kg.consolidated.v1"


@dataclass(frozen=True)
class Branch:
    """A decision with what hangs on it.

    Attributes:
        name: `PEP 8`.
        title: Its title.
        year: When it was decided.
        state: `in force`, `revoked` or `history`.
        supersedes: What it superseded, newest first.
        depends_on: The decisions that it depends on, as `PEP 8 title`.
        contradicts: Those that it contradicts, in the same form.
        alternatives: What it considered and discarded: title and reason.
    """

    name: str
    title: str
    year: str
    state: str
    supersedes: tuple[Branch, ...]
    depends_on: tuple[str, ...]
    contradicts: tuple[str, ...]
    alternatives: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Graph:
    """The board as it was left.

    Attributes:
        branches: The decisions that nothing supersedes, oldest first.
        counts: Nodes and edges by kind.
        row: The audit row of the overridden proposal.
    """

    branches: tuple[Branch, ...]
    counts: dict[str, int]
    row: Mapping[str, Any]


def read_graph(container: Container, board: str, names: Mapping[str, str], override_row: int) -> Graph:
    """Reads the board.

    Args:
        container: The store.
        board: The board.
        names: Node id → document.
        override_row: The number of the audit row to show.
    """
    nodes = {n.node_id: n for n in container.graph.all_nodes(board)}
    edges = list(container.graph.all_edges(board))
    out: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for edge in edges:
        out[edge.src, edge.rel_type].append(nodes[edge.dst])
    heads = sorted((n for n in nodes.values() if n.node_type == "Decision" and n.live), key=_decided)
    branches = tuple(_branch(node, out, names) for node in heads)
    counts = {
        "decisions": sum(n.node_type == "Decision" for n in nodes.values()),
        "alternatives": sum(n.node_type == "Alternative" for n in nodes.values()),
        **{rel: sum(e.rel_type == rel for e in edges) for rel in ("supersedes", "depends_on", "contradicts", "relates_to")},
    }
    return Graph(branches, counts, container.commits.audit_row(board, override_row) or {})


def _decided(node: Node) -> tuple[str, int, str]:
    # The alternatives of a document have no date, but are numbered at the end of their reference.
    number = re.search(r"\d*\Z", node.source_ref)
    return str(node.attributes.get("decided_at", "")), int(number[0] or 0) if number else 0, node.node_id


def _branch(node: Node, out: Mapping[tuple[str, str], list[Node]], names: Mapping[str, str]) -> Branch:
    def of(rel: str) -> list[Node]:
        return sorted(out.get((node.node_id, rel), ()), key=_decided)

    return Branch(
        name=names.get(node.node_id, node.node_id),
        title=node.title,
        year=_decided(node)[0][:4],
        state="history" if not node.live else "revoked" if node.revoked else "in force",
        supersedes=tuple(_branch(old, out, names) for old in reversed(of("supersedes"))),
        depends_on=tuple(f"{names.get(n.node_id, n.node_id)} {n.title}" for n in of("depends_on")),
        contradicts=tuple(f"{names.get(n.node_id, n.node_id)} {n.title}" for n in of("contradicts")),
        alternatives=tuple((n.title, str(n.attributes.get("reason_discarded", ""))) for n in of("relates_to")),
    )


def check_graph(
    container: Container, board: str, documents: Mapping[int, Document], node_of: Mapping[int, str], commits: int, checks: Checks
) -> None:
    """Checks the board against what was read, by other ways than those that wrote it."""
    nodes = {n.node_id: n for n in container.graph.all_nodes(board)}
    edges = list(container.graph.all_edges(board))
    read = {s.pep for s in _scenes() if isinstance(s, Read)} | set(node_of)
    given_up = {s.pep for s in _scenes() if isinstance(s, GiveUp)}
    expect = checks.expect
    expected = len(read) + sum(len(documents[pep].rejected) for pep in read)
    expect(f"The board has {expected} nodes: each statement once.", holds=len(nodes) == expected, seen=len(nodes))
    _check_edges(edges, documents, read, node_of, checks)
    successor = {dst: src for src, dst in stated("supersedes")}
    for pep, node_id in sorted(node_of.items()):
        by = node_of[successor[pep]] if pep in successor else None
        seen = nodes[node_id].superseded_by if node_id in nodes else "no such node"
        expect(f"{label(pep)} is superseded by {label(successor[pep]) if by else 'nothing'}.", holds=seen == by, seen=seen)
    revoked = {pep for pep, node_id in node_of.items() if node_id in nodes and nodes[node_id].live and nodes[node_id].revoked}
    taken_back = {pep for pep in read if documents[pep].status in ("Rejected", "Withdrawn") and pep not in successor}
    expect("What was rejected or withdrawn is marked as revoked.", holds=revoked == taken_back, seen=sorted(revoked ^ taken_back))
    leaked = [n.title for n in nodes.values() if any(documents[pep].spec_id in n.source_ref for pep in given_up)]
    expect("Nothing is left of the aborted session.", holds=not leaked, seen=leaked)
    _check_log(container, board, commits, checks)


def _check_edges(
    edges: Iterable[Edge], documents: Mapping[int, Document], read: Iterable[int], node_of: Mapping[int, str], checks: Checks
) -> None:
    edges = list(edges)
    for rel in ("supersedes", "depends_on", "contradicts"):
        wanted = {(node_of[src], node_of[dst]) for src, dst in stated(rel)}
        seen = {(e.src, e.dst) for e in edges if e.rel_type == rel}
        checks.expect(f"The {rel} edges are those that the documents say.", holds=seen == wanted, seen=sorted(seen ^ wanted))
    discarded = sum(len(documents[pep].rejected) for pep in read)
    related = sum(e.rel_type == "relates_to" for e in edges)
    checks.expect(f"{discarded} rejected alternatives hang on their decisions.", holds=related == discarded, seen=related)


def _check_log(container: Container, board: str, commits: int, checks: Checks) -> None:
    rows = [row["audit_row_id"] for row in container.commits.audit_rows(board)]
    checks.expect(f"The audit log has the rows 1 to {commits}, without a gap.", holds=rows == list(range(1, commits + 1)), seen=rows)
    records = list(container.commits.outbox(board))
    events = [record.seq for record in records if record.event.get("type") == _EVENT]
    checks.expect("There is one event for each commit, in order.", holds=events == rows, seen=events)
    checks.expect("Every event is ready to be published.", holds=all(r.state != "decided" for r in records))
    found = verify_board(board, container.services)
    checks.expect("Replaying the audit log gives this graph, to the last node and edge.", holds=found.clean, seen=list(found.findings))


def stated(rel: str) -> list[tuple[int, int]]:
    """The pairs of documents that the story joins by supersedes, depends_on or contradicts; the newer, or dependent, one first."""
    pairs: list[tuple[int, int]] = []
    for scene in _scenes():
        if isinstance(scene, Read):
            pairs += {"supersedes": scene.supersedes, "depends_on": scene.depends_on, "contradicts": scene.contradicts}[rel]
            if rel == "supersedes" and scene.by_rule is not None:
                pairs.append((scene.pep, scene.by_rule))
    return pairs


def _scenes() -> Iterator[Any]:
    for chapter in STORY:
        yield from chapter.scenes
