"""`pulse-kg verify`, `rebuild`, `reindex`, `relay` and `tick`: the audit log against the stores, and what is made again from them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Command, checked_store
from pulse_kg.cli.output import Table
from pulse_kg.errors import Problem
from pulse_kg.usecases.boards import refused, require_board

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container

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
    if path is None:
        more.append(
            "What is only unfinished, the relay finishes: pulse-kg --store aws relay. Vectors are made anew by: pulse-kg reindex BOARD"
        )
    stores = ("aws", "STORE") if path is None else (f"sqlite:{path}", f"sqlite:{path.with_name('rebuilt.db')}")
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


@click.command(cls=Command, examples=("pulse-kg reindex web", "pulse-kg --store aws reindex --all"))
@click.argument("board", required=False)
@click.option("--all", "whole", is_flag=True, help="With --store aws: build a new index of all boards beside the old one, and swap them.")
@click.pass_context
def reindex(ctx: click.Context, board: str | None, *, whole: bool) -> None:
    """Make the vectors of BOARD anew from the texts of its nodes; searches go on meanwhile.

    --all copies the vectors of all boards into a new index instead; commits are refused for its last moments, and succeed when they are
    tried again.
    """
    app = ctx.ensure_object(App)
    if whole == (board is not None):
        raise click.UsageError("Name a board, or give --all.", ctx)
    container = app.container()
    if board is None:
        _rebuild_index(app, container)
        return
    from pulse_kg.usecases.reindex import reindex_board

    require_board(board, container.boards)
    done = reindex_board(board, container.services, progress=app.progress(board, "texts"))
    document = {"board_id": board, "vectors": done.vectors, "removed": done.removed}
    strays = f", and {done.removed} of no node were removed" if done.removed else ""
    app.answer(document, f"The board {board} has {done.vectors} vectors, made anew{strays}.")


def _rebuild_index(app: App, container: Container) -> None:
    rebuild_index = container.rebuild_index
    if rebuild_index is None:
        raise refused("Nothing was done", [Problem("--all", "the embedded store has no index beside its boards: name a board")])
    document = rebuild_index(app.progress("index", "vectors"))
    app.answer(document, f"{document['documents']} vectors are in the new index {document['index']}, which took the place of the old one.")


@click.command(cls=Command, examples=("pulse-kg relay", "pulse-kg --store aws relay --json"))
@click.option("--seconds", type=click.FloatRange(min=1), default=50.0, show_default=True, help="How long it may take.")
@click.pass_context
def relay(ctx: click.Context, seconds: float) -> None:
    """Finish commits whose caller died, send the events that are due, and remove what was staged and never decided.

    On AWS a function does it every minute. Exits with 1 if a board failed.
    """
    app = ctx.ensure_object(App)
    report = app.container().relay_outbox(seconds)
    rows = [(name, report[name]) for name in ("boards", "applied", "published", "unstaged", "left")]
    failed = [f"{board}: {code}" for board, code in sorted(report["failed"].items())]
    app.answer(report, Table(("what", "number"), rows), *failed)
    ctx.exit(1 if failed else 0)


@click.command(cls=Command, examples=("pulse-kg tick", "pulse-kg tick --board web --json"))
@click.option("--board", "board_id", metavar="BOARD", help="Only this board.")
@click.option("--seconds", type=click.FloatRange(min=1), default=3_600.0, show_default=True, help="How long it may take.")
@click.pass_context
def tick(ctx: click.Context, board_id: str | None, seconds: float) -> None:
    """Write the hits that were counted into the nodes, and compute the relevance of all nodes for now.

    On AWS a function does it every hour. A run that broke off, or whose time was over, is gone on with by the next one. Exits with 1 if a
    board failed, or another run is under way.
    """
    app = ctx.ensure_object(App)
    container = app.container()
    if board_id is not None:
        require_board(board_id, container.boards)
    report = container.tick(seconds, board_id)
    rows = [(name, report[name]) for name in ("boards", "nodes", "hits", "left")]
    notes = [f"{board}: {code}" for board, code in sorted(report["failed"].items())]
    if report["running"]:
        notes.append("Another run is under way, and this one did nothing.")
    app.answer(report, Table(("what", "number"), rows), *notes)
    ctx.exit(1 if notes else 0)
