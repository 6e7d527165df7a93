"""The golden set: calls of every tool that reads, over a board of 703 real decisions, and what they answer.

The board is told through the write tools with a fixed clock and counted ids, so it has the same ids wherever it is built. The answers that
are kept in `tests/data/golden_reads.jsonl` are those of the embedded store, one call a line; long texts are kept as digests. After a change
of the tools' answers that is wanted, `python -m tests.support.golden` writes the file anew, and its difference shows what has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from pulse_kg.adapters.embedding.onnx import OnnxEmbedder
from pulse_kg.cli.client_tools import Tools
from pulse_kg.cli.ingest_run import Ingest, Report
from pulse_kg.cli.peps import Document, batches, closing_links, links_of, read_documents
from pulse_kg.domain.model import TextVector
from pulse_kg.mcp import jsontext
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.mcp.local_host import LocalToolHost
from pulse_kg.ports.embedder import Embedder, ModelInfo
from tests.support.story_board import worker_edge
from tests.support.world import Agent, Consolidation, FixedClock, World, opened

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden_reads.jsonl"
DECISIONS = Path(os.environ.get("PEPS_FILE", ROOT.parent / "shared" / "data" / "peps.jsonl"))
"""The decisions: what the variable names, else what lies beside the checkout."""
SAMPLE = (files("pulse_kg.cli.data") / "packaging_peps.jsonl").read_bytes()

ALPHA, BETA, GAMMA = "alpha", "beta", "gamma"
"""All decisions and what was made of them; 29 of them; one thing that no reader may see."""
READERS: Mapping[str, tuple[str, ...]] = {"both": (ALPHA, BETA), "one": (BETA,), "none": ()}
"""Name of an agent that reads → its boards."""
SEARCHING = frozenset(
    {
        "get_decision_history",
        "find_similar_decisions",
        "get_learning_from_bugs",
        "query_global",
        "query_natural",
        "query_reflective",
    }
)
"""The tools that look for vectors, which the served store does approximately. All others ask graph and tables alone."""

LATER = 1_900_000_000_000
"""A time years after the last commit: no answer may depend on when it is asked for."""
SCORE_UNIT = 1e-4
"""The last decimal of a score. Between processors vectors differ in their last bits, and so a score in its last decimal."""

_MONTH = 30.0
_MANY = 10
_TEXT = 100
_MADE_OF_ENTRIES = frozenset({"chains", "supporting_edges", "critic_notes"})


class RememberingEmbedder:
    """Embeds each text once: in another batch its last bits would be others.

    Args:
        embedder: The model.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._known = embedder, dict[str, TextVector]()

    def info(self) -> ModelInfo:
        return self._embedder.info()

    def embed(self, texts: Sequence[str], *, timeout_seconds: float | None = None) -> list[TextVector]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed(new, timeout_seconds=timeout_seconds), strict=True))
        return [self._known[text] for text in texts]


def default_embedder() -> Embedder:
    """The model that the project ships."""
    return RememberingEmbedder(OnnxEmbedder(Path(sys.prefix) / "share" / "pulse-kg" / "model"))


# The board.


def build(world: World) -> dict[str, str]:
    """Tells all boards in an empty world; gives the key of each of `READERS`."""
    for board_id in (ALPHA, BETA, GAMMA):
        world.board(board_id)
    keys = {name: world.agent(name, boards=boards).api_key for name, boards in READERS.items()}
    writer = world.agent("writer", boards=(ALPHA, BETA, GAMMA))
    documents = _documents(DECISIONS.read_bytes())
    _ingest(writer, ALPHA, documents)
    _ingest(writer, BETA, _documents(SAMPLE))
    world.clock.advance(days=_MONTH)
    _Teller(writer, documents).tell()
    hidden = writer.begin("spec_001", board_id=GAMMA)
    hidden.decide("Wheels are the format of built distributions, and nobody may know")
    hidden.commit()
    return keys


