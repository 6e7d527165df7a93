"""`pulse-kg health`: whether everything is there, and the settings in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pulse_kg import __version__
from pulse_kg.cli.app import App, MissingStore
from pulse_kg.cli.commands import Command
from pulse_kg.cli.output import Table
from pulse_kg.errors import PulseError, StoreUnavailable

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container
    from pulse_kg.settings import Settings

_NO_STORE = "none yet, 'pulse-kg boards create BOARD' makes it"


@click.command(cls=Command, examples=("pulse-kg health", "pulse-kg health --json"))
@click.pass_context
def health(ctx: click.Context) -> None:
    """Check the store and the embedding model, and show the settings in force.

    The model's files are read as a whole and compared with their digests. Exits with 1 if something is missing.
    """
    app = ctx.ensure_object(App)
    problems: list[str] = []
    model = _model(app.settings, problems)
    store = _store(app, problems, model)
    settings = app.settings.as_public_dict()
    document = {
        "status": "failing" if problems else "ok",
        "version": __version__,
        "store": store,
        "embedder": model,
        "settings": settings,
        "problems": problems,
    }
    facts = [("status", document["status"]), ("version", __version__), *_store_facts(store), *_model_facts(model)]
    shown = Table(("fact", "value"), facts, texts=("value",)), Table(("setting", "value"), list(settings.items()), texts=("value",))
    app.answer(document, *shown, *(f"Problem: {problem}" for problem in problems))
    ctx.exit(1 if problems else 0)


def _model(settings: Settings, problems: list[str]) -> dict[str, Any]:
    from pulse_kg.adapters.embedding.model_files import ModelUnavailable, check_files
    from pulse_kg.bootstrap import embedder_of

    try:
        info = embedder_of(settings).info()
        checked = settings.embedder == "minilm"
        if checked:
            check_files(settings.model_dir)
    except ModelUnavailable as error:
        problems.append(error.message)
        return {"state": error.state}
    return {"state": "ok", "model": info.model_id, "dimension": info.dimension, **({"files": "SHA-256 as built"} if checked else {})}


def _store(app: App, problems: list[str], model: dict[str, Any]) -> dict[str, Any]:
    path = app.settings.sqlite_path
    address = {"address": app.settings.store, "file": None if path is None else str(path.absolute())}
    try:
        container = app.container()
        container.store.ping()
        boards = container.boards.boards()
        if model["state"] == "ok":
            model["search"] = container.vectors.match_mode
            _check_model(container, problems, filled=any(board.commit_seq for board in boards))
        return {"state": "ok", **address, "boards": len(boards), "agents": len(container.identity.agents())}
    except MissingStore as error:
        problems.append(error.message)
        return {"state": "missing", **address}
    except StoreUnavailable as error:
        problems.append(app.located(error))
        return {"state": "failing", **address}


def _check_model(container: Container, problems: list[str], *, filled: bool) -> None:
    if filled:  # the check of an empty store would bind it to this model
        try:
            container.vectors.check_model(container.embedder.info())
        except PulseError as error:
            problems.append(error.message)


def _store_facts(store: dict[str, Any]) -> list[tuple[str, object]]:
    if store["state"] == "ok":
        return [("store", store["file"] or store["address"]), ("boards", store["boards"]), ("agents", store["agents"])]
    return [("store", _NO_STORE if store["state"] == "missing" else store["state"]), ("address", store["file"] or store["address"])]


def _model_facts(model: dict[str, Any]) -> list[tuple[str, object]]:
    if model["state"] != "ok":
        return [("model", model["state"])]
    return [(name.replace("files", "model files"), value) for name, value in model.items() if name != "state"]
