"""The engine: a text becomes a compiled query without a look at any store; a compiled query runs over a `GraphSource`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from pulse_kg.cypher import kinds
from pulse_kg.cypher.budget import Budget
from pulse_kg.cypher.compiler import QueryCompiler
from pulse_kg.cypher.context import AT_ONCE, Context, Row, batches
from pulse_kg.cypher.expressions import Column, Uses
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.limits import DEFAULT_ROWS, MOST_ROWS
from pulse_kg.cypher.notices import Vocabulary, unknown_names
from pulse_kg.cypher.operators import Operator, Pipeline
from pulse_kg.cypher.parser import parse
from pulse_kg.cypher.values import Path
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.records import record
from pulse_kg.errors import ResourceExhausted
from pulse_kg.ports.graph_source import GraphEdge, GraphNode, GraphSource, Need

MOST_BYTES: Final = 4_000_000
_MOST_NESTED: Final = 100
"""Lists and maps in one another in a value of the result; more is nothing that a reader of JSON must take."""
TIME_DEPENDENT: Final = "time_dependent"


@record
class CompiledQuery:
    """A query that makes sense.

    Attributes:
        text: The query.
        columns: The names of its columns: an alias, or the expression as it is written.
        mode: "run", "explain" or "profile".
        params: The parameters' values.
        notices: What its text alone calls for.
    """

    text: str
    columns: tuple[str, ...]
    mode: str
    params: Mapping[str, Any]
    notices: tuple[str, ...]
    pipeline: Pipeline
    kinds: tuple[Column, ...]
    limit: Callable[[Context], int] | None
    uses: Uses

    @property
    def node_need(self) -> Need:
        """The properties that are read of every node; those of nodes in the result are read at the end."""
        return None if self.uses.whole else frozenset(self.uses.keys)

    @property
    def edge_need(self) -> Need:
        """The properties that are read of every edge: all, if edges may be in the result."""
        returned = any(kinds.holds_elements(column.kind) and column.kind is not kinds.NODE for column in self.kinds)
        return None if self.uses.whole or returned else frozenset(self.uses.keys)


@dataclass(frozen=True)
class QueryResult:
    """What a run gave.

    Attributes:
        columns: The names of the columns.
        rows: A value for each column.
        truncated: Whether there were more rows.
        notices: What a reader should know: codes and sentences.
        node_ids: The nodes in the rows, in their order, each once.
    """

    columns: tuple[str, ...]
    rows: list[list[Any]]
    truncated: bool
    notices: tuple[str, ...]
    node_ids: tuple[str, ...]


def compile_query(text: str, params: Mapping[str, Any], *, vocabulary: Vocabulary | None = None) -> CompiledQuery:
    """Reads a query and checks all that its text shows.

    Args:
        text: The query, at most 16 KiB.
        params: Name → JSON value.
        vocabulary: The labels, types and properties that there may be; for notices only.

    Raises:
        InvalidCypher: It is no query, or makes no sense; `details` has kind, line and column.
        UnsafeCypher: It would do more than read.
    """
    try:
        statement = parse(text)
        compiler = QueryCompiler(params)
        pipeline, columns, limit = compiler.statement(statement.query)
    except Fault as fault:
        raise fault.told(text) from None
    except RecursionError:
        raise Fault("NestingTooDeep", "The query nests too deep: make it flatter.").told(text) from None
    notices = [TIME_DEPENDENT] if compiler.uses.clock else []
    if vocabulary is not None:
        notices += unknown_names(compiler.uses.named, vocabulary)
    names = tuple(column.name for column in columns)
    return CompiledQuery(text, names, statement.mode, params, tuple(notices), pipeline, columns, limit, compiler.uses)


def run(
    query: CompiledQuery,
    source: GraphSource,
    *,
    now: Instant,
    budget: Budget | None = None,
    max_rows: int | None = None,
    max_bytes: int = MOST_BYTES,
    pushdown: bool = True,
) -> QueryResult:
    """Runs a query.

    Args:
        query: The query.
        source: The board.
        now: What the clock functions give.
        budget: What the run may use.
        max_rows: Rows of the result at most; None for DEFAULT_ROWS, or MOST_ROWS where the query has a LIMIT of its own.
        max_bytes: Bytes of the rows at most, as JSON; more are refused before they are made.
        pushdown: Whether the source may narrow what it reads; the result is the same.

    Raises:
        InvalidCypher: A value that an operator or function can't take.
        ResourceExhausted, QueryTimeout: It used too much.
        StoreUnavailable: By the source.
    """
    known = budget or Budget(time.monotonic)
    ctx = Context(
        source,
        query.params,
        now=now,
        budget=known,
        node_need=query.node_need,
        edge_need=query.edge_need,
        pushdown=pushdown,
        seed=query.text,
    )
    try:
        if query.mode == "explain":
            return _explained(query, ctx)
        if query.mode == "profile":
            return _profiled(query, ctx, known)
        return _result(query, ctx, max_rows, max_bytes)
    except Fault as fault:
        raise fault.told(query.text) from None
    except RecursionError:
        raise Fault("NestingTooDeep", "A value of the query nests too deep.", phase="run").told(query.text) from None


def _result(query: CompiledQuery, ctx: Context, max_rows: int | None, max_bytes: int) -> QueryResult:
    most = min(MOST_ROWS, max_rows) if max_rows is not None else DEFAULT_ROWS if query.limit is None else MOST_ROWS
    found = query.pipeline.rows({}, ctx)
    rows: list[list[Any]] = []
    room = _Room(max_bytes)
    for row in islice(found, most):
        rows.append([row[name] for name in query.columns])
        room.take(rows[-1])
    truncated = len(rows) == most and next(found, None) is not None
    node_ids = dict.fromkeys(node_id for row in rows for value in row for node_id in _node_ids(value))
    if ctx.needs_whole and node_ids:
        whole: dict[str, GraphNode] = {}
        room = _Room(max_bytes)
        for some in batches(node_ids, AT_ONCE):
            whole |= ctx.whole(some)
            room.take([whole[node_id] for node_id in some if node_id in whole])
        rows = [[_whole(value, whole) for value in row] for row in rows]
        room = _Room(max_bytes)
        for listed in rows:
            room.take(listed)
    return QueryResult(query.columns, rows, truncated, (*query.notices, *ctx.notices), tuple(node_ids))


class _Room:
    """Bytes that are left for the rows, by an estimate that is never above what JSON takes."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def take(self, value: Any) -> None:
        """Takes room for a value.

        Raises:
            ResourceExhausted: There is not so much.
        """
        self._measure(value, -1)  # a row is no list of its own

    def _measure(self, value: Any, depth: int) -> None:
        kind = type(value)
        if kind is list:
            self._parts(2, value, depth)
        elif kind is dict:
            self._parts(2 + sum([len(key) + 3 for key in value]), value.values(), depth)
        elif kind is GraphNode or kind is GraphEdge:
            self._measure(value.properties, depth)
        elif kind is Path:
            self._parts(2, (*value.nodes, *value.rels), depth)
        else:
            self._less(len(value) + 2 if kind is str else 1)

    def _parts(self, size: int, parts: Iterable[Any], depth: int) -> None:
        if depth == _MOST_NESTED:
            raise Fault("NestingTooDeep", f"A value of the result nests deeper than {_MOST_NESTED} levels.", phase="run")
        self._less(size)
        for part in parts:
            self._measure(part, depth + 1)

    def _less(self, size: int) -> None:
        # Part by part: lists that share their items are made with little, and have no end.
        self._left -= size
        if self._left < 0:
            raise ResourceExhausted(
                f"The rows would have more than {self._most:,} bytes. Return fewer columns, name properties instead of whole nodes, "
                "or add a LIMIT.",
                {"budget": "response_bytes", "limit": self._most},
            )


