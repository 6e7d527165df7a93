"""Syntax tree → pipeline of operators: scopes from clause to clause, items, aggregates, orders, subqueries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pulse_kg.cypher import ast, kinds
from pulse_kg.cypher.ast import Span
from pulse_kg.cypher.context import Context, Row
from pulse_kg.cypher.expressions import Column, Evaluate, ExpressionCompiler, RowsOf, Uses
from pulse_kg.cypher.faults import Fault, value_fault
from pulse_kg.cypher.function_calls import aggregate_of, is_aggregate
from pulse_kg.cypher.kinds import Kind
from pulse_kg.cypher.matching import PatternCompiler
from pulse_kg.cypher.operators import (
    AggregateCall,
    AggregateRows,
    CallRows,
    DistinctRows,
    FilterWhere,
    LimitRows,
    MatchRows,
    Operator,
    Pipeline,
    ProjectRows,
    SkipRows,
    SortRows,
    TrimRows,
    UnwindRows,
    counted,
)
from pulse_kg.cypher.scope import Scope
from pulse_kg.cypher.steps import Nested, ReadAhead
from pulse_kg.cypher.tree import exchanged, parts_of, shape_of
from pulse_kg.cypher.values import type_name
from pulse_kg.domain.records import record

_INNER: Final = (ast.ListComprehension, ast.Quantifier, ast.Reduce)


@record
class CompiledPart:
    """A single query: its operators, its columns, and the LIMIT at its end."""

    operators: tuple[Operator, ...]
    columns: tuple[Column, ...]
    limit: Callable[[Context], int] | None


class QueryCompiler:
    """Compiles one query.

    Args:
        params: The parameters' values.

    Attributes:
        uses: What the query asks for, after it is compiled.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.uses = Uses()
        self._numbers = 0
        self._nested = Nested()
        self._expressions = ExpressionCompiler(self, params, self.uses)
        self._patterns = PatternCompiler(self._expressions, self.uses, self._fresh_name, self._nested)

    def _fresh_name(self, what: str) -> str:
        self._numbers += 1
        return f"\0{what}{self._numbers}"

    # Queries.

    def statement(self, query: ast.Query) -> tuple[Pipeline, tuple[Column, ...], Callable[[Context], int] | None]:
        """A whole query: its pipeline, its columns, and the LIMIT of its result.

        Raises:
            Fault: It makes no sense.
        """
        parts = [self._single(single, Scope(), needs_return=True) for single in query.parts]
        return *self._union(query, parts), parts[0].limit if len(parts) == 1 else None

    def _union(self, query: ast.Query, parts: Sequence[CompiledPart]) -> tuple[Pipeline, tuple[Column, ...]]:
        columns = parts[0].columns
        names = [column.name for column in columns]
        for part, tree in zip(parts, query.parts, strict=True):
            other = [column.name for column in part.columns]
            if sorted(other) != sorted(names):
                message = f"The queries of a UNION must return the same columns: {', '.join(names)} here and {', '.join(other)} there."
                raise Fault("DifferentColumnsInUnion", message, tree.span)
        kinds_of = [{column.name: column.kind for column in part.columns} for part in parts]
        joined = tuple(Column(name, kinds.join(known[name] for known in kinds_of)) for name in names)
        return Pipeline(tuple(part.operators for part in parts), tuple(names), query.all_rows), joined

    def _single(self, tree: ast.SingleQuery, scope: Scope, *, needs_return: bool) -> CompiledPart:
        last = tree.clauses[-1]
        if needs_return and not (isinstance(last, ast.Projection) and last.final):
            raise Fault(
                "InvalidClauseComposition", "A query ends with RETURN: add what it should return.", Span(tree.span.end, tree.span.end)
            )
        operators: list[Operator] = []
        for clause in tree.clauses:
            made, scope = self._clause(clause, scope)
            operators += made
        operators = counted(operators)
        if not (isinstance(last, ast.Projection) and last.final):
            return CompiledPart(tuple(operators), (), None)
        columns = tuple(Column(name, kind) for name, kind in scope.names.items())
        return CompiledPart(tuple(operators), columns, None if last.limit is None else self._number(last.limit, "LIMIT"))

    def _clause(self, clause: ast.Clause, scope: Scope) -> tuple[list[Operator], Scope]:
        match clause:
            case ast.Match():
                found = self._patterns.compile(clause.parts, clause.where, scope)
                self._nested.add(found)
                names = {name: found.scope.names[name] for name in (*scope.names, *found.new)}
                return [MatchRows(found, clause.optional, self._fresh_name("row"))], Scope(names, used=scope.used)
            case ast.Unwind():
                return self._unwind(clause, scope)
            case ast.Projection():
                return self._projection(clause, scope)
            case ast.CallSubquery():
                return self._call(clause, scope)

    def _unwind(self, clause: ast.Unwind, scope: Scope) -> tuple[list[Operator], Scope]:
        if clause.variable in scope.names:
            raise Fault("VariableAlreadyBound", f"'{clause.variable}' has a value already: choose another name.", clause.span)
        items = self._expressions.compile(clause.items, scope)
        if not kinds.could_be(items.kind, "list"):
            raise Fault("InvalidArgumentType", f"UNWIND takes a list, not {items.kind}.", clause.items.span)
        item = items.kind.item if items.kind.item is not None else kinds.DATA if items.kind.name == "data" else kinds.ANY
        after = Scope({**scope.names, clause.variable: item}, used=scope.used)
        return [UnwindRows(items.run, clause.variable, clause.items.span)], after

    def _call(self, clause: ast.CallSubquery, scope: Scope) -> tuple[list[Operator], Scope]:
        imports: dict[str, None] = {}
        parts = []
        for single in clause.query.parts:
            names, rest = self._imports(single, clause.imports, scope, clause.span)
            imports |= dict.fromkeys(names)
            inner = Scope({name: scope.look_up(name, clause.span) for name in names})
            parts.append(self._single(rest, inner, needs_return=True))
        pipeline, columns = self._union(clause.query, parts)
        for column in columns:
            if column.name in scope.names:
                message = f"'{column.name}' has a value already: return it from the subquery under another name."
                raise Fault("VariableAlreadyBound", message, clause.span)
        after = Scope({**scope.names, **{column.name: column.kind for column in columns}}, used=scope.used)
        return [CallRows(pipeline, tuple(imports))], after

    @staticmethod
    def _imports(
        single: ast.SingleQuery, given: tuple[str, ...] | None, scope: Scope, span: Span
    ) -> tuple[tuple[str, ...], ast.SingleQuery]:
        """The names that a subquery takes over, and the rest of it: by `CALL (a, b) { }`, or by a WITH at its beginning."""
        if given is not None:
            for name in given:
                if name != "*":
                    scope.look_up(name, span)
            return (tuple(scope.visible()) if given == ("*",) else given), single
        first = single.clauses[0]
        if not isinstance(first, ast.Projection) or first.final:
            return (), single
        plain = all(isinstance(item.expression, ast.Variable) and item.alias in {None, item.expression.name} for item in first.items)
        if not plain or first.distinct or first.order or first.skip or first.limit or first.where:
            names = {part.name for part in parts_of((first.items, first.where)) if isinstance(part, ast.Variable)} & set(scope.names)
            if names:
                message = "The WITH that begins a CALL { } takes names over as they are: put anything else into a second WITH."
                raise Fault("InvalidClauseComposition", message, first.span)
            return (), single
        names_of = scope.visible() if first.star else [item.text.strip("`") for item in first.items]
        rest = ast.SingleQuery(single.clauses[1:], single.span)
        if not rest.clauses:
            raise Fault("InvalidClauseComposition", "A subquery ends with RETURN: add what it should return.", span)
        for name in names_of:
            scope.look_up(name, first.span)
        return tuple(names_of), rest

    # What expressions need: see `Patterns`.

    def pattern_rows(self, part: ast.PatternPart, where: ast.Expression | None, scope: Scope, *, fresh: bool) -> tuple[RowsOf, Scope]:
        """See `Patterns.pattern_rows`."""
        found = self._patterns.compile((part,), where, scope, fresh=fresh)
        self._nested.add(found)
        return lambda row, ctx: found.rows([row], ctx), found.scope

    def query_rows(self, query: ast.Query, scope: Scope) -> tuple[RowsOf, tuple[Column, ...]]:
        """See `Patterns.query_rows`."""
        inner = [self._single(single, Scope(scope.names, used=scope.used), needs_return=False) for single in query.parts]
        pipeline, columns = self._union(query, inner)
        return pipeline.rows, columns

    def shortest(self, part: ast.PatternPart, scope: Scope) -> Evaluate:
        """See `Patterns.shortest`."""
        for node in part.nodes:
            if node.variable is None or node.variable not in scope.names:
                raise Fault("UndefinedVariable", "Both ends of a shortest path in an expression must have a value already.", node.span)
        name = self._fresh_name("path")
        one = part.shortest == "one"
        found = self._patterns.compile((ast.PatternPart(name, part.nodes, part.rels, part.shortest, part.span),), None, scope)

        def run(row: Row, ctx: Context) -> Any:
            paths = (made[name] for made in found.rows([row], ctx))
            return next(paths, None) if one else list(paths)

        return run

    # WITH and RETURN.

    def _projection(self, tree: ast.Projection, scope: Scope) -> tuple[list[Operator], Scope]:
        items = self._items(tree, scope)
        aggregating = any(is_aggregate(part) for item in items for part in own_parts(item.expression))
        with self._nested.gathered() as nested:
            made, after = self._aggregate(items, scope, nested) if aggregating else self._plain(tree, items, scope, nested)
        operators: list[Operator] = [made]
        closed = aggregating or tree.distinct
        if tree.distinct:
            operators.append(DistinctRows(tuple(after.names)))
        seen = Scope(after.names if closed else {**scope.names, **after.names}, used=scope.used)
        limit = None if tree.limit is None else self._number(tree.limit, "LIMIT")
        skip = None if tree.skip is None else self._number(tree.skip, "SKIP")
        if tree.order:
            operators.append(self._sort(tree, items, seen, _first_rows(skip, limit), aggregating=aggregating))
        if skip is not None:
            operators.append(SkipRows(skip))
        if limit is not None:
            operators.append(LimitRows(limit))
        if tree.where is not None:
            with self._nested.gathered() as in_where:
                holds = self._expressions.predicate(self._by_columns(tree.where, items, closed=closed), seen, "WHERE")
            operators.append(FilterWhere(holds, tuple(in_where)))
        if isinstance(made, ProjectRows) and made.kept:
            operators.append(TrimRows(tuple(after.names)))
        return operators, after

    def _items(self, tree: ast.Projection, scope: Scope) -> list[ast.ProjectionItem]:
        """The items, those of a star first, each with its name."""
        items: list[ast.ProjectionItem] = []
        if tree.star:
            visible = scope.visible()
            if not visible and tree.final and not tree.items:
                raise Fault("NoVariablesInScope", "RETURN * has nothing to return: no variable is in scope.", tree.span)
            items += [ast.ProjectionItem(ast.Variable(name, tree.span), name, name, tree.span) for name in visible]
        for item in tree.items:
            if item.alias is None and isinstance(item.expression, ast.Variable):
                items.append(ast.ProjectionItem(item.expression, item.expression.name, item.text, item.span))
            elif item.alias is None and not tree.final:
                raise Fault("NoExpressionAlias", f"In WITH an expression needs a name: write {item.text[:60]} AS name.", item.span)
            else:
                items.append(item)
        seen: set[str] = set()
        for item in items:
            if item.name in seen:
                raise Fault(
                    "ColumnNameConflict", f"Two columns are called '{item.name}': give one of them another name with AS.", item.span
                )
            seen.add(item.name)
        return items

    def _plain(
        self, tree: ast.Projection, items: Sequence[ast.ProjectionItem], scope: Scope, nested: list[ReadAhead]
    ) -> tuple[Operator, Scope]:
        typed = {item.name: self._expressions.compile(item.expression, scope) for item in items}
        kept = not tree.distinct and bool(tree.order or tree.where is not None)
        made = ProjectRows(tuple((name, value.run) for name, value in typed.items()), kept, tuple(nested))
        return made, Scope({name: value.kind for name, value in typed.items()}, used=scope.used)

    def _aggregate(self, items: Sequence[ast.ProjectionItem], scope: Scope, nested: list[ReadAhead]) -> tuple[Operator, Scope]:
        grouping = [item for item in items if not any(is_aggregate(part) for part in own_parts(item.expression))]
        keys = {f"\0key{number}": self._expressions.compile(item.expression, scope) for number, item in enumerate(grouping)}
        names = {item.name: key for item, key in zip(grouping, keys, strict=True)}
        # Only a name or a property of one may stand again beside an aggregate.
        simple = {shape_of(item.expression): key for item, key in zip(grouping, keys, strict=True) if _is_simple(item.expression)}
        grouped: dict[str, Kind] = {key: value.kind for key, value in keys.items()}
        calls: list[AggregateCall] = []

        def swap(part: Any) -> Any:
            if isinstance(part, ast.Subquery):
                return part
            if is_aggregate(part):
                return ast.Variable(self._aggregate_call(part, scope, calls, grouped), part.span)
            if isinstance(part, _INNER):
                _refuse_inner_aggregates(part)
            key = simple.get(shape_of(part)) if isinstance(part, ast.Variable | ast.Property) else None
            return None if key is None else ast.Variable(key, part.span)

        made: dict[str, Evaluate] = {}
        after: dict[str, Kind] = {}
        for item in items:
            if item.name in names:
                made[item.name], after[item.name] = _value_of(names[item.name]), grouped[names[item.name]]
                continue
            rest = exchanged(item.expression, swap)
            try:
                typed = self._expressions.compile(rest, Scope(grouped))
            except Fault as fault:
                raise _ambiguous(fault, scope, item) from None
            made[item.name], after[item.name] = typed.run, typed.kind
        operator = AggregateRows(tuple((k, v.run) for k, v in keys.items()), tuple(calls), tuple(made.items()), tuple(nested))
        return operator, Scope(after, used=scope.used)

    def _aggregate_call(self, tree: ast.Call | ast.CountStar, scope: Scope, calls: list[AggregateCall], grouped: dict[str, Kind]) -> str:
        """Takes up an aggregate; gives the name of its value."""
        name = self._fresh_name("aggregate")
        if isinstance(tree, ast.CountStar):
            calls.append(AggregateCall(name, None, (), False, tree.span))
            grouped[name] = kinds.INTEGER
            return name
        if any(is_aggregate(part) for argument in tree.arguments for part in own_parts(argument)):
            raise Fault("NestedAggregation", "An aggregate can't stand inside another one: compute it in a WITH before.", tree.span)
        kind = aggregate_of(tree)
        if kind is None or len(tree.arguments) != kind.arguments:
            wanted = "" if kind is None else f" {kind.arguments}"
            raise Fault("InvalidNumberOfArguments", f"{tree.name}() takes{wanted} arguments, not {len(tree.arguments)}.", tree.span)
        typed = [self._expressions.compile(argument, scope) for argument in tree.arguments]
        of = tree.arguments[0].name if isinstance(tree.arguments[0], ast.Variable) else None
        calls.append(AggregateCall(name, kind, tuple(argument.run for argument in typed), tree.distinct, tree.span, of))
        grouped[name] = _kind_of_aggregate(kind.name, typed[0].kind)
        return name

    def _sort(
        self,
        tree: ast.Projection,
        items: Sequence[ast.ProjectionItem],
        seen: Scope,
        most: Callable[[Context], int] | None,
        *,
        aggregating: bool,
    ) -> Operator:
        keys = []
        with self._nested.gathered() as nested:
            for item in tree.order:
                rest = self._by_columns(item.expression, items, closed=True)
                left = next((part for part in own_parts(rest) if is_aggregate(part)), None)
                if left is not None and aggregating:
                    message = "ORDER BY sees what is returned only: return this aggregate too, and sort by its name."
                    raise Fault("UndefinedVariable", message, left.span)
                if left is not None:
                    raise Fault("InvalidAggregation", "ORDER BY can't aggregate what WITH or RETURN does not.", left.span)
                keys.append((self._expressions.compile(rest, seen).run, item.descending))
        return SortRows(tuple(keys), most, tuple(nested))

    @staticmethod
    def _by_columns(tree: ast.Expression, items: Sequence[ast.ProjectionItem], *, closed: bool) -> ast.Expression:
        """The expression with the columns in it that say the same: what is returned can be asked for by its expression."""
        if not closed:
            return tree
        renamed = {item.name for item in items if not (isinstance(item.expression, ast.Variable) and item.expression.name == item.name)}
        columns: dict[Any, str] = {}
        for item in items:
            names = {part.name for part in parts_of(item.expression) if isinstance(part, ast.Variable)}
            if not names & renamed and not isinstance(item.expression, ast.Constant | ast.Parameter):
                columns.setdefault(shape_of(item.expression), item.name)

        def swap(part: Any) -> Any:
            if isinstance(part, ast.Variable) and part.name in renamed:
                return None
            name = columns.get(shape_of(part)) if not isinstance(part, ast.SingleQuery | ast.Query) else None
            return None if name is None else ast.Variable(name, part.span)

        found: ast.Expression = exchanged(tree, swap)
        return found

    def _number(self, tree: ast.Expression, what: str) -> Callable[[Context], int]:
        """The number of SKIP or LIMIT: a constant, or made of parameters."""
        for part in parts_of(tree):
            if isinstance(part, ast.Variable | ast.Subquery | ast.PatternComprehension):
                raise Fault("NonConstantExpression", f"{what} takes a number or a parameter, not something of the rows.", part.span)
        run = self._expressions.compile(tree, Scope()).run
        span = tree.span
        if not any(isinstance(part, ast.Parameter | ast.Call) for part in parts_of(tree)):
            try:
                fixed = _counted(run({}, _NO_CONTEXT), what)
            except Fault as fault:
                raise Fault(fault.kind, fault.message, span) from None
            return lambda _ctx: fixed

        def number(ctx: Context) -> int:
            try:
                return _counted(run({}, ctx), what)
            except Fault as fault:
                raise fault.at(span) from None

        return number


