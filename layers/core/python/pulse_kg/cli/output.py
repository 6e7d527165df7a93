"""How answers look: one JSON document for programs; tables and lines for people, with colour only on a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pulse_kg.mcp import jsontext

if TYPE_CHECKING:
    from rich.console import Console

_GAP: Final = 2  # blanks between columns
_FRAME: Final = 3  # columns that a table on a terminal takes for each of its own
_LEAST_TEXT: Final = 20  # columns of a terminal that a text needs to be read beside others
_FRACTION: Final = re.compile(r"\.\d+(?=Z$)")
_DECIMALS: Final = 4  # of a score

_T = TypeVar("_T")


@dataclass(frozen=True)
class Table:
    """Rows under headings.

    Attributes:
        columns: The headings.
        rows: As many cells each; None is shown as nothing.
        empty: Said instead of a table without rows.
        texts: The columns with prose, which may be broken over lines; ids, times and numbers never are.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty: str = "None."
    texts: Collection[str] = ()


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
    cells = [list(table.columns), *_cells(table)]
    widths = _widths(cells)
    return [(" " * _GAP).join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def to_the_second(moment: str | None) -> str | None:
    """An instant as tables show it: RFC 3339 without a fraction."""
    return None if moment is None else _FRACTION.sub("", moment)


def counted(number: int, word: str, plural: str | None = None) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {word if number == 1 else plural or word + 's'}"


def _cells(table: Table) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in table.rows]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return str(round(value, _DECIMALS))
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(sorted(map(str, value)) if isinstance(value, set | frozenset) else map(str, value))
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return " ".join(str(value).split("\n"))


def _render_rich(table: Table) -> None:
    from rich.console import Console

    console = Console()
    texts = {place for place, column in enumerate(table.columns) if column in table.texts}
    widths = _widths([list(table.columns), *_cells(table)])
    room = console.width - sum(width for place, width in enumerate(widths) if place not in texts) - _FRAME * len(widths)
    if sum(min(widths[place], _LEAST_TEXT) for place in texts) <= room:
        _render_beside(table, texts, console)
    else:
        _render_below(table, texts, console)


def _render_beside(table: Table, texts: Collection[int], console: Console) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for place, column in enumerate(table.columns):
        shown.add_column(column, overflow="fold", no_wrap=place not in texts)
    for row in _cells(table):
        # As Text, so that a title with square brackets is no markup.
        shown.add_row(*map(Text, row))
    console.print(shown)


def _render_below(table: Table, texts: Collection[int], console: Console) -> None:
    """For a terminal that is too narrow: the texts of a row stand in lines of their own, below the rest of it."""
    from rich.padding import Padding
    from rich.text import Text

    def kept(row: Sequence[_T]) -> list[_T]:
        return [cell for place, cell in enumerate(row) if place not in texts]

    heading, *lines = plain_lines(Table(kept(table.columns), [kept(row) for row in table.rows]))
    console.print(Text(heading, "bold"), soft_wrap=True)
    for line, row in zip(lines, _cells(table), strict=True):
        console.print(Text(line), soft_wrap=True)
        for place in sorted(texts):
            if row[place]:
                console.print(Padding(Text(row[place]), (0, 0, 0, _GAP)))
