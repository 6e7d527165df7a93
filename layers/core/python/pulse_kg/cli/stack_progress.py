"""How the servers' start is shown, on standard error: bars on a terminal, else a line for each step."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from rich.progress import TaskID


class Progress(Protocol):
    """Tells a person how far each server is; called from several threads."""

    def step(self, name: str, text: str) -> None:
        """A server is at a new step."""
        ...

    def detail(self, name: str, text: str) -> None:
        """How far it is within the step; only where it can be overwritten."""
        ...

    def done(self, name: str, text: str) -> None:
        """There is nothing more to wait for."""
        ...


class Lines:
    """One line a step: for logs, and for terminals that belong to a program.

    Args:
        titles: How each server is called.
    """

    def __init__(self, titles: Mapping[str, str]) -> None:
        self._titles = titles

    def step(self, name: str, text: str) -> None:
        """Writes it."""
        click.echo(f"{self._titles[name]}: {text}", err=True)

    def detail(self, name: str, text: str) -> None:
        """Says nothing."""

    def done(self, name: str, text: str) -> None:
        """Writes it."""
        self.step(name, text)


@contextmanager
def progress_on_stderr(titles: Mapping[str, str], *, as_json: bool) -> Iterator[Progress]:
    """Bars on a terminal, else lines.

    Args:
        titles: How each server is called, by name.
        as_json: Whether a program reads the answer.
    """
    if as_json or not sys.stderr.isatty():
        yield Lines(titles)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = TextColumn("{task.fields[title]}"), BarColumn(bar_width=20), TimeElapsedColumn(), TextColumn("{task.description}")
    with RichProgress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {name: bars.add_task("", title=title, total=None) for name, title in titles.items()}
        steps: dict[str, str] = {}

        class _Bars:
            def step(self, name: str, text: str) -> None:
                steps[name] = text
                bars.update(tasks[name], description=escape(text))

            def detail(self, name: str, text: str) -> None:
                bars.update(tasks[name], description=escape(f"{steps.get(name, '')} {text}"))

            def done(self, name: str, text: str) -> None:
                bars.update(tasks[name], description=escape(text), total=1, completed=1)

        yield _Bars()
