"""What the clauses of a query do with rows, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from pulse_kg.cypher.aggregates import Aggregate, AggregateKind
from pulse_kg.cypher.ast import Labels, Span
from pulse_kg.cypher.context import Context, Row, chunks
from pulse_kg.cypher.expressions import Evaluate
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.matching import Chain, Match
from pulse_kg.cypher.steps import ReadAhead, Rows, Step, shown, shown_labels
from pulse_kg.cypher.values import equivalence_key, order_key, wrong_type
from pulse_kg.domain.records import record

PlanLine = tuple[int, str, str, str, int | None]
"""Depth, operator, detail, what is pushed to the store, estimate."""


class Operator:
    """One operator of a query's pipeline."""

    operator = "Operator"
    detail = ""

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """The rows that it makes."""
        raise NotImplementedError

    def lines(self, ctx: Context, depth: int) -> list[PlanLine]:
        """Its lines of the plan."""
        del ctx
        return [(depth, self.operator, self.detail, "", None)]


@record
class MatchRows(Operator):
    """MATCH, and OPTIONAL MATCH: a row without a match stays, with null for each new name."""

    match: Match
    optional: bool
    tag: str

    @property
    def operator(self) -> str:  # type: ignore[override]
        """What it is called in a plan."""
        return "OptionalMatch" if self.optional else "Match"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        if not self.optional:
            yield from self.match.rows(rows, ctx)
            return
        for chunk in chunks(rows):
            yield from self._kept(chunk, ctx)

    def _kept(self, chunk: list[Row], ctx: Context) -> Rows:
        """The matches of the rows, which come in the order of the rows, and between them the rows that have none."""
        waiting = 0
        for found in self.match.rows(({**row, self.tag: number} for number, row in enumerate(chunk)), ctx):
            number = found.pop(self.tag)
            yield from (self._without(row) for row in chunk[waiting:number])
            waiting = number + 1
            yield found
        yield from (self._without(row) for row in chunk[waiting:])

    def _without(self, row: Row) -> Row:
        return {**row, **dict.fromkeys(self.match.new)}

    def lines(self, ctx: Context, depth: int) -> list[PlanLine]:
        """See `Operator.lines`."""
        steps: list[Step] = self.match.plan(ctx)
        own = [(depth + self.optional, step.operator, step.detail, step.pushed, step.estimate) for step in steps]
        late = sum(not condition.exact and not condition.once for condition in self.match.conditions)
        own += [(depth + self.optional, "Filter", f"{late} condition{'s' if late > 1 else ''}", "", None)] if late else []
        return [(depth, "OptionalMatch", "", "", None), *own] if self.optional else own


@record
class UnwindRows(Operator):
    """UNWIND: a row for each item of a list; none for null."""

    items: Evaluate
    name: str
    span: Span

    operator = "Unwind"

    @property
    def detail(self) -> str:  # type: ignore[override]
        """The name."""
        return self.name

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        for row in rows:
            listed = self.items(row, ctx)
            if listed is None:
                continue
            if type(listed) is not list:
                raise wrong_type("UNWIND", listed, "a list").at(self.span)
            for item in listed:
                ctx.spend(1)
                yield {**row, self.name: item}


@record
class ProjectRows(Operator):
    """The items of WITH or RETURN.

    Attributes:
        items: Name and value of each.
        kept: Whether the names of before stay in the rows, for an order or a condition that asks for them.
        nested: The patterns in the items.
    """

    items: tuple[tuple[str, Evaluate], ...]
    kept: bool
    nested: tuple[ReadAhead, ...] = ()

    operator = "Project"

    @property
    def detail(self) -> str:  # type: ignore[override]
        """The names."""
        return ", ".join(name for name, _ in self.items)

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        items, kept, unit = self.items, self.kept, _unit(self.items)
        for row in _read_ahead(rows, self.nested, ctx):
            ctx.spend(unit)
            made = {name: value(row, ctx) for name, value in items}
            yield {**row, **made} if kept else made


_ROW_WIDTH: Final = 16
"""Values of a row that count as much as a row of one."""
_GROUP_WIDTH: Final = 4
"""Keys and aggregates of a group that do: an aggregate has a state of its own."""


