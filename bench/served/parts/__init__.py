"""The parts of the benchmark of the served form, by the names that ``--only`` takes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from bench.context import Part
from bench.served.context import ServedContext

NAMES: Final[Mapping[str, str]] = {
    "commits": "sessions of 10 and 50 candidates: each call, and every round trip of a commit by store and step",
    "units": "what DynamoDB would charge for each tool, and how large the items are",
    "boards": "commit, propose and get_similar_nodes on boards of 100, 1,000 and 10,000 nodes",
    "hubs": "commits beside a node with 10, 100 and 1,000 edges",
    "concurrency": "commits a second of 1, 4 and 8 threads with stores of their own, on one board and on eight",
}
"""Name → what it measures."""


def runner(name: str) -> Callable[[ServedContext], Part]:
    """The function of a part; imported when it runs."""
    run: Callable[[ServedContext], Part] = import_module(f"bench.served.parts.{name}").run
    return run
