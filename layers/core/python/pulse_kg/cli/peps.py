"""A decision history in a file, one document a line, as what the tools take: nodes, edges, and sessions of a fit size.

A document becomes a Decision, each idea that it rejected an Alternative that the Decision relates to. Its header says
what it supersedes and depends on. Everything here is computed from the file alone, the same at each run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pulse_kg.domain.instants import parse_instant
from pulse_kg.domain.schema import canonical_json
from pulse_kg.errors import InvalidArgument, Problem
from pulse_kg.mcp import jsontext
from pulse_kg.mcp.tools.add_node_candidate import AddNodeInput

Rel = Literal["supersedes", "depends_on"]

_REVOKED = frozenset({"Rejected", "Withdrawn"})
_ANY_SESSION = "kgs_"  # the tools' checks of a node want one, and do not look at it
_Number = Annotated[int, Field(ge=0, le=10**9)]
_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda _: "is required",
    "string_type": lambda _: "must be a text",
    "int_type": lambda _: "must be a whole number",
    "int_parsing": lambda _: "must be a whole number",
    "int_from_float": lambda _: "must be a whole number",
    "tuple_type": lambda _: "must be a list",
    "model_type": lambda _: "must be a JSON object",
    "model_attributes_type": lambda _: "must be a JSON object",
    "greater_than_equal": lambda c: f"must be {c['ge']} or more",
    "less_than_equal": lambda c: f"must be {c['le']} or less",
}
"""Pydantic's kind of error → our words for it."""


class RejectedIdea(BaseModel):
    """An idea that a document considered and discarded."""

    model_config = ConfigDict(frozen=True, strict=True)

    title: str
    reason_discarded: str = ""


