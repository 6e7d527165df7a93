"""Rules of the tools that read which the contract leaves open, as docs/adr/0012 states them; the others stand with their tools' tests."""

from __future__ import annotations

from typing import Any

from pulse_kg.mcp.tools import find_tool
from tests.support.world import Agent


def ask(agent: Agent, name: str, **arguments: Any) -> dict[str, Any]:
    container = agent.world.container
    tool = find_tool(name)
    assert tool is not None
    with container.services.one_call():
        return tool(container.authenticate(agent.api_key), {"board_id": "alpha", **arguments}, container.services)


def titles(found: dict[str, Any]) -> set[str]:
    return {one["title"] for one in found["results"]}


def test_a_learning_of_two_bugs_is_two_results(agent: Agent) -> None:
    session = agent.begin()
    learning = session.add("Learning", "Round the ledger once", attributes={"area": "ledger"})
    for title in ("Cents were lost", "Cents were made"):
        session.edge(learning, "validates", session.add("Bug", title))
    session.commit()
    results = ask(agent, "get_learning_from_bugs", area="ledger")["results"]
    assert {r["bug"]["title"] for r in results} == {"Cents were lost", "Cents were made"}
    assert len({r["learning"]["node_id"] for r in results}) == 1


def test_a_topic_of_stop_words_alone_is_found_where_a_title_has_the_whole_of_it(agent: Agent) -> None:
    session = agent.begin()
    session.decide("What is it to us")
    session.decide("Is what it was")
    session.commit()
    scores = {r["title"]: r["score"] for r in ask(agent, "get_decision_history", topic="what is it")["results"]}
    assert scores["What is it to us"] >= 0.5  # by its title
    assert scores.get("Is what it was", 0.0) != 0.5  # by meaning, or not at all


def test_a_joined_word_is_one_word_and_a_plural_another(agent: Agent) -> None:
    session = agent.begin()
    session.add("Criterion", "Where pyproject.toml lies")
    session.add("Criterion", "Where toml lies")
    session.add("Criterion", "Ledgers are exact")
    session.commit()

    def found(query: str) -> dict[str, float]:
        answer = ask(agent, "query_natural", query=query)
        return {n["title"]: n["score"] for n in answer["answer_nodes"]}

    assert found("toml lies") == {"Where toml lies": 1.0, "Where pyproject.toml lies": 0.75}  # its characters, and one of the two words
    assert found("lies toml") == {"Where toml lies": 1.0}
    assert found("pyproject.toml") == {"Where pyproject.toml lies": 1.0}
    assert found("exact ledger") == {}


def test_a_chain_is_whole_whatever_the_topic_and_the_time(agent: Agent) -> None:
    session = agent.begin()
    first = session.add("Decision", "Zebra", attributes={"decided_at": "2020-01-01"})
    head = session.add("Decision", "Ledger rounding", attributes={"decided_at": "2025-01-01"})
    session.edge(head, "supersedes", first)
    made = {a["candidate_id"]: a["node_id"] for a in session.commit()["applied"]["added"]}
    answer = ask(agent, "get_decision_history", topic="ledger rounding", since="2024-01-01")
    assert titles(answer) == {"Ledger rounding"}
    assert answer["chains"] == [{"head": made[head], "ids": [made[head], made[first]]}]
