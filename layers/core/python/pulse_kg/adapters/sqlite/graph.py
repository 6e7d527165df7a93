"""Nodes and edges."""

# ruff: noqa: S608 - statements are put together from constants of this module

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from pulse_kg.adapters.jsontext import id_list
from pulse_kg.adapters.sqlite import titles
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.rows import EDGE_FIELDS, NODE_EXTRAS, NODE_FIELDS, edge_of, node_of, row_of
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.plan import CommitPlan, Contradiction, Surroundings
from pulse_kg.domain.schema import NodeType
from pulse_kg.ports.graph import Survey, TitleMatch

_NODES: Final = "SELECT " + ", ".join(NODE_FIELDS) + " FROM nodes WHERE board_id = ?1"
_EDGES: Final = "SELECT " + ", ".join(EDGE_FIELDS) + " FROM edges WHERE board_id = ?1"
_LISTED: Final = " IN (SELECT value FROM json_each(?2))"

_NODE_COLUMNS: Final = (*NODE_FIELDS, *NODE_EXTRAS)
# A node's own commit_seq stays in an administrative commit, so that what guards a write is the number of the plan.
_PUT_NODE: Final = (
    "INSERT INTO nodes (" + ", ".join(_NODE_COLUMNS) + ") VALUES (?" + ", ?" * (len(_NODE_COLUMNS) - 1) + ") "
    "ON CONFLICT (board_id, node_id) DO UPDATE SET "
    + ", ".join(f"{c} = excluded.{c}" for c in _NODE_COLUMNS[2:])
    + " WHERE excluded.applied_seq > nodes.applied_seq"
)
_PUT_EDGE: Final = (
    "INSERT INTO edges (" + ", ".join(EDGE_FIELDS) + ") VALUES (?" + ", ?" * (len(EDGE_FIELDS) - 1) + ") "
    "ON CONFLICT (board_id, edge_id) DO NOTHING"
)
_PUT_RELEVANCE: Final = (
    "UPDATE nodes SET relevance_score = ?1, last_recomputed_at = ?2, applied_seq = ?3 "
    "WHERE board_id = ?4 AND node_id = ?5 AND applied_seq < ?3"
)

_OUT_DEGREES: Final = "SELECT src, count(*) FROM edges WHERE board_id = ?1 AND src" + _LISTED + " GROUP BY src"
_IN_DEGREES: Final = "SELECT dst, count(*) FROM edges WHERE board_id = ?1 AND dst" + _LISTED + " GROUP BY dst"
_CONTRADICTIONS: Final = (
    "SELECT e.dst, e.src, e.confidence, n.superseded_by IS NOT NULL OR n.revocation_reason IS NOT NULL OR n.status IS 'revoked' "
    "FROM edges e INDEXED BY edges_by_dst JOIN nodes n ON n.board_id = e.board_id AND n.node_id = e.src "
    "WHERE e.board_id = ?1 AND e.dst" + _LISTED + " AND e.rel_type = 'contradicts' ORDER BY e.src, e.edge_id"
)
_BETWEEN: Final = "SELECT edge_id FROM edges WHERE board_id = ?1 AND src" + _LISTED + " AND dst" + _LISTED
_SUPERSEDES_BELOW: Final = """
    WITH RECURSIVE below (node_id) AS (
        SELECT value FROM json_each(?2)
        UNION
        SELECT e.dst FROM below CROSS JOIN edges e ON e.board_id = ?1 AND e.src = below.node_id AND e.rel_type = 'supersedes'
    )
    SELECT e.src, e.dst FROM below CROSS JOIN edges e ON e.board_id = ?1 AND e.src = below.node_id AND e.rel_type = 'supersedes'
    ORDER BY e.src, e.dst
"""


