"""Source references: where in which artifact a node was stated."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

KEYED_TYPES = ("spec", "card", "sprint", "refinement", "ideation", "decision", "bug")
"""The artifact types that have a key of their own (`spec_id`, …); any other comes as `artifact_id` with `artifact_type`."""

_ESCAPED = str.maketrans({"%": "%25", ":": "%3A", "#": "%23"})


@dataclass(frozen=True)
class Artifact:
    """What is consolidated.

    Attributes:
        source_type: `[a-z][a-z0-9_]{0,31}`.
        source_id: 1..200 printable characters.
    """

    source_type: str
    source_id: str

    @property
    def canonical(self) -> str:
        """`spec:spec_007`, with `:`, `#` and `%` inside the id percent-encoded."""
        return f"{self.source_type}:{self.source_id.translate(_ESCAPED)}"


@dataclass(frozen=True)
class SourceRef:
    """A place in an artifact.

    Attributes:
        artifact: The artifact.
        section: The place inside it, or None for the whole.
    """

    artifact: Artifact
    section: str | None = None

    @property
    def canonical(self) -> str:
        """`spec:spec_007#retry-strategy`."""
        return self.artifact.canonical + (f"#{self.section.translate(_ESCAPED)}" if self.section is not None else "")

    @property
    def stable(self) -> str | None:
        """The canonical text where it can identify a node: only a reference with a section can."""
        return self.canonical if self.section is not None else None


def parse_ref(text: str) -> SourceRef:
    """Reads canonical text.

    Raises:
        ValueError: The text is not canonical.
    """
    head, mark, section = text.partition("#")
    source_type, colon, source_id = head.partition(":")
    ref = SourceRef(Artifact(source_type, unquote(source_id)), unquote(section) if mark else None)
    if not (source_type and colon and source_id and (section or not mark)) or ref.canonical != text:
        raise ValueError("not a canonical source reference")
    return ref


def artifact_of(canonical_ref: str) -> str:
    """`spec:spec_007` of `spec:spec_007#retry-strategy`."""
    return canonical_ref.partition("#")[0]


def stable_part(canonical_ref: str) -> str | None:
    """The text itself if it has a section, else None."""
    return canonical_ref if "#" in canonical_ref else None
