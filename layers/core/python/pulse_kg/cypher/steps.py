"""The steps by which a pattern is matched: each takes rows and gives rows that hold more of the pattern.

Rows come out in a total order that hangs on the graph and the query alone: scans go by id, edges at a node by (type, edge id), and what is
found for a row comes before what is found for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final, Literal, Protocol

from pulse_kg.cypher.ast import Labels, Span
from pulse_kg.cypher.context import Context, Row, chunks
from pulse_kg.cypher.faults import Fault, value_fault
from pulse_kg.cypher.values import Path, type_name
from pulse_kg.domain.records import record
from pulse_kg.ports.graph_source import Direction, GraphEdge, GraphNode, Hop

Evaluate = Callable[[Row, Context], Any]
Rows = Iterator[Row]

BOUND_REACHED: Final = "path_bound_reached"
_AHEAD: Final = 4_096
"""Nodes whose edges are read ahead for paths of many relationships."""


class ReadAhead(Protocol):
    """A pattern inside of an expression, which is matched for one row after the other."""

    def read_ahead(self, chunk: Sequence[Row], ctx: Context) -> None:
        """Reads together what it begins with for these rows."""
        ...


class Nested:
    """Gathers the patterns that an expression holds while it is compiled."""

    def __init__(self) -> None:
        self._found: list[list[ReadAhead]] = []

    @contextmanager
    def gathered(self) -> Iterator[list[ReadAhead]]:
        """While it lasts, patterns that are added go into the list that it gives."""
        found: list[ReadAhead] = []
        self._found.append(found)
        try:
            yield found
        finally:
            self._found.pop()

    def add(self, pattern: ReadAhead) -> None:
        """Takes up a pattern; outside of `gathered` nothing."""
        if self._found:
            self._found[-1].append(pattern)


@record
class Condition:
    """A condition of the pattern.

    Attributes:
        uses: The names that it needs.
        holds: Gives True, False or None.
        exact: Whether it can't raise a Fault, so that it need not be asked again at the end.
        nested: The patterns in it, what they need being read for many rows together.
        once: Whether it is asked once for a row, in a step of its own.
    """

    uses: frozenset[str]
    holds: Evaluate
    exact: bool
    nested: tuple[ReadAhead, ...] = ()
    once: bool = False

    def early(self, row: Row, ctx: Context) -> bool:
        """Whether the row may still fit: a value that the condition can't take is told at the end, if the row gets there."""
        try:
            return self.holds(row, ctx) is True
        except Fault:
            return True


@record
class Step:
    """A step of a plan.

    Attributes:
        conditions: Those that can be asked after it.
        estimate: How many rows a row becomes, as the plan supposes; None where it has no idea.
    """

    conditions: tuple[Condition, ...] = field(default=(), kw_only=True)
    estimate: int | None = field(default=None, kw_only=True)

    operator = "Step"

    @property
    def detail(self) -> str:
        """What it does, for the plan."""
        raise NotImplementedError

    @property
    def pushed(self) -> str:
        """What is left to the store."""
        return ""

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """The rows that it makes."""
        raise NotImplementedError

    def _kept(self, row: Row, ctx: Context) -> bool:
        for condition in self.conditions:  # for every row that is looked at: a generator would cost more than the rest
            if condition.exact:
                if condition.holds(row, ctx) is not True:
                    return False
            elif not condition.early(row, ctx):
                return False
        return True


def fits(node: GraphNode, labels: Labels) -> bool:
    """Whether a node has the labels that a pattern asks for."""
    for group in labels.all_of:  # noqa: SIM110 - as in `_kept`
        if not (group[0] in node.labels or any(label in node.labels for label in group)):
            return False
    return True


def node_in(row: Row, name: str, span: Span) -> GraphNode | None:
    """The node of a name that was bound before; None for null.

    Raises:
        Fault: It is something else.
    """
    value = row[name]
    if value is None or type(value) is GraphNode:
        return value
    raise value_fault("InvalidArgumentType", f"'{name}' is used as a node, but is a {type_name(value)}.").at(span)