class SqliteGraphStore:
    """The graph. Inside a turn of its thread it reads the state that the turn holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def nodes(self, board_id: str, node_ids: Collection[str]) -> dict[str, Node]:
        """See `GraphStore.nodes`; in the order of the ids."""
        found = self._nodes(_NODES + " AND node_id" + _LISTED + " ORDER BY node_id", board_id, node_ids)
        return {n.node_id: n for n in found}

    def with_digests(self, board_id: str, digests: Collection[str]) -> list[Node]:
        """See `GraphStore.with_digests`."""
        return self._nodes(_NODES + " AND content_digest" + _LISTED + " ORDER BY created_seq, node_id", board_id, digests)

    def with_refs(self, board_id: str, refs: Collection[str]) -> list[Node]:
        """See `GraphStore.with_refs`."""
        statement = _NODES + " AND source_ref" + _LISTED + " AND superseded_by IS NULL ORDER BY created_seq, node_id"
        return self._nodes(statement, board_id, refs)

    def _nodes(self, statement: str, board_id: str, listed: Collection[str]) -> list[Node]:
        if not listed:
            return []
        with self._database.reading() as connection:
            return [node_of(row, board_id) for row in connection.execute(statement, (board_id, id_list(listed)))]

    def survey(self, board_id: str, node_ids: Collection[str], *, digests: Collection[str] = (), refs: Collection[str] = ()) -> Survey:
        """See `GraphStore.survey`; all of one snapshot."""
        with self._database.reading() as connection:
            nodes = self.nodes(board_id, node_ids)
            between = connection.execute(_BETWEEN, (board_id, id_list(nodes)))
            return Survey(
                nodes=nodes,
                with_digests=self.with_digests(board_id, digests),
                with_refs=self.with_refs(board_id, refs),
                surroundings=self.surroundings(board_id, nodes) if nodes else {},
                edges_between=frozenset(edge_id for (edge_id,) in between),
            )

    def nearest_titles(self, board_id: str, node_type: NodeType, folded_title: str, *, limit: int, live_only: bool) -> list[TitleMatch]:
        """See `GraphStore.nearest_titles`."""
        if not folded_title or limit < 1:
            return []
        with self._database.reading() as connection:
            best = titles.nearest(connection, board_id, node_type, folded_title, limit=limit, live_only=live_only)
            nodes = self.nodes(board_id, [found.node_id for found in best])
        return [TitleMatch(nodes[found.node_id], -found.minus_score) for found in best if found.minus_score]

    def existing_edges(self, board_id: str, edge_ids: Collection[str]) -> frozenset[str]:
        """See `GraphStore.existing_edges`."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT edge_id FROM edges WHERE board_id = ?1 AND edge_id" + _LISTED, (board_id, id_list(edge_ids)))
            return frozenset(edge_id for (edge_id,) in rows)

    def surroundings(self, board_id: str, node_ids: Collection[str]) -> dict[str, Surroundings]:
        """See `GraphStore.surroundings`."""
        parameters = (board_id, id_list(node_ids))
        degrees: defaultdict[str, int] = defaultdict(int)
        contradictions: defaultdict[str, list[Contradiction]] = defaultdict(list)
        with self._database.reading() as connection:
            statement = "SELECT node_id FROM nodes WHERE board_id = ?1 AND node_id" + _LISTED + " ORDER BY node_id"
            existing = [node_id for (node_id,) in connection.execute(statement, parameters)]
            for statement in (_OUT_DEGREES, _IN_DEGREES):
                for node_id, count in connection.execute(statement, parameters):
                    degrees[node_id] += count
            for dst, src, confidence, resolved in connection.execute(_CONTRADICTIONS, parameters):
                contradictions[dst].append(Contradiction(src, confidence, bool(resolved)))
        return {n: Surroundings(degrees[n], tuple(contradictions[n])) for n in existing}

    def supersedes_below(self, board_id: str, node_ids: Collection[str]) -> Mapping[str, Sequence[str]]:
        """See `GraphStore.supersedes_below`."""
        below: dict[str, list[str]] = {}
        with self._database.reading() as connection:
            for src, dst in connection.execute(_SUPERSEDES_BELOW, (board_id, id_list(node_ids))):
                below.setdefault(src, []).append(dst)
        return below

    def edges_of(self, board_id: str, node_ids: Collection[str]) -> list[Edge]:
        """See `GraphStore.edges_of`."""
        ends = " UNION ".join("SELECT edge_id FROM edges WHERE board_id = ?1 AND " + end + _LISTED for end in ("src", "dst"))
        statement = _EDGES + " AND edge_id IN (" + ends + ") ORDER BY edge_id"
        with self._database.reading() as connection:
            return [edge_of(row, board_id) for row in connection.execute(statement, (board_id, id_list(node_ids)))]

    def all_nodes(self, board_id: str) -> Iterator[Node]:
        """See `GraphStore.all_nodes`; all of one snapshot."""
        return (node_of(row, board_id) for row in self._database.stream(_NODES + " ORDER BY node_id", (board_id,)))

    def all_edges(self, board_id: str) -> Iterator[Edge]:
        """See `GraphStore.all_edges`; all of one snapshot."""
        return (edge_of(row, board_id) for row in self._database.stream(_EDGES + " ORDER BY edge_id", (board_id,)))

    def counts(self, board_id: str) -> dict[str, int]:
        """See `GraphStore.counts`."""
        with self._database.reading() as connection:
            nodes, live = connection.execute(
                "SELECT count(*), count(*) - count(superseded_by) FROM nodes INDEXED BY nodes_by_title WHERE board_id = ?", (board_id,)
            ).fetchone()
            (edges,) = connection.execute("SELECT count(*) FROM edges WHERE board_id = ?", (board_id,)).fetchone()
        return {"nodes": nodes, "live_nodes": live, "edges": edges}

    def apply(self, plan: CommitPlan) -> None:
        """See `GraphStore.apply`."""
        nodes = [row_of(node, plan.seq) for node in plan.nodes]
        edges = [tuple(getattr(edge, name) for name in EDGE_FIELDS) for edge in plan.edges]
        relevances = [(w.relevance_score, w.recomputed_at, plan.seq, plan.board_id, w.node_id) for w in plan.relevances]
        with self._database.writing() as connection:
            connection.executemany(_PUT_NODE, nodes)
            connection.executemany(_PUT_EDGE, edges)
            connection.executemany(_PUT_RELEVANCE, relevances)
