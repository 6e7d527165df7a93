"""openCypher's conformance kit, as far as it only reads: every case that is not listed passes."""

from __future__ import annotations

import sys
from functools import cache

import pytest

from tests.conformance.kit import ABSENT, CASES_FILE, Case, judge, read_cases, read_expected_failures, tally

CASES = {case.case_id: case for case in read_cases(CASES_FILE)} if CASES_FILE.is_file() else {}
EXPECTED_FAILURES = read_expected_failures()
GATES = {"rows": 0.998, "errors at compile time": 0.95, "errors at runtime": 0.97, "errors at any time": 0.97}
"""Kind of case → the share that passes at least, the listed ones counted as failed."""

pytestmark = pytest.mark.skipif(not CASES, reason=ABSENT)


@cache
def judged(case_id: str) -> str | None:
    return judge(CASES[case_id])


@pytest.mark.parametrize("case_id", sorted(CASES) or ["none"])
def test_a_case_passes_unless_it_is_listed(case_id: str) -> None:
    wrong, reason = judged(case_id), EXPECTED_FAILURES.get(case_id)
    if reason is None:
        assert wrong is None, f"{wrong}\n{_told(CASES[case_id])}"
    else:
        assert wrong is not None, f"it is listed as failing ({reason}) and passes: take it off the list"


def test_every_listed_failure_is_a_case_of_the_kit_and_has_a_reason() -> None:
    if CASES_FILE.name == "cases.jsonl":
        assert EXPECTED_FAILURES.keys() <= CASES.keys()
    assert all(EXPECTED_FAILURES.values())


def test_of_each_kind_as_many_cases_pass_as_was_promised(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {case_id: wrong for case_id in CASES if (wrong := judged(case_id)) is not None}
    counts = tally(tuple(CASES.values()), failed)
    with capsys.disabled():
        sys.stdout.write("".join(f"\nconformance, {kind}: {passed}" for kind, passed in counts.items()) + "\n")
    assert counts, "the file has no cases"
    assert {kind: passed.share for kind, passed in counts.items() if passed.share < GATES[kind]} == {}


def _told(case: Case) -> str:
    return "\n".join((*case.setup, case.query))
