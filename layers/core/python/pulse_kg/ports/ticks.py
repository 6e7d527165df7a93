"""What the decay tick needs of the stores: all nodes of a board with what stands around them, and how far its run came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.model import Node
from pulse_kg.domain.plan import Surroundings


@dataclass(frozen=True)
class Standing:
    """A node and its edges at one moment.

    Attributes:
        node: The node.
        surroundings: Its degree and its incoming contradicts edges.
        seen: The last commit that wrote anything of the node; guards what is written on the strength of this read.
    """

    node: Node
    surroundings: Surroundings
    seen: int


@dataclass(frozen=True)
class Rescored:
    """What a tick writes of a node.

    Attributes:
        node_id: The node.
        seen: Of the `Standing` it was made from.
        relevance_score: 0..1.5.
        query_hits: All hits that are counted.
        last_queried_at: When the last of them was.
    """

    node_id: str
    seen: int
    relevance_score: float
    query_hits: int
    last_queried_at: Instant | None


class RelevanceStore(Protocol):
    """The relevance of all nodes, beside the commits.

    Atomicity: each node by itself.
    Idempotency: writing again changes nothing.
    Commits: never waited for longer than a write lasts, never refused, never overwritten: a node that a commit wrote since it was read
        stays as it is. Neither the node's version nor any commit's number changes.
    Tenancy: the board is mandatory in each call.
    Errors: StoreUnavailable (retryable).
    """

    def standings(self, board_id: str, *, after: str, at_a_time: int) -> Iterator[Sequence[Standing]]:
        """The nodes with ids above `after`, by id, so many at a time; each portion is read when it is asked for.

        Nodes of a commit that is not wholly applied, and nodes that were made since the first portion, may be left out: their commit
        computes them.
        """
        ...

    def rescore(self, board_id: str, rescored: Sequence[Rescored], *, at: Instant) -> int:
        """Writes what was computed for `at`; leaves nodes alone that were computed for a later time. Returns how many it wrote."""
        ...


@dataclass(frozen=True)
class TickPlace:
    """How far a run of the tick came.

    Attributes:
        board_id: The board that it was at; those before it, by id, are done.
        at: For which time it computes there.
        after: The last node that is done there, by id; empty before the first.
    """

    board_id: str
    at: Instant
    after: str = ""


@dataclass(frozen=True)
class TakenRun:
    """A run that was taken, with the place where the one before it broke off; None where it came to its end."""

    place: TickPlace | None


class TickLog(Protocol):
    """Who runs the tick, and how far it came. There is one run at a time, of all boards.

    Atomicity: each method is one atomic change.
    Errors: StoreUnavailable (retryable).
    """

    def take(self, holder: str, *, now: Instant, until: Instant) -> TakenRun | None:
        """Takes the run until a time; None where another has it."""
        ...

    def keep(self, holder: str, place: TickPlace | None, *, until: Instant) -> bool:
        """Notes how far it came, None for the end, and takes it for longer; False, and nothing noted, where another took it meanwhile."""
        ...

    def release(self, holder: str) -> None:
        """Lets others take it at once; does nothing where another has it."""
        ...
