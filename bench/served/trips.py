"""Round trips to the stores: each counted where the driver sends it, with the tool and the step that wanted it.

A try that was refused or lost counts like any other. Handshakes of connections are left out: they are kept.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from bench.served.units import NOTHING, Meter, Used
from bench.stats import Summary
from pulse_kg.adapters.gremlin.connection import OpenLane
from pulse_kg.adapters.gremlin.lane import Sink

PUBLISH: Final = "publish"
"""The step that sends a commit's event, whatever of the journal it asks."""
AUTHENTICATE: Final = "authenticate"
"""What the check of a key is counted as."""
ACQUIRE: Final = "journal.acquire"
"""The step that takes a board."""

_LOCAL: Final = frozenset({"can_paginate", "get_paginator", "get_waiter", "close"})


@dataclass(frozen=True)
class Trip:
    """A request and its answer.

    Attributes:
        call: The tool's call that it was for; 0 outside of calls.
        tool: The tool's name, or `AUTHENTICATE`; empty outside of calls.
        step: The part of the store and its method, as in ``graph.survey``; or `PUBLISH`.
        store: `dynamodb`, `sqs`, `gremlin` or `opensearch`.
        operation: What the store calls it.
        started: By `time.perf_counter`.
        ms: Until the answer was read.
        refused: Whether it ended in an error, a condition that was not met included.
        used: What DynamoDB would charge, where that is reckoned.
    """

    call: int
    tool: str
    step: str
    store: str
    operation: str
    started: float
    ms: float
    refused: bool = False
    used: Used = NOTHING


@dataclass(frozen=True)
class Call:
    """A tool's call and how many milliseconds it took."""

    number: int
    tool: str
    ms: float


