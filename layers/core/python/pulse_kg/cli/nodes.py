"""`pulse-kg nodes`: a node as people see it, and what they decide of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Group
from pulse_kg.cli.documents import edge_document, node_document
from pulse_kg.cli.output import Table, to_the_second
from pulse_kg.domain.audit import Administration
from pulse_kg.domain.ids import NODE_ID
from pulse_kg.domain.model import Node
from pulse_kg.errors import NodeNotFound, Problem
from pulse_kg.usecases.boards import refused, require_board

if TYPE_CHECKING:
    from pulse_kg.bootstrap import Container

BY = "administrator"
"""Who does it, in the audit row: the command line knows no agent."""

_board_option = click.option("--board", "board_id", metavar="BOARD", help="Its board; without it all boards are looked through.")
_reason_option = click.option("--reason", required=True, help="Why; it goes into the audit row.")


@click.group(
    cls=Group, examples=("pulse-kg nodes show dec_1f0a… --board web", "pulse-kg nodes revoke dec_1f0a… --reason 'Was never agreed'")
)
def nodes() -> None:
    """Nodes are what was consolidated. A change made here is a commit of the board, with an audit row."""


@nodes.command("show", examples=("pulse-kg nodes show dec_1f0a… --board web",))
@click.argument("node")
@_board_option
@pass_app
def show(app: App, node: str, board_id: str | None) -> None:
    """Show all properties of NODE, and its edges."""
    container = app.container()
    found = find_node(node, board_id, container)
    edges = container.graph.edges_of(found.board_id, [found.node_id])
    document = node_document(found)
    facts = [
        (key.replace("_", " "), to_the_second(value) if key.endswith("_at") else value)
        for key, value in document.items()
        if value not in (None, {}, "")
    ]
    rows = [(e.src, e.rel_type, e.dst, e.reason) for e in edges]
    properties = Table(("property", "value"), facts, texts=("value",))
    joined = Table(("from", "edge", "to", "reason"), rows, "It has no edge.", texts=("reason",))
    app.answer({**document, "edges": [edge_document(e) for e in edges]}, properties, joined)


@nodes.command(
    "curate",
    examples=(
        "pulse-kg nodes curate dec_1f0a… --reason 'Agreed in the review'",
        "pulse-kg nodes curate dec_1f0a… --off --reason 'Open again'",
    ),
)
@click.argument("node")
@_board_option
@_reason_option
@click.option("--boost", type=float, help="From 0 to 0.2, added to its relevance.")
@click.option("--off", is_flag=True, help="Agents may change it again.")
@pass_app
def curate(app: App, node: str, board_id: str | None, reason: str, boost: float | None, *, off: bool) -> None:
    """Put NODE under the care of people.

    Agents then neither change nor supersede it, until --off.
    """
    container = app.container()
    found = find_node(node, board_id, container)
    action = Administration(found.board_id, found.node_id, "curate", reason, BY, curated=not off, priority_boost=boost)
    _administer(app, container, action)


@nodes.command("revoke", examples=("pulse-kg nodes revoke dec_1f0a… --reason 'Was never agreed'",))
@click.argument("node")
@_board_option
@_reason_option
@pass_app
def revoke(app: App, node: str, board_id: str | None, reason: str) -> None:
    """Take NODE back.

    It stays in the graph, and every answer says that it is revoked.
    """
    container = app.container()
    found = find_node(node, board_id, container)
    _administer(app, container, Administration(found.board_id, found.node_id, "revoke", reason, BY))


def find_node(node_id: str, board_id: str | None, container: Container) -> Node:
    """The node of that id, on the board or on whichever has it.

    Raises:
        InvalidArgument: No node's id, no such board, or more than one board has such a node.
        NodeNotFound: There is none.
    """
    if not NODE_ID.fullmatch(node_id):
        raise refused("No node was found", [Problem("node", f"'{node_id}' has not the form of a node's id, such as dec_0123456789abcdef")])
    chosen = [b.board_id for b in container.boards.boards()] if board_id is None else [require_board(board_id, container.boards).board_id]
    found = [node for b in chosen for node in container.graph.nodes(b, [node_id]).values()]
    if len(found) > 1:
        boards = ", ".join(node.board_id for node in found)
        raise refused("More than one node has that id", [Problem("board", f"say which with --board: {boards}")])
    if not found:
        where = f"The board {board_id}" if board_id is not None else "No board"
        raise NodeNotFound(f"{where} has {'no' if board_id is not None else 'a'} node {node_id}.", {"node_ids": [node_id]})
    return found[0]


def _administer(app: App, container: Container, action: Administration) -> None:
    from pulse_kg.usecases.administration import administer_node

    answer = administer_node(action, container.services)
    text = f"{answer['action']} of {action.node_id} is commit {answer['audit_row_id']} of the board {action.board_id}."
    app.answer({**answer, "reason": action.reason}, text)