class Document(BaseModel):
    """A line of the file; fields that nothing is made of are passed over.

    Attributes:
        pep: The document's number.
        title: Its own title.
        status: As the header states it.
        created: RFC 3339.
        abstract: Its first paragraphs.
        requires: Documents that it depends on.
        replaces: Documents that it supersedes.
        superseded_by: Documents that supersede it.
        rejected: The ideas that it rejects.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    pep: _Number
    title: str
    status: str
    created: str
    abstract: str = ""
    requires: tuple[_Number, ...] = Field(default=(), strict=False)
    replaces: tuple[_Number, ...] = Field(default=(), strict=False)
    superseded_by: tuple[_Number, ...] = Field(default=(), strict=False)
    rejected: tuple[RejectedIdea, ...] = Field(default=(), strict=False)

    @property
    def spec_id(self) -> str:
        """`pep-0008`."""
        return spec_id(self.pep)

    @property
    def order(self) -> tuple[int, int]:
        """When it was made, then its number."""
        return parse_instant(self.created), self.pep

    def decision(self) -> dict[str, Any]:
        """The Decision, as add_node_candidate takes it."""
        return {
            "node_type": "Decision",
            "title": self.title,
            "body": self.abstract,
            "attributes": {"decided_at": self.created, "status": "revoked" if self.status in _REVOKED else "active"},
            "source_ref": {"spec_id": self.spec_id, "section": "decision"},
        }

    def alternatives(self) -> list[dict[str, Any]]:
        """The Alternatives, as add_node_candidate takes them."""
        return [
            {
                "node_type": "Alternative",
                "title": idea.title,
                "attributes": {"reason_discarded": idea.reason_discarded} if idea.reason_discarded.strip() else {},
                "source_ref": {"spec_id": self.spec_id, "section": f"rejected-{number}"},
            }
            for number, idea in enumerate(self.rejected, 1)
        ]


@dataclass(frozen=True)
class Link:
    """An edge between the Decisions of two documents."""

    src: int
    rel: Rel
    dst: int

    def __str__(self) -> str:
        return f"{spec_id(self.src)} {self.rel} {spec_id(self.dst)}"


@dataclass(frozen=True)
class Batch:
    """What one session takes.

    Attributes:
        number: From 1.
        documents: In the order in which they were made.
        links: The edges whose later end is one of the documents.
    """

    number: int
    documents: tuple[Document, ...]
    links: tuple[Link, ...]

    @property
    def earlier(self) -> tuple[int, ...]:
        """The ends of its links that other sessions bring, sorted."""
        own = {d.pep for d in self.documents}
        return tuple(sorted({end for link in self.links for end in (link.src, link.dst)} - own))

    @property
    def content_hash(self) -> str:
        """`sha256:` + 64 hex digits over everything that it writes."""
        nodes = [node for d in self.documents for node in (d.decision(), *d.alternatives())]
        return content_hash([nodes, [[link.src, link.rel, link.dst] for link in self.links]])


def spec_id(number: int) -> str:
    """`pep-0008`."""
    return f"pep-{number:04d}"


def content_hash(content: object) -> str:
    """`sha256:` + 64 hex digits over a JSON value."""
    return "sha256:" + hashlib.sha256(canonical_json(content).encode()).hexdigest()


def read_documents(data: bytes) -> list[Document]:
    """The documents of a file, in the order in which they were made.

    Every node that would be made of them passes the tools' own checks.

    Args:
        data: JSON lines in UTF-8; blank lines are passed over.

    Raises:
        InvalidArgument: Lines that can't be read, with the number and the problems of each.
    """
    documents: list[Document] = []
    problems: list[Problem] = []
    lines: dict[int, int] = {}
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        document = _read(line, f"line {number}", problems)
        if document is None:
            continue
        first = lines.setdefault(document.pep, number)
        if first != number:
            problems.append(Problem(f"line {number}", f"pep {document.pep} is on line {first} already"))
        documents.append(document)
    if problems:
        count = len({p.path.partition(":")[0] for p in problems})
        raise InvalidArgument(f"{count} line{'s' * (count > 1)} of the file can't be read, and nothing was ingested.", problems)
    if not documents:
        raise InvalidArgument("The file has no documents.", [Problem("file", "must hold one JSON object a line")])
    return sorted(documents, key=lambda d: d.order)


def _read(line: bytes, where: str, problems: list[Problem]) -> Document | None:
    before = len(problems)
    try:
        document = Document.model_validate(jsontext.decode(line))
    except jsontext.MalformedJson as error:
        problems.append(Problem(where, f"is not JSON: {error.reason}"))
        return None
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            path = ".".join(map(str, fault["loc"]))
            words = _WORDS.get(fault["type"])
            problem = words(fault.get("ctx", {})) if words else fault["msg"].replace("Input should", "should", 1)
            problems.append(Problem(f"{where}: {path}" if path else where, problem))
        return None
    try:
        parse_instant(document.created)
    except ValueError as error:
        problems.append(Problem(f"{where}: created", f"is {error}"))
    for node in (document.decision(), *document.alternatives()):
        section = node["source_ref"]["section"]
        problems += [Problem(f"{where}: {section}.{p.path}", p.problem) for p in _faults(node)]
    return document if len(problems) == before else None


def _faults(node: Mapping[str, Any]) -> Sequence[Problem]:
    arguments = {"session_id": _ANY_SESSION, **node}
    try:
        AddNodeInput.read(arguments)
    except InvalidArgument as error:
        return error.problems
    return AddNodeInput.more_problems(arguments)


def links_of(documents: Sequence[Document]) -> tuple[list[Link], list[Link]]:
    """The edges that the headers state, each once, and those of them whose other end the file does not have."""
    stated: dict[Link, None] = {}
    for d in documents:
        stated.update((Link(d.pep, "supersedes", other), None) for other in d.replaces)
        stated.update((Link(other, "supersedes", d.pep), None) for other in d.superseded_by)
        stated.update((Link(d.pep, "depends_on", other), None) for other in d.requires)
    known = {d.pep for d in documents}
    return [s for s in stated if {s.src, s.dst} <= known], [s for s in stated if not {s.src, s.dst} <= known]


def closing_links(links: Iterable[Link]) -> frozenset[Link]:
    """The supersedes edges that close a cycle when all are added in this order, and each that does is left out."""
    below: dict[int, set[int]] = {}
    closing: set[Link] = set()
    for link in links:
        if link.rel != "supersedes":
            continue
        if link.src in _reach(below, link.dst):
            closing.add(link)
        else:
            below.setdefault(link.src, set()).add(link.dst)
    return frozenset(closing)


def _reach(below: Mapping[int, set[int]], start: int) -> set[int]:
    seen, todo = {start}, [start]
    while todo:
        new = below.get(todo.pop(), set()) - seen
        seen |= new
        todo += new
    return seen


def batches(documents: Sequence[Document], links: Sequence[Link], *, size: int, node_limit: int, edge_limit: int) -> list[Batch]:
    """Splits documents into sessions.

    Args:
        documents: In the order in which they were made.
        links: Edges among them; each goes where its later end is.
        size: The most documents of a session.
        node_limit: The most node candidates of a session. Every earlier end counts as one: where its id is not known,
            it is stated again.
        edge_limit: The most edge candidates of a session.

    Raises:
        InvalidArgument: Documents that no session has room for.
    """
    place = {d.pep: i for i, d in enumerate(documents)}
    ending: dict[int, list[Link]] = {}
    for link in links:
        ending.setdefault(max(link.src, link.dst, key=place.__getitem__), []).append(link)
    found: list[Batch] = []
    too_large: list[Problem] = []
    for document in documents:
        alone = Batch(len(found) + 1, (document,), tuple(ending.get(document.pep, ())))
        if not _fits(alone, node_limit, edge_limit):
            nodes, edges = _counts(alone)
            wanted = f"needs {nodes} node and {edges} edge candidates in one session, and {node_limit} and {edge_limit} are allowed"
            too_large.append(Problem(document.spec_id, wanted))
            continue
        if found:
            grown = Batch(found[-1].number, (*found[-1].documents, *alone.documents), (*found[-1].links, *alone.links))
            if len(grown.documents) <= size and _fits(grown, node_limit, edge_limit):
                found[-1] = grown
                continue
        found.append(alone)
    if too_large:
        raise InvalidArgument("Some documents are too large for a session, and nothing was ingested.", too_large)
    return found


def _counts(batch: Batch) -> tuple[int, int]:
    alternatives = sum(len(d.rejected) for d in batch.documents)
    return len(batch.documents) + alternatives + len(batch.earlier), alternatives + len(batch.links)


def _fits(batch: Batch, node_limit: int, edge_limit: int) -> bool:
    nodes, edges = _counts(batch)
    return nodes <= node_limit and edges <= edge_limit


def refs_of(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """The nodes of a document and, before each, the name that this package's programs know it by: ``pep-0008#decision``."""
    for node in (document.decision(), *document.alternatives()):
        ref = node["source_ref"]
        yield f"{ref['spec_id']}#{ref['section']}", node
