"""Tools that read while others commit: they see each commit wholly or not at all, and never wait for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import served_container
from pulse_kg.settings import Settings
from tests.support.crash_points import Faults, FaultyPort, When, faults_inside_a_commit
from tests.support.questions import OFTEN, READING, Questions, questions_of
from tests.support.story_board import Story, retry_story
from tests.support.world import Agent, Consolidation, CountingIds, FixedClock, World, opened

WAIT_SECONDS = 30.0
"""Nothing may take longer, on the slowest machine."""
BOTH = [
    "embedded",
    pytest.param("served", marks=[pytest.mark.served, pytest.mark.slow]),
]
POINTS: list[Any] = [
    ("embedded", "inside.graph.apply", "before"),
    ("embedded", "inside.vectors.apply", "before"),
    ("embedded", "inside.vectors.apply", "after"),
    *(
        pytest.param("served", step, when, marks=[pytest.mark.served, pytest.mark.slow])
        for step, when in (
            ("journal.decide", "before"),
            ("journal.decide", "after"),
            ("graph.apply", "after"),
            ("vectors.apply", "after"),
        )
    ),
]
"""Where a commit is held: it has the board, it is decided, its graph is written, its index too."""


@contextmanager
def opened_with_faults(store: str, folder: Path, faults: Faults) -> Iterator[World]:
    """A world in a file, or on the real servers, whose commits pass by the faults."""
    if store == "embedded":
        with opened(folder / "store.db", environment=OFTEN) as world, faults_inside_a_commit(world.container, faults):
            yield world
        return
    from tests.support.served import fresh_endpoints

    settings = Settings.from_environment({"PULSE_KG_STORE": "aws", "PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "10000", **OFTEN})
    clock, ids = FixedClock(), CountingIds()
    with fresh_endpoints() as endpoints:
        container = served_container(
            settings,
            endpoints,
            embedder=HashingEmbedder(),
            clock=clock,
            ids=ids,
            identity_seconds=0.0,
            wrap=lambda name, part: FaultyPort(part, name, faults),
        )
        try:
            yield World(container, clock, ids)
        finally:
            container.close()


CYPHER = "MATCH (d:Decision) OPTIONAL MATCH (d)-[r]->(o) RETURN d.title, type(r), o.title ORDER BY d.title, type(r), o.title"
"""Nodes and edges without what a commit changes in place: on the servers a score may be seen before the rest of its commit."""


def questions_for(story: Story) -> Questions:
    """A question for each tool."""
    questions = questions_of(story)
    questions["query_cypher"]["cypher"] = CYPHER
    return questions


def told(agent: Agent, questions: Questions) -> dict[str, str]:
    """What each tool answers."""
    return {tool: json.dumps(agent.call(tool, **arguments), ensure_ascii=False) for tool, arguments in questions.items()}


@contextmanager
def held(faults: Faults, step: str, when: When, commit: Callable[[], Any]) -> Iterator[Future[Any]]:
    """While it lasts a commit of another thread stands still at a step."""
    arrived, go_on = threading.Event(), threading.Event()

    def stand_still() -> None:
        arrived.set()
        assert go_on.wait(WAIT_SECONDS)

    faults.arm(1, when, only=step, instead=stand_still)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(commit)
        try:
            running.add_done_callback(lambda _: arrived.set())
            assert arrived.wait(WAIT_SECONDS)
            assert not running.done(), running.exception()
            yield running
        finally:
            go_on.set()


def drafted(story: Story) -> Consolidation:
    """An open session whose commit changes what every tool says of the story."""
    session = story.agent.begin("spec_014", board_id="alpha")
    decision = session.decide("Webhook retries wait by backoff, jitter and moonlight", spec="spec_014", section="moon")
    constraint = session.add("Constraint", "Webhook retries spare the moon", source_ref={"spec_id": "spec_007", "section": "moon"})
    session.edge(decision, "depends_on", story["backoff"])
    session.edge(decision, "contradicts", constraint)
    session.edge(decision, "contradicts", story["spacing"])
    session.edge(constraint, "depends_on", story["timeout"])
    session.edge(story["backoff"], "relates_to", session.add("Alternative", "No moonlight"))
    session.edge(session.add("Learning", "Webhook delivery needs the moon"), "validates", session.add("Bug", "Webhook delivery at night"))
    return session


UNTOUCHED = {"schema_info", "verify_grounding", "get_supersedence_chain"}
"""Tools whose answer that commit does not change."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("store", "step", "when"), POINTS)
def test_while_a_commit_stands_still_every_tool_answers_as_before_it(tmp_path: Path, store: str, step: str, when: When) -> None:
    faults = Faults()
    with opened_with_faults(store, tmp_path, faults) as world:
        world.board("alpha")
        story = retry_story(world)
        questions, session = questions_for(story), drafted(story)
        before = told(story.agent, questions)
        world.clock.advance(seconds=3_000)

        with held(faults, step, when, session.commit) as committing:
            during = told(story.agent, questions)
            assert not committing.done()

        assert during == before
        after = told(story.agent, questions)
        assert committing.result(WAIT_SECONDS)["committed"] is True
        assert set(questions) >= set(READING)
        assert {tool for tool in questions if after[tool] != before[tool]} == set(questions) - UNTOUCHED


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("store", "step"),
    [("embedded", "inside.vectors.apply"), pytest.param("served", "graph.apply", marks=[pytest.mark.served, pytest.mark.slow])],
)
def test_a_commit_that_supersedes_shows_no_new_node_before_it_is_whole(tmp_path: Path, store: str, step: str) -> None:
    """On the servers the old node may say already that it is superseded, and by which node; that one is not there yet."""
    faults = Faults()
    with opened_with_faults(store, tmp_path, faults) as world:
        world.board("alpha")
        story = retry_story(world)
        questions = questions_for(story)
        session = story.agent.begin("spec_014", board_id="alpha")
        new = session.decide("Webhook retries wait by moonlight", spec="spec_014", section="moon")
        session.edge(new, "supersedes", story["backoff"])
        before = told(story.agent, questions)

        with held(faults, step, "after", session.commit) as committing:
            during = told(story.agent, questions)

        (added,) = committing.result(WAIT_SECONDS)["applied"]["added"]
        assert [tool for tool, text in during.items() if "moonlight" in text] == []
        if store == "embedded":
            assert during == before
        chain = json.loads(during["get_supersedence_chain"])
        assert [node["node_id"] for node in chain["chain"]] == [story["backoff"], story["fixed"], story["drop"]]
        assert chain["chain"][0].get("superseded_by") in {None, added["node_id"]}
        assert json.loads(told(story.agent, questions)["get_supersedence_chain"])["head"] == added["node_id"]


