"""The fake host as a program of its own: ``python -m tests.protocol.program http|stdio [PORT]``."""

from __future__ import annotations

import os
import sys

from pulse_kg.mcp.stdio import serve_stdio
from tests.protocol.fakes import ABOUT, FakeHost, fake_edge


def main() -> int:
    host = FakeHost()
    if sys.argv[1] == "stdio":
        noisy = host.tools

        def tools() -> object:
            # What a library might do to standard output, from Python and below it.
            print("stray print", flush=True)  # noqa: T201
            os.write(1, b"stray write\n")
            return noisy()

        host.tools = tools  # type: ignore[method-assign, assignment]
        serve_stdio(host, api_key=os.environ.get("PULSE_KG_API_KEY"), max_line_bytes=100_000, **ABOUT)
        return 0
    from pulse_kg.mcp.asgi import create_app
    from pulse_kg.mcp.server import run_http

    try:
        run_http(
            create_app(fake_edge(host)),
            "127.0.0.1",
            int(sys.argv[2]),
            lambda name, port: print(f"http://{name}:{port}", flush=True),  # noqa: T201
            grace_seconds=int(os.environ.get("GRACE_SECONDS", "40")),
        )
    except OSError as error:
        print(f"refused: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
