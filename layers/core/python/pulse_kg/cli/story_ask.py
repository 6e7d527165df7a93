"""Asks the boards of the demo what an agent would want to know, a question for each tool that reads, and checks every answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from textwrap import shorten
from typing import Any, Final, Protocol

from pulse_kg.cli.client import Call
from pulse_kg.cli.client_tools import Refused
from pulse_kg.cli.peps import Document
from pulse_kg.cli.story import label
from pulse_kg.cli.story_run import Checks
from pulse_kg.cli.story_team import STATEMENTS

METADATA: Final = (566, 426, 345, 314, 241)
"""The documents of the longest chain, newest first."""
TOPIC: Final = "metadata of Python packages"
SIMILAR: Final = "a lock file for reproducible installations"
PLAIN: Final = "Where does a single-file script state what it depends on?"
GROUNDED: Final = "Installers calculate what to install without dependency resolution at install-time."
UNGROUNDED: Final = "Installers calculate what to install by dependency resolution at install-time."
INVENTED: Final = "The file is human-readable, and version 2.0 of it is signed."
EVERYWHERE: Final = "Is code of a package run when it is installed?"
TWICE: Final = """
MATCH (d:Decision)-[:relates_to]->(a:Alternative)
WITH a.title AS idea, d ORDER BY d.decided_at
WITH idea, collect(d.id) AS rejected_by
WHERE size(rejected_by) > $times
RETURN idea, rejected_by ORDER BY idea
""".strip()
WRITING: Final = "MATCH (d:Decision) DETACH DELETE d"
LOCK, SCRIPT, OLD_SCRIPT, WITHDRAWN, CHOSEN, RIVAL = 751, 723, 722, 426, 631, 633
_SHOWN: Final = 3
_WEIGHTS: Final = {"semantic": 0.5, "graph_centrality": 0.2, "recency": 0.2, "confidence": 0.1}
_ROUNDED: Final = 1e-4
_LONGEST: Final = 140  # characters of a sentence that is shown

Line = tuple[str, str]
"""A short label, and a text."""


@dataclass(frozen=True)
class Answered:
    """A question and what came of it.

    Attributes:
        question: In plain words.
        tool: Who answered, without the prefix.
        arguments: What it was given.
        answer: The whole answer.
        shown: What a reader sees of it.
    """

    question: str
    tool: str
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any]
    shown: tuple[Line, ...]


class Listener(Protocol):
    """Shows the answers while they come."""

    def answered(self, told: Answered) -> None:
        """A question is answered."""
        ...


@dataclass(frozen=True)
class Asker:
    """One round of questions.

    Attributes:
        board: The board of the documents.
        team: The board of the team.
        ask_as: How an agent calls a tool who is granted both boards.
        ask_as_guest: The same for one who is granted the first board alone.
        documents: By number.
        node_of: Document → its Decision's node.
        statement_of: Name of a statement of the team → its node.
        listener: Shows it.
        checks: Where it is checked.
        told: All answers.
    """

    board: str
    team: str
    ask_as: Call
    ask_as_guest: Call
    documents: Mapping[int, Document]
    node_of: Mapping[int, str]
    statement_of: Mapping[str, str]
    listener: Listener
    checks: Checks
    told: list[Answered] = field(default_factory=list)

    def ask_all(self) -> None:
        """Asks everything.

        Raises:
            Refused: A tool refused to answer.
        """
        self._history()
        self._chain()
        self._alternatives()
        self._contradictions()
        self._around()
        self._constraint()
        self._learnings()
        self._similar()
        self._plain()
        self._reflective()
        self._everywhere()
        self._grounding()
        self._cypher()
        self._schema()

    # One for each tool.

    def _history(self) -> None:
        found = self._ask(
            "How is a package described, and since when?",
            "get_decision_history",
            {"board_id": self.board, "topic": TOPIC, "limit": 6},
            lambda a: [(r["decided_at"][:10], f"{self._name(r)}; {_state(r)}") for r in a["results"]],
        )
        dates = [r["decided_at"] for r in found["results"]]
        self._expect("A history runs from the newest decision to the oldest.", dates == sorted(dates, reverse=True), dates)
        ids = {r["node_id"] for r in found["results"]}
        self._expect("It has all versions of the metadata.", set(self._ids(METADATA)) <= ids, sorted(ids))
        chains = [chain["ids"] for chain in found["chains"] if chain["head"] == self.node_of[METADATA[0]]]
        self._expect("Their chain leads from the one in force to the first.", chains == [self._ids(METADATA)], chains)

    def _chain(self) -> None:
        first = METADATA[-1]
        found = self._ask(
            f"{label(first)} is in an old note. What holds instead of it?",
            "get_supersedence_chain",
            {"board_id": self.board, "node_id": self.node_of[first]},
            lambda a: [("", self._timeline(a["chain"]))],
        )
        self._expect("Any version leads to the one that holds.", found["head"] == self.node_of[METADATA[0]], found["head"])
        chain = [n["node_id"] for n in found["chain"]]
        self._expect("The chain has each version once, newest first.", chain == self._ids(METADATA), chain)

    def _alternatives(self) -> None:
        document = self.documents[SCRIPT]
        found = self._ask(
            f"What was rejected when {label(SCRIPT)} was decided, and why?",
            "list_alternatives",
            {"board_id": self.board, "node_id": self.node_of[SCRIPT]},
            lambda a: _first(sorted(("rejected", f"{n['title']} {_opening(n['reason_discarded'])}") for n in a["alternatives"])),
        )
        seen = sorted((n["title"], n["reason_discarded"] or "") for n in found["alternatives"])
        stated = sorted((idea.title, idea.reason_discarded) for idea in document.rejected)
        self._expect(f"What {label(SCRIPT)} rejected is listed, each with its reason.", seen == stated, len(seen))

    def _contradictions(self) -> None:
        def shown(answer: Mapping[str, Any]) -> list[Line]:
            return [
                ("settled" if p["resolved"] else "open", f"{self._name(p['left'])} ✗ {self._name(p['right'])}: {p['reason']}")
                for p in answer["pairs"]
            ]

        found = self._ask("What contradicts what among the documents?", "find_contradictions", {"board_id": self.board}, shown)
        pairs = [({p["left"]["node_id"], p["right"]["node_id"]}, p["resolved"]) for p in found["pairs"]]
        settled = [({self.node_of[CHOSEN], self.node_of[RIVAL]}, True)]
        self._expect("The two rivals contradict each other, and it is settled.", pairs == settled, found["pairs"])
        no_code = self.statement_of["no_code"]
        found = self._ask(
            "What contradicts the team's first rule, and is not settled?",
            "find_contradictions",
            {"board_id": self.team, "node_id": no_code, "include_resolved": False},
            shown,
        )
        open_ones = [(p["left"]["node_id"], p["right"]["node_id"], p["resolved"]) for p in found["pairs"]]
        wanted = [(no_code, self.statement_of["builds"], False)]
        self._expect("A contradiction that nobody settled is found.", open_ones == wanted, open_ones)

    def _around(self) -> None:
        anchor = self.node_of[WITHDRAWN]

        def shown(answer: Mapping[str, Any]) -> list[Line]:
            nodes = {n["node_id"]: n for n in answer["nodes"]}
            out = [(f"──{e['rel']}─▶", nodes[e["dst"]]) for e in answer["edges"] if e["src"] == anchor]
            back = [(f"◀─{e['rel']}──", nodes[e["src"]]) for e in answer["edges"] if e["dst"] == anchor]
            return [(arrow, self._name(node)) for arrow, node in sorted([*out, *back], key=lambda line: (line[0], self._name(line[1])))]

        arguments = {"board_id": self.board, "node_id": anchor, "edge_types": ["supersedes", "depends_on"], "max_depth": 1}
        found = self._ask(f"What hangs on {label(WITHDRAWN)}, which was withdrawn?", "get_related_context", arguments, shown)
        around = {self._label(n) for n in found["nodes"]}
        stated = {label(pep) for pep in (440, 459, 508, 518, 566)}
        self._expect(f"What its edges join to {label(WITHDRAWN)} is around it.", around == stated, sorted(around))
        self._expect("The node that was asked for comes in full.", found["anchor"]["body"] == self.documents[WITHDRAWN].abstract)

    def _constraint(self) -> None:
        found = self._ask(
            "Why may the installer run no code of a package?",
            "explain_constraint",
            {"board_id": self.team, "node_id": self.statement_of["no_code"]},
            lambda a: [
                ("rule", f"{a['constraint']['title']} ({a['constraint']['severity']}, {a['constraint']['scope']})"),
                ("from", f"{a['origin']['type']} {a['origin']['id']}"),
                *(("beside", n["title"]) for n in a["related_constraints"]),
                *([("disputed", "something contradicts it, and nobody has decided")] if a["constraint"].get("contradicted") else []),
            ],
        )
        origin = {"type": "spec", "id": "installer-rules", "title": None}
        self._expect("A constraint leads to the document that states it.", found["origin"] == origin, found["origin"])
        related = [n["node_id"] for n in found["related_constraints"]]
        self._expect("The constraints of the same document are beside it.", related == [self.statement_of["hashes"]], related)
        self._expect("It is told that the constraint is disputed.", found["constraint"].get("contradicted") is True, found["constraint"])

    def _learnings(self) -> None:
        found = self._ask(
            "What did bugs teach about building packages?",
            "get_learning_from_bugs",
            {"board_id": self.team, "area": "building packages"},
            lambda a: [line for r in a["results"] for line in (("learned", r["learning"]["title"]), ("from", r["bug"]["title"]))],
        )
        pairs = [(r["learning"]["node_id"], r["bug"]["node_id"]) for r in found["results"]]
        self._expect("A learning comes with its bug.", pairs == [(self.statement_of["sandbox"], self.statement_of["cache"])], pairs)

    def _similar(self) -> None:
        found = self._ask(
            f"Was anything like «{SIMILAR}» decided before?",
            "find_similar_decisions",
            {"board_id": self.board, "query": SIMILAR, "limit": 3},
            lambda a: [
                (f"{r['score']:.2f}", f"{self._name(r)} ({', '.join(f'{k} {v:.2f}' for k, v in r['components'].items())})")
                for r in a["results"]
            ],
        )
        ids = [r["node_id"] for r in found["results"]]
        self._expect("The lock file is what comes first.", ids[:1] == [self.node_of[LOCK]], ids)
        parts = [(r["score"], *(r["components"][name] for name in _WEIGHTS)) for r in found["results"]]
        made = all(
            abs(score - sum(weight * part for weight, part in zip(_WEIGHTS.values(), of, strict=True))) <= _ROUNDED for score, *of in parts
        )
        self._expect("A score is what its parts make.", made, parts)

    def _plain(self) -> None:
        found = self._ask(
            PLAIN,
            "query_natural",
            {"board_id": self.board, "query": PLAIN, "limit": _SHOWN},
            lambda a: [(f"{n['score']:.2f}", f"{self._name(n)}{self._fate(n)}: {_opening(n['snippet'])}") for n in a["answer_nodes"]],
        )
        ids = [n["node_id"] for n in found["answer_nodes"]]
        both = self._ids((SCRIPT, OLD_SCRIPT))
        self._expect("A question in plain words finds the answer, and what it replaced.", set(both) <= set(ids), ids)
        edge = {"src": both[0], "rel": "supersedes", "dst": both[1]}
        self._expect("The edge that joins the two supports it.", edge in found["supporting_edges"], found["supporting_edges"])

    def _reflective(self) -> None:
        found = self._ask(
            "The same, with a critic: what is weak about these candidates?",
            "query_reflective",
            {"board_id": self.board, "query": PLAIN, "limit": _SHOWN},
            lambda a: [("critic", self._named(a["critic_notes"]))],
        )
        named = self.node_of[OLD_SCRIPT] in found["critic_notes"]
        self._expect("The critic names the candidate that is history.", named, found["critic_notes"])

    def _everywhere(self) -> None:
        arguments = {"query": EVERYWHERE, "limit": _SHOWN}

        def shown(answer: Mapping[str, Any]) -> list[Line]:
            return [(f"{r['score']:.2f}", f"{self._board(r)}: {self._name(r)}") for r in answer["results"]]

        found = self._ask(EVERYWHERE, "query_global", arguments, shown)
        best = (found["boards_searched"], [(r["board_id"], r["node_id"]) for r in found["results"][:1]])
        self._expect("All boards are asked at once.", best == (2, [(self.team, self.statement_of["no_code"])]), best)
        outcome = self.ask_as_guest("query_global", arguments)
        if outcome.is_error:
            raise Refused("query_global", outcome.body)
        boards = {r["board_id"] for r in outcome.body["results"]}
        alone = boards == {self.board} and outcome.body["boards_searched"] == 1
        self._expect("Who is granted one board gets answers of that alone.", alone, sorted(boards))

    def _grounding(self) -> None:
        for text, why in (
            (GROUNDED, "An answer is drafted"),
            (UNGROUNDED, "One word differs, and turns it around"),
            (INVENTED, "A version is invented"),
        ):
            found = self._ask(
                f"{why}: «{text}» Is that what {label(LOCK)} says?",
                "verify_grounding",
                {"board_id": self.board, "answer_text": text, "retrieved_nodes": [self.node_of[LOCK]]},
                lambda a: [
                    ("grounded" if a["grounded"] else "not so", f"score {a['score']:.2f}"),
                    *(("not found", phrase) for phrase in a["unmatched_phrases"]),
                ],
            )
            unmatched = {GROUNDED: [], UNGROUNDED: [UNGROUNDED], INVENTED: ["2.0", "signed"]}[text]
            verdict = (found["grounded"], found["unmatched_phrases"])
            self._expect(f"{why}: the check says so.", verdict == (not unmatched, unmatched), verdict)

    def _cypher(self) -> None:
        found = self._ask(
            "Which ideas were rejected more than once? A query of one's own:",
            "query_cypher",
            {"board_id": self.board, "cypher": TWICE, "params": {"times": 1}},
            lambda a: [
                ("twice", f"{idea} ({' and '.join(self._named(node_id) for node_id in rejected_by)})") for idea, rejected_by in a["rows"]
            ],
        )
        by_idea: dict[str, list[str]] = {}
        for document in sorted(self.documents.values(), key=lambda d: d.created):
            for idea in document.rejected if document.pep in self.node_of else ():
                by_idea.setdefault(idea.title, []).append(self.node_of[document.pep])
        stated = [[idea, by] for idea, by in sorted(by_idea.items()) if len(by) > 1]
        self._expect("A query finds the ideas that two documents have.", found["rows"] == stated, found["rows"])
        refused = self.ask_as("query_cypher", {"board_id": self.board, "cypher": WRITING})
        code = refused.body["error"]["code"] if refused.is_error else None
        self._expect("A query that would write is refused.", code == "unsafe_cypher", code)

    def _schema(self) -> None:
        found = self._ask(
            "What is such a board made of?",
            "schema_info",
            {"board_id": self.board},
            lambda a: [
                ("nodes", ", ".join(a["node_types"])),
                ("edges", ", ".join(a["rel_types"])),
                ("vectors", ", ".join(i["node_type"] for i in a["vector_indexes"])),
            ],
        )
        used = {statement.node_type for statement in STATEMENTS.values()} | {"Decision", "Alternative"}
        self._expect("The schema has every type that the boards use.", used <= set(found["node_types"]), found["node_types"])

    # What they are made of.

    def _ask(
        self, question: str, tool: str, arguments: Mapping[str, Any], shown: Callable[[Mapping[str, Any]], Iterable[Line]]
    ) -> Mapping[str, Any]:
        outcome = self.ask_as(tool, arguments)
        if outcome.is_error:
            raise Refused(tool, outcome.body)
        told = Answered(question, tool, arguments, outcome.body, tuple(shown(outcome.body)))
        self.told.append(told)
        self.listener.answered(told)
        return outcome.body

    def _expect(self, what: str, holds: bool, seen: object = None) -> None:
        self.checks.expect(what, holds=holds, seen=seen)

    def _ids(self, peps: Iterable[int]) -> list[str]:
        return [self.node_of[pep] for pep in peps]

    def _pep(self, node_id: str) -> int | None:
        return next((pep for pep, known in self.node_of.items() if known == node_id), None)

    def _label(self, node: Mapping[str, Any]) -> str:
        pep = self._pep(node["node_id"])
        return label(pep) if pep is not None else str(node["title"])

    def _year(self, node: Mapping[str, Any]) -> str:
        pep = self._pep(node["node_id"])
        return self.documents[pep].created[:4] if pep is not None else ""

    def _timeline(self, chain: Sequence[Mapping[str, Any]]) -> str:
        """A chain from the oldest on; what one node superseded together stands together."""
        steps = groupby(reversed(chain), key=lambda n: n.get("superseded_by"))
        return " ─▶ ".join(" and ".join(f"{self._year(n)} {self._label(n)}" for n in together) for _, together in steps)

    def _name(self, node: Mapping[str, Any]) -> str:
        pep = self._pep(node["node_id"])
        return f"{label(pep)} {node['title']}" if pep is not None else str(node["title"])

    def _fate(self, node: Mapping[str, Any]) -> str:
        by = self._pep(node.get("superseded_by", ""))
        return f" (superseded by {label(by)})" if by is not None else ""

    def _named(self, text: str) -> str:
        for pep, node_id in self.node_of.items():
            text = text.replace(node_id, label(pep))
        return text

    def _board(self, node: Mapping[str, Any]) -> str:
        return "the team's board" if node["board_id"] == self.team else "the documents"


def _state(node: Mapping[str, Any]) -> str:
    if node["superseded_by"] is not None:
        return "history"
    return "revoked" if node.get("status") == "revoked" else "in force"


def _first(lines: Sequence[Line]) -> list[Line]:
    """The first ones, and how many more there are."""
    rest = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([("", f"and {rest} more")] if rest > 0 else [])]


def _opening(text: str | None) -> str:
    """The first sentence of a text, on one line; a long one is cut."""
    line = " ".join((text or "").split()).partition(". ")[0].rstrip(".")
    return shorten(line, _LONGEST, placeholder=" …") if len(line) > _LONGEST else f"{line}." if line else ""
