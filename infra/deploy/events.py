"""The sample events in events/, with a key put in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from infra.deploy.layers import ROOT

FOLDER: Final = ROOT / "events"
PLACEHOLDER: Final = "${PULSE_KG_API_KEY}"
"""Stands for the caller's key: no event holds one."""


def event_of(function: str, api_key: str | None = None, *, folder: Path = FOLDER) -> Any:
    """The sample event of a function.

    Args:
        function: Its folder's name.
        api_key: Takes the placeholder's place; the placeholder stays without one, and opens nothing.
        folder: Of the events.

    Raises:
        SystemExit: There is no such event.
    """
    path = folder / f"{function}.json"
    if not path.is_file():
        raise SystemExit(f"events: there is no {path.name}; there are {', '.join(sorted(p.stem for p in folder.glob('*.json')))}")
    event = json.loads(path.read_text(encoding="utf-8"))
    return event if api_key is None else _filled(event, api_key)


def _filled(value: Any, api_key: str) -> Any:
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, api_key)
    if isinstance(value, list):
        return [_filled(item, api_key) for item in value]
    if isinstance(value, dict):
        return {name: _filled(item, api_key) for name, item in value.items()}
    return value
