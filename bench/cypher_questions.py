"""What the benchmark of the query engine asks. One line of `QUERIES` more measures one query more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bench.read_questions import Question, Sample

QUERIES: Final[Mapping[str, str]] = {
    "count of all nodes": "MATCH (n) RETURN count(n) AS nodes",
    "a label, CONTAINS, ORDER BY, LIMIT": (
        "MATCH (d:Decision) WHERE d.title CONTAINS $word RETURN d.id AS id, d.title AS title ORDER BY title, id LIMIT 10"
    ),
    "one hop from a node": "MATCH (d:Decision {id: $id})-[r]->(m) RETURN type(r) AS type, m.title AS title",
    "two hops, the second optional": (
        "MATCH (d:Decision {id: $id})-[r]->(m) OPTIONAL MATCH (m)-[s]->(k) RETURN m.title AS title, count(k) AS further"
    ),
    "paths of one to four": "MATCH (d:Decision {id: $id})-[*1..4]->(m) RETURN count(DISTINCT m) AS reached",
    "all relationships by type": "MATCH ()-[r]->() RETURN type(r) AS type, count(*) AS edges ORDER BY type",
    "typed join": "MATCH (d:Decision)-[:supersedes]->(o:Decision)-[:relates_to]->(a:Alternative) RETURN count(*) AS found",
    "what has no successor": "MATCH (d:Decision) WHERE NOT (d)<-[:supersedes]-() RETURN count(d) AS open",
}
"""Name → text: the kinds of queries that are asked of a board."""
ANCHORED: Final = ("one hop from a node", "two hops, the second optional", "paths of one to four")
"""Those that begin at a node, and so are to take the same time on every board."""


def _params(name: str) -> Callable[[Sample], Mapping[str, Any]]:
    wanted = {key for key in ("id", "word") if f"${key}" in QUERIES[name]}
    return lambda sample: {key: value for key, value in (("id", sample.decision), ("word", sample.word)) if key in wanted}


QUESTIONS: Final = tuple(Question(name, "graph", _params(name)) for name in QUERIES)
"""As `ask_all` of the tools that read takes them: a query's name in place of the tool's."""
COMPARED: Final = tuple(question for question in QUESTIONS if question.name != "what has no successor")
"""What another engine is asked too; on the one left out it would take minutes a time."""
PARSING_MS: Final = 0.15
"""What the parser may take for half of the conformance kit's queries."""
LOADING_MS: Final = 70.0
"""What of the processor a new process may take to import the engine."""
FLAT: Final = 1.25
"""How many times as long what begins at a node may take with ten times as many nodes."""
