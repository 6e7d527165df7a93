"""What is proposed for real decisions that come in order and say nothing of each other, judged by their headers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.context import Context, Part, Table
from bench.judgement import Headers, Proposed, by_similarity_alone, changes, recall, tally
from bench.world import BOARD, Writer, calling, make_agent, make_boards, opened
from pulse_kg.bootstrap import Container, embedder_of
from pulse_kg.cli.peps import Document, read_documents
from pulse_kg.ports.embedder import Embedder
from pulse_kg.settings import Settings

_NOTES = [
    "Every document is a session of its own artifact (spec pep-NNNN, version 1) with one Decision and no edge, in the order in which they "
    "were made, and commits what is proposed: that is how documents come to a team, one at a time.",
    "As one log: the same documents as versions 1, 2, 3 … of one artifact and without a source_ref, as a team that keeps all its decisions "
    "in one file would send them; there the rules trust similarity more.",
    "Right: the header of one of the two documents says that the later supersedes the earlier. A header that says Superseded and not by "
    "what ties nothing, so a few that count as wrong are right. "
    "Similarity alone: every nearest live document of that similarity taken for superseded, without the rules' second signal.",
    "The documents are Python Enhancement Proposals that their authors placed in the public domain.",
]


def run(context: Context) -> Part:
    """Ingests the documents in both ways, and judges the proposals."""
    documents = read_documents(context.data_file("peps.jsonl").read_bytes())
    if context.quick:
        documents = documents[:60]
    settings, embedder = Settings(), embedder_of(Settings())
    headers, by_number = Headers(documents), {d.pep: d for d in documents}
    figures: dict[str, Any] = {"documents": len(documents)}
    tables: list[Table] = []
    for name, one_log in (("own_artifacts", False), ("one_log", True)):
        proposals = _proposals(context, documents, embedder, one_log=one_log)
        figures[name] = _figures(documents, proposals, headers, settings)
        listed = [_listed(p, headers, by_number) for p in changes(proposals)]
        figures[name]["changes"] = listed
        tables += _tables(name.replace("_", " "), figures[name], listed)
    return Part(figures, tables, _NOTES)


def _proposals(context: Context, documents: Sequence[Document], embedder: Embedder, *, one_log: bool) -> list[Proposed]:
    with opened(context.scratch / f"quality-{one_log}.db", embedder, create=True) as container:
        make_boards(container, [BOARD])
        ingest = _Ingest(container, one_log=one_log)
        with context.progress("ingesting decisions", len(documents)) as advance:
            found = []
            for number, document in enumerate(documents, 1):
                found.append(ingest.take(document, number))
                advance()
    return found


class _Ingest:
    """Sends documents, and reads from the audit log what was proposed for each."""

    def __init__(self, container: Container, *, one_log: bool) -> None:
        self._container, self._one_log = container, one_log
        self._call = Writer(calling(container, make_agent(container, "reader")), {}).call
        self._document_of: dict[str, int] = {}

    def take(self, document: Document, number: int) -> Proposed:
        source, version = ("peps", number) if self._one_log else (document.spec_id, 1)
        begin = {"board_id": BOARD, "source_type": "spec", "source_id": source, "source_version": version}
        session = {"session_id": self._call("begin_consolidation", begin)["session_id"]}
        decision = {k: v for k, v in document.decision().items() if not (self._one_log and k == "source_ref")}
        self._call("add_node_candidate", {**session, **decision})
        self._call("propose_reconciliation", session)
        answer = self._call("commit_consolidation", session)
        row = self._container.commits.audit_row(BOARD, answer["audit_row_id"])
        if row is None:
            raise RuntimeError("a commit left no audit row")
        proposal: Mapping[str, Any] = row["proposals"][0]
        target = self._document_of.get(proposal["targets"][0]["node_id"]) if proposal["targets"] else None
        # From here on, a node that was updated stands for the document that was written into it last.
        self._document_of.update({n["node_id"]: document.pep for kind in ("added", "updated") for n in answer["applied"][kind]})
        return Proposed(document.pep, proposal["hint"], proposal["rule"], target, proposal["score"])


def _figures(documents: Sequence[Document], proposals: Sequence[Proposed], headers: Headers, settings: Settings) -> dict[str, Any]:
    place = {d.pep: i for i, d in enumerate(documents)}
    touching = changes(proposals)
    notes = [p for p in proposals if p.note]
    return {
        "hints": dict(Counter(p.hint for p in proposals)),
        "rules": {str(rule): count for rule, count in sorted(Counter(p.rule for p in proposals).items())},
        "all_changes": tally(touching, headers).as_dict(),
        "supersede": tally([p for p in touching if p.hint == "SUPERSEDE"], headers).as_dict(),
        "update": tally([p for p in touching if p.hint == "UPDATE"], headers).as_dict(),
        "noop": tally([p for p in touching if p.hint == "NOOP"], headers).as_dict(),
        "notes": {
            "threshold": settings.similar_threshold,
            **tally([Proposed(n.document, "SUPERSEDE", n.rule, n.target, n.score) for n in notes], headers).as_dict(),
        },
        "recall_of_predecessors": {
            "named_by_any_proposal": recall(proposals, headers, place).as_dict(),
            "named_by_a_note": recall([p if p.note else _silent(p) for p in proposals], headers, place).as_dict(),
            "superseded": recall([p if p.hint == "SUPERSEDE" else _silent(p) for p in proposals], headers, place).as_dict(),
        },
        "similarity_alone": {
            f"{threshold:.2f}": tally(by_similarity_alone(proposals, threshold), headers).as_dict()
            for threshold in (settings.update_threshold, settings.supersede_threshold, 0.80, settings.similar_threshold)
        },
    }


def _silent(proposed: Proposed) -> Proposed:
    return Proposed(proposed.document, "ADD", proposed.rule)


def _listed(proposed: Proposed, headers: Headers, documents: Mapping[int, Document]) -> dict[str, Any]:
    target = None if proposed.target is None else documents[proposed.target]
    return {
        "hint": proposed.hint,
        "rule": proposed.rule,
        "score": proposed.score,
        "pep": proposed.document,
        "title": documents[proposed.document].title,
        "target_pep": None if target is None else target.pep,
        "target_title": None if target is None else target.title,
        "target_status": None if target is None else target.status,
        "verdict": headers.verdict(proposed),
    }


def _tables(name: str, figures: Mapping[str, Any], listed: Sequence[Mapping[str, Any]]) -> list[Table]:
    kinds: list[tuple[str, Mapping[str, Any]]] = [
        ("SUPERSEDE", figures["supersede"]),
        ("UPDATE", figures["update"]),
        ("NOOP", figures["noop"]),
        (f"possible-duplicate notes ≥ {figures['notes']['threshold']:.2f}", figures["notes"]),
        *((f"similarity alone ≥ {threshold}", found) for threshold, found in figures["similarity_alone"].items()),
    ]
    judged: list[tuple[Any, ...]] = [
        (kind, t["right"], t["wrong"], "–" if t["precision"] is None else f"{t['precision']:.2f}") for kind, t in kinds
    ]
    recalls: list[tuple[Any, ...]] = [
        (kind.replace("_", " "), r["found"], r["of"], r["share"]) for kind, r in figures["recall_of_predecessors"].items()
    ]
    changed: list[tuple[Any, ...]] = [
        (
            c["hint"],
            c["rule"],
            c["score"],
            f"{c['pep']} {c['title']}",
            f"{c['target_pep']} {c['target_title']}",
            c["target_status"],
            c["verdict"],
        )
        for c in listed
    ]
    return [
        Table(f"Proposals, {name}: {figures['hints']}", ("what", "right", "wrong", "precision"), judged),
        Table(f"True predecessors, {name}", ("named", "found", "of", "recall"), recalls),
        Table(f"Changes, {name}", ("hint", "rule", "score", "document", "target", "its status", "verdict"), changed),
    ]
