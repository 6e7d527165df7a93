"""The requirement marker: registered here, and checked against the list when tests are collected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.protocol.fakes import FakeHost, Wire
from tests.protocol.requirements import all_ids, expand


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): the protocol requirements that a test covers, see requirements.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = all_ids()
    for item in items:
        for marker in item.iter_markers("requirement"):
            unknown = {name for argument in marker.args for name in expand(argument)} - known
            if unknown:
                raise pytest.UsageError(f"{item.nodeid} names unknown requirements: {', '.join(sorted(unknown))}")


@pytest.fixture
def host() -> Iterator[FakeHost]:
    """A host with four tools; whatever a test left waiting is let go at its end."""
    fake = FakeHost()
    yield fake
    fake.gate.set()


@pytest.fixture
def wire(host: FakeHost) -> Wire:
    """The HTTP routes over that host, without a server."""
    return Wire(host)
