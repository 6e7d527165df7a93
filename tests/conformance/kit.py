"""The cases of openCypher's conformance kit, each judged against the engine over a graph in memory.

A file of cases has one JSON object a line: `id`, `setup` (statements that build the graph), `params`, `query`, and either `expect`
(columns and rows) or `error` (its type, phase and detail). The kit is under the Apache License 2.0; its NOTICE lies beside the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pulse_kg.cypher.engine import QueryResult, compile_query, run
from pulse_kg.cypher.memory_source import MemorySource
from pulse_kg.errors import InvalidCypher, PulseError, UnsafeCypher
from tests.support.cypher_cells import difference, read_cell
from tests.support.cypher_loader import build

BESIDE = Path(__file__).parents[3] / "shared" / "tck" / "cases.jsonl"
CASES_FILE = Path(os.environ.get("CONFORMANCE_CASES", BESIDE))
"""The cases: what the variable names, else what lies beside the checkout."""
ABSENT = "there is no ../shared/tck/cases.jsonl, and CONFORMANCE_CASES names no other file"
EXPECTED_FAILURES_FILE = Path(__file__).parent / "expected_failures.txt"

NOW = 1_767_225_600_000
"""2026-01-01T00:00:00.000Z, when each query runs."""
MAX_ROWS = 10_000
"""More than any case answers."""


@dataclass(frozen=True)
class Case:
    """A query over a graph, and what is right.

    Attributes:
        case_id: Feature file, scenario and number of the example.
        setup: Statements that build the graph.
        params: The query's parameters.
        query: The query.
        expect: Columns and rows; None where an error is right.
        error: Its type, phase and detail; None where rows are right.
    """

    case_id: str
    setup: tuple[str, ...]
    params: Mapping[str, Any]
    query: str
    expect: Mapping[str, Any] | None
    error: Mapping[str, str] | None

    def source(self) -> MemorySource:
        """Its graph."""
        return _source(self.setup)


@cache
def _source(setup: tuple[str, ...]) -> MemorySource:
    return build(setup).source()


def read_cases(path: Path) -> tuple[Case, ...]:
    """The cases of a file, in its order."""
    return tuple(_case(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def _case(entry: Mapping[str, Any]) -> Case:
    return Case(
        case_id=entry["id"],
        setup=tuple(entry["setup"] or ()),
        params={name: read_cell(cell) for name, cell in entry["params"] or ()},
        query=entry["query"],
        expect=entry.get("expect"),
        error=entry.get("error"),
    )


def read_expected_failures(path: Path = EXPECTED_FAILURES_FILE) -> dict[str, str]:
    """Of each case that may fail its id and the reason."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("# ")]
    return {case_id: reason for case_id, _, reason in (line.partition(" :: ") for line in lines)}


def judge(case: Case) -> str | None:
    """What is wrong with the engine's answer to a case; None if nothing is."""
    try:
        return _rows_differ(case) if case.error is None else _error_differs(case)
    except Exception as crash:  # noqa: BLE001 - a crash is a finding like any other, and the cases after it are judged too
        return f"{type(crash).__name__}: {crash}"


def answer(case: Case, *, pushdown: bool = True) -> QueryResult:
    """What the engine answers."""
    return run(compile_query(case.query, case.params), case.source(), now=NOW, max_rows=MAX_ROWS, pushdown=pushdown)


def _rows_differ(case: Case) -> str | None:
    assert case.expect is not None
    try:
        result = answer(case)
    except PulseError as refused:
        return f"refused with {refused.code}: {refused}"
    if list(result.columns) != case.expect["columns"] and not case.expect["empty"]:
        return f"the columns are {list(result.columns)} and should be {case.expect['columns']}"
    expected = [[read_cell(cell) for cell in row] for row in case.expect["rows"]]
    return difference(expected, result.rows, ordered=case.expect["ordered"], ignore_list_order=case.expect["ignore_list_order"])


def _error_differs(case: Case) -> str | None:
    """An error of the text must be found without the graph; another one may be found earlier than the kit says."""
    assert case.error is not None
    compiling = case.error["phase"] == "compile time"
    attempt: Callable[[], Any] = (lambda: compile_query(case.query, case.params)) if compiling else (lambda: answer(case))
    try:
        attempt()
    except InvalidCypher:
        return None
    except UnsafeCypher as refused:
        return f"it is refused as unsafe, although it only reads: {refused}"
    return f"no error, where the kit wants {case.error['type']} ({case.error['detail']}) at {case.error['phase']}"


@dataclass(frozen=True)
class Tally:
    """How many cases of a kind pass."""

    passed: int
    of: int

    @property
    def share(self) -> float:
        """From 0 to 1; of no cases all pass."""
        return self.passed / self.of if self.of else 1.0

    def __str__(self) -> str:
        return f"{self.passed:,} of {self.of:,} ({self.share:.2%})"


def tally(cases: Sequence[Case], failed: Mapping[str, str]) -> dict[str, Tally]:
    """Counts by what is right for a case: `rows`, or the phase of the `error`."""
    kinds: dict[str, list[bool]] = {}
    for case in cases:
        kind = "rows" if case.error is None else "errors at " + case.error["phase"]
        kinds.setdefault(kind, []).append(case.case_id not in failed)
    return {kind: Tally(sum(passed), len(passed)) for kind, passed in kinds.items()}
