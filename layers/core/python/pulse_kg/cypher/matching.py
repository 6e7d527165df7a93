"""Patterns → plans: which node to begin at, which way to go, which condition to ask when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pulse_kg.cypher import ast, kinds
from pulse_kg.cypher.ast import Span
from pulse_kg.cypher.context import Context, Row
from pulse_kg.cypher.expressions import Evaluate, ExpressionCompiler, Uses
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.limits import MAX_HOPS
from pulse_kg.cypher.scope import Scope
from pulse_kg.cypher.steps import (
    Check,
    Condition,
    EdgeScan,
    Equality,
    Expand,
    ExpandMany,
    FilterRows,
    FromRelationship,
    MakePath,
    Nested,
    Rows,
    Scan,
    Shortest,
    Step,
)
from pulse_kg.cypher.tree import parts_of
from pulse_kg.domain.records import record
from pulse_kg.ports.graph_source import Direction, GraphCounts, GraphEdge

_BOUND, _SEEK, _RELATIONSHIP = 0, 1, 2
_SELECTIVE: Final = 10  # a node that an equality picks out is supposed to be one of so many
_EDGE_SCAN_FROM: Final = 256  # nodes to begin at, from which on it pays to read the edges as a whole
_REVERSED: Final[Mapping[Direction, Direction]] = {"out": "in", "in": "out", "both": "both"}

EdgeTest = Callable[[Row, GraphEdge, Context], bool]


@record
class NodeElement:
    """A node of a pattern, under the name that the query or the compiler gave it."""

    name: str
    labels: ast.Labels
    span: Span


@record
class RelElement:
    """A relationship of a pattern.

    Attributes:
        test: What each relationship of a longer path must fulfil.
    """

    name: str
    rel_types: tuple[str, ...] | None
    direction: Direction
    hops: ast.Hops | None
    test: EdgeTest | None
    span: Span

    @property
    def low(self) -> int:
        """The fewest relationships of a path."""
        return 1 if self.hops is None or self.hops.low is None else self.hops.low

    @property
    def high(self) -> int:
        """The most of them."""
        return MAX_HOPS if self.hops is None or self.hops.high is None else self.hops.high

    @property
    def high_given(self) -> bool:
        """Whether the query gives that bound."""
        return self.hops is None or self.hops.high is not None


@record
class Chain:
    """A part of a pattern.

    Attributes:
        path: The path's name, if it has one.
    """

    path: str | None
    nodes: tuple[NodeElement, ...]
    rels: tuple[RelElement, ...]
    shortest: str | None


class Match:
    """A pattern with its conditions, ready to be planned.

    Args:
        chains: Its parts.
        conditions: What must hold, in the order of the text.
        equalities: Node name → what it must be equal to, for those that can be handed to the store.
        bound: The names that are bound before.
        scope: The names in scope afterwards.
        new: The names that it brings in.
    """

    def __init__(
        self,
        chains: tuple[Chain, ...],
        conditions: tuple[Condition, ...],
        equalities: Mapping[str, tuple[Equality, ...]],
        bound: frozenset[str],
        scope: Scope,
        new: tuple[str, ...],
    ) -> None:
        self.chains = chains
        self.conditions = conditions
        self.equalities = equalities
        self.bound = bound
        self.scope = scope
        self.new = new

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """The rows that match, for each row."""
        for step in self.plan(ctx):
            rows = step.rows(rows, ctx)
        late = [condition for condition in self.conditions if not condition.exact and not condition.once]
        return _all_hold(rows, late, ctx) if late else iter(rows)

    def read_ahead(self, chunk: Sequence[Row], ctx: Context) -> None:
        """Reads together what the first step needs of these rows, which are matched one by one afterwards."""
        for step in self.plan(ctx):
            if isinstance(step, Check):
                continue
            if isinstance(step, Expand) and all(step.start in row for row in chunk):
                step.read_ahead(chunk, ctx)
            return

    def plan(self, ctx: Context) -> list[Step]:
        """The steps, chosen once a run by what there is in the graph."""
        plan: list[Step] | None = ctx.memo.get(id(self))
        if plan is None:
            plan = ctx.memo[id(self)] = _Planner(self, ctx.counts, ctx.id_key).plan()
        return plan


def _all_hold(rows: Iterable[Row], conditions: Sequence[Condition], ctx: Context) -> Iterator[Row]:
    for row in rows:
        if all(condition.holds(row, ctx) is True for condition in conditions):
            yield row


class _Planner:
    """Chooses the steps of one pattern: greedily, always the cheapest beginning, then outwards from it.

    Args:
        match: The pattern.
        counts: Reads how much there is. It takes longer the larger the board is, so it is left out where a pattern has a node to begin at.
        id_key: The property that holds a node's id.
    """

    def __init__(self, match: Match, counts: Callable[[], GraphCounts], id_key: str | None) -> None:
        self._match = match
        self._counts = counts
        self._id_key = id_key
        self._bound = set(match.bound)
        self._waiting = list(match.conditions)
        self._rels = [rel.name for chain in match.chains for rel in chain.rels]
        self._steps: list[Step] = []

    def plan(self) -> list[Step]:
        # What needs nothing of the pattern, a condition on outer names alone, is asked with the first step.
        remaining = list(range(len(self._match.chains)))
        while remaining:
            places = [(number, at) for number in remaining for at in range(len(self._match.chains[number].nodes))]
            known = [(cost, number, at) for number, at in places if (cost := self._known_cost(self._match.chains[number], at)) is not None]
            cost, number, at = min(known or [(self._scan_cost(self._match.chains[n].nodes[at]), n, at) for n, at in places])
            self._walk(self._match.chains[number], at, cost)
            remaining.remove(number)
        return self._steps

    def _known_cost(self, chain: Chain, at: int) -> int | None:
        """What it costs to begin at a node, where that is less than any scan; else None."""
        node = chain.nodes[at]
        if node.name in self._bound:
            return _BOUND
        if self._seek(node) is not None:
            return _SEEK
        return None if self._bound_rel(chain, at) is None else _RELATIONSHIP

    def _scan_cost(self, node: NodeElement) -> int:
        """How many nodes a scan gives to begin with, as far as one knows."""
        nodes = self._counts().nodes
        count = min([self._total(), *(sum(nodes.get(label, 0) for label in set(group)) for group in node.labels.all_of)])
        return _RELATIONSHIP + 1 + (count // _SELECTIVE if self._pushable(node) else count)

    def _total(self) -> int:
        return sum(self._counts().nodes.values())

    def _seek(self, node: NodeElement) -> Equality | None:
        for equality in self._match.equalities.get(node.name, ()):
            if equality.key in {"", self._id_key} and equality.uses <= self._bound:
                return equality
        return None

    def _pushable(self, node: NodeElement) -> tuple[Equality, ...]:
        known = self._match.equalities.get(node.name, ())
        return tuple(e for e in known if e.key and not e.many and e.uses <= self._bound)

    def _bound_rel(self, chain: Chain, at: int) -> tuple[RelElement, bool] | None:
        """A relationship at this node that is bound already, and whether the node is on its left."""
        for index, on_left in ((at, True), (at - 1, False)):
            if 0 <= index < len(chain.rels) and chain.rels[index].name in self._bound:
                rel = chain.rels[index]
                if rel.hops is None or rel.direction != "both":
                    return rel, on_left
        return None

    def _walk(self, chain: Chain, at: int, cost: int) -> None:
        if chain.shortest is not None:
            self._shortest(chain)
        else:
            first, last = at, at
            if chain.nodes[at].name not in self._bound:
                first, last = self._begin(chain, at, cost)
            elif chain.nodes[at].labels.all_of:
                self._add(Check(chain.nodes[at].name, chain.nodes[at].labels, chain.nodes[at].span))
            for index in range(last, len(chain.rels)):
                self._expand(chain.nodes[index], chain.rels[index], chain.nodes[index + 1], backwards=False)
            for index in range(first - 1, -1, -1):
                self._expand(chain.nodes[index + 1], chain.rels[index], chain.nodes[index], backwards=True)
        if chain.path is not None:
            self._add(MakePath(chain.path, tuple(n.name for n in chain.nodes), tuple(r.name for r in chain.rels)), chain.path)
        elif not chain.rels and chain.nodes[0].name in self._match.bound and not chain.nodes[0].labels.all_of:
            self._add(Check(chain.nodes[0].name, chain.nodes[0].labels, chain.nodes[0].span))

    def _begin(self, chain: Chain, at: int, cost: int) -> tuple[int, int]:
        """Binds the node to begin with; gives the nodes that are bound then, from the first to the last."""
        node = chain.nodes[at]
        seek, bound_rel = self._seek(node), self._bound_rel(chain, at)
        if seek is not None:
            self._add(Scan(node.name, node.labels, seek=seek, estimate=None if seek.many else 1), node.name)
        elif bound_rel is not None:
            rel, on_left = bound_rel
            end = "both" if rel.direction == "both" else "src" if (rel.direction == "out") == on_left else "dst"
            if rel.hops is None:
                self._add(
                    FromRelationship(
                        node.name, rel.name, "src" if end == "src" else "dst" if end == "dst" else "both", node.labels, node.span
                    ),
                    node.name,
                )
            else:
                self._scan(node, cost)
        elif (index := self._edge_scan_at(chain, at, cost)) is not None:
            self._edge_scan(chain, index)
            return index, index + 1
        else:
            self._scan(node, cost)
        return at, at

    def _scan(self, node: NodeElement, cost: int) -> None:
        self._add(Scan(node.name, node.labels, self._pushable(node), estimate=max(0, cost - _RELATIONSHIP - 1)), node.name)

    def _edge_scan_at(self, chain: Chain, at: int, cost: int) -> int | None:
        """The relationship by which to begin, where it pays to read all edges of its types."""
        if cost < _EDGE_SCAN_FROM or self._pushable(chain.nodes[at]):
            return None
        for index in (at, at - 1):
            if 0 <= index < len(chain.rels):
                rel, ends = chain.rels[index], chain.nodes[index : index + 2]
                free = rel.name not in self._bound and all(node.name not in self._bound for node in ends) and ends[0].name != ends[1].name
                if free and rel.hops is None and (rel.rel_types is not None or 4 * cost >= self._total()):
                    return index
        return None

    def _edge_scan(self, chain: Chain, index: int) -> None:
        rel, first, last = chain.rels[index], chain.nodes[index], chain.nodes[index + 1]
        step = EdgeScan(first.name, rel.name, last.name, first.labels, last.labels, rel.rel_types, rel.direction, self._others(rel))
        self._add(step, first.name, rel.name, last.name)

    def _expand(self, start: NodeElement, rel: RelElement, end: NodeElement, *, backwards: bool) -> None:
        rel_bound, end_bound = rel.name in self._bound, end.name in self._bound
        direction = _REVERSED[rel.direction] if backwards else rel.direction
        known = (start.name, rel.name, end.name, direction, rel.rel_types, end.labels, self._others(rel), rel_bound, end_bound, rel.span)
        if rel.hops is None:
            self._add(Expand(*known), rel.name, end.name)
        else:
            self._add(ExpandMany(*known, rel.low, rel.high, rel.high_given, rel.test, backwards), rel.name, end.name)

    def _shortest(self, chain: Chain) -> None:
        for node in chain.nodes:
            if node.name not in self._bound:
                seek = self._seek(node)
                if seek is None:
                    self._scan(node, self._scan_cost(node))
                else:
                    self._add(Scan(node.name, node.labels, seek=seek), node.name)
            elif node.labels.all_of:
                self._add(Check(node.name, node.labels, node.span))
        rel, (start, end) = chain.rels[0], chain.nodes
        every = chain.shortest == "all"
        step = Shortest(
            start.name, rel.name, end.name, rel.direction, rel.rel_types, rel.low, rel.high, rel.high_given, every, rel.test, rel.span
        )
        self._add(step, rel.name)

    def _others(self, rel: RelElement) -> tuple[str, ...]:
        return tuple(name for name in dict.fromkeys(self._rels) if name != rel.name and name in self._bound)

    def _add(self, step: Step, *names: str) -> None:
        self._bound.update(names)
        ready = [condition for condition in self._waiting if condition.uses <= self._bound]
        self._waiting = [condition for condition in self._waiting if not condition.uses <= self._bound]
        self._steps.append(replace(step, conditions=tuple(condition for condition in ready if not condition.once)))
        with_patterns = tuple(condition for condition in ready if condition.once)
        if with_patterns:
            self._steps.append(FilterRows(with_patterns))


class PatternCompiler:
    """Compiles patterns: names and kinds of their elements, and the conditions in them.

    Args:
        expressions: Compiles their expressions.
        uses: Takes up what they ask for.
        fresh_name: Makes a name that no query can spell.
        nested: Takes up the patterns inside of conditions.
    """

    def __init__(self, expressions: ExpressionCompiler, uses: Uses, fresh_name: Callable[[str], str], nested: Nested) -> None:
        self._expressions = expressions
        self._uses = uses
        self._fresh_name = fresh_name
        self._nested = nested

    def compile(self, parts: Sequence[ast.PatternPart], where: ast.Expression | None, outer: Scope, *, fresh: bool = True) -> Match:
        """A pattern with its condition.

        Args:
            parts: The pattern.
            where: Its WHERE.
            outer: The scope before it.
            fresh: Whether it may bring in names.

        Raises:
            Fault: A name is used as two kinds of things, or twice where it may be only once; a condition makes no sense.
        """
        found = _Names(outer, self._fresh_name, fresh=fresh)
        chains = [(part, *found.chain(part)) for part in parts]
        scope = outer.with_inner(found.new)
        conditions: list[Condition] = []
        equalities: dict[str, list[Equality]] = {}
        compiled = tuple(self._chain(part, names, rels, scope, conditions, equalities) for part, names, rels in chains)
        for tree in conjuncts(where):
            self._condition(tree, scope, conditions, equalities)
        bound = frozenset(outer.names)
        return Match(compiled, tuple(conditions), {k: tuple(v) for k, v in equalities.items()}, bound, scope, tuple(found.new))

    def _chain(
        self,
        part: ast.PatternPart,
        nodes: tuple[str, ...],
        rels: tuple[str, ...],
        scope: Scope,
        conditions: list[Condition],
        equalities: dict[str, list[Equality]],
    ) -> Chain:
        node_elements, rel_elements = [], []
        for name, node in zip(nodes, part.nodes, strict=True):
            self._uses.named += [("label", label, node.span) for group in node.labels.all_of for label in group]
            for tree in self._inline(name, node.properties, node.where, node.span):
                self._condition(tree, scope, conditions, equalities)
            node_elements.append(NodeElement(name, node.labels, node.span))
        for name, rel in zip(rels, part.rels, strict=True):
            self._uses.named += [("type", rel_type, rel.span) for rel_type in rel.rel_types]
            test = None
            if rel.hops is not None or part.shortest is not None:
                test = self._edge_test(rel, scope)
            else:
                for tree in self._inline(name, rel.properties, rel.where, rel.span):
                    self._condition(tree, scope, conditions, equalities)
            rel_elements.append(RelElement(name, rel.rel_types or None, rel.arrow, self._hops(rel, part), test, rel.span))
        return Chain(part.variable, tuple(node_elements), tuple(rel_elements), part.shortest)

    def _hops(self, rel: ast.RelPattern, part: ast.PatternPart) -> ast.Hops | None:
        if part.shortest is None:
            return rel.hops
        hops = rel.hops or ast.Hops(1, 1, rel.span)
        if hops.low is not None and hops.low > 1:
            raise Fault("InvalidRelationshipPattern", "A shortest path has a minimal length of 0 or 1: write *..n.", rel.span)
        return hops

    @staticmethod
    def _inline(name: str, properties: ast.MapOf | None, where: ast.Expression | None, span: Span) -> list[ast.Expression]:
        """What the map and the WHERE in an element ask, as conditions."""
        found: list[ast.Expression] = []
        if properties is not None:
            element = ast.Variable(name, span)
            found += [
                ast.Comparison((ast.Property(element, key, value.span), value), ("=",), value.span) for key, value in properties.entries
            ]
        if where is not None:
            found += conjuncts(where)
        return found

    def _edge_test(self, rel: ast.RelPattern, scope: Scope) -> EdgeTest | None:
        name = rel.variable or self._fresh_name("edge")
        inner = scope.with_inner({name: kinds.RELATIONSHIP})
        trees = self._inline(name, rel.properties, rel.where, rel.span)
        tests = [self._expressions.predicate(tree, inner, "A relationship's condition") for tree in trees]
        if not tests:
            return None
        return lambda row, edge, ctx: all(test({**row, name: edge}, ctx) is True for test in tests)

    def _condition(self, tree: ast.Expression, scope: Scope, conditions: list[Condition], equalities: dict[str, list[Equality]]) -> None:
        own = Scope(scope.names)
        with self._nested.gathered() as nested:
            holds = self._expressions.predicate(tree, own, "WHERE")
        uses = frozenset(own.used) & frozenset(scope.names)
        scope.used.update(uses)
        # What draws by chance is asked once for each match, whatever the plan.
        drawn = any(isinstance(part, ast.Call) and part.name.lower() == "rand" for part in parts_of(tree))
        conditions.append(
            Condition(
                frozenset(scope.names) if drawn else uses,
                holds,
                _is_boolean(tree) and never_faults(tree, scope),
                tuple(nested),
                once=drawn or bool(nested),
            )
        )
        for name, equality in self._equalities(tree, scope):
            equalities.setdefault(name, []).append(equality)

    def _equalities(self, tree: ast.Expression, scope: Scope) -> Iterator[tuple[str, Equality]]:
        """What a condition says of a node's property and a value that the node has no part in."""
        if isinstance(tree, ast.Comparison) and tree.ops == ("=",):
            pairs = [(tree.operands[0], tree.operands[1]), (tree.operands[1], tree.operands[0])]
            many = False
        elif isinstance(tree, ast.Operation) and tree.ops == ("IN",):
            pairs, many = [(tree.operands[0], tree.operands[1])], True
        else:
            return
        for of, value in pairs:
            named = _property_of_name(of)
            if named is None or scope.names.get(named[0]) is not kinds.NODE:
                continue
            own = Scope(scope.names)
            run = self._expressions.compile(value, own).run
            if named[0] not in own.used and not any(isinstance(part, _UNPLANNED) for part in parts_of(value)):
                key = named[1]
                text = f"{named[0].lstrip(chr(0))}.{key or 'id'} {'IN' if many else '='} …"
                yield named[0], Equality(key, _quiet(run), frozenset(own.used) & frozenset(scope.names), text, many)


