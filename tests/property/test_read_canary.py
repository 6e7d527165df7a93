"""Two boards in one store, alike in all but their words: who is granted one is told the same bytes whether or not the other is there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.domain.schema import NODE_TYPES, REL_TYPES, NodeType, RelType
from pulse_kg.usecases.boards import add_attribute
from tests.property.profile import fixed
from tests.support.questions import OFTEN, READING
from tests.support.story_board import worker_edge
from tests.support.world import Agent, World, opened, opened_served

OWN, OTHER = "zirconium", "palladium"
"""The two boards; each one's name stands in every text, reference and key of it."""

EXAMPLES, SERVED_EXAMPLES = 150, 20
"""Calls of each tool."""

Arguments = Mapping[str, Any]
randoms = st.randoms(use_true_random=True)  # seeded by the example: hypothesis itself would choose the strange far too often


# Two boards.


@dataclass(frozen=True)
class Facts:
    """What is known of a board.

    Attributes:
        board_id: Its id, which is its mark too.
        agent: Its own agent.
        nodes: Its nodes, one of each type and an older decision.
        edges: Its edges.
        session_id: An open session with candidates.
        titles: The titles of its nodes.
        refs: The source references of its nodes.
    """

    board_id: str
    agent: Agent
    nodes: tuple[str, ...]
    edges: tuple[str, ...]
    session_id: str
    titles: tuple[str, ...]
    refs: tuple[str, ...]

    def node(self, node_type: NodeType) -> str:
        """The node of a type."""
        return self.nodes[1 + NODE_TYPES.index(node_type)]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id that was made for it."""
        return (*self.nodes, *self.edges, self.session_id, self.agent.agent_id)

    @property
    def canaries(self) -> tuple[str, ...]:
        """What must never be told to anybody else."""
        return (self.board_id, *self.ids)


EDGES: tuple[tuple[str, RelType, str], ...] = (
    ("Decision", "depends_on", "Constraint"),
    ("Decision", "contradicts", "Requirement"),
    ("Decision", "relates_to", "Alternative"),
    ("Learning", "validates", "Bug"),
    ("Bug", "violates", "Constraint"),
    ("Constraint", "derives_from", "Requirement"),
    ("Requirement", "mentions", "Entity"),
    ("TestScenario", "tests", "Criterion"),
    ("APIContract", "implements", "Requirement"),
    ("Assumption", "belongs_to", "Entity"),
)
BY_AGENTS = {"supersedes", "contradicts", "depends_on", "relates_to", "validates"}


def tell(world: World, mark: str) -> Facts:
    """Makes a board; apart from its mark it is the same as any other."""
    world.board(mark)
    add_attribute(mark, "Bug", f"{mark}_found_by", "text", boards=world.container.boards)
    agent = world.agent(f"teller of {mark}", boards=(mark,))
    first = agent.begin(f"spec_{mark}", 1, board_id=mark)
    first.decide(f"The {mark} queue is last in, first out", f"So {mark} was built.", section=f"{mark}-old", spec=f"spec_{mark}")
    (old,) = first.commit()["applied"]["added"]
    second = agent.begin(f"spec_{mark}", 2, board_id=mark)
    titles, labels = list[str](), dict[str, str]()
    for node_type in NODE_TYPES:
        titles.append(f"The {node_type} of the {mark} queue waits 30 s")
        ref = {"spec_id": f"spec_{mark}", "section": f"{mark}-{node_type}"}
        labels[node_type] = second.add(node_type, titles[-1], f"Because {mark} said so. It holds.", source_ref=ref)
    second.edge(labels["Decision"], "supersedes", old["node_id"], reason=f"{mark} asked for it")
    for src, rel_type, dst in EDGES:
        if rel_type in BY_AGENTS:
            second.edge(labels[src], rel_type, labels[dst], reason=f"{mark} asked for it")
        else:
            worker_edge(second, labels[src], rel_type, labels[dst])
    answer = second.commit()
    opened_session = agent.begin(f"spec_{mark}", 3, board_id=mark)
    opened_session.decide(f"The {mark} queue is first in, first out", f"Because {mark} said so.")
    return Facts(
        mark,
        agent,
        (old["node_id"], *(added["node_id"] for added in answer["applied"]["added"])),
        tuple(edge["edge_id"] for edge in answer["edges_added"]),
        opened_session.session_id,
        tuple(titles),
        tuple(f"spec:spec_{mark}#{mark}-{node_type}" for node_type in ("old", *NODE_TYPES)),
    )


@dataclass(frozen=True)
class Twins:
    """The reader's own board, and another one.

    Attributes:
        own: Of the board that the reader is granted, whose agent is the reader.
        other: Of the other.
        alone: A world that has the first alone; no other is told apart from the one with both.
        both: A world that has both.
    """

    own: Facts
    other: Facts
    alone: World
    both: World

    def told(self, world: World, tool: str, arguments: Arguments, agent: Agent | None = None) -> str:
        """All that an agent is told by a call."""
        reader = agent or self.own.agent
        return json.dumps(Agent(world, reader.api_key, reader.agent_id, reader.name).try_call(tool, arguments).body, ensure_ascii=False)


@contextmanager
def embedded_twins() -> Iterator[Twins]:
    with opened(environment=OFTEN) as alone, opened(environment=OFTEN) as both:
        own = tell(alone, OWN)
        assert tell(both, OWN).ids == own.ids
        yield Twins(own, tell(both, OTHER), alone, both)


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    with embedded_twins() as made:
        yield made


# Arguments.


def look_alikes(text: str) -> tuple[str, ...]:
    """What a careless comparison takes for the text, or for something that holds it."""
    return (
        text.replace("a", "\u0430").replace("e", "\u0435"),
        text[:1] + "\u200b" + text[1:],
        "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
        text.upper(),
        text + " ",
        text[:-1] + "%",
        text[:-1] + "_",
        f"{text}*",
        f"{text}' OR '1' = '1",
        f"{text}\n",
    )


@dataclass(frozen=True)
class Words:
    """What arguments are made of, for one who belongs to a board and is curious about another; all choices are those of `rng`.

    A call with one strange argument shows more than one with five, so most are what the tool takes.
    """

    own: Facts
    other: Facts
    rng: Random

    def mostly(self, usual: Sequence[Any], strange: Sequence[Any]) -> Any:
        """Nine times in ten one of the usual."""
        return self.rng.choice(usual if self.rng.random() < 0.9 else strange)

    def board(self) -> Any:
        """Mostly one's own."""
        own, other = self.own.board_id, self.other.board_id
        joined = (f"{own}:{other}", f"{own}/{other}", f"{own},{other}", [own, other])
        return self.mostly([own], (*[other] * 9, *look_alikes(own), *look_alikes(other), *joined, "nowhere"))

    def node(self) -> Any:
        """Nodes of either board, references, and what looks like them; often of the types that some tools want."""
        other = self.other
        prefixed = [f"{b}{sep}{n}" for b in (other.board_id, self.own.board_id) for sep in ":_/#" for n in other.nodes[:2]]
        wanted: tuple[NodeType, ...] = ("Decision", "Constraint")
        choices = (
            [facts.node(node_type) for facts in (self.own, self.own, other) for node_type in wanted],
            [*self.own.nodes, *self.own.refs],
            [*other.ids, *other.refs],
            [*look_alikes(other.nodes[0]), *look_alikes(other.refs[0]), *prefixed, "dec_nowhere", "spec:spec_nowhere#s", other.board_id],
        )
        return self.rng.choice(self.rng.choice(choices))

    def nodes(self) -> list[Any]:
        """Some of them."""
        return [self.node() for _ in range(self.rng.randint(1, 4))]

    def text(self) -> str:
        """A question about either board, or both."""
        pieces = ("queue", "waits 30 s", "holds", "why", "not", "a", "zebra", self.own.board_id, *self.own.titles, self.own.nodes[0])
        far = (self.other.board_id, f"spec_{self.other.board_id}", *self.other.titles, *self.other.ids, *self.other.refs)
        strange = [one for text in (self.other.board_id, self.other.nodes[0]) for one in look_alikes(text)]
        return " ".join(self.rng.choice(self.rng.choice((pieces, far, strange))) for _ in range(self.rng.randint(1, 6)))

    def whole(self, most: int) -> Any:
        """A number."""
        return self.mostly(range(1, most + 1), (0, most + 1, 10_000, None, "5"))

    def instant(self) -> Any:
        """A time."""
        return self.mostly((None, "2025-01-01", "2026-01-01T00:00:00Z", "2026-01-02", "2030-01-01"), [self.other.board_id])

    def relationships(self) -> Any:
        """A filter of relationships."""
        chosen = self.rng.sample(REL_TYPES, self.rng.randint(1, 6))
        return self.mostly((None, chosen), ([], [self.other.board_id], [self.other.edges[0]], ["follows"]))

    def cypher(self) -> str:
        """A query; what it names comes as a value, as a name, and as text inside it."""
        value = self.rng.choice(("$id", "$text", json.dumps(self.other.board_id), json.dumps(self.other.nodes[0])))
        return self.rng.choice(
            (
                "MATCH (n) RETURN n ORDER BY n.title, n.id",
                f"MATCH (n) WHERE n.id = {value} OR n.body CONTAINS {value} RETURN n, properties(n) ORDER BY n.title",
                f"MATCH (a)-[r]->(b) WHERE a.source_ref <> {value} RETURN a.title, type(r), r.reason, b ORDER BY a.title, b.title, type(r)",
                "MATCH (n) WHERE n.id IN $ids OPTIONAL MATCH (n)-[*1..3]-(m) RETURN n.id, m.title, count(*) ORDER BY n.id, m.title",
                f"MATCH (n) WHERE n.board_id = {value} RETURN count(n)",
                f"MATCH (n:Bug) RETURN n.{self.other.board_id}_found_by, n.{self.own.board_id}_found_by, keys(n)",
                f"MATCH (n:{self.other.board_id}) RETURN n",
                f"MATCH (n)-[:supersedes]->(m {{id: {value}}}) RETURN n UNION MATCH (n {{id: {value}}}) RETURN n",
            )
        )

    def session(self) -> Any:
        """A session."""
        strange = (*[self.other.session_id] * 5, *look_alikes(self.other.session_id), self.other.agent.agent_id, self.other.nodes[0])
        return self.mostly([self.own.session_id], strange)


