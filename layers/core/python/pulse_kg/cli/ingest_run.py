"""The sessions of an ingest: what is stated, which proposals are overridden and why, and the count of it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pulse_kg.cli.client_tools import Refused, Tools
from pulse_kg.cli.peps import Batch, Link, refs_of, spec_id

SOURCE_TYPE: Final = "import"

_CONFLICTS: Final = 5
_ANOTHER_DOCUMENT: Final = "another document"
_COUNTED: Final = ("Decision", "Alternative")


@dataclass
class Report:
    """What became of a file.

    Attributes:
        file: Its name.
        board_id: Where it went.
        documents: How many it has.
        planned: How many sessions it takes.
        sessions: Sessions that were committed.
        nothing_changed: Sessions that were not opened, because their content was committed before.
        added: Node type → nodes added.
        updated: Nodes updated.
        noops: Candidates that were there already.
        edges: Edges added.
        superseded: Nodes that became history.
        conflicts: Times that the board changed under a session, which then proposed again.
        skipped: Edges that were not written, each with the reason.
        overridden: Proposals that went to another document's node.
        implied: Changes of nodes that the file does not state, but the rules proposed.
        warnings: What a proposal warned of.
        seconds: How long it took.
    """

    file: str
    board_id: str
    documents: int
    planned: int
    sessions: int = 0
    nothing_changed: int = 0
    added: Counter[str] = field(default_factory=Counter)
    updated: int = 0
    noops: int = 0
    edges: int = 0
    superseded: int = 0
    conflicts: int = 0
    skipped: list[dict[str, str]] = field(default_factory=list)
    overridden: list[dict[str, Any]] = field(default_factory=list)
    implied: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def finished(self) -> int:
        """Sessions that need not be done again."""
        return self.sessions + self.nothing_changed

    def without_end(self, links: Iterable[Link]) -> None:
        """Notes edges to documents that the file does not have."""
        for link in links:
            self.skip(link, "the file does not have the other document")

    def skip(self, link: Link, reason: str) -> None:
        """Notes an edge that is not written."""
        self.skipped.append({"src": spec_id(link.src), "rel": link.rel, "dst": spec_id(link.dst), "reason": reason})

    def document(self) -> dict[str, Any]:
        """The report as one JSON document."""
        return {
            "file": self.file,
            "board_id": self.board_id,
            "documents": self.documents,
            "decisions_added": self.added["Decision"],
            "alternatives_added": self.added["Alternative"],
            "edges_added": self.edges,
            "nodes_updated": self.updated,
            "nodes_superseded": self.superseded,
            "noops": self.noops,
            "sessions": self.sessions,
            "sessions_nothing_changed": self.nothing_changed,
            "sessions_planned": self.planned,
            "conflicts": self.conflicts,
            "edges_skipped": self.skipped,
            "proposals_overridden": self.overridden,
            "changes_implied": self.implied,
            "warnings": self.warnings,
            "seconds": self.seconds,
        }


@dataclass
class _Session:
    """One session in the making.

    Attributes:
        session_id: The handle.
        batch: What it takes.
        candidates: Candidate id → the name of what it states, such as ``pep-0008#decision``, in order.
        nodes: Candidate id → what was given.
        own: The candidates that the batch's documents brought, and not an edge's other end.
        superseding: The candidates from which supersedes edges go.
    """

    session_id: str
    batch: Batch
    candidates: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    superseding: set[str] = field(default_factory=set)


class Ingest:
    """Takes batches, one after the other.

    Args:
        tools: The write tools.
        report: Where it is counted.
        closing: Edges that contradict earlier ones of the file; left out only where a commit refuses a session for a cycle.
        source_id: What the sessions' artifacts are named by.
        stated: Told for each document how many of the batch are stated.
    """

    def __init__(
        self, tools: Tools, report: Report, closing: frozenset[Link], *, source_id: str, stated: Callable[[int], None] = lambda _: None
    ) -> None:
        self._tools = tools
        self._report = report
        self._closing = closing
        self._source_id = source_id
        self._tell_stated = stated
        self._node_of: dict[str, str] = {}
        self._ref_of: dict[str, str] = {}
        self._stated: dict[str, Mapping[str, Any]] = {}

    def take(self, batch: Batch) -> None:
        """Consolidates a batch.

        Raises:
            Refused: A tool refused what can't be gone around; the session is aborted.
        """
        # Kept for later sessions: an end whose id is not known is stated again, word for word.
        self._stated.update((ref, node) for d in batch.documents for ref, node in refs_of(d) if ref.endswith("#decision"))
        contradictory = self._closing & set(batch.links)
        try:
            self._consolidate(batch, frozenset())
        except Refused as refused:
            if refused.tool != "commit_consolidation" or refused.code != "invalid_edge_endpoints" or not contradictory:
                raise
            for link in sorted(contradictory, key=str):
                self._report.skip(link, refused.message)
            self._consolidate(batch, contradictory)

    def _consolidate(self, batch: Batch, without: frozenset[Link]) -> None:
        source_id = f"{self._source_id}#{batch.number}"
        begun = self._tools.begin(self._report.board_id, SOURCE_TYPE, source_id, 0, batch.content_hash)
        if begun["nothing_changed"]:
            self._report.nothing_changed += 1
            return
        session = _Session(begun["session_id"], batch)
        with self._tools.aborting(session.session_id):
            skipped = self._state(session, without)
            overridden, implied, warnings, answer = self._commit(session)
        for link, reason in skipped:
            self._report.skip(link, reason)
        self._report.overridden += overridden
        self._report.implied += implied
        self._report.warnings += warnings
        self._count(session, answer)

    def _state(self, session: _Session, without: frozenset[Link]) -> list[tuple[Link, str]]:
        decisions: dict[int, dict[str, str]] = {}
        for number, document in enumerate(session.batch.documents, 1):
            candidates = [self._add(session, ref, node) for ref, node in refs_of(document)]
            session.own.update(candidates)
            decisions[document.pep] = {"candidate_id": candidates[0]}
            for alternative in candidates[1:]:
                self._tools.add_edge(session.session_id, decisions[document.pep], "relates_to", {"candidate_id": alternative})
            self._tell_stated(number)
        skipped: list[tuple[Link, str]] = []
        for link in (x for x in session.batch.links if x not in without):
            for end in (link.src, link.dst):
                if end not in decisions:
                    decisions[end] = self._end(session, end)
            src, dst = decisions[link.src], decisions[link.dst]
            try:
                self._tools.add_edge(session.session_id, src, link.rel, dst)
            except Refused as refused:
                if refused.code != "invalid_edge_endpoints":
                    raise
                skipped.append((link, refused.message))
                continue
            if link.rel == "supersedes" and "candidate_id" in src:
                session.superseding.add(src["candidate_id"])
        return skipped

    def _end(self, session: _Session, number: int) -> dict[str, str]:
        """An end that another session brought: its node where that is known, else the same statement again."""
        ref = f"{spec_id(number)}#decision"
        if ref in self._node_of:
            return {"node_id": self._node_of[ref]}
        return {"candidate_id": self._add(session, ref, self._stated[ref])}

    def _add(self, session: _Session, ref: str, node: Mapping[str, Any]) -> str:
        candidate_id = self._tools.add_node(session.session_id, node)
        session.candidates[candidate_id] = ref
        session.nodes[candidate_id] = node
        return candidate_id

    def _commit(self, session: _Session) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str], dict[str, Any]]:
        tries = 1
        while True:
            proposals = self._tools.propose(session.session_id)
            overrides, overridden, implied = self._judge(session, proposals)
            warnings = [f"{session.candidates[p['candidate_id']]}: {w}" for p in proposals for w in p.get("warnings", ())]
            try:
                return overridden, implied, warnings, self._tools.commit(session.session_id, overrides)
            except Refused as refused:
                if refused.code != "commit_conflict" or tries == _CONFLICTS:
                    raise
                self._report.conflicts += 1
                tries += 1

    def _judge(
        self, session: _Session, proposals: Sequence[Mapping[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        """What to override, and what to show of the rest.

        The documents of a file are different statements, however alike they look. So a change of another document's
        node is none, unless a header states it; neither is a supersedence that no header states, because a document
        has one decision. An update of its own node is what a changed file looks like.
        """
        overrides, overridden, implied = [], [], []
        for proposal in proposals:
            candidate_id, hint = proposal["candidate_id"], proposal["hint"]
            if hint == "ADD" or (hint == "SUPERSEDE" and candidate_id in session.superseding):
                continue
            ref = session.candidates[candidate_id]
            target = self._ref_of.get(proposal.get("target_node", ""))
            shown = {
                "ref": ref,
                "title": session.nodes[candidate_id]["title"],
                "hint": hint,
                "target": target or proposal.get("target_node"),
            }
            shown |= {"rationale": proposal["rationale"]}
            if hint == "SUPERSEDE" or (target is not None and target != ref):
                overrides.append({"candidate_id": candidate_id, "hint": "ADD", "rationale": _ANOTHER_DOCUMENT})
                overridden.append(shown)
            elif hint == "UPDATE":
                implied.append(shown)
        return overrides, overridden, implied

    def _count(self, session: _Session, answer: Mapping[str, Any]) -> None:
        report, applied = self._report, answer["applied"]
        for kind in ("added", "updated", "noop"):
            for node in applied[kind]:
                ref = session.candidates[node["candidate_id"]]
                self._node_of[ref] = node["node_id"]
                self._ref_of[node["node_id"]] = ref
        report.sessions += 1
        report.added.update(str(session.nodes[n["candidate_id"]]["node_type"]) for n in applied["added"])
        report.updated += len(applied["updated"])
        report.noops += sum(n["candidate_id"] in session.own for n in applied["noop"])
        report.edges += len(answer["edges_added"])
        report.superseded += len(answer["superseded_nodes"])
