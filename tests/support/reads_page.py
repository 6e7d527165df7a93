"""The parts of docs/reads.md that are computed: lists of words, figures of a report, and examples on the board of the demo.

`python -m tests.support.reads_page` writes them anew (some ten seconds; the embedding model must be there).
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

from pulse_kg.bootstrap import Container, open_container
from pulse_kg.cli.demo import run_demo
from pulse_kg.cli.story import BOARD
from pulse_kg.cli.story_ask import INVENTED, LOCK, SIMILAR
from pulse_kg.cli.story_team import STATEMENTS, TEAM
from pulse_kg.domain.grounding import Grounding
from pulse_kg.domain.model import Node
from pulse_kg.domain.permissions import FLAGS, Caller
from pulse_kg.domain.ranking import Topic, one_hop
from pulse_kg.domain.relevance import Standing, relevance
from pulse_kg.domain.schema import NODE_TYPES, SEARCHABLE_TYPES
from pulse_kg.domain.text import NEGATIONS, NUMBER_WORDS, UNITS
from pulse_kg.domain.words import STOP_WORDS
from pulse_kg.settings import Settings
from pulse_kg.usecases.find_similar_decisions import find_similar_decisions
from pulse_kg.usecases.get_decision_history import get_decision_history
from pulse_kg.usecases.query_natural import Span, retrieve
from pulse_kg.usecases.searching import by_meaning_and_title, query_vector
from pulse_kg.usecases.verify_grounding import verify_grounding

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reads.md"
TOPIC: Final = "package metadata in pyproject.toml"
PROJECT: Final = 621
READER: Final = Caller("agt_0", "reader", frozenset(FLAGS), frozenset({BOARD, TEAM}))

Worked = Mapping[str, Mapping[str, float]]
"""Block → step → value."""


def block(page: str, name: str) -> str:
    """What stands in a block of the page."""
    return _found(page, name)[1]


def _found(page: str, name: str) -> re.Match[str]:
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", page, re.DOTALL)
    assert found, f"the page has no block '{name}'"
    return found


def lists() -> dict[str, str]:
    """The blocks that are the same everywhere."""
    report = json.loads((ROOT / "bench" / "reports" / "retrieval.json").read_text(encoding="utf-8"))
    units: dict[str, list[str]] = {}
    for name, unit in UNITS.items():
        units.setdefault(unit, []).append(name)
    return {
        "stop words": f"> {' '.join(sorted(STOP_WORDS))}",
        "negations": f"> {' '.join(sorted(NEGATIONS))}",
        "number words": f"> {' '.join(sorted(NUMBER_WORDS))}",
        "units": "> " + "; ".join(" ".join(sorted(names)) for _, names in sorted(units.items())),
        "retrieval": _retrieval(report),
        "shown": _shown(report),
    }


def _retrieval(report: Mapping[str, Any]) -> str:
    rows = [
        f"| {tool} | {found['all']['recall_at_5']:.2f} | {found['words of the title']['recall_at_5']:.2f} | "
        f"{found['by hand']['recall_at_5']:.2f} | {found['all']['mrr']:.2f} |"
        for tool, found in report["tools"].items()
    ]
    head = "| | recall@5, all questions | titles' words | written by hand | MRR, all |\n|---|---|---|---|---|\n"
    return head + "\n".join(rows)


def _shown(report: Mapping[str, Any]) -> str:
    found = report["shown_in_an_answer_of_5"]
    rows = [f"| {tool} | {of['what replaced it']:.2f} | {of['what it replaced']:.2f} |" for tool, of in found.items()]
    return "| | what replaced it | what it replaced |\n|---|---|---|\n" + "\n".join(rows)


def with_board(use: Callable[[Container], Worked], folder: Path) -> Worked:
    """Plays the demo and gives its store to a function."""
    store = folder / "board.db"
    with redirect_stdout(TextIOWrapper(BytesIO())):
        assert run_demo(as_json=True, keep=store) == 0
    with closing(open_container(Settings(store=f"sqlite:{store}"))) as container:
        return use(container)


def worked(container: Container) -> Worked:
    """The examples, computed."""
    services = container.services
    by_ref = {(b, n.source_ref): n for b in (BOARD, TEAM) for n in container.graph.all_nodes(b)}
    project, lock = (by_ref[BOARD, f"spec:pep-{pep:04d}#decision"] for pep in (PROJECT, LOCK))
    rule = by_ref[TEAM, f"spec:{STATEMENTS['no_code'].ref}"]
    return {
        "history": _history(container, project),
        "similar": _similar(container, lock),
        "natural": _natural(container, project),
        "grounding": {
            "(1 + 1 + 1 + 1) / (1 + 1 + 1 + 1 + 2 + 1)": _grounding(container, INVENTED, lock).score,
        },
        "relevance": {
            "PEP 751, degree 5: 0.4 · 0.7 + 0.3 · 0.3891": lock.relevance_score,
            "the same when it was returned ten times just now: + 0.3 · 1": relevance(
                confidence=lock.confidence,
                standing=Standing(services.queries.places(BOARD, [lock.node_id])[lock.node_id].degree),
                query_hits=10,
                last_queried_at=lock.created_at,
                priority_boost=0,
                now=lock.created_at,
            ),
            "the team's first rule, degree 2: 0.4 · 0.7 + 0.3 · 0.2386 − min(0.7, 0.5), and not below 0": rule.relevance_score,
        },
    }


def _history(container: Container, node: Node) -> dict[str, float]:
    topic = Topic.of(TOPIC)
    by_title = topic.score(node.title)
    assert by_title is not None
    entries = get_decision_history(READER, BOARD, TOPIC, 20, None, container.services).entries
    return {
        "similarity of the topic and the text": _similarity(container, TOPIC, node),
        "content words of the topic (package, metadata, pyproject.toml)": len(topic.words),
        "those that the title has": round(topic.share_in(node.title) * len(topic.words)),
        "the title's score, 0.5 + 0.5 · 2/3": by_title,
        "score, the larger one": next(e.score for e in entries if e.seen.node.node_id == node.node_id),
    }


def _similar(container: Container, node: Node) -> dict[str, float]:
    found = find_similar_decisions(READER, BOARD, SIMILAR, 5, container.services)
    one = next(s for s in found if s.seen.node.node_id == node.node_id)
    return {
        "semantic: similarity of the query and the text": one.components.semantic,
        "degree: four alternatives, one decision that it supersedes": one.seen.place.degree,
        "graph_centrality: ln(1 + 5) / ln 100": one.components.graph_centrality,
        "recency: recorded some seconds before the board's last commit": one.components.recency,
        "confidence: none was given": one.components.confidence,
        "score: 0.5 · semantic + 0.2 · graph_centrality + 0.2 · recency + 0.1 · confidence": one.components.score,
    }


def _natural(container: Container, node: Node) -> dict[str, float]:
    services, limit = container.services, 10
    vector = query_vector(TOPIC, services)
    before = by_meaning_and_title(BOARD, TOPIC, vector, services, node_types=SEARCHABLE_TYPES, titled_types=NODE_TYPES, limit=limit)
    after = retrieve(BOARD, TOPIC, Span(), limit, services).nodes
    score = next(a.score for a in after if a.node.node_id == node.node_id)
    return {
        "score of PEP 621, the best answer": score,
        "its neighbours, over edges of confidence 0.7: 0.8333 · 0.8 · 0.7": one_hop(score, 0.7),
        "the last of ten answers without neighbours": before[-1].score,
        "the last of ten answers with them": after[-1].score,
    }


def _grounding(container: Container, answer: str, node: Node) -> Grounding:
    return verify_grounding(READER, BOARD, answer, [node.node_id], container.services).grounding


def _similarity(container: Container, text: str, node: Node) -> float:
    vector = query_vector(text, container.services)
    hits = container.services.search.search([node.board_id], ["Decision"], vector, limit=50)
    return next(hit.score for hit in hits if hit.node_id == node.node_id)


def steps(page: str, name: str) -> dict[str, float]:
    """The steps of an example as the page has them."""
    rows = (line.strip("| ").rpartition(" | ") for line in block(page, name).splitlines()[2:])
    return {step: float(value) for step, _, value in rows}


def table(rows: Mapping[str, float]) -> str:
    """The steps of an example, for the page."""
    return "\n".join(["| step | value |", "|---|---|", *(f"| {step} | {round(value, 4):g} |" for step, value in rows.items())])


def written(page: str, blocks: Iterable[tuple[str, str]]) -> str:
    """The page with these blocks."""
    for name, text in blocks:
        found = _found(page, name)
        page = page[: found.start(1)] + text + page[found.end(1) :]
    return page


def _main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        examples = with_board(worked, Path(folder))
    blocks = {**lists(), **{name: table(rows) for name, rows in examples.items()}}
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), blocks.items()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
