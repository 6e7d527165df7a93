"""A board that is too large to be loaded by sessions: its nodes and edges are written straight through the store's ports.

The generator's nodes and edges, as the sessions of a smaller board would have made them. The vectors are those of the smaller board's nodes
of the same type, one after the other, each with a little noise: to embed a hundred thousand texts takes a quarter of an hour.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any, Final

import numpy as np

from bench import synthetic
from bench.boards import LoadedBoard, digest, loaded
from bench.context import WORK, Context
from bench.world import BOARD, NewNode, make_boards, opened
from pulse_kg.domain import ids
from pulse_kg.domain.model import Edge, Node, TextVector, content_digest
from pulse_kg.domain.plan import CommitPlan, VectorWrite
from pulse_kg.domain.refs import Artifact, SourceRef
from pulse_kg.domain.schema import SEARCHABLE_TYPES, NodeType
from pulse_kg.ports.embedder import Embedder

SMALLER: Final = 10_000
"""Nodes of the board that the vectors are of."""
_WRITER: Final = 1  # to be raised when the same data are written otherwise
_AT_A_TIME: Final = 1_000
_NOISE: Final = 0.1  # length of what is added to a vector of length 1
_START: Final = 1_767_225_600_000  # 2026-01-01
_APART: Final = 60_000  # milliseconds between two nodes
_MADE: Final[Mapping[str, Any]] = {"created_by": "loader", "source_session_id": "kgs_large"}


def written(context: Context, size: int, embedder: Embedder) -> LoadedBoard:
    """A board of so many nodes, from an earlier run where there is one.

    Args:
        context: The run.
        size: How many nodes.
        embedder: The model of its vectors.
    """
    name = f"large-{size}-{_WRITER}-{digest(context, embedder)}"
    path, facts = WORK / f"{name}.db", WORK / f"{name}.json"
    if not (path.is_file() and facts.is_file()):
        source = loaded(context, SMALLER, embedder)
        making = context.scratch / path.name
        started = time.monotonic()
        made = _write(context, source, making, size, embedder)
        shutil.copyfile(making, path)
        making.unlink()
        facts.write_text(json.dumps({"ids": made, "seconds": round(time.monotonic() - started, 1)}), "utf-8")
    known = json.loads(facts.read_text("utf-8"))
    return LoadedBoard(size, path, known["ids"], known["seconds"])


def _write(context: Context, source: LoadedBoard, making: Any, size: int, embedder: Embedder) -> dict[str, str]:
    lines = synthetic.board(context, size)
    nodes, edges = graph_of(lines)
    vectors = _vectors(source, context, embedder)
    starting: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in edges:
        starting[edge.src].append(edge)
    with opened(making, embedder, create=True) as container, context.progress(f"writing a board of {size} nodes", size) as advance:
        make_boards(container, [BOARD])
        container.vectors.check_model(embedder.info())
        for seq, start in enumerate(range(0, len(nodes), _AT_A_TIME), 1):
            some = [replace(node, created_seq=seq, commit_seq=seq) for node in nodes[start : start + _AT_A_TIME]]
            writes = [
                VectorWrite(n.node_id, n.node_type, n.live, TextVector(next(vectors[n.node_type])))
                for n in some
                if n.node_type in SEARCHABLE_TYPES
            ]
            ending = [replace(edge, commit_seq=seq) for node in some for edge in starting[node.node_id]]
            plan = CommitPlan(BOARD, seq, _START, tuple(some), tuple(ending), tuple(writes), (), {}, {}, {})
            container.graph.apply(plan)
            container.vectors.apply(plan)
            for _ in some:
                advance()
    return {line.key: node.node_id for line, node in zip(lines, nodes, strict=True)}


def graph_of(lines: Sequence[NewNode]) -> tuple[list[Node], list[Edge]]:
    """Nodes and edges as sessions would have made them, in the order of the lines, superseded ones marked."""
    nodes = [_node(number, line) for number, line in enumerate(lines)]
    by_key = {line.key: node for line, node in zip(lines, nodes, strict=True)}
    edges: list[Edge] = []
    superseded: dict[str, Node] = {}
    for line, node in zip(lines, nodes, strict=True):
        for new in line.edges:
            other = by_key[new.to]
            rel_type: Any = new.rel_type
            key = ids.edge_id(BOARD, node.node_id, rel_type, other.node_id, equal_types=node.node_type == other.node_type)
            edges.append(Edge(BOARD, key, node.node_id, rel_type, other.node_id, node.created_at, commit_seq=0, **_MADE))
            if rel_type == "supersedes":
                superseded.setdefault(other.node_id, node)
    return [_after(node, superseded.get(node.node_id)) for node in nodes], edges


def _node(number: int, line: NewNode) -> Node:
    given = line.arguments
    node_type: NodeType = given["node_type"]
    at = _START + number * _APART
    ref = SourceRef(Artifact("spec", given["source_ref"]["spec_id"]), given["source_ref"]["section"])
    return Node(
        board_id=BOARD,
        node_id=ids.node_id(BOARD, "kgs_large", ids.candidate_id(number), node_type),
        node_type=node_type,
        title=given["title"],
        body=given["body"],
        attributes=given["attributes"],
        source_ref=ref.canonical,
        artifact=ref.artifact.canonical,
        artifact_version=1,
        created_seq=0,
        commit_seq=0,
        version=1,
        content_digest=content_digest(node_type, given["title"], given["body"], given["attributes"]),
        created_at=at,
        updated_at=at,
        confidence=given["attributes"]["confidence"],
        relevance_score=0.5,
        status="active" if node_type == "Decision" else None,
        **_MADE,
    )


def _after(node: Node, newer: Node | None) -> Node:
    if newer is None:
        return node
    status = "superseded" if node.node_type == "Decision" else None
    return replace(node, superseded_by=newer.node_id, superseded_at=newer.created_at, status=status)


def _vectors(source: LoadedBoard, context: Context, embedder: Embedder) -> dict[NodeType, Iterator[bytes]]:
    """For each type vectors without end."""
    by_type: defaultdict[NodeType, list[bytes]] = defaultdict(list)
    with opened(source.copy(context), embedder) as container:
        types = {node.node_id: node.node_type for node in container.graph.all_nodes(BOARD)}
        for node_id, vector, _ in container.vectors.all_vectors(BOARD):
            by_type[types[node_id]].append(vector.vector)
    generator = np.random.default_rng(synthetic.SEED)
    return {node_type: _blurred(found, generator) for node_type, found in by_type.items()}


def _blurred(vectors: Sequence[bytes], generator: np.random.Generator) -> Iterator[bytes]:
    for vector in cycle(vectors):
        found = np.frombuffer(vector, "<f4")
        noise = generator.standard_normal(len(found)).astype("<f4")
        moved = found + _NOISE * noise / np.linalg.norm(noise)
        yield (moved / np.linalg.norm(moved)).astype("<f4").tobytes()
