"""Builds graphs from the set-up statements of openCypher's conformance kit, for tests of an engine that itself only reads.

It knows `CREATE`, `MATCH` of plain patterns with `WHERE`, `UNWIND`, `WITH`, `SET` and `DELETE`, and has nothing of the engine in it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

from pulse_kg.cypher.memory_source import MemorySource
from pulse_kg.ports.graph_source import GraphEdge, GraphNode
from tests.support.cypher_cells import Tokens, number, unquoted

Row = Mapping[str, Any]
Evaluate = Callable[[Row], Any]


@dataclass(eq=False)
class Node:
    """A node that may still change."""

    node_id: str
    labels: list[str]
    properties: dict[str, Any]


@dataclass(eq=False)
class Edge:
    """A relationship that may still change."""

    edge_id: str
    rel_type: str
    src: Node
    dst: Node
    properties: dict[str, Any]


@dataclass
class Graph:
    """What the statements built; ids are numbered as elements were made."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def run(self, statement: str) -> None:
        """Runs one more statement.

        Raises:
            AssertionError: It is none that is known here.
        """
        _Statement(self, Tokens(statement)).run()

    def elements(self) -> tuple[list[GraphNode], list[GraphEdge]]:
        """As the engine sees them."""
        nodes = [GraphNode(n.node_id, tuple(n.labels), dict(n.properties)) for n in self.nodes]
        return nodes, [GraphEdge(e.edge_id, e.rel_type, e.src.node_id, e.dst.node_id, dict(e.properties)) for e in self.edges]

    def source(self) -> MemorySource:
        """A source over it."""
        return MemorySource(*self.elements())


def build(statements: Iterable[str]) -> Graph:
    """The graph that these statements build."""
    graph = Graph()
    for statement in statements:
        graph.run(statement)
    return graph


def source_of(*statements: str) -> MemorySource:
    """A source over the graph that these statements build."""
    return build(statements).source()


# Patterns.


@dataclass(frozen=True)
class _NodeSpec:
    variable: str | None
    labels: tuple[str, ...]
    properties: Evaluate


@dataclass(frozen=True)
class _RelSpec:
    variable: str | None
    rel_types: tuple[str, ...]
    properties: Evaluate
    arrow: str


@dataclass(frozen=True)
class _Chain:
    nodes: tuple[_NodeSpec, ...]
    rels: tuple[_RelSpec, ...]


def _nothing(_row: Row) -> dict[str, Any]:
    return {}


