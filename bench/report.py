"""A report: written as JSON, printed as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from bench.context import ROOT, Part, Table

REPORTS = ROOT / "bench" / "reports"
LATEST = REPORTS / "latest.json"
"""The last full run; it is committed."""
LOCAL = REPORTS / "local" / "latest.json"
"""The last run of some parts, or of a quick one; it is not."""

_TERMINAL_WIDTH = 200  # where there is no terminal
_HUNDRED = 100


def write(report: Mapping[str, Any], path: Path) -> None:
    """Writes the report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", "utf-8")


def show(report: Mapping[str, Any], parts: Mapping[str, Part]) -> None:
    """Prints the report on standard output."""
    console = _console()
    machine = report["machine"]
    facts: list[tuple[Any, ...]] = [
        (name.replace("_", " "), f"{v['p50']} ({v['min']} to {v['max']})" if isinstance(v, dict) else str(v)) for name, v in machine.items()
    ]
    _print(console, Table("Machine", ("fact", "value"), facts))
    for part in parts.values():
        for table in part.tables:
            _print(console, table)
        for note in part.notes:
            console.print(Text(note, style="dim"))
        console.print()
    for name, reason in report["skipped"].items():
        console.print(Text(f"{name}: skipped, {reason}", style="yellow"))
    _print(console, Table("Aims", ("what", "aim", "is", "met"), [(a["what"], a["aim"], a["is"], _met(a)) for a in report["aims"]]))
    _print(console, _noise_table(report["noise"], report["seconds"]))


def print_tables(tables: Iterable[Table]) -> None:
    """Prints tables on standard output."""
    console = _console()
    for table in tables:
        _print(console, table)


def _console() -> Console:
    return Console() if Console().is_terminal else Console(width=_TERMINAL_WIDTH)


def _met(aim: Mapping[str, Any]) -> str:
    return "met" if aim["met"] else "missed"


def _noise_table(noise: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]], seconds: Mapping[str, float]) -> Table:
    moments = ("before", "after")
    rows: list[tuple[Any, ...]] = [
        (
            name,
            seconds[name],
            *(f"{both[when]['loop_ms']['p50']} ({both[when]['loop_ms']['min']} to {both[when]['loop_ms']['max']})" for when in moments),
            *(f"{both[when]['crowding']['p50']:.2f} (to {both[when]['crowding']['max']:.2f})" for when in moments),
        )
        for name, both in noise.items()
    ]
    columns = ("part", "took s", "loop ms, before", "after", "crowding, before", "after")
    return Table("Noise: one loop before and after each part; crowding is 1 where all cores are free", columns, rows)


def _print(console: Console, table: Table) -> None:
    if not table.rows:
        console.print(Text(f"{table.title}: none"))
        return
    shown = RichTable(title=table.title, title_justify="left")
    for i, column in enumerate(table.columns):
        numeric = all(isinstance(row[i], int | float) or row[i] in {"", None} for row in table.rows)
        shown.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in table.rows:
        shown.add_row(*(_cell(value) for value in row))
    console.print(shown)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= _HUNDRED else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
