"""``python -m bench.retrieval``: how well the tools that search find what they are asked for, beside a plain vector search.

The board is the real decision history of the test data with the real model; the questions are those of `bench.questions`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench import machine, report
from bench.context import ROOT, WORK, Table, default_data
from bench.questions import Question, questions
from bench.world import BOARD, make_agent, make_boards, opened
from pulse_kg import __version__
from pulse_kg.adapters.sqlite.schema import MIGRATIONS
from pulse_kg.bootstrap import embedder_of
from pulse_kg.cli.ingest import run_ingest
from pulse_kg.cli.peps import read_documents
from pulse_kg.domain.model import Node, TextVector
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.ranking import SIMILARITY_FLOOR, Topic, components
from pulse_kg.domain.schema import NODE_TYPES, SEARCHABLE_TYPES, NodeType
from pulse_kg.domain.words import content_words, share, words
from pulse_kg.ports.embedder import Embedder, ModelInfo
from pulse_kg.settings import Settings
from pulse_kg.usecases.find_similar_decisions import find_similar_decisions
from pulse_kg.usecases.get_decision_history import get_decision_history
from pulse_kg.usecases.query_natural import Span, query_natural
from pulse_kg.usecases.searching import by_meaning_and_title
from pulse_kg.usecases.services import Services

REPORT: Final = ROOT / "bench" / "reports" / "retrieval.json"
_LOADER: Final = 1  # to be raised when the same data are loaded otherwise
_FEW, _MANY, _ALL = 5, 20, 1_000
_NOTES: Final = [
    "Recall@5: the share of a question's answers among the first five. MRR: one over the place of the first answer among twenty, else 0. "
    "Where a question quotes a document's title, that document itself mostly takes the first place, and the answer the second at best.",
    "get_decision_history is ranked by its scores, not by time. All decisions were recorded on one day: recency tells none from another.",
    "The documents are Python Enhancement Proposals that their authors placed in the public domain. Each variant changes one thing.",
]

Ranking = Callable[[str, int], list[str]]
"""From a question and how many are wanted to node ids, best first."""


class RememberingEmbedder:
    """Embeds each text once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._known = embedder, dict[str, TextVector]()

    def info(self) -> ModelInfo:
        """See `Embedder.info`."""
        return self._embedder.info()

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        """See `Embedder.embed`."""
        for text in texts:
            if text not in self._known:
                self._known[text] = self._embedder.embed([text], timeout_seconds=timeout_seconds)[0]
        return [self._known[text] for text in texts]


def loaded(data: Path, embedder: Embedder, scratch: Path) -> Path:
    """The store with all documents, of an earlier run where there is one; not to be written to."""
    parts = (data.read_bytes(), MIGRATIONS, embedder.info().digest, _LOADER)
    path = WORK / f"decisions-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.db"
    if not path.is_file():
        making = scratch / path.name
        print("loading the decisions: half a minute, once", file=sys.stderr)
        with opened(making, embedder, create=True) as container, redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            make_boards(container, [BOARD])
            caller = container.authenticate(make_agent(container, "loader"))
            if run_ingest(data, board_id=BOARD, host=container.tool_host(), caller=caller, as_json=True):
                raise RuntimeError("the decisions could not be loaded")
        making.replace(path)
    return path


@dataclass
class Judge:
    """Asks every question of a ranking, and judges the answers.

    Attributes:
        asked: The questions.
        ids: Document → its node.
    """

    asked: Sequence[Question]
    ids: Mapping[int, str]

    def figures(self, ranking: Ranking) -> dict[str, dict[str, Any]]:
        """Kind of question → recall@5 and MRR, and of all questions together."""
        by_kind: dict[str, list[tuple[float, float]]] = {}
        for question in self.asked:
            wanted = {self.ids[pep] for pep in question.answers}
            few, many = ranking(question.text, _FEW)[:_FEW], ranking(question.text, _MANY)
            recall = len(wanted.intersection(few)) / min(_FEW, len(wanted))
            reciprocal = next((1 / place for place, node_id in enumerate(many, 1) if node_id in wanted), 0.0)
            by_kind.setdefault(question.kind, []).append((recall, reciprocal))
        by_kind["all"] = [judged for some in list(by_kind.values()) for judged in some]
        return {kind: _means(some) for kind, some in by_kind.items()}

    def shown(self, answer: Callable[[str], set[str]]) -> dict[str, float]:
        """Kind of question → the share of its answers that are anywhere in an answer of five, as a result or as what it points at."""
        by_kind: dict[str, list[float]] = {}
        for question in self.asked:
            wanted = {self.ids[pep] for pep in question.answers}
            by_kind.setdefault(question.kind, []).append(len(wanted & answer(question.text)) / len(wanted))
        return {kind: round(sum(some) / len(some), 3) for kind, some in by_kind.items()}


