"""The notation of values in openCypher's conformance kit: read, and compared with what the engine answers.

A node is written ``(:A:B {name: 'x'})``, a relationship ``[:T {num: 1}]``, a path ``<(:A)-[:T]->(:B)>``; lists, maps, strings, numbers,
``true``, ``false``, ``null`` and ``NaN`` as in a query. Nodes and relationships have no ids there: alike is equal.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulse_kg.cypher.values import Path
from pulse_kg.ports.graph_source import GraphEdge, GraphNode

# Tokens, for set-up statements too.


@dataclass(frozen=True)
class Token:
    """A piece of the text: `kind` is number, text, name, quoted or sign."""

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


_TOKEN = re.compile(
    r"""(?P<space> \s+ | //[^\n]* | /\*.*?\*/ )
    | (?P<number> 0x[0-9a-fA-F]+ | (?: \d+\.\d+ | \.\d+ | \d+(?=[eE][-+]?\d) ) (?: [eE][-+]?\d+ )? | \d+ )
    | (?P<text> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<quoted> `[^`]*` )
    | (?P<name> [^\W\d]\w* )
    | (?P<sign> <- | -> | <= | >= | <> | \.\. | [-+*/%^=<>()\[\]{}:,.|;$] )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Tokens:
    """A cursor over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.at = 0
        place = 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            assert found is not None, f"no token at {place} of {text!r}"
            if found.lastgroup != "space":
                self.tokens.append(Token(str(found.lastgroup), found.group()))
            place = found.end()

    @property
    def done(self) -> bool:
        """Whether all are taken."""
        return self.at == len(self.tokens)

    def peek(self, ahead: int = 0) -> str:
        """The text of a token to come; empty behind the last one, and for a string."""
        place = self.at + ahead
        return self.tokens[place].text if place < len(self.tokens) and self.tokens[place].kind != "text" else ""

    def kind(self, ahead: int = 0) -> str:
        """The kind of a token to come; empty behind the last one."""
        place = self.at + ahead
        return self.tokens[place].kind if place < len(self.tokens) else ""

    def take(self) -> Token:
        """The next one."""
        assert not self.done, f"{self.text!r} ends too early"
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, *texts: str) -> bool:
        """Takes the next ones if they are these; names in any case."""
        if all(self.peek(n).upper() == text for n, text in enumerate(texts)):
            self.at += len(texts)
            return True
        return False

    def expect(self, text: str) -> None:
        """Takes the next one, which must be this."""
        assert self.accept(text), f"{text!r} is wanted in {self.text!r} and not {self.peek()!r} (token {self.at})"

    def name(self) -> str:
        """Takes a name."""
        token = self.take()
        assert token.kind in {"name", "quoted"}, f"a name is wanted in {self.text!r} and not {token}"
        return token.text.strip("`")


def unquoted(text: str) -> str:
    """The string that a string literal stands for."""

    def one(found: re.Match[str]) -> str:
        code = found.group(1)
        return chr(int(code[1:], 16)) if code[0] in "uU" and len(code) > 1 else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", one, text[1:-1], flags=re.DOTALL)


def number(text: str) -> int | float:
    """The number that a literal without sign stands for."""
    if text.startswith("0x"):
        return int(text, 16)
    return int(text) if text.isdigit() else float(text)


# Cells.


@dataclass(frozen=True)
class NodeCell:
    """A node by its looks."""

    labels: frozenset[str]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class RelCell:
    """A relationship by its looks."""

    rel_type: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class PathCell:
    """A path: its first node, and for each step whether it runs with the arrow, the relationship and the node it comes to."""

    start: NodeCell
    steps: tuple[tuple[bool, RelCell, NodeCell], ...] = field(default=())


_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "NaN": math.nan, "Infinity": math.inf, "Inf": math.inf}


def read_cell(text: str) -> Any:
    """The value that a cell, or the value of a parameter, stands for."""
    tokens = Tokens(text)
    value = _value(tokens)
    assert tokens.done, f"there is more than a value in {text!r}"
    return value


def _value(tokens: Tokens) -> Any:
    match tokens.peek():
        case "(":
            return _node(tokens)
        case "[":
            return _relationship(tokens) if tokens.peek(1) == ":" else _list(tokens)
        case "{":
            return _map(tokens)
        case "<":
            return _path(tokens)
        case "-":
            tokens.take()
            return -_value(tokens)
        case _:
            token = tokens.take()
    if token.kind == "text":
        return unquoted(token.text)
    if token.kind == "number":
        return number(token.text)
    return _WORDS[token.text]


