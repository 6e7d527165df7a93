"""A wire between a client and a server that a test can cut or hold silent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Wire:
    """Passes bytes on between each connection to `port` and one to the server.

    Attributes:
        port: Where clients connect, on 127.0.0.1.
        connections: How many were made.
        silent: While it is true, nothing comes back from the server.
        cut_next_request: Whether the next bytes of a client end its connection after they were passed on.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.silent = False
        self.cut_next_request = False
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """Ends all connections, without a word to the protocol above."""
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends everything."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(5)
        for end in self._open:
            end.close()

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self.connections += 1
            self._open += [client, server]
            self._start(self._pass_on, client, server, True)
            self._start(self._pass_on, server, client, False)

    def _pass_on(self, origin: socket.socket, target: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while some := origin.recv(65536):
                if self.silent and not from_client:
                    continue
                target.sendall(some)
                if from_client and self.cut_next_request:
                    self.cut_next_request = False
                    break
        for end in (origin, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def wire(host: str, port: int) -> Iterator[Wire]:
    """A wire to a server, closed in the end."""
    made = Wire(host, port)
    try:
        yield made
    finally:
        made.close()