class Recorder:
    """Notes the calls and trips of all threads. A call and its step belong to the thread that makes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._trips: list[Trip] = []
        self._done: list[Call] = []
        self._numbers = count(1)
        self._call: ContextVar[tuple[int, str]] = ContextVar("call", default=(0, ""))
        self._step: ContextVar[str] = ContextVar("step", default="")

    @contextmanager
    def call(self, tool: str) -> Iterator[int]:
        """One call of a tool; yields its number."""
        number = next(self._numbers)
        token = self._call.set((number, tool))
        started = time.perf_counter()
        try:
            yield number
        finally:
            ms = (time.perf_counter() - started) * 1000
            self._call.reset(token)
            with self._lock:
                self._done.append(Call(number, tool, ms))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """What a call is at; a step inside another one is a part of that."""
        token = self._step.set(self._step.get() or name)
        try:
            yield
        finally:
            self._step.reset(token)

    @contextmanager
    def trip(self, store: str, operation: str) -> Iterator[_Reckoned]:
        """One request; what is yielded takes what it used."""
        reckoned = _Reckoned()
        started, refused = time.perf_counter(), True
        try:
            yield reckoned
            refused = False
        finally:
            until = reckoned.until or time.perf_counter()
            call, tool = self._call.get()
            trip = Trip(call, tool, self._step.get(), store, operation, started, (until - started) * 1000, refused, reckoned.used)
            with self._lock:
                self._trips.append(trip)

    def taken(self) -> tuple[list[Call], list[Trip]]:
        """The calls and trips since the last time, which are then forgotten."""
        with self._lock:
            taken = self._done, self._trips
            self._done, self._trips = [], []
        return taken


@dataclass
class _Reckoned:
    until: float | None = None
    used: Used = NOTHING


class CountedClient:
    """A client of botocore whose calls are noted. What it has beside methods is passed on.

    Args:
        client: The client.
        store: How its trips are named.
        recorder: Notes them.
        units: Whether what DynamoDB would charge is reckoned; then items are read before and after each write, uncounted.
    """

    def __init__(self, client: Any, store: str, recorder: Recorder, *, units: bool = False) -> None:
        self._client, self._store, self._recorder, self._units = client, store, recorder, units

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not inspect.ismethod(found) or name in _LOCAL:
            return found

        def counted(**parameters: Any) -> Any:
            meter = Meter(self._client, name, parameters) if self._units else None
            with self._recorder.trip(self._store, name) as trip:
                answer = None
                try:
                    answer = found(**parameters)
                finally:
                    trip.until = time.perf_counter()
                    trip.used = meter.used(answer) if meter else NOTHING
            return answer

        return counted


class CountedSearch:
    """The driver of OpenSearch, as far as `OpenSearchClient` uses it, with its requests noted."""

    def __init__(self, driver: Any, recorder: Recorder) -> None:
        self._driver, self._recorder = driver, recorder

    @property
    def transport(self) -> CountedSearch:
        """Itself."""
        return self

    def perform_request(self, method: str, path: str, **more: Any) -> Any:
        """Sends a request."""
        with self._recorder.trip("opensearch", f"{method} {path.rpartition('/')[2]}"):
            return self._driver.transport.perform_request(method, path, **more)

    def close(self) -> None:
        """Closes the driver."""
        self._driver.close()


class CountedLane:
    """A connection to the graph whose requests are noted."""

    def __init__(self, lane: OpenLane, recorder: Recorder) -> None:
        self._lane, self._recorder = lane, recorder

    def ask(self, bytecode: Any, into: Sink, *, timeout: float) -> None:
        """See `Lane.ask`."""
        with self._recorder.trip("gremlin", "traversal"):
            self._lane.ask(bytecode, into, timeout=timeout)

    def close(self) -> None:
        """See `Lane.close`."""
        self._lane.close()


class Labelled:
    """A part of the store whose methods are steps. What a method gives piece by piece is asked for outside of its step."""

    def __init__(self, part: Any, name: str, recorder: Recorder) -> None:
        self._part, self._name, self._recorder = part, name, recorder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not inspect.ismethod(found):
            return found

        def labelled(*arguments: Any, **more: Any) -> Any:
            with self._recorder.step(f"{self._name}.{name}"):
                return found(*arguments, **more)

        return labelled


@dataclass(frozen=True)
class StepFigures:
    """One step of a tool: of which store, how many trips a call (they must be the same in each, or it is the range), how long a trip."""

    step: str
    store: str
    operation: str
    trips: str
    ms: Summary


def by_step(trips: Sequence[Trip]) -> list[StepFigures]:
    """The trips of calls of one tool, by step, in the order in which the first call made them."""
    kinds: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    for trip in sorted(trips, key=lambda t: t.started):
        kinds.setdefault((trip.step, trip.store, trip.operation), defaultdict(list))[trip.call].append(trip.ms)
    calls = {trip.call for trip in trips}
    found = []
    for (step, store, operation), each in kinds.items():
        counts = [len(each.get(call, ())) for call in calls]
        found.append(StepFigures(step, store, operation, span(counts), Summary.of([ms for some in each.values() for ms in some])))
    return found


def span(counts: Sequence[int]) -> str:
    """Equal counts as one number, others as a range."""
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least}–{most}"


def per_call(trips: Sequence[Trip]) -> dict[int, Counter[str]]:
    """For each call how many trips to which store."""
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for trip in trips:
        found[trip.call][trip.store] += 1
    return dict(found)


@dataclass(frozen=True)
class LeaseWait:
    """How a call came to its board: tries of the lease, and milliseconds from the first of them to the one that got it."""

    tries: int
    ms: float


def lease_waits(trips: Sequence[Trip]) -> list[LeaseWait]:
    """One for each call that asked for a lease; the request that got it is no waiting."""
    asked: defaultdict[int, list[Trip]] = defaultdict(list)
    for trip in trips:
        if trip.step == ACQUIRE:
            asked[trip.call].append(trip)
    waits = []
    for some in asked.values():
        first, last = min(t.started for t in some), max(t.started for t in some)
        waits.append(LeaseWait(len(some), (last - first) * 1000))
    return waits
