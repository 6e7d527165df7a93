"""How answers look: one JSON document for programs; tables and lines for people, with colour only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from pulse_kg.mcp import jsontext


@dataclass(frozen=True)
class Table:
    """Rows under headings.

    Attributes:
        columns: The headings.
        rows: As many cells each; None is shown as nothing.
        empty: Said instead of a table without rows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty: str = "None."


Part = str | Table


def write_json(document: Mapping[str, Any]) -> None:
    """Writes one JSON document on standard output: indented for a reader at a terminal, else on one line."""
    click.echo(indented(document) if sys.stdout.isatty() else jsontext.encode(document))


def indented(document: Mapping[str, Any]) -> str:
    """The JSON text of a document, for a reader."""
    return json.dumps(document, indent=2, ensure_ascii=False)


def render(parts: Iterable[Part]) -> None:
    """Writes the parts of an answer for a reader."""
    for part in parts:
        if isinstance(part, str):
            click.echo(part)
        elif not part.rows:
            click.echo(part.empty)
        elif sys.stdout.isatty():
            _render_rich(part)
        else:
            click.echo("\n".join(plain_lines(part)))


def plain_lines(table: Table) -> list[str]:
    """A table as aligned text, one line a row."""
    cells = [list(table.columns), *([_cell(value) for value in row] for row in table.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(sorted(map(str, value)) if isinstance(value, set | frozenset) else map(str, value))
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return " ".join(str(value).split("\n"))


def _render_rich(table: Table) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in table.columns:
        shown.add_column(column, overflow="fold")
    for row in table.rows:
        # As Text, so that a title with square brackets is no markup.
        shown.add_row(*(Text(_cell(value)) for value in row))
    Console().print(shown)
