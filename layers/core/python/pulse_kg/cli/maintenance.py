"""`pulse-kg verify` and `pulse-kg rebuild`: the audit log against the stores, and the stores from the audit log."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Command, checked_store
from pulse_kg.cli.output import Table
from pulse_kg.usecases.boards import require_board

_SHOWN = 20  # findings
_MOST = 200  # findings of a board that the document has


@click.command(cls=Command, examples=("pulse-kg verify", "pulse-kg verify --board web --json"))
@click.option("--board", "board_id", metavar="BOARD", help="Only this board.")
@click.pass_context
def verify(ctx: click.Context, board_id: str | None) -> None:
    """Check that graph, vectors and outbox are what the audit log says.

    Prints what is wrong, and exits with 1 if anything is.
    """
    from pulse_kg.usecases.verify import verify_board

    app = ctx.ensure_object(App)
    container = app.container()
    chosen = container.boards.boards() if board_id is None else (require_board(board_id, container.boards),)
    results = [verify_board(b.board_id, container.services, progress=app.progress(b.board_id)) for b in chosen]
    clean = all(result.clean for result in results)
    boards: list[dict[str, Any]] = [
        {
            "board_id": r.board_id,
            "clean": r.clean,
            "commits": r.commits,
            "nodes": r.nodes,
            "edges": r.edges,
            "vectors": r.vectors,
            "findings": list(r.findings),
        }
        for r in results
    ]
    columns = ("board", "clean", "commits", "nodes", "edges", "vectors")
    table = Table(columns, [[b["board_id"], *(b[c] for c in columns[1:])] for b in boards], "There is no board, and so nothing wrong.")
    app.answer({"clean": clean, "boards": boards}, table, *_wrong(app, boards))
    ctx.exit(0 if clean else 1)


def _wrong(app: App, boards: Sequence[Mapping[str, Any]]) -> list[str]:
    """The findings for a reader, and what to do about them."""
    findings = [f"{b['board_id']}: {finding}" for b in boards for finding in b["findings"]]
    if not findings:
        return []
    more = [f"and {len(findings) - _SHOWN} more; --json shows up to {_MOST} of a board"] if len(findings) > _SHOWN else []
    path = app.settings.sqlite_path
    stores = ("STORE", "STORE") if path is None else (f"sqlite:{path}", f"sqlite:{path.with_name('rebuilt.db')}")
    ends = "--from {} --to {}".format(*map(shlex.quote, stores))
    return [*findings[:_SHOWN], *more, f"Restore a backup, or make the store anew: pulse-kg rebuild {ends}"]


@click.command(cls=Command, examples=("pulse-kg rebuild --from sqlite:./pulse-kg.db --to sqlite:./rebuilt.db",))
@click.option("--from", "source", required=True, metavar="STORE", callback=checked_store, help="The store with the audit log.")
@click.option("--to", "target", required=True, metavar="STORE", callback=checked_store, help="The store to fill; made if it is missing.")
@pass_app
def rebuild(app: App, source: str, target: str) -> None:
    """Make all boards of a store anew in another one, from the audit log alone.

    Agents, keys and open sessions are no part of the audit log and are not carried over. Interrupted, it goes on where it stopped.
    """
    from pulse_kg.usecases.rebuild import rebuild_board

    ends = replace(app.settings, store=source), replace(app.settings, store=target)
    paths = [settings.sqlite_path for settings in ends]
    if source == target or (paths[0] and paths[1] and paths[0].resolve() == paths[1].resolve()):
        raise click.UsageError("--from and --to are the same store.")
    old, new = app.open(ends[0]), app.open(ends[1], create=True)
    boards = old.boards.boards()
    done = {b.board_id: rebuild_board(b, old.commits, new.services, progress=app.progress(b.board_id)) for b in boards}
    rows = list(done.items())
    document = {"from": source, "to": target, "boards": [{"board_id": b, "commits_replayed": n} for b, n in rows]}
    table = Table(("board", "commits replayed"), rows, "There was no board to rebuild.")
    app.answer(document, table, "Agents and keys are not carried over: pulse-kg agents create makes them.")
