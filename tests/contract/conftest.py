"""Every store, for the suites of the ports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plans import NOW
from tests.support.stores import STORES, Stores


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.served] if name == "served" else []) for name in STORES])
def store_name(request: pytest.FixtureRequest) -> str:
    """Which store a test runs against."""
    name: str = request.param
    return name


@pytest.fixture
def store(store_name: str, tmp_path: Path) -> Iterator[Stores]:
    """An empty store with the boards alpha and beta."""
    with STORES[store_name](tmp_path) as made:
        made.boards.create("alpha", "Alpha", now=NOW)
        made.boards.create("beta", "Beta", now=NOW)
        yield made
