"""`pulse-kg call`: one tool call, as an agent would make it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pulse_kg.cli.app import App
from pulse_kg.cli.commands import Command
from pulse_kg.cli.output import write_json
from pulse_kg.domain.permissions import nearest
from pulse_kg.errors import ToolNotFound, Unauthorized
from pulse_kg.mcp import envelope, jsontext
from pulse_kg.mcp.host import TOOL_PREFIX, CallerHandle, ToolHost
from pulse_kg.mcp.tools import TOOL_NAMES
from pulse_kg.settings import API_KEY_VARIABLE

key_file_option = click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that holds the API key; wins over PULSE_KG_API_KEY. A key is never an argument: others could read it.",
)


class KeyRefused(Unauthorized):
    """There is no key, or not one that opens an agent, for a person at the command line, who can mend it."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message


@click.command(
    cls=Command,
    examples=(
        """pulse-kg call begin_consolidation '{"board_id": "web", "source_type": "spec", "source_id": "s1", "source_version": 1}'""",
        """pulse-kg call add_node_candidate - < arguments.json""",
        """pulse-kg call commit_consolidation '{"session_id": "kgs_01J…"}' --key-file ./ann.key""",
    ),
    sections={"Tools": ", ".join(TOOL_NAMES)},
)
@click.argument("tool")
@click.argument("arguments", metavar="[JSON]", default="{}")
@key_file_option
@click.pass_context
def call(ctx: click.Context, tool: str, arguments: str, key_file: Path | None) -> None:
    """Call TOOL with the arguments JSON: an object in single quotes, - to read it from standard input, nothing for {}.

    Writes the answer or the error envelope, and exits with 1 for the latter. The key comes from PULSE_KG_API_KEY. docs/tools.md says what
    each tool takes; a tool called without JSON names what it needs.
    """
    app = ctx.ensure_object(App)
    app.json = True  # whatever goes wrong, the answer is an envelope
    text = sys.stdin.buffer.read() if arguments == "-" else arguments.encode("utf-8", "surrogateescape")
    try:
        value = jsontext.decode(text)
    except jsontext.MalformedJson as error:
        hint = "" if arguments == "-" else ". Put the JSON in single quotes, or the shell takes its quotes away"
        raise click.BadParameter(f"not JSON that can be read: {error.reason}{hint}.", ctx, param_hint="JSON") from None
    host = app.container().tool_host()
    _check_tool(tool.removeprefix(TOOL_PREFIX))
    caller = opened(host, app, key_file)
    outcome = host.call(caller, tool, value, correlation_id=envelope.new_correlation_id())
    write_json(outcome.body)
    ctx.exit(1 if outcome.is_error else 0)


def opened(host: ToolHost, app: App, key_file: Path | None) -> CallerHandle:
    """The agent of the caller's key.

    Raises:
        KeyRefused: There is no key, or it opens none; what to do is said.
        click.UsageError: The file can't be read.
    """
    key = read_key(app, key_file)
    if key is None and key_file is not None:
        raise KeyRefused(f"The key file {key_file} is empty. 'pulse-kg agents create' makes a key.")
    if key is None:
        raise KeyRefused(f"No API key. Set {API_KEY_VARIABLE} or name --key-file; 'pulse-kg agents create' makes one.")
    try:
        return host.authenticate(key)
    except Unauthorized:
        where = API_KEY_VARIABLE if key_file is None else f"the key file {key_file}"
        raise KeyRefused(
            f"The key in {where} is not valid: was it rotated, its agent revoked, or is it of another store? "
            "'pulse-kg keys rotate NAME' makes a new one."
        ) from None


def _check_tool(name: str) -> None:
    if name not in TOOL_NAMES:
        near = nearest(name, TOOL_NAMES)
        hint = f" (nearest: '{near}')" if near else ""
        raise ToolNotFound(f"There is no tool '{name}'{hint}. The tools are {', '.join(TOOL_NAMES)}.", {"tools": list(TOOL_NAMES)})


def read_key(app: App, key_file: Path | None) -> str | None:
    """The caller's key, from the file if one is named, else from the environment.

    Raises:
        click.UsageError: The file can't be read.
    """
    if key_file is None:
        return app.api_key
    try:
        return key_file.read_bytes().decode("ascii", "replace").strip() or None
    except OSError as error:
        raise click.UsageError(f"The key file can't be read: {error.strerror}.") from None
