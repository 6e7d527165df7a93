"""Starts the local servers before the first test, if any test needs them; leaves nothing of one test to the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pulse_kg.adapters.aws import aws_session
from tests.support import local_stack

NEEDS = "served"
"""In the ids and marks of tests that run against the real servers."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Before the tests, so that the time of a first fetch is nobody's time-out."""
    if not session.config.option.collectonly and any(NEEDS in item.keywords for item in session.items):
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            local_stack.start()


@pytest.fixture(autouse=True)
def _a_session_of_the_driver_is_of_one_test() -> Iterator[None]:
    """It keeps credentials, and whatever a test put between the driver and AWS."""
    yield
    aws_session.cache_clear()


def pytest_sessionfinish() -> None:
    """Leaves no server behind."""
    local_stack.stop()
