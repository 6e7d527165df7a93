"""`pulse-kg health`: whether everything is there, and the settings in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pulse_kg import __version__
from pulse_kg.cli.app import App
from pulse_kg.cli.commands import Command
from pulse_kg.cli.output import Table
from pulse_kg.errors import PulseError

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container


@click.command(cls=Command, examples=("pulse-kg health", "pulse-kg health --json"))
@click.pass_context
def health(ctx: click.Context) -> None:
    """Check the store and the embedding model, and show the settings in force.

    Exits with 1 if something is missing.
    """
    app = ctx.ensure_object(App)
    settings = app.settings.as_public_dict()
    container = app.container()
    problems: list[str] = []
    boards = container.boards.boards()
    store = {"address": app.settings.store, "boards": len(boards), "agents": len(container.identity.agents())}
    embedder = _embedder(container, problems, filled=any(board.commit_seq for board in boards))
    document = {
        "status": "failing" if problems else "ok",
        "version": __version__,
        "store": store,
        "embedder": embedder,
        "settings": settings,
        "problems": problems,
    }
    facts = [("status", document["status"]), ("version", __version__), *store.items(), *embedder.items()]
    tables = Table(("fact", "value"), facts), Table(("setting", "value"), list(settings.items()))
    app.answer(document, *tables, *(f"Problem: {problem}" for problem in problems))
    ctx.exit(1 if problems else 0)


def _embedder(container: Container, problems: list[str], *, filled: bool) -> dict[str, Any]:
    try:
        info = container.embedder.info()
        if filled:  # the check of an empty store would bind it to this model
            container.vectors.check_model(info)
    except PulseError as error:
        problems.append(error.message)
        return {}
    return {"model": info.model_id, "dimension": info.dimension, "search": container.vectors.match_mode}
