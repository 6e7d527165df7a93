"""What is wrong with a query, and where."""

from __future__ import annotations

from typing import Literal

from pulse_kg.cypher.ast import Span
from pulse_kg.errors import InvalidCypher, UnsafeCypher

Phase = Literal["compile", "run"]


class Fault(Exception):
    """A fault of a query, before it is told to a caller.

    Attributes:
        kind: In the words of the openCypher conformance kit, such as ``UndefinedVariable`` or ``InvalidArgumentType``.
        message: One sentence that says what is wrong and what would be right.
        span: Where; None where only a value is known.
        phase: Whether the text shows it, or only a run.
        unsafe: Whether the query would do more than read.
    """

    def __init__(
        self, kind: str, message: str, span: Span | None = None, *, phase: Phase = "compile", unsafe: bool = False, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.span = span
        self.phase: Phase = phase
        self.unsafe = unsafe
        self.hint = hint

    def at(self, span: Span) -> Fault:
        """The same fault with a place, if it has none yet."""
        if self.span is None:
            self.span = span
        return self

    def told(self, text: str) -> InvalidCypher | UnsafeCypher:
        """The refusal of the query of that text."""
        details: dict[str, object] = {"kind": self.kind, "phase": self.phase}
        where = ""
        if self.span is not None:
            line, column = position(text, self.span.start)
            details |= {"line": line, "column": column}
            where = f"Line {line}, column {column}: "
        if self.hint:
            details["hint"] = self.hint
        message = where + self.message + (f" {self.hint}" if self.hint else "")
        return (UnsafeCypher if self.unsafe else InvalidCypher)(message, details)


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def value_fault(kind: str, message: str) -> Fault:
    """A fault that a value showed while the query ran; its place is added by the expression that was evaluated."""
    return Fault(kind, message, phase="run")