STRATEGIES: Mapping[str, Callable[[Words], Any]] = {
    "board_id": Words.board,
    "node_id": Words.node,
    "retrieved_nodes": Words.nodes,
    "query": Words.text,
    "topic": Words.text,
    "area": Words.text,
    "answer_text": Words.text,
    "limit": lambda words: words.whole(50),
    "k": lambda words: words.whole(50),
    "max_depth": lambda words: words.whole(4),
    "since": Words.instant,
    "until": Words.instant,
    "edge_types": Words.relationships,
    "cypher": Words.cypher,
    "params": lambda words: {"id": words.node(), "text": words.text(), "ids": words.nodes()},
    "direction": lambda words: words.mostly(("in", "out", "both"), [words.other.board_id]),
    "include_resolved": lambda words: words.mostly((True, False), [1]),
    "session_id": Words.session,
    "candidate_id": lambda words: words.mostly(["cand_001"], ("cand_002", *words.other.nodes[:2], words.other.board_id)),
}
"""By the name of an argument: what it is tried with."""


def arguments_for(tool: str, words: Words) -> dict[str, Any]:
    """Arguments of a tool: those that it needs, and some of the others."""
    schema = READING[tool].spec.input_schema
    required = schema.get("required", ())
    return {name: STRATEGIES[name](words) for name in schema["properties"] if name in required or words.rng.random() < 0.4}