class _Nothing:
    """Stands for a run where constants are computed."""

    def spend(self, _steps: int) -> None:
        """Nothing counts."""


_NO_CONTEXT: Final[Any] = _Nothing()


def own_parts(tree: Any) -> Iterator[Any]:
    """The parts of an expression but for those of its subqueries."""
    inside: set[int] = set()
    for part in parts_of(tree):
        if id(part) in inside:
            continue
        if isinstance(part, ast.Subquery):
            inside |= {id(inner) for inner in parts_of(part.query)}
        yield part


def _first_rows(skip: Callable[[Context], int] | None, limit: Callable[[Context], int] | None) -> Callable[[Context], int] | None:
    if limit is None:
        return None
    return lambda ctx: limit(ctx) + (0 if skip is None else skip(ctx))


def _counted(value: Any, what: str) -> int:
    if type(value) is not int:
        raise value_fault("InvalidArgumentType", f"{what} takes an integer, not a {type_name(value)}.")
    if value < 0:
        raise value_fault("NegativeIntegerArgument", f"{what} takes 0 or more, not {value}.")
    return value


def _is_simple(tree: ast.Expression) -> bool:
    while isinstance(tree, ast.Property):
        tree = tree.of
    return isinstance(tree, ast.Variable)


def _value_of(name: str) -> Evaluate:
    return lambda row, _ctx: row[name]