_UNPLANNED: Final = (ast.Subquery, ast.PatternComprehension, ast.PatternPredicate, ast.ShortestPathExpression)


def _quiet(run: Evaluate) -> Evaluate:
    """The value, or null where it can't be had: the condition itself tells the fault, if a row gets there."""

    def value(row: Row, ctx: Context) -> Any:
        try:
            return run(row, ctx)
        except Fault:
            return None

    return value


def _property_of_name(tree: ast.Expression) -> tuple[str, str] | None:
    """The name and key of `name.key`; of `id(name)` and `elementId(name)` the key is empty."""
    if isinstance(tree, ast.Property) and isinstance(tree.of, ast.Variable):
        return tree.of.name, tree.key
    if isinstance(tree, ast.Call) and tree.name.lower() in {"id", "elementid"} and len(tree.arguments) == 1:
        argument = tree.arguments[0]
        return (argument.name, "") if isinstance(argument, ast.Variable) else None
    return None


def conjuncts(where: ast.Expression | None) -> list[ast.Expression]:
    """The conditions that all must hold."""
    if where is None:
        return []
    if isinstance(where, ast.Operation) and where.ops[0] == "AND":
        return [tree for operand in where.operands for tree in conjuncts(operand)]
    return [where]


def never_faults(tree: ast.Expression, scope: Scope) -> bool:
    """Whether a condition has a value for every row: then it may be asked early, and need not be asked again."""
    operands: tuple[ast.Expression, ...] | None = None
    match tree:
        case ast.Constant() | ast.Parameter() | ast.Variable():
            operands = ()
        case ast.Property(of=ast.Variable(name=name)) | ast.HasLabels(of=ast.Variable(name=name)):
            operands = () if scope.names.get(name) in {kinds.NODE, kinds.RELATIONSHIP} else None
        case ast.Operation(operands=parts, ops=(("AND" | "OR" | "XOR"), *_)):
            operands = parts if all(_is_boolean(part) for part in parts) else None
        case ast.Comparison(operands=parts) | ast.Operation(operands=parts, ops=("STARTS WITH",) | ("ENDS WITH",) | ("CONTAINS",)):
            operands = parts
        case ast.Operation(ops=("IN",), operands=(_, ast.ListOf()) as parts) | ast.ListOf(items=parts):
            operands = parts
        case ast.Unary(op="NOT", of=of):
            operands = (of,) if _is_boolean(of) else None
        case ast.IsNull(of=of):
            operands = (of,)
    return operands is not None and all(never_faults(operand, scope) for operand in operands)