def _means(judged: Sequence[tuple[float, float]]) -> dict[str, Any]:
    return {
        "questions": len(judged),
        "recall_at_5": round(sum(r for r, _ in judged) / len(judged), 3),
        "mrr": round(sum(m for _, m in judged) / len(judged), 3),
    }


@dataclass
class Rankings:
    """The tools as rankings, and others that they could have been."""

    services: Services
    caller: Caller
    nodes: Mapping[str, Node] = field(default_factory=dict)

    def tools(self) -> dict[str, Ranking]:
        """As they are, and the plain search beside them."""
        return {
            "plain vector search": self.nearest,
            "get_decision_history": self.history,
            "find_similar_decisions": self.similar,
            "query_natural": self.natural,
        }

    def nearest(self, query: str, limit: int, floor: float = 0.0) -> list[str]:
        """Decisions by similarity alone."""
        return list(self._similarities(query, limit, floor))

    def history(self, query: str, limit: int) -> list[str]:
        """By score: its own order is that of time."""
        found = get_decision_history(self.caller, BOARD, query, limit, None, self.services).entries
        return [e.seen.node.node_id for e in sorted(found, key=lambda e: (-e.score, not e.seen.node.live, e.seen.node.node_id))]

    def similar(self, query: str, limit: int) -> list[str]:
        """In its own order."""
        return [s.seen.node.node_id for s in find_similar_decisions(self.caller, BOARD, query, limit, self.services)]

    def natural(self, query: str, limit: int) -> list[str]:
        """In its own order."""
        return [a.node.node_id for a in query_natural(self.caller, BOARD, query, Span(), limit, self.services).nodes]

    def history_shows(self, query: str) -> set[str]:
        """What an answer of five shows, the chains among it."""
        found = get_decision_history(self.caller, BOARD, query, _FEW, None, self.services)
        return {e.seen.node.node_id for e in found.entries} | {node_id for chain in found.chains for node_id in chain.ids}

    def natural_shows(self, query: str) -> set[str]:
        """What an answer of five shows, the ends of its edges and what superseded its nodes among it."""
        found = query_natural(self.caller, BOARD, query, Span(), _FEW, self.services)
        named = {a.node.superseded_by for a in found.nodes if a.node.superseded_by is not None}
        return named | {a.node.node_id for a in found.nodes} | {end for e in found.edges for end in (e.src, e.dst)}

    def variants(self) -> dict[str, Ranking]:
        """What the tools could have been: one thing changed in each."""
        plain: Callable[[str], frozenset[str]] = lambda title: frozenset(words(title))  # noqa: E731
        as_it_is: Callable[[float, float], float] = lambda near, hit: max(near, 0.5 + 0.5 * hit)  # noqa: E731
        return {
            "history, titles never looked at": lambda q, n: self.nearest(q, n, SIMILARITY_FLOOR),
            "history, without the floor of 0.30": self._titled(as_it_is, 0.6, plain, floor=0.0),
            **{f"history, title hit from a share of {least} on": self._titled(as_it_is, least, plain) for least in (0.4, 0.8, 1.0)},
            "history, title hit worth its share alone": self._titled(max, 0.6, plain),
            "history, title hit worth 0.3 + 0.5·share": self._titled(lambda near, hit: max(near, 0.3 + 0.5 * hit), 0.6, plain),
            "history, similarity + 0.1·share": self._titled(lambda near, hit: near + 0.1 * hit, 0.0, plain),
            "history, similarity + 0.3·share": self._titled(lambda near, hit: near + 0.3 * hit, 0.0, plain),
            "history, parts of joined words count": self._titled(as_it_is, 0.6, _with_parts),
            "vector search for the content words alone": lambda q, n: self.nearest(" ".join(content_words(q)) or q, n),
            "similar, without graph": self._weighted((0.5, 0.0, 0.2, 0.1)),
            "similar, semantic 0.8, graph 0.1, recency 0.05, confidence 0.05": self._weighted((0.8, 0.1, 0.05, 0.05)),
            "similar, recency by when it was decided": self._weighted((0.5, 0.2, 0.2, 0.1), decided=True),
            "natural, titles of the five searchable types alone": self._found(SEARCHABLE_TYPES),
            "natural, without the step to neighbours": self._found(NODE_TYPES),
        }

    def _similarities(self, query: str, limit: int, floor: float = 0.0) -> dict[str, float]:
        vector = self.services.embedder.embed([query])[0].vector
        found = self.services.search.search([BOARD], ["Decision"], vector, limit=limit, min_score=floor)
        return {hit.node_id: hit.score for hit in found}

    def _titled(
        self,
        score: Callable[[float, float], float],
        least: float,
        said: Callable[[str], frozenset[str]],
        *,
        floor: float = SIMILARITY_FLOOR,
    ) -> Ranking:
        titles = {node_id: said(node.title) for node_id, node in self.nodes.items() if node.node_type == "Decision"}

        def ranking(query: str, limit: int) -> list[str]:
            wanted = Topic.of(query).words
            near = self._similarities(query, _ALL, floor)
            shares = {node_id: share(wanted, title) for node_id, title in titles.items()}
            scores = {n: score(near.get(n, 0.0), s) if s >= least and s else near.get(n, 0.0) for n, s in shares.items()}
            return sorted((n for n in scores if scores[n]), key=lambda n: (-scores[n], n))[:limit]

        return ranking

    def _weighted(self, weights: tuple[float, float, float, float], *, decided: bool = False) -> Ranking:
        newest = max(node.happened_at for node in self.nodes.values())

        def ranking(query: str, limit: int) -> list[str]:
            near = self._similarities(query, max(50, 4 * limit))
            places = self.services.queries.places(BOARD, near)
            scores = {}
            for node_id, semantic in near.items():
                node = self.nodes[node_id]
                made = node.happened_at if decided else newest
                c = components(semantic=semantic, degree=places[node_id].degree, created_at=made, confidence=node.confidence, now=newest)
                parts = (c.semantic, c.graph_centrality, c.recency, c.confidence)
                scores[node_id] = sum(w * part for w, part in zip(weights, parts, strict=True))
            return sorted(scores, key=lambda n: (-scores[n], n))[:limit]

        return ranking

    def _found(self, titled: Sequence[NodeType]) -> Ranking:
        def ranking(query: str, limit: int) -> list[str]:
            vector = self.services.embedder.embed([query])[0].vector
            found = by_meaning_and_title(BOARD, query, vector, self.services, node_types=SEARCHABLE_TYPES, titled_types=titled, limit=limit)
            return [s.node.node_id for s in found]

        return ranking


