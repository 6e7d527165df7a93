"""`pulse-kg up`, `down` and `status`: the servers of `--store aws` on this machine, without containers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulse_kg.cli.app import App
from pulse_kg.cli.commands import Command
from pulse_kg.cli.output import Table
from pulse_kg.cli.stack_places import Places, StackError
from pulse_kg.cli.stack_progress import progress_on_stderr

if TYPE_CHECKING:
    from pulse_kg.cli.stack_run import Stack, State

_MINUTE, _HOUR = 60, 3_600
_PORT = click.IntRange(1, 65_535)

_folder_option = click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where data, logs and process numbers are kept. Default: .local in the checkout.",
)


def _port_option(name: str, of: str, usual: int) -> Callable[[Any], Any]:
    return click.option(f"--{name}", type=_PORT, metavar="PORT", help=f"The port of {of}. Default: the one it had, else {usual}.")


@click.command(cls=Command, examples=("pulse-kg up", "pulse-kg up --aws-port 14566 --gremlin-port 18182 --opensearch-port 19200"))
@_folder_option
@_port_option("aws-port", "the AWS emulator", 4566)
@_port_option("gremlin-port", "JanusGraph", 8182)
@_port_option("opensearch-port", "OpenSearch", 9200)
@click.pass_context
def up(ctx: click.Context, folder: Path | None, aws_port: int | None, gremlin_port: int | None, opensearch_port: int | None) -> None:
    """Start the local servers: an emulator of AWS, JanusGraph and OpenSearch, on this machine only.

    The first time they are fetched, about 140 MB; Java 17 and Maven must be there. Starts only what does not run, and waits until
    everything answers. Their addresses are written to stack.env in the folder.
    """
    app = ctx.ensure_object(App)
    ports = {"ministack": aws_port, "janusgraph": gremlin_port, "opensearch": opensearch_port}
    with _stack(folder) as (stack, places, titles):
        try:
            with progress_on_stderr(titles, as_json=app.json) as progress:
                states = stack.up(ports, progress, app.note)
                prepared = _prepare(states)
        except KeyboardInterrupt:
            app.note(f"\nWhat was started goes on; '{places.command('down')}' stops it.")
            raise
    document = {
        "status": "up",
        "dir": str(places.home),
        "env_file": str(places.env_file),
        "servers": [_started(state) for state in states],
        **prepared,
    }
    app.answer(
        document, _table(states), f"The addresses for --store aws are in {places.env_file}. Stop everything with: {places.command('down')}"
    )


def _prepare(states: Sequence[State]) -> dict[str, Any]:
    from pulse_kg.cli.stack_prepare import endpoints_from, prepare
    from pulse_kg.cli.stack_servers import stack_variables

    return prepare(endpoints_from(stack_variables({state.server.name: state.port for state in states})))


@click.command(cls=Command, examples=("pulse-kg down", "pulse-kg down --wipe"))
@_folder_option
@click.option("--wipe", is_flag=True, help="Remove the data of the servers as well.")
@click.pass_context
def down(ctx: click.Context, folder: Path | None, *, wipe: bool) -> None:
    """Stop the local servers that `pulse-kg up` started; their data stay unless --wipe is given."""
    app = ctx.ensure_object(App)
    with _stack(folder) as (stack, places, titles), progress_on_stderr(titles, as_json=app.json) as progress:
        stopped = stack.down(wipe=wipe, progress=progress, note=app.note)
    document = {"status": "down", "dir": str(places.home), "stopped": stopped, "wiped": wipe}
    data = f"The data in {places.all_data} are removed." if wipe else f"The data stay in {places.all_data}."
    app.answer(document, f"The local servers are down. {data}")


@click.command(cls=Command, examples=("pulse-kg status", "pulse-kg status --json"))
@_folder_option
@click.pass_context
def status(ctx: click.Context, folder: Path | None) -> None:
    """Ask each local server whether it works.

    Exits with 1 unless all of them answer.
    """
    app = ctx.ensure_object(App)
    with _stack(folder) as (stack, places, _):
        states = stack.status()
    healthy = sum(state.trouble is None for state in states)
    document = {
        "status": "up" if healthy == len(states) else "partial" if any(state.record for state in states) else "down",
        "dir": str(places.home),
        "env_file": str(places.env_file) if places.env_file.exists() else None,
        "servers": [state.as_dict() for state in states],
    }
    told = () if healthy == len(states) else (f"Not all of the local servers answer. Start what is missing with: {places.command('up')}",)
    app.answer(document, _table(states), *told)
    ctx.exit(0 if healthy == len(states) else 1)


@contextmanager
def _stack(folder: Path | None) -> Iterator[tuple[Stack, Places, dict[str, str]]]:
    if sys.platform == "win32":
        raise StackError("The local servers run on Linux and macOS only. The embedded store, --store sqlite:PATH, runs here as well.")
    from pulse_kg.cli.stack_fetch import Tools
    from pulse_kg.cli.stack_run import Stack
    from pulse_kg.cli.stack_servers import local_servers

    places = Places.find(folder)
    tools = Tools.find(os.environ)
    servers = local_servers(places, tools, os.environ)
    try:
        yield Stack(places, tools, servers), places, {server.name: server.title for server in servers}
    except OSError as error:
        where = error.filename or places.home
        raise StackError(f"{where} can't be used: {error.strerror or type(error).__name__}. Another folder is named by --dir.") from None


def _started(state: State) -> dict[str, Any]:
    return {**state.as_dict(), "started": state.seconds is not None, "start_seconds": state.seconds and round(state.seconds, 1)}


def _table(states: Sequence[State]) -> Table:
    rows = []
    for state in states:
        shown = state.as_dict()
        memory = shown["memory_mb"]
        rows.append(
            (
                state.server.title,
                shown["port"],
                shown["pid"],
                _duration(shown["uptime_seconds"]),
                None if memory is None else f"{memory} MB",
                shown["health"],
            )
        )
    return Table(("server", "port", "pid", "up for", "memory", "health"), rows)


def _duration(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
