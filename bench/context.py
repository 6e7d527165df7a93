"""What the parts of a run share: how thorough it is, where it works, and how it tells of its progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""
WORK = ROOT / ".local" / "bench"
"""Stores of the benchmark; those of loaded boards are kept for the next run."""


class Skipped(Exception):
    """A part can't run here; the message says why."""


@dataclass(frozen=True)
class Table:
    """Figures as they are printed; numbers are formatted by who prints them."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@dataclass
class Part:
    """What a part found.

    Attributes:
        figures: For the report, JSON-ready.
        tables: The same for a reader.
        notes: What one must know to read them.
    """

    figures: dict[str, Any]
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """One run.

    Attributes:
        quick: Few repetitions, small boards.
        data: The folder of the test data.
        scratch: A folder of this run alone.
    """

    quick: bool
    data: Path
    scratch: Path

    def times(self, full: int, quick: int) -> int:
        """How often something is repeated."""
        return quick if self.quick else full

    def data_file(self, name: str) -> Path:
        """A file of the test data.

        Raises:
            Skipped: It is not there.
        """
        path = self.data / name
        if not path.is_file():
            raise Skipped(f"the test data have no {name}; name their folder with --data")
        return path

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar on standard error, where that is a terminal; yields what moves it by one."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)


def default_data() -> Path:
    """The test data beside the checkout."""
    return ROOT.parent / "shared" / "data"
