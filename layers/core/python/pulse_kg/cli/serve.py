"""`pulse-kg serve`: the tools over MCP, on a port or on the standard streams."""

from __future__ import annotations

import errno
import ipaddress
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulse_kg import __version__
from pulse_kg.cli.app import App
from pulse_kg.cli.call import KeyRefused, key_file_option, opened, read_key
from pulse_kg.cli.commands import Command
from pulse_kg.errors import Problem
from pulse_kg.usecases.boards import refused

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container
    from pulse_kg.mcp.routes import HttpEdge

_DEFAULT_HOST = "127.0.0.1"
_DEFAULT_PORT = 8765
_FIRST_BOARD = "default"
_FIRST_AGENT = "admin"


@click.command(
    cls=Command,
    examples=("pulse-kg serve", "pulse-kg serve --init --port 9000", "pulse-kg serve --stdio --key-file ./ann.key"),
)
@click.option("--host", default=_DEFAULT_HOST, show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65_535), default=_DEFAULT_PORT, show_default=True, help="0 for any free port.")
@click.option("--stdio", is_flag=True, help="Speak MCP on the standard streams with one client, which is opened by PULSE_KG_API_KEY.")
@click.option("--init", is_flag=True, help="Make what is missing: the store, a board, an agent (its key is told on standard error).")
@key_file_option
@click.pass_context
def serve(ctx: click.Context, host: str, port: int, key_file: Path | None, *, stdio: bool, init: bool) -> None:
    """Serve the tools over MCP, at /mcp, until SIGTERM or Ctrl-C; running calls are finished first."""
    app = ctx.ensure_object(App)
    _check_usage(ctx, app, stdio=stdio)
    new_store = app.missing_path if init else None
    container = app.container(create=init)
    container.store.ping()  # a store that is away, or not fit, is told now and not to the first agent
    if init:
        make_first(app, container, new_store)
    if stdio:
        _serve_stdio(app, container, key_file)
    else:
        _serve_http(app, container, host, port)


def make_first(app: App, container: Container, new_store: Path | None = None) -> None:
    """Makes a first board and a first agent where there is none, and tells the agent's key once.

    Args:
        app: Where it is told.
        container: The store.
        new_store: The store's path if it was just made.
    """
    from pulse_kg.usecases.boards import create_board
    from pulse_kg.usecases.identity import create_agent

    now = container.clock.now()
    if not container.boards.boards():
        create_board(_FIRST_BOARD, None, boards=container.boards, now=now)
        app.note(f"Made the board {_FIRST_BOARD}" + ("." if new_store is None else f" in the new store {new_store}."))
    if not container.identity.agents():
        issued = create_agent(
            _FIRST_AGENT,
            "Full Control",
            [board.board_id for board in container.boards.boards()],
            (),
            identity=container.identity,
            boards=container.boards,
            ids=container.ids,
            now=now,
        )
        app.note(f"Made the agent {_FIRST_AGENT} (Full Control). Its API key, shown this once: {issued.api_key}")


def _check_usage(ctx: click.Context, app: App, *, stdio: bool) -> None:
    given = {name for name in ("host", "port", "key_file") if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT}
    if stdio and app.json:
        raise click.UsageError("With --stdio standard output belongs to the protocol, so --json has no place.", ctx)
    if stdio and given & {"host", "port"}:
        raise click.UsageError("--stdio serves the standard streams; --host and --port have no place with it.", ctx)
    if not stdio and "key_file" in given:
        raise click.UsageError("--key-file goes with --stdio; over HTTP each call brings its own key.", ctx)


def _serve_stdio(app: App, container: Container, key_file: Path | None) -> None:
    from pulse_kg.mcp.stdio import serve_stdio

    host = container.tool_host()
    try:
        opened(host, app, key_file)
    except KeyRefused as refusal:
        # Clients show what a server says here; in the protocol it comes with each request.
        app.note(f"{refusal.message} Until then every request is refused.")
    serve_stdio(host, api_key=read_key(app, key_file), **_about())


def _serve_http(app: App, container: Container, host: str, port: int) -> None:
    from pulse_kg.mcp.asgi import create_app
    from pulse_kg.mcp.server import run_http

    if not _is_loopback(host):
        app.note(f"Listening at {host}, beyond this machine: keys and answers cross the network in the clear unless TLS is put before it.")

    def listening(bound_host: str, bound_port: int) -> None:
        url = f"http://{f'[{bound_host}]' if ':' in bound_host else bound_host}:{bound_port}/mcp"
        app.answer({"listening": url, "host": bound_host, "port": bound_port}, f"Pulse KG listens on {url}")
        # At once, into a pipe as well: whoever started it waits for this line.
        sys.stdout.flush()

    try:
        run_http(create_app(http_edge(container)), host, port, listening)
    except OSError as error:
        busy = error.errno == errno.EADDRINUSE
        why = "is in use (choose another with --port, or 0 for any free one)" if busy else f"can't be bound: {error.strerror}"
        raise refused("It can't listen there", [Problem("port" if busy else "host", f"{host}:{port} {why}")]) from None


def http_edge(container: Container) -> HttpEdge:
    """The routes over a container."""
    from pulse_kg.mcp.routes import HttpEdge

    return HttpEdge(
        container.tool_host(),
        check_health=lambda: _check_health(container),
        allowed_origins=container.settings.allowed_origins,
        **_about(),
    )


def _check_health(container: Container) -> None:
    container.store.ping()


def _about() -> dict[str, Any]:
    from pulse_kg.mcp.tools import INSTRUCTIONS

    return {"server_name": "pulse-kg", "server_title": "Pulse KG", "server_version": __version__, "instructions": INSTRUCTIONS}


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
