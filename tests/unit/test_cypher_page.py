"""The page of query_cypher: its lists are the code's, and every query on it gives what the page says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pulse_kg.cli.story import BOARD
from pulse_kg.cypher.aggregates import AGGREGATES
from pulse_kg.cypher.functions import FUNCTIONS
from tests.support.cypher_page import GROUPS, PAGE, asked, boards, lists, questions
from tests.support.reads_page import ROOT, block
from tests.support.world import Agent

ANEW = "run: python -m tests.support.cypher_page"
TEXT = PAGE.read_text(encoding="utf-8")
ASKED = [*(question.block for question in questions(TEXT)), "values", "notices", "errors", "differences", "plan"]


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with boards() as agent:
        yield agent


@pytest.fixture(scope="module")
def answers(agent: Agent) -> dict[str, str]:
    return asked(TEXT, agent)


@pytest.mark.parametrize("name", sorted(lists()))
def test_a_list_of_the_page_is_the_codes_own(name: str) -> None:
    assert block(TEXT, name) == lists()[name], ANEW


def test_every_function_stands_in_one_group() -> None:
    named = [name for names in GROUPS.values() for name in names.split()]
    assert sorted(named) == sorted([*(f.name for f in FUNCTIONS.values()), *(a.name for a in AGGREGATES.values())])


def test_the_page_has_all_its_questions() -> None:
    headings = TEXT.partition("\n## Worked questions\n")[2].count("\n### ")
    assert [question.number for question in questions(TEXT)] == list(range(1, headings + 1)) == list(range(1, 13))
    assert f"twelve worked questions: [docs/{PAGE.name}](docs/{PAGE.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ASKED)
def test_what_the_page_says_of_a_query_comes_true(answers: dict[str, str], name: str) -> None:
    assert block(TEXT, name) == answers[name], ANEW


def test_an_answer_tells_rows_and_not_that_there_are_none(answers: dict[str, str]) -> None:
    head_and_line = 2
    assert [name for name in ASKED if len(answers[name].splitlines()) <= head_and_line] == []


def test_elements_come_in_the_form_that_the_page_says(agent: Agent) -> None:
    cypher = "MATCH p = (new)-[r:supersedes]->(old {status: 'superseded'}) RETURN p, r, old ORDER BY old.decided_at LIMIT 1"
    ((path, edge, node),) = agent.call("query_cypher", board_id=BOARD, cypher=cypher)["rows"]
    assert set(node) == {"id", "label", "properties", "superseded_by"}
    assert set(edge) == {"id", "type", "from", "to", "properties"}
    assert [part["id"] for part in path] == [edge["from"], edge["id"], edge["to"]]


def test_a_word_that_writes_is_harmless_in_a_text(agent: Agent) -> None:
    cypher = "MATCH (n) WHERE n.title CONTAINS 'DELETE' RETURN n"
    assert f"`{cypher}`" in TEXT
    assert agent.call("query_cypher", board_id=BOARD, cypher=cypher)["rows"] == []


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (n:Decision WHERE n.confidence > 0.5) RETURN count(n)",
        "MATCH (a)-[:supersedes|depends_on]->(b) RETURN count(*)",
        "MATCH (a)-[r WHERE r.confidence > 0.5]->(b {title: $t}) RETURN count(r)",
        "MATCH (a)-[r {layer: 'cognitive'}]->() RETURN a{.*} AS n UNION ALL MATCH (n:Bug) RETURN n{.*} AS n",
        "MATCH (a)<--(b)--(c) RETURN a.title SKIP 1 LIMIT 1",
        "MATCH (a) RETURN a.title ORDER BY a.title OFFSET 1 LIMIT 1",
        "MATCH (d:Decision) CALL (d) { MATCH (d)-->(o) RETURN count(o) AS out } RETURN sum(out)",
        "MATCH (d:Decision) CALL { WITH d MATCH (d)-->(o) RETURN count(o) AS out } RETURN sum(out)",
        "UNWIND [1, 2] AS x WITH DISTINCT * WHERE 1 < x <= 5 XOR false RETURN *, single(y IN [x] WHERE y = 2)",
        "MATCH (a:Bug), (b:Bug) MATCH p = allShortestPaths((a)-[*..3]-(b)) RETURN count(p) /* all */ // of them",
        "RETURN COUNT { (:Decision) }, EXISTS { MATCH (:Bug) RETURN 1 }, COLLECT { UNWIND [1] AS x RETURN x }, [1, 2][-1], [1, 2, 3][1..3]",
        "MATCH (n) WHERE NOT (n)-[:supersedes]->() AND n.title ENDS WITH '' RETURN n['title'], n{.title, x: 1}, CASE WHEN n:Bug THEN 1 END",
        "RETURN reduce(sum = 0, x IN [1, 2] | sum + x) % 2 ^ 1, all(x IN [] WHERE x), any(x IN [] WHERE x), none(x IN [] WHERE x)",
    ],
)
def test_the_forms_that_the_page_names_are_taken(agent: Agent, query: str) -> None:
    agent.call("query_cypher", board_id=BOARD, cypher=query, params={"t": "x"})