def _unit(names: Collection[Any]) -> int:
    """How many rows a row of so many values counts as."""
    return 1 + len(names) // _ROW_WIDTH


def _read_ahead(rows: Iterable[Row], nested: Sequence[ReadAhead], ctx: Context) -> Iterable[Row]:
    if not nested:
        return rows
    return _chunked(rows, nested, ctx)


def _chunked(rows: Iterable[Row], nested: Sequence[ReadAhead], ctx: Context) -> Iterator[Row]:
    for chunk in chunks(rows):
        for pattern in nested:
            pattern.read_ahead(chunk, ctx)
        yield from chunk


@record
class TrimRows(Operator):
    """Nothing but these names."""

    names: tuple[str, ...]

    operator = "Trim"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        del ctx
        names = self.names
        return ({name: row[name] for name in names} for row in rows)

    def lines(self, ctx: Context, depth: int) -> list[PlanLine]:
        """None: it changes nothing that a reader of a plan would look for."""
        del ctx, depth
        return []


@record
class AggregateCall:
    """An aggregate of the items.

    Attributes:
        name: The name under which its value is put.
        kind: The aggregate; None for `count(*)`.
        arguments: What it takes of each row.
        distinct: Whether of equivalent values the first one counts only.
        of: The name that its first argument is, where that is a name alone.
    """

    name: str
    kind: AggregateKind | None
    arguments: tuple[Evaluate, ...]
    distinct: bool
    span: Span
    of: str | None = None


def _taker(call: AggregateCall, state: Aggregate, ctx: Context) -> Callable[[Row], None]:
    """What puts a row's values into the state of an aggregate."""
    add, (first, *more) = state.add, call.arguments
    seen: set[Any] | None = set() if call.distinct else None

    def take(row: Row) -> None:
        value = first(row, ctx)
        others = [argument(row, ctx) for argument in more] if more else ()
        if seen is not None:
            key = equivalence_key(value, ctx.spend)
            if key in seen:
                return
            ctx.spend(1)
            seen.add(key)
        try:
            add(value, *others)
        except Fault as fault:
            raise fault.at(call.span) from None

    return take


class _Group:
    """The state of one group."""

    def __init__(self, keys: Row, calls: Sequence[AggregateCall], ctx: Context) -> None:
        self.keys = keys
        self.rows = 0
        self._calls = calls
        self._ctx = ctx
        self._states: list[Aggregate | None] = [None if call.kind is None else call.kind(ctx.spend) for call in calls]
        self._takers = [_taker(call, state, ctx) for call, state in zip(calls, self._states, strict=True) if state is not None]

    def add(self, row: Row) -> None:
        self.rows += 1
        for take in self._takers:
            take(row)

    def result(self) -> Row:
        found = dict(self.keys)
        for call, state in zip(self._calls, self._states, strict=True):
            try:
                found[call.name] = self.rows if state is None else state.result()
            except Fault as fault:
                raise fault.at(call.span) from None
        return found


@record
class AggregateRows(Operator):
    """The items of WITH or RETURN with aggregates among them: a row for each group, in the order in which the groups came.

    Attributes:
        keys: Name and value of what makes the groups.
        calls: The aggregates.
        items: Name and value of each item, of a row of keys and aggregates.
    """

    keys: tuple[tuple[str, Evaluate], ...]
    calls: tuple[AggregateCall, ...]
    items: tuple[tuple[str, Evaluate], ...]
    nested: tuple[ReadAhead, ...] = ()

    operator = "Aggregate"

    @property
    def detail(self) -> str:  # type: ignore[override]
        """The names."""
        return ", ".join(name for name, _ in self.items)

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        groups: dict[Any, _Group] = {}
        keys, spend, unit = [value for _, value in self.keys], ctx.spend, 1 + (len(self.keys) + len(self.calls)) // _GROUP_WIDTH
        for row in _read_ahead(rows, self.nested, ctx):
            spend(1)
            values = [value(row, ctx) for value in keys]
            # A text is its own key.
            key = tuple([value if type(value) is str else equivalence_key(value, spend) for value in values])
            group = groups.get(key)
            if group is None:
                ctx.budget.hold(unit)
                group = groups[key] = _Group(dict(zip((name for name, _ in self.keys), values, strict=True)), self.calls, ctx)
            group.add(row)
        if not groups and not keys:
            groups[()] = _Group({}, self.calls, ctx)
        for group in groups.values():
            found = group.result()
            yield {name: value(found, ctx) for name, value in self.items}
        ctx.budget.release(unit * len(groups))


