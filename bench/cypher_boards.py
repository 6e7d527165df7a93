"""The boards that the benchmark of the query engine asks: all edges of the generator, two a node, and no vectors."""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import graphdblite

from bench import synthetic
from bench.boards import LoadedBoard, digest
from bench.context import WORK, Context
from bench.large import graph_of
from bench.served.world import World
from bench.world import BOARD, NewNode, make_boards, opened
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.plan import CommitPlan

_WRITER: Final = 1  # to be raised when the same data are written otherwise
_AT_A_TIME: Final = 1_000
_COMMITTED: Final = 1_767_225_600_000  # 2026-01-01


@dataclass(frozen=True)
class Graph:
    """A board before it is written.

    Attributes:
        lines: Its nodes as the generator gave them.
        nodes: The same as a commit makes them, in their order.
        edges: All of them.
    """

    lines: Sequence[NewNode]
    nodes: Sequence[Node]
    edges: Sequence[Edge]

    @property
    def ids(self) -> dict[str, str]:
        """Key in the data → id."""
        return {line.key: node.node_id for line, node in zip(self.lines, self.nodes, strict=True)}

    def plans(self, board_id: str) -> list[CommitPlan]:
        """The commits that write it."""
        starting: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in self.edges:
            starting[edge.src].append(edge)
        plans = []
        for seq, start in enumerate(range(0, len(self.nodes), _AT_A_TIME), 1):
            some = self.nodes[start : start + _AT_A_TIME]
            nodes = tuple(replace(node, board_id=board_id, created_seq=seq, commit_seq=seq) for node in some)
            edges = tuple(replace(edge, board_id=board_id, commit_seq=seq) for node in some for edge in starting[node.node_id])
            plans.append(CommitPlan(board_id, seq, _COMMITTED, nodes, edges, (), (), {}, {}, {}))
        return plans


def graph(context: Context, size: int) -> Graph:
    """The graph of so many nodes."""
    lines = synthetic.board(context, size, every_edge=True)
    return Graph(lines, *graph_of(lines))


def written(context: Context, size: int) -> LoadedBoard:
    """A store's file with such a board, from an earlier run where there is one."""
    embedder = HashingEmbedder()
    name = f"cypher-{size}-{_WRITER}-{digest(context, embedder)}"
    path, facts = WORK / f"{name}.db", WORK / f"{name}.json"
    if not (path.is_file() and facts.is_file()):
        making, started, made = context.scratch / path.name, time.monotonic(), graph(context, size)
        plans = made.plans(BOARD)
        with (
            opened(making, embedder, create=True) as container,
            context.progress(f"writing a board of {size} nodes", len(plans)) as advance,
        ):
            make_boards(container, [BOARD])
            for plan in plans:
                container.graph.apply(plan)
                advance()
        shutil.copyfile(making, path)
        making.unlink()
        facts.write_text(json.dumps({"ids": made.ids, "seconds": round(time.monotonic() - started, 1)}), "utf-8")
    known = json.loads(facts.read_text("utf-8"))
    return LoadedBoard(size, path, known["ids"], known["seconds"])


def written_to_servers(world: World, size: int) -> tuple[str, int, dict[str, str]]:
    """Writes such a board into the graph server; gives its id, the number of its last commit, and key in the data → id."""
    made, board_id = graph(world.context, size), world.new_board(f"cypher_{size}")
    plans = made.plans(board_id)
    with world.opened() as target, world.context.progress(f"a board of {size} nodes into the servers", len(plans)) as advance:
        for plan in plans:
            target.store.graph.apply(plan)
            advance()
    return board_id, len(plans), made.ids


def written_elsewhere(context: Context, size: int) -> graphdblite.Database:
    """The same graph in the other engine, with an index on the ids, of what the queries ask for."""
    made = graph(context, size)
    database = graphdblite.Database(str(context.scratch / f"other-{size}.db"))
    types = {node.node_id: node.node_type for node in made.nodes}
    with database.begin_write() as writing:
        for label, rows in _by_label(made.nodes):
            writing.execute(f"UNWIND $rows AS row CREATE (n:{label} {{id: row.id, title: row.title}})", {"rows": rows})
    for label in sorted(set(types.values())):
        database.execute(f"CREATE INDEX ON :{label}(id)")
    with context.progress(f"{size} nodes into the other engine", len(made.edges)) as advance, database.begin_write() as writing:
        for edge in made.edges:
            ends = f"(a:{types[edge.src]} {{id: $src}}), (b:{types[edge.dst]} {{id: $dst}})"
            writing.execute(f"MATCH {ends} CREATE (a)-[:{edge.rel_type}]->(b)", {"src": edge.src, "dst": edge.dst})
            advance()
    return database


def _by_label(nodes: Sequence[Node]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for node in nodes:
        found[node.node_type].append({"id": node.node_id, "title": node.title})
    for label, rows in found.items():
        for start in range(0, len(rows), _AT_A_TIME):
            yield label, rows[start : start + _AT_A_TIME]
