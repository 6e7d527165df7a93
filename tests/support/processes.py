"""Other processes of the tests: started warm, told what to do over a pipe, killed without mercy."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

WAIT_SECONDS = 60.0
"""No message may take longer, on the slowest machine."""

_CONTEXT = multiprocessing.get_context("forkserver")
# What the children need is imported once: each is a fork of a server that has it. No file is open there, which no fork could use.
_CONTEXT.set_forkserver_preload(["tests.support.crash_warm"])


class Child:
    """A process that runs a function with one end of a pipe as its first argument.

    Args:
        target: A function of a module.
        arguments: Its further arguments.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process: ForkServerProcess = _CONTEXT.Process(target=target, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, message: Any) -> None:
        """Sends a message."""
        self._pipe.send(message)

    def hear(self, seconds: float = WAIT_SECONDS) -> Any:
        """The next message.

        Raises:
            TimeoutError: None came.
            EOFError: The process ended.
        """
        if not self._pipe.poll(seconds):
            message = f"no message within {seconds} s"
            raise TimeoutError(message)
        return self._pipe.recv()

    def hear_all(self) -> list[Any]:
        """All messages until the process ends."""
        heard = []
        while True:
            try:
                heard.append(self.hear())
            except EOFError:
                return heard

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()

    def finished(self) -> int | None:
        """Waits for its end and gives its exit code."""
        self._process.join(WAIT_SECONDS)
        return self._process.exitcode

    def close(self) -> None:
        """Ends it if need be, and gives everything back."""
        self._process.kill()
        self._process.join(WAIT_SECONDS)
        self._pipe.close()
        self._process.close()


Pipe = Connection
