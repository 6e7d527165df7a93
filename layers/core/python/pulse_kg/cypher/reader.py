"""A cursor over the tokens of a query."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from pulse_kg.cypher.ast import Span
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.lexer import Token, tokens_of
from pulse_kg.cypher.limits import MAX_DEPTH
from pulse_kg.cypher.words import OF_OTHER_LANGUAGES, RESERVED

_CLOSING: Final = {")": "(", "]": "[", "}": "{"}


class Reader:
    """Reads tokens one after the other.

    Args:
        text: The query.

    Raises:
        Fault: The text holds something that is no token.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.closing = _closing_of(self.tokens)
        self.at = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def peek(self, ahead: int) -> Token:
        """A later token; the end token beyond the end."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Takes the next token."""
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def is_op(self, *ops: str) -> bool:
        """Whether the next token is one of these operators."""
        token = self.tokens[self.at]
        return token.kind == "op" and token.value in ops

    def is_word(self, *words: str) -> bool:
        """Whether the next token is one of these keywords, in whatever case."""
        return is_word(self.tokens[self.at], *words)

    def skip_op(self, *ops: str) -> Token | None:
        """Takes the next token if it is one of these operators."""
        return self.advance() if self.is_op(*ops) else None

    def skip_word(self, *words: str) -> Token | None:
        """Takes the next token if it is one of these keywords."""
        return self.advance() if self.is_word(*words) else None

    def expect_op(self, op: str, what: str = "") -> Token:
        """Takes this operator.

        Raises:
            Fault: Something else comes.
        """
        if not self.is_op(op):
            self.unexpected(f"'{op}'{what}")
        return self.advance()

    def expect_word(self, word: str) -> Token:
        """Takes this keyword.

        Raises:
            Fault: Something else comes.
        """
        if not self.is_word(word):
            self.unexpected(word)
        return self.advance()

    def name(self, what: str) -> str:
        """Takes a name of the query's own, which is no keyword unless it is in back-ticks.

        Raises:
            Fault: Something else comes.
        """
        token = self.token
        if token.kind == "name" and token.value.upper() in RESERVED:
            raise Fault(
                "UnexpectedSyntax",
                f"'{token.value}' is a keyword and can't be {what}: write it in back-ticks, as `{token.value}`.",
                token.span,
            )
        return self.any_name(what)

    def any_name(self, what: str) -> str:
        """Takes a name that may be spelt like a keyword: a label, a type, a property.

        Raises:
            Fault: Something else comes.
        """
        if self.token.kind not in {"name", "quoted"}:
            self.unexpected(what)
        return str(self.advance().value)

    def is_name(self) -> bool:
        """Whether a name of the query's own comes next."""
        token = self.tokens[self.at]
        return token.kind == "quoted" or (token.kind == "name" and token.value.upper() not in RESERVED)

    def deeper(self, by: int = 1) -> None:
        """Counts a level of nesting; `shallower` takes it back.

        Raises:
            Fault: There are too many.
        """
        self._depth += by
        if self._depth > MAX_DEPTH:
            raise Fault("NestingTooDeep", f"The query nests more than {MAX_DEPTH} levels deep: make it flatter.", self.token.span)

    def shallower(self, by: int = 1) -> None:
        """Takes a level back."""
        self._depth -= by

    def since(self, start: int) -> Span:
        """From a character to the end of the last token taken."""
        return Span(start, max(start, self.tokens[self.at - 1].end if self.at else start))

    def unexpected(self, wanted: str) -> NoReturn:
        """Refuses the next token.

        Raises:
            Fault: Always.
        """
        token = self.token
        found = "the query ends" if token.kind == "end" else f"'{self.text[token.start : min(token.end, token.start + 40)]}' stands"
        hint = OF_OTHER_LANGUAGES.get(token.value.upper()) if token.kind == "name" else None
        if self.is_op("=") and self.at and self.tokens[self.at - 1].value == "=":
            hint = "Write one '=' to compare."
        raise Fault("UnexpectedSyntax", f"{wanted[0].upper()}{wanted[1:]} is expected where {found}.", token.span, hint=hint)


def is_word(token: Token, *words: str) -> bool:
    """Whether a token is one of these keywords, in whatever case; never one in back-ticks."""
    return token.kind == "name" and token.value.upper() in words


def _closing_of(tokens: list[Token]) -> dict[int, int]:
    """Index of an opening bracket → index of the one that closes it, where there is one."""
    closing: dict[int, int] = {}
    opened: list[tuple[Any, int]] = []
    for index, token in enumerate(tokens):
        if token.kind != "op":
            continue
        if token.value in {"(", "[", "{"}:
            opened.append((token.value, index))
        elif token.value in _CLOSING:
            if not opened or opened[-1][0] != _CLOSING[token.value]:
                break
            closing[opened.pop()[1]] = index
    return closing
