"""The revisions of the Model Context Protocol that are spoken here, and what each of them knows.

Revisions are an enumeration: their dates are names, and nothing compares them as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class Revision(Enum):
    """A supported revision; the value is its name on the wire."""

    MARCH_2025 = "2025-03-26"
    JUNE_2025 = "2025-06-18"
    NOVEMBER_2025 = "2025-11-25"
    JULY_2026 = "2026-07-28"


@dataclass(frozen=True)
class Features:
    """What a revision knows, as far as this server's answers differ by it.

    Attributes:
        stateless: Each request carries its version and capabilities in ``_meta``; there is no `initialize`.
        titles: A tool and a server have a ``title`` beside the name.
        structured_results: A tool has an ``outputSchema``, a result ``structuredContent``.
    """

    stateless: bool
    titles: bool
    structured_results: bool


FEATURES: Final[Mapping[Revision, Features]] = MappingProxyType(
    {
        Revision.MARCH_2025: Features(stateless=False, titles=False, structured_results=False),
        Revision.JUNE_2025: Features(stateless=False, titles=True, structured_results=True),
        Revision.NOVEMBER_2025: Features(stateless=False, titles=True, structured_results=True),
        Revision.JULY_2026: Features(stateless=True, titles=True, structured_results=True),
    }
)

NEWEST_FIRST: Final = (Revision.JULY_2026, Revision.NOVEMBER_2025, Revision.JUNE_2025, Revision.MARCH_2025)
"""All revisions, in the order in which a client should prefer them."""

NEWEST_BY_INITIALIZE: Final = Revision.NOVEMBER_2025
"""What `initialize` answers to a client that asks for a revision which is not one of its own."""

ASSUMED_WITHOUT_HEADER: Final = Revision.MARCH_2025
"""The last revision whose clients send no version header; a request without one is taken to be of it."""

_FIRST_REVISION: Final = "2024-11-05"
"""Reached by `initialize` like its successors, but not served: its transport needs a stream that stays open."""

_BY_NAME: Final[Mapping[str, Revision]] = MappingProxyType({revision.value: revision for revision in Revision})


def by_initialize(name: object) -> Revision | None:
    """The revision of that name, if `initialize` can negotiate it."""
    revision = _BY_NAME.get(name) if isinstance(name, str) else None
    return None if revision is None or FEATURES[revision].stateless else revision


def by_envelope(name: str) -> Revision | None:
    """The revision of that name, if requests state it in their ``_meta``."""
    revision = _BY_NAME.get(name)
    return revision if revision is not None and FEATURES[revision].stateless else None


def is_of_initialize_era(name: str) -> bool:
    """Whether the name is one of a revision that begins with `initialize`, served here or not."""
    return name == _FIRST_REVISION or by_initialize(name) is not None


def supported_names() -> list[str]:
    """The names of all supported revisions, newest first."""
    return [revision.value for revision in NEWEST_FIRST]
