"""Text → tokens, in one pass and in time linear in the text's length."""

from __future__ import annotations

import re
import sys
from typing import Any, Final, Literal

from pulse_kg.cypher.ast import Span
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.limits import MAX_BYTES, MAX_TOKENS
from pulse_kg.domain.records import record

_MAX_INTEGER: Final = 2**63  # one more than the largest, for the minus of the smallest is a token of its own

_SURROGATES: Final = (0xD800, 0xDFFF)

TokenKind = Literal["name", "quoted", "integer", "float", "string", "parameter", "op", "end"]


@record
class Token:
    """A token.

    Attributes:
        kind: What it is; "quoted" is a name in back-ticks, which is never a keyword.
        value: The name, number, string, parameter's name or operator.
        start: Its first character.
        end: One beyond its last.
    """

    kind: TokenKind
    value: Any
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Its place."""
        return Span(self.start, self.end)


_OPERATORS: Final = ("<>", "<=", ">=", "=~", "..", *"()[]{},.:|;=<>+-*/%^$")
_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|//[^\n\r]*)
    | (?P<comment>/\*)
    | (?P<name>[^\W\d]\w*)
    | (?P<quote>`)
    | (?P<based>0[xXoO]\w*)
    | (?P<float>(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|(?<!\.)\.[0-9]+(?:[eE][+-]?[0-9]+)?)(?!\w))
    | (?P<integer>[0-9]+(?!\w))
    | (?P<number>\.?[0-9]\w*)
    | (?P<string>['"])
    | (?P<parameter>\$(?:[^\W\d]\w*|[0-9]+))
    | (?P<op>"""
    + "|".join(re.escape(op) for op in _OPERATORS)
    + ")",
    re.VERBOSE,
)
_STRING_PART: Final = {quote: re.compile(rf"[^{quote}\\]+") for quote in "'\""}
_ESCAPES: Final = {"\\": "\\", "'": "'", '"': '"', "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, with an end token.

    Raises:
        Fault: The text is too long, or something in it is no token.
    """
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise Fault("QueryTooLong", f"The query is longer than {MAX_BYTES} bytes: make it shorter, and give long values as parameters.")
    tokens, at, size = [], 0, len(text)
    while at < size:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _no_token(text, at)
        kind, start, at = str(found.lastgroup), at, found.end()
        if kind == "space":
            continue
        if kind == "comment":
            at = _after_comment(text, start)
            continue
        token = _token(kind, text, start, at)
        at = token.end
        tokens.append(token)
        if len(tokens) > MAX_TOKENS:
            raise Fault("QueryTooLong", f"The query has more than {MAX_TOKENS} words and signs: make it shorter.", token.span)
    tokens.append(Token("end", None, size, size))
    return tokens


def _token(kind: str, text: str, start: int, end: int) -> Token:
    piece = text[start:end]
    match kind:
        case "name":
            return Token("name", piece, start, end)
        case "op":
            return _operator(piece, text, start, end)
        case "parameter":
            return Token("parameter", piece[1:], start, end)
        case "float":
            return Token("float", _float(piece, Span(start, end)), start, end)
        case "string":
            return _string(text, start)
        case "quote":
            return _quoted(text, start, start, "quoted")
        case _:
            return Token("integer", _integer(piece, Span(start, end)), start, end)


def _operator(piece: str, text: str, start: int, end: int) -> Token:
    if piece == "$":
        if text[end : end + 1] == "`":
            return _quoted(text, start, end, "parameter")
        raise Fault("UnexpectedSyntax", "A parameter's name must follow the '$'.", Span(start, end))
    return Token("op", piece, start, end)


_MOST_DIGITS: Final = 64


def _integer(piece: str, span: Span) -> int:
    base = {"x": 16, "o": 8}.get(piece[1:2].lower())
    digits = piece if base is None else piece[2:]
    try:
        value = int(digits, base or 10) if digits.isascii() and "_" not in digits and len(digits) <= _MOST_DIGITS else None
    except ValueError:
        value = None
    if value is None and digits.isdigit():
        value = _MAX_INTEGER + 1  # of so many digits that reading them would take long
    if value is None:
        raise Fault("InvalidNumberLiteral", f"'{piece[:40]}' is no number.", span)
    if value > _MAX_INTEGER:
        raise Fault("IntegerOverflow", f"'{piece[:40]}' does not fit into 64 bits.", span)
    return value


def _float(piece: str, span: Span) -> float:
    value = float(piece)
    if value == float("inf"):
        raise Fault("FloatingPointOverflow", f"'{piece[:40]}' is beyond the largest number.", span)
    return value


def _after_comment(text: str, start: int) -> int:
    end = text.find("*/", start + 2)
    if end < 0:
        raise Fault("UnexpectedSyntax", "This comment is never closed: '*/' is missing.", Span(start, start + 2))
    return end + 2


def _quoted(text: str, start: int, quote: int, kind: TokenKind) -> Token:
    """A name in back-ticks; two of them inside are one."""
    pieces, at = [], quote + 1
    while True:
        end = text.find("`", at)
        if end < 0:
            raise Fault("UnexpectedSyntax", "This name in back-ticks is never closed.", Span(start, quote + 1))
        pieces.append(text[at:end])
        if text[end + 1 : end + 2] != "`":
            break
        at = end + 2
    name = "`".join(pieces)
    if not name:
        raise Fault("UnexpectedSyntax", "A name in back-ticks must not be empty.", Span(start, end + 1))
    return Token(kind, name, start, end + 1)


def _string(text: str, start: int) -> Token:
    quote, pieces, at = text[start], [], start + 1
    plain = _STRING_PART[quote]
    while True:
        part = plain.match(text, at)
        if part is not None:
            pieces.append(part.group())
            at = part.end()
        if at >= len(text):
            raise Fault("UnexpectedSyntax", "This string is never closed.", Span(start, start + 1))
        if text[at] == quote:
            return Token("string", "".join(pieces), start, at + 1)
        piece, at = _escape(text, at)
        pieces.append(piece)


def _escape(text: str, at: int) -> tuple[str, int]:
    sign = text[at + 1 : at + 2]
    if sign in _ESCAPES and sign:
        return _ESCAPES[sign], at + 2
    digits = {"u": 4, "U": 8}.get(sign)
    if digits is None:
        raise Fault("UnexpectedSyntax", f"'\\{sign}' is no escape: a backslash itself is written '\\\\'.", Span(at, at + 2))
    code = text[at + 2 : at + 2 + digits]
    if len(code) < digits or not re.fullmatch("[0-9a-fA-F]+", code) or not _is_character(int(code, 16)):
        raise Fault(
            "InvalidUnicodeLiteral", f"After '\\{sign}' must come the {digits} hexadecimal digits of a character.", Span(at, at + 2)
        )
    return chr(int(code, 16)), at + 2 + digits


def _is_character(code: int) -> bool:
    return code <= sys.maxunicode and not _SURROGATES[0] <= code <= _SURROGATES[1]


def _no_token(text: str, at: int) -> Fault:
    sign = text[at]
    if sign == "!" and text[at + 1 : at + 2] == "=":
        return Fault("UnexpectedSyntax", "'!=' is no operator: write '<>'.", Span(at, at + 2))
    kind = "UnexpectedSyntax" if sign.isascii() else "InvalidUnicodeCharacter"
    return Fault(kind, f"The character '{sign if sign.isprintable() else f'U+{ord(sign):04X}'}' has no place here.", Span(at, at + 1))
