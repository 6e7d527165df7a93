"""The connections of one process to a Gremlin server: opened at first use, shared by its threads, repaired and tried again."""

from __future__ import annotations

import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from pulse_kg.adapters.budget import seconds_left, time_budget
from pulse_kg.adapters.gremlin import errors
from pulse_kg.adapters.gremlin.errors import ConnectionLost, Fault, NotAllowed, NotReachable, ServerFault
from pulse_kg.adapters.gremlin.lane import Lane, Sink
from pulse_kg.adapters.gremlin.signing import signed, unsigned

LANES: Final = 4
"""Requests at once. The local server does one after another; more callers than lanes wait here instead of there."""

CONNECT_SECONDS: Final = 3.0
"""A server that takes longer to shake hands is taken for absent."""

IDLE_SECONDS: Final = 60.0
"""A connection that was idle for longer is not trusted: something on the way may have forgotten it without a word to either end."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0  # seconds, before the jitter

_S = TypeVar("_S", bound=Sink)


class OpenLane(Protocol):
    """What the connections ask of one of them; see `Lane`."""

    def ask(self, bytecode: Any, into: Sink, *, timeout: float) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


@dataclass(frozen=True)
class _Idle:
    lane: OpenLane
    since: float


def source() -> Any:
    """Where every traversal of this package starts; it holds no connection."""
    from gremlin_python.process.graph_traversal import GraphTraversalSource
    from gremlin_python.process.traversal import TraversalStrategies
    from gremlin_python.structure.graph import Graph

    return GraphTraversalSource(Graph(), TraversalStrategies())


class GremlinConnection:
    """Sends traversals, each a transaction of its own, within the time that the running call has left.

    Threads may share it. A request whose connection breaks goes once more over a new one, and one that met another
    transaction goes again after a pause: every request of this package changes nothing when it is done twice. Nothing is
    opened before the first request. Not to be carried over a fork, nor to be used inside a running event loop.

    Args:
        url: `ws://…` or `wss://…`.
        lanes: Requests at once.
        sign_region: The AWS region, where the server wants a signed handshake.
        randomness: Numbers from 0 to 1 that spread the pauses.
        sleep: Waits for some seconds.
        monotonic: Seconds that only go forward.
        open_lane: Opens a connection within some seconds.
    """

    def __init__(
        self,
        url: str,
        *,
        lanes: int = LANES,
        sign_region: str | None = None,
        randomness: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        open_lane: Callable[[float], OpenLane] | None = None,
    ) -> None:
        headers = unsigned if sign_region is None else signed(url, sign_region)
        self._open_lane = open_lane or (lambda timeout: Lane(url, headers(), timeout=timeout))
        self._randomness, self._sleep, self._monotonic = randomness, sleep, monotonic
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(lanes)
        self._idle: list[_Idle] = []
        self._closed = False
        # A process that ends without `close` would be told of each socket by aiohttp.
        self._finalizer = weakref.finalize(self, _close_all, self._idle)

    def submit(self, traversal: Any) -> list[Any]:
        """All results of a traversal, drained, so that what fails while it is committed is seen.

        Raises:
            StoreUnavailable: The server is away, slow or busy; or GraphRefused, which no repetition helps.
        """
        return self.submit_into(traversal, list[Any])

    def submit_into(self, traversal: Any, new_sink: Callable[[], _S]) -> _S:
        """Like `submit`, for many results: they go to a sink as they come, each try to one of its own.

        Raises:
            StoreUnavailable: As `submit`.
        """
        try:
            with time_budget(seconds_left()):  # without one around it, all tries together get the default
                return self._retried(traversal.bytecode, new_sink)
        except ServerFault as fault:
            raise errors.translate(fault) from fault

    def request(self, traversal: Any) -> list[Any]:
        """Like `submit`, once, for one who reads the server's refusal himself.

        Raises:
            ServerFault: The server refused.
            StoreUnavailable: As `submit`, but for refusals.
        """
        with time_budget(seconds_left()):
            return self._over_a_sound_lane(traversal.bytecode, list[Any])

    def ping(self) -> None:
        """Asks the server for nothing.

        Raises:
            StoreUnavailable: It does not answer.
        """
        self.submit(source().inject(1))

    def close(self) -> None:
        """Ends the idle connections, and each other one when its request is done; calling it again does nothing."""
        with self._lock:
            self._closed = True
        self._finalizer()

    def _retried(self, bytecode: Any, new_sink: Callable[[], _S]) -> _S:
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._over_a_sound_lane(bytecode, new_sink)
            except ServerFault as fault:
                wait = pause * (0.5 + self._randomness() / 2)
                if fault.fault not in {Fault.CONFLICT, Fault.MOVED} or wait >= seconds_left():
                    raise
            self._sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _over_a_sound_lane(self, bytecode: Any, new_sink: Callable[[], _S]) -> _S:
        """One more try, over a new connection, where the first one broke: it may have been closed while it was idle."""
        try:
            return self._ask(bytecode, new_sink())
        except ConnectionLost:
            self._drop_idle()  # what ended one of them, a restart or a failover, ended all of them
        except ServerFault as fault:
            if fault.fault is Fault.MOVED:
                self._drop_idle()
            raise
        try:
            return self._ask(bytecode, new_sink())
        except ConnectionLost as error:
            raise errors.unavailable() from error

    def _ask(self, bytecode: Any, sink: _S) -> _S:
        with self._lane() as lane:
            left = seconds_left()
            if left <= 0:
                raise errors.too_slow()
            try:
                lane.ask(bytecode, sink, timeout=left)
            except TimeoutError as error:
                raise errors.too_slow() from error
        return sink

    @contextmanager
    def _lane(self) -> Iterator[OpenLane]:
        if not self._room.acquire(timeout=seconds_left()):
            raise errors.busy()
        try:
            lane = self._take()
            sound = False
            try:
                yield lane
                sound = True
            except ServerFault as fault:
                sound = fault.fault is not Fault.MOVED
                raise
            finally:
                # In whatever other way a request ends, its answer may still come, and would be taken for that of the next one.
                if sound:
                    self._give_back(lane)
                else:
                    lane.close()
        finally:
            self._room.release()

    def _take(self) -> OpenLane:
        with self._lock:
            if self._closed:
                raise errors.closed()
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            if self._monotonic() - idle.since <= IDLE_SECONDS:
                return idle.lane
            idle.lane.close()
        try:
            return self._open_lane(min(CONNECT_SECONDS, seconds_left()))
        except NotAllowed as error:
            raise errors.not_allowed() from error
        except NotReachable as error:
            raise errors.unavailable() from error

    def _give_back(self, lane: OpenLane) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(_Idle(lane, self._monotonic()))
                return
        lane.close()

    def _drop_idle(self) -> None:
        with self._lock:
            dropped = self._idle[:]
            self._idle.clear()
        _close_all(dropped)


def _close_all(idle: list[_Idle]) -> None:
    while idle:
        idle.pop().lane.close()
