"""A board as the query engine sees it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from sqlite3 import Connection
from typing import Any, Final

from pulse_kg.adapters.jsontext import id_list
from pulse_kg.adapters.properties import (
    BARE,
    CURATED,
    ID,
    LABELS,
    NUMBERS,
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
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.rows import check_tenant
from pulse_kg.domain.schema import NODE_TYPES
from pulse_kg.ports.graph_source import Direction, GraphCounts, GraphEdge, GraphNode, Hop, Need

FIRST_PAGE, LATER_PAGES = 256, 2_048
"""Elements that are read at once: few, where the reader stops soon, and then many."""

_MOST_BITS: Final = 63

_OF_RELS: Final = " AND e.rel_type IN (SELECT value FROM json_each(:rel_types))"
# CROSS JOIN: from the ids to the rows, for no table has statistics that would tell the planner so.
_NODES: Final = (
    "SELECT n.board_id, n.node_id, n.node_type{columns} "
    "FROM json_each(:ids) AS a CROSS JOIN nodes n ON n.board_id = :board AND n.node_id = a.value"
)
_NODES_AFTER: Final = (
    "SELECT n.board_id, n.node_id, n.node_type{columns} "
    "FROM nodes n WHERE n.board_id = :board AND n.node_id > :after ORDER BY n.node_id LIMIT :size"
)
_IDS: Final = "SELECT n.node_id, n.node_type FROM nodes n WHERE n.board_id = :board"
_EDGES: Final = "SELECT e.board_id, e.edge_id, e.rel_type, e.src, e.dst{columns} FROM "
_EDGES_AT: Final = _EDGES + "json_each(:ids) AS a CROSS JOIN edges e ON e.board_id = :board AND e.{near} = a.value{rels}"
_EDGES_OF_PAGE: Final = (
    _EDGES + "edges e WHERE e.board_id = :board AND e.src > :after AND e.src <= :last{rels} ORDER BY e.src, e.rel_type, e.edge_id"
)
_END_OF_PAGE: Final = "SELECT e.src FROM edges e WHERE e.board_id = :board AND e.src > :after{rels} ORDER BY e.src LIMIT 1 OFFSET :edges"
_LAST: Final = "SELECT max(src) FROM edges WHERE board_id = :board"
_COUNTS: Final = "SELECT node_type, count(*) FROM nodes WHERE board_id = :board GROUP BY node_type ORDER BY node_type"

_NEAR: Final[Mapping[Direction, tuple[str, ...]]] = {"out": ("src",), "in": ("dst",), "both": ("src", "dst")}


class SqliteGraphSource:
    """One board. `scan` and `edges` read some elements at a time, as their results are taken.

    Consistency: that of the transaction around the reads, for which `Services.snapshot` is.

    Args:
        database: The store.
        board_id: The board.
    """

    def __init__(self, database: Database, board_id: str) -> None:
        self._database, self._board_id = database, board_id

    @property
    def id_key(self) -> str:
        """See `GraphSource.id_key`."""
        return ID

    def scan(self, label: str | None, equals: Mapping[str, Any], need: Need) -> Iterator[GraphNode]:
        """See `GraphSource.scan`."""
        filtered, view = _Filter(equals), NodeView(need)
        if filtered.impossible or not (label is None or label in NODE_TYPES):
            return
        if label is None and not equals and view.columns:
            yield from self._whole(view)
            return
        statement = _IDS + filtered.conditions + ("" if label is None else " AND n.node_type = :label")
        with self._database.reading() as connection:
            # In no order: the planner would take the index that has it, and read the whole board.
            rows = connection.execute(statement, {"board": self._board_id, "label": label, **filtered.parameters}).fetchall()
        if not view.columns:
            bare = view.bare
            for node_id, node_type in sorted(rows):
                yield GraphNode(node_id, LABELS[node_type], BARE if bare else view.properties(node_id, ()))
            return
        node_ids, start, size = sorted(node_id for node_id, _ in rows), 0, FIRST_PAGE
        while start < len(node_ids):
            yield from self._nodes(node_ids[start : start + size], view).values()
            start, size = start + size, LATER_PAGES

    def _whole(self, view: NodeView) -> Iterator[GraphNode]:
        """All nodes of the board, by id."""
        after, size = "", FIRST_PAGE
        while page := self._read(_NODES_AFTER, {"after": after, "size": size}, view):
            yield from page.values()
            after, size = next(reversed(page)), LATER_PAGES

    def get(self, node_ids: Collection[str], need: Need) -> dict[str, GraphNode]:
        """See `GraphSource.get`; in the order of the ids."""
        return self._nodes(sound(node_ids), NodeView(need))

    def expand(
        self, node_ids: Collection[str], direction: Direction, rel_types: Collection[str] | None, edge_need: Need, node_need: Need
    ) -> list[Hop]:
        """See `GraphSource.expand`."""
        near, types, view = frozenset(sound(node_ids)), known(rel_types), EdgeView(edge_need)
        if not near or not types:
            return []
        statements = [_statement(_EDGES_AT, view, rel_types, near=end) for end in _NEAR[direction]]
        parameters = {"board": self._board_id, "ids": id_list(sorted(near)), "rel_types": id_list(types)}
        edges: dict[str, GraphEdge] = {}
        with self._database.reading() as connection:
            for statement in statements:
                edges |= {edge.edge_id: edge for edge in self._edges(connection, statement, parameters, view)}
            far = {edge.dst for edge in edges.values()} if direction != "in" else set()
            far |= {edge.src for edge in edges.values()} if direction != "out" else set()
            nodes = self._nodes(sorted(far), NodeView(node_need))
        return in_order(hops(edges.values(), direction, near, nodes))

    def edges(
        self, rel_types: Collection[str] | None, edge_need: Need, node_need: Need
    ) -> Iterator[tuple[GraphNode, GraphEdge, GraphNode]]:
        """See `GraphSource.edges`."""
        types, view, node_view = known(rel_types), EdgeView(edge_need), NodeView(node_need)
        page, end_of_page = (_statement(text, view, rel_types) for text in (_EDGES_OF_PAGE, _END_OF_PAGE))
        parameters = {"board": self._board_id, "rel_types": id_list(types), "after": "", "last": ""}
        nodes: dict[str, GraphNode] = {}
        size, last = FIRST_PAGE, self._last_start() if types else ""
        while parameters["after"] < last:
            with self._database.reading() as connection:
                row = connection.execute(end_of_page, {**parameters, "edges": size}).fetchone()
                parameters["last"] = last if row is None else row[0]
                edges = list(self._edges(connection, page, parameters, view))
                ends = {edge.src for edge in edges} | {edge.dst for edge in edges}
                nodes |= self._nodes(sorted(ends - nodes.keys()), node_view)
            for edge in edges:
                yield nodes[edge.src], edge, nodes[edge.dst]
            if size == FIRST_PAGE and rel_types is None and not node_view.columns:
                nodes = {node.node_id: node for node in self.scan(None, {}, node_need)}  # an index has them, all at once
            size, parameters["after"] = LATER_PAGES, parameters["last"]

    def counts(self) -> GraphCounts:
        """See `GraphSource.counts`; exact."""
        with self._database.reading() as connection:
            return GraphCounts(dict(connection.execute(_COUNTS, {"board": self._board_id}).fetchall()), exact=True)

    def _last_start(self) -> str:
        with self._database.reading() as connection:
            (last,) = connection.execute(_LAST, {"board": self._board_id}).fetchone()
        return last or ""

    def _nodes(self, node_ids: Sequence[str], view: NodeView) -> dict[str, GraphNode]:
        """Those of these nodes, sorted ids, that there are, in the order of the ids."""
        return self._read(_NODES, {"ids": id_list(node_ids)}, view) if node_ids else {}

    def _read(self, statement: str, parameters: Mapping[str, Any], view: NodeView) -> dict[str, GraphNode]:
        """The nodes of a statement, by id, in its order."""
        statement = statement.format(columns="".join(f", n.{name}" for name in view.columns))
        found, own, properties = dict[str, GraphNode](), self._board_id, _bare if view.bare else view.properties
        with self._database.reading() as connection:
            for row in connection.execute(statement, {"board": own, **parameters}):
                if row[0] != own:
                    check_tenant(row[0], own)
                node_id = row[1]
                found[node_id] = GraphNode(node_id, LABELS[row[2]], properties(node_id, row[3:]))
        return found

    def _edges(self, connection: Connection, statement: str, parameters: Mapping[str, Any], view: EdgeView) -> Iterator[GraphEdge]:
        own, properties = self._board_id, _bare if view.bare else view.properties
        for row in connection.execute(statement, parameters):
            if row[0] != own:
                check_tenant(row[0], own)
            edge_id = row[1]
            yield GraphEdge(edge_id, row[2], row[3], row[4], properties(edge_id, row[5:]))


class SqliteGraphSources:
    """See `GraphSources`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, board_id: str) -> SqliteGraphSource:
        """See `GraphSources.of`; nothing is read yet."""
        return SqliteGraphSource(self._database, board_id)


