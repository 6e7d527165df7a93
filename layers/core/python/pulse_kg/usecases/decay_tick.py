"""The decay tick: writes counted hits into the nodes, and computes the relevance of all of them for one time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from pulse_kg.domain.instants import Instant
from pulse_kg.domain.relevance import Standing as Measures
from pulse_kg.domain.relevance import relevance
from pulse_kg.errors import PulseError, StoreUnavailable
from pulse_kg.ports.boards import BoardStore
from pulse_kg.ports.clock import Clock
from pulse_kg.ports.reading import HitCounter
from pulse_kg.ports.ticks import RelevanceStore, Rescored, Standing, TickLog, TickPlace

LEASE_MS: Final = 120_000
"""How long a run is kept for one that does not answer any more; each portion of nodes must be done within it."""
AT_A_TIME: Final = 500
"""Nodes of a portion."""

Hits = Mapping[str, tuple[int, Instant]]


@dataclass(frozen=True)
class TickPorts:
    """What a tick works with.

    Attributes:
        boards: Which boards there are.
        hits: What was counted.
        relevances: The nodes.
        log: Who runs, and how far it came.
        clock: The time.
    """

    boards: BoardStore
    hits: HitCounter
    relevances: RelevanceStore
    log: TickLog
    clock: Clock


@dataclass
class TickReport:
    """What a run did.

    Attributes:
        running: Another run is under way, and this one did nothing.
        boards: Boards that are done.
        nodes: Nodes that were written.
        hits: Hits that these nodes had not yet.
        failed: Board → code of what went wrong; the next run does it.
        left: Boards that the time did not reach, the one that it ended in among them.
    """

    running: bool = False
    boards: int = 0
    nodes: int = 0
    hits: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


class _Over(Exception):
    """The time is over, or another has the run."""


def decay_tick(ports: TickPorts, *, holder: str, seconds: float, board_id: str | None = None) -> TickReport:
    """One run, from where the last one broke off. May be started in several places at once: one of them runs.

    Every write is one that may be done again, so that a run that breaks off anywhere leaves nothing wrong.

    Args:
        ports: The ports.
        holder: Names this run and no other.
        seconds: How long it may take; it ends after the portion of nodes that it is at then.
        board_id: Only this board; what a run of all boards left is then left to the next of those.

    Raises:
        StoreUnavailable: The run can't be taken or noted, or the boards can't be listed.
    """
    now = ports.clock.now()
    taken = ports.log.take(holder, now=now, until=now + LEASE_MS)
    if taken is None:
        return TickReport(running=True)
    try:
        return _Run(ports, holder, ports.clock.monotonic() + seconds, taken.place, board_id).run()
    finally:
        with suppress(StoreUnavailable):  # it runs out by itself
            ports.log.release(holder)


def rescored(standing: Standing, hits: Hits, *, at: Instant) -> Rescored:
    """What a node's relevance is at a time, with the hits that were counted."""
    node = standing.node
    counted, last_at = hits.get(node.node_id, (0, None))
    times = [t for t in (node.last_queried_at, last_at) if t is not None]
    resolved = not node.live or node.revoked
    against = [] if resolved else [c.confidence for c in standing.surroundings.contradictions if not c.src_resolved]
    # A counter that lost what it knew must not take off what a node has.
    query_hits, last_queried_at = max(node.query_hits, counted), max(times, default=None)
    score = relevance(
        confidence=node.confidence,
        standing=Measures(standing.surroundings.degree, against),
        query_hits=query_hits,
        last_queried_at=last_queried_at,
        priority_boost=node.priority_boost,
        now=at,
    )
    return Rescored(node.node_id, standing.seen, score, query_hits, last_queried_at)


class _Run:
    def __init__(self, ports: TickPorts, holder: str, end: float, place: TickPlace | None, only: str | None) -> None:
        self._ports, self._holder, self._end, self._place, self._only = ports, holder, end, place, only
        self._report = TickReport()

    def run(self) -> TickReport:
        boards = self._boards()
        for number, board_id in enumerate(boards):
            try:
                self._board(board_id)
            except _Over:
                self._report.left = len(boards) - number
                return self._report
            except PulseError as error:  # one board's trouble is no reason to leave the others
                self._report.failed[board_id] = error.code
        if self._only is None:
            self._keep(None)
        return self._report

    def _boards(self) -> Sequence[str]:
        ids = [board.board_id for board in self._ports.boards.boards() if not board.erasing]
        if self._only is not None:
            return [board_id for board_id in ids if board_id == self._only]
        return ids if self._place is None else [board_id for board_id in ids if board_id >= self._place.board_id]

    def _board(self, board_id: str) -> None:
        self._check_time()
        board = self._ports.boards.board(board_id)
        if board is None or board.erasing:
            return
        place = TickPlace(board_id, max(self._ports.clock.now(), board.as_of))
        if self._only is None and self._place is not None and self._place.board_id == board_id:
            place = self._place
        hits = self._ports.hits.counted(board_id)
        for standings in self._ports.relevances.standings(board_id, after=place.after, at_a_time=AT_A_TIME):
            self._check_time()
            rows = [rescored(standing, hits, at=place.at) for standing in standings]
            self._report.nodes += self._ports.relevances.rescore(board_id, rows, at=place.at)
            self._report.hits += sum(r.query_hits - s.node.query_hits for r, s in zip(rows, standings, strict=True))
            if standings:
                place = replace(place, after=standings[-1].node.node_id)
            self._note(place)
        self._ports.boards.note_tick(board_id, place.at)
        self._report.boards += 1

    def _note(self, place: TickPlace) -> None:
        if not self._keep(place if self._only is None else self._place):
            raise _Over

    def _keep(self, place: TickPlace | None) -> bool:
        return self._ports.log.keep(self._holder, place, until=self._ports.clock.now() + LEASE_MS)

    def _check_time(self) -> None:
        if self._ports.clock.monotonic() >= self._end:
            raise _Over
