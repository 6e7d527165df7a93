"""`pulse-kg ingest`, `demo` and `bench`: whole programs over the tools, each imported when it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from pulse_kg.cli.app import App
from pulse_kg.cli.call import key_file_option, opened
from pulse_kg.cli.commands import Command, benchmark_root

_LINE = (
    ("pep", "required: the document's number, by which the others name it"),
    ("title", "required: what was decided, up to 500 characters"),
    ("status", "required: such as Final; Rejected and Withdrawn make a revoked decision"),
    ("created", "required: a date or time in RFC 3339, such as 2024-05-31"),
    ("abstract", "the decision's text, up to 32 KiB"),
    ("requires", "numbers of the documents that it depends on, such as [8, 20]"),
    ("replaces", "numbers of the documents that it supersedes"),
    ("superseded_by", "numbers of the documents that supersede it"),
    ("rejected", """rejected ideas: [{"title": "…", "reason_discarded": "…"}], the reason optional"""),
)


@click.command(cls=Command, examples=("pulse-kg demo", "pulse-kg demo --keep demo.db", "pulse-kg --store aws demo"))
@click.option("--keep", type=click.Path(path_type=Path), metavar="FILE", help="Leave the store there, to look around in it afterwards.")
@click.pass_context
def demo(ctx: click.Context, keep: Path | None) -> None:
    """See it work: real decisions go through a real server, and everything that is shown is checked.

    It makes a store of its own, which is removed at the end; with --store aws a board of its own, which is erased.
    """
    from pulse_kg.cli.demo import run_demo

    app = ctx.ensure_object(App)
    ctx.exit(run_demo(as_json=app.json, keep=keep or app.chosen_path, settings=app.settings))


@click.command(
    cls=Command,
    examples=(
        "pulse-kg ingest decisions.jsonl --board web",
        "pulse-kg ingest decisions.jsonl --board web --key-file ./ann.key --json",
        "zcat decisions.jsonl.gz | pulse-kg ingest - --board web",
    ),
    sections={"A line of the file": _LINE},
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--board", "board_id", required=True, metavar="BOARD", help="The board to fill.")
@click.option("--session-size", type=click.IntRange(min=1), metavar="N", help="The most decisions of one session.")
@key_file_option
@click.pass_context
def ingest(ctx: click.Context, file: Path, board_id: str, session_size: int | None, key_file: Path | None) -> None:
    """Load FILE (- is standard input), a decision history as JSON lines, through the same tools as any agent.

    The key comes from PULSE_KG_API_KEY. Run again, it adds nothing that is there.
    """
    from pulse_kg.cli.ingest import SESSION_SIZE, run_ingest

    app = ctx.ensure_object(App)
    host = app.container().tool_host()
    code = run_ingest(
        file,
        board_id=board_id,
        host=host,
        caller=opened(host, app, key_file),
        as_json=app.json,
        session_size=session_size or SESSION_SIZE,
        node_limit=app.settings.max_node_candidates,
        edge_limit=app.settings.max_edge_candidates,
    )
    ctx.exit(code)


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    examples=("pulse-kg bench", "pulse-kg bench --help"),
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def bench(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Run the benchmark with ARGUMENTS; it is part of a checkout, not of the installed package."""
    app = ctx.ensure_object(App)
    root = benchmark_root()
    if root is None:
        raise click.UsageError("The benchmark is not here: it is in the bench folder of a checkout, run by make bench.", ctx)
    given = [*arguments, "--json"] if app.json else list(arguments)
    ctx.exit(subprocess.run([sys.executable, "-m", "bench", *given], cwd=root, check=False).returncode)