def _list(tokens: Tokens) -> list[Any]:
    tokens.expect("[")
    items: list[Any] = []
    while not tokens.accept("]"):
        if items:
            tokens.expect(",")
        items.append(_value(tokens))
    return items


def _map(tokens: Tokens) -> dict[str, Any]:
    tokens.expect("{")
    entries: dict[str, Any] = {}
    while not tokens.accept("}"):
        if entries:
            tokens.expect(",")
        key = tokens.name()
        tokens.expect(":")
        entries[key] = _value(tokens)
    return entries


def _properties(tokens: Tokens) -> dict[str, Any]:
    return _map(tokens) if tokens.peek() == "{" else {}


def _node(tokens: Tokens) -> NodeCell:
    tokens.expect("(")
    labels = set()
    while tokens.accept(":"):
        labels.add(tokens.name())
    properties = _properties(tokens)
    tokens.expect(")")
    return NodeCell(frozenset(labels), properties)


def _relationship(tokens: Tokens) -> RelCell:
    tokens.expect("[")
    tokens.expect(":")
    rel_type = tokens.name()
    properties = _properties(tokens)
    tokens.expect("]")
    return RelCell(rel_type, properties)


def _path(tokens: Tokens) -> PathCell:
    tokens.expect("<")
    start = _node(tokens)
    steps = []
    while not tokens.accept(">"):
        backward = tokens.accept("<-")
        if not backward:
            tokens.expect("-")
        rel = _relationship(tokens)
        tokens.expect("-" if backward else "->")
        steps.append((not backward, rel, _node(tokens)))
    return PathCell(start, tuple(steps))


# Comparison.


def form(value: Any, *, in_list_order: bool = True) -> Any:  # noqa: PLR0911 - one for each kind of value
    """What two values have in common exactly if the kit takes them for equal: hashable, of a cell and of an answer alike.

    Integers and floats differ; 0.0 is equal to -0.0, and NaN to NaN.

    Args:
        value: Of a cell, or of a row that the engine answered.
        in_list_order: Whether lists of the same items in another order differ.
    """

    def of(inner: Any) -> Any:
        return form(inner, in_list_order=in_list_order)

    def properties(inner: Mapping[str, Any]) -> Any:
        return tuple(sorted((key, of(item)) for key, item in inner.items() if item is not None))

    match value:
        case None | bool() | int() | str():
            return type(value).__name__, value
        case float():
            return "float", repr(value + 0.0)  # which leaves no -0.0
        case list() | tuple():
            items = [of(item) for item in value]
            return "list", tuple(items if in_list_order else sorted(items, key=repr))
        case dict():
            return "map", tuple(sorted((key, of(item)) for key, item in value.items()))
        case NodeCell() | GraphNode():
            return "node", tuple(sorted(value.labels)), properties(value.properties)
        case RelCell() | GraphEdge():
            return "relationship", value.rel_type, properties(value.properties)
        case PathCell():
            return "path", of(value.start), tuple((forward, of(rel), of(node)) for forward, rel, node in value.steps)
        case Path():
            steps = zip(value.nodes, value.rels, value.nodes[1:], strict=False)
            return "path", of(value.nodes[0]), tuple((rel.src == near.node_id, of(rel), of(far)) for near, rel, far in steps)
        case _:
            # Temporal values are written as strings.
            return "str", str(value)


Rows = Iterable[Sequence[Any]]


def difference(expected: Rows, answered: Rows, *, ordered: bool, ignore_list_order: bool) -> str | None:
    """What sets two lists of rows apart, in a few words; None if nothing does."""
    wanted, got = ([tuple(form(v, in_list_order=not ignore_list_order) for v in row) for row in rows] for rows in (expected, answered))
    missing, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    if missing or extra:
        told = [f"{rows.total()} {what}, such as {next(iter(rows))}" for what, rows in (("missing", missing), ("extra", extra)) if rows]
        return f"of {len(wanted)} rows " + "; ".join(told)
    if ordered and wanted != got:
        at = next(n for n, (one, other) in enumerate(zip(wanted, got, strict=True)) if one != other)
        return f"the rows are in another order from row {at + 1} on: {got[at]} where {wanted[at]} is wanted"
    return None
