"""What a run may use: time, elements, rows, requests, trails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pulse_kg.errors import QueryTimeout, ResourceExhausted

TICKS: Final = 1_024
"""So many steps go between two looks at the clock."""


@dataclass(frozen=True)
class Limits:
    """The bounds of one run.

    Attributes:
        seconds: Of wall-clock time.
        steps: Rows and trails that are gone through, and items of lists that are made.
        elements: Nodes and edges that are fetched.
        characters: Of the texts that they have.
        held_rows: Rows that have to be held at once, for an order, a group, or the distinct ones.
        requests: Reads of the store.
    """

    seconds: float = 25.0
    steps: int = 5_000_000
    elements: int = 300_000
    characters: int = 128_000_000
    held_rows: int = 200_000
    requests: int = 500


_HINTS: Final = {
    "steps": "Narrow the query: name labels and types, shorten paths, begin at a node.",
    "characters": "Ask for fewer texts: name properties instead of whole nodes, and a label.",
    "elements": "Narrow the query: name a label, a relationship type, or a node to begin at.",
    "held_rows": "Filter before you sort or group, or add a LIMIT.",
    "requests": "Begin at fewer nodes, or shorten the paths.",
}


class Budget:
    """Counts what a run uses.

    Args:
        monotonic: Seconds of a clock that never goes back.
        limits: The bounds.
    """

    def __init__(self, monotonic: Callable[[], float], limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.steps = self.elements = self.characters = self.held_rows = self.requests = 0
        self._monotonic = monotonic
        self._began = monotonic()
        self._look_at = TICKS

    def seconds_left(self) -> float:
        """Until the time is up; 0 or more."""
        return max(0.0, self.limits.seconds - (self._monotonic() - self._began))

    def spend(self, steps: int = 1) -> None:
        """Counts steps.

        Raises:
            ResourceExhausted: There were too many.
            QueryTimeout: The time is up.
        """
        self.steps += steps
        if self.steps >= self._look_at:
            if self.steps > self.limits.steps:
                raise _exhausted("steps", self.limits.steps)
            self.check_time()
            self._look_at = self.steps + TICKS

    def fetch(self, elements: int, characters: int = 0) -> None:
        """Counts nodes and edges that came, and the characters of their texts; errors as `spend`."""
        self.elements += elements
        self.characters += characters
        if self.characters > self.limits.characters:
            raise _exhausted("characters", self.limits.characters)
        if self.elements > self.limits.elements:
            raise _exhausted("elements", self.limits.elements)

    def hold(self, rows: int = 1) -> None:
        """Counts rows that are held; errors as `spend`."""
        self.held_rows += rows
        if self.held_rows > self.limits.held_rows:
            raise _exhausted("held_rows", self.limits.held_rows)

    def release(self, rows: int) -> None:
        """Gives rows back that are held no more."""
        self.held_rows -= rows

    def request(self) -> None:
        """Counts a read of the store, before it is made; errors as `spend`."""
        self.requests += 1
        if self.requests > self.limits.requests:
            raise _exhausted("requests", self.limits.requests)
        self.check_time()

    def check_time(self) -> None:
        """Looks at the clock.

        Raises:
            QueryTimeout: The time is up.
        """
        if self.seconds_left() <= 0:
            raise QueryTimeout(
                f"The query ran for {self.limits.seconds:g} seconds and was stopped. {_HINTS['steps']}",
                {"seconds": self.limits.seconds},
            )


_WHAT: Final = {
    "steps": "steps",
    "elements": "nodes and edges to fetch",
    "characters": "characters of text to fetch",
    "held_rows": "rows to hold at once",
    "requests": "reads of the store",
}


def _exhausted(budget: str, limit: int) -> ResourceExhausted:
    return ResourceExhausted(f"The query needs more than {limit:,} {_WHAT[budget]}. {_HINTS[budget]}", {"budget": budget, "limit": limit})