def _documents(data: bytes) -> list[Document]:
    """The documents; without the ideas that they rejected, but for those who rejected many: a thousand would take a minute."""
    return [d if len(d.rejected) >= _MANY else d.model_copy(update={"rejected": ()}) for d in read_documents(data)]


def _ingest(writer: Agent, board_id: str, documents: list[Document]) -> None:
    """Loads documents as `pulse-kg ingest` does, a month a session."""
    links, foreign = links_of(documents)
    planned = batches(documents, links, size=200, node_limit=500, edge_limit=1_000)
    report = Report(file="decisions", board_id=board_id, documents=len(documents), planned=len(planned))
    report.without_end(foreign)
    ingest = Ingest(Tools(writer.try_call), report, closing_links(links), source_id="decisions")
    for batch in planned:
        writer.world.clock.advance(days=_MONTH)
        ingest.take(batch)
    assert report.added["Decision"] == len(documents), report.document()


def refs_of_board(world: World, board_id: str = ALPHA) -> dict[str, str]:
    """`pep-0008#decision` → node id."""
    return {n.source_ref.removeprefix("spec:"): n.node_id for n in world.container.graph.all_nodes(board_id)}


class _Teller:
    """States, beside the ingested Decisions and Alternatives, what the documents give for the other types; by rule, none by hand.

    Args:
        writer: Who states it.
        documents: In the order in which they were made.
    """

    def __init__(self, writer: Agent, documents: list[Document]) -> None:
        raw = (json.loads(line) for line in DECISIONS.read_text("utf-8").splitlines() if line.strip())
        self._header = {line["pep"]: line for line in raw}
        self._documents = {d.pep: d for d in documents}
        self._labels = refs_of_board(writer.world)
        self._writer = writer
        self._links = links_of(documents)[0]

    def tell(self) -> None:
        for number, part in enumerate((self._rules, self._lessons, self._needs, self._quarrels), 1):
            session = self._writer.begin("spec_900", number, board_id=ALPHA)
            asked = part(session)
            applied = session.commit()["applied"]
            made = {a["candidate_id"]: a["node_id"] for a in applied["added"]}
            assert len(made) == asked, applied
            self._labels.update({name: made[label] for name, label in self._labels.items() if label in made})
            self._writer.world.clock.advance(days=_MONTH)

    def _rules(self, session: Consolidation) -> int:
        """Of each document about process a Constraint, and an Entity of each topic with all its decisions."""
        process = [d for d in self._of(kind="Process") if d.status not in {"Rejected", "Withdrawn"}]
        for n, d in enumerate(process):
            severity = ("low", "medium", "high", "critical")[n % 4]
            scope = self._header[d.pep]["topic"] or "process"
            self._add(
                session, d, "constraint", "Constraint", f"Keep to: {d.title}", d.abstract.split(". ")[0], severity=severity, scope=scope
            )
            if n % 2:  # the others come from their document alone
                worker_edge(session, self._labels[f"{d.spec_id}#constraint"], "derives_from", self._labels[f"{d.spec_id}#decision"])
            if n % 3 == 0 and n:
                session.edge(self._labels[f"{d.spec_id}#constraint"], "depends_on", self._labels[f"{process[n - 1].spec_id}#constraint"])
        topics = sorted({part for h in self._header.values() for part in (h["topic"] or "").split(", ") if part})
        for topic in topics:
            about = self._of(topic=topic)
            label = self._add(session, about[0], f"topic-{topic}", "Entity", topic, kind="topic", aliases=[topic.lower()])
            for d in about:
                worker_edge(session, self._labels[f"{d.spec_id}#decision"], "belongs_to", label)
        return len(process) + len(topics)

    def _lessons(self, session: Consolidation) -> int:
        """Of each document that was superseded a Bug, and a Learning of what came in its place."""
        rules = sorted(name for name in self._labels if name.endswith("#constraint"))
        count = 0
        for n, (new, old) in enumerate(self._superseded()):
            if f"{old.spec_id}#bug" in self._labels:
                continue
            count += 2
            when = {"resolved_at": new.created} if n % 3 else {}
            severity = ("minor", "major", "critical")[n % 3]
            bug = self._add(session, old, "bug", "Bug", f"{old.title}: it did not hold", old.abstract[:300], severity=severity, **when)
            area = self._header[new.pep]["topic"] or "language"
            title = f"What came in the place of {old.title}"
            learning = self._add(
                session, new, f"learning-{old.pep}", "Learning", title, new.abstract[:500], area=area, captured_at=new.created
            )
            session.edge(learning, "validates", bug, reason="The successor says so.")
            session.edge(learning, "validates", self._labels[f"{new.spec_id}#decision"])
            worker_edge(session, bug, "violates", self._labels[rules[n % 7]])
        return count

    def _needs(self, session: Consolidation) -> int:
        """Of each document that needs others a Requirement, tests of some, and Assumptions of documents that were put off."""
        needing = [d for d in self._documents.values() if {x.src for x in self._links if x.rel == "depends_on"} & {d.pep}]
        count = len(needing)
        for n, d in enumerate(needing):
            requirement = self._add(session, d, "requirement", "Requirement", f"Needed by: {d.title}", kind="technical")
            worker_edge(session, requirement, "derives_from", self._labels[f"{d.spec_id}#decision"])
            if n < 5:
                scenario = self._add(session, d, "test", "TestScenario", f"{d.title} works with what it needs", when="Both are there.")
                criterion = self._add(session, d, "criterion", "Criterion", f"{d.title} is usable", measure="yes or no")
                interface = self._add(session, d, "api", "APIContract", f"Interface of {d.title}", method="GET", path=f"/{d.spec_id}")
                session.edge(scenario, "validates", requirement)
                worker_edge(session, scenario, "tests", criterion)
                worker_edge(session, interface, "implements", requirement)
                session.edge(requirement, "depends_on", criterion)
                count += 3
        deferred = [d for d in self._documents.values() if d.status == "Deferred"][:12]
        for d in deferred:
            self._add(session, d, "assumption", "Assumption", f"{d.title} can wait", rationale="It was put off.", validated=False)
        return count + len(deferred)

    def _quarrels(self, session: Consolidation) -> int:
        """Contradictions that hold, of drafts on one topic and of what was put off; and others that were resolved."""
        for new, old in self._superseded():
            ends = self._labels[f"{old.spec_id}#decision"], self._labels[f"{new.spec_id}#decision"]
            session.edge(ends[0], "contradicts", ends[1], reason="Replaced.")
        for name in [n for n in self._labels if n.endswith("#assumption")]:
            decision = self._labels[name.replace("#assumption", "#decision")]
            session.edge(self._labels[name], "contradicts", decision, confidence=0.4)
        for topic in ("Packaging", "Typing"):
            for status in ("Draft", "Rejected"):
                some = [self._labels[f"{d.spec_id}#decision"] for d in self._of(topic=topic) if d.status == status]
                for left, right in pairwise(some):
                    session.edge(left, "contradicts", right)
        self._add(session, self._documents[8], "learning", "Learning", "Readability counts when code is reviewed", area="style")
        session.edge(self._labels["pep-0008#learning"], "validates", self._labels["pep-0008#decision"])
        return 1

    def _of(self, *, kind: str | None = None, topic: str = "") -> list[Document]:
        headers = ((d, self._header[d.pep]) for d in self._documents.values())
        return [d for d, header in headers if kind in {None, header["type"]} and topic in (header["topic"] or "")]

    def _superseded(self) -> list[tuple[Document, Document]]:
        """Newer and older document, of each pair in which both headers or one say so, once."""
        pairs = {frozenset((x.src, x.dst)): x for x in reversed(self._links) if x.rel == "supersedes"}
        return sorted(((self._documents[x.src], self._documents[x.dst]) for x in pairs.values()), key=lambda p: (p[1].pep, p[0].pep))

    def _add(self, session: Consolidation, d: Document, section: str, node_type: str, title: str, body: str = "", **attributes: Any) -> str:
        ref = {"spec_id": d.spec_id, "section": section}
        label = session.add(node_type, title, body, attributes=attributes, source_ref=ref)
        self._labels[f"{d.spec_id}#{section}"] = label
        return label