@record
class FilterRows(Step):
    """Conditions with patterns in them: what these begin with is read for many rows together."""

    asked: tuple[Condition, ...]

    operator = "Filter"

    @property
    def detail(self) -> str:
        """See `Step.detail`."""
        return f"{len(self.asked)} condition{'s' if len(self.asked) > 1 else ''} with patterns"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Step.rows`."""
        for chunk in chunks(rows):
            for condition in self.asked:
                for pattern in condition.nested:
                    pattern.read_ahead(chunk, ctx)
            for row in chunk:
                if all(condition.holds(row, ctx) is True for condition in self.asked):
                    yield row


@record
class Check(Step):
    """A node that is bound already: whether it fits."""

    name: str
    labels: Labels
    span: Span

    operator = "Check"

    @property
    def detail(self) -> str:
        """See `Step.detail`."""
        return f"({shown(self.name)}{shown_labels(self.labels)})"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Step.rows`."""
        for row in rows:
            node = node_in(row, self.name, self.span)
            if node is not None and fits(node, self.labels) and self._kept(row, ctx):
                yield row


@record
class Equality:
    """`name.key = value`, or with `many` `name.key IN value`, where the value needs nothing of this node."""

    key: str
    value: Evaluate
    uses: frozenset[str]
    text: str
    many: bool = False


@record
class Scan(Step):
    """All nodes of a label, or of the board; those of a few ids where the pattern names them."""

    name: str
    labels: Labels
    equalities: tuple[Equality, ...] = ()
    seek: Equality | None = None

    @property
    def operator(self) -> str:  # type: ignore[override]
        """What it is called in a plan."""
        return "NodeById" if self.seek else "NodeByLabel" if self.label else "AllNodes"

    @property
    def label(self) -> str | None:
        """The label that the store looks for."""
        single = [group[0] for group in self.labels.all_of if len(group) == 1]
        return single[0] if single else None

    @property
    def detail(self) -> str:
        """See `Step.detail`."""
        return f"({shown(self.name)}{shown_labels(self.labels)})"

    @property
    def pushed(self) -> str:
        """See `Step.pushed`."""
        if self.seek is not None:
            return self.seek.text
        parts = [f":{self.label}"] if self.label else []
        return " AND ".join([*parts, *(equality.text for equality in self.equalities)])

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Step.rows`."""
        name, labels, plain, spend = self.name, self.labels, not self.conditions, ctx.spend
        for chunk in chunks(rows):
            ids = [self._ids(row, ctx) for row in chunk]
            known = ctx.nodes([i for listed in ids if listed for i in listed]) if self.seek is not None else {}
            for row, listed in zip(chunk, ids, strict=True):
                if listed is None:
                    # The store's answer is the answer, if it is asked for one label at most.
                    found, sure = self._scanned(row, ctx), len(labels.all_of) <= (self.label is not None)
                else:
                    found, sure = (known[i] for i in listed if i in known), not labels.all_of
                for node in found:
                    spend(1)
                    if sure or fits(node, labels):
                        made = {**row, name: node}
                        if plain or self._kept(made, ctx):
                            yield made

    def _ids(self, row: Row, ctx: Context) -> list[str] | None:
        """The ids that are sought for a row, sorted; None for a scan."""
        if self.seek is None:
            return None
        value = self.seek.value(row, ctx)
        if not self.seek.many:
            return [value] if type(value) is str else []
        return sorted({item for item in value if type(item) is str}) if type(value) is list else []

    def _scanned(self, row: Row, ctx: Context) -> Iterable[GraphNode]:
        equals: dict[str, Any] = {}
        for equality in self.equalities:
            value = equality.value(row, ctx)
            if value is None:
                return ()
            if type(value) in {str, int, bool} or (type(value) is float and value == value):  # noqa: PLR0124 - NaN is not equal to itself
                equals[equality.key] = value
        # Each row sees the same nodes: what several rows scan in the same way is read once.
        key = (self.label, tuple(sorted((k, type(v).__name__, v) for k, v in equals.items())))
        memo: dict[Any, list[GraphNode]] = ctx.memo.setdefault(id(self), {})
        if key in memo:
            return memo[key]
        return ctx.scan(self.label, equals, lambda listed: memo.__setitem__(key, listed))


