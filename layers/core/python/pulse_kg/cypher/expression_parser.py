"""Tokens → expressions, by precedence climbing."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from pulse_kg.cypher import ast
from pulse_kg.cypher.ast import Span
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.reader import Reader, is_word

_OR, _XOR, _AND, _NOT, _COMPARISON, _PREDICATE, _SUM, _PRODUCT, _POWER, _SIGN = range(1, 11)
_RANKS: Final = {
    "=": _COMPARISON,
    "<>": _COMPARISON,
    "<": _COMPARISON,
    "<=": _COMPARISON,
    ">": _COMPARISON,
    ">=": _COMPARISON,
    "=~": _PREDICATE,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
    "^": _POWER,
}
_WORD_RANKS: Final = {
    "OR": _OR,
    "XOR": _XOR,
    "AND": _AND,
    "IN": _PREDICATE,
    "STARTS": _PREDICATE,
    "ENDS": _PREDICATE,
    "CONTAINS": _PREDICATE,
    "IS": _PREDICATE,
}
_SUBQUERY_DEPTH: Final = 8
"""What a subquery counts as levels: it takes that much more to work through."""


class ExpressionParser(Reader):
    """The part of the parser that reads expressions."""

    @abstractmethod
    def pattern_part(self) -> ast.PatternPart:
        """Reads a pattern; see `Parser`."""

    @abstractmethod
    def subquery(self) -> ast.Query:
        """Reads what stands in the braces of a subquery, and the closing brace; see `Parser`."""

    def expression(self) -> ast.Expression:
        """Reads an expression."""
        self.deeper()
        found = self._climb(_OR)
        self.shallower()
        return found

    def _climb(self, least: int) -> ast.Expression:
        """Reads operands as long as the operators between them rank at least so high."""
        start = self.token.start
        found = self._prefixed(least)
        while True:
            rank = self._rank()
            if rank < least:
                return found
            found = self._predicates(found, start) if rank == _PREDICATE else self._chain(found, rank, start)

    def _rank(self) -> int:
        token = self.token
        if token.kind == "op":
            return _RANKS.get(token.value, 0)
        return _WORD_RANKS.get(token.value.upper(), 0) if token.kind == "name" else 0

    def _prefixed(self, least: int) -> ast.Expression:
        start = self.token.start
        if self.is_word("NOT"):
            if least > _NOT:
                self.unexpected("an operand (put NOT and what it negates in parentheses)")
            self.advance()
            self.deeper()
            of = self._climb(_NOT)
            self.shallower()
            return ast.Unary("NOT", of, self.since(start))
        if self.is_op("+", "-"):
            op = str(self.advance().value)
            self.deeper()
            of = self._number(start, negative=True) if op == "-" and self.token.kind in {"integer", "float"} else self._climb(_SIGN)
            self.shallower()
            if isinstance(of, ast.Constant) and of.span.start == start:
                return self._postfixed(of, start)
            return ast.Unary("-" if op == "-" else "+", of, self.since(start))
        return self._postfixed(self._atom(), start)

    def _chain(self, first: ast.Expression, rank: int, start: int) -> ast.Expression:
        operands, ops = [first], []
        while self._rank() == rank:
            ops.append(str(self.advance().value).upper())
            operands.append(self._climb(rank + 1))
        make = ast.Comparison if rank == _COMPARISON else ast.Operation
        return make(tuple(operands), tuple(ops), self.since(start))

    def _predicates(self, found: ast.Expression, start: int) -> ast.Expression:
        """Reads `IS NULL`, `IN`, `STARTS WITH` and the like, one after the other."""
        levels = 0
        while self._rank() == _PREDICATE:
            self.deeper()
            levels += 1
            word = str(self.advance().value).upper()
            if word == "IS":
                negated = self.skip_word("NOT") is not None
                self.expect_word("NULL")
                found = ast.IsNull(found, negated, self.since(start))
                continue
            if word in {"STARTS", "ENDS"}:
                self.expect_word("WITH")
                word += " WITH"
            found = ast.Operation((found, self._climb(_SUM)), (word,), self.since(start))
        self.shallower(levels)
        return found

    # What follows an operand.

    def _postfixed(self, found: ast.Expression, start: int) -> ast.Expression:
        levels = 0
        while self.is_op(".", "[", ":", "{"):
            if self.is_op("{") and not (isinstance(found, ast.Variable) and not levels):
                break
            self.deeper()
            levels += 1
            op = self.advance().value
            if op == ".":
                if self.is_op("*"):
                    raise Fault(
                        "UnexpectedSyntax", "'.*' has its place in a map projection only: write n{.*} or properties(n).", self.token.span
                    )
                found = ast.Property(found, self.any_name("a property's name"), self.since(start))
            elif op == "[":
                found = self._indexed(found, start)
            elif op == ":":
                found = self._labelled(found, start)
            elif isinstance(found, ast.Variable):
                found = self._map_projection(found, start)
        self.shallower(levels)
        return found

    def _indexed(self, of: ast.Expression, start: int) -> ast.Expression:
        low = None if self.is_op("..") else self.expression()
        if self.skip_op("..") is None:
            self.expect_op("]")
            if low is None:
                self.unexpected("an index")
            return ast.Index(of, low, self.since(start))
        high = None if self.is_op("]") else self.expression()
        self.expect_op("]")
        return ast.Slice(of, low, high, self.since(start))

    def _labelled(self, of: ast.Expression, start: int) -> ast.Expression:
        labels = [self.any_name("a label")]
        while self.skip_op(":"):
            labels.append(self.any_name("a label"))
        return ast.HasLabels(of, tuple(labels), self.since(start))

    def _map_projection(self, of: ast.Variable, start: int) -> ast.MapProjection:
        items: list[tuple[str, str | None, ast.Expression | None]] = []
        while not self.is_op("}"):
            if items:
                self.expect_op(",", " or '}'")
            if self.skip_op("."):
                items.append(("all", None, None) if self.skip_op("*") else ("property", self.any_name("a property's name"), None))
                continue
            place = self.token.span
            key = self.any_name("a key, '.key' or '.*'")
            items.append(("entry", key, self.expression() if self.skip_op(":") else ast.Variable(key, place)))
        self.advance()
        return ast.MapProjection(of, tuple(items), self.since(start))

    # Operands.

    def _atom(self) -> ast.Expression:
        token = self.token
        match token.kind:
            case "integer" | "float":
                return self._number(token.start, negative=False)
            case "string":
                self.advance()
                return ast.Constant(token.value, token.span)
            case "parameter":
                self.advance()
                return ast.Parameter(token.value, token.span)
            case "name" | "quoted":
                return self._named()
            case "op" if token.value == "(":
                return self._parenthesised()
            case "op" if token.value == "[":
                return self._bracketed()
            case "op" if token.value == "{":
                return self.map_literal()
        return self.unexpected("an expression")

    def _number(self, start: int, *, negative: bool) -> ast.Constant:
        token = self.advance()
        value = -token.value if negative else token.value
        if token.kind == "integer" and value == 2**63:
            raise Fault("IntegerOverflow", "This number does not fit into 64 bits.", token.span)
        return ast.Constant(value, Span(start, token.end))

    def _parenthesised(self) -> ast.Expression:
        start = self.token.start
        if self.pattern_ahead(self.at):
            self.deeper()
            part = self.pattern_part()
            self.shallower()
            return ast.PatternPredicate(part, self.since(start))
        self.advance()
        found = self.expression()
        self.expect_op(")")
        return found

    def _bracketed(self) -> ast.Expression:
        start, opened = self.advance().start, self.at - 1
        signs = self._signs_within(opened)
        first = self.at + 2 if self.peek(1).kind == "op" and self.peek(1).value == "=" else self.at
        if "|" in signs and self.pattern_ahead(first):
            return self._pattern_comprehension(start)
        if self.is_name() and is_word(self.peek(1), "IN") and "," not in signs:
            return self._list_comprehension(start)
        items: list[ast.Expression] = []
        while not self.is_op("]"):
            if items:
                self.expect_op(",", " or ']'")
            items.append(self.expression())
        self.advance()
        return ast.ListOf(tuple(items), self.since(start))

    def _signs_within(self, opened: int) -> frozenset[str]:
        """Which of `,` and `|` stand directly between a bracket and the one that closes it."""
        signs, at, end = set(), opened + 1, self.closing.get(opened, len(self.tokens))
        while at < end:
            token = self.tokens[at]
            if token.kind == "op" and token.value in {",", "|"}:
                signs.add(token.value)
            at = self.closing.get(at, at) + 1
        return frozenset(signs)

    def _list_comprehension(self, start: int) -> ast.ListComprehension:
        variable = self.name("a variable")
        self.expect_word("IN")
        items = self.expression()
        where = self.expression() if self.skip_word("WHERE") else None
        result = self.expression() if self.skip_op("|") else None
        self.expect_op("]")
        return ast.ListComprehension(variable, items, where, result, self.since(start))

    def _pattern_comprehension(self, start: int) -> ast.PatternComprehension:
        self.deeper()
        part = self.pattern_part()
        self.shallower()
        where = self.expression() if self.skip_word("WHERE") else None
        self.expect_op("|")
        result = self.expression()
        self.expect_op("]")
        return ast.PatternComprehension(part, where, result, self.since(start))

    def map_literal(self) -> ast.MapOf:
        """Reads `{key: value}`."""
        start = self.expect_op("{").start
        entries: list[tuple[str, ast.Expression]] = []
        while not self.is_op("}"):
            if entries:
                self.expect_op(",", " or '}'")
            key = self.any_name("a key")
            self.expect_op(":")
            entries.append((key, self.expression()))
        self.advance()
        return ast.MapOf(tuple(entries), self.since(start))

    def _named(self) -> ast.Expression:
        """Reads what begins with a name: a constant, CASE, a quantifier, a subquery, a function, a variable."""
        token = self.token
        word = token.value.upper() if token.kind == "name" else ""
        special = self._special(word)
        if special is not None:
            return special
        dots = self._function_name_ahead()
        if dots is not None:
            return self._call(dots)
        return ast.Variable(self.name("a variable"), token.span)

    def _special(self, word: str) -> ast.Expression | None:
        token, after = self.token, self.peek(1)
        braced, called = (after.kind == "op" and after.value == sign for sign in ("{", "("))
        if word in {"TRUE", "FALSE", "NULL"}:
            self.advance()
            return ast.Constant({"TRUE": True, "FALSE": False}.get(word), token.span)
        if word == "CASE":
            return self._case()
        if word in {"EXISTS", "COUNT", "COLLECT"} and braced:
            return self._subquery_expression()
        if word in {"SHORTESTPATH", "ALLSHORTESTPATHS"} and called:
            return ast.ShortestPathExpression(self.pattern_part(), self.since(token.start))
        if called and word in {"ALL", "ANY", "NONE", "SINGLE"} and is_word(self.peek(3), "IN"):
            return self._quantifier()
        if called and word == "REDUCE":
            return self._reduce()
        if called and word in {"FILTER", "EXTRACT"} and is_word(self.peek(3), "IN"):
            raise Fault("UnknownFunction", f"There is no {word.lower()}(): write [x IN list WHERE condition | result].", token.span)
        return None

    def _subquery_expression(self) -> ast.Subquery:
        token = self.advance()
        self.advance()
        self.deeper(_SUBQUERY_DEPTH)
        query = self.subquery()
        self.shallower(_SUBQUERY_DEPTH)
        kind = token.value.upper()
        return ast.Subquery("EXISTS" if kind == "EXISTS" else "COUNT" if kind == "COUNT" else "COLLECT", query, self.since(token.start))

    def _case(self) -> ast.Case:
        start = self.advance().start
        subject = None if self.is_word("WHEN") else self.expression()
        branches: list[tuple[ast.Expression, ast.Expression]] = []
        while self.skip_word("WHEN"):
            when = self.expression()
            self.expect_word("THEN")
            branches.append((when, self.expression()))
        if not branches:
            self.unexpected("WHEN")
        otherwise = self.expression() if self.skip_word("ELSE") else None
        self.expect_word("END")
        return ast.Case(subject, tuple(branches), otherwise, self.since(start))

    def _quantifier(self) -> ast.Quantifier:
        token = self.advance()
        self.advance()
        variable = self.name("a variable")
        self.expect_word("IN")
        items = self.expression()
        self.expect_word("WHERE")
        where = self.expression()
        self.expect_op(")")
        word = token.value.lower()
        kind: ast.QuantifierKind = "all" if word == "all" else "any" if word == "any" else "none" if word == "none" else "single"
        return ast.Quantifier(kind, variable, items, where, self.since(token.start))

    def _reduce(self) -> ast.Reduce:
        start = self.advance().start
        self.advance()
        total = self.name("a variable")
        self.expect_op("=")
        first = self.expression()
        self.expect_op(",")
        variable = self.name("a variable")
        self.expect_word("IN")
        items = self.expression()
        self.expect_op("|")
        result = self.expression()
        self.expect_op(")")
        return ast.Reduce(total, first, variable, items, result, self.since(start))

    def _function_name_ahead(self) -> int | None:
        """How many dots the name of the function has that is called here; None where none is."""
        ahead, dots = 1, 0
        while True:
            token = self.peek(ahead)
            if token.kind != "op":
                return None
            if token.value == "(":
                return dots
            if token.value != "." or self.peek(ahead + 1).kind != "name":
                return None
            ahead, dots = ahead + 2, dots + 1

    def _call(self, dots: int) -> ast.Expression:
        start = self.token.start
        name = self.any_name("a function")
        for _ in range(dots):
            self.advance()
            name += "." + self.any_name("a function")
        self.advance()
        if name.lower() == "count" and self.is_op("*"):
            self.advance()
            self.expect_op(")")
            return ast.CountStar(self.since(start))
        distinct = self.skip_word("DISTINCT") is not None
        arguments: list[ast.Expression] = []
        while not self.is_op(")"):
            if arguments:
                self.expect_op(",", " or ')'")
            arguments.append(self.expression())
        self.advance()
        return ast.Call(name, tuple(arguments), distinct, self.since(start))

    # Patterns in expressions.

    def pattern_ahead(self, at: int) -> bool:
        """Whether at this token a node pattern begins that a relationship follows; decided without reading on beyond the next signs."""
        if at >= len(self.tokens) or not self._op_at(at, "(") or at not in self.closing:
            return False
        inside = at + 1
        if self.tokens[inside].kind in {"name", "quoted"}:
            inside += 1
        if not (self._op_at(inside, ")", ":", "{") or self.tokens[inside].kind == "parameter" or is_word(self.tokens[inside], "WHERE")):
            return False
        return self._relationship_ahead(self.closing[at] + 1)

    def _relationship_ahead(self, at: int) -> bool:
        if self._op_at(at, "<") and self._op_at(at + 1, "-"):
            at += 1
        if not self._op_at(at, "-"):
            return False
        if self._op_at(at + 1, "["):
            return self._op_at(self.closing.get(at + 1, len(self.tokens)) + 1, "-")
        if not self._op_at(at + 1, "-") or self.tokens[at].end < self.tokens[at + 1].start:
            return False  # (a) - -(b) subtracts
        return self._op_at(at + 2, "(") or (self._op_at(at + 2, ">") and self._op_at(at + 3, "("))

    def _op_at(self, at: int, *ops: str) -> bool:
        return at < len(self.tokens) and self.tokens[at].kind == "op" and self.tokens[at].value in ops
