"""Runs queries of tests over small graphs in memory."""

from __future__ import annotations

from typing import Any

from pulse_kg.cypher.engine import QueryResult, compile_query, run
from pulse_kg.ports.graph_source import GraphSource
from tests.support.cypher_loader import source_of

NOW = 1_767_225_600_000
"""2026-01-01T00:00:00.000Z, when each query runs."""


def result_of(query: str, source: GraphSource, *, pushdown: bool = True, max_rows: int = 10_000, **params: Any) -> QueryResult:
    """What the engine answers over a source."""
    return run(compile_query(query, params), source, now=NOW, max_rows=max_rows, pushdown=pushdown)


def rows_of(query: str, *setup: str, **params: Any) -> list[list[Any]]:
    """The rows over the graph that these statements build."""
    return [list(row) for row in result_of(query, source_of(*setup), **params).rows]


def column_of(query: str, *setup: str, **params: Any) -> list[Any]:
    """The first column."""
    return [row[0] for row in rows_of(query, *setup, **params)]