class _Filter:
    """What can be said in SQL of properties that have to equal some values, and never rules out one that does.

    Attributes:
        conditions: Each after an AND.
        parameters: Of the conditions.
        impossible: Whether nothing can equal one of the values.
    """

    def __init__(self, equals: Mapping[str, Any]) -> None:
        self.impossible = any(isinstance(value, str) and not storable(value) for value in equals.values())
        self.parameters: dict[str, Any] = {}
        self.conditions = (
            "" if self.impossible else "".join(f" AND {c}" for name, value in equals.items() if (c := self._said(name, value)))
        )

    def _said(self, name: str, value: Any) -> str | None:
        if (isinstance(value, str) and name in TEXTS | {ID}) or (isinstance(value, bool) and name == CURATED):
            return f"n.{'node_id' if name == ID else name} = {self._parameter(value)}"
        if name in NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
            return f"n.{name} = {self._parameter(value)}" if isinstance(value, float) or value.bit_length() <= _MOST_BITS else None
        text = attribute_text(name, value)
        if text is None:
            return None
        said = f"instr(n.attributes, {self._parameter(text)})"
        return f"(n.status = {self._parameter(value)} OR n.status IS NULL AND {said})" if name == STATUS else said

    def _parameter(self, value: Any) -> str:
        name = f"value_{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"


def _bare(_element_id: str, _values: Sequence[Any]) -> Mapping[str, Any]:
    return BARE


def _statement(text: str, view: EdgeView, rel_types: Collection[str] | None, **more: str) -> str:
    columns = "".join(f", e.{name}" for name in view.columns)
    return text.format(columns=columns, rels="" if rel_types is None else _OF_RELS, **more)
