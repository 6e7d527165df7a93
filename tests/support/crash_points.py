"""A fault at any call of any port: the n-th call of a tool fails, before or after it did its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pulse_kg.bootstrap import Container
from pulse_kg.errors import StoreUnavailable
from pulse_kg.mcp.local_host import LocalToolHost
from pulse_kg.usecases.services import Services

When = Literal["before", "after"]
PORTS = ("sessions", "graph", "vectors", "commits", "boards", "rates", "embedder")


@dataclass
class Faults:
    """Where the next fault strikes.

    Attributes:
        at: The number of the call that fails, from 1; None while nothing fails.
        when: Whether the call fails before it did its work, or after it: then the work stands and its answer is lost.
        only: Port and method, such as ``graph.nodes``; empty for all.
        calls: What was called since `arm`, in order.
        struck: The call that failed.
        error: What it raises.
        instead: What happens instead of a fault: another caller gets in between.
    """

    at: int | None = None
    when: When = "before"
    only: str = ""
    calls: list[str] = field(default_factory=list)
    struck: str | None = None
    error: Exception | None = None
    instead: Callable[[], object] | None = None

    def arm(
        self,
        at: int | None,
        when: When = "before",
        *,
        only: str = "",
        error: Exception | None = None,
        instead: Callable[[], object] | None = None,
    ) -> None:
        """Lets the `at`-th call from now on fail."""
        self.at, self.when, self.only, self.error, self.instead = at, when, only, error, instead
        self.calls, self.struck = [], None

    def disarm(self) -> None:
        """Lets every call go through."""
        self.at = None

    def _is_next(self, name: str) -> bool:
        if self.only and name != self.only:
            return False
        self.calls.append(name)
        if self.at is None or len(self.calls) != self.at:
            return False
        self.struck = name
        return True

    def _strike(self) -> None:
        if self.instead is None:
            raise self.error or StoreUnavailable("test")
        self.instead()

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        """A call of a port."""
        strikes = self._is_next(name)
        if strikes and self.when == "before":
            self._strike()
        yield
        if strikes and self.when == "after":
            self._strike()


class FaultyPort:
    """A port whose calls pass by `Faults`; a turn's `commit` is a call of its own."""

    def __init__(self, port: Any, name: str, faults: Faults) -> None:
        self._port, self._name, self._faults = port, name, faults

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self._port, attribute)
        if not callable(value):
            return value
        name = f"{self._name}.{attribute}"
        if name == "commits.turn":
            return self._turn

        def call(*arguments: Any, **more: Any) -> Any:
            with self._faults.around(name):
                return value(*arguments, **more)

        return call

    @contextmanager
    def _turn(self, board_id: str, *, wait_seconds: float) -> Iterator[Any]:
        with self._faults.around("commits.turn"):
            pass
        with self._port.turn(board_id, wait_seconds=wait_seconds) as turn:
            yield FaultyPort(turn, "turn", self._faults)


def faulty(services: Services, faults: Faults) -> Services:
    """The services with faults in all their ports."""
    ports: dict[str, Any] = {name: FaultyPort(getattr(services, name), name, faults) for name in PORTS}
    return replace(services, **ports)


def faulty_host(container: Container, faults: Faults) -> LocalToolHost:
    """The tools over ports that fail."""
    return LocalToolHost(
        faulty(container.services, faults), container.authenticate, max_response_bytes=container.settings.max_response_bytes
    )


@contextmanager
def faults_inside_a_commit(container: Container, faults: Faults) -> Iterator[None]:
    """While it lasts, faults also strike in the middle of the store's own transaction: before and after graph and vectors are written."""
    log: Any = container.commits
    graph, vectors = log._graph, log._vectors
    log._graph, log._vectors = FaultyPort(graph, "inside.graph", faults), FaultyPort(vectors, "inside.vectors", faults)
    try:
        yield
    finally:
        log._graph, log._vectors = graph, vectors