def _with_parts(title: str) -> frozenset[str]:
    said = words(title)
    return frozenset(said) | {part for word in said for part in word.replace("_", "-").split("-") if part}


def measure(data: Path, scratch: Path) -> dict[str, Any]:
    """The report."""
    embedder = RememberingEmbedder(embedder_of(Settings()))
    documents = read_documents(data.read_bytes())
    store = Path(shutil.copy(loaded(data, embedder, scratch), scratch / "copy.db"))
    with opened(store, embedder) as container:
        nodes = {node.node_id: node for node in container.graph.all_nodes(BOARD)}
        refs = {node.source_ref: node_id for node_id, node in nodes.items()}
        judge = Judge(questions(documents), {d.pep: refs[f"spec:{d.spec_id}#decision"] for d in documents})
        rankings = Rankings(container.services, container.authenticate(make_agent(container, "reader")), nodes)
        return {
            "made_at": machine.now(),
            "pulse_kg": __version__,
            "revision": machine.revision(ROOT),
            "documents": len(documents),
            "nodes": len(nodes),
            "model": embedder.info().model_id,
            "notes": _NOTES,
            "tools": {name: judge.figures(ranking) for name, ranking in rankings.tools().items()},
            "shown_in_an_answer_of_5": {
                "plain vector search": judge.shown(lambda q: set(rankings.nearest(q, _FEW))),
                "get_decision_history, with its chains": judge.shown(rankings.history_shows),
                "query_natural, with its edges and superseded_by": judge.shown(rankings.natural_shows),
            },
            "variants": {name: judge.figures(ranking) for name, ranking in rankings.variants().items()},
        }


def _tables(made: Mapping[str, Any]) -> list[Table]:
    kinds = list(next(iter(made["tools"].values())))
    counts = next(iter(made["tools"].values()))
    columns = ("", *(f"{kind} ({counts[kind]['questions']})" for kind in kinds))

    def rows(figures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[tuple[Any, ...]]:
        return [(name, *(f"{of[kind]['recall_at_5']:.3f} / {of[kind]['mrr']:.3f}" for kind in kinds)) for name, of in figures.items()]

    shown = made["shown_in_an_answer_of_5"]
    return [
        Table("Found: recall@5 / MRR of 20", columns, rows(made["tools"])),
        Table(
            "Answers shown anywhere in an answer of 5",
            ("", *kinds[:-1]),
            [(name, *(f"{of[kind]:.3f}" for kind in kinds[:-1])) for name, of in shown.items()],
        ),
        Table("Variants: recall@5 / MRR of 20", columns, rows(made["variants"])),
    ]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description="Measure what the tools that search find.")
    parser.add_argument("--data", type=Path, default=default_data(), metavar="DIR", help="the test data (default: ../shared/data)")
    parser.add_argument("--output", type=Path, default=REPORT, metavar="FILE", help="write the report there")
    given = parser.parse_args()
    data: Path = given.data / "peps.jsonl"
    if not data.is_file():
        sys.exit("bench: the test data have no peps.jsonl; name their folder with --data")
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="retrieval-", dir=WORK) as scratch:
        made = measure(data, Path(scratch))
    report.write(made, given.output)
    report.print_tables(_tables(made))
    for note in _NOTES:
        print(note)


if __name__ == "__main__":
    main()
