"""Whether a proposal was right, by what the documents' own headers say of each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pulse_kg.cli.peps import Document

Verdict = Literal["right", "wrong"]
CHANGES: Final = ("SUPERSEDE", "UPDATE", "NOOP")
"""The hints that touch an existing node."""


@dataclass(frozen=True)
class Proposed:
    """What was proposed for a document, when only earlier ones were on the board.

    Attributes:
        document: Its number.
        hint: ADD, UPDATE, SUPERSEDE or NOOP.
        rule: The rule that fired, 1..6.
        target: The number of the document that the proposal names.
        score: The similarity to it.
    """

    document: int
    hint: str
    rule: int
    target: int | None = None
    score: float | None = None

    @property
    def note(self) -> bool:
        """Whether it is an ADD that names a possible duplicate."""
        return self.hint == "ADD" and self.target is not None


class Headers:
    """Which document supersedes which, as either of the two says it."""

    def __init__(self, documents: Iterable[Document]) -> None:
        said = list(documents)
        self._pairs = {(d.pep, old) for d in said for old in d.replaces} | {(new, d.pep) for d in said for new in d.superseded_by}

    def supersedes(self, new: int, old: int) -> bool:
        """Whether a header says that `new` supersedes `old`."""
        return (new, old) in self._pairs

    def predecessors(self, new: int) -> frozenset[int]:
        """What `new` supersedes."""
        return frozenset(old for newer, old in self._pairs if newer == new)

    def verdict(self, proposed: Proposed) -> Verdict:
        """Right where the headers tie the document to the target in the direction of the proposal.

        A SUPERSEDE is right if the document supersedes the target. UPDATE and NOOP say that both are one statement, which two
        documents hardly ever are; they count as right where one of the two supersedes the other, in either direction.
        """
        if proposed.target is None:
            return "wrong"
        forward = self.supersedes(proposed.document, proposed.target)
        backward = proposed.hint != "SUPERSEDE" and self.supersedes(proposed.target, proposed.document)
        return "right" if forward or backward else "wrong"


@dataclass(frozen=True)
class Tally:
    """Right and wrong ones of a kind."""

    right: int
    wrong: int

    @property
    def precision(self) -> float | None:
        """The share of right ones; None where there are none at all."""
        count = self.right + self.wrong
        return round(self.right / count, 3) if count else None

    def as_dict(self) -> dict[str, Any]:
        """The tally as JSON."""
        return {"right": self.right, "wrong": self.wrong, "precision": self.precision}


def tally(proposals: Iterable[Proposed], headers: Headers) -> Tally:
    """Judges proposals."""
    verdicts = [headers.verdict(p) for p in proposals]
    return Tally(verdicts.count("right"), verdicts.count("wrong"))


def changes(proposals: Iterable[Proposed]) -> list[Proposed]:
    """The proposals that touch an existing node, in the order of their hints, then as they came."""
    return sorted((p for p in proposals if p.hint in CHANGES), key=lambda p: CHANGES.index(p.hint))


def by_similarity_alone(proposals: Iterable[Proposed], threshold: float) -> list[Proposed]:
    """What one would get who took every nearest document of that similarity for superseded."""
    near = (p for p in proposals if p.target is not None and p.score is not None and p.score >= threshold)
    return [Proposed(p.document, "SUPERSEDE", 0, p.target, p.score) for p in near]


@dataclass(frozen=True)
class Recall:
    """How many of the documents that supersede an earlier one were shown it.

    Attributes:
        found: Those whose proposal named a predecessor.
        of: Those that have one before them in the order.
    """

    found: int
    of: int

    @property
    def share(self) -> float | None:
        """0..1; None where there was nothing to find."""
        return round(self.found / self.of, 3) if self.of else None

    def as_dict(self) -> dict[str, Any]:
        """The recall as JSON."""
        return {"found": self.found, "of": self.of, "share": self.share}


def recall(proposals: Iterable[Proposed], headers: Headers, place: Mapping[int, int]) -> Recall:
    """The recall of all that name a target, whatever their hint.

    Args:
        proposals: One for each document.
        headers: What is true.
        place: Number of a document → its place in the order in which they came.
    """
    found = of = 0
    for p in proposals:
        earlier = {old for old in headers.predecessors(p.document) if old in place and place[old] < place[p.document]}
        if earlier:
            of += 1
            found += p.target in earlier
    return Recall(found, of)
