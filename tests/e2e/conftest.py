"""Worlds for tests that drive the tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.world import Agent, World, opened


@pytest.fixture
def world() -> Iterator[World]:
    """In memory, with the boards alpha and beta."""
    with opened() as made:
        made.board("alpha")
        made.board("beta")
        yield made


@pytest.fixture
def agent(world: World) -> Agent:
    """An agent with all permissions on the board alpha."""
    return world.agent("ada")
