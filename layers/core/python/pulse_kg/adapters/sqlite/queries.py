"""Reads of one board for the tools that read."""

# ruff: noqa: S608 - statements are put together from constants of this module

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from pulse_kg.adapters.jsontext import id_list
from pulse_kg.adapters.sqlite.database import Database
from pulse_kg.adapters.sqlite.graph import SqliteGraphStore
from pulse_kg.adapters.sqlite.rows import EDGE_FIELDS, NODE_FIELDS, edge_of, node_of
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.schema import NodeType, RelType
from pulse_kg.domain.walks import breadth_first, within_steps
from pulse_kg.domain.wanted import Wanted
from pulse_kg.ports.reading import Direction, Ends, Lineage, Neighbourhood, Neighbours, Place, Placed

_ENDS: Final = {"out": (("src", "dst"),), "in": (("dst", "src"),), "both": (("src", "dst"), ("dst", "src"))}
"""Direction → the columns of the end that is known and of the other one, for each way an edge may be walked."""

_NODES: Final = ", ".join(f"n.{name}" for name in NODE_FIELDS)
_EDGES: Final = ", ".join(f"e.{name}" for name in EDGE_FIELDS)
_THESE: Final = "(SELECT value FROM json_each(:ids))"
_OF_RELS: Final = " AND e.rel_type IN (SELECT value FROM json_each(:rel_types))"
_OF_TYPES: Final = " AND n.node_type IN (SELECT value FROM json_each(:node_types))"
# CROSS JOIN and +: from the ids over the edges to the other nodes, for no table has statistics that would tell the planner so.
_EDGES_AT: Final = "json_each(:ids) AS a CROSS JOIN edges e ON e.board_id = :board AND e.{known} = a.value{rels}"
_OTHERS: Final = " CROSS JOIN nodes n ON n.board_id = :board AND n.node_id = e.{other}{types}"
_HOP: Final = f"SELECT DISTINCT e.{{other}} AS node_id FROM {_EDGES_AT}"
_AMONG: Final = f"SELECT {_EDGES} FROM " + _EDGES_AT.format(known="src", rels="{rels}") + f" AND +e.dst IN {_THESE} ORDER BY e.edge_id"

_SETTLED: Final = "({0}.superseded_by IS NOT NULL OR {0}.revocation_reason IS NOT NULL OR {0}.status IS 'revoked')"
_DISPUTE: Final = (
    "EXISTS (SELECT 1 FROM edges e INDEXED BY edges_by_{known} CROSS JOIN nodes o ON o.board_id = :board AND o.node_id = e.{other} "
    "WHERE e.board_id = :board AND e.{known} = n.node_id AND e.rel_type = 'contradicts' AND NOT " + _SETTLED.format("o") + ")"
)
_DISPUTED: Final = " OR ".join(_DISPUTE.format(known=known, other=other) for known, other in _ENDS["both"])
_PLACES: Final = (
    "SELECT n.node_id, (SELECT count(*) FROM edges e WHERE e.board_id = :board AND e.src = n.node_id) "
    "+ (SELECT count(*) FROM edges e WHERE e.board_id = :board AND e.dst = n.node_id), "
    f"NOT {_SETTLED.format('n')} AND ({_DISPUTED}) "
    f"FROM nodes n WHERE n.board_id = :board AND n.node_id IN {_THESE} ORDER BY n.node_id"
)

# Without depths, which would make a row for each of a node's ways to the start.
_LINEAGE: Final = """
    WITH RECURSIVE joined (node_id) AS (
        SELECT node_id FROM nodes WHERE board_id = :board AND node_id IN (SELECT value FROM json_each(:ids))
        UNION
        SELECT e.dst FROM joined CROSS JOIN edges e ON e.board_id = :board AND e.src = joined.node_id AND e.rel_type = 'supersedes'
        UNION
        SELECT e.src FROM joined CROSS JOIN edges e ON e.board_id = :board AND e.dst = joined.node_id AND e.rel_type = 'supersedes'
    )
    SELECT e.src, e.dst FROM joined CROSS JOIN edges e ON e.board_id = :board AND e.src = joined.node_id AND e.rel_type = 'supersedes'
"""