# A loop of commits, and one of reads beside it.

GROUP = 4
"""Decisions of a commit."""


@dataclass
class Group:
    """What one commit adds.

    Attributes:
        nodes: Its decisions; the first supersedes the first of the group before.
        edges: Its edges but the supersedes edge, as (source, relationship, target).
    """

    nodes: list[str]
    edges: list[tuple[str, str, str]]


@dataclass
class Turns:
    """Commits of one agent, each of which waits until somebody has looked.

    Attributes:
        agent: The agent.
        anchor: A node that each commit joins.
        looked: Released after each look.
        groups: What was committed.
    """

    agent: Agent
    anchor: str
    looked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    groups: list[Group] = field(default_factory=list)

    def commit_all(self, number: int) -> None:
        for turn in range(number):
            session = self.agent.begin(f"spec_turn_{turn}", board_id="alpha")
            words = ("amber", "basalt", "cobalt", "dolomite")
            a, b, c, d = (session.decide(f"Webhook turn {turn} {word}", section=word, spec=f"spec_turn_{turn}") for word in words)
            edges = [(a, "relates_to", self.anchor), (b, "depends_on", a), (c, "contradicts", a), (d, "contradicts", b)]
            for src, rel, dst in edges:
                session.edge(src, rel, dst)
            if self.groups:
                session.edge(a, "supersedes", self.groups[-1].nodes[0])
            assert self.looked.acquire(timeout=WAIT_SECONDS)
            answer = session.commit()
            made = {added["candidate_id"]: added["node_id"] for added in answer["applied"]["added"]}
            self.groups.append(Group(list(made.values()), [(made[s], rel, made.get(t, t)) for s, rel, t in edges]))


