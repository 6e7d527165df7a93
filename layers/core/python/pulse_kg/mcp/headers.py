"""What the values of HTTP headers mean here: content types, preferences, keys, origins, wrapped names."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Final

DEFAULT_ALLOWED_ORIGINS: Final = (
    "http://localhost:*",
    "https://localhost:*",
    "http://127.0.0.1:*",
    "https://127.0.0.1:*",
    "http://[::1]:*",
    "https://[::1]:*",
)
"""Pages of this machine, on any port and on the default one."""

_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=")


def decode_sentinel(value: str | None) -> str | None:
    """The text of a header that may be wrapped as ``=?base64?…?=``, the protocol's form for what a header can't hold.

    A wrapper that is not the canonical base64 of UTF-8 is `None`, which equals no value of a body.
    """
    wrapped = _SENTINEL.fullmatch(value) if value is not None else None
    if wrapped is None:
        return value
    payload = wrapped.group(1)
    try:
        data = base64.b64decode(payload, validate=True)
        text = data.decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    return text if base64.b64encode(data).decode("ascii") == payload else None


def api_key(headers: Mapping[str, str]) -> str | None:
    """The key of a call, or `None`.

    A bearer token wins over X-API-Key, because a gateway in between may use that header for keys of its own; any other
    scheme of Authorization is somebody else's and is passed over.
    """
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "").strip() or None


def is_json(content_type: str | None) -> bool:
    """Whether a content type is JSON in UTF-8; parameters other than the charset do not matter."""
    essence, *parameters = (content_type or "").split(";")
    if essence.strip().lower() != "application/json":
        return False
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
            return False
    return True


def accepts_json(accept: str | None) -> bool:
    """Whether an answer in JSON is acceptable.

    No header, an empty one, and one that asks only for an event stream all are: clients send what their library does,
    and read JSON none the less. JSON is excluded by weight zero, or by a list in which nothing covers it.
    """
    weights: dict[str, float] = {}
    for entry in (accept or "").split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        if media_range:
            weights[media_range] = max(weights.get(media_range, 0.0), _weight(parameters))
    if not weights:
        return True
    for media_range in ("application/json", "application/*", "*/*"):
        if media_range in weights:
            return weights[media_range] > 0
    return weights.get("text/event-stream", 0.0) > 0


def is_allowed_origin(origin: str, allowed: Sequence[str]) -> bool:
    """Whether an Origin is one of those allowed.

    Args:
        origin: The header's value.
        allowed: Origins; one that ends in ``:*`` stands for any port and for none, and ``*`` for every origin.
    """
    folded = origin.strip().lower()
    for pattern in allowed:
        wanted = pattern.strip().lower().rstrip("/")
        if wanted in ("*", folded):
            return True
        site = wanted.removesuffix(":*")
        if site != wanted and (folded == site or (folded.startswith(f"{site}:") and folded[len(site) + 1 :].isdecimal())):
            return True
    return False


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0
