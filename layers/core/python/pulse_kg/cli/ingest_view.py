"""How an ingest shows what it does, on standard error, and what became of it, as text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from pulse_kg.cli.output import counted

if TYPE_CHECKING:
    from pulse_kg.cli.ingest_run import Report

_LISTED = 10  # lines of a list that a reader is shown; --json has all


class Progress(Protocol):
    """Tells a person how far it is."""

    def begin(self, what: str) -> None:
        """A session begins."""
        ...

    def stated(self, documents: int) -> None:
        """So many documents of the session are with the server."""
        ...

    def end(self, documents: int) -> None:
        """The session is over, with so many documents in all."""
        ...

    def note(self, text: str) -> None:
        """Something else to know."""
        ...


class _Lines:
    """One line a session: for logs, and for terminals that belong to a program."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._what = ""

    def begin(self, what: str) -> None:
        self._what = what

    def stated(self, documents: int) -> None:
        pass  # a line for each would be too many

    def end(self, documents: int) -> None:
        self._done += documents
        self.note(f"{self._done} of {self._total} documents ({self._what})")

    def note(self, text: str) -> None:
        click.echo(text, err=True)


@contextmanager
def progress_on_stderr(total: int, *, as_json: bool) -> Iterator[Progress]:
    """A bar on a terminal, else one line a session.

    Args:
        total: Documents in all.
        as_json: Whether a program reads the answer.
    """
    if as_json or not sys.stderr.isatty():
        yield _Lines(total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    bar = RichProgress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)
    )
    with bar:
        task = bar.add_task("documents", total=total)

        class _Bar:
            done = 0

            def begin(self, what: str) -> None:
                bar.update(task, description=what)

            def stated(self, documents: int) -> None:
                bar.update(task, completed=self.done + documents)

            def end(self, documents: int) -> None:
                self.done += documents
                bar.update(task, completed=self.done)

            def note(self, text: str) -> None:
                bar.console.print(text, markup=False, highlight=False)

        yield _Bar()


def summary_lines(report: Report) -> list[str]:
    """The report for a reader."""
    lines = [
        f"{report.file}: {counted(report.documents, 'document')} into the board {report.board_id} in {report.seconds:.1f} s",
        "  added      "
        + ", ".join(
            (
                counted(report.added["Decision"], "decision"),
                counted(report.added["Alternative"], "alternative"),
                counted(report.edges, "edge"),
            )
        ),
        f"  changed    {report.updated} updated, {report.superseded} superseded",
        f"  unchanged  {report.noops} there already (NOOP), {counted(report.nothing_changed, 'session')} with nothing new",
        f"  sessions   {report.sessions} committed" + (f", {counted(report.conflicts, 'conflict')} settled" if report.conflicts else ""),
    ]
    lines += _listed("edge", "left out", [f"{e['src']} {e['rel']} {e['dst']}: {e['reason']}" for e in report.skipped])
    lines += _listed("proposal", "overridden with ADD, because another document is another decision", _changes(report.overridden))
    lines += _listed("update", "that the rules proposed", _changes(report.implied))
    lines += _listed("warning", "", report.warnings)
    return lines


def _changes(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{c['hint']} {c['ref']} «{c['title']}» onto {c['target']}: {c['rationale']}" for c in changes]


def _listed(word: str, what: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"    and {len(lines) - _LISTED} more (--json lists all)"] if len(lines) > _LISTED else []
    return [f"  {counted(len(lines), word)} {what}".rstrip() + ":", *(f"    {line}" for line in lines[:_LISTED]), *more]