def _is_boolean(tree: ast.Expression) -> bool:
    if isinstance(tree, ast.Operation):
        return tree.ops[0] in {"AND", "OR", "XOR", "IN", "STARTS WITH", "ENDS WITH", "CONTAINS"}
    return isinstance(tree, ast.Comparison | ast.IsNull | ast.HasLabels) or (isinstance(tree, ast.Unary) and tree.op == "NOT")


class _Names:
    """Gives names and kinds to the elements of the patterns of one MATCH."""

    def __init__(self, outer: Scope, fresh_name: Callable[[str], str], *, fresh: bool) -> None:
        self.new: dict[str, kinds.Kind] = {}
        self._outer = outer
        self._fresh_name = fresh_name
        self._fresh = fresh
        self._rels: set[str] = set()

    def chain(self, part: ast.PatternPart) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of a part's nodes and relationships."""
        nodes, rels = [self._node(part.nodes[0])], list[str]()
        for rel, node in zip(part.rels, part.nodes[1:], strict=True):
            rels.append(self._rel(rel, many=rel.hops is not None or part.shortest is not None))
            nodes.append(self._node(node))
        if part.variable is not None:
            self._path(part.variable, part.span)
        return tuple(nodes), tuple(rels)

    def _node(self, node: ast.NodePattern) -> str:
        if node.variable is None:
            name = self._fresh_name("node")
            self.new[name] = kinds.NODE
            return name
        self._element(node.variable, kinds.NODE, node.span)
        return node.variable

    def _rel(self, rel: ast.RelPattern, *, many: bool) -> str:
        kind = kinds.RELATIONSHIPS if many else kinds.RELATIONSHIP
        if rel.variable is None:
            name = self._fresh_name("rel")
            self.new[name] = kind
            return name
        if rel.variable in self._rels:
            message = f"The relationship '{rel.variable}' can't be walked twice in one MATCH."
            raise Fault("RelationshipUniquenessViolation", message, rel.span)
        self._element(rel.variable, kind, rel.span)
        self._rels.add(rel.variable)
        return rel.variable

    def _element(self, name: str, kind: kinds.Kind, span: Span) -> None:
        known = self.new.get(name)
        if known is None and name in self._outer.names:
            known = self._outer.look_up(name, span)
        if known is None:
            self._bring_in(name, kind, span)
        elif not kinds.could_be_a(known, kind):
            raise Fault("VariableTypeConflict", f"'{name}' is {known} here, and can't be {kind} too.", span)

    def _bring_in(self, name: str, kind: kinds.Kind, span: Span) -> None:
        if not self._fresh:
            self._outer.look_up(name, span)
        self.new[name] = kind

    def _path(self, name: str, span: Span) -> None:
        if name in self.new or name in self._outer.names:
            raise Fault("VariableAlreadyBound", f"'{name}' has a value already, and can't be the name of a path.", span)
        self._bring_in(name, kinds.PATH, span)
