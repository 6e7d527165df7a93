"""JSON in columns: as it was given, unlike the domain's canonical form, so that what is read is what was written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def to_json(value: object) -> str:
    """Compact JSON; the order of keys and the kind of numbers stay."""
    return _ENCODER.encode(value)


def from_json(text: str) -> Any:
    """The inverse of `to_json`."""
    return json.loads(text)


def id_list(ids: Iterable[str]) -> str:
    """Ids for `json_each(?)`: one constant statement for any number of them."""
    return to_json(list(ids))
