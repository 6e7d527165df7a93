"""A board as the query engine sees it, on a Gremlin server: the server fetches, and what a query means is none of its business."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from pulse_kg.adapters.gremlin import errors
from pulse_kg.adapters.gremlin.connection import GremlinConnection, source
from pulse_kg.adapters.gremlin.elements import NID, check_tenant, nid, nids, plain
from pulse_kg.adapters.gremlin.steps import Entry, VertexIds, anonymous, visible_edges, visible_nodes
from pulse_kg.adapters.properties import (
    ATTRIBUTES,
    CURATED,
    ID,
    LABELS,
    STATUS,
    TEXTS,
    EdgeView,
    NodeView,
    attribute_text,
    hops,
    in_order,
    known,
    sound,
    storable,
)
from pulse_kg.domain.schema import NODE_TYPES
from pulse_kg.ports.graph_source import Direction, GraphCounts, GraphEdge, GraphNode, Hop, Need

ASKED_AT_ONCE: Final = 256
"""Ids of one request."""
COUNTED_BOARDS: Final = 256
"""Boards whose counts are kept."""

_NODE_KEYS: Final = ("board_id", "node_id", "node_type", "created_seq")
_EDGE_KEYS: Final = ("board_id", "edge_id", "commit_seq")
_NODE_KEYS_SET, _EDGE_KEYS_SET = frozenset(_NODE_KEYS), frozenset(_EDGE_KEYS)

_log = logging.getLogger(__name__)


class GremlinGraphSource:
    """One board. Each read is one request, but `get` and `expand` one for each 256 ids; all of a read is in memory at once.

    Consistency: nothing of a commit after the mark is seen. A node that a running commit changes in place may be seen changed.
    Tenancy: an edge whose end is on another board is left out, with a warning in the log.

    Args:
        connection: To the server.
        board_id: The board.
        mark: The number of its last commit that is wholly applied; 0 before the first.
        vertex_ids: Where the key of a vertex is.
        counted: What `counts` found before, by board and with the mark; shared by sources.
    """

    def __init__(
        self,
        connection: GremlinConnection,
        board_id: str,
        mark: int,
        *,
        vertex_ids: VertexIds = "property",
        counted: dict[str, tuple[int, GraphCounts]] | None = None,
    ) -> None:
        self._connection, self._board_id, self._mark = connection, board_id, mark
        self._entry = Entry(vertex_ids)
        self._counted = {} if counted is None else counted

    @property
    def id_key(self) -> str:
        """See `GraphSource.id_key`."""
        return ID

    def scan(self, label: str | None, equals: Mapping[str, Any], need: Need) -> Iterable[GraphNode]:
        """See `GraphSource.scan`."""
        vertices, view = self._equal(equals), NodeView(need)
        if vertices is None or not (label is None or label in NODE_TYPES):
            return []
        if label is not None:
            vertices = vertices.has("node_type", label)
        rows = self._connection.submit(_node_rows(self._visible(vertices), view))
        return list(self._nodes(rows, view).values())

    def get(self, node_ids: Collection[str], need: Need) -> dict[str, GraphNode]:
        """See `GraphSource.get`; in the order of the ids."""
        view, found = NodeView(need), dict[str, GraphNode]()
        for some in _batches(node_ids):
            vertices = self._entry.vertices(source(), nids(self._board_id, some))
            rows = self._connection.submit(_node_rows(self._visible(vertices), view))
            found |= self._nodes(rows, view)
        return found

    def expand(
        self, node_ids: Collection[str], direction: Direction, rel_types: Collection[str] | None, edge_need: Need, node_need: Need
    ) -> list[Hop]:
        """See `GraphSource.expand`; for each 256 ids a node comes once over the wire, however many edges lead to it."""
        types, edge_view, node_view, __ = known(rel_types), EdgeView(edge_need), NodeView(node_need), anonymous()
        labels = () if rel_types is None else types
        found: list[Hop] = []
        for some in _batches(node_ids if types else ()):
            edges, far = [], []
            if direction != "in":
                edges.append(self._seen(__.out_e(*labels)))
                far.append(self._seen(__.out_e(*labels)).in_v())
            if direction != "out":
                edges.append(self._seen(__.in_e(*labels)))
                far.append(self._seen(__.in_e(*labels)).out_v())
            near = [self._visible(self._entry.vertices(__, nids(self._board_id, some))) for _ in range(2)]
            fetched = self._fetched(near[0].union(*edges).dedup(), edge_view, near[1].union(*far).dedup(), node_view)
            found += hops(fetched[0], direction, frozenset(some), fetched[1])
        return in_order(found)

    def edges(
        self, rel_types: Collection[str] | None, edge_need: Need, node_need: Need
    ) -> Iterable[tuple[GraphNode, GraphEdge, GraphNode]]:
        """See `GraphSource.edges`; the server looks at every node of the board."""
        types, __ = known(rel_types), anonymous()
        if not types:
            return []

        def board() -> Any:
            return __.V().has("board_id", self._board_id)

        edges = self._seen(board().out_e(*(() if rel_types is None else types)))
        ends = board() if rel_types is None else self._seen(board().out_e(*types)).both_v().dedup()
        found, nodes = self._fetched(edges, EdgeView(edge_need), ends, NodeView(node_need))
        whole = [edge for edge in found if edge.src in nodes and edge.dst in nodes]
        whole.sort(key=lambda edge: (edge.src, edge.rel_type, edge.edge_id))
        return [(nodes[edge.src], edge, nodes[edge.dst]) for edge in whole]

    def counts(self) -> GraphCounts:
        """See `GraphSource.counts`; exact. The server looks at every node of the board, but once for each of its commits."""
        mark, counts = self._counted.get(self._board_id, (-1, GraphCounts({})))
        if mark != self._mark:
            vertices = self._visible(source().V().has("board_id", self._board_id))
            (found,) = self._connection.submit(vertices.group_count().by("node_type"))
            counts = GraphCounts({node_type: int(found[node_type]) for node_type in sorted(found)}, exact=True)
            if len(self._counted) >= COUNTED_BOARDS:
                self._counted.clear()
            self._counted[self._board_id] = (self._mark, counts)
        return counts

    def _visible(self, vertices: Any) -> Any:
        return visible_nodes(vertices, self._board_id, self._mark)

    def _seen(self, edges: Any) -> Any:
        return visible_edges(edges, self._board_id, self._mark)

    def _fetched(self, edges: Any, edge_view: EdgeView, vertices: Any, node_view: NodeView) -> tuple[list[GraphEdge], dict[str, GraphNode]]:
        """Edges and nodes by one request."""
        asked = (
            source()
            .inject(1)
            .union(_named("edge", _edge_rows(edges, edge_view)), _named("node", _node_rows(self._visible(vertices), node_view)))
        )
        rows = self._connection.submit(asked)
        nodes = self._nodes([row["row"] for row in rows if row["kind"] == "node"], node_view)
        return self._edges([row["row"] for row in rows if row["kind"] == "edge"], edge_view), nodes

    def _nodes(self, rows: Iterable[Mapping[str, Any]], view: NodeView) -> dict[str, GraphNode]:
        """The nodes of value maps, in the order of the ids.

        Raises:
            GraphRefused: One is of another board, or not whole.
        """
        found = {}
        for row in rows:
            values = {name: plain(value[0]) for name, value in row.items()}
            if "board_id" not in values:
                continue  # JanusGraph may answer a key that it has not with a vertex of no properties
            if not values.keys() >= _NODE_KEYS_SET or (ATTRIBUTES in view.columns and ATTRIBUTES not in values):
                raise errors.damaged()
            check_tenant(values["board_id"], self._board_id)
            if values["created_seq"] <= self._mark:
                node_id = values["node_id"]
                properties = view.properties(node_id, [values.get(name) for name in view.columns])
                found[node_id] = GraphNode(node_id, LABELS[values["node_type"]], properties)
        return {node_id: found[node_id] for node_id in sorted(found)}

    def _edges(self, rows: Iterable[Mapping[str, Any]], view: EdgeView) -> list[GraphEdge]:
        """The edges, each once.

        Raises:
            GraphRefused: One is of another board, or not whole.
        """
        found, foreign = dict[str, GraphEdge](), set[str]()
        for row in rows:
            values = {name: plain(value) for name, value in row["edge"].items()}
            if not values.keys() >= _EDGE_KEYS_SET:
                raise errors.damaged()
            check_tenant(values["board_id"], self._board_id)
            if values["commit_seq"] > self._mark:
                continue
            edge_id, src, dst = values["edge_id"], self._own(row.get("src")), self._own(row.get("dst"))
            if src is None or dst is None:
                foreign.add(edge_id)
                continue
            found[edge_id] = GraphEdge(
                edge_id, row["rel_type"], src, dst, view.properties(edge_id, [values.get(name) for name in view.columns])
            )
        if foreign:
            _log.warning("%d edges of the board %s do not lead to nodes of it, and were left out", len(foreign), self._board_id)
        return list(found.values())

    def _own(self, key: str | None) -> str | None:
        """The id in the key of a vertex; None for one of another board, and for one without a key."""
        prefix = nid(self._board_id, "")
        found = sound([key.removeprefix(prefix)]) if key is not None and key.startswith(prefix) else []
        return found[0] if found else None

    def _equal(self, equals: Mapping[str, Any]) -> Any:
        """Vertices of the board, without some that have other values; None where nothing can equal one of them."""
        if any(isinstance(value, str) and not storable(value) for value in equals.values()):
            return None
        vertices = source().V().has("board_id", self._board_id)
        if isinstance(named := equals.get(ID), str):
            keys = nids(self._board_id, [named])
            if not keys:
                return None
            vertices = self._entry.vertices(source(), keys)
        for name, value in equals.items():
            if (isinstance(value, str) and name in TEXTS) or (isinstance(value, bool) and name == CURATED):
                vertices = vertices.has(name, value)
            elif name == STATUS and isinstance(value, str):
                vertices = vertices.or_(anonymous().has(name, value), _with_attribute(name, value))
            elif attribute_text(name, value) is not None:
                vertices = vertices.filter_(_with_attribute(name, value))
        return vertices


class GremlinGraphSources:
    """See `GraphSources`.

    Args:
        connection: To the server.
        applied: Gives the number of a board's last commit that is wholly applied; 0 before the first.
        vertex_ids: Where the key of a vertex is.
    """

    def __init__(self, connection: GremlinConnection, *, applied: Callable[[str], int], vertex_ids: VertexIds = "property") -> None:
        self._connection, self._applied, self._vertex_ids = connection, applied, vertex_ids
        self._counted: dict[str, tuple[int, GraphCounts]] = {}

    def of(self, board_id: str) -> GremlinGraphSource:
        """See `GraphSources.of`; it asks for the applied mark."""
        mark = self._applied(board_id)
        return GremlinGraphSource(self._connection, board_id, mark, vertex_ids=self._vertex_ids, counted=self._counted)


def _node_rows(vertices: Any, view: NodeView) -> Any:
    return vertices.value_map(*dict.fromkeys(_NODE_KEYS + view.columns))


def _edge_rows(edges: Any, view: EdgeView) -> Any:
    """Ends by their keys, which tell the board."""
    from gremlin_python.process.traversal import T

    __ = anonymous()
    return (
        edges.project("edge", "rel_type", "src", "dst")
        .by(__.value_map(*dict.fromkeys(_EDGE_KEYS + view.columns)))
        .by(T.label)
        .by(__.out_v().values(NID))
        .by(__.in_v().values(NID))
    )


def _named(kind: str, rows: Any) -> Any:
    __ = anonymous()
    return rows.project("kind", "row").by(__.constant(kind)).by(__.identity())


def _with_attribute(name: str, value: object) -> Any:
    from gremlin_python.process.traversal import TextP

    return anonymous().values(ATTRIBUTES).is_(TextP.containing(attribute_text(name, value)))


def _batches(node_ids: Collection[str]) -> Iterator[list[str]]:
    rest = iter(sound(node_ids))
    while some := list(islice(rest, ASKED_AT_ONCE)):
        yield some