class _Statement:
    """Reads clause after clause and runs each over the rows so far."""

    def __init__(self, graph: Graph, tokens: Tokens) -> None:
        self.graph = graph
        self.tokens = tokens
        self.rows: list[dict[str, Any]] = [{}]

    def run(self) -> None:
        tokens = self.tokens
        while not tokens.done:
            if tokens.accept("CREATE"):
                chains = self._chains()
                self.rows = [self._created(chains, row) for row in self.rows]
            elif tokens.accept("MATCH"):
                chains = self._chains()
                self.rows = [match for row in self.rows for match in self._matches(chains, row)]
                self._filter()
            elif tokens.accept("UNWIND"):
                items = self._expression()
                tokens.expect("AS")
                name = tokens.name()
                self.rows = [row | {name: item} for row in self.rows for item in items(row) or ()]
            elif tokens.accept("WITH"):
                columns = self._listed(self._column)
                self.rows = [{name: value(row) for name, value in columns} for row in self.rows]
                self._filter()
            elif tokens.accept("SET"):
                for change in self._listed(self._change):
                    for row in self.rows:
                        change(row)
            elif tokens.accept("DETACH", "DELETE") or tokens.accept("DELETE"):
                victims = self._listed(self._expression)
                self._delete([victim(row) for row in self.rows for victim in victims])
            else:
                tokens.expect(";")

    def _listed(self, one: Callable[[], Any]) -> list[Any]:
        items = [one()]
        while self.tokens.accept(","):
            items.append(one())
        return items

    def _filter(self) -> None:
        if self.tokens.accept("WHERE"):
            where = self._expression()
            self.rows = [row for row in self.rows if where(row) is True]

    def _column(self) -> tuple[str, Evaluate]:
        first = self.tokens.peek()
        value = self._expression()
        return (self.tokens.name() if self.tokens.accept("AS") else first), value

    def _change(self) -> Callable[[Row], None]:
        name = self.tokens.name()
        if self.tokens.peek() == ":":
            labels = self._labels()
            return lambda row: row[name].labels.extend(label for label in labels if label not in row[name].labels)
        self.tokens.expect(".")
        key = self.tokens.name()
        self.tokens.expect("=")
        value = self._expression()
        return lambda row: row[name].properties.update({key: value(row)})

    def _delete(self, victims: Sequence[Any]) -> None:
        gone = {id(victim) for victim in victims}
        self.graph.edges = [e for e in self.graph.edges if not {id(e), id(e.src), id(e.dst)} & gone]
        self.graph.nodes = [n for n in self.graph.nodes if id(n) not in gone]

    # What patterns do.

    def _created(self, chains: Sequence[_Chain], row: Row) -> dict[str, Any]:
        row = dict(row)
        for chain in chains:
            nodes = [self._node(spec, row) for spec in chain.nodes]
            for (near, far), spec in zip(pairwise(nodes), chain.rels, strict=True):
                src, dst = (far, near) if spec.arrow == "in" else (near, far)
                edge = Edge(f"e{next(self.graph.numbers):06}", spec.rel_types[0], src, dst, spec.properties(row))
                self.graph.edges.append(edge)
                if spec.variable:
                    row[spec.variable] = edge
        return row

    def _node(self, spec: _NodeSpec, row: dict[str, Any]) -> Node:
        if spec.variable in row:
            bound: Node = row[spec.variable]
            return bound
        node = Node(f"n{next(self.graph.numbers):06}", list(dict.fromkeys(spec.labels)), spec.properties(row))
        self.graph.nodes.append(node)
        if spec.variable:
            row[spec.variable] = node
        return node

    def _matches(self, chains: Sequence[_Chain], row: Row) -> list[dict[str, Any]]:
        found: list[tuple[dict[str, Any], frozenset[int]]] = [(dict(row), frozenset())]
        for chain in chains:
            found = [match for before, used in found for match in self._chain_matches(chain, before, used)]
        return [match for match, _ in found]

    def _chain_matches(self, chain: _Chain, row: dict[str, Any], used: frozenset[int]) -> Iterator[tuple[dict[str, Any], frozenset[int]]]:
        def further(at: int, node: Node, now: dict[str, Any], taken: frozenset[int]) -> Iterator[tuple[dict[str, Any], frozenset[int]]]:
            here = _bound(chain.nodes[at], node, now)
            if here is None:
                return
            if at == len(chain.rels):
                yield here, taken
                return
            spec = chain.rels[at]
            for edge in list(self.graph.edges):
                if id(edge) in taken or (spec.rel_types and edge.rel_type not in spec.rel_types):
                    continue
                ends = {"out": [(edge.src, edge.dst)], "in": [(edge.dst, edge.src)]}.get(
                    spec.arrow, [(edge.src, edge.dst), (edge.dst, edge.src)]
                )
                for near, far in ends[: 1 if edge.src is edge.dst else 2]:
                    if near is node and _fits(spec.properties(here), edge.properties):
                        yield from further(at + 1, far, here | ({spec.variable: edge} if spec.variable else {}), taken | {id(edge)})

        for start in list(self.graph.nodes):
            yield from further(0, start, row, used)

    # How patterns are read.

    def _chains(self) -> list[_Chain]:
        return self._listed(self._chain)

    def _chain(self) -> _Chain:
        tokens = self.tokens
        if tokens.peek(1) == "=":
            tokens.name()
            tokens.expect("=")
        nodes, rels = [self._node_spec()], []
        while tokens.peek() in {"-", "<-"}:
            backward = tokens.accept("<-") or not tokens.accept("-")
            variable: str | None = None
            types: tuple[str, ...] = ()
            properties: Evaluate = _nothing
            if tokens.accept("["):
                variable = tokens.name() if tokens.kind() in {"name", "quoted"} else None
                types = self._rel_types()
                properties = self._properties()
                tokens.expect("]")
            forward = tokens.accept("->")
            if not forward:
                tokens.expect("-")
            rels.append(_RelSpec(variable, types, properties, "in" if backward else "out" if forward else "both"))
            nodes.append(self._node_spec())
        return _Chain(tuple(nodes), tuple(rels))

    def _node_spec(self) -> _NodeSpec:
        self.tokens.expect("(")
        variable = self.tokens.name() if self.tokens.kind() in {"name", "quoted"} else None
        spec = _NodeSpec(variable, self._labels(), self._properties())
        self.tokens.expect(")")
        return spec

    def _labels(self) -> tuple[str, ...]:
        labels = []
        while self.tokens.accept(":"):
            labels.append(self.tokens.name())
        return tuple(labels)

    def _rel_types(self) -> tuple[str, ...]:
        types: list[str] = []
        while self.tokens.accept("|" if types else ":"):
            self.tokens.accept(":")
            types.append(self.tokens.name())
        return tuple(types)

    def _properties(self) -> Evaluate:
        if self.tokens.peek() != "{":
            return _nothing
        entries = self._atom()
        return lambda row: {key: value for key, value in entries(row).items() if value is not None}

    # Expressions.

    def _expression(self, level: int = 0) -> Evaluate:
        if level == len(_LEVELS):
            return self._postfix()
        if level == _NOT_LEVEL and self.tokens.accept("NOT"):
            of = self._expression(level)
            return lambda row: _not(of(row))
        left = self._expression(level + 1)
        while self.tokens.peek().upper() in _LEVELS[level]:
            sign = self.tokens.take().text.upper()
            left = _binary(_LEVELS[level][sign], left, self._expression(level + 1))
        return left

    def _postfix(self) -> Evaluate:
        of = self._atom()
        while True:
            if self.tokens.accept("."):
                of = _property(of, self.tokens.name())
            elif self.tokens.accept("["):
                of = _binary(lambda a, b: a[b], of, self._expression())
                self.tokens.expect("]")
            elif self.tokens.peek() == ":" and self.tokens.kind(1) in {"name", "quoted"}:
                of = _has_labels(of, self._labels())
            else:
                return of

    def _atom(self) -> Evaluate:
        tokens = self.tokens
        if tokens.accept("-"):
            of = self._postfix()
            return lambda row: None if (value := of(row)) is None else -value
        if tokens.accept("("):
            inner = self._expression()
            tokens.expect(")")
            return inner
        if tokens.accept("["):
            items = [] if tokens.peek() == "]" else self._listed(self._expression)
            tokens.expect("]")
            return lambda row: [item(row) for item in items]
        if tokens.accept("{"):
            entries = [] if tokens.peek() == "}" else self._listed(self._entry)
            tokens.expect("}")
            return lambda row: {key: value(row) for key, value in entries}
        token = tokens.take()
        if token.kind in {"text", "number"}:
            constant = unquoted(token.text) if token.kind == "text" else number(token.text)
            return lambda row: constant
        assert token.kind in {"name", "quoted"}, f"no expression begins with {token} in {tokens.text!r}"
        return self._named(token.text)

    def _entry(self) -> tuple[str, Evaluate]:
        key = self.tokens.name()
        self.tokens.expect(":")
        return key, self._expression()

    def _named(self, name: str) -> Evaluate:
        if name.lower() in _CONSTANTS:
            constant = _CONSTANTS[name.lower()]
            return lambda row: constant
        if self.tokens.accept("("):
            function = _FUNCTIONS[name.lower()]
            arguments = [] if self.tokens.peek() == ")" else self._listed(self._expression)
            self.tokens.expect(")")
            return lambda row: function(*(argument(row) for argument in arguments))
        name = name.strip("`")
        return lambda row: row[name]


