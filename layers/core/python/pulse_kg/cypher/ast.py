"""The syntax tree: immutable nodes, each with its place in the text."""

from __future__ import annotations

from typing import Any, Literal

from pulse_kg.domain.records import record

Arrow = Literal["out", "in", "both"]
QuantifierKind = Literal["all", "any", "none", "single"]


@record
class Span:
    """A piece of the query's text: from `start`, inclusive, to `end`, exclusive, in characters."""

    start: int
    end: int


# Expressions.


@record
class Constant:
    """A null, boolean, number or string."""

    value: Any
    span: Span


@record
class Parameter:
    """`$name`."""

    name: str
    span: Span


@record
class Variable:
    """A name in scope."""

    name: str
    span: Span


@record
class ListOf:
    """`[a, b]`."""

    items: tuple[Expression, ...]
    span: Span


@record
class MapOf:
    """`{a: 1}`; a later entry of the same key wins."""

    entries: tuple[tuple[str, Expression], ...]
    span: Span


@record
class Property:
    """`of.key`."""

    of: Expression
    key: str
    span: Span


@record
class Index:
    """`of[at]`: an item of a list, a value of a map, a property of an element."""

    of: Expression
    at: Expression
    span: Span


@record
class Slice:
    """`of[low..high]`; an end may be absent."""

    of: Expression
    low: Expression | None
    high: Expression | None
    span: Span


@record
class HasLabels:
    """`of:A:B`: all of these labels, or for a relationship this type."""

    of: Expression
    labels: tuple[str, ...]
    span: Span


@record
class Unary:
    """`NOT x`, `-x`, `+x`."""

    op: Literal["NOT", "-", "+"]
    of: Expression
    span: Span


@record
class Operation:
    """Operands joined by operators of one rank, from left to right: one operand more than operators.

    Ranks: `OR`; `XOR`; `AND`; `IN`, `STARTS WITH`, `ENDS WITH`, `CONTAINS`, `=~`; `+`, `-`; `*`, `/`, `%`; `^`.
    """

    operands: tuple[Expression, ...]
    ops: tuple[str, ...]
    span: Span


@record
class Comparison:
    """`a < b <= c`: a conjunction of the comparisons of neighbours. Operators: `= <> < <= > >=`."""

    operands: tuple[Expression, ...]
    ops: tuple[str, ...]
    span: Span


@record
class IsNull:
    """`x IS NULL`, or with `negated` `x IS NOT NULL`."""

    of: Expression
    negated: bool
    span: Span


@record
class Call:
    """A function, or an aggregate; `name` as written, `CountStar` is a node of its own."""

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool
    span: Span


@record
class CountStar:
    """`count(*)`."""

    span: Span


@record
class Case:
    """`CASE subject WHEN … THEN … ELSE … END`; the subject is absent in the searching form."""

    subject: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    span: Span


@record
class Quantifier:
    """`all(x IN list WHERE p)` and any, none, single."""

    kind: QuantifierKind
    variable: str
    items: Expression
    where: Expression
    span: Span


@record
class ListComprehension:
    """`[x IN list WHERE p | e]`."""

    variable: str
    items: Expression
    where: Expression | None
    result: Expression | None
    span: Span


@record
class Reduce:
    """`reduce(total = start, x IN list | e)`."""

    total: str
    start: Expression
    variable: str
    items: Expression
    result: Expression
    span: Span


@record
class MapProjection:
    """`of{.key, .*, name: e, variable}`. Items are ("property", key), ("all",), ("entry", key, expression)."""

    of: Variable
    items: tuple[tuple[str, str | None, Expression | None], ...]
    span: Span


@record
class PatternPredicate:
    """A pattern where an expression is wanted: whether it matches."""

    part: PatternPart
    span: Span


@record
class PatternComprehension:
    """`[p = (a)-->(b) WHERE c | e]`."""

    part: PatternPart
    where: Expression | None
    result: Expression
    span: Span


