"""Runs a file of conformance cases and tells which fail.

    python -m tests.conformance ../shared/tck/cases.jsonl

The last line is `N passed, N failed`. Exit status: 0, or 1 if a case failed that expected_failures.txt does not list.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.conformance.kit import ABSENT, CASES_FILE, judge, read_cases, read_expected_failures, tally

_TELL_EVERY = 2.0
"""Seconds between two words of progress."""


def main(arguments: list[str] | None = None) -> int:
    """The program; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=str(__doc__).partition("\n")[0])
    parser.add_argument("cases", nargs="?", type=Path, default=CASES_FILE, help=f"one case a line, as JSON ({CASES_FILE.name} of the kit)")
    path = parser.parse_args(arguments).cases
    if not path.is_file():
        parser.error(ABSENT if path == CASES_FILE else f"there is no file {path}")
    cases, expected = read_cases(path), read_expected_failures()
    failed: dict[str, str] = {}
    told = time.monotonic()
    for number, case in enumerate(cases):
        if time.monotonic() - told > _TELL_EVERY:
            told = time.monotonic()
            sys.stderr.write(f"{number:,} of {len(cases):,} cases, {len(failed)} failed\n")
        wrong = judge(case)
        if wrong is not None:
            failed[case.case_id] = wrong
            reason = expected.get(case.case_id)
            sys.stdout.write(f"failed{'' if reason is None else f', as expected ({reason})'}: {case.case_id}\n    {wrong}\n")
    for case in cases:
        if case.case_id in expected and case.case_id not in failed:
            sys.stdout.write(f"passed, although expected_failures.txt lists it: {case.case_id}\n")
    for kind, counts in tally(cases, failed).items():
        sys.stdout.write(f"{kind}: {counts}\n")
    sys.stdout.write(f"{len(cases) - len(failed)} passed, {len(failed)} failed\n")
    return 1 if failed.keys() - expected.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
