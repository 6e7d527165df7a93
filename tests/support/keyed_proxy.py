"""A gateway in front of an MCP endpoint that adds the caller's key, for clients that can't send a header of their own."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_OWN = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
"""Headers of one connection, not of the message."""


@contextmanager
def keyed_proxy(url: str, key: str) -> Iterator[str]:
    """Passes everything under `url` on with the key; gives the URL to use instead."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(url, key))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="keyed-proxy", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _handler(url: str, key: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
            sent["Authorization"] = f"Bearer {key}"
            request = urllib.request.Request(url + self.path, body or None, sent, method=self.command)  # noqa: S310 - the endpoint's own
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                    self._answer(answer.status, answer.headers, answer.read())
            except urllib.error.HTTPError as refused:
                with refused:
                    self._answer(refused.code, refused.headers, refused.read())

        def _answer(self, status: int, headers: Any, body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_DELETE = do_GET = do_POST = _pass_on  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            """Says nothing."""

    return Handler
