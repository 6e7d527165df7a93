"""How many long calls run at once in this process: so many that the other tools still get their turn."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pulse_kg.errors import RateLimited


class RunningCalls:
    """Counts the calls that run now, by agent and in all; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()

    @contextmanager
    def turn(self, agent_id: str, *, of_agent: int, in_all: int) -> Iterator[None]:
        """While it lasts, one more call of the agent runs. Nobody waits here: a call that waited would hold a thread all the same.

        Args:
            agent_id: The agent.
            of_agent: Calls of one agent at most.
            in_all: Calls of all agents at most.

        Raises:
            RateLimited: So many run already.
        """
        with self._lock:
            if self._running[agent_id] >= of_agent or self._running.total() >= in_all:
                raise RateLimited(
                    f"Too many queries run at this moment ({of_agent} of one agent, {in_all} of all, are allowed). Go on when one of them "
                    "has ended, or in 1 s.",
                    {"retry_after_seconds": 1, "limit_at_once": of_agent},
                )
            self._running[agent_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[agent_id] -= 1
                if not self._running[agent_id]:
                    del self._running[agent_id]