def _node_ids(value: Any) -> Iterator[str]:
    """The nodes that a value is or holds."""
    kind = type(value)
    if kind is GraphNode:
        yield value.node_id
    elif kind is list:
        for item in value:
            yield from _node_ids(item)
    elif kind is dict:
        for item in value.values():
            yield from _node_ids(item)
    elif kind is Path:
        for node in value.nodes:
            yield node.node_id


def _whole(value: Any, nodes: Mapping[str, GraphNode]) -> Any:
    """The value with all properties of its nodes."""
    kind = type(value)
    if kind is GraphNode:
        return nodes.get(value.node_id, value)
    if kind is list:
        return [_whole(item, nodes) for item in value]
    if kind is dict:
        return {key: _whole(item, nodes) for key, item in value.items()}
    if kind is Path:
        return Path(tuple(nodes.get(node.node_id, node) for node in value.nodes), value.rels)
    return value


# EXPLAIN and PROFILE.

_EXPLAINED: Final = ("operator", "detail", "pushed", "estimate")
_PROFILED: Final = (*_EXPLAINED, "rows", "requests", "elements", "ms")


def _explained(query: CompiledQuery, ctx: Context) -> QueryResult:
    rows: list[list[Any]] = [["  " * depth + operator, *rest] for depth, operator, *rest in query.pipeline.lines(ctx)]
    return QueryResult(_EXPLAINED, rows, False, query.notices, ())


@dataclass
class _Use:
    """What an operator and all before it used."""

    rows: int = 0
    requests: int = 0
    elements: int = 0
    seconds: float = 0.0


class _Watched(Operator):
    """An operator that is watched at work."""

    def __init__(self, inner: Operator, budget: Budget) -> None:
        self.inner = inner
        self.use = _Use()
        self._budget = budget

    def rows(self, rows: Iterable[Row], ctx: Context) -> Iterator[Row]:
        use, budget = self.use, self._budget
        found = self.inner.rows(rows, ctx)
        while True:
            requests, elements, began = budget.requests, budget.elements, time.perf_counter()
            row = next(found, None)
            use.requests += budget.requests - requests
            use.elements += budget.elements - elements
            use.seconds += time.perf_counter() - began
            if row is None:
                return
            use.rows += 1
            yield row


def _profiled(query: CompiledQuery, ctx: Context, budget: Budget) -> QueryResult:
    """Runs the query and tells of each operator what it did itself; the lines of a MATCH share the figures of its last one."""
    parts = tuple(tuple(_Watched(operator, budget) for operator in operators) for operators in query.pipeline.parts)
    watched = replace(query.pipeline, parts=parts)
    for _ in watched.rows({}, ctx):
        pass
    rows: list[list[Any]] = []
    for operators in parts:
        before = _Use()
        for operator in operators:
            lines = operator.inner.lines(ctx, 0)
            use = operator.use
            own = [
                use.rows,
                use.requests - before.requests,
                use.elements - before.elements,
                round(1_000 * (use.seconds - before.seconds), 3),
            ]
            for place, (depth, name, *rest) in enumerate(lines):
                rows.append(["  " * depth + name, *rest, *(own if place == len(lines) - 1 else [None] * len(own))])
            before = use
    return QueryResult(_PROFILED, rows, False, (*query.notices, *ctx.notices), ())