@record
class CountNodes(Operator):
    """How many nodes of a label there are, or of all labels: the store tells it, where each node has one label.

    Attributes:
        match: A pattern of one node, nothing being asked of it but labels.
        aggregate: Aggregates that each count the pattern's rows, and no keys.
    """

    match: MatchRows
    aggregate: AggregateRows

    operator = "CountNodes"

    @property
    def _labels(self) -> Labels:
        return self.match.match.chains[0].nodes[0].labels

    def _number(self, ctx: Context) -> int | None:
        """The number, where the store tells it."""
        counts = ctx.counts() if ctx.pushdown else None
        if counts is None or not counts.exact:
            return None
        wanted = [set(group) for group in self._labels.all_of]
        return sum(number for label, number in counts.nodes.items() if all(label in group for group in wanted))

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        number = self._number(ctx)
        if number is None:
            yield from self.aggregate.rows(self.match.rows(rows, ctx), ctx)
            return
        number *= sum(1 for _ in rows)
        found = {call.name: number for call in self.aggregate.calls}
        yield {name: value(found, ctx) for name, value in self.aggregate.items}

    def lines(self, ctx: Context, depth: int) -> list[PlanLine]:
        """See `Operator.lines`."""
        if self._number(ctx) is None:
            return self.match.lines(ctx, depth) + self.aggregate.lines(ctx, depth)
        node = self.match.match.chains[0].nodes[0]
        return [(depth, self.operator, f"({shown(node.name)}{shown_labels(node.labels)})", "count", 1)]


def counted(operators: list[Operator]) -> list[Operator]:
    """The operators, the first two as one where all that they do is to count nodes."""
    match operators:
        case [MatchRows() as first, AggregateRows() as second, *rest] if _counts(first, second):
            return [CountNodes(first, second), *rest]
        case _:
            return operators


def _counts(first: MatchRows, second: AggregateRows) -> bool:
    match first.match.chains:
        case (Chain(path=None, nodes=(node,), rels=()),) if node.name in first.match.new:
            plain = not (first.optional or first.match.conditions or second.keys or second.nested)
            return plain and all(call.kind is None or (call.kind.name == "count" and call.of == node.name) for call in second.calls)
        case _:
            return False


@record
class DistinctRows(Operator):
    """Of equivalent rows the first one.

    Attributes:
        names: What makes a row.
    """

    names: tuple[str, ...]

    operator = "Distinct"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        seen: set[Any] = set()
        unit = _unit(self.names)
        for row in rows:
            ctx.spend(1)
            key = tuple([equivalence_key(row[name], ctx.spend) for name in self.names])
            if key not in seen:
                ctx.budget.hold(unit)
                seen.add(key)
                yield row
        ctx.budget.release(unit * len(seen))


