"""A real HTTP server on a free port of this machine, for as long as a `with` block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from pulse_kg.mcp.server import bound_socket


class _Server(uvicorn.Server):
    """Says when it listens, or that it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        try:
            await super().startup(sockets=sockets)  # type: ignore[arg-type]
        finally:
            self.settled.set()


@contextmanager
def serve_in_thread(app: ASGIApp) -> Iterator[str]:
    """Serves the application and yields its base URL, without a slash at the end."""
    with bound_socket("127.0.0.1", 0) as listener:
        server = _Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=10))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="http-server", daemon=True)
        thread.start()
        try:
            assert server.settled.wait(30), "the server did not start"
            assert server.started, "the server failed to start"
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive(), "the server did not stop"
