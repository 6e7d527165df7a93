"""Expressions → closures. Each is checked as far as its text shows what it will meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pulse_kg.cypher import ast, kinds, values
from pulse_kg.cypher.ast import Span
from pulse_kg.cypher.context import Context, Row
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.function_calls import check_call, function_of, kind_of_call
from pulse_kg.cypher.kinds import Kind
from pulse_kg.cypher.regex import matches
from pulse_kg.cypher.scope import Scope
from pulse_kg.cypher.values import ABSENT, wrong_type
from pulse_kg.domain.records import record
from pulse_kg.ports.graph_source import GraphEdge, GraphNode

Evaluate = Callable[[Row, Context], Any]
RowsOf = Callable[[Row, Context], Iterator[Row]]

_HIDDEN: Final = frozenset({"embedding", "board_id"})
"""Properties that do not exist for a query."""


@record
class Typed:
    """An expression that can be evaluated, and the kind of what comes out."""

    kind: Kind
    run: Evaluate


@record
class Column:
    """A column of a subquery."""

    name: str
    kind: Kind


@dataclass
class Uses:
    """What a query asks for, gathered while it is compiled.

    Attributes:
        keys: The properties that are asked for by name.
        whole: Whether an element is looked at with all its properties.
        clock: Whether a function of the clock is called.
        named: Each property, label and type that is named: its sort, the name and the place.
    """

    keys: set[str] = field(default_factory=set)
    whole: bool = False
    clock: bool = False
    named: list[tuple[str, str, Span]] = field(default_factory=list)


class Patterns(Protocol):
    """What expressions need of the rest of the compiler: patterns and queries inside them."""

    def pattern_rows(self, part: ast.PatternPart, where: ast.Expression | None, scope: Scope, *, fresh: bool) -> tuple[RowsOf, Scope]:
        """The rows of a pattern for one row, and their scope; unless `fresh`, it may bring in no names."""
        ...

    def query_rows(self, query: ast.Query, scope: Scope) -> tuple[RowsOf, tuple[Column, ...]]:
        """The rows of a subquery for one row, and its columns."""
        ...

    def shortest(self, part: ast.PatternPart, scope: Scope) -> Evaluate:
        """The shortest path, or the list of them, between two nodes that are bound."""
        ...


class ExpressionCompiler:
    """Compiles expressions of one query.

    Args:
        patterns: Compiles what lies in them.
        params: The parameters' values: a missing one is a fault of the query.
        uses: Takes up what the expressions ask for.
    """

    def __init__(self, patterns: Patterns, params: Mapping[str, Any], uses: Uses) -> None:
        self._patterns = patterns
        self._params = params
        self._uses = uses
        self._makers: dict[type, Callable[[Any, Scope], Typed]] = {
            ast.Constant: self._constant,
            ast.Parameter: self._parameter,
            ast.Variable: self._variable,
            ast.ListOf: self._list,
            ast.MapOf: self._map,
            ast.Property: self._property,
            ast.Index: self._index,
            ast.Slice: self._slice,
            ast.HasLabels: self._has_labels,
            ast.Unary: self._unary,
            ast.Operation: self._operation,
            ast.Comparison: self._comparison,
            ast.IsNull: self._is_null,
            ast.Call: self._call,
            ast.CountStar: self._misplaced_aggregate,
            ast.Case: self._case,
            ast.Quantifier: self._quantifier,
            ast.ListComprehension: self._comprehension,
            ast.Reduce: self._reduce,
            ast.MapProjection: self._map_projection,
            ast.PatternPredicate: self._misplaced_pattern,
            ast.PatternComprehension: self._pattern_comprehension,
            ast.ShortestPathExpression: self._shortest,
            ast.Subquery: self._subquery,
        }

    def compile(self, tree: ast.Expression, scope: Scope) -> Typed:
        """An expression that gives a value.

        Raises:
            Fault: It can't be evaluated, whatever the values.
        """
        return self._makers[type(tree)](tree, scope)

    def predicate(self, tree: ast.Expression, scope: Scope, what: str) -> Evaluate:
        """An expression that gives true, false or null, where a pattern may stand too; the closure gives True, False or None."""
        if isinstance(tree, ast.PatternPredicate):
            rows, _ = self._patterns.pattern_rows(tree.part, None, scope, fresh=False)
            return lambda row, ctx: next(rows(row, ctx), None) is not None
        found = self.compile(tree, scope)
        _require(kinds.could_be(found.kind, "boolean"), f"{what} takes a boolean, not {found.kind}.", tree.span)
        run, span = found.run, tree.span
        if found.kind is kinds.BOOLEAN:
            return run

        def checked(row: Row, ctx: Context) -> Any:
            value = run(row, ctx)
            if value is True or value is False or value is None:
                return value
            raise wrong_type(what, value, "a boolean").at(span)

        return checked

    # Names and constants.

    def _constant(self, tree: ast.Constant, _scope: Scope) -> Typed:
        value = tree.value
        return Typed(kinds.kind_of(value), lambda _row, _ctx: value)

    def _parameter(self, tree: ast.Parameter, _scope: Scope) -> Typed:
        name = tree.name
        if name not in self._params:
            given = ", ".join(f"${known}" for known in sorted(self._params)[:20])
            raise Fault(
                "ParameterMissing", f"The parameter ${name} was not given; given were: {given or 'none'}. Put it into 'params'.", tree.span
            )
        return Typed(kinds.ANY, lambda _row, ctx: ctx.params[name])

    def _variable(self, tree: ast.Variable, scope: Scope) -> Typed:
        name = tree.name
        return Typed(scope.look_up(name, tree.span), lambda row, _ctx: row[name])

    def _list(self, tree: ast.ListOf, scope: Scope) -> Typed:
        items = [self.compile(item, scope) for item in tree.items]
        runs = [item.run for item in items]

        def run(row: Row, ctx: Context) -> list[Any]:
            ctx.spend(len(runs))
            return [item(row, ctx) for item in runs]

        return Typed(kinds.list_of(kinds.join(item.kind for item in items)), run)

    def _map(self, tree: ast.MapOf, scope: Scope) -> Typed:
        entries = [(key, self.compile(value, scope).run) for key, value in tree.entries]

        def run(row: Row, ctx: Context) -> dict[str, Any]:
            ctx.spend(1 + len(entries))
            return {key: value(row, ctx) for key, value in entries}

        return Typed(kinds.MAP, run)

    # Access.

    def _property(self, tree: ast.Property, scope: Scope) -> Typed:
        of = self.compile(tree.of, scope)
        _require(
            kinds.has_properties(of.kind), f"{_capital(of.kind)} has no properties: '.{tree.key[:60]}' can't be asked of it.", tree.span
        )
        key, run, span = tree.key, of.run, tree.span
        self.use_key(key, of.kind, span)

        def get(row: Row, ctx: Context) -> Any:
            value = run(row, ctx)
            kind = type(value)
            if kind is GraphNode or kind is GraphEdge:
                return value.properties.get(key)
            if value is None:
                return None
            return _placed(lambda: values.property_of(value, key), span)

        return Typed(kinds.DATA if of.kind.name in {"node", "relationship", "data"} else kinds.ANY, get)

    def use_key(self, key: str, of: Kind, span: Span) -> None:
        """Takes up that a property is asked for by name."""
        if key not in _HIDDEN:
            self._uses.keys.add(key)
        if of.name in {"node", "relationship"}:
            self._uses.named.append((of.name, key, span))

    def _index(self, tree: ast.Index, scope: Scope) -> Typed:
        of, at = self.compile(tree.of, scope), self.compile(tree.at, scope)
        message = f"[ ] takes a list, map, node or relationship before it, not {of.kind}."
        _require(kinds.could_be(of.kind, "list", "map", "node", "relationship"), message, tree.span)
        if kinds.could_be(of.kind, "node", "relationship"):
            self._use_index(tree.at, of.kind)
        of_run, at_run, span = of.run, at.run, tree.span
        item = of.kind.item if of.kind.item is not None else kinds.DATA if of.kind.name in {"data", "node", "relationship"} else kinds.ANY
        return Typed(item, lambda row, ctx: _placed(lambda: values.index(of_run(row, ctx), at_run(row, ctx)), span))

    def _use_index(self, at: ast.Expression, of: Kind) -> None:
        key = at.value if isinstance(at, ast.Constant) else self._params.get(at.name) if isinstance(at, ast.Parameter) else None
        if isinstance(key, str):
            self.use_key(key, of, at.span)
        else:
            self._uses.whole = True

    def _slice(self, tree: ast.Slice, scope: Scope) -> Typed:
        of = self.compile(tree.of, scope)
        _require(kinds.could_be(of.kind, "list"), f"[ .. ] takes a list before it, not {of.kind}.", tree.span)
        low, high = (_absent if end is None else self.compile(end, scope).run for end in (tree.low, tree.high))
        run, span = of.run, tree.span

        def cut(row: Row, ctx: Context) -> Any:
            return _placed(lambda: values.slice_list(run(row, ctx), low(row, ctx), high(row, ctx), ctx.spend), span)

        return Typed(of.kind if of.kind.name == "list" else kinds.ANY, cut)

    def _has_labels(self, tree: ast.HasLabels, scope: Scope) -> Typed:
        of = self.compile(tree.of, scope)
        _require(kinds.could_be(of.kind, "node", "relationship"), f"Only a node or relationship has labels, not {of.kind}.", tree.span)
        self._uses.named += [("type" if of.kind.name == "relationship" else "label", label, tree.span) for label in tree.labels]
        run, labels, span = of.run, tree.labels, tree.span
        return Typed(kinds.BOOLEAN, lambda row, ctx: _placed(lambda: values.has_labels(run(row, ctx), labels), span))

    # Operators.

    def _unary(self, tree: ast.Unary, scope: Scope) -> Typed:
        span = tree.span
        if tree.op == "NOT":
            of = self.predicate(tree.of, scope, "NOT")

            def negated(row: Row, ctx: Context) -> bool | None:
                value = of(row, ctx)
                return None if value is None else not value

            return Typed(kinds.BOOLEAN, negated)
        operand = self.compile(tree.of, scope)
        _require(kinds.could_be_a_number(operand.kind), f"'{tree.op}' takes a number, not {operand.kind}.", span)
        run, apply = operand.run, values.negate if tree.op == "-" else values.plus
        return Typed(operand.kind, lambda row, ctx: _placed(lambda: apply(run(row, ctx)), span))

    def _operation(self, tree: ast.Operation, scope: Scope) -> Typed:
        op = tree.ops[0]
        if op in {"AND", "OR", "XOR"}:
            runs = [self.predicate(operand, scope, op) for operand in tree.operands]
            return Typed(kinds.BOOLEAN, _LOGIC[op](runs))
        operands = [self.compile(operand, scope) for operand in tree.operands]
        if op == "IN":
            return self._in(tree, operands[0], operands[1])
        if op in _TEXT:
            return Typed(kinds.BOOLEAN, _text_test(_TEXT[op], operands[0].run, operands[1].run, tree.span))
        return self._arithmetic(tree, operands)

    def _in(self, tree: ast.Operation, left: Typed, right: Typed) -> Typed:
        _require(kinds.could_be(right.kind, "list"), f"IN takes a list after it, not {right.kind}.", tree.operands[1].span)
        value, items, span = left.run, right.run, tree.span
        constant = isinstance(tree.operands[1], ast.Parameter)

        def found(row: Row, ctx: Context) -> bool | None:
            sought, among = value(row, ctx), items(row, ctx)
            if constant and type(sought) is str:
                texts = _texts_of(among, ctx, id(tree))
                if texts is not None:
                    return sought in texts
            try:
                return values.in_list(sought, among, ctx.spend)
            except Fault as fault:
                raise fault.at(span) from None

        return Typed(kinds.BOOLEAN, found)

    def _arithmetic(self, tree: ast.Operation, operands: Sequence[Typed]) -> Typed:
        total, run, span = operands[0].kind, operands[0].run, tree.span
        for op, operand in zip(tree.ops, operands[1:], strict=True):
            total = _kind_of_arithmetic(op, total, operand.kind, span)
        steps = [(_ARITHMETIC[op], operand.run) for op, operand in zip(tree.ops, operands[1:], strict=True)]

        units = len(steps) // _OPERATIONS

        def compute(row: Row, ctx: Context) -> Any:
            value = run(row, ctx)
            if units:
                ctx.spend(units)
            for apply, operand in steps:
                try:
                    value = apply(value, operand(row, ctx), ctx)
                except Fault as fault:
                    raise fault.at(span) from None
            return value

        return Typed(total, compute)

    def _comparison(self, tree: ast.Comparison, scope: Scope) -> Typed:
        runs = [self.compile(operand, scope).run for operand in tree.operands]
        if len(tree.ops) == 1:
            return Typed(kinds.BOOLEAN, _compared(tree.ops[0], runs[0], runs[1]))

        def chain(row: Row, ctx: Context) -> bool | None:
            left, unknown = runs[0](row, ctx), False
            for op, operand in zip(tree.ops, runs[1:], strict=True):
                right = operand(row, ctx)
                holds = _compare(op, left, right, ctx.spend)
                if holds is False:
                    return False
                unknown = unknown or holds is None
                left = right
            return None if unknown else True

        return Typed(kinds.BOOLEAN, chain)

    def _is_null(self, tree: ast.IsNull, scope: Scope) -> Typed:
        run = self.compile(tree.of, scope).run
        if tree.negated:
            return Typed(kinds.BOOLEAN, lambda row, ctx: run(row, ctx) is not None)
        return Typed(kinds.BOOLEAN, lambda row, ctx: run(row, ctx) is None)

    # Functions and CASE.

    def _call(self, tree: ast.Call, scope: Scope) -> Typed:
        function = function_of(tree)
        if function is None:
            return self._misplaced_aggregate(tree, scope)
        if function.name == "exists":
            return self._exists(tree, scope)
        arguments = [self.compile(argument, scope) for argument in tree.arguments]
        check_call(function, tree, [argument.kind for argument in arguments])
        self._uses.clock = self._uses.clock or (function.time_dependent and len(arguments) <= function.low)
        self._uses.whole = self._uses.whole or function.name in {"properties", "keys"}
        run = _called(function.call, [argument.run for argument in arguments], tree.span)
        return Typed(kind_of_call(function, [argument.kind for argument in arguments]), run)

    def _exists(self, tree: ast.Call, scope: Scope) -> Typed:
        """`exists(n.key)` and `exists((n)-->())`."""
        if len(tree.arguments) != 1:
            raise Fault("InvalidNumberOfArguments", "exists() takes one argument.", tree.span)
        argument = tree.arguments[0]
        if isinstance(argument, ast.PatternPredicate):
            return Typed(kinds.BOOLEAN, self.predicate(argument, scope, "exists()"))
        if not isinstance(argument, ast.Property | ast.Index):
            raise Fault("InvalidArgumentType", "exists() takes a property or a pattern; for other values write IS NOT NULL.", tree.span)
        run = self.compile(argument, scope).run
        return Typed(kinds.BOOLEAN, lambda row, ctx: run(row, ctx) is not None)

    def _misplaced_aggregate(self, tree: ast.Call | ast.CountStar, _scope: Scope) -> Typed:
        name = tree.name if isinstance(tree, ast.Call) else "count"
        raise Fault(
            "InvalidAggregation", f"{name}() aggregates: it has its place in WITH and RETURN, and not inside another one.", tree.span
        )

    def _case(self, tree: ast.Case, scope: Scope) -> Typed:
        results = [self.compile(result, scope) for _, result in tree.branches]
        otherwise = self._constant(ast.Constant(None, tree.span), scope) if tree.otherwise is None else self.compile(tree.otherwise, scope)
        runs, last = [result.run for result in results], otherwise.run
        kind = kinds.join([*(result.kind for result in results), otherwise.kind])
        if tree.subject is None:
            tests = [self.predicate(when, scope, "CASE WHEN") for when, _ in tree.branches]

            def searched(row: Row, ctx: Context) -> Any:
                for test, result in zip(tests, runs, strict=True):
                    if test(row, ctx) is True:
                        return result(row, ctx)
                return last(row, ctx)

            return Typed(kind, searched)
        subject = self.compile(tree.subject, scope).run
        candidates = [self.compile(when, scope).run for when, _ in tree.branches]

        def simple(row: Row, ctx: Context) -> Any:
            value = subject(row, ctx)
            for candidate, result in zip(candidates, runs, strict=True):
                if values.equals(value, candidate(row, ctx), ctx.spend) is True:
                    return result(row, ctx)
            return last(row, ctx)

        return Typed(kind, simple)

    # Lists.

    def _items(self, tree: ast.Expression, scope: Scope, what: str) -> tuple[Evaluate, Kind]:
        """A list, and the kind of its items."""
        found = self.compile(tree, scope)
        _require(kinds.could_be(found.kind, "list"), f"{what} takes a list, not {found.kind}.", tree.span)
        run, span = found.run, tree.span

        def items(row: Row, ctx: Context) -> Any:
            value = run(row, ctx)
            if value is None or type(value) is list:
                return value
            raise wrong_type(what, value, "a list").at(span)

        item = found.kind.item if found.kind.item is not None else kinds.DATA if found.kind.name == "data" else kinds.ANY
        return items, item

    def _quantifier(self, tree: ast.Quantifier, scope: Scope) -> Typed:
        items, kind = self._items(tree.items, scope, f"{tree.kind}()")
        where = self.predicate(tree.where, scope.with_inner({tree.variable: kind}), f"{tree.kind}()")
        name, decide = tree.variable, _QUANTIFIERS[tree.kind]

        def run(row: Row, ctx: Context) -> bool | None:
            listed = items(row, ctx)
            if listed is None:
                return None
            ctx.spend(len(listed))
            inner = dict(row)
            true = false = 0
            for item in listed:
                inner[name] = item
                holds = where(inner, ctx)
                true += holds is True
                false += holds is False
            return decide(true, false, len(listed) - true - false)

        return Typed(kinds.BOOLEAN, run)

    def _comprehension(self, tree: ast.ListComprehension, scope: Scope) -> Typed:
        items, kind = self._items(tree.items, scope, "A list comprehension")
        inner_scope = scope.with_inner({tree.variable: kind})
        where = None if tree.where is None else self.predicate(tree.where, inner_scope, "WHERE")
        result = None if tree.result is None else self.compile(tree.result, inner_scope)
        name, make = tree.variable, None if result is None else result.run

        def run(row: Row, ctx: Context) -> list[Any] | None:
            listed = items(row, ctx)
            if listed is None:
                return None
            ctx.spend(len(listed))
            inner, made = dict(row), []
            for item in listed:
                inner[name] = item
                if where is None or where(inner, ctx) is True:
                    made.append(item if make is None else make(inner, ctx))
            return made

        return Typed(kinds.list_of(kind if result is None else result.kind), run)

    def _reduce(self, tree: ast.Reduce, scope: Scope) -> Typed:
        start = self.compile(tree.start, scope)
        items, kind = self._items(tree.items, scope, "reduce()")
        step = self.compile(tree.result, scope.with_inner({tree.total: kinds.ANY, tree.variable: kind})).run
        first, total, name = start.run, tree.total, tree.variable

        def run(row: Row, ctx: Context) -> Any:
            listed = items(row, ctx)
            if listed is None:
                return None
            ctx.spend(len(listed))
            inner = dict(row)
            value = first(row, ctx)
            for item in listed:
                inner[total], inner[name] = value, item
                value = step(inner, ctx)
            return value

        return Typed(kinds.ANY, run)

    def _map_projection(self, tree: ast.MapProjection, scope: Scope) -> Typed:
        of = self._variable(tree.of, scope)
        _require(
            kinds.could_be(of.kind, "map", "node", "relationship"), f"{{ }} takes a map, node or relationship, not {of.kind}.", tree.span
        )
        whole = any(sort == "all" for sort, _, _ in tree.items)
        self._uses.whole = self._uses.whole or whole
        entries: list[tuple[str, Evaluate]] = []
        for sort, key, value in tree.items:
            if sort == "property" and key is not None:
                entries.append((key, self._property(ast.Property(tree.of, key, tree.span), scope).run))
            elif key is not None and value is not None:
                entries.append((key, self.compile(value, scope).run))
        run, span = of.run, tree.span

        def project(row: Row, ctx: Context) -> dict[str, Any] | None:
            value = run(row, ctx)
            if value is None:
                return None
            if not isinstance(value, dict | GraphNode | GraphEdge):
                raise wrong_type("{ }", value, "a map, node or relationship").at(span)
            ctx.spend(1 + len(entries) + (len(value if isinstance(value, dict) else value.properties) if whole else 0))
            made: dict[str, Any] = {} if not whole else dict(value) if isinstance(value, dict) else dict(sorted(value.properties.items()))
            made.update((key, entry(row, ctx)) for key, entry in entries)
            return made

        return Typed(kinds.MAP, project)

    # Patterns and subqueries.

    def _misplaced_pattern(self, tree: ast.PatternPredicate, _scope: Scope) -> Typed:
        raise Fault(
            "UnexpectedSyntax",
            "A pattern can stand only where a condition does: write exists(pattern), COUNT { pattern }, or [pattern | result].",
            tree.span,
        )

    def _pattern_comprehension(self, tree: ast.PatternComprehension, scope: Scope) -> Typed:
        rows, inner = self._patterns.pattern_rows(tree.part, tree.where, scope, fresh=True)
        result = self.compile(tree.result, inner)
        make = result.run

        def run(row: Row, ctx: Context) -> list[Any]:
            made = []
            for found in rows(row, ctx):
                ctx.spend(1)
                made.append(make(found, ctx))
            return made

        return Typed(kinds.list_of(result.kind), run)

    def _shortest(self, tree: ast.ShortestPathExpression, scope: Scope) -> Typed:
        run = self._patterns.shortest(tree.part, scope)
        return Typed(kinds.PATH if tree.part.shortest == "one" else kinds.list_of(kinds.PATH), run)

    def _subquery(self, tree: ast.Subquery, scope: Scope) -> Typed:
        rows, columns = self._patterns.query_rows(tree.query, scope)
        if tree.kind == "EXISTS":
            return Typed(kinds.BOOLEAN, lambda row, ctx: next(rows(row, ctx), None) is not None)
        if tree.kind == "COUNT":
            return Typed(kinds.INTEGER, lambda row, ctx: sum(1 for _ in rows(row, ctx)))
        if len(columns) != 1:
            raise Fault("InvalidArgumentType", f"COLLECT {{ }} takes a query that returns one column, not {len(columns)}.", tree.span)
        name = columns[0].name

        def collected(row: Row, ctx: Context) -> list[Any]:
            made = []
            for found in rows(row, ctx):
                ctx.spend(1)
                made.append(found[name])
            return made

        return Typed(kinds.list_of(columns[0].kind), collected)


def _called(call: Callable[..., Any], arguments: Sequence[Evaluate], span: Span) -> Evaluate:
    def of_one(row: Row, ctx: Context) -> Any:
        try:
            return call(ctx, first(row, ctx))
        except Fault as fault:
            raise fault.at(span) from None

    def of_any(row: Row, ctx: Context) -> Any:
        try:
            return call(ctx, *[argument(row, ctx) for argument in arguments])
        except Fault as fault:
            raise fault.at(span) from None

    if len(arguments) != 1:
        return of_any
    first = arguments[0]  # most functions take one
    return of_one


def _text_test(test: Callable[[Any, Any, values.Spend], bool | None], left: Evaluate, right: Evaluate, span: Span) -> Evaluate:
    def run(row: Row, ctx: Context) -> bool | None:
        try:
            return test(left(row, ctx), right(row, ctx), ctx.spend)
        except Fault as fault:
            raise fault.at(span) from None

    return run


def _absent(_row: Row, _ctx: Context) -> Any:
    return ABSENT


def _placed(compute: Callable[[], Any], span: Span) -> Any:
    try:
        return compute()
    except Fault as fault:
        raise fault.at(span) from None


def _require(holds: bool, message: str, span: Span) -> None:
    if not holds:
        raise Fault("InvalidArgumentType", message, span)


def _capital(kind: Kind) -> str:
    text = str(kind)
    return text[0].upper() + text[1:]


_OPERATIONS: Final = 16
"""Operations of one expression that count as much as a row: else the clock is not looked at while thousands run for each row."""
_FEW: Final = 8
"""Items that are gone through one by one faster than a set of them is made."""


def _texts_of(items: Any, ctx: Context, key: int) -> frozenset[str] | None:
    """The items of a parameter as a set, if they are texts and nothing else; made once a run."""
    if key not in ctx.memo:
        texts = type(items) is list and len(items) > _FEW and all(type(item) is str for item in items)
        ctx.memo[key] = frozenset(items) if texts else None
    known: frozenset[str] | None = ctx.memo[key]
    return known


def _all_of(runs: Sequence[Evaluate]) -> Evaluate:
    def run(row: Row, ctx: Context) -> bool | None:
        unknown = False
        for operand in runs:
            value = operand(row, ctx)
            if value is False:
                return False
            unknown = unknown or value is None
        return None if unknown else True

    return run


def _any_of(runs: Sequence[Evaluate]) -> Evaluate:
    def run(row: Row, ctx: Context) -> bool | None:
        unknown = False
        for operand in runs:
            value = operand(row, ctx)
            if value is True:
                return True
            unknown = unknown or value is None
        return None if unknown else False

    return run


def _odd_of(runs: Sequence[Evaluate]) -> Evaluate:
    def run(row: Row, ctx: Context) -> bool | None:
        found = [operand(row, ctx) for operand in runs]
        return None if None in found else sum(found) % 2 == 1

    return run


_LOGIC: Final = {"AND": _all_of, "OR": _any_of, "XOR": _odd_of}
_TEXT: Final[Mapping[str, Callable[[Any, Any, values.Spend], bool | None]]] = {
    "STARTS WITH": lambda a, b, _spend: values.starts_with(a, b),
    "ENDS WITH": lambda a, b, _spend: values.ends_with(a, b),
    "CONTAINS": values.contains,
    "=~": matches,
}
_ARITHMETIC: Final[Mapping[str, Callable[[Any, Any, Context], Any]]] = {
    "+": lambda a, b, ctx: values.add(a, b, ctx.spend),
    "-": lambda a, b, _ctx: values.subtract(a, b),
    "*": lambda a, b, _ctx: values.multiply(a, b),
    "/": lambda a, b, _ctx: values.divide(a, b),
    "%": lambda a, b, _ctx: values.modulo(a, b),
    "^": lambda a, b, _ctx: values.power(a, b),
}


def _compare(op: str, left: Any, right: Any, spend: values.Spend) -> bool | None:
    if op == "=":
        return values.equals(left, right, spend)
    if op == "<>":
        same = values.equals(left, right, spend)
        return None if same is None else not same
    return values.compare(op, left, right, spend)


def _compared(op: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if op == "=":
        return lambda row, ctx: values.equals(left(row, ctx), right(row, ctx), ctx.spend)
    if op == "<>":
        return lambda row, ctx: _compare("<>", left(row, ctx), right(row, ctx), ctx.spend)
    compare = values.compare
    return lambda row, ctx: compare(op, left(row, ctx), right(row, ctx), ctx.spend)


def _kind_of_arithmetic(op: str, left: Kind, right: Kind, span: Span) -> Kind:
    if op == "+":
        if "list" in {left.name, right.name}:
            items = [kind.item or kinds.ANY if kind.name == "list" else kind for kind in (left, right)]
            return kinds.list_of(kinds.join(items))
        for kind in (left, right):
            _require(kinds.could_be_added(kind), f"'+' takes numbers, strings, lists or temporal values, not {kind}.", span)
        if left.name in {"any", "null"} or right.name in {"any", "null"}:
            return kinds.ANY
        return kinds.STRING if "string" in {left.name, right.name} else _number_of(left, right)
    for kind in (left, right):
        _require(kinds.could_be_a_number(kind), f"'{op}' takes numbers, not {kind}.", span)
    return kinds.FLOAT if op == "^" else _number_of(left, right)


def _number_of(left: Kind, right: Kind) -> Kind:
    names = {left.name, right.name}
    if names == {"integer"}:
        return kinds.INTEGER
    return kinds.FLOAT if names in ({"integer", "float"}, {"float"}) else kinds.DATA


def _all(_true: int, false: int, unknown: int) -> bool | None:
    return False if false else None if unknown else True


def _any(true: int, _false: int, unknown: int) -> bool | None:
    return True if true else None if unknown else False


def _none(true: int, _false: int, unknown: int) -> bool | None:
    return False if true else None if unknown else True


def _single(true: int, _false: int, unknown: int) -> bool | None:
    return False if true > 1 else None if unknown else true == 1


_QUANTIFIERS: Final = {"all": _all, "any": _any, "none": _none, "single": _single}
