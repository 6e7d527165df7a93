"""Instants: epoch milliseconds inside, RFC 3339 with three millisecond digits and `Z` outside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

Instant = int
"""Epoch milliseconds, UTC."""

_HOUR_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_INSTANT = re.compile(rf"(\d{{4}}-\d{{2}}-\d{{2}})[Tt ]({_HOUR_MINUTE}:[0-5]\d)(?:\.(\d+))?([Zz]|[+-]{_HOUR_MINUTE})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_instant(instant: Instant) -> str:
    """Epoch milliseconds as ``2026-05-07T16:30:00.000Z``."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def parse_instant(text: str) -> Instant:
    """Reads an RFC 3339 date or instant; a date is its first millisecond in UTC, finer digits are cut.

    Raises:
        ValueError: The text is neither, or names a day or time that does not exist.
    """
    if _DATE.fullmatch(text):
        moment, fraction = datetime.fromisoformat(text).replace(tzinfo=UTC), "0"
    else:
        found = _INSTANT.fullmatch(text)
        if found is None:
            raise ValueError("not an RFC 3339 date or instant")
        day, time, digits, zone = found.groups()
        moment, fraction = datetime.fromisoformat(f"{day}T{time}{'+00:00' if zone in 'Zz' else zone}"), digits or "0"
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    return whole * 1000 + int(fraction.ljust(3, "0")[:3])
