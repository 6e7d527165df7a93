"""Starts the local servers before the first test, if any test needs them."""

from __future__ import annotations

import pytest

from tests.support import local_stack

NEEDS = "served"
"""In the ids and marks of tests that run against the real servers."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Before the tests, so that the time of a first fetch is nobody's time-out."""
    if not session.config.option.collectonly and any(NEEDS in item.keywords for item in session.items):
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            local_stack.start()


def pytest_sessionfinish() -> None:
    """Leaves no server behind."""
    local_stack.stop()
