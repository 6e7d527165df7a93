"""Text → syntax tree. What is not on the list of clauses is refused here, before anything else happens."""

from __future__ import annotations

from typing import Final, NoReturn

from pulse_kg.cypher import ast
from pulse_kg.cypher.ast import Span
from pulse_kg.cypher.expression_parser import ExpressionParser
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.limits import MAX_CLAUSES, MAX_HOPS, MAX_PATTERN
from pulse_kg.cypher.words import FORBIDDEN, HINTS

_PATH_WORDS: Final = frozenset({"SHORTEST", "WSHORTEST", "TRAIL", "ACYCLIC", "WALK"})


def parse(text: str) -> ast.Statement:
    """Reads a query.

    Raises:
        Fault: It is no query, or one that would do more than read.
    """
    return Parser(text).statement()


class Parser(ExpressionParser):
    """Reads clauses and patterns, and by `ExpressionParser` expressions."""

    def statement(self) -> ast.Statement:
        """Reads the whole text: one query, with EXPLAIN or PROFILE before it, with a semicolon after it."""
        prefix = self.skip_word("EXPLAIN", "PROFILE")
        query = self._query()
        self.skip_op(";")
        if self.token.kind != "end":
            self._refuse_what_follows()
        mode = prefix.value.lower() if prefix else "run"
        return ast.Statement(query, "explain" if mode == "explain" else "profile" if mode == "profile" else "run", self.text)

    def subquery(self) -> ast.Query:
        """Reads a query in braces, of which the opening one is taken; a bare pattern with its WHERE stands for a MATCH."""
        start = self.token.start
        if self.is_op("("):
            match = self._match_body(start, optional=False)
            query = ast.Query((ast.SingleQuery((match,), match.span),), False, match.span)
        else:
            query = self._query()
        self.expect_op("}")
        return query

    # Queries and clauses.

    def _query(self) -> ast.Query:
        start = self.token.start
        parts, kinds = [self._single_query()], set[bool]()
        while union := self.skip_word("UNION"):
            kinds.add(self.skip_word("ALL") is not None)
            self.skip_word("DISTINCT")
            if len(kinds) > 1:
                raise Fault("InvalidClauseComposition", "UNION and UNION ALL can't be mixed in one query.", union.span)
            parts.append(self._single_query())
            if len(parts) > MAX_CLAUSES:
                raise Fault("QueryTooLong", f"The query has more than {MAX_CLAUSES} parts.", union.span)
        return ast.Query(tuple(parts), True in kinds, self.since(start))

    def _single_query(self) -> ast.SingleQuery:
        start = self.token.start
        clauses: list[ast.Clause] = []
        while True:
            clauses.append(self._clause())
            if len(clauses) > MAX_CLAUSES:
                raise Fault("QueryTooLong", f"The query has more than {MAX_CLAUSES} clauses.", self.token.span)
            last = clauses[-1]
            if isinstance(last, ast.Projection) and last.final:
                break
            if clauses and (self.token.kind == "end" or self.is_op("}", ";") or self.is_word("UNION")):
                break
        return ast.SingleQuery(tuple(clauses), self.since(start))

    def _clause(self) -> ast.Clause:
        token = self.token
        start = token.start
        word = token.value.upper() if token.kind == "name" else ""
        match word:
            case "MATCH":
                self.advance()
                return self._match_body(start, optional=False)
            case "OPTIONAL":
                self.advance()
                self.expect_word("MATCH")
                return self._match_body(start, optional=True)
            case "UNWIND":
                self.advance()
                items = self.expression()
                self.expect_word("AS")
                return ast.Unwind(items, self.name("a variable"), self.since(start))
            case "WITH" | "RETURN":
                self.advance()
                return self._projection(start, final=word == "RETURN")
            case "CALL":
                return self._call_subquery()
        return self._refuse_clause()

    def _refuse_clause(self) -> NoReturn:
        """Refuses what is no clause of a query that reads.

        Raises:
            Fault: Always.
        """
        token = self.token
        word = token.value.upper() if token.kind == "name" else ""
        if word in FORBIDDEN:
            message = f"{word} is not allowed: a query reads, and nothing else. Leave it out."
            raise Fault("UnsafeClause", message, token.span, unsafe=True, hint=HINTS.get(word))
        self.unexpected("a clause (MATCH, OPTIONAL MATCH, UNWIND, WITH, CALL { }, RETURN or UNION)")

    def _refuse_what_follows(self) -> NoReturn:
        token = self.token
        if token.kind == "name" and token.value.upper() in FORBIDDEN:
            self._refuse_clause()
        if self.tokens[self.at - 1].value == ";":
            raise Fault("UnexpectedSyntax", "Only one query can be run at a time: leave out what follows the semicolon.", token.span)
        self.unexpected("the end of the query (RETURN comes last)")

    def _match_body(self, start: int, *, optional: bool) -> ast.Match:
        parts = [self.pattern_part()]
        while self.skip_op(","):
            parts.append(self.pattern_part())
        if sum(len(part.rels) + 1 for part in parts) > MAX_PATTERN:
            raise Fault("QueryTooLong", f"The patterns of one MATCH have more than {MAX_PATTERN} elements.", self.since(start))
        where = self.expression() if self.skip_word("WHERE") else None
        return ast.Match(tuple(parts), optional, where, self.since(start))

    def _projection(self, start: int, *, final: bool) -> ast.Projection:
        distinct = self.skip_word("DISTINCT") is not None
        star = self.skip_op("*") is not None
        items: list[ast.ProjectionItem] = []
        while not star or self.skip_op(","):
            items.append(self._item())
            if not star and self.skip_op(",") is None:
                break
        order: list[ast.SortItem] = []
        if self.skip_word("ORDER"):
            self.expect_word("BY")
            order.append(self._sort_item())
            while self.skip_op(","):
                order.append(self._sort_item())
        skip = self.expression() if self.skip_word("SKIP", "OFFSET") else None
        limit = self.expression() if self.skip_word("LIMIT") else None
        where = self.expression() if not final and self.skip_word("WHERE") else None
        return ast.Projection(final, distinct, star, tuple(items), tuple(order), skip, limit, where, self.since(start))

    def _item(self) -> ast.ProjectionItem:
        start = self.token.start
        expression = self.expression()
        # From the tokens, not from the expression: parentheses around it belong to the text.
        place = self.since(start)
        alias = self.name("an alias") if self.skip_word("AS") else None
        return ast.ProjectionItem(expression, alias, self.text[place.start : place.end], place)

    def _sort_item(self) -> ast.SortItem:
        expression = self.expression()
        word = self.skip_word("ASC", "ASCENDING", "DESC", "DESCENDING")
        return ast.SortItem(expression, word is not None and word.value.upper().startswith("DESC"))

    def _call_subquery(self) -> ast.CallSubquery:
        start = self.advance().start
        imports: tuple[str, ...] | None = None
        if self.skip_op("("):
            imports = self._imports()
        if not self.is_op("{"):
            raise Fault(
                "ProcedureCall",
                "Procedures can't be called.",
                Span(start, self.token.end),
                unsafe=True,
                hint="schema_info tells node types, relationship types and attributes; CALL { … } runs a subquery.",
            )
        self.advance()
        self.deeper(8)
        query = self._query()
        self.shallower(8)
        self.expect_op("}")
        if self.is_word("IN"):
            raise Fault(
                "UnsafeClause", "CALL { } IN TRANSACTIONS is not allowed: a query reads, and nothing else.", self.token.span, unsafe=True
            )
        return ast.CallSubquery(query, imports, self.since(start))

    def _imports(self) -> tuple[str, ...]:
        if self.skip_op("*"):
            self.expect_op(")")
            return ("*",)
        names: list[str] = []
        while not self.is_op(")"):
            if names:
                self.expect_op(",", " or ')'")
            names.append(self.name("a variable"))
        self.advance()
        return tuple(names)

    # Patterns.

    def pattern_part(self) -> ast.PatternPart:
        """Reads a pattern: a chain of nodes and relationships, with a name for its path, in `shortestPath` or not."""
        start, variable = self.token.start, None
        if self.is_name() and self.peek(1).value == "=" and self.peek(1).kind == "op":
            variable = self.name("a path's name")
            self.advance()
        shortest = self.skip_word("SHORTESTPATH", "ALLSHORTESTPATHS")
        if shortest is not None:
            self.expect_op("(")
            nodes, rels = self._chain_of_pattern()
            self.expect_op(")")
            if len(rels) != 1:
                raise Fault("UnexpectedSyntax", f"{shortest.value}() takes one relationship between two nodes.", self.since(start))
        else:
            nodes, rels = self._chain_of_pattern()
        mode = None if shortest is None else "one" if shortest.value.upper() == "SHORTESTPATH" else "all"
        return ast.PatternPart(variable, nodes, rels, "one" if mode == "one" else "all" if mode == "all" else None, self.since(start))

    def _chain_of_pattern(self) -> tuple[tuple[ast.NodePattern, ...], tuple[ast.RelPattern, ...]]:
        if self.is_op("(") and self.peek(1).value == "(" and self.peek(1).kind == "op":
            self.advance()
            self.deeper()
            found = self._chain_of_pattern()
            self.shallower()
            self.expect_op(")")
            return found
        nodes, rels = [self._node()], list[ast.RelPattern]()
        while self.is_op("-", "<"):
            rels.append(self._relationship())
            nodes.append(self._node())
        return tuple(nodes), tuple(rels)

    def _node(self) -> ast.NodePattern:
        start = self.expect_op("(", ", the beginning of a node,").start
        variable = self._variable()
        labels = self._labels()
        properties = self._properties()
        where = self.expression() if self.skip_word("WHERE") else None
        self.expect_op(")")
        return ast.NodePattern(variable, labels, properties, where, self.since(start))

    def _variable(self) -> str | None:
        token = self.token
        if token.kind == "quoted" or (token.kind == "name" and token.value.upper() not in {"WHERE", *_PATH_WORDS}):
            return self.name("a variable")
        return None

    def _labels(self) -> ast.Labels:
        groups: list[tuple[str, ...]] = []
        while self.skip_op(":") is not None or (groups and self.skip_op("&") is not None):
            group = [self.any_name("a label")]
            while self.skip_op("|"):
                self.skip_op(":")
                group.append(self.any_name("a label"))
            groups.append(tuple(group))
        return ast.Labels(tuple(groups))

    def _properties(self) -> ast.MapOf | None:
        if self.is_op("{"):
            self.deeper()
            found = self.map_literal()
            self.shallower()
            return found
        if self.token.kind == "parameter":
            token = self.token
            raise Fault(
                "InvalidParameterUse", f"A parameter can't stand for all properties: write {{key: ${token.value}.key}}.", token.span
            )
        return None

    def _relationship(self) -> ast.RelPattern:
        start = self.token.start
        to_left = self.skip_op("<") is not None
        self.expect_op("-")
        variable, types, hops, properties, where = None, tuple[str, ...](), None, None, None
        if self.skip_op("["):
            variable = self._variable()
            types = self._types()
            hops = self._hops()
            properties = self._properties()
            where = self.expression() if self.skip_word("WHERE") else None
            self.expect_op("]")
        self.expect_op("-")
        to_right = self.skip_op(">") is not None
        arrow: ast.Arrow = "both" if to_left == to_right else "in" if to_left else "out"
        return ast.RelPattern(variable, types, hops, properties, arrow, where, self.since(start))

    def _types(self) -> tuple[str, ...]:
        if self.skip_op(":") is None:
            return ()
        types = [self.any_name("a relationship type")]
        while self.skip_op("|"):
            self.skip_op(":")
            types.append(self.any_name("a relationship type"))
        return tuple(dict.fromkeys(types))

    def _hops(self) -> ast.Hops | None:
        star = self.skip_op("*")
        if star is None:
            return None
        if self.token.kind == "name" and (self.token.value.upper() in _PATH_WORDS or self.is_word("ALL")):
            raise Fault(
                "UnexpectedSyntax",
                f"'{self.token.value}' is not openCypher: write shortestPath((a)-[*..5]-(b)) or allShortestPaths(…).",
                self.token.span,
            )
        low = self._bound()
        high = low
        if self.skip_op(".."):
            high = self._bound()
        elif low is None:
            high = None
        if self.is_op("-"):
            raise Fault("InvalidRelationshipPattern", "The length of a path can't be negative.", self.token.span)
        for bound in (low, high):
            if bound is not None and bound > MAX_HOPS:
                raise Fault(
                    "PathTooLong",
                    f"A path may have at most {MAX_HOPS} relationships; {bound} was asked for. Write at most *..{MAX_HOPS}.",
                    self.since(star.start),
                )
        return ast.Hops(low, high, self.since(star.start))

    def _bound(self) -> int | None:
        return int(self.advance().value) if self.token.kind == "integer" else None