# INDEXED BY: of the edges at one node few are contradictions, of a board's contradictions most are elsewhere.
_NEWEST_FIRST: Final = " ORDER BY e.created_at DESC, e.edge_id"
_CONTRADICTIONS: Final = (
    f"SELECT {_EDGES} FROM edges e INDEXED BY contradictions WHERE e.board_id = :board AND e.rel_type = 'contradicts'" + _NEWEST_FIRST
)
_AT_END: Final = (
    f"SELECT {_EDGES} FROM edges e INDEXED BY edges_by_{{0}} WHERE e.board_id = :board AND e.{{0}} = :node AND e.rel_type = 'contradicts'"
)
_CONTRADICTIONS_AT: Final = f"{_AT_END.format('src')} UNION {_AT_END.format('dst')} ORDER BY created_at DESC, edge_id"

# The index has the titles; for a body the node itself is read.
_WORDED: Final = """
    WITH words (word) AS MATERIALIZED (SELECT value FROM json_each(:words))
    SELECT n.node_id FROM nodes n INDEXED BY nodes_by_title
    WHERE n.board_id = :board AND n.node_type IN (SELECT value FROM json_each(:node_types)) AND ({some})
    AND (:phrase <> '' AND instr(n.folded_title, :phrase) > 0
        OR (SELECT count(*) FROM words WHERE instr(n.folded_title, word) > 0{or_body}) >= :at_least)
"""
_OR_BODY: Final = " OR instr(n.folded_body, word) > 0"
_GLOB_SIGN: Final = re.compile(r"[*?\[]")
_MOST_TELLING: Final = 16
"""Texts that a node is first searched for, since most nodes have none of them: that takes a third as long as counting."""
_LONGEST_PATTERN: Final = 500
"""Characters of such a text, for GLOB takes no pattern of any length; counting takes the whole of it."""
_STATED_IN: Final = (
    f"SELECT {_NODES} FROM nodes n INDEXED BY nodes_by_artifact WHERE n.board_id = :board "
    "AND n.artifact = :artifact AND n.node_type IN (SELECT value FROM json_each(:node_types)) ORDER BY n.node_id"
)


class SqliteGraphQueries:
    """The reads. Inside a snapshot of its thread it reads the state that the snapshot holds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._graph = SqliteGraphStore(database)

    def places(self, board_id: str, node_ids: Collection[str]) -> dict[str, Place]:
        """See `GraphQueries.places`; in the order of the ids."""
        with self._database.reading() as connection:
            rows = connection.execute(_PLACES, {"board": board_id, "ids": id_list(node_ids)})
            return {node_id: Place(degree, bool(disputed)) for node_id, degree, disputed in rows}

    def placed(self, board_id: str, node_ids: Collection[str]) -> dict[str, Placed]:
        """See `GraphQueries.placed`."""
        with self._database.reading():
            return self._standing(board_id, self._graph.nodes(board_id, node_ids))

    def _standing(self, board_id: str, nodes: Mapping[str, Node]) -> dict[str, Placed]:
        places = self.places(board_id, nodes) if nodes else {}
        return {node_id: (node, places[node_id]) for node_id, node in nodes.items()}

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
        """See `GraphQueries.around`; one statement for each hop."""
        asked = _Asked(board_id, rel_types=rel_types)
        hop = asked.statement(_HOP, direction)
        statement = f"SELECT n.node_id, n.node_type FROM ({hop}) AS h CROSS JOIN nodes n ON n.board_id = :board AND n.node_id = h.node_id"
        with self._database.reading() as connection:
            depths, truncated = breadth_first(
                node_id, lambda ids: dict(connection.execute(statement, asked.of(ids))), max_depth=max_depth, limit=limit
            )
            among = connection.execute(_AMONG.format(rels=asked.rels), asked.of([node_id, *depths]))
            edges = [edge_of(row, board_id) for row in among]
            return Neighbourhood(depths, edges, truncated, self.placed(board_id, [node_id, *depths]))

    def lineage(self, board_id: str, node_ids: Collection[str], *, most: int = 1_000) -> Lineage:
        """See `GraphQueries.lineage`."""
        with self._database.reading() as connection:
            pairs = connection.execute(_LINEAGE, {"board": board_id, "ids": id_list(node_ids)}).fetchall()
            newer, older = within_steps(node_ids, pairs, most)
            nodes = self._graph.nodes(board_id, {*node_ids, *newer, *older})
            return Lineage(nodes, newer, older, self.places(board_id, node_ids))

    def contradictions(self, board_id: str, *, node_id: str | None = None, most: int | None = None) -> list[Edge]:
        """See `GraphQueries.contradictions`."""
        statement = _CONTRADICTIONS if node_id is None else _CONTRADICTIONS_AT
        parameters = {"board": board_id, "node": node_id, "most": -1 if most is None else most}
        with self._database.reading() as connection:
            rows = connection.execute(statement + " LIMIT :most", parameters)
            return [edge_of(row, board_id) for row in rows]

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
        """See `GraphQueries.neighbours`."""
        asked = _Asked(board_id, rel_types=rel_types, node_types=node_types)
        statement = asked.statement(f"SELECT e.{{other}}, {_EDGES} FROM {_EDGES_AT}{_OTHERS}", direction)
        with self._database.reading() as connection:
            rows = connection.execute(statement + " ORDER BY edge_id, 1", asked.of(node_ids)).fetchall()
            others = self._graph.nodes(board_id, {row[0] for row in rows})  # once each, however many edges lead to one
            standing = {None: (), "near": node_ids, "all": {*node_ids, *others}}[placed]
            return Neighbours(
                [(edge_of(row[1:], board_id), others[row[0]]) for row in rows],
                self._graph.nodes(board_id, node_ids) if near else {},
                self.places(board_id, standing) if standing else {},
            )

    def stated_in(self, board_id: str, artifact: str, node_types: Collection[NodeType]) -> list[Placed]:
        """See `GraphQueries.stated_in`."""
        parameters = {"board": board_id, "artifact": artifact, "node_types": id_list(sorted(set(node_types)))}
        with self._database.reading() as connection:
            nodes = [node_of(row, board_id) for row in connection.execute(_STATED_IN, parameters)]
            return list(self._standing(board_id, {node.node_id: node for node in nodes}).values())

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

        Cost: the title of every node of the types is looked at, in an index. With `bodies` every such node is read.
        """
        wanted = Wanted(phrase, words, at_least, bodies, since, until)
        if not wanted.possible:
            return list(self._graph.nodes(board_id, also).values())
        some, patterns = _some_of(wanted)
        parameters = {
            "board": board_id,
            "node_types": id_list(sorted(set(node_types))),
            "words": id_list(wanted.distinct),
            "phrase": phrase,
            "at_least": at_least,
            **patterns,
        }
        statement = _WORDED.format(some=some, or_body=_OR_BODY if bodies else "")
        with self._database.reading() as connection:
            worded = [node_id for (node_id,) in connection.execute(statement, parameters)]
            found = self._graph.nodes(board_id, {*worded, *also})
        kept = frozenset(also)
        return [node for node in found.values() if node.node_id in kept or wanted.fits(node)]


