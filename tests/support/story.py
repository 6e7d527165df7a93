"""One consolidation through every tool of the catalogue, step by step, for clients of any kind.

A new tool needs a step here: `test_every_tool_is_called` fails without one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Told:
    """What is known after some steps.

    Attributes:
        board: Where it is told.
        source: The artifact; one of each story's own.
        known: What later steps need of answers: `session`, `first` and `second` candidate.
        answers: Each step's, in order.
    """

    board: str
    source: str
    known: dict[str, str] = field(default_factory=dict)
    answers: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def note(self, step: Step, answer: Mapping[str, Any]) -> None:
        """Keeps a step's answer."""
        self.answers.append((step.tool, answer))
        self.known |= {name: answer[member] for name, member in step.keeps.items()}

    def node(self, candidate: str) -> str:
        """The id of the node that a kept candidate became, once it is committed."""
        added = self.of("commit_consolidation")["applied"]["added"]
        found: str = next(row["node_id"] for row in added if row["candidate_id"] == self.known[candidate])
        return found

    def of(self, tool: str) -> Mapping[str, Any]:
        """A tool's last answer."""
        return dict(self.answers)[tool]


@dataclass(frozen=True)
class Step:
    """One call.

    Attributes:
        tool: Its name, without the prefix.
        arguments: Made from what is known by then.
        keeps: What is kept of the answer: name in `Told.known` → member of the answer.
    """

    tool: str
    arguments: Callable[[Told], dict[str, Any]]
    keeps: Mapping[str, str] = field(default_factory=dict)


def _begin(version: int) -> Step:
    def arguments(told: Told) -> dict[str, Any]:
        return {"board_id": told.board, "source_type": "spec", "source_id": told.source, "source_version": version}

    return Step("begin_consolidation", arguments, {"session": "session_id"})


def _node(node_type: str, title: str, kept: str) -> Step:
    def arguments(told: Told) -> dict[str, Any]:
        body = f"Clients of {told.source} that fail together = come back together."
        return {"session_id": told.known["session"], "node_type": node_type, "title": f"{title} of {told.source}", "body": body}

    return Step("add_node_candidate", arguments, {kept: "candidate_id"})


def _session(told: Told) -> dict[str, Any]:
    return {"session_id": told.known["session"]}


def _board(told: Told) -> dict[str, Any]:
    return {"board_id": told.board}


def _added(told: Told, candidate: str) -> dict[str, Any]:
    """The node that a candidate became, on its board."""
    return {**_board(told), "node_id": told.node(candidate)}


READING = (
    Step("schema_info", _board),
    Step("get_decision_history", lambda told: {**_board(told), "topic": "retries"}),
    Step("get_related_context", lambda told: _added(told, "first")),
    Step("get_supersedence_chain", lambda told: _added(told, "first")),
    Step("find_contradictions", _board),
    Step("find_similar_decisions", lambda told: {**_board(told), "query": "How do retries wait?"}),
    Step("explain_constraint", lambda told: _added(told, "second")),
    Step("list_alternatives", lambda told: _added(told, "first")),
    Step("get_learning_from_bugs", lambda told: {**_board(told), "area": "retries"}),
    Step("query_global", lambda _: {"query": "retries"}),
    Step("query_cypher", lambda told: {**_board(told), "cypher": "MATCH (d:Decision) RETURN d.title ORDER BY d.title"}),
    Step("query_natural", lambda told: {**_board(told), "query": "Why do retries wait?"}),
    Step("query_reflective", lambda told: {**_board(told), "query": "Why do retries wait?"}),
    Step(
        "verify_grounding",
        lambda told: {**_board(told), "answer_text": "Retries wait with jitter.", "retrieved_nodes": [told.node("first")]},
    ),
)

STEPS = (
    _begin(1),
    _node("Decision", "Retries wait with jitter", "first"),
    _node("Constraint", "No more than three tries", "second"),
    Step(
        "add_edge_candidate",
        lambda told: {
            **_session(told),
            "src": {"candidate_id": told.known["first"]},
            "dst": {"candidate_id": told.known["second"]},
            "rel_type": "relates_to",
        },
    ),
    Step("get_similar_nodes", lambda told: {**_session(told), "candidate_id": told.known["first"], "k": 3}),
    Step("propose_reconciliation", _session),
    Step("commit_consolidation", _session),
    *READING,
    _begin(2),
    Step("abort_consolidation", _session),
)


def check(told: Told) -> None:
    """Sees that the story came to its end: two nodes and an edge are in the graph and are found there, and the second session is closed."""
    hints = [proposal["hint"] for proposal in told.of("propose_reconciliation")["proposals"]]
    applied = told.of("commit_consolidation")["applied"]
    assert hints == ["ADD", "ADD"]
    assert told.of("verify_grounding")["grounded"] is True
    assert len(told.of("get_related_context")["nodes"]) == 1
    assert len(applied["added"]) == 2
    assert told.node("second") in json.dumps(told.of("get_related_context"))
    assert told.node("first") in json.dumps(told.of("find_similar_decisions"))
    assert [tool for tool, _ in told.answers] == [step.tool for step in STEPS]