# The calls.


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        tool: Without the prefix.
        arguments: A text ``@pep-0008#decision`` stands for the id of that node.
        reader: Who asks, of `READERS`.
    """

    tool: str
    arguments: Mapping[str, Any]
    reader: str = "both"

    @property
    def name(self) -> str:
        """What tells it from the others."""
        shown = json.dumps(self.arguments, ensure_ascii=False)
        return f"{self.tool} {shown}" + ("" if self.reader == "both" else f" by {self.reader}")


def _on(tool: str, *given: Mapping[str, Any], board_id: str = ALPHA) -> list[Call]:
    return [Call(tool, {"board_id": board_id, **arguments}) for arguments in given]


_CLAIM = (
    "The package metadata has version 1.1 and, since 2003, says which modules a distribution requires. "
    "It does not replace the `PKG-INFO` file. It costs 300 dollars."
)

CALLS: Sequence[Call] = (
    *_on(
        "get_decision_history",
        {"topic": "metadata for Python software packages"},
        {"topic": "metadata for Python software packages", "limit": 3},
        {"topic": "metadata for Python software packages", "limit": 40},
        {"topic": "structural pattern matching", "limit": 8},
        {"topic": "postponed evaluation of annotations", "limit": 6},
        {"topic": "string interpolation", "since": "2010-01-01"},
        {"topic": "asynchronous generators", "since": "2015-06-01T12:00:00+02:00", "limit": 10},
        {"topic": "voting", "limit": 5},
        {"topic": "ÉNUM", "limit": 5},
        {"topic": "packaging", "since": "2030-01-01"},
        {"topic": "zygomorphic quokkas", "limit": 5},
    ),
    *_on("get_decision_history", {"topic": "wheel", "limit": 5}, board_id=BETA),
    *_on(
        "get_related_context",
        {"node_id": "@pep-0345#decision", "limit": 50},
        {"node_id": "@pep-0345#decision", "max_depth": 1},
        {"node_id": "@pep-0345#decision", "max_depth": 1, "direction": "in"},
        {"node_id": "@pep-0345#decision", "max_depth": 4, "direction": "out"},
        {"node_id": "@pep-0345#decision", "max_depth": 4, "limit": 15},
        {"node_id": "@pep-0345#decision", "max_depth": 4, "edge_types": ["supersedes"]},
        {"node_id": "@pep-0634#decision", "edge_types": ["depends_on", "contradicts"], "direction": "both"},
        {"node_id": "@pep-0622#decision", "edge_types": ["relates_to"], "max_depth": 1, "limit": 200},
        {"node_id": "@pep-0622#decision", "edge_types": ["relates_to"], "direction": "in"},
        {"node_id": "spec:pep-0703#decision", "max_depth": 2},
        {"node_id": "spec:pep-0008#constraint", "max_depth": 3, "limit": 25},
        {"node_id": "@pep-0241#bug", "max_depth": 2, "direction": "out"},
        {"node_id": "@pep-0006#constraint", "edge_types": ["violates", "validates", "supersedes"], "direction": "in", "max_depth": 3},
        {"node_id": "@pep-0484#topic-Typing", "direction": "in", "max_depth": 1, "limit": 20},
        {"node_id": "@pep-0484#topic-Typing", "direction": "out"},
        {"node_id": "@pep-0264#requirement", "max_depth": 4, "limit": 40},
        {"node_id": "spec:pep-9999#decision"},
        {"node_id": "dec_0000000000000000"},
    ),
    *_on(
        "get_supersedence_chain",
        {"node_id": "@pep-0241#decision"},
        {"node_id": "@pep-0345#decision"},
        {"node_id": "@pep-0566#decision"},
        {"node_id": "@pep-0566#decision", "max_depth": 2},
        {"node_id": "@pep-0241#decision", "max_depth": 1},
        {"node_id": "@pep-0563#decision", "max_depth": 50},
        {"node_id": "@pep-0513#decision"},
        {"node_id": "@pep-3124#decision"},
        {"node_id": "@pep-0008#decision"},
    ),
    *_on(
        "find_contradictions",
        {},
        {"limit": 7},
        {"include_resolved": False},
        {"include_resolved": False, "limit": 4},
        {"node_id": "@pep-0563#decision"},
        {"node_id": "@pep-0345#decision", "include_resolved": False},
        {"node_id": "@pep-0755#decision"},
        {"node_id": "@pep-0008#decision"},
    ),
    *_on(
        "find_similar_decisions",
        {"query": "how do we name a package on the index so that nobody squats on it"},
        {"query": "remove the global interpreter lock", "limit": 10},
        {"query": "a switch statement", "limit": 8},
        {"query": "how releases are numbered and how often they come", "limit": 20},
        {"query": "freeze a mapping so that it can be hashed", "limit": 1},
        {"query": "type hints for keyword arguments", "limit": 40},
        {"query": "governance after the dictator has left"},
    ),
    *_on(
        "explain_constraint",
        {"node_id": "@pep-0006#constraint"},
        {"node_id": "@pep-0007#constraint"},
        {"node_id": "@pep-0008#constraint"},
        {"node_id": "@pep-0012#constraint"},
        {"node_id": "@pep-0013#constraint"},
        {"node_id": "@pep-8001#constraint"},
        {"node_id": "@pep-0008#decision"},
    ),
    *_on(
        "list_alternatives",
        {"node_id": "@pep-0622#decision"},
        {"node_id": "@pep-0654#decision"},
        {"node_id": "@pep-0008#decision"},
        {"node_id": "@pep-0750#decision"},
        {"node_id": "@pep-0006#constraint"},
    ),
    *_on(
        "get_learning_from_bugs",
        {"area": "packaging"},
        {"area": "package metadata", "limit": 3},
        {"area": "matching patterns", "limit": 5},
        {"area": "hosting of releases outside the index"},
        {"area": "did not hold", "limit": 40},
        {"area": "zygomorphic quokkas"},
    ),
    *(
        Call("query_global", arguments, reader)
        for arguments, reader in (
            ({"query": "built distributions in the wheel format"}, "both"),
            ({"query": "built distributions in the wheel format"}, "one"),
            ({"query": "built distributions in the wheel format"}, "none"),
            ({"query": "lock files for reproducible installs", "limit": 3}, "both"),
            ({"query": "what came in the place of the old rules", "limit": 50}, "both"),
            ({"query": "who decides", "limit": 60}, "both"),
        )
    ),
    *_on(
        "query_cypher",
        {"cypher": "MATCH (d:Decision)-[:supersedes]->(o:Decision) RETURN d.title, o.title ORDER BY d.decided_at, o.title LIMIT 40"},
        {"cypher": "MATCH (n) RETURN label(n) AS type, count(*) AS nodes ORDER BY nodes DESC, type"},
        {
            "cypher": "MATCH p = (d {id: $id})-[:supersedes*]->(o) RETURN [n IN nodes(p) | n.source_ref] AS chain, o",
            "params": {"id": "@pep-0649#decision"},
        },
        {"cypher": "MATCH (d:Decision) WHERE NOT (d)--() RETURN d.source_ref LIMIT 5"},
        {"cypher": "MATCH (d:Decison) RETURN d.titel"},
    ),
    *_on(
        "query_natural",
        {"query": "Why was postponed evaluation of annotations replaced?"},
        {"query": "Why was postponed evaluation of annotations replaced?", "limit": 3},
        {"query": "Which rules do contributors keep to when they write C code?", "limit": 5},
        {"query": "metadata for Python software packages", "limit": 15},
        {"query": "exception groups", "since": "2018-01-01", "limit": 8},
        {"query": "exception groups", "until": "2018-01-01", "limit": 8},
        {"query": "decorators", "since": "2003-01-01", "until": "2008-01-01T00:00:00Z", "limit": 10},
        {"query": "exception groups", "since": "2018-01-01", "until": "2017-01-01"},
        {"query": "What was learnt when hosting outside the index was given up?", "limit": 50},
        {"query": "zygomorphic quokkas", "limit": 2},
    ),
    *_on("schema_info", {}),
    *_on("schema_info", {}, board_id=BETA),
    *_on("schema_info", {}, board_id=GAMMA),
    *_on(
        "verify_grounding",
        {"answer_text": _CLAIM, "retrieved_nodes": ["@pep-0314#decision", "@pep-0241#decision"]},
        {"answer_text": _CLAIM, "retrieved_nodes": ["@pep-0314#decision", "dec_0000000000000000"]},
        {"answer_text": "Python releases come every year.", "retrieved_nodes": ["@pep-0602#decision"]},
        {"answer_text": "Python releases do not come every year.", "retrieved_nodes": ["@pep-0602#decision"]},
        {
            "answer_text": "Metadata 1.2 for packages; style guide for C code.",
            "retrieved_nodes": ["@pep-0345#decision", "@pep-0007#constraint"],
        },
        {"answer_text": "And so it was.", "retrieved_nodes": ["@pep-0008#decision"]},
    ),
    *_on(
        "query_reflective",
        {"query": "Why was postponed evaluation of annotations replaced?"},
        {"query": "package metadata", "limit": 25},
        {"query": "Where are bugs fixed between releases?", "limit": 4},
        {"query": "quokkas and the style guide", "limit": 6},
    ),
)


# Answers.


@dataclass(frozen=True)
class Boards:
    """Boards that were built, and how to ask of them.

    Attributes:
        world: Where they are.
        keys: Reader → key.
        ids: `pep-0008#decision` → node id, on the board alpha.
    """

    world: World
    keys: Mapping[str, str]
    ids: Mapping[str, str] = field(default_factory=dict)

    def ask(self, call: Call) -> bytes:
        """The answer, or the envelope of a refusal, as it goes over the wire."""
        host: LocalToolHost = self.world.host
        outcome: ToolOutcome = host.call(
            host.authenticate(self.keys[call.reader]), call.tool, self._given(call.arguments), correlation_id="c0ffee"
        )
        return jsontext.encode(outcome.body)

    def answers(self, calls: Iterable[Call] = CALLS) -> dict[str, bytes]:
        """Name of a call → its answer."""
        return {call.name: self.ask(call) for call in calls}

    def _given(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._given(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._given(inner) for inner in value]
        return self.ids[value[1:]] if isinstance(value, str) and value.startswith("@") else value


@contextmanager
def opened_boards(path: Path, keys: Mapping[str, str], embedder: Embedder) -> Iterator[Boards]:
    """A file that was built, years later."""
    with opened(path, embedder=embedder, clock=FixedClock(LATER)) as world:
        yield Boards(world, keys, refs_of_board(world))


def kept(answer: Any) -> Any:
    """An answer as the golden file keeps it: a long text as its beginning and a digest of all of it."""
    if isinstance(answer, dict):
        return {key: kept(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [kept(value) for value in answer]
    if isinstance(answer, str) and len(answer) > _TEXT:
        return f"{answer[:40]}… {len(answer)} sha256:{hashlib.sha256(answer.encode()).hexdigest()[:16]}"
    return answer


def golden() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the file says of its data, and name of a call → what is kept of its answer."""
    head, *lines = (json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines())
    return head, {line["call"]: line["answer"] for line in lines}


