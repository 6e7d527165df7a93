"""`pulse-kg export`: a board as JSON lines or GraphML."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Command
from pulse_kg.cli.documents import board_document, edge_document, node_document
from pulse_kg.cli.output import counted
from pulse_kg.domain.model import Board
from pulse_kg.domain.schema import SCHEMA_VERSION
from pulse_kg.errors import Problem
from pulse_kg.mcp import jsontext
from pulse_kg.usecases.boards import refused, require_board

if TYPE_CHECKING:
    from pulse_kg.ports.graph import GraphStore


@click.command(
    cls=Command,
    examples=("pulse-kg export web --format jsonl > web.jsonl", "pulse-kg export web --format graphml --output web.graphml"),
)
@click.argument("board")
@click.option("--format", "form", type=click.Choice(["jsonl", "graphml"]), required=True, help="JSON lines, or GraphML.")
@click.option("--output", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="The file; standard output if left out.")
@pass_app
def export(app: App, board: str, form: str, output: Path | None) -> None:
    """Write the nodes and edges of BOARD as they are after its last commit."""
    if app.json and output is None:
        raise click.UsageError("With --json, --output FILE says where the export goes.")
    container = app.container()
    if output is None:
        with container.store.snapshot():
            _Export(require_board(board, container.boards), container.graph).write(form, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        try:
            with container.store.snapshot():
                exported = _Export(require_board(board, container.boards), container.graph)
                with _opened(output) as target:
                    exported.write(form, target)
        except OSError as error:
            raise refused("The export is not complete", [Problem("output", f"{output} can't be written: {error.strerror}")]) from None
        document = {"board_id": board, "format": form, "file": str(output), "commit_seq": exported.board.commit_seq, **exported.counts}
        written = f"{counted(exported.counts['nodes'], 'node')} and {counted(exported.counts['edges'], 'edge')}"
        app.answer(document, f"Wrote {written} to {output}.")


def _opened(path: Path) -> BinaryIO:
    try:
        # As the store: others of the machine have no business with it. A file that is there keeps its permissions.
        return open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600))
    except OSError as error:
        raise click.BadParameter(f"{path} can't be written: {error.strerror}", param_hint="--output") from None


class _Export:
    """What a board had at one commit; to be written inside one snapshot of the store.

    Args:
        board: As it is at that commit.
        graph: Its nodes and edges.
    """

    def __init__(self, board: Board, graph: GraphStore) -> None:
        self.board = board
        self.counts = {"nodes": 0, "edges": 0}
        self._graph = graph

    def write(self, form: str, target: BinaryIO) -> None:
        """Writes everything."""
        if form == "graphml":
            from pulse_kg.cli.graphml import write_graphml

            write_graphml(self.board.board_id, self._nodes, self._edges, target)
        else:
            target.writelines(jsontext.encode(line) + b"\n" for line in self._lines())

    def _lines(self) -> Iterator[dict[str, Any]]:
        yield {"kind": "board", "schema_version": SCHEMA_VERSION, **board_document(self.board)}
        yield from ({"kind": "node", **node} for node in self._nodes())
        yield from ({"kind": "edge", **edge} for edge in self._edges())

    def _nodes(self) -> Iterator[dict[str, Any]]:
        self.counts["nodes"] = 0
        for node in self._graph.all_nodes(self.board.board_id):
            if node.created_seq <= self.board.commit_seq:
                self.counts["nodes"] += 1
                yield node_document(node)

    def _edges(self) -> Iterator[dict[str, Any]]:
        self.counts["edges"] = 0
        for edge in self._graph.all_edges(self.board.board_id):
            if edge.commit_seq <= self.board.commit_seq:
                self.counts["edges"] += 1
                yield edge_document(edge)
