"""Reads of one board for the tools that read, on a Gremlin server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.adapters.gremlin.connection import GremlinConnection, source
from pulse_kg.adapters.gremlin.elements import FOLDED_TITLE, NID, check_tenant, nids, seen_edges, seen_nodes
from pulse_kg.adapters.gremlin.steps import Entry, VertexIds, anonymous, batches, edge_rows, one_of, visible_edges, visible_nodes
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.schema import NodeType, RelType
from pulse_kg.domain.walks import breadth_first, within_steps
from pulse_kg.domain.wanted import Wanted
from pulse_kg.ports.reading import Direction, Ends, Lineage, Neighbourhood, Neighbours, Place, Placed

COUNTED_BY_THE_SERVER: Final = 32
"""Words that the server counts in each title; of more it is only asked for titles with any of them, which takes less of its time."""

_SETTLING: Final = ("superseded_by", "revocation_reason", "status")


class GremlinGraphQueries:
    """The reads. Each is one request, `around` two; what may be seen is told by `GremlinGraphStore`.

    Args:
        connection: To the server.
        applied: Gives the number of a board's last commit that is wholly applied; 0 before the first.
        vertex_ids: Where the key of a vertex is.
    """

    def __init__(self, connection: GremlinConnection, *, applied: Callable[[str], int], vertex_ids: VertexIds = "property") -> None:
        self._connection = connection
        self._applied = applied
        self._entry = Entry(vertex_ids)

    def _view(self, board_id: str) -> _View:
        return _View(board_id, self._applied(board_id), self._entry)

    def places(self, board_id: str, node_ids: Collection[str]) -> dict[str, Place]:
        """See `GraphQueries.places`; in the order of the ids."""
        if not nids(board_id, node_ids):
            return {}
        view = self._view(board_id)
        return view.places(self._connection.submit(view.place_rows(view.vertices(node_ids), whole=False)))

    def placed(self, board_id: str, node_ids: Collection[str]) -> dict[str, Placed]:
        """See `GraphQueries.placed`."""
        view, rows = self._view(board_id), list[Any]()
        for some in batches(node_ids):
            if nids(board_id, some):
                rows += self._connection.submit(view.place_rows(view.vertices(some), whole=True))
        return view.placed(rows)

    def around(
        self,
        board_id: str,
        node_id: str,
        *,
        rel_types: Collection[RelType] | None = None,
        direction: Direction = "both",
        max_depth: int = 2,
        limit: int = 200,
    ) -> Neighbourhood:
        """See `GraphQueries.around`; one request finds the ids, the other one reads nodes and edges."""
        if not nids(board_id, [node_id]):
            return Neighbourhood({}, [])
        view, __ = self._view(board_id), anonymous()
        levels = [] if _nothing(rel_types) else self._levels(view, node_id, view.ways(direction, rel_types), max_depth, limit)
        reached = iter(levels)
        depths, truncated = breadth_first(node_id, lambda _: next(reached), max_depth=len(levels), limit=limit)
        known = {node_id, *depths}
        parts = [_named("node", view.place_rows(view.vertices(known, __), whole=True))]
        if depths:
            (way,) = view.ways("out", rel_types)
            between = visible_edges(view.vertices(known, __).out_e(*way.labels), board_id, view.mark)
            parts.append(_named("edge", edge_rows(between.where(__.in_v().has(NID, one_of(nids(board_id, known)))))))
        rows = self._together(parts)
        edges = [e for e in view.seen_edges(rows["edge"]) if {e.src, e.dst} <= known]
        return Neighbourhood(depths, sorted(edges, key=lambda e: e.edge_id), truncated, view.placed(rows["node"]))

    def _levels(self, view: _View, node_id: str, ways: Sequence[_Way], max_depth: int, limit: int) -> list[dict[str, NodeType]]:
        """For each hop what it reaches and none before did; nothing after a hop that reaches more than `limit`."""
        from gremlin_python.process.traversal import P, Scope

        __, names = anonymous(), [f"hop{depth}" for depth in range(1, max_depth + 1)]
        vertices = view.vertices([node_id]).aggregate("reached")
        for name in names:
            # A walk of a hub ends here, as it does in `breadth_first`: what lies behind it would be left out.
            few = vertices.fold().filter_(__.count(Scope.local).is_(P.lte(limit))).unfold()
            fresh = few.union(*(way.onward(way.edges()) for way in ways)).where(P.without("reached")).dedup().aggregate("reached")
            vertices = fresh.aggregate(name).by(__.value_map("board_id", "node_id", "node_type"))
        (found,) = self._connection.submit(vertices.cap(*names))
        levels = []
        for rows in [found[name] for name in names] if len(names) > 1 else [found]:  # of one name it is no map
            for row in rows:
                check_tenant(row["board_id"][0], view.board_id)
            levels.append({row["node_id"][0]: row["node_type"][0] for row in rows})
        return levels

    def lineage(self, board_id: str, node_ids: Collection[str], *, most: int = 1_000) -> Lineage:
        """See `GraphQueries.lineage`; the server follows the edges."""
        if not nids(board_id, node_ids):
            return Lineage({}, {}, {})
        view, __ = self._view(board_id), anonymous()
        further = __.union(*(way.onward(way.edges()) for way in view.ways("both", ["supersedes"])))
        # The barrier lets no branch run ahead: what it reached by a longer way would count as reached there.
        reached = view.vertices(node_ids, __).emit().repeat(further.dedup().barrier()).times(most).dedup()
        (way,) = view.ways("out", ["supersedes"])
        older_ids = way.onward(way.edges()).values("node_id").fold()
        found = self._together(
            [
                _named("node", reached.project("vertex", "older").by(__.value_map()).by(older_ids)),
                _named("place", view.place_rows(view.vertices(node_ids, __), whole=False)),
            ]
        )
        nodes = {n.node_id: n for n in view.seen_nodes([row["vertex"] for row in found["node"]])}
        pairs = [(above, below) for row in found["node"] for above in row["vertex"]["node_id"] for below in row["older"]]
        newer, older = within_steps(node_ids, [(a, b) for a, b in pairs if a in nodes and b in nodes], most)
        known = {i: nodes[i] for i in sorted({*node_ids, *newer, *older}) if i in nodes}
        return Lineage(known, newer, older, view.places(found["place"]))

    def _together(self, parts: Sequence[Any]) -> dict[str, list[Any]]:
        """The rows of several traversals, each `_named`, by one request; by name, none for a name that nobody has."""
        found: defaultdict[str, list[Any]] = defaultdict(list)
        for row in self._connection.submit(source().inject(1).union(*parts)):
            found[row["kind"]].append(row["row"])
        return found

    def contradictions(self, board_id: str, *, node_id: str | None = None, most: int | None = None) -> list[Edge]:
        """See `GraphQueries.contradictions`. Without a node the server looks at every node of the board."""
        from gremlin_python.process.traversal import Order

        if node_id is not None and not nids(board_id, [node_id]):
            return []
        view = self._view(board_id)
        if node_id is None:
            edges = source().V().has("board_id", board_id).out_e("contradicts")
        else:
            edges = view.vertices([node_id]).both_e("contradicts")
        edges = visible_edges(edges, board_id, view.mark)
        if most is not None:
            edges = edges.order().by("created_at", Order.desc).by("edge_id").limit(most)
        found = view.seen_edges(self._connection.submit(edge_rows(edges)))
        return sorted(found, key=lambda edge: (-edge.created_at, edge.edge_id))

    def neighbours(
        self,
        board_id: str,
        node_ids: Collection[str],
        *,
        rel_types: Collection[RelType] | None = None,
        direction: Direction = "both",
        node_types: Collection[NodeType] | None = None,
        near: bool = False,
        placed: Ends | None = None,
    ) -> Neighbours:
        """See `GraphQueries.neighbours`; another node comes once over the wire, however many edges lead to it."""
        unlinked = _nothing(rel_types) or _nothing(node_types)
        if not nids(board_id, node_ids) or (unlinked and not near and placed is None):
            return Neighbours([])
        view, __ = self._view(board_id), anonymous()

        def of_types(vertices: Any) -> Any:
            return vertices if node_types is None else vertices.has("node_type", one_of(node_types))

        ways, parts = view.ways(direction, rel_types), []
        if not unlinked:
            edges = view.vertices(node_ids, __).union(*(way.edges().where(of_types(way.onward(__))) for way in ways)).dedup()
            others = view.vertices(node_ids, __).union(*(of_types(way.onward(way.edges())) for way in ways)).dedup()
            parts += [_named("edge", edge_rows(edges)), _named("other", view.rows(others, placed=placed == "all"))]
        if near or placed is not None:
            parts.append(_named("near", view.rows(view.vertices(node_ids, __), placed=placed is not None, whole=near)))
        rows = self._together(parts)
        nodes = {n.node_id: n for n in view.seen_nodes([row["vertex"] for row in rows["other"]])}
        wanted = frozenset(node_ids)
        found: list[tuple[Edge, Node]] = []
        for edge in view.seen_edges(rows["edge"]):
            for way in ways:
                known, other = way.ends(edge)
                if known in wanted and other in nodes:
                    found.append((edge, nodes[other]))
        asked = sorted(view.seen_nodes([row["vertex"] for row in rows["near"]]), key=lambda n: n.node_id) if near else []
        standing = {None: [], "near": rows["near"], "all": [*rows["near"], *rows["other"]]}[placed]
        return Neighbours(
            sorted(found, key=lambda pair: (pair[0].edge_id, pair[1].node_id)), {n.node_id: n for n in asked}, view.places(standing)
        )

    def stated_in(self, board_id: str, artifact: str, node_types: Collection[NodeType]) -> list[Placed]:
        """See `GraphQueries.stated_in`. Cost: the server looks at every node of the types."""
        if not node_types:
            return []
        view = self._view(board_id)
        vertices = view.of_types(node_types).has("artifact", artifact)
        return list(view.placed(self._connection.submit(view.place_rows(vertices, whole=True))).values())

    def with_words(
        self,
        board_id: str,
        node_types: Collection[NodeType],
        *,
        phrase: str,
        words: Collection[str],
        at_least: int,
        bodies: bool = False,
        since: Instant | None = None,
        until: Instant | None = None,
        also: Collection[str] = (),
    ) -> list[Node]:
        """See `GraphQueries.with_words`.

        Cost: the server looks at the title of every node of the types. With `bodies` it sends all of them, for it has no folded body.
        """
        wanted, kept, __ = Wanted(phrase, words, at_least, bodies, since, until), frozenset(also), anonymous()
        searched = wanted.possible and bool(node_types)
        if not searched and not nids(board_id, kept):
            return []
        view = self._view(board_id)
        if not searched:
            vertices = view.vertices(kept)
        else:
            together = bool(nids(board_id, kept))
            vertices = view.of_types(node_types, __ if together else None)
            if not bodies:
                vertices = vertices.filter_(_titled(wanted))
            if together:
                vertices = source().inject(1).union(vertices, view.vertices(kept, __)).dedup()
        found = {n.node_id: n for n in view.seen_nodes(self._connection.submit(vertices.value_map()))}
        return [found[i] for i in sorted(found) if i in kept or wanted.fits(found[i])]


@dataclass(frozen=True)
class _Way:
    """One way to walk an edge: along it or against it."""

    view: _View
    labels: Sequence[str]
    along: bool

    def edges(self) -> Any:
        """The visible edges of a vertex that are walked so."""
        __ = anonymous()
        edges = __.out_e(*self.labels) if self.along else __.in_e(*self.labels)
        return visible_edges(edges, self.view.board_id, self.view.mark)

    def onward(self, edges: Any) -> Any:
        """From edges to where they lead."""
        return edges.in_v() if self.along else edges.out_v()

    def ends(self, edge: Edge) -> tuple[str, str]:
        """Where it starts and where it leads."""
        return (edge.src, edge.dst) if self.along else (edge.dst, edge.src)


@dataclass(frozen=True)
class _View:
    """A board as a reader may see it."""

    board_id: str
    mark: int
    entry: Entry

    def vertices(self, node_ids: Collection[str], start: Any = None) -> Any:
        """These nodes, of which at least one has the form of an id."""
        start = source() if start is None else start
        return visible_nodes(self.entry.vertices(start, nids(self.board_id, node_ids)), self.board_id, self.mark)

    def of_types(self, node_types: Collection[NodeType], start: Any = None) -> Any:
        """All nodes of these types, of which there is at least one."""
        start = source() if start is None else start
        vertices = start.V().has("board_id", self.board_id).has("node_type", one_of(node_types))
        return visible_nodes(vertices, self.board_id, self.mark)

    def ways(self, direction: Direction, rel_types: Collection[RelType] | None) -> list[_Way]:
        """How the edges of these relationships may be walked."""
        labels = () if rel_types is None else tuple(sorted(set(rel_types)))
        return [_Way(self, labels, along) for along in (True, False) if direction in {"both", "out" if along else "in"}]

    def rows(self, vertices: Any, *, placed: bool, whole: bool = True) -> Any:
        """Each vertex as `vertex`, with where it stands if that is wanted."""
        return self.place_rows(vertices, whole=whole) if placed else vertices.project("vertex").by(anonymous().value_map())

    def place_rows(self, vertices: Any, *, whole: bool) -> Any:
        """What `places` reads, and `placed` where it is whole."""
        __ = anonymous()
        disputing = [_unsettled(way.onward(way.edges())) for way in self.ways("both", ["contradicts"])]
        return (
            vertices.project("vertex", "degree", "disputing")
            .by(__.value_map() if whole else __.value_map("board_id", "node_id", *_SETTLING))
            .by(visible_edges(__.both_e(), self.board_id, self.mark).count())
            .by(__.union(*disputing).limit(1).count())
        )

    def places(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Place]:
        """By id."""
        found: dict[str, Place] = {}
        for row in rows:
            vertex = {name: value[0] for name, value in row["vertex"].items()}
            check_tenant(vertex["board_id"], self.board_id)
            found[vertex["node_id"]] = Place(int(row["degree"]), bool(row["disputing"]) and not _settled(vertex))
        return {node_id: found[node_id] for node_id in sorted(found)}

    def placed(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Placed]:
        """By id."""
        places, nodes = self.places(rows), {n.node_id: n for n in self.seen_nodes([row["vertex"] for row in rows])}
        return {node_id: (nodes[node_id], place) for node_id, place in places.items() if node_id in nodes}

    def seen_nodes(self, rows: Iterable[Mapping[str, Any]]) -> list[Node]:
        return seen_nodes(rows, self.board_id, self.mark)

    def seen_edges(self, rows: Iterable[Mapping[str, Any]]) -> list[Edge]:
        return seen_edges(rows, self.board_id, self.mark)


def _nothing(types: Collection[str] | None) -> bool:
    """A filter that lets nothing through; a step without labels would let through all."""
    return types is not None and not types


def _named(kind: str, rows: Any) -> Any:
    __ = anonymous()
    return rows.project("kind", "row").by(__.constant(kind)).by(__.identity())


def _unsettled(vertices: Any) -> Any:
    return vertices.has_not("superseded_by").has_not("revocation_reason").not_(anonymous().has("status", "revoked"))


def _settled(vertex: Mapping[str, Any]) -> bool:
    return "superseded_by" in vertex or "revocation_reason" in vertex or vertex.get("status") == "revoked"


def _titled(wanted: Wanted) -> Any:
    """Lets through at least every vertex whose title fits."""
    from gremlin_python.process.traversal import P, TextP

    __, words = anonymous(), wanted.distinct
    tests = []
    if wanted.phrase:
        tests.append(__.values(FOLDED_TITLE).is_(TextP.containing(wanted.phrase)))
    if wanted.telling and len(words) <= COUNTED_BY_THE_SERVER:
        each = (__.is_(TextP.containing(word)) for word in words)
        tests.append(__.values(FOLDED_TITLE).union(*each).count().is_(P.gte(wanted.at_least)))
    elif wanted.telling:
        tests.append(__.values(FOLDED_TITLE).is_(_any([TextP.containing(word) for word in wanted.telling])))
    return __.or_(*tests)


def _any(predicates: Sequence[Any]) -> Any:
    """One of them; halved again and again, so that hundreds of them are not nested as deeply."""
    if len(predicates) == 1:
        return predicates[0]
    half = len(predicates) // 2
    return _any(predicates[:half]).or_(_any(predicates[half:]))