@record
class EdgeScan(Step):
    """All edges of some types, with both ends: cheaper than to go to each node and ask for its edges."""

    src: str
    rel: str
    dst: str
    src_labels: Labels
    dst_labels: Labels
    rel_types: tuple[str, ...] | None
    direction: Direction
    others: tuple[str, ...] = ()

    operator = "EdgeScan"

    @property
    def detail(self) -> str:
        """See `Step.detail`."""
        start, end = f"({shown(self.src)}{shown_labels(self.src_labels)})", f"({shown(self.dst)}{shown_labels(self.dst_labels)})"
        return shown_hop(start, end, self.rel, self.rel_types, self.direction, "")

    @property
    def pushed(self) -> str:
        """See `Step.pushed`."""
        return ":" + "|".join(self.rel_types) if self.rel_types else ""

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Step.rows`."""
        src_name, rel_name, dst_name, conditions, spend = self.src, self.rel, self.dst, self.conditions, ctx.spend
        labelled, straight = bool(self.src_labels.all_of or self.dst_labels.all_of), self.direction == "out"
        for row in rows:
            used = used_by(row, self.others)
            for src, edge, dst in self._edges(ctx):
                spend(1)
                if used and edge.edge_id in used:
                    continue
                for first, last in ((src, dst),) if straight else self._oriented(src, dst):
                    if labelled and not (fits(first, self.src_labels) and fits(last, self.dst_labels)):
                        continue
                    made = {**row, src_name: first, rel_name: edge, dst_name: last}
                    if not conditions or self._kept(made, ctx):
                        yield made

    def _oriented(self, src: GraphNode, dst: GraphNode) -> Sequence[tuple[GraphNode, GraphNode]]:
        if self.direction == "in":
            return ((dst, src),)
        return ((src, dst),) if src == dst else ((src, dst), (dst, src))

    def _edges(self, ctx: Context) -> Iterable[tuple[GraphNode, GraphEdge, GraphNode]]:
        memo: list[tuple[GraphNode, GraphEdge, GraphNode]] | None = ctx.memo.get(id(self))
        return ctx.all_edges(self.rel_types, lambda listed: ctx.memo.__setitem__(id(self), listed)) if memo is None else memo


@record
class FromRelationship(Step):
    """The end of a relationship that is bound already."""

    name: str
    rel: str
    end: Literal["src", "dst", "both"]
    labels: Labels
    span: Span

    operator = "EndOfRelationship"

    @property
    def detail(self) -> str:
        """See `Step.detail`."""
        return f"({shown(self.name)}{shown_labels(self.labels)}) of [{shown(self.rel)}]"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Step.rows`."""
        for chunk in chunks(rows):
            ends = [self._ends(row) for row in chunk]
            known = ctx.nodes([node_id for listed in ends for node_id in listed])
            for row, listed in zip(chunk, ends, strict=True):
                for node_id in listed:
                    node = known.get(node_id)
                    if node is not None and fits(node, self.labels):
                        made = {**row, self.name: node}
                        if self._kept(made, ctx):
                            yield made

    def _ends(self, row: Row) -> list[str]:
        edges = edges_in(row, self.rel, self.span)
        if not edges:
            return []
        first, last = edges[0], edges[-1]
        if self.end == "both":
            return list(dict.fromkeys((first.src, first.dst)))
        return [first.src] if self.end == "src" else [last.dst]


def edges_in(row: Row, name: str, span: Span) -> list[GraphEdge] | None:
    """The relationships of a name that was bound before, one or a list of them; None for null.

    Raises:
        Fault: It is something else.
    """
    value = row[name]
    if value is None:
        return None
    listed = value if type(value) is list else [value]
    if all(type(item) is GraphEdge for item in listed):
        return listed
    raise value_fault("InvalidArgumentType", f"'{name}' is used as a relationship, but is a {type_name(value)}.").at(span)


_NONE: Final[frozenset[str]] = frozenset()


def used_by(row: Row, names: Sequence[str]) -> frozenset[str]:
    """The ids of the edges that other parts of the pattern hold."""
    if not names:
        return _NONE
    used: list[str] = []
    for name in names:
        value = row.get(name)
        if type(value) is GraphEdge:
            used.append(value.edge_id)
        elif type(value) is list:
            used += [edge.edge_id for edge in value if type(edge) is GraphEdge]
    return frozenset(used)


@record
class Expand(Step):
    """From a node along one relationship.

    Attributes:
        start: The node that is bound.
        rel: The relationship.
        end: The other node.
        direction: As seen from the start.
        rel_types: None for all.
        labels: Of the other node.
        others: The relationships of the same MATCH that are bound: none of them is walked again.
        rel_bound: Whether the relationship is bound already.
        end_bound: Whether the other node is.
    """

    start: str
    rel: str
    end: str
    direction: Direction
    rel_types: tuple[str, ...] | None
    labels: Labels
    others: tuple[str, ...]
    rel_bound: bool
    end_bound: bool
    span: Span

    operator = "Expand"
    many = False

    @property
    def detail(self) -> str:
        """See `Step.detail`."""
        end = f"({shown(self.end)}{shown_labels(self.labels)})"
        return shown_hop(f"({shown(self.start)})", end, self.rel, self.rel_types, self.direction, self._length)

    @property
    def pushed(self) -> str:
        """See `Step.pushed`."""
        return ":" + "|".join(self.rel_types) if self.rel_types else ""

    @property
    def _length(self) -> str:
        return ""

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Step.rows`."""
        for chunk in chunks(rows):
            if len(chunk) > 1 or self.many:
                self.read_ahead(chunk, ctx)
            for row in chunk:
                start = node_in(row, self.start, self.span)
                if start is not None:
                    yield from self._from(start, row, ctx)

    def read_ahead(self, chunk: Sequence[Row], ctx: Context) -> None:
        """Reads the edges at the starts of these rows together."""
        starts = (row[self.start] for row in chunk)
        ctx.prefetch((node.node_id for node in starts if type(node) is GraphNode), self.direction, self.rel_types)

    def _from(self, start: GraphNode, row: Row, ctx: Context) -> Rows:
        hops = ctx.hops(start.node_id, self.direction, self.rel_types)
        ctx.spend(len(hops))
        end = self._bound_end(row)
        if end is False:
            return
        only = edges_in(row, self.rel, self.span) if self.rel_bound else None
        if self.rel_bound and (not only or len(only) != 1):
            return
        used, labels = used_by(row, self.others), self.labels
        for hop in hops:
            edge, far = hop.edge, hop.far
            if (end is not None and far.node_id != end) or (only and only[0] != edge) or edge.edge_id in used:
                continue
            if fits(far, labels):
                made = {**row, self.rel: edge, self.end: far}
                if self._kept(made, ctx):
                    yield made

    def _bound_end(self, row: Row) -> str | Literal[False] | None:
        """The id of the end, where it is bound; False where it is null, None where it is free."""
        if not self.end_bound:
            return None
        node = node_in(row, self.end, self.span)
        return False if node is None else node.node_id


