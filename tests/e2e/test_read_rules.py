"""What the contract says of every tool that reads, asked of each: arguments, marks, scores, and what comes first where scores are equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pulse_kg.domain.audit import Administration
from pulse_kg.domain.schema import REL_TYPES
from pulse_kg.usecases.administration import administer_node
from tests.support.questions import OFTEN, READING, SEARCHING, questions_of
from tests.support.story_board import worker_edge
from tests.support.world import Agent, World, opened

Range = tuple[Any, Any, Any]
"""Default, least and most."""

NUMBERS: Mapping[str, Mapping[str, Range]] = {
    "get_similar_nodes": {"k": (5, 1, 50)},
    "get_decision_history": {"limit": (20, 1, 200)},
    "get_related_context": {"max_depth": (2, 1, 4), "limit": (200, 1, 200)},
    "get_supersedence_chain": {"max_depth": (10, 1, 50)},
    "find_contradictions": {"limit": (100, 1, 200)},
    "find_similar_decisions": {"limit": (5, 1, 50)},
    "explain_constraint": {},
    "list_alternatives": {},
    "get_learning_from_bugs": {"limit": (10, 1, 200)},
    "query_global": {"limit": (20, 1, 100)},
    "query_natural": {"limit": (10, 1, 50)},
    "query_cypher": {},
    "schema_info": {},
    "verify_grounding": {},
    "query_reflective": {"limit": (10, 1, 200)},
}
OTHERS: Mapping[str, tuple[set[str], Mapping[str, Any]]] = {
    "get_similar_nodes": ({"session_id", "candidate_id"}, {}),
    "get_decision_history": ({"board_id", "topic"}, {"since": None}),
    "get_related_context": ({"board_id", "node_id"}, {"edge_types": None, "direction": "both"}),
    "get_supersedence_chain": ({"board_id", "node_id"}, {}),
    "find_contradictions": ({"board_id"}, {"node_id": None, "include_resolved": True}),
    "find_similar_decisions": ({"board_id", "query"}, {}),
    "explain_constraint": ({"board_id", "node_id"}, {}),
    "list_alternatives": ({"board_id", "node_id"}, {}),
    "get_learning_from_bugs": ({"board_id", "area"}, {}),
    "query_global": ({"query"}, {}),
    "query_natural": ({"board_id", "query"}, {"since": None, "until": None}),
    "query_cypher": ({"board_id", "cypher"}, {"params": None}),
    "schema_info": ({"board_id"}, {}),
    "verify_grounding": ({"board_id", "answer_text", "retrieved_nodes"}, {}),
    "query_reflective": ({"board_id", "query"}, {}),
}
"""What each tool needs, and the defaults of what is no number; None for what is simply left out."""


class TestArguments:
    @pytest.mark.parametrize("tool", READING)
    def test_the_schema_has_those_of_the_contract_with_their_defaults_and_ranges(self, tool: str) -> None:
        schema = READING[tool].spec.input_schema
        required, defaults = OTHERS[tool]
        shown = schema["properties"]
        assert set(schema["required"]) == required
        assert shown.keys() == required | defaults.keys() | NUMBERS[tool].keys()
        assert {name: shown[name].get("default") for name in defaults} == defaults
        for name, expected in NUMBERS[tool].items():
            assert (shown[name]["default"], shown[name]["minimum"], shown[name]["maximum"]) == expected

    @pytest.mark.parametrize("tool", READING)
    def test_texts_are_bounded_where_the_contract_bounds_them(self, tool: str) -> None:
        shown = READING[tool].spec.input_schema["properties"]
        for name in {"topic", "query", "area"} & shown.keys():
            assert (shown[name]["minLength"], shown[name]["maxLength"]) == (1, 4_000)
        if tool == "verify_grounding":
            assert (shown["retrieved_nodes"]["minItems"], shown["retrieved_nodes"]["maxItems"]) == (1, 200)
        if tool == "get_related_context":
            assert shown["direction"]["enum"] == ["in", "out", "both"]
            assert shown["edge_types"]["items"]["enum"] == list(REL_TYPES)

    @pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, numbers in NUMBERS.items() for name in numbers])
    def test_a_number_is_taken_to_the_ends_of_its_range_and_no_further(self, told: Told, tool: str, name: str) -> None:
        default, least, most = NUMBERS[tool][name]
        for value in (least, most, default, float(most)):
            told.agent.call(tool, **{**told.questions[tool], name: value})
        for value in (least - 1, most + 1, str(default), True, default + 0.5):
            error = told.agent.refusal(tool, **{**told.questions[tool], name: value})
            assert (error["status"], error["code"]) == (422, "invalid_argument"), value
            assert [problem["path"] for problem in error["details"]["problems"]] == [name]

    @pytest.mark.parametrize("tool", READING)
    def test_what_is_left_out_is_as_its_default(self, told: Told, tool: str) -> None:
        defaults = {**OTHERS[tool][1], **{name: default for name, (default, _, _) in NUMBERS[tool].items()}}
        question = told.questions[tool]
        assert told.agent.call(tool, **{**defaults, **question}) == told.agent.call(tool, **question)


class Told:
    """A board on which there are superseded, revoked and contradicted nodes, and a question for each tool whose answer shows some.

    Attributes:
        agent: Its agent.
        questions: Tool → arguments.
        marks: Node id → what every answer must say of it.
    """

    def __init__(self, world: World) -> None:
        from tests.support.story_board import retry_story

        story = retry_story(world)
        agent = self.agent = story.agent
        self.questions: dict[str, dict[str, Any]] = {**questions_of(story)}
        session = agent.begin("spec_007", 5)
        ref = {"spec_id": "spec_007"}
        labels = {
            "delay": session.add("Constraint", "Webhook receivers are not called for a second", source_ref={**ref, "section": "delay"}),
            "limit": session.add("Constraint", "Webhook receivers are called once a second", source_ref={**ref, "section": "limit"}),
            "queue": session.add("Alternative", "A queue for each webhook receiver", source_ref={**ref, "section": "queue"}),
            "stack": session.add("Alternative", "A stack for each webhook receiver", source_ref={**ref, "section": "stack"}),
            "drops": session.add("Bug", "Webhook delivery drops events", source_ref={**ref, "section": "drops"}),
            "lesson": session.add("Learning", "Webhook delivery is counted", source_ref={**ref, "section": "lesson"}),
            "lesson2": session.add("Learning", "Webhook delivery is measured", source_ref={**ref, "section": "lesson2"}),
            "revoked": session.decide("Webhook retries wait for an hour", section="hour"),
        }
        session.edge(labels["limit"], "supersedes", labels["delay"])
        session.edge(labels["limit"], "depends_on", story["timeout"])
        session.edge(labels["delay"], "relates_to", story["timeout"])
        session.edge(labels["stack"], "supersedes", labels["queue"])
        session.edge(labels["lesson2"], "supersedes", labels["lesson"])
        session.edge(story["backoff"], "relates_to", labels["queue"])
        session.edge(story["backoff"], "relates_to", labels["stack"])
        session.edge(labels["lesson"], "validates", labels["drops"])
        session.edge(labels["lesson2"], "validates", labels["drops"])
        session.edge(labels["revoked"], "contradicts", story["timeout"])
        session.edge(labels["revoked"], "relates_to", story["backoff"])
        worker_edge(session, labels["drops"], "violates", story["timeout"])
        made = {added["candidate_id"]: added["node_id"] for added in session.commit()["applied"]["added"]}
        ids = {name: made[label] for name, label in labels.items()}
        for revoked in ("revoked", "drops"):
            administer_node(Administration("alpha", ids[revoked], "revoke", "It was wrong.", "root"), world.container.services)
        superseded = {
            story["fixed"]: story["backoff"],
            story["drop"]: story["fixed"],
            ids["delay"]: ids["limit"],
            ids["queue"]: ids["stack"],
            ids["lesson"]: ids["lesson2"],
        }
        self.marks: dict[str, dict[str, Any]] = {node.node_id: {} for node in world.container.graph.all_nodes("alpha")}
        self.marks |= {old: {"superseded_by": new} for old, new in superseded.items()}
        self.marks |= {ids[name]: {"status": "revoked"} for name in ("revoked", "drops")}
        self.marks |= {story[name]: {"contradicted": True} for name in ("backoff", "order")}  # the other pair is resolved
        self.questions["find_contradictions"] = {"board_id": "alpha"}

    def answer(self, tool: str, **more: Any) -> dict[str, Any]:
        """The answer to the tool's question."""
        return self.agent.call(tool, **{**self.questions[tool], **more})


