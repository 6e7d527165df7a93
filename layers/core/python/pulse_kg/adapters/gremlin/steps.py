"""Pieces of traversals: how a vertex is found, what a read may see, and in which form an element comes back.

All of it is what JanusGraph and Neptune both do: no scripts, lambdas, sessions, meta-properties or null values; results are maps, values
and counts, because the plain driver can't read JanusGraph's edges; and no `evaluationTimeout`, which breaks JanusGraph over BerkeleyDB.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Literal

from pulse_kg.adapters.gremlin.elements import NID, stored

ASKED_AT_ONCE: Final = 500
"""Ids of one request."""

VertexIds = Literal["property", "supplied"]
"""Where a vertex has its key: in the property `nid` alone, or also as its own id (Neptune takes one, JanusGraph over BerkeleyDB none)."""


def anonymous() -> Any:
    """The start of a traversal inside another one."""
    from gremlin_python.process.graph_traversal import __

    return __


def up_to(mark: int) -> Any:
    """At most this number."""
    from gremlin_python.process.traversal import P

    return P.lte(stored(mark))


def below(number: int) -> Any:
    """Less than this number."""
    from gremlin_python.process.traversal import P

    return P.lt(stored(number))


def one_of(values: Collection[str]) -> Any:
    """One of these texts."""
    from gremlin_python.process.traversal import P

    return P.within(sorted(set(values)))


def batches(values: Iterable[str]) -> Iterator[list[str]]:
    """Some at a time, sorted, each once."""
    rest = iter(sorted(set(values)))
    while some := list(islice(rest, ASKED_AT_ONCE)):
        yield some


class Entry:
    """The only place that knows whether a vertex's key is its id."""

    def __init__(self, vertex_ids: VertexIds) -> None:
        self._supplied = vertex_ids == "supplied"

    def vertices(self, start: Any, keys: Collection[str]) -> Any:
        """The vertices of these keys, of which there is at least one: without any, `V()` would be all."""
        if not keys:
            raise ValueError("no keys")
        return start.V(*keys) if self._supplied else start.V().has(NID, one_of(keys) if len(keys) > 1 else next(iter(keys)))

    def new_vertex(self, label: str, key: str) -> Any:
        """Makes a vertex that has its key and nothing else."""
        from gremlin_python.process.traversal import Cardinality, T

        made = anonymous().add_v(label)
        if self._supplied:
            made = made.property(T.id, key)
        return made.property(Cardinality.single, NID, key)


def visible_nodes(vertices: Any, board_id: str, mark: int) -> Any:
    """Those of the board that a wholly applied commit made.

    Both are compared in filters and not by `has`, which JanusGraph takes into its search: the board's index, read from end to end beside
    that of the key (10 ms for one vertex of 10,000), and a comparison that is four times as slow. So whoever wants a board's vertices by
    its index says `has` himself.
    """
    __ = anonymous()
    return vertices.filter_(__.values("board_id").is_(board_id)).filter_(__.values("created_seq").is_(up_to(mark)))


def visible_edges(edges: Any, board_id: str, mark: int) -> Any:
    """Those of the board that a wholly applied commit made."""
    return edges.has("board_id", board_id).has("commit_seq", up_to(mark))


def edge_rows(edges: Any) -> Any:
    """What `edge_of` reads."""
    from gremlin_python.process.traversal import T

    __ = anonymous()
    return (
        edges.project("edge", "src", "rel_type", "dst")
        .by(__.value_map())
        .by(__.out_v().values("node_id"))
        .by(T.label)
        .by(__.in_v().values("node_id"))
    )


def around_rows(vertices: Any, properties: Any, board_id: str, mark: int, *, between: Collection[str] = ()) -> Any:
    """What `surroundings_of` reads, and as `between` the ids of the edges that go out to the vertices of these keys.

    Args:
        vertices: The nodes.
        properties: The value map that comes back of each of them as `vertex`.
        board_id: The tenant.
        mark: The last commit that may be seen.
        between: Keys.
    """
    __ = anonymous()
    against = visible_edges(__.in_e("contradicts"), board_id, mark)
    source_of = __.out_v().value_map("board_id", "node_id", "superseded_by", "revocation_reason", "status")
    against = against.project("edge_id", "confidence", "src").by("edge_id").by("confidence").by(source_of)
    going_out = visible_edges(__.out_e(), board_id, mark).where(__.in_v().has(NID, one_of(between))).values("edge_id")
    return (
        vertices.project("kind", "vertex", "degree", "against", "between")
        .by(__.constant("around"))
        .by(properties)
        .by(visible_edges(__.both_e(), board_id, mark).count())
        .by(against.fold())
        .by(going_out.fold() if between else __.constant(""))
    )
