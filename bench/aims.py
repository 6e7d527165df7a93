"""What the project aims at, beside what was measured. An aim is shown as met or missed; nothing fails by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from bench.cypher_questions import ANCHORED, FLAT, LOADING_MS, PARSING_MS
from bench.read_questions import AIMED_AT, LIMITS, QUESTIONS, ROUND_TRIPS


@dataclass(frozen=True)
class Aim:
    """A bound on a figure.

    Attributes:
        what: For a reader.
        path: Where the figure is in the report's parts, by keys.
        bound: What it may be at most, or must be at least.
        limit: Which of the two.
        unit: Of both.
    """

    what: str
    path: tuple[str, ...]
    bound: float
    limit: Literal["most", "least"]
    unit: str

    def judged(self, parts: Mapping[str, Any]) -> dict[str, Any] | None:
        """The aim with its figure; None where that was not measured."""
        found: Any = parts
        for key in self.path:
            if not isinstance(found, Mapping) or key not in found:
                return None
            found = found[key]
        if found is None:
            return None
        met = found <= self.bound if self.limit == "most" else found >= self.bound
        return {
            "what": self.what,
            "aim": f"{'≤' if self.limit == 'most' else '≥'} {self.bound:g} {self.unit}".strip(),
            "is": found,
            "met": met,
        }


_BOARDS: Final = ("100", "1000", "10000")
_KINDS: Final = (("short_", " short"), ("", ""))

AIMS: Final = (
    *(
        Aim(f"a session of 10{what}, board of {n}, p50", ("sessions", f"10_{kind}candidates", n, "total_ms", "p50"), 80, "most", "ms")
        for kind, what in _KINDS
        for n in _BOARDS
    ),
    *(
        Aim(f"sessions of 50{what}, board of {n}", ("sessions", f"50_{kind}candidates", n, "nodes_per_second"), 150, "least", "nodes/s")
        for kind, what in _KINDS
        for n in _BOARDS
    ),
    *(
        Aim(f"flat: a session of 10{what}, largest board / smallest", ("sessions", "flatness", f"10_{kind}candidates"), 1.25, "most", "×")
        for kind, what in _KINDS
    ),
    Aim("pulse-kg call, start to answer, p50", ("start", "call_ms", "p50"), 350, "most", "ms"),
    Aim("round trips of a commit of 10, served", ("commits", "10_candidates", "round_trips"), 8, "most", ""),
    *(
        Aim(f"{q.name}, {AIMED_AT:,} nodes, p50", ("embedded", str(AIMED_AT), q.name, "ms", "p50"), LIMITS[q.kind], "most", "ms")
        for q in QUESTIONS
    ),
    *(
        Aim(f"round trips of {q.name}, served", ("served", str(AIMED_AT), q.name, "round_trips", "most"), ROUND_TRIPS, "most", "")
        for q in QUESTIONS
    ),
    Aim("parse a query, p50", ("engine", "parse_ms", "p50"), PARSING_MS, "most", "ms"),
    Aim("import the query engine, processor, p50", ("engine", "import_processor_ms", "p50"), LOADING_MS, "most", "ms"),
    *(Aim(f"flat: {name}, ten times the nodes", ("embedded", "flat", name), FLAT, "most", "×") for name in ANCHORED),
)


def judged(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The aims whose figures were measured."""
    return [found for aim in AIMS if (found := aim.judged(parts)) is not None]
