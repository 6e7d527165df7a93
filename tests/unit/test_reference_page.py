"""The generated page of the tools."""

from __future__ import annotations

from pathlib import Path

from pulse_kg.mcp.reference import reference_page

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"


def test_the_page_of_the_tools_is_what_their_declarations_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_page(), "run: python -m pulse_kg.mcp.reference docs/tools.md"
