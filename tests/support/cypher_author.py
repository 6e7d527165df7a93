"""Writes graphs and queries by chance: small dense graphs, and queries of the whole language that reads.

Each choice comes from the given generator, so that a seed says the text. Answers do not hang on an order that a query leaves open: SKIP
and LIMIT come only after an ORDER BY over all columns, and what is collected is of no interest but for its size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

LABELS = ("A", "B", "C")
TYPES = ("R", "S")
NUMBERS = ("0", "1", "2", "3", "-1", "0.5", "1.5", "-2.5")
"""No float is equal to an integer: which of two equal values stands for both is left open."""
MOST_HOPS = 5
"""Relationships in the patterns of a query, one of variable length counting as three: more would take long on a dense graph."""
TEXTS = ("''", "'a'", "'b'", "'ab'", "'B'")


def graph_text(random: Random, nodes: int = 5, edges: int = 7, *, parallel: bool = True) -> str:
    """A statement that creates a graph: self-loops, parallel edges, absent properties, numbers of both kinds; each element has a `k`.

    Args:
        random: Where its choices come from.
        nodes: At most so many.
        edges: At most so many.
        parallel: Whether there may be two edges between the same nodes.
    """
    size = random.randint(1, nodes)
    parts = [_element(random, f"n{n}", n, "".join(f":{label}" for label in LABELS if random.random() < 0.4)) for n in range(size)]
    created = [f"({part})" for part in parts]
    src = dst = 0
    joined: set[frozenset[int]] = set()
    for number in range(random.randint(0, edges)):
        if random.random() < 0.8:  # else parallel to the last one
            src, dst = random.randrange(size), random.randrange(size)
        if not parallel and {src, dst} in joined:
            continue
        joined.add(frozenset({src, dst}))
        created.append(f"(n{src})-[{_element(random, '', 100 + number, ':' + random.choice(TYPES))}]->(n{dst})")
    return "CREATE " + ", ".join(created)


def _element(random: Random, name: str, number: int, labels: str) -> str:
    properties = [f"k: {number}"]
    for key, values in (("s", NUMBERS), ("t", TEXTS), ("u", ("true", "false"))):
        if random.random() < 0.7:
            properties.append(f"{key}: {random.choice(values)}")
    return f"{name}{labels} {{{', '.join(properties)}}}"


@dataclass
class Scope:
    """The names that a query has at a place, by what they stand for."""

    nodes: list[str] = field(default_factory=list)
    rels: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    bools: list[str] = field(default_factory=list)

    def copy(self) -> Scope:
        """Another one with the same names."""
        return Scope(*(list(names) for names in (self.nodes, self.rels, self.paths, self.numbers, self.texts, self.bools)))


@dataclass(frozen=True)
class Query:
    """A query.

    Attributes:
        draft: Its text, with names in `«»` for the relationships of its patterns that have none.
        order: Of each key of the last ORDER BY its column and whether it descends; empty without one.
    """

    draft: str
    order: tuple[tuple[int, bool], ...] = ()

    @property
    def text(self) -> str:
        """As it is run."""
        return re.sub("«.*?»", "", self.draft)

    @property
    def named(self) -> str:
        """The same, with a name for every relationship, which changes nothing."""
        return re.sub("«(.*?)»", r"\1", self.draft)


class Author:
    """Writes queries.

    Args:
        random: Where its choices come from.
        labels: Labels that the graph may have.
        types: Relationship types that it may have.
        number_keys: Properties that are numbers or absent.
        text_keys: Properties that are strings or absent.
        bool_keys: Properties that are booleans or absent.
        plain: Whether to do without `reduce`, `COUNT { }` and `CALL { }`, which the kit does not have.
    """

    def __init__(
        self,
        random: Random,
        *,
        labels: Sequence[str] = LABELS,
        types: Sequence[str] = TYPES,
        number_keys: Sequence[str] = ("s", "k"),
        text_keys: Sequence[str] = ("t",),
        bool_keys: Sequence[str] = ("u",),
        plain: bool = False,
    ) -> None:
        self.random = random
        self.labels, self.types = labels, types
        self.number_keys, self.text_keys, self.bool_keys = number_keys, text_keys, bool_keys
        self.plain = plain
        self._made = self._hops = 0
        self._in_where = False

    # Queries.

    def query(self) -> Query:
        """Any query."""
        self._made = self._hops = 0
        if self._chance(0.08):
            width = self.random.randint(1, 2)
            union = self.random.choice((" UNION ", " UNION ALL "))
            return Query(union.join(self._single(width, plain=True).draft for _ in range(2)))
        return self._single(self.random.randint(1, 3))

    def _single(self, columns: int, *, plain: bool = False) -> Query:
        scope, clauses = Scope(), []
        for _ in range(self.random.randint(1, 3)):
            clauses.append(self._reading_clause(scope))
            if self._chance(0.3):
                clauses.append(self._with(scope))
        final = self._return(scope, columns, plain=plain)
        return Query(" ".join((*clauses, final.draft)), final.order)

    def _reading_clause(self, scope: Scope) -> str:
        if self._chance(0.15):
            return self._unwind(scope)
        if not self.plain and self._chance(0.07):
            return self._call(scope)
        return self.match(scope)

    def match(self, scope: Scope) -> str:
        """A MATCH or OPTIONAL MATCH, whose names go into the scope."""
        optional = "OPTIONAL " if self._chance(0.25) else ""
        text = f"{optional}MATCH {self.patterns(scope)}"
        return f"{text} WHERE {self.condition(scope)}" if self._chance(0.5) else text

    def condition(self, scope: Scope) -> str:
        """What may stand after a WHERE: a predicate that may hold patterns, as a draft."""
        self._in_where = True
        draft = self.predicate(scope)
        self._in_where = False
        return draft

    def _unwind(self, scope: Scope) -> str:
        name = self._new("x")
        numbers = self._chance(0.7)
        items = [self.number(scope, 1) if numbers else self.text(scope, 1) for _ in range(self.random.randint(0, 3))]
        (scope.numbers if numbers else scope.texts).append(name)
        return f"UNWIND [{', '.join(items)}] AS {name}"

    def _call(self, scope: Scope) -> str:
        inner = scope.copy()
        imported = sorted({*inner.nodes, *inner.rels, *inner.numbers, *inner.texts, *inner.bools, *inner.paths})
        head = f"WITH {', '.join(imported)} " if imported else ""
        body = self.match(inner)
        name = self._new("x")
        value = self.number(inner, 1) if self._chance(0.5) else self._aggregate(inner)
        scope.numbers.append(name)
        return f"CALL {{ {head}{body} RETURN {value} AS {name} }}"

    def _with(self, scope: Scope) -> str:
        kept = Scope()
        items = []
        for names, into in ((scope.nodes, kept.nodes), (scope.rels, kept.rels)):
            for name in names:
                if self._chance(0.7):
                    items.append(name)
                    into.append(name)
        distinct = ""
        if self._chance(0.4):
            name = self._new("x")
            items.append(f"{self._aggregate(scope)} AS {name}")
            kept.numbers.append(name)
        else:
            distinct = "DISTINCT " if self._chance(0.3) else ""
        if not items or self._chance(0.3):
            name = self._new("x")
            items.append(f"{self.number(scope, 1)} AS {name}")
            kept.numbers.append(name)
        vars(scope).update(vars(kept))
        text = f"WITH {distinct}{', '.join(items)}"
        return f"{text} WHERE {self.condition(scope)}" if self._chance(0.3) else text

    def _return(self, scope: Scope, columns: int, *, plain: bool) -> Query:
        names = [f"c{n}" for n in range(columns)]
        items = [self._aggregate(scope) if self._chance(0.3) else self.value(scope) for _ in names]
        distinct = "DISTINCT " if self._chance(0.2) else ""
        text = f"RETURN {distinct}" + ", ".join(f"{item} AS {name}" for item, name in zip(items, names, strict=True))
        if plain or self._chance(0.6):
            return Query(text)
        order = tuple((column, self._chance(0.4)) for column in self.random.sample(range(columns), columns))
        text += " ORDER BY " + ", ".join(f"c{column}{' DESC' if descending else ''}" for column, descending in order)
        if self._chance(0.4):
            text += f" SKIP {self.random.randint(0, 2)}"
        if self._chance(0.5):
            text += f" LIMIT {self.random.randint(0, 4)}"
        return Query(text, order)

    # Patterns.

    def named_patterns(self) -> tuple[str, Scope]:
        """Patterns for a MATCH of their own, with at least one node that has a name."""
        while True:
            scope, self._hops = Scope(), 0
            draft = self.patterns(scope)
            if scope.nodes:
                return Query(draft).text, scope

    def patterns(self, scope: Scope) -> str:
        """One or two patterns, whose names go into the scope."""
        new = scope.copy()
        parts = [self.pattern(scope, new) for _ in range(2 if self._chance(0.25) else 1)]
        vars(scope).update(vars(new))
        return ", ".join(parts)

    def pattern(self, scope: Scope, new: Scope) -> str:
        """A chain of nodes and relationships."""
        text = self._node(scope, new)
        for _ in range(self.random.choices((0, 1, 2, 3), (2, 5, 3, 1))[0]):
            if self._hops < MOST_HOPS:
                text += self._relationship(new) + self._node(scope, new)
        if self._chance(0.1):
            name = self._new("p")
            new.paths.append(name)
            text = f"{name} = {text}"
        return text

    def _node(self, scope: Scope, new: Scope) -> str:
        if new.nodes and self._chance(0.3):
            return f"({self.random.choice(new.nodes)})"
        name = ""
        if self._chance(0.7):
            name = self._new("n")
            new.nodes.append(name)
        labels = f":{self.random.choice(self.labels)}" if self._chance(0.25) else ""
        return f"({name}{labels}{self._map(scope) if self._chance(0.1) else ''})"

    def _relationship(self, new: Scope) -> str:
        self._hops += 1
        name = self._new("r")
        hidden = f"«{name}»"
        types = "|".join(self.random.sample(self.types, self.random.randint(1, len(self.types[:2])))) if self._chance(0.5) else ""
        types = ":" + types if types else ""
        if self._chance(0.2):
            self._hops += 2
            low = self.random.randint(0, 2)
            inside = f"{hidden}{types}*{self.random.choice((f'{low}', f'{low}..{low + 1}', '..2', '0..2'))}"
        elif self._chance(0.5):
            new.rels.append(name)
            inside = name + types
        else:
            inside = hidden + types
        body = f"[{inside}]" if types or inside != hidden or self._chance(0.5) else f"«[{name}]»"
        return self.random.choices((f"-{body}->", f"<-{body}-", f"-{body}-"), (4, 2, 4))[0]

    def _map(self, scope: Scope) -> str:
        if self._chance(0.5):
            return f" {{{self.random.choice(self.number_keys)}: {self.random.choice(NUMBERS)}}}"
        return f" {{{self.random.choice(self.text_keys)}: {self.text(Scope(), 0)}}}"

    # Expressions.

    def value(self, scope: Scope) -> str:
        """A number, string or boolean."""
        return self.random.choice((self.number, self.number, self.text, self.predicate))(scope, 2)

    def number(self, scope: Scope, depth: int = 2) -> str:
        """A number or null."""
        choices = [self.random.choice(NUMBERS)]
        choices += [f"{name}.{self.random.choice(self.number_keys)}" for name in (*scope.nodes, *scope.rels)] + list(scope.numbers)
        choices += [f"length({name})" for name in scope.paths] + [f"size(relationships({name}))" for name in scope.paths]
        if depth > 0:
            one, other = self.number(scope, depth - 1), self.number(scope, depth - 1)
            choices += [f"({one} {sign} {other})" for sign in "+-*"] + [f"coalesce({one}, {other})", f"abs({one})", f"-({one})"]
            choices += [
                f"CASE WHEN {self._case_condition(scope, depth - 1)} THEN {one} ELSE {other} END",
                f"size({self.text(scope, depth - 1)})",
                f"size([b IN [{one}, {other}] WHERE b > 0 | b])",
                f"[{one}, {other}][0]",
                f"head([{one}, {other}])",
            ]
            if not self.plain:
                choices.append(f"reduce(a = 0, b IN [{one}, {other}] | a + coalesce(b, 1))")
            if scope.nodes:
                name = self.random.choice(scope.nodes)
                inner = self._new("q")
                choices += [f"size([({name}){self._step(named=True)}({inner}) | {inner}.k])", f"size(labels({name}))"]
                if not self.plain:
                    choices.append(f"COUNT {{ ({name}){self._step()}() }}")
        return self.random.choice(choices)

    def text(self, scope: Scope, depth: int = 2) -> str:
        """A string or null."""
        choices = [self.random.choice(TEXTS)]
        choices += [f"{name}.{self.random.choice(self.text_keys)}" for name in (*scope.nodes, *scope.rels)] + list(scope.texts)
        choices += [f"type({name})" for name in scope.rels]
        if depth > 0:
            one, other = self.text(scope, depth - 1), self.text(scope, depth - 1)
            choices += [f"({one} + {other})", f"toUpper({one})", f"reverse({one})", f"left({one}, 1)", f"replace({one}, 'a', {other})"]
            choices += [f"coalesce({one}, {other})", f"trim({one})", f"substring({one}, 1)"]
        return self.random.choice(choices)

    def predicate(self, scope: Scope, depth: int = 2) -> str:
        """A boolean or null."""
        one, other = self.number(scope, depth - 1), self.number(scope, depth - 1)
        word, term = self.text(scope, depth - 1), self.text(scope, 0)
        choices = [f"{one} {self.random.choice(('=', '<>', '<', '<=', '>', '>='))} {other}", f"{word} = {term}", f"{one} IS NULL"]
        choices += [f"{word} IS NOT NULL", f"{word} {self.random.choice(('STARTS WITH', 'ENDS WITH', 'CONTAINS'))} {term}"]
        choices += [f"{one} IN [{other}, {self.random.choice(NUMBERS)}, null]", f"{one} IN []", f"{other} < {one} <= 2"]
        choices += [f"{name}.{self.random.choice(self.bool_keys)}" for name in (*scope.nodes, *scope.rels) if self.bool_keys]
        choices += [f"{name}:{self.random.choice(self.labels)}" for name in scope.nodes]
        if len(scope.nodes) > 1:
            choices.append(f"{self.random.choice(scope.nodes)} {self.random.choice(('=', '<>'))} {self.random.choice(scope.nodes)}")
        if depth > 0:
            left, right = self.predicate(scope, depth - 1), self.predicate(scope, depth - 1)
            choices += [f"({left} {sign} {right})" for sign in ("AND", "OR", "XOR")] + [f"NOT ({left})"] * 2
            quantifier = self.random.choice(("all", "any", "none", "single"))
            choices.append(f"{quantifier}(b IN [{one}, {other}] WHERE b > {self.random.choice(NUMBERS)})")
            if scope.nodes and self._in_where:
                name, inner = self.random.choice(scope.nodes), self._new("q")
                key, step = self.random.choice(self.number_keys), self._step(named=True)
                choices += [
                    f"({name}){self._step()}()",
                    f"NOT ({name}){self._step()}({self.random.choice(scope.nodes)})",
                    f"EXISTS {{ MATCH ({name}){step}({inner}) WHERE {inner}.{key} > {one} }}",
                ]
        return self.random.choice(choices)

    def _case_condition(self, scope: Scope, depth: int) -> str:
        """A predicate without patterns."""
        before, self._in_where = self._in_where, False
        text = self.predicate(scope, depth)
        self._in_where = before
        return text

    def _aggregate(self, scope: Scope) -> str:
        value = self.number(scope, 1)
        distinct = "DISTINCT " if self._chance(0.3) else ""
        choices = ["count(*)", f"count({distinct}{value})", f"sum({distinct}{value})", f"min({value})", f"max({value})"]
        choices += [f"avg({value})", f"size(collect({distinct}{value}))", f"count(*) + sum({value})"]
        choices += [f"count({distinct}{name})" for name in (*scope.nodes, *scope.rels)]
        return self.random.choice(choices)

    def _step(self, *, named: bool = False) -> str:
        """A relationship where no name may be given, or with `named` where it may."""
        name = self._new("r") if named else ""
        alone, hidden = (f"«[{name}]»", f"«{name}»") if named else ("", "")
        body = self.random.choice(
            (alone, f"[{hidden}:{self.random.choice(self.types)}]", f"[{hidden}*1..2]" if self._chance(0.3) else alone)
        )
        return self.random.choice((f"-{body}->", f"<-{body}-", f"-{body}-"))

    def _new(self, letter: str) -> str:
        self._made += 1
        return f"{letter}{self._made}"

    def _chance(self, of: float) -> bool:
        return self.random.random() < of
