"""Vectors side by side in memory, and the exact search over them. The only module of the store that imports numpy."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pulse_kg.domain.instants import Instant
from pulse_kg.ports.vectors import Hit

Floats = npt.NDArray[np.float32]
States = npt.NDArray[np.int8]
Times = npt.NDArray[np.int64]
Change = tuple[str, int, Instant | None, int, bytes]
"""Node id, 1 for live, the node's time if it is known, commit_seq, vector."""

GONE, SUPERSEDED, LIVE = 0, 1, 2
NO_TIME = int(np.iinfo(np.int64).min)
"""The time of a row that no span of time has."""

_DIGITS = 4
_NEAR = 1.1e-4  # scores that round to one number differ by less than 1e-4; the rest is for float32's errors
_SPARSE = 4  # with fewer wanted rows than one in so many, they are gathered before the product
_BYTES_OF_AN_ID = 120  # the text, its place in the list and in the dictionary


@dataclass(frozen=True)
class Rows:
    """Vectors of one board and type, as one search sees them.

    Later versions share the arrays of vectors and ids and write only behind `count`, so that a search is never disturbed.

    Attributes:
        seq: The last commit that is in it.
        count: How many rows are used.
        vectors: (capacity, dimension), little-endian float32.
        states: GONE, SUPERSEDED or LIVE, for each row; never changed.
        times: The time of each row's node, epoch milliseconds; never changed.
        ids: Node ids.
    """

    seq: int
    count: int
    vectors: Floats
    states: States
    times: Times
    ids: list[str]

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self.vectors.nbytes + self.states.nbytes + self.times.nbytes + _BYTES_OF_AN_ID * self.count