def data_digest() -> str:
    """SHA-256 of the decisions."""
    return hashlib.sha256(DECISIONS.read_bytes()).hexdigest()


def differences(wanted: Any, found: Any, path: str = "") -> list[str]:
    """What differs beyond what the last bits of a vector can do; empty where nothing does.

    Scores may differ by one in the fourth decimal. Where a list has scores, entries may change places with others whose score is as near,
    and at its end one may stand for another; then what is made of the list is not compared. Everything else is exactly the same.
    """
    if isinstance(wanted, float) and isinstance(found, float):
        return [] if _near(wanted, found, 1) else [f"{path}: {wanted} became {found}"]
    if isinstance(wanted, dict) and isinstance(found, dict) and list(wanted) == list(found):
        moved = any(_has_scores(wanted[key], found[key]) and _names(wanted[key]) != _names(found[key]) for key in wanted)
        keys = [key for key in wanted if not (moved and key in _MADE_OF_ENTRIES)]
        return [told for key in keys for told in differences(wanted[key], found[key], f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        if _has_scores(wanted, found):
            return _between_scored(wanted, found, path)
        return [told for n, pair in enumerate(zip(wanted, found, strict=True)) for told in differences(*pair, f"{path}[{n}]")]
    shown = json.dumps(wanted), json.dumps(found)  # the order of names counts, and so does whether 1 is true
    return [] if shown[0] == shown[1] else [f"{path}: {shown[0][:300]} became {shown[1][:300]}"]


def entries_of(answer: Mapping[str, Any]) -> list[str]:
    """What a search found, in order, by what tells one from the other."""
    return next((_names(value) for value in answer.values() if _has_scores(value)), [])


def _between_scored(wanted: list[Any], found: list[Any], path: str) -> list[str]:
    before, after = dict(zip(_names(wanted), wanted, strict=True)), dict(zip(_names(found), found, strict=True))
    least = min(one["score"] for one in (*wanted, *found))
    told = [
        f"{path}: {name} is in one of the two alone, with {one['score']}"
        for name, one in (before | after).items()
        if (name in before) != (name in after) and not _near(one["score"], least, 2)
    ]
    common = [name for name in before if name in after]
    told += [line for name in common for line in differences(before[name], after[name], f"{path}[{name}]")]
    place = {name: n for n, name in enumerate(after)}
    told += [
        f"{path}: {first} and {second} changed places"
        for first, second in combinations(common, 2)
        if place[first] > place[second] and not _near(before[first]["score"], before[second]["score"], 2)
    ]
    return told


def _has_scores(*lists: Any) -> bool:
    return all(isinstance(some, list) and some and all(isinstance(one, dict) and "score" in one for one in some) for some in lists)


def _names(entries: list[Any]) -> list[str]:
    ends = [[one[side]["node_id"] for side in ("learning", "bug") if side in one] for one in entries]
    return [" ".join(both or [one.get("board_id", ""), one["node_id"]]) for both, one in zip(ends, entries, strict=True)]


def _near(a: float, b: float, units: int) -> bool:
    return abs(a - b) < (units + 0.5) * SCORE_UNIT


def write_golden(path: Path, answers: Mapping[str, bytes]) -> None:
    """Writes the file."""
    what = (
        "Answers of the golden calls, written by python -m tests.support.golden. Their texts: Python Enhancement Proposals, public domain."
    )
    head = {"what": what, "decisions": f"sha256:{data_digest()}"}
    lines = [head, *({"call": name, "answer": kept(json.loads(answer))} for name, answer in answers.items())]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")


def main(arguments: Sequence[str]) -> None:
    """Writes the golden file; with `--ask FILE` asks every call of a store, its readers' keys on standard input, and shows the answers."""
    embedder = default_embedder()
    if arguments[:1] == ["--ask"]:
        with opened_boards(Path(arguments[1]), json.load(sys.stdin), embedder) as boards:
            json.dump({name: answer.decode() for name, answer in boards.answers().items()}, sys.stdout)
        return
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "golden.db", embedder=embedder) as world:
        keys = build(world)
        answers = Boards(world, keys, refs_of_board(world)).answers()
    GOLDEN.parent.mkdir(exist_ok=True)
    write_golden(GOLDEN, answers)
    sys.stderr.write(f"{len(answers)} answers, {GOLDEN.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
