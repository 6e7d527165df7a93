"""Makes the file of the catalogue from the tools' declarations: ``python -m pulse_kg.lambda_edge.catalogue_file``."""

from __future__ import annotations

import json
from dataclasses import asdict

from pulse_kg.lambda_edge.catalogue import FILE
from pulse_kg.mcp.tools import all_tools


def declared() -> str:
    """The text that the file should have."""
    specs = sorted((tool.spec for tool in all_tools()), key=lambda spec: spec.name)
    return json.dumps([asdict(spec) for spec in specs], indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(declared(), encoding="utf-8")