def _refuse_inner_aggregates(tree: Any) -> None:
    """Refuses aggregates in what is computed for each item of a list."""
    inner = (
        (tree.where, tree.result)
        if isinstance(tree, ast.ListComprehension)
        else (tree.where,)
        if isinstance(tree, ast.Quantifier)
        else (tree.result,)
    )
    for part in own_parts(inner):
        if is_aggregate(part):
            raise Fault("InvalidAggregation", "An aggregate can't be computed for each item of a list.", part.span)


def _ambiguous(fault: Fault, scope: Scope, item: ast.ProjectionItem) -> Fault:
    """What is missing beside an aggregate is in scope, but no grouping key."""
    if fault.kind != "UndefinedVariable":
        return fault
    names = {part.name for part in own_parts(item.expression) if isinstance(part, ast.Variable)}
    if not names & set(scope.names):
        return fault
    message = (
        "Beside an aggregate only what is returned by itself may stand: return it as a column of its own, or compute it in a WITH before."
    )
    return Fault("AmbiguousAggregationExpression", message, fault.span or item.span)


def _kind_of_aggregate(name: str, of: Kind) -> Kind:
    if name == "count":
        return kinds.INTEGER
    if name == "collect":
        return kinds.list_of(of)
    return of if name in {"min", "max"} else kinds.DATA
