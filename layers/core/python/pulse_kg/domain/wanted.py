"""Which nodes are wanted by their words and their time: the test that every store applies to what its own search left over."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Node
from pulse_kg.domain.text import fold


@dataclass(frozen=True)
class Wanted:
    """A node whose folded title contains the phrase or so many of the words, in a span of time.

    Attributes:
        phrase: Folded; an empty one is contained in nothing.
        words: Folded; an empty one is none.
        at_least: How many of the words, 1 or more.
        bodies: Whether words may also be in the folded body and, for a Learning, its area.
        since: Only nodes of this time or later.
        until: Only nodes before this time.
    """

    phrase: str
    words: Collection[str]
    at_least: int
    bodies: bool = False
    since: Instant | None = None
    until: Instant | None = None

    @property
    def distinct(self) -> list[str]:
        """The words, each once, long ones first, for they are in the fewest texts."""
        return sorted(set(self.words) - {""}, key=lambda word: (-len(word), word))

    @property
    def telling(self) -> list[str]:
        """Words of which a text with enough of the words has at least one, for the rest are too few; none where no text has enough."""
        distinct = self.distinct
        return distinct[: max(0, len(distinct) - self.at_least + 1)]

    @property
    def possible(self) -> bool:
        """Whether any text could fit."""
        return bool(self.phrase or self.telling)

    def fits(self, node: Node) -> bool:
        """Whether this node is wanted."""
        return self._in_time(node) and self._worded(node)

    def _worded(self, node: Node) -> bool:
        title = fold(node.title)
        if self.phrase and self.phrase in title:
            return True
        texts = [title]
        if self.bodies:
            area = node.attributes.get("area") if node.node_type == "Learning" else None
            texts += [fold(node.body), fold(area) if isinstance(area, str) else ""]
        return sum(any(word in text for text in texts) for word in set(self.words) - {""}) >= self.at_least

    def _in_time(self, node: Node) -> bool:
        if self.since is None and self.until is None:
            return True
        return (self.since is None or node.happened_at >= self.since) and (self.until is None or node.happened_at < self.until)
