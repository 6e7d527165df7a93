"""The story that the demo tells: which documents are read, in which order, and what happens on the way.

How Python packaging came to be what it is, by the documents that decided it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from pulse_kg.cli.peps import Document, content_hash, read_documents

BOARD: Final = "packaging"
AUTHOR: Final = "archivist"
SECOND: Final = "reviewer"

_METADATA: Final = "core-metadata"
_VERSIONS: Final = {241: 1, 314: 2, 345: 3, 426: 4, 566: 5}
"""The documents that are one specification, the metadata of a package, in its versions."""


@dataclass(frozen=True)
class Read:
    """A document is read, and what it decided is committed.

    Attributes:
        pep: The document.
        supersedes: Pairs of documents, newer and older, whose supersedes edge is stated.
        depends_on: Pairs of documents, the dependent one first, whose depends_on edge is stated.
        contradicts: Pairs of documents whose contradicts edge is stated.
        by_rule: The document that this one supersedes without an edge that says so.
        ideas: Whether the rejected ideas are read too.
        again: Whether it is a later reading: the same document, in the next version of its artifact.
        override: Why the proposal for the Decision is overridden with ADD; None where it is not.
        said: What a reader is told before.
    """

    pep: int
    supersedes: tuple[tuple[int, int], ...] = ()
    depends_on: tuple[tuple[int, int], ...] = ()
    contradicts: tuple[tuple[int, int], ...] = ()
    by_rule: int | None = None
    ideas: bool = True
    again: bool = False
    override: str | None = None
    said: str = ""


@dataclass(frozen=True)
class Replay:
    """A document is handed in once more, unchanged."""

    pep: int
    said: str


@dataclass(frozen=True)
class Race:
    """Two agents read the same document at the same time."""

    pep: int
    said: str


@dataclass(frozen=True)
class GiveUp:
    """A session is begun, looked at, and aborted."""

    pep: int
    said: str


Scene = Read | Replay | Race | GiveUp


@dataclass(frozen=True)
class Chapter:
    """Some years.

    Attributes:
        years: Which.
        title: What they were about.
        scenes: What happens.
    """

    years: str
    title: str
    scenes: tuple[Scene, ...]


STORY: Final = (
    Chapter(
        "2001 to 2009",
        "a file that describes a package",
        (
            Read(241),
            Read(
                314,
                by_rule=241,
                said="Version 1.1 of the same specification. No edge is stated; the server finds by itself that it replaces version 1.0.",
            ),
            Read(345, by_rule=314),
            Read(386),
        ),
    ),
    Chapter(
        "2012 to 2014",
        "wheels, and versions that can be compared",
        (
            Read(425),
            Read(
                426,
                override="PEP 426 was withdrawn and never released. Metadata 1.2 stayed in force until 2.1, as the header of PEP 345 says.",
                said="Version 2.0. The proposal is reasonable, and wrong: 2.0 was withdrawn. The agent overrides it, with its reason.",
            ),
            Read(427),
            Read(438),
            Read(
                440,
                supersedes=((440, 386),),
                depends_on=((426, 440),),
                said="Its header says that it replaces PEP 386, so the agent states the edge.",
            ),
            Read(459, depends_on=((459, 426),)),
            Read(470, supersedes=((470, 438),)),
        ),
    ),
    Chapter(
        "2015 to 2017",
        "an index, and builds without setup.py",
        (
            Read(503),
            Replay(
                503, "The same document once more, with the same hash: the server has nothing to do, and says so before any work is done."
            ),
            Race(517, f"Two agents, {AUTHOR} and {SECOND}, read PEP 517 at the same time. Both are told to add it; both commit."),
            Read(508, depends_on=((426, 508),)),
            Read(513),
            Read(518, depends_on=((426, 518),)),
            Read(566, supersedes=((566, 345), (566, 426)), said="Metadata 2.1 ends both lines, that of 1.2 and the withdrawn 2.0."),
        ),
    ),
    Chapter(
        "2018 to 2021",
        "pyproject.toml",
        (
            Read(571),
            Read(599, said="Nearly the same text as PEP 571. Similarity alone would merge them; they are two decisions, and stay two."),
            Read(621, ideas=False),
            Read(631, supersedes=((621, 631),), said="Merged into PEP 621 before it was final: it arrives as history."),
            Read(
                633,
                contradicts=((633, 631),),
                said="A rival of PEP 631: another form for the same field. The agent states that the two contradict each other.",
            ),
            Read(621, again=True, said="PEP 621 is read again, this time to the end, where it lists the ideas that it rejected."),
            Read(658),
            Read(665),
        ),
    ),
    Chapter(
        "2022 to 2025",
        "scripts, lock files, and what is not decided yet",
        (
            Read(691),
            Read(722),
            Read(723, supersedes=((723, 722),)),
            Read(751, supersedes=((751, 665),)),
            GiveUp(817, "A draft. The agent looks at what is near, finds nothing decided, and aborts."),
        ),
    ),
)
"""The chapters; with `documents` everything that the demo does."""


def documents() -> dict[int, Document]:
    """The documents of the story by number."""
    data = (files("pulse_kg.cli.data") / "packaging_peps.jsonl").read_bytes()
    return {d.pep: d for d in read_documents(data)}


def label(pep: int) -> str:
    """`PEP 8`."""
    return f"PEP {pep}"


@dataclass(frozen=True)
class Text:
    """A document as a session takes it.

    Attributes:
        source: source_type, source_id, source_version.
        nodes: The Decision, then its Alternatives.
        content_hash: Of the nodes.
    """

    source: tuple[str, str, int]
    nodes: tuple[dict[str, Any], ...]
    content_hash: str


def text_of(document: Document, *, ideas: bool = True, again: bool = False) -> Text:
    """What is read in a document.

    Args:
        document: The document.
        ideas: Whether its rejected ideas are read too.
        again: Whether it is the second reading.
    """
    nodes = [document.decision(), *(document.alternatives() if ideas else ())]
    version = _VERSIONS.get(document.pep)
    if version is None:
        source = ("spec", document.spec_id, 2 if again else 1)
    else:
        source = ("spec", _METADATA, version)
        # Where the versions of one specification state the same thing, so that the next one finds it.
        nodes = [{**node, "source_ref": {**node["source_ref"], "spec_id": _METADATA}} for node in nodes]
        for node in nodes[1:]:
            node["source_ref"]["section"] = f"{document.spec_id}-{node['source_ref']['section']}"
    return Text(source, tuple(nodes), content_hash(nodes))