# What holds.


@pytest.mark.parametrize("tool", READING)
def test_every_argument_of_every_tool_that_reads_has_something_to_be_tried_with(tool: str) -> None:
    """A new tool with a new argument needs a strategy."""
    assert READING[tool].spec.input_schema["properties"].keys() <= STRATEGIES.keys()


@pytest.mark.parametrize("tool", READING)
def test_a_granted_board_answers_with_its_own_words_so_that_there_is_something_to_leak(twins: Twins, tool: str) -> None:
    words = Words(twins.other, twins.own, Random(tool))  # the other way round
    told = [twins.told(twins.both, tool, arguments_for(tool, words), twins.other.agent) for _ in range(EXAMPLES)]
    answers = [one for one in told if not one.startswith('{"error"')]
    assert len(answers) >= EXAMPLES // 20
    assert any(OTHER in one for one in answers)


@pytest.mark.parametrize("tool", READING)
def test_no_call_on_one_board_tells_anything_of_another_nor_whether_it_is_there(twins: Twins, tool: str) -> None:
    """Whatever of the other board stands in the arguments is as good as nonsense: it was, where that board is not there."""

    @fixed(EXAMPLES)
    @given(randoms)
    def check(rng: Random) -> None:
        arguments = arguments_for(tool, Words(twins.own, twins.other, rng))
        told = twins.told(twins.both, tool, arguments)
        assert told == twins.told(twins.alone, tool, arguments), arguments
        assert leaked(told, arguments, twins.other) == [], arguments

    check()


def leaked(told: str, arguments: Arguments, other: Facts) -> list[str]:
    """What of another board is told that the caller had not said himself."""
    heard, said = _folded(told), _folded(json.dumps(arguments, ensure_ascii=False))
    return [canary for canary in map(_folded, other.canaries) if canary in heard and canary not in said]


def _folded(text: str) -> str:
    """As some answers show words of the caller."""
    return normalize("NFKC", text).casefold()


@pytest.mark.served
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nor_on_the_real_servers(twins: Twins) -> None:
    """The calls are made before the other board is there, and again when it is."""
    with ExitStack() as stack:
        world = stack.enter_context(opened_served(environment=OFTEN))
        own = tell(world, OWN)
        assert own.ids == twins.own.ids
        words = Words(own, twins.other, Random("served"))
        calls = [(tool, call) for tool in READING for call in (arguments_for(tool, words) for _ in range(SERVED_EXAMPLES))]
        before = [twins.told(world, tool, call) for tool, call in calls]
        assert tell(world, OTHER).ids == twins.other.ids

        after = [twins.told(world, tool, call) for tool, call in calls]

    answered = {tool for (tool, _), told in zip(calls, before, strict=True) if not told.startswith('{"error"')}
    assert answered == set(READING)
    for call, first, second in zip(calls, before, after, strict=True):
        assert second == first, call
        assert leaked(second, call[1], twins.other) == [], call