def _bound(spec: _NodeSpec, node: Node, row: dict[str, Any]) -> dict[str, Any] | None:
    if spec.variable in row:
        return row if row[spec.variable] is node else None
    if set(spec.labels) <= set(node.labels) and _fits(spec.properties(row), node.properties):
        return row | ({spec.variable: node} if spec.variable else {})
    return None


def _fits(wanted: Mapping[str, Any], properties: Mapping[str, Any]) -> bool:
    return all(key in properties and properties[key] == value for key, value in wanted.items())


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _property(of: Evaluate, key: str) -> Evaluate:
    def value(row: Row) -> Any:
        owner = of(row)
        return owner.get(key) if isinstance(owner, dict) else None if owner is None else owner.properties.get(key)

    return value


def _has_labels(of: Evaluate, labels: Sequence[str]) -> Evaluate:
    return lambda row: set(labels) <= set(of(row).labels)


def _binary(operate: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
    def value(row: Row) -> Any:
        one, other = left(row), right(row)
        return None if one is None or other is None else operate(one, other)

    return value


def _plus(one: Any, other: Any) -> Any:
    return f"{one}{other}" if isinstance(one, str) != isinstance(other, str) else one + other


def _range(first: int, last: int, step: int = 1) -> list[int]:
    return list(range(first, last + (1 if step > 0 else -1), step))


def _divided(one: Any, other: Any) -> Any:
    return int(one / other) if isinstance(one, int) and isinstance(other, int) else one / other


_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "range": _range,
    "tostring": lambda value: str(value).lower() if isinstance(value, bool) else str(value),
    "tointeger": int,
    "tofloat": float,
    "size": len,
}
_LEVELS: tuple[dict[str, Callable[[Any, Any], Any]], ...] = (
    {"OR": lambda a, b: a or b},
    {"XOR": operator.ne},
    {"AND": lambda a, b: a and b},
    {
        "=": operator.eq,
        "<>": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "IN": lambda a, b: a in b,
    },
    {"+": _plus, "-": operator.sub},
    {"*": operator.mul, "/": _divided, "%": operator.mod},
)
_NOT_LEVEL = 3