@pytest.fixture(scope="module", params=["embedded", pytest.param("served", marks=pytest.mark.served)])
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    from tests.support.world import opened_served

    with opened(environment=OFTEN) if request.param == "embedded" else opened_served(environment=OFTEN) as world:
        world.board("alpha")
        yield Told(world)


def parts(answer: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in an answer."""
    if isinstance(answer, Mapping):
        yield answer
        for inner in answer.values():
            yield from parts(inner)
    elif isinstance(answer, list):
        for inner in answer:
            yield from parts(inner)


def nodes_in(answer: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The nodes that an answer shows, with their ids; those of a query have their label beside it."""
    for part in parts(answer):
        if "node_id" in part:
            yield part["node_id"], part
        elif "label" in part and "properties" in part:
            yield part["id"], part


MARKS = ("superseded_by", "status", "contradicted")
SHOWING = [tool for tool in READING if tool not in {"schema_info", "verify_grounding", "get_similar_nodes"}]
"""Tools whose answers show nodes of the graph as the contract's section on reading says."""


class TestEveryNode:
    @pytest.mark.parametrize("tool", SHOWING)
    def test_says_whether_it_is_superseded_revoked_or_contradicted(self, told: Told, tool: str) -> None:
        more = {} if tool in {"explain_constraint", "list_alternatives", "get_supersedence_chain", "query_cypher"} else {"limit": 50}
        shown = list(nodes_in(told.answer(tool, **more)))
        for node_id, node in shown:
            marks = {name: node[name] for name in MARKS if node.get(name) is not None}
            assert marks == told.marks[node_id], node
        assert any(told.marks[node_id] for node_id, _ in shown)

    @pytest.mark.parametrize("tool", SHOWING)
    def test_says_nothing_of_that_where_there_is_nothing_to_say(self, told: Told, tool: str) -> None:
        for _, node in nodes_in(told.answer(tool)):
            assert "status" not in node or node["status"] == "revoked"
            assert "contradicted" not in node or node["contradicted"] is True
            if tool != "get_decision_history":  # which shows null for a decision that holds
                assert "superseded_by" not in node or node["superseded_by"]

    @pytest.mark.parametrize("tool", READING)
    def test_has_a_score_of_four_decimals_between_0_and_1(self, told: Told, tool: str) -> None:
        answer = told.answer(tool)
        scores = [part["score"] for part in parts(answer) if "score" in part]
        scores += [value for part in parts(answer) if "components" in part for value in part["components"].values()]
        assert all(0 <= score <= 1 and score == round(score, 4) for score in scores)
        assert scores or not {"score", "components"} & set(_named(READING[tool].spec.output_schema))


def _named(schema: Any) -> Iterator[str]:
    """The names of all members that a schema has."""
    for part in parts(schema):
        yield from part.get("properties", {}) if isinstance(part.get("properties"), Mapping) else ()


class TestOrder:
    @pytest.mark.parametrize("old", [0, 1])
    @pytest.mark.parametrize("tool", sorted(SEARCHING - {"get_similar_nodes", "find_similar_decisions"}))
    def test_at_equal_score_what_is_live_comes_first(self, tool: str, old: int) -> None:
        with opened() as world:
            world.board("alpha")
            agent = world.agent()
            node_type = "Learning" if tool == "get_learning_from_bugs" else "Decision"
            session = agent.begin()
            alike = [session.add(node_type, title) for title in ("Ledger rounding", "Rounding ledger")]  # to the embedder of the tests
            session.edge(session.add(node_type, "Zebra"), "supersedes", alike[old])
            if node_type == "Learning":
                bug = session.add("Bug", "Onager")
                for learning in alike:
                    session.edge(learning, "validates", bug)
            made = {added["candidate_id"]: added["node_id"] for added in session.commit()["applied"]["added"]}

            argument = {"get_decision_history": "topic", "get_learning_from_bugs": "area"}.get(tool, "query")
            board = {} if tool == "query_global" else {"board_id": "alpha"}
            answer = agent.call(tool, **{argument: "ledger rounding"}, **board)

            shown = [p for p in parts(answer) if p.get("node_id") in {made[c] for c in alike}]
            if tool == "get_decision_history":  # its order is that of time; the limit shows which is the better
                (first,) = agent.call(tool, topic="ledger rounding", board_id="alpha", limit=1)["results"]
            else:
                first = shown[0]
            assert first["node_id"] == made[alike[1 - old]]
            assert len({p.get("score") for p in shown}) == 1

    def test_only_the_nearest_fifty_or_four_times_the_limit_compete_for_similar_decisions(self, world: World, agent: Agent) -> None:
        session = agent.begin()
        near = [session.decide(f"Zebras, onagers and quaggas in ledger {number}") for number in range(1, 60)]
        far = session.decide("Payroll", confidence=1.0)
        for number in range(100):  # its place in the graph alone would put it among the best
            session.edge(far, "relates_to", session.add("Bug", f"Wombat {number}"))
        made = {added["candidate_id"]: added["node_id"] for added in session.commit()["applied"]["added"]}

        def found(limit: int) -> list[str]:
            answer = agent.call("find_similar_decisions", board_id="alpha", query="ledger rounding", limit=limit)
            return [result["node_id"] for result in answer["results"]]

        assert len(near) == 59
        assert made[far] not in found(12)  # the nearest 50
        assert made[far] in found(50)  # the nearest 200, which are all
