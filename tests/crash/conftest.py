"""What the crash tests counted, shown at the end of the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Report = Callable[..., None]

_COUNTED = pytest.StashKey[list[tuple[str, dict[str, Any]]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COUNTED] = []


@pytest.fixture
def report(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Report]:
    """Takes numbers by name; they are shown in the terminal's summary, and kept in the test's own folder."""
    counted: dict[str, Any] = {}

    def take(**numbers: Any) -> None:
        counted.update(numbers)

    yield take
    request.config.stash[_COUNTED].append((request.node.name, counted))
    (tmp_path / "report.json").write_text(json.dumps(counted))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counted = config.stash.get(_COUNTED, [])
    if counted:
        terminalreporter.section("counted by the crash tests")
    for name, numbers in counted:
        terminalreporter.write_line(f"{name}: " + ", ".join(f"{what.replace('_', ' ')} {number}" for what, number in numbers.items()))