@record
class ShortestPathExpression:
    """`shortestPath((a)-[*]-(b))` where an expression is wanted: the path, or for `allShortestPaths` a list of them."""

    part: PatternPart
    span: Span


@record
class Subquery:
    """`EXISTS { … }`, `COUNT { … }`, `COLLECT { … }`."""

    kind: Literal["EXISTS", "COUNT", "COLLECT"]
    query: Query
    span: Span


Expression = (
    Constant
    | Parameter
    | Variable
    | ListOf
    | MapOf
    | Property
    | Index
    | Slice
    | HasLabels
    | Unary
    | Operation
    | Comparison
    | IsNull
    | Call
    | CountStar
    | Case
    | Quantifier
    | ListComprehension
    | Reduce
    | MapProjection
    | PatternPredicate
    | PatternComprehension
    | ShortestPathExpression
    | Subquery
)


# Patterns.


@record
class Labels:
    """What a node pattern asks of labels: every group of `all_of`, and of a group one label. Empty asks nothing."""

    all_of: tuple[tuple[str, ...], ...] = ()


@record
class NodePattern:
    """`(variable:Label {key: value} WHERE p)`."""

    variable: str | None
    labels: Labels
    properties: MapOf | None
    where: Expression | None
    span: Span


@record
class Hops:
    """The length of a relationship pattern with a star: `*`, `*2`, `*1..3`; a bound that is not written is None."""

    low: int | None
    high: int | None
    span: Span


@record
class RelPattern:
    """`-[variable:A|B *1..3 {key: value}]->`."""

    variable: str | None
    rel_types: tuple[str, ...]
    hops: Hops | None
    properties: MapOf | None
    arrow: Arrow
    where: Expression | None
    span: Span


@record
class PatternPart:
    """A chain of nodes and relationships: one node more than relationships.

    Attributes:
        variable: The path's name.
        shortest: For `shortestPath` and `allShortestPaths`.
    """

    variable: str | None
    nodes: tuple[NodePattern, ...]
    rels: tuple[RelPattern, ...]
    shortest: Literal["one", "all"] | None
    span: Span


# Clauses.


@record
class Match:
    """`MATCH` or `OPTIONAL MATCH` with its `WHERE`."""

    parts: tuple[PatternPart, ...]
    optional: bool
    where: Expression | None
    span: Span


@record
class Unwind:
    """`UNWIND items AS variable`."""

    items: Expression
    variable: str
    span: Span


@record
class ProjectionItem:
    """`expression AS alias`; `text` is the expression's source text."""

    expression: Expression
    alias: str | None
    text: str
    span: Span

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.text if self.alias is None else self.alias


@record
class SortItem:
    """A key of `ORDER BY`."""

    expression: Expression
    descending: bool


@record
class Projection:
    """`WITH` or `RETURN`: items, then the distinct ones, then ordered, then cut; `WITH` may have a `WHERE`.

    Attributes:
        final: Whether it is a RETURN.
        star: Whether all names in scope come first.
    """

    final: bool
    distinct: bool
    star: bool
    items: tuple[ProjectionItem, ...]
    order: tuple[SortItem, ...]
    skip: Expression | None
    limit: Expression | None
    where: Expression | None
    span: Span


@record
class CallSubquery:
    """`CALL { … }`, for each row.

    Attributes:
        imports: The names of `CALL (a, b) { … }`; None where a leading `WITH` imports; `("*",)` for all.
    """

    query: Query
    imports: tuple[str, ...] | None
    span: Span


Clause = Match | Unwind | Projection | CallSubquery


@record
class SingleQuery:
    """Clauses one after the other; the last one is a RETURN, but in `EXISTS { }` and `COUNT { }`, where it may be absent."""

    clauses: tuple[Clause, ...]
    span: Span


@record
class Query:
    """One or more single queries, joined by UNION (the distinct rows) or UNION ALL."""

    parts: tuple[SingleQuery, ...]
    all_rows: bool
    span: Span


@record
class Statement:
    """The whole text."""

    query: Query
    mode: Literal["run", "explain", "profile"]
    text: str
