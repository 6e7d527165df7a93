"""The parts of the benchmark, by the names that ``--only`` takes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from bench.context import Context, Part

NAMES: Final[Mapping[str, str]] = {
    "embedding": "the model alone: 1, 10 and 32 short texts, 8 long ones, the load",
    "start": "processes from their start to their first answer, and the memory they take",
    "sessions": "whole sessions of 1, 10 and 50 candidates on boards of 100, 1,000 and 10,000 nodes",
    "http": "the same over the MCP endpoint: 10 candidates, 1,000 nodes",
    "vectors": "the vector search alone: 1,000, 10,000 and 50,000 vectors",
    "commits": "commits alone: 1, 10, 50 and 500 nodes, on the disk and in memory",
    "concurrency": "commits a second of 1, 2, 4 and 8 processes, on one board and on eight",
    "quality": "what is proposed for 703 real decisions, judged by their own headers",
}
"""Name → what it measures."""


def runner(name: str) -> Callable[[Context], Part]:
    """The function of a part; imported when it runs."""
    run: Callable[[Context], Part] = import_module(f"bench.parts.{name}").run
    return run