@record
class ExpandMany(Expand):
    """From a node along `low` to `high` relationships, none of them twice.

    Attributes:
        low: The fewest relationships.
        high: The most.
        high_given: Whether the query said so.
        edge_test: What each relationship must fulfil; takes the row and the relationship.
        backwards: Whether the walk goes from the pattern's right to its left, so that the list is turned round.
    """

    low: int
    high: int
    high_given: bool
    edge_test: Callable[[Row, GraphEdge, Context], bool] | None
    backwards: bool

    operator = "ExpandPaths"
    many = True

    @property
    def _length(self) -> str:
        return f"*{self.low}..{self.high}"

    def read_ahead(self, chunk: Sequence[Row], ctx: Context) -> None:
        """Reads level by level, as far as it stays small; the walk reads the rest when it gets there."""
        starts = (row[self.start] for row in chunk)
        level = dict.fromkeys(node.node_id for node in starts if type(node) is GraphNode)
        seen = dict(level)
        for _ in range(self.high):
            if not level or len(seen) > _AHEAD:
                return
            ctx.prefetch(level, self.direction, self.rel_types)
            far = (hop.far.node_id for node_id in level for hop in ctx.hops(node_id, self.direction, self.rel_types))
            level = dict.fromkeys(node_id for node_id in far if node_id not in seen)
            seen |= level

    def _from(self, start: GraphNode, row: Row, ctx: Context) -> Rows:
        end = self._bound_end(row)
        if end is False:
            return
        wanted = edges_in(row, self.rel, self.span) if self.rel_bound else None
        if self.rel_bound and wanted is None:
            return
        for edges, far in self._trails(start, row, ctx):
            if (end is not None and far.node_id != end) or not fits(far, self.labels):
                continue
            listed = edges[::-1] if self.backwards else edges[:]
            if wanted is not None and listed != wanted:
                continue
            made = {**row, self.rel: listed, self.end: far}
            if self._kept(made, ctx):
                yield made

    def _trails(self, start: GraphNode, row: Row, ctx: Context) -> Iterator[tuple[list[GraphEdge], GraphNode]]:
        """The walks from a node, depth first; the list of edges is reused, so it must be copied to be kept."""
        edges: list[GraphEdge] = []
        used = set(used_by(row, self.others))
        if self.low == 0:
            yield edges, start
        if self.high == 0:
            return
        open_hops = [iter(self._hops(start.node_id, 0, ctx))]
        while open_hops:
            hop = next(open_hops[-1], None)
            if hop is None:
                open_hops.pop()
                if edges:
                    used.discard(edges.pop().edge_id)
                continue
            edge = hop.edge
            if edge.edge_id in used or (self.edge_test is not None and not self.edge_test(row, edge, ctx)):
                continue
            edges.append(edge)
            if len(edges) >= self.low:
                yield edges, hop.far
            if len(edges) < self.high:
                used.add(edge.edge_id)
                open_hops.append(iter(self._hops(hop.far.node_id, len(edges), ctx)))
                continue
            edges.pop()
            if not self.high_given and BOUND_REACHED not in ctx.notices:
                self._look_beyond(hop, used | {edge.edge_id}, ctx)

    def _hops(self, node_id: str, depth: int, ctx: Context) -> Sequence[Hop]:
        hops = ctx.hops(node_id, self.direction, self.rel_types)
        ctx.spend(len(hops) + 1)
        if hops and depth + 1 < self.high:
            ctx.prefetch((hop.far.node_id for hop in hops[:_SIBLINGS]), self.direction, self.rel_types)
        return hops

    def _look_beyond(self, hop: Hop, used: set[str], ctx: Context) -> None:
        """Tells that a longer path exists than the bound that the query left open lets through."""
        if any(further.edge.edge_id not in used for further in ctx.hops(hop.far.node_id, self.direction, self.rel_types)):
            ctx.notices[BOUND_REACHED] = None


