"""Plays the story: every step is a call of the MCP endpoint, and what it answers is told and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pulse_kg.cli.client_tools import Refused, Tools
from pulse_kg.cli.peps import Document
from pulse_kg.cli.story import AUTHOR, SECOND, STORY, Chapter, GiveUp, Race, Read, Replay, Text, label, text_of

_NEAR: Final = 3


@dataclass(frozen=True)
class Verdict:
    """A proposal, or what became of it.

    Attributes:
        hint: ADD, UPDATE, SUPERSEDE or NOOP; or `override`, `conflict`, `nothing_changed`, `abort`, `near`.
        why: The reason, with documents in place of node ids.
        score: The similarity, where it mattered.
    """

    hint: str
    why: str
    score: float | None = None


@dataclass(frozen=True)
class Told:
    """A session as a reader sees it.

    Attributes:
        pep: The document.
        year: When it was made.
        title: Its title.
        status: Its status today.
        agent: Who read it.
        said: What a reader is told before.
        verdicts: Proposals and what became of them, in order.
        outcome: What was written.
        audit_row_id: The commit, if there was one.
    """

    pep: int
    year: str
    title: str
    status: str
    agent: str
    said: str
    verdicts: tuple[Verdict, ...]
    outcome: str
    audit_row_id: int | None


class Narrator(Protocol):
    """Tells the story while it happens."""

    def chapter(self, chapter: Chapter) -> None:
        """A chapter begins."""
        ...

    def session(self, told: Told) -> None:
        """A session is over."""
        ...


@dataclass
class Checks:
    """What had to hold, and whether it did.

    Attributes:
        done: Every check and its result, in order.
    """

    done: list[tuple[str, bool]] = field(default_factory=list)

    def expect(self, what: str, *, holds: bool, seen: object = None) -> None:
        """Notes a check.

        Args:
            what: What has to hold, as a sentence.
            holds: Whether it does.
            seen: What was found instead, where it does not.
        """
        self.done.append((what if holds or seen is None else f"{what} Found: {seen}", holds))

    @property
    def failures(self) -> list[str]:
        """What did not hold."""
        return [what for what, holds in self.done if not holds]


@dataclass(frozen=True)
class _Stated:
    """A session with its candidates: the Decision's, then the Alternatives'."""

    session_id: str
    candidates: tuple[str, ...]


class Story:
    """One telling.

    Args:
        board: The board that it fills.
        agents: The write tools by agent.
        documents: By number.
        narrator: Tells it.
        checks: Where it is checked.

    Attributes:
        node_of: Document → its Decision's node.
        told: Every session.
        commits: How many there were.
        override_row: The audit row of the overridden proposal.
    """

    def __init__(
        self, board: str, agents: Mapping[str, Tools], documents: Mapping[int, Document], narrator: Narrator, checks: Checks
    ) -> None:
        self._board = board
        self._agents = agents
        self._documents = documents
        self._narrator = narrator
        self._checks = checks
        self.node_of: dict[int, str] = {}
        self.told: list[Told] = []
        self.commits = 0
        self.override_row = 0

    def play(self) -> None:
        """Plays all chapters.

        Raises:
            Refused: A tool refused what the story needs.
        """
        play: dict[type, Callable[[Any], None]] = {Read: self._read, Replay: self._replay, Race: self._race, GiveUp: self._give_up}
        for chapter in STORY:
            self._narrator.chapter(chapter)
            for scene in chapter.scenes:
                play[type(scene)](scene)

    def names(self) -> dict[str, str]:
        """Node id → document."""
        return {node_id: label(pep) for pep, node_id in self.node_of.items()}

    # The scenes.

    def _read(self, scene: Read) -> None:
        document = self._documents[scene.pep]
        tools = self._agents[AUTHOR]
        stated = self._state(tools, text_of(document, ideas=scene.ideas, again=scene.again))
        with tools.aborting(stated.session_id):
            own = {scene.pep: {"candidate_id": stated.candidates[0]}}
            for src, dst in scene.supersedes:
                tools.add_edge(stated.session_id, self._end(src, own), "supersedes", self._end(dst, own), {"reason": "as the headers say"})
            for src, dst in scene.depends_on:
                tools.add_edge(stated.session_id, self._end(src, own), "depends_on", self._end(dst, own))
            for src, dst in scene.contradicts:
                reason = {"reason": "two forms for one field"}
                tools.add_edge(stated.session_id, self._end(src, own), "contradicts", self._end(dst, own), reason)
            proposals = tools.propose(stated.session_id)
            overrides = []
            if scene.override is not None:
                overrides = [{"candidate_id": stated.candidates[0], "hint": "ADD", "rationale": scene.override}]
            answer = tools.commit(stated.session_id, overrides)
        verdicts = self._verdicts(proposals)
        if scene.override is not None:
            verdicts.append(Verdict("override", f"ADD. {scene.override}"))
            self.override_row = answer["audit_row_id"]
        outcome = self._committed(scene.pep, answer)
        self._check_read(scene, proposals, answer)
        self._tell(document, AUTHOR, scene.said, verdicts, outcome, answer)

    def _replay(self, scene: Replay) -> None:
        text = text_of(self._documents[scene.pep])
        begun = self._agents[AUTHOR].begin(self._board, *text.source, text.content_hash)
        self._checks.expect(
            "An unchanged document opens no session.", holds=begun["nothing_changed"] is True and begun["session_id"] is None, seen=begun
        )
        verdicts = [Verdict("nothing_changed", f"The hash {text.content_hash[:18]}… was committed before; no session was opened.")]
        self._tell(self._documents[scene.pep], AUTHOR, scene.said, verdicts, "nothing written", None)

    def _race(self, scene: Race) -> None:
        document = self._documents[scene.pep]
        text = text_of(document)
        first, second = self._agents[AUTHOR], self._agents[SECOND]
        slower, faster = self._state(first, text), self._state(second, text)
        with first.aborting(slower.session_id), second.aborting(faster.session_id):
            early = first.propose(slower.session_id)
            proposals = second.propose(faster.session_id)
            answer = second.commit(faster.session_id)
            outcome = self._committed(scene.pep, answer)
            self._tell(document, SECOND, scene.said, self._verdicts(proposals), outcome, answer)
            refusal = _refusal(first, slower.session_id)
            late = first.propose(slower.session_id)
            answer = first.commit(slower.session_id)
        self._checks.expect("Both agents were told to ADD.", holds=[early[0]["hint"], proposals[0]["hint"]] == ["ADD", "ADD"], seen=early)
        self._checks.expect("The second of two commits is a conflict.", holds=refusal.startswith("commit_conflict"), seen=refusal)
        self._checks.expect("Proposed again, it is a NOOP.", holds=late[0]["hint"] == "NOOP", seen=late[0])
        verdicts = [
            *self._verdicts(early),
            Verdict("conflict", f"The commit is refused ({refusal}), and nothing is written. Proposed again:"),
            *self._verdicts(late),
        ]
        self._tell(document, AUTHOR, f"And {AUTHOR}, who comes second:", verdicts, self._committed(scene.pep, answer), answer)

    def _give_up(self, scene: GiveUp) -> None:
        document = self._documents[scene.pep]
        tools = self._agents[AUTHOR]
        stated = self._state(tools, text_of(document))
        with tools.aborting(stated.session_id):
            found = tools.similar(stated.session_id, stated.candidates[0], _NEAR)
            answer = tools.abort(stated.session_id)
        self._checks.expect("An abort drops the session.", holds=answer == {"session_id": stated.session_id, "aborted": True}, seen=answer)
        near = [f"{self.names().get(m['node_id'], m['node_id'])} «{m['title']}» ({m['score']:.2f})" for m in found["matches"]]
        self._checks.expect("A candidate's near nodes are found.", holds=len(near) == _NEAR, seen=found)
        verdicts = [
            Verdict("near", "; ".join(near)),
            Verdict("abort", "Nothing of it was ever visible to anybody, and nothing is left of it."),
        ]
        self._tell(document, AUTHOR, scene.said, verdicts, "nothing written", None)

    # What they are made of.

    def _state(self, tools: Tools, text: Text) -> _Stated:
        session_id: str = tools.begin(self._board, *text.source, text.content_hash)["session_id"]
        with tools.aborting(session_id):
            candidates = tuple(tools.add_node(session_id, node) for node in text.nodes)
            for alternative in candidates[1:]:
                tools.add_edge(session_id, {"candidate_id": candidates[0]}, "relates_to", {"candidate_id": alternative})
        return _Stated(session_id, candidates)

    def _end(self, pep: int, own: Mapping[int, dict[str, str]]) -> dict[str, str]:
        return own.get(pep) or {"node_id": self.node_of[pep]}

    def _committed(self, pep: int, answer: Mapping[str, Any]) -> str:
        self.commits += 1
        applied = answer["applied"]
        self._checks.expect(
            f"Commit {self.commits} has the next number.", holds=answer["audit_row_id"] == self.commits, seen=answer["audit_row_id"]
        )
        for node in (*applied["noop"], *applied["added"]):
            if node["candidate_id"] == "cand_001":
                self.node_of[pep] = node["node_id"]
        names = self.names()
        old = [names[n["node_id"]] for n in answer["superseded_nodes"]]
        parts = [_count(len(applied["added"]), "node"), _count(len(answer["edges_added"]), "edge")]
        outcome = ", ".join(part for part in parts if part) or "nothing new"
        return f"commit {answer['audit_row_id']}: {outcome}" + (f"; now history: {', '.join(old)}" if old else "")

    def _check_read(self, scene: Read, proposals: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> None:
        name, first, expect = label(scene.pep), proposals[0], self._checks.expect
        old = {n["node_id"]: n["superseded_by"] for n in answer["superseded_nodes"]}
        if scene.override is not None:
            expect(f"{name} is proposed as a successor.", holds=first["hint"] == "SUPERSEDE", seen=first)
            expect(f"The override keeps what {name} would have replaced.", holds=not old, seen=old)
        if scene.by_rule is not None:
            expect(f"Without an edge, {name} is found to be a successor.", holds=first["hint"] == "SUPERSEDE", seen=first)
        for src, dst in (*scene.supersedes, *(((scene.pep, scene.by_rule),) if scene.by_rule is not None else ())):
            expect(f"{label(src)} supersedes {label(dst)}.", holds=old.get(self.node_of[dst]) == self.node_of[src], seen=old)
        if scene.again:
            expect(f"What {name} decided is there already.", holds=first["hint"] == "NOOP", seen=first)
            added = len(answer["applied"]["added"])
            expect(f"The ideas that {name} rejected are new.", holds=added == len(self._documents[scene.pep].rejected), seen=added)

    def _verdicts(self, proposals: Sequence[Mapping[str, Any]]) -> list[Verdict]:
        """That of the Decision, and those of its Alternatives in one line."""
        first = proposals[0]
        why = str(first["rationale"])
        for node_id, name in self.names().items():
            why = why.replace(node_id, name)
        verdicts = [Verdict(first["hint"], why, first.get("score"))]
        rest = Counter(p["hint"] for p in proposals[1:])
        verdicts += [Verdict(hint, f"{_count(n, 'alternative')} that it rejected.") for hint, n in sorted(rest.items())]
        return verdicts

    def _tell(
        self, document: Document, agent: str, said: str, verdicts: Sequence[Verdict], outcome: str, answer: Mapping[str, Any] | None
    ) -> None:
        told = Told(
            pep=document.pep,
            year=document.created[:4],
            title=document.title,
            status=document.status,
            agent=agent,
            said=said,
            verdicts=tuple(verdicts),
            outcome=outcome,
            audit_row_id=None if answer is None else answer["audit_row_id"],
        )
        self.told.append(told)
        self._narrator.session(told)


def _refusal(tools: Tools, session_id: str) -> str:
    try:
        tools.commit(session_id)
    except Refused as refused:
        return refused.code
    return "it was accepted"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}" if number else ""
