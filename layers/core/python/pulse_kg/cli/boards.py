"""`pulse-kg boards`: make, look at, set and erase boards."""

from __future__ import annotations

import click

from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Group
from pulse_kg.cli.documents import board_document
from pulse_kg.cli.output import Part, Table, counted, to_the_second
from pulse_kg.domain.schema import NODE_TYPES
from pulse_kg.errors import StoreUnavailable
from pulse_kg.usecases.boards import BoardOverview, add_attribute, check_new_board, create_board, erase_board, set_board, show_board

_NOT_TOUCHED = "Not touched, and yours to remove: backups of the file, exports."
_AGES_OUT = (
    "What only ages out: the tables' point-in-time recovery (35 days), snapshots of graph and index, events in queues (14 days), logs. "
    "Yours to remove: exports."
)


@click.group(cls=Group, examples=("pulse-kg boards create web --name 'Web team'", "pulse-kg boards list"))
def boards() -> None:
    """Boards are the tenants: every node and edge belongs to one."""


@boards.command("create", examples=("pulse-kg boards create web", "pulse-kg boards create web --name 'Web team' --json"))
@click.argument("board")
@click.option("--name", help="For people; the id if it is left out.")
@pass_app
def create(app: App, board: str, name: str | None) -> None:
    """Make BOARD, and the store if it is missing."""
    check_new_board(board, name)  # before the store is made
    new_store = app.missing_path
    container = app.container(create=True)
    made = create_board(board, name, boards=container.boards, now=container.clock.now())
    where = f" in the new store {new_store}" if new_store is not None else ""
    app.answer(board_document(made), f"Made the board {board}{where}. Next: pulse-kg agents create NAME --preset Spec --board {board}")


@boards.command("list", examples=("pulse-kg boards list",))
@pass_app
def list_boards(app: App) -> None:
    """List all boards."""
    found = app.container().boards.boards()
    rows = [(b.board_id, b.name, b.commit_seq, "erasing" if b.erasing else None) for b in found]
    empty = "There is no board yet. Make one with: pulse-kg boards create BOARD"
    table = Table(("board", "name", "commits", "state"), rows, empty, texts=("name",))
    app.answer({"boards": [board_document(b) for b in found]}, table)


@boards.command("show", examples=("pulse-kg boards show web",))
@click.argument("board")
@pass_app
def show(app: App, board: str) -> None:
    """Show BOARD.

    Its counts, its last commit, its settings, and the attributes added to its schema.
    """
    container = app.container()
    overview = show_board(board, boards=container.boards, graph=container.graph, sessions=container.sessions, now=container.clock.now())
    found = overview.board
    document = {
        **board_document(found),
        "counts": dict(overview.counts),
        "settings": dict(overview.settings),
        "added_attributes": {node_type: dict(keys) for node_type, keys in found.added_attributes.items()},
    }
    app.answer(document, *_overview_parts(overview))


@boards.command("set", examples=("pulse-kg boards set web strict_attributes=true",))
@click.argument("board")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE")
@pass_app
def set_settings(app: App, board: str, settings: tuple[str, ...]) -> None:
    """Change settings of BOARD.

    strict_attributes=true refuses attribute keys that its schema has not; false drops them with a warning.
    """
    changes: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"'{setting}' must be KEY=VALUE, such as strict_attributes=true", param_hint="KEY=VALUE")
        changes[key] = value
    after = set_board(board, changes, boards=app.container().boards)
    app.answer({"board_id": board, "settings": dict(after)}, *(f"{key} = {_shown(value)}" for key, value in after.items()))


@boards.group("schema", cls=Group, examples=("pulse-kg boards schema web add Decision owner text",), invoke_without_command=False)
@click.argument("board")
@click.pass_context
def schema(ctx: click.Context, board: str) -> None:
    """Widen the schema of BOARD."""
    ctx.meta["pulse_kg.board"] = board


@schema.command(
    "add", examples=("pulse-kg boards schema web add Decision owner text", "pulse-kg boards schema web add Bug estimate number")
)
@click.argument("node_type", metavar="TYPE")
@click.argument("key")
@click.argument("kind")
@click.pass_context
def schema_add(ctx: click.Context, node_type: str, key: str, kind: str) -> None:
    """Add the attribute KEY to the node type TYPE.

    KIND is text, instant, bool, number, text_or_number, texts or object_or_text. A key can't be taken back.
    """
    app = ctx.ensure_object(App)
    board = str(ctx.meta["pulse_kg.board"])
    after = add_attribute(board, node_type, key, kind, boards=app.container().boards)
    document = {"board_id": board, "type": node_type, "key": key, "kind": kind, "added_attributes": dict(after.added_attributes[node_type])}
    app.answer(document, f"{node_type} has the attribute {key} ({kind}) on the board {board} now.")


@boards.command("erase", examples=("pulse-kg boards erase web --yes",))
@click.argument("board")
@click.option("--yes", is_flag=True, help="Do it; without it nothing is removed.")
@pass_app
def erase(app: App, board: str, *, yes: bool) -> None:
    """Remove BOARD and every trace of it.

    It can't be undone, and the id is never used again.
    """
    container = app.container()
    if not yes:
        raise click.UsageError(_would_remove(app, board))
    left = erase_board(board, boards=container.boards, now=container.clock.now())
    remaining = {kind: count for kind, count in left.items() if count}
    if remaining:
        listed = ", ".join(f"{count} {kind}" for kind, count in remaining.items())
        message = f"Traces of the board are left: {listed}. Erase it again to go on."
        raise StoreUnavailable("board", message, {"left": remaining})
    elsewhere = _NOT_TOUCHED if app.settings.sqlite_path else _AGES_OUT
    document = {"board_id": board, "erased": True, "left": dict(left), "ages_out": elsewhere}
    app.answer(document, f"Erased the board {board}; no trace is left, and its id is not used again.", elsewhere)


def _would_remove(app: App, board: str) -> str:
    container = app.container()
    overview = show_board(board, boards=container.boards, graph=container.graph, sessions=container.sessions, now=container.clock.now())
    counts, commits = overview.counts, overview.board.commit_seq
    listed = (
        counted(counts["nodes"], "node"),
        counted(counts["edges"], "edge"),
        counted(commits, "commit with its audit row", "commits with audit rows"),
        counted(counts["open_sessions"], "open session"),
    )
    return f"This would remove the board {board} for good: {', '.join(listed)}. Nothing was removed; say --yes to do it."


def _overview_parts(overview: BoardOverview) -> list[Part]:
    board = overview.board
    facts = [
        ("board", board.board_id),
        ("name", board.name),
        ("created", to_the_second(board_document(board)["created_at"])),
        ("last commit", board.commit_seq),
        *((name.replace("_", " "), count) for name, count in overview.counts.items()),
        *((name, _shown(value)) for name, value in overview.settings.items()),
    ]
    parts: list[Part] = [Table(("fact", "value"), facts, texts=("value",))]
    added = [(t, key, kind) for t in NODE_TYPES for key, kind in sorted(board.added_attributes.get(t, {}).items())]
    return [*parts, Table(("type", "added attribute", "kind"), added)] if added else parts


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
