"""Worlds for tests that drive the tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.world import Agent, World, opened, opened_served


@pytest.fixture(params=["embedded", pytest.param("served", marks=pytest.mark.served)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """In memory, and again on the real servers, with the boards alpha and beta."""
    with opened() if request.param == "embedded" else opened_served() as made:
        made.board("alpha")
        made.board("beta")
        yield made


@pytest.fixture
def agent(world: World) -> Agent:
    """An agent with all permissions on the board alpha."""
    return world.agent("ada")
