"""Results that wait outside of memory."""

from __future__ import annotations

import pytest

from pulse_kg.adapters.gremlin.spool import IN_MEMORY_BYTES, Spool


@pytest.mark.parametrize("size", [1, IN_MEMORY_BYTES // 50], ids=["in memory", "in a file"])
def test_results_come_back_as_they_were_in_the_order_of_their_keys(size: int) -> None:
    results = [{"id": f"n{n:03d}", "text": ["ß\u2028\n" * size], "number": 2**53 + 1, "share": 0.1 + 0.2, "yes": True} for n in range(60)]
    with Spool(lambda row: str(row["id"])) as spool:
        spool.extend(results[30:])
        spool.extend(results[:30])
        assert list(spool.in_order()) == results


def test_an_emptied_spool_has_forgotten_the_try_before() -> None:
    with Spool(str) as spool:
        spool.extend(["a long text", "b"])
        spool.emptied().extend(["c"])
        assert list(spool.in_order()) == ["c"]
