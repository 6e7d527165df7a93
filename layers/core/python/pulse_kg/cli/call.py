"""`pulse-kg call`: one tool call, as an agent would make it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pulse_kg.cli.app import App
from pulse_kg.cli.commands import Command
from pulse_kg.cli.output import write_json
from pulse_kg.mcp import envelope, jsontext

key_file_option = click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that holds the API key; wins over PULSE_KG_API_KEY. A key is never an argument: others could read it.",
)


@click.command(
    cls=Command,
    examples=(
        """pulse-kg call begin_consolidation '{"board_id": "web", "source_type": "spec", "source_id": "s1", "source_version": 1}'""",
        """pulse-kg call get_decision_history - < arguments.json""",
        """pulse-kg call schema_info '{"board_id": "web"}' --key-file ./ann.key""",
    ),
)
@click.argument("tool")
@click.argument("arguments", metavar="JSON", default="{}")
@key_file_option
@click.pass_context
def call(ctx: click.Context, tool: str, arguments: str, key_file: Path | None) -> None:
    """Call TOOL with the arguments JSON (an object, or - to read it from standard input).

    Writes the answer or the error envelope, and exits with 1 for the latter. The key comes from PULSE_KG_API_KEY.
    """
    app = ctx.ensure_object(App)
    app.json = True  # whatever goes wrong, the answer is an envelope
    text = sys.stdin.buffer.read() if arguments == "-" else arguments.encode("utf-8", "surrogateescape")
    try:
        value = jsontext.decode(text)
    except jsontext.MalformedJson as error:
        raise click.BadParameter(f"not JSON that can be read: {error.reason}", ctx, param_hint="JSON") from None
    host = app.container().tool_host()
    caller = host.authenticate(read_key(app, key_file))
    outcome = host.call(caller, tool, value, correlation_id=envelope.new_correlation_id())
    write_json(outcome.body)
    ctx.exit(1 if outcome.is_error else 0)


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
