"""A run of the benchmark of the served form."""

from __future__ import annotations

from dataclasses import dataclass

from bench.context import Context
from bench.served.world import World


@dataclass(frozen=True)
class ServedContext(Context):
    """One run.

    Attributes:
        world: Its stores.
    """

    world: World