def _some_of(wanted: Wanted) -> tuple[str, dict[str, str]]:
    """A condition that every wanted node meets and few others do, with its parameters. GLOB is a third faster than instr."""
    telling = wanted.telling
    # What contains the phrase contains every word of it.
    texts = telling if any(word in wanted.phrase for word in telling) else sorted({*telling, wanted.phrase} - {""})
    if len(texts) > _MOST_TELLING:
        return "1", {}
    columns = ("n.folded_title", "n.folded_body") if wanted.bodies else ("n.folded_title",)
    patterns = {f"telling{n}": "*" + _GLOB_SIGN.sub(r"[\g<0>]", text[:_LONGEST_PATTERN]) + "*" for n, text in enumerate(texts)}
    return " OR ".join(f"{column} GLOB :{name}" for column in columns for name in patterns), patterns


class _Asked:
    """A board with the filters of a walk, as parts of a statement and its parameters.

    Attributes:
        rels: What follows the condition that joins an edge `e`.
    """

    def __init__(
        self, board_id: str, *, rel_types: Collection[RelType] | None = None, node_types: Collection[NodeType] | None = None
    ) -> None:
        self._parameters = {"board": board_id}
        self.rels = self._types = ""
        if rel_types is not None:
            self._parameters["rel_types"] = id_list(sorted(set(rel_types)))
            self.rels = _OF_RELS
        if node_types is not None:
            self._parameters["node_types"] = id_list(sorted(set(node_types)))
            self._types = _OF_TYPES

    def statement(self, template: str, direction: Direction) -> str:
        """The template for each way that the direction allows, united; an edge that is walked both ways comes twice."""
        ways = [template.format(known=known, other=other, rels=self.rels, types=self._types) for known, other in _ENDS[direction]]
        return " UNION ALL ".join(ways)

    def of(self, node_ids: Iterable[str]) -> dict[str, str]:
        """The parameters, for these nodes."""
        return {**self._parameters, "ids": id_list(sorted(set(node_ids)))}
