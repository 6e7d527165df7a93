"""What the benchmark of the tools that read asks. One line of `QUESTIONS` more measures one tool more, its aim with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["graph", "walk", "semantic"]
LIMITS: Final[Mapping[Kind, float]] = {"graph": 3.0, "walk": 8.0, "semantic": 12.0}
"""Milliseconds that a tool of a kind may take on `AIMED_AT` nodes: reads of the graph, two hops around a node, searches by meaning."""
AIMED_AT: Final = 10_000
ROUND_TRIPS: Final = 3
"""Requests to the served stores that a tool's call is to need at most."""
_SINCE: Final = "2020-01-01"


@dataclass(frozen=True)
class Sample:
    """What one call asks about.

    Attributes:
        board: The argument that names the board.
        phrase: A question in plain words.
        word: One word that many titles have.
        area: One word of a component's name.
        decision: A Decision.
        title: Its title.
        superseding: A Decision that supersedes another.
        contradicting: A Decision that contradicts another.
        constraint: A Constraint.
        compared: A Decision that relates to an Alternative.
    """

    board: Mapping[str, str]
    phrase: str
    word: str
    area: str
    decision: str
    title: str
    superseding: str
    contradicting: str
    constraint: str
    compared: str


@dataclass(frozen=True)
class Question:
    """A call that is measured.

    Attributes:
        tool: Without the prefix.
        kind: What is aimed at.
        arguments: Of the call.
        variant: What tells it from another question to the same tool.
    """

    tool: str
    kind: Kind
    arguments: Callable[[Sample], Mapping[str, Any]]
    variant: str = ""

    @property
    def name(self) -> str:
        """As the report has it."""
        return f"{self.tool}, {self.variant}" if self.variant else self.tool


QUESTIONS: Final = (
    Question("get_decision_history", "semantic", lambda s: {**s.board, "topic": s.phrase}),
    Question("get_decision_history", "semantic", lambda s: {**s.board, "topic": s.phrase, "since": _SINCE}, "since"),
    Question("get_related_context", "walk", lambda s: {**s.board, "node_id": s.decision}),
    Question("get_supersedence_chain", "graph", lambda s: {**s.board, "node_id": s.superseding}),
    Question("find_contradictions", "graph", lambda s: {**s.board, "node_id": s.contradicting}),
    Question("find_contradictions", "graph", lambda s: {**s.board}, "of the board"),
    Question("find_similar_decisions", "semantic", lambda s: {**s.board, "query": s.phrase}),
    Question("explain_constraint", "graph", lambda s: {**s.board, "node_id": s.constraint}),
    Question("list_alternatives", "graph", lambda s: {**s.board, "node_id": s.compared}),
    Question("get_learning_from_bugs", "semantic", lambda s: {**s.board, "area": s.area}),
    Question("get_learning_from_bugs", "semantic", lambda s: {**s.board, "area": s.phrase}, "a sentence"),
    Question("query_global", "semantic", lambda s: {"query": s.phrase}),
    Question("query_natural", "semantic", lambda s: {**s.board, "query": s.phrase}),
    Question("query_natural", "semantic", lambda s: {**s.board, "query": s.phrase, "since": _SINCE, "until": "2099-01-01"}, "a span"),
    Question("query_natural", "semantic", lambda s: {**s.board, "query": s.word}, "a common word"),
    Question("schema_info", "graph", lambda s: {**s.board}),
    Question("verify_grounding", "graph", lambda s: {**s.board, "answer_text": s.title, "retrieved_nodes": [s.decision]}),
    Question("query_reflective", "semantic", lambda s: {**s.board, "query": s.phrase}),
)
