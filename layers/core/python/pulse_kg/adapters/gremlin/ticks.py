"""The decay tick's reads and writes on a Gremlin server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pulse_kg.adapters.gremlin.connection import GremlinConnection, source
from pulse_kg.adapters.gremlin.elements import APPLIED_SEQ, NID, nid, nids, node_of, plain, stored, surroundings_of
from pulse_kg.adapters.gremlin.steps import Entry, VertexIds, anonymous, around_rows, visible_nodes
from pulse_kg.domain.ids import NODE_ID
from pulse_kg.domain.instants import Instant
from pulse_kg.ports.ticks import Rescored, Standing

BATCH: Final = 100
"""Nodes of a transaction: others wait for it no longer than for a commit's."""


class GremlinRelevanceStore:
    """The relevance of all nodes.

    Args:
        connection: To the server.
        applied: Gives the number of a board's last commit that is wholly applied; not one that a call remembers.
        vertex_ids: As `GremlinGraphStore` takes it.
    """

    def __init__(self, connection: GremlinConnection, *, applied: Callable[[str], int], vertex_ids: VertexIds = "property") -> None:
        self._connection, self._applied, self._entry = connection, applied, Entry(vertex_ids)

    def standings(self, board_id: str, *, after: str, at_a_time: int) -> Iterator[Sequence[Standing]]:
        """See `RelevanceStore.standings`; one request for the ids, and one for each portion."""
        ids = visible_nodes(source().V().has("board_id", board_id), board_id, self._applied(board_id)).values("node_id")
        wanted = sorted(node_id for node_id in self._connection.submit(ids) if node_id > after)
        for start in range(0, len(wanted), at_a_time):
            yield self._portion(board_id, wanted[start : start + at_a_time])

    def _portion(self, board_id: str, node_ids: Sequence[str]) -> list[Standing]:
        mark = self._applied(board_id)
        vertices = visible_nodes(self._entry.vertices(source(), nids(board_id, node_ids)), board_id, mark)
        found = []
        for row in self._connection.submit(around_rows(vertices, anonymous().value_map(), board_id, mark)):
            node, seen = node_of(row["vertex"], board_id), plain(row["vertex"][APPLIED_SEQ][0])
            # What a commit wrote that is not wholly there has edges that are not seen yet; the commit computes it.
            if seen <= mark:
                found.append(Standing(node, surroundings_of(row, board_id), seen))
        return sorted(found, key=lambda standing: standing.node.node_id)

    def rescore(self, board_id: str, rescored: Sequence[Rescored], *, at: Instant) -> int:
        """See `RelevanceStore.rescore`; in transactions of 100."""
        written = 0
        rows = [row for row in rescored if NODE_ID.fullmatch(row.node_id)]
        for start in range(0, len(rows), BATCH):
            branches = [self._rescore(board_id, row, at) for row in rows[start : start + BATCH]]
            written += len(self._connection.submit(source().inject(stored(1)).union(*branches)))
        return written

    def _rescore(self, board_id: str, row: Rescored, at: Instant) -> Any:
        from gremlin_python.process.traversal import Cardinality, P

        __ = anonymous()
        steps = self._entry.vertices(__, [nid(board_id, row.node_id)]).has(APPLIED_SEQ, stored(row.seen))
        steps = steps.not_(__.has("last_recomputed_at", P.gt(stored(at))))
        values = {"relevance_score": row.relevance_score, "query_hits": row.query_hits, "last_recomputed_at": at}
        if row.last_queried_at is not None:
            values["last_queried_at"] = row.last_queried_at
        for name, value in values.items():
            steps = steps.property(Cardinality.single, name, stored(value))
        return steps.values(NID)
