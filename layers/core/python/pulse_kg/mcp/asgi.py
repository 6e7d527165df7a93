"""The HTTP routes under an ASGI server. The only module, with `server`, that needs one; import it lazily."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from pulse_kg.mcp.http import HttpRequest, HttpResponse, declared_length
from pulse_kg.mcp.routes import HttpEdge

DEFAULT_THREADS: Final = 32
"""Calls that run at once; most of their time they wait for a store."""

_PROBE_THREADS: Final = 4
"""Threads of their own for everything but POST, so that a health check is answered while all others are busy."""


def create_app(edge: HttpEdge, *, threads: int = DEFAULT_THREADS) -> Starlette:
    """The application of all routes.

    Args:
        edge: Answers the requests.
        threads: Calls that run at once; further ones wait.
    """
    bridge = _Bridge(edge, threads)
    return Starlette(routes=[_Everything(bridge)], lifespan=bridge.lifespan)


class _Everything(BaseRoute):
    """Leads every request to one application: the edge alone says what is not served, whatever the target looks like."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:  # noqa: ARG002 - whatever it is
        """Always."""
        return Match.FULL, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on."""
        await self._app(scope, receive, send)


class _Bridge:
    """Reads a request off ASGI, runs the edge in a thread and writes its response."""

    def __init__(self, edge: HttpEdge, threads: int) -> None:
        self._edge = edge
        self._threads = threads
        self._calls: anyio.CapacityLimiter | None = None
        self._probes: anyio.CapacityLimiter | None = None

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Makes the limiters, which belong to an event loop."""
        self._calls = anyio.CapacityLimiter(self._threads)
        self._probes = anyio.CapacityLimiter(_PROBE_THREADS)
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # a WebSocket, where the server speaks that
            await send({"type": "websocket.close"})
            return
        request = _head(scope)
        body = await self._body(request, receive) if request.method == "POST" else b""
        if body is None:
            return
        # Not abandoned when the client goes away: a commit that has begun is better finished.
        response = await anyio.to_thread.run_sync(
            self._edge.handle,
            HttpRequest(request.method, request.path, request.headers, body),
            limiter=self._calls if request.method == "POST" else self._probes,
        )
        await _send(response, send, with_body=request.method != "HEAD")

    async def _body(self, request: HttpRequest, receive: Receive) -> bytes | None:
        """The body, or enough of it to be refused as too large; `None` if the client went away."""
        limit = self._edge.max_body_bytes
        if declared_length(request.headers) > limit:
            return b""
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            chunks.append(chunk)
            size += len(chunk)
            if size > limit or not message.get("more_body", False):
                return b"".join(chunks)


def _head(scope: Scope) -> HttpRequest:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    # A mounted application sees the whole path, with what it is mounted under in `root_path`.
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if path.lower().startswith(("http://", "https://")):  # a proxy's form of the target, which names the host too
        path = "/" + path.split("/", 3)[3] if path.count("/") > 2 else "/"  # noqa: PLR2004 - one after the host
    return HttpRequest(scope["method"], path, headers)


async def _send(response: HttpResponse, send: Send, *, with_body: bool) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
    if response.status != 204:  # noqa: PLR2004 - which has no content, not even of length 0
        headers.append((b"content-length", str(len(response.body)).encode("ascii")))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body if with_body else b""})