@record
class SortRows(Operator):
    """ORDER BY: equal rows stay in their order.

    Attributes:
        keys: The keys, the first one first, and whether each goes down.
        most: How many of the first rows are wanted; None for all.
    """

    keys: tuple[tuple[Evaluate, bool], ...]
    most: Callable[[Context], int] | None
    nested: tuple[ReadAhead, ...] = ()

    operator = "Sort"

    @property
    def detail(self) -> str:  # type: ignore[override]
        """The directions."""
        return f"{len(self.keys)} key{'s' if len(self.keys) > 1 else ''}" + (", the first rows only" if self.most else "")

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        most, unit = None if self.most is None else self.most(ctx), 1
        held: list[tuple[list[Any], Row]] = []
        for row in _read_ahead(rows, self.nested, ctx):
            ctx.spend(1)
            unit = _unit(row)
            ctx.budget.hold(unit)
            held.append(([order_key(key(row, ctx), ctx.spend) for key, _ in self.keys], row))
            if most is not None and len(held) >= 2 * most + _SORTED_AT_ONCE:
                held = self._cut(held, most, unit, ctx)
        ordered = self._sorted(held)
        yield from (row for _, row in (ordered if most is None else ordered[:most]))
        ctx.budget.release(unit * len(held))

    def _cut(self, held: list[tuple[list[Any], Row]], most: int, unit: int, ctx: Context) -> list[tuple[list[Any], Row]]:
        kept = self._sorted(held)[:most]
        ctx.budget.release(unit * (len(held) - len(kept)))
        return kept

    def _sorted(self, held: list[tuple[list[Any], Row]]) -> list[tuple[list[Any], Row]]:
        for place in range(len(self.keys) - 1, -1, -1):
            held = sorted(held, key=lambda item: item[0][place], reverse=self.keys[place][1])
        return held


_SORTED_AT_ONCE: Final = 1_000


@record
class SkipRows(Operator):
    """SKIP."""

    number: Callable[[Context], int]

    operator = "Skip"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        return islice(iter(rows), self.number(ctx), None)


@record
class LimitRows(Operator):
    """LIMIT: what comes after is not even looked for."""

    number: Callable[[Context], int]

    operator = "Limit"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        return islice(iter(rows), self.number(ctx))


@record
class FilterWhere(Operator):
    """The WHERE of a WITH."""

    holds: Evaluate
    nested: tuple[ReadAhead, ...] = ()

    operator = "Filter"

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        for row in _read_ahead(rows, self.nested, ctx):
            if self.holds(row, ctx) is True:
                yield row


@record
class Pipeline:
    """A query with its UNIONs.

    Attributes:
        parts: The operators of each single query.
        columns: The names of the columns; none for a subquery that returns nothing.
        all_rows: Whether equivalent rows of the parts all stay.
    """

    parts: tuple[tuple[Operator, ...], ...]
    columns: tuple[str, ...]
    all_rows: bool

    def rows(self, row: Row, ctx: Context) -> Rows:
        """The rows that come of one row."""
        found = (made for operators in self.parts for made in through(operators, row, ctx))
        if len(self.parts) > 1 and not self.all_rows:
            return DistinctRows(self.columns).rows(found, ctx)
        return found

    def lines(self, ctx: Context, depth: int = 0) -> list[PlanLine]:
        """The lines of the plan."""
        if len(self.parts) == 1:
            return [line for operator in self.parts[0] for line in operator.lines(ctx, depth)]
        lines: list[PlanLine] = [(depth, "UnionAll" if self.all_rows else "Union", f"{len(self.parts)} queries", "", None)]
        for operators in self.parts:
            lines += [line for operator in operators for line in operator.lines(ctx, depth + 1)]
        return lines


def through(operators: Sequence[Operator], row: Row, ctx: Context) -> Rows:
    """What comes of a row at the end of the operators."""
    rows: Iterable[Row] = [row]
    for operator in operators:
        rows = operator.rows(rows, ctx)
    return iter(rows)


@record
class CallRows(Operator):
    """CALL { }: the subquery's rows for each row.

    Attributes:
        pipeline: The subquery.
        imports: The names that it sees of the row.
    """

    pipeline: Pipeline
    imports: tuple[str, ...]

    operator = "CallSubquery"

    @property
    def detail(self) -> str:  # type: ignore[override]
        """The names that it takes over."""
        return ", ".join(self.imports)

    def rows(self, rows: Iterable[Row], ctx: Context) -> Rows:
        """See `Operator.rows`."""
        for row in rows:
            for found in self.pipeline.rows({name: row[name] for name in self.imports}, ctx):
                ctx.spend(1)
                yield {**row, **found}

    def lines(self, ctx: Context, depth: int) -> list[PlanLine]:
        """See `Operator.lines`."""
        return [(depth, self.operator, self.detail, "", None), *self.pipeline.lines(ctx, depth + 1)]