def looks(agent: Agent, anchor: str, oldest: Callable[[], str | None]) -> dict[str, Mapping[str, Any]]:
    """One answer of each tool that shows many nodes."""
    board = {"board_id": "alpha"}
    found: dict[str, Mapping[str, Any]] = {
        "get_related_context": agent.call("get_related_context", **board, node_id=anchor, max_depth=4),
        "find_contradictions": agent.call("find_contradictions", **board, limit=200),
        "find_similar_decisions": agent.call("find_similar_decisions", **board, query="webhook turn", limit=50),
        "get_decision_history": agent.call("get_decision_history", **board, topic="webhook turn", limit=200),
        "query_natural": agent.call("query_natural", **board, query="webhook turn", limit=50),
        "query_global": agent.call("query_global", query="webhook turn", limit=100),
        "query_cypher": agent.call("query_cypher", **board, cypher="MATCH (d:Decision) RETURN d.id AS node_id"),
    }
    if (node_id := oldest()) is not None:
        found["get_supersedence_chain"] = agent.call("get_supersedence_chain", **board, node_id=node_id, max_depth=50)
    return found


def faults_of(tool: str, answer: Mapping[str, Any], groups: list[Group], *, in_place: bool) -> tuple[list[str], int]:
    """What of some commit is there without the rest of it, and how many commits the answer shows."""
    if tool == "get_supersedence_chain":
        chain = answer["chain"]
        line = [group.nodes[0] for group in groups[: len(chain)]][::-1]
        wrong = [f"{tool}: not the chain of the first {len(chain)} commits"] if [n["node_id"] for n in chain] != line else []
        expected = [None, *line[:-1]]
        shown = [node.get("superseded_by") for node in chain]
        if shown[1:] != expected[1:] or not (shown[0] is None or in_place):
            wrong.append(f"{tool}: {shown} and not {expected}")
        return wrong, len(chain)
    there = set(ids_in(answer))
    wrong, seen = [], 0
    for number, group in enumerate(groups):
        shown = [node_id in there for node_id in group.nodes]
        seen += all(shown)
        if any(shown) != all(shown):
            wrong.append(f"{tool}: {sum(shown)} of the nodes of commit {number}")
        if tool == "get_related_context":
            edges = [(e["src"], e["rel"], e["dst"]) in group.edges for e in answer["edges"]]
            if sum(edges) != (len(group.edges) if all(shown) else 0):
                wrong.append(f"{tool}: {sum(edges)} of the edges of commit {number}")
    return wrong, seen


def ids_in(answer: Any) -> Iterator[str]:
    """The nodes that an answer shows, as members or in rows; a node that it only names as the one that superseded another is not shown."""
    if isinstance(answer, Mapping):
        yield from (answer[key] for key in ("node_id", "src", "dst") if key in answer)
        yield from (*answer.get("ids", ()), *(cell for row in answer.get("rows", ()) for cell in row))
    for inner in answer.values() if isinstance(answer, Mapping) else answer if isinstance(answer, list) else ():
        yield from ids_in(inner)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("store", BOTH)
def test_each_answer_shows_every_commit_wholly_or_not_at_all(tmp_path: Path, store: str) -> None:
    number = 8 if store == "embedded" else 4
    with opened_with_faults(store, tmp_path, Faults()) as world, ThreadPoolExecutor(1) as pool:
        world.board("alpha")
        story = retry_story(world)
        turns = Turns(story.agent, story["backoff"])
        answers: list[tuple[str, Mapping[str, Any]]] = []

        def look() -> None:
            answers.extend(looks(story.agent, story["backoff"], lambda: turns.groups[0].nodes[0] if turns.groups else None).items())

        committing = pool.submit(turns.commit_all, number)
        while not committing.done():
            look()
            turns.looked.release()
        committing.result()
        look()

    counts: dict[str, set[int]] = {}
    wrong: list[str] = []
    for tool, answer in answers:
        faults, seen = faults_of(tool, answer, turns.groups, in_place=store == "served")
        wrong += faults
        counts.setdefault(tool, set()).add(seen)
    assert wrong == []
    for tool, seen_counts in counts.items():
        assert max(seen_counts) == number, tool
        assert len(seen_counts) > 1, f"{tool} saw no commit come, and the test shows nothing"
