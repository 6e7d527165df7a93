"""The tools as a file: what tools/list answers without loading a single tool. `catalogue_file` makes it; a test compares."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final

from pulse_kg.mcp.host import Annotations, ToolSpec

FILE: Final = Path(__file__).with_name("catalogue.json")


@cache
def catalogue() -> tuple[ToolSpec, ...]:
    """Every tool, sorted by name."""
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(ToolSpec(**{**entry, "annotations": Annotations(**entry["annotations"])}) for entry in entries)
