"""The program `pulse-kg`: its commands, and the one place where failures become messages and exit codes.

Exit codes: 0 done, 1 refused or failed with a message, 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from pulse_kg import __version__
from pulse_kg.cli.app import App
from pulse_kg.cli.commands import Lazy, LazyGroup, benchmark_root, checked_store
from pulse_kg.errors import PulseError

_REFUSED = 1
_WRONG_USAGE = 2
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
_LISTED = 10  # problems that a reader is shown; --json has all
_HERE = "pulse_kg.cli"

_COMMANDS = {
    "demo": Lazy(f"{_HERE}.programs:demo", "See it work: a store of its own, filled and asked."),
    "boards": Lazy(f"{_HERE}.boards:boards", "Make, look at, set and erase boards."),
    "agents": Lazy(f"{_HERE}.agents:agents", "Make agents and say what they may do."),
    "keys": Lazy(f"{_HERE}.keys:keys", "Rotate and revoke API keys."),
    "serve": Lazy(f"{_HERE}.serve:serve", "Serve the tools over MCP."),
    "call": Lazy(f"{_HERE}.call:call", "Call one tool."),
    "ingest": Lazy(f"{_HERE}.programs:ingest", "Consolidate a file of artifacts."),
    "sessions": Lazy(f"{_HERE}.sessions:sessions", "List and abort open sessions."),
    "nodes": Lazy(f"{_HERE}.nodes:nodes", "Look at a node, curate it, revoke it."),
    "audit": Lazy(f"{_HERE}.audit:audit", "Read the audit log of a board."),
    "verify": Lazy(f"{_HERE}.maintenance:verify", "Check that stores and audit log agree."),
    "reindex": Lazy(f"{_HERE}.maintenance:reindex", "Make the vectors of a board anew from its nodes' texts."),
    "relay": Lazy(f"{_HERE}.maintenance:relay", "Finish commits that were left behind, and send their events."),
    "tick": Lazy(f"{_HERE}.maintenance:tick", "Compute the relevance of all nodes for now, with the hits that were counted."),
    "rebuild": Lazy(f"{_HERE}.maintenance:rebuild", "Make a store anew from the audit log of another."),
    "export": Lazy(f"{_HERE}.export:export", "Write a board as JSON lines or GraphML."),
    "up": Lazy(f"{_HERE}.stack:up", "Start the local servers (in a checkout)."),
    "down": Lazy(f"{_HERE}.stack:down", "Stop the local servers."),
    "status": Lazy(f"{_HERE}.stack:status", "Whether the local servers answer."),
    "health": Lazy(f"{_HERE}.health:health", "Whether everything is there, and the settings in force."),
    "bench": Lazy(f"{_HERE}.programs:bench", "Measure it (in a checkout).", listed=lambda: benchmark_root() is not None),
}


class Program(LazyGroup):
    """The commands, and what becomes of their failures."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Runs a command and ends the process with its exit code."""
        del standalone_mode
        # pydantic would search all installed packages for plugins: 40 ms of every call, and none is wanted.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        arguments = list(sys.argv[1:] if args is None else args)
        app = App(os.environ)
        try:
            code = super().main(arguments, prog_name or "pulse-kg", complete_var, standalone_mode=False, obj=app, **extra)
            sys.stdout.flush()  # while a failure of it can still be told
        except click.UsageError as error:
            code = _wrong_usage(error, as_json=app.json or _asks_for_json(arguments))
        except PulseError as error:
            code = _refused(error, app)
        except click.exceptions.Abort as abort:
            code = _told(str(abort.__cause__ or "") or "Interrupted.")
        except Exception as error:  # noqa: BLE001 - the outer edge: whatever it is, the user gets a safe message
            code = _failed(error, app)
        sys.exit(code if isinstance(code, int) else 0)


@click.command(
    cls=Program,
    lazy=_COMMANDS,
    examples=(
        "pulse-kg boards create web",
        "pulse-kg agents create ann --preset Spec --board web",
        "pulse-kg serve",
        "pulse-kg --store sqlite:/data/team.db boards list --json",
    ),
)
@click.option(
    "--store",
    metavar="sqlite:PATH|aws",
    callback=checked_store,
    help="Where everything is kept; wins over PULSE_KG_STORE. Default: sqlite:./pulse-kg.db",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output; stands after the command as well.")
@click.version_option(__version__, prog_name="pulse-kg", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, store: str | None, *, as_json: bool) -> None:
    """The memory of what a software team decided, for the agents that work for it."""
    app = ctx.ensure_object(App)
    app.choose(store, json=as_json)
    ctx.call_on_close(app.close)


def main() -> None:
    """Runs the program."""
    if vars(sys)["stdout"] is None:  # and the first file that is opened would be taken for it
        sys.exit(_told("Error: standard output is closed. Send it to /dev/null where no answer is wanted."))
    for stream in (sys.stdout, sys.stderr):
        # A title that a terminal's code page has not is shown with marks for it, rather than not at all.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    cli.main()


def _asks_for_json(arguments: Sequence[str]) -> bool:
    # For usage errors: they may come before the option was parsed.
    return "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)


def _told(message: str) -> int:
    with contextlib.suppress(OSError):  # then there is nobody left to tell
        click.echo(message, err=True)
    return _REFUSED


def _wrong_usage(error: click.UsageError, *, as_json: bool) -> int:
    if as_json:
        from pulse_kg.mcp.envelope import new_correlation_id, refusal

        _write(refusal("invalid_request", 400, error.format_message(), correlation_id=new_correlation_id()))
    else:
        error.show()
    return _WRONG_USAGE


def _refused(error: PulseError, app: App) -> int:
    message = app.located(error)
    if app.json:
        from pulse_kg.mcp.envelope import new_correlation_id, refusal

        code, details = error.code, error.details
        _write(refusal(code, error.status, message, correlation_id=new_correlation_id(), details=details, retryable=error.retryable))
        return _REFUSED
    problems: list[dict[str, str]] = error.details.get("problems", [])
    # One that the message tells already is not told again.
    listed = [f"  {p['path']}: {p['problem']}" for p in problems if p["problem"] not in error.message]
    more = [f"  and {len(listed) - _LISTED} more"] if len(listed) > _LISTED else []
    return _told("\n".join([f"Error: {message}", *listed[:_LISTED], *more]))


def _failed(error: Exception, app: App) -> int:
    # What a command writes elsewhere, it answers for itself.
    if isinstance(error, OSError) and error.filename is None and error.errno in _NO_ROOM:
        return _told(f"Error: standard output can't be written: {error.strerror}. What the command did stays done; its answer is lost.")
    from pulse_kg.mcp.envelope import internal_error, new_correlation_id

    correlation_id = new_correlation_id()
    if app.log_level == "DEBUG":
        import logging

        logging.getLogger(__name__).debug("the command failed: correlation_id=%s", correlation_id, exc_info=error)
    if app.json:
        _write(internal_error(correlation_id))
        return _REFUSED
    return _told(f"Error: something went wrong inside pulse-kg ({correlation_id}). PULSE_KG_LOG_LEVEL=DEBUG shows where.")


def _write(document: dict[str, Any]) -> None:
    from pulse_kg.cli.output import write_json

    try:
        write_json(document)
    except OSError as error:
        # Rather in the wrong place than nowhere.
        _told(f"Error: {document['error']['message']} (Standard output can't be written: {error.strerror}.)")


if __name__ == "__main__":
    main()
