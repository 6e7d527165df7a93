"""The names that a piece of a query can use."""

from __future__ import annotations

from collections.abc import Mapping

from pulse_kg.cypher.ast import Span
from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.kinds import Kind


class Scope:
    """Names in the order in which they came, and the kind of each.

    Attributes:
        names: Name → kind. Names that begin with a NUL are the compiler's own, and no query can spell them.
        used: Which of the names were asked for, but for those that an expression itself brought in.
    """

    def __init__(
        self, names: Mapping[str, Kind] | None = None, *, used: set[str] | None = None, inner: frozenset[str] = frozenset()
    ) -> None:
        self.names = dict(names or {})
        self.used: set[str] = set() if used is None else used
        self._inner = inner

    def look_up(self, name: str, span: Span) -> Kind:
        """The kind of a name.

        Raises:
            Fault: It is not in scope.
        """
        kind = self.names.get(name)
        if kind is None:
            from difflib import get_close_matches

            near = get_close_matches(name, self.visible(), 1)
            hint = (
                f"Did you mean '{near[0]}'?" if near else "Names come from MATCH, UNWIND, WITH and CALL; WITH passes on only what it lists."
            )
            raise Fault("UndefinedVariable", f"There is no variable '{name}' here.", span, hint=hint)
        if name not in self._inner:
            self.used.add(name)
        return kind

    def with_inner(self, names: Mapping[str, Kind]) -> Scope:
        """The scope inside a comprehension or the like, where these names hide others of the same spelling."""
        return Scope({**self.names, **names}, used=self.used, inner=self._inner | frozenset(names))

    def visible(self) -> list[str]:
        """The names that a query can spell, sorted."""
        return sorted(name for name in self.names if not name.startswith("\0"))