_SIBLINGS: Final = 256


@record
class Shortest(Step):
    """The shortest path between two nodes that are bound, or all of that length."""

    start: str
    rel: str
    end: str
    direction: Direction
    rel_types: tuple[str, ...] | None
    low: int
    high: int
    high_given: bool
    every: bool
    edge_test: Callable[[Row, GraphEdge, Context], bool] | None
    span: Span

    @property
    def operator(self) -> str:  # type: ignore[override]
        """What it is called in a plan."""
        return "AllShortestPaths" if self.every else "ShortestPath"

    @property
    def detail(self) -> str:
        """See `Step.detail`."""
        length = f"*{self.low}..{self.high}"
        return shown_hop(f"({shown(self.start)})", f"({shown(self.end)})", self.rel, self.rel_types, self.direction, length)

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Step.rows`."""
        for row in rows:
            start, end = node_in(row, self.start, self.span), node_in(row, self.end, self.span)
            if start is None or end is None:
                continue
            for edges in self._paths(start.node_id, end.node_id, row, ctx):
                made = {**row, self.rel: edges}
                if self._kept(made, ctx):
                    yield made
                    if not self.every:
                        break

    def _paths(self, start: str, end: str, row: Row, ctx: Context) -> Iterator[list[GraphEdge]]:
        if start == end:
            if self.low == 0:
                yield []
            return
        # Node → the edges by which it is reached first, with the node before.
        reached: dict[str, list[tuple[str, GraphEdge]]] = {start: []}
        level = [start]
        for _ in range(self.high):
            level = self._next_level(level, reached, row, ctx)
            if end in reached or not level:
                break
        if end in reached:
            yield from self._walked_back(end, start, reached, ctx)
        elif level and not self.high_given:
            ctx.notices[BOUND_REACHED] = None

    def _next_level(self, level: list[str], reached: dict[str, list[tuple[str, GraphEdge]]], row: Row, ctx: Context) -> list[str]:
        ctx.prefetch(level, self.direction, self.rel_types)
        found: dict[str, list[tuple[str, GraphEdge]]] = {}
        for node_id in level:
            hops = ctx.hops(node_id, self.direction, self.rel_types)
            ctx.spend(len(hops) + 1)
            for hop in hops:
                far = hop.far.node_id
                if far not in reached and (self.edge_test is None or self.edge_test(row, hop.edge, ctx)):
                    found.setdefault(far, []).append((node_id, hop.edge))
        reached |= found
        return list(found)

    def _walked_back(
        self, end: str, start: str, reached: dict[str, list[tuple[str, GraphEdge]]], ctx: Context
    ) -> Iterator[list[GraphEdge]]:
        waiting: list[tuple[str, list[GraphEdge]]] = [(end, [])]
        while waiting:
            node_id, edges = waiting.pop()
            if node_id == start:
                yield edges[::-1]
                continue
            ctx.spend(len(reached[node_id]))
            waiting += [(before, [*edges, edge]) for before, edge in reversed(reached[node_id])]


@record
class MakePath(Step):
    """The path of a pattern whose parts are bound."""

    name: str
    nodes: tuple[str, ...]
    rels: tuple[str, ...]

    operator = "Path"

    @property
    def detail(self) -> str:
        """See `Step.detail`."""
        return shown(self.name)

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Step.rows`."""
        for row in rows:
            made = {**row, self.name: self._path(row, ctx)}
            if self._kept(made, ctx):
                yield made

    def _path(self, row: Row, ctx: Context) -> Path:
        nodes: list[GraphNode] = [row[self.nodes[0]]]
        edges: list[GraphEdge] = []
        for rel, end in zip(self.rels, self.nodes[1:], strict=True):
            walked = row[rel] if type(row[rel]) is list else [row[rel]]
            for edge in walked:
                near = nodes[-1].node_id
                far = edge.dst if edge.src == near else edge.src
                node = ctx.node(far)
                nodes.append(row[end] if node is None else node)
                edges.append(edge)
        return Path(tuple(nodes), tuple(edges))


def shown(name: str) -> str:
    """A name as a plan shows it: nothing for one that the query did not give."""
    return "" if name.startswith("\0") else name


def shown_labels(labels: Labels) -> str:
    """Labels as a plan shows them."""
    return "".join(":" + "|".join(group) for group in labels.all_of)


def shown_hop(start: str, end: str, rel: str, rel_types: tuple[str, ...] | None, direction: Direction, length: str) -> str:
    """A relationship as a plan shows it."""
    inside = shown(rel) + (":" + "|".join(rel_types) if rel_types else "") + length
    left, right = ("<-" if direction == "in" else "-"), ("->" if direction == "out" else "-")
    return f"{start}{left}[{inside}]{right}{end}"