@dataclass
class Kept:
    """The newest rows of one board and type, and what brings them up to date.

    Attributes:
        lock: Held by who updates.
        rows: None before the first load.
        places: Node id → its row.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: Rows | None = None
    places: dict[str, int] = field(default_factory=dict)

    def update(self, changes: Sequence[Change]) -> None:
        """Takes in changes, oldest first; a changed vector gets a new row, and its old one is GONE."""
        if changes:
            earlier, self.rows = self.rows, None
            self.rows = self._taking(earlier, changes)

    def _taking(self, earlier: Rows | None, changes: Sequence[Change]) -> Rows:
        if earlier is None:  # nothing was loaded yet, or an update broke off in the middle
            self.places = {}
        fresh = _matrix([vector for *_, vector in changes])
        rows = self._with_room(earlier, *fresh.shape)
        states, times, count = rows.states.copy(), rows.times.copy(), rows.count
        for (node_id, live, at, _, vector), row in zip(changes, fresh, strict=True):
            state, place = (LIVE if live else SUPERSEDED), self.places.get(node_id)
            if place is not None:
                if rows.vectors[place].tobytes() == vector:
                    states[place], times[place] = state, _time(at)
                    continue
                states[place] = GONE
            rows.vectors[count] = row
            states[count], times[count] = state, _time(at)
            rows.ids.append(node_id)
            self.places[node_id] = count
            count += 1
        return Rows(max(rows.seq, changes[-1][3]), count, rows.vectors, states, times, rows.ids)

    def _with_room(self, rows: Rows | None, more: int, dimension: int) -> Rows:
        if rows is not None and rows.count + more <= len(rows.states):
            return rows
        if rows is None:
            capacity = more + more // 8 + 16
            return Rows(0, 0, np.empty((capacity, dimension), "<f4"), np.zeros(capacity, np.int8), np.full(capacity, NO_TIME), [])
        kept = np.flatnonzero(rows.states[: rows.count] != GONE)
        capacity = 2 * (len(kept) + more)
        vectors, states, times = np.empty((capacity, dimension), "<f4"), np.zeros(capacity, np.int8), np.full(capacity, NO_TIME)
        vectors[: len(kept)] = rows.vectors[kept]
        states[: len(kept)], times[: len(kept)] = rows.states[kept], rows.times[kept]
        node_ids = [rows.ids[place] for place in kept]
        self.places = {node_id: place for place, node_id in enumerate(node_ids)}
        return Rows(rows.seq, len(kept), vectors, states, times, node_ids)


def loaded(changes: Sequence[Change]) -> Rows:
    """Rows of their own for a search that nothing is kept of."""
    vectors = _matrix([vector for *_, vector in changes])
    states = np.array([LIVE if live else SUPERSEDED for _, live, *_ in changes], np.int8)
    times = np.array([_time(at) for _, _, at, *_ in changes], np.int64)
    return Rows(0, len(changes), vectors, states, times, [node_id for node_id, *_ in changes])


def nearest(rows: Rows, queries: Sequence[bytes], *, limit: int, live_only: bool) -> list[list[Hit]]:
    """The best `limit` of the rows for each query: float32 for all finds who may be among them, float64 decides."""
    states, vectors = rows.states[: rows.count], rows.vectors[: rows.count]
    wanted = np.flatnonzero(states == LIVE if live_only else states != GONE)
    if limit < 1 or not len(wanted):
        return [[] for _ in queries]
    matrix = _matrix(queries)
    sparse = len(wanted) * _SPARSE < rows.count
    scores = np.ascontiguousarray((vectors[wanted] @ matrix.T if sparse else (vectors @ matrix.T)[wanted]).T)
    return [_best(rows, wanted[_shortlist(own, limit)], query, limit) for own, query in zip(scores, matrix, strict=True)]


def best_of(
    rows: Rows,
    query: bytes,
    *,
    limit: int,
    at_least: float,
    live_only: bool,
    since: Instant | None = None,
    until: Instant | None = None,
) -> list[Hit]:
    """All of the rows that may be among the best `limit` and have that score, in any order: a part of a search over several.

    Args:
        rows: The rows.
        query: Little-endian float32, norm 1.
        limit: 1 or more.
        at_least: The rounded score that is needed, 0..1.
        live_only: Whether superseded nodes are left out.
        since: Only nodes of this time or later; a node whose time is not known is in no span.
        until: Only nodes before this time.
    """
    states, vectors = rows.states[: rows.count], rows.vectors[: rows.count]
    fit = states == LIVE if live_only else states != GONE
    if since is not None or until is not None:
        times = rows.times[: rows.count]
        fit &= times > NO_TIME if since is None else times >= since
        if until is not None:
            fit &= times < until
    wanted = np.flatnonzero(fit)
    if not len(wanted):
        return []
    (one,) = _matrix([query])
    scores = vectors[wanted] @ one if len(wanted) * _SPARSE < rows.count else (vectors @ one)[wanted]
    near = np.flatnonzero(scores >= at_least - _NEAR) if at_least > 0 else np.arange(len(scores))
    wanted, scores = wanted[near], scores[near]
    return [hit for hit in _best(rows, wanted[_shortlist(scores, limit)], one, limit) if hit.score >= at_least]


def ordered(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """The best of the hits in the port's order."""
    return sorted(hits, key=lambda h: (-h.score, not h.live, h.node_id))[:limit]


def cosines(vectors: Sequence[bytes], query: bytes) -> list[float]:
    """The score of each vector, as in `Hit`."""
    return _scores(_matrix(vectors), np.frombuffer(query, "<f4"))


def _time(at: Instant | None) -> Instant:
    return NO_TIME if at is None else at


def _matrix(vectors: Sequence[bytes]) -> Floats:
    return np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)


def _shortlist(scores: Floats, limit: int) -> npt.NDArray[np.intp]:
    """The places of all that may have one of the best `limit` rounded scores."""
    if len(scores) > limit:
        floor = min(float(np.partition(scores, len(scores) - limit)[len(scores) - limit]), 1.0) - _NEAR
        if floor > 0:  # below it all scores are clamped to one
            return np.flatnonzero(scores >= floor)
    return np.arange(len(scores))


def _best(rows: Rows, places: npt.NDArray[np.intp], query: Floats, limit: int) -> list[Hit]:
    scores = _scores(rows.vectors[places], query)
    live = (rows.states[places] == LIVE).tolist()
    return ordered([Hit(rows.ids[p], s, v) for p, s, v in zip(places.tolist(), scores, live, strict=True)], limit)


def _scores(vectors: Floats, query: Floats) -> list[float]:
    # Products of float32 are exact in float64, and a row's sum does not depend on the rows beside it, as a matrix product's does.
    exact = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return [round(min(max(0.0, score), 1.0), _DIGITS) for score in exact.tolist()]
