"""The bounds of a query and its result, without the engine: other tools tell them too."""

from __future__ import annotations

from typing import Final

MAX_BYTES: Final = 16 * 1024
"""Longest query, in bytes of UTF-8."""
MAX_TOKENS: Final = 5_000
MAX_DEPTH: Final = 100
"""How deep parentheses, lists, maps, subqueries and the like may lie in one another."""
MAX_CLAUSES: Final = 100
MAX_PATTERN: Final = 100
"""Elements in the patterns of one MATCH."""
MAX_HOPS: Final = 20
"""Longest path of a relationship pattern with a star."""
DEFAULT_ROWS: Final = 1_000
"""Rows of a result whose query has no LIMIT of its own."""
MOST_ROWS: Final = 10_000
"""Rows of a result, whatever its LIMIT."""
