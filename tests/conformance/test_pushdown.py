"""What is pushed to the store only narrows what is fetched: answers are the same without it, in the same order."""

from __future__ import annotations

from typing import Any

import pytest

from pulse_kg.errors import InvalidCypher
from tests.conformance.kit import ABSENT, CASES_FILE, Case, answer, read_cases
from tests.support.cypher_cells import form

CASES = [case for case in read_cases(CASES_FILE) if case.setup] if CASES_FILE.is_file() else []


@pytest.mark.skipif(not CASES, reason=ABSENT)
def test_every_case_with_a_graph_is_answered_alike_with_and_without_pushdown() -> None:
    different = [case.case_id for case in CASES if _outcome(case, pushdown=True) != _outcome(case, pushdown=False)]
    assert len(CASES) > 400
    assert different == []


def _outcome(case: Case, *, pushdown: bool) -> Any:
    try:
        result = answer(case, pushdown=pushdown)
    except InvalidCypher as refused:
        return refused.details.get("kind")
    return result.columns, [form(row) for row in result.rows]
