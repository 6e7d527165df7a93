"""query_cypher as an agent meets it: the page's example, every field, limit and refusal; on both stores where they could differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.cypher import budget
from pulse_kg.domain.audit import Administration
from pulse_kg.domain.permissions import PRESETS
from pulse_kg.mcp.local_host import LocalToolHost
from pulse_kg.usecases.administration import administer_node
from tests.support.questions import OFTEN
from tests.support.story_board import BACKOFF, BUCKET, DROP, FIXED, HERD, SLOW, TIMEOUT, Story, retry_story
from tests.support.world import Agent, FixedClock, World, opened, opened_served

EXAMPLE = "MATCH (d:Decision)-[:supersedes]->(o:Decision) RETURN d.title, o.title"
FEW_BYTES = 20_000


@pytest.fixture(scope="module", params=["embedded", pytest.param("served", marks=pytest.mark.served)])
def story(request: pytest.FixtureRequest) -> Iterator[Story]:
    """The story on the board alpha, which no test changes, and again on beta."""
    with opened(environment=OFTEN) if request.param == "embedded" else opened_served(environment=OFTEN) as world:
        world.board("alpha")
        world.board("beta")
        told = retry_story(world)
        retry_story(world, "beta")
        yield told


@pytest.fixture
def world() -> Iterator[World]:
    """A world of the test's own."""
    with opened(environment=OFTEN) as made:
        made.board("alpha")
        yield made


def asked(agent: Agent, cypher: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The answer to a query on the board alpha."""
    return agent.call("query_cypher", board_id="alpha", cypher=cypher, **({} if params is None else {"params": params}))


def rows(agent: Agent, cypher: str, params: Mapping[str, Any] | None = None) -> list[list[Any]]:
    rows: list[list[Any]] = asked(agent, cypher, params)["rows"]
    return rows


def refused(agent: Agent, cypher: str, params: object = None) -> Mapping[str, Any]:
    """What the envelope of a refused query holds."""
    return agent.refusal("query_cypher", board_id="alpha", cypher=cypher, **({} if params is None else {"params": params}))


class TestTheAnswer:
    def test_the_example_shows_which_decision_took_the_place_of_which(self, story: Story) -> None:
        answer = asked(story.agent, EXAMPLE, {})
        assert isinstance(answer.pop("elapsed_ms"), int)
        assert sorted(answer.pop("rows")) == sorted([[BACKOFF, FIXED], [FIXED, DROP]])
        assert answer == {"columns": ["d.title", "o.title"], "row_count": 2}

    def test_the_fields_come_in_the_order_of_the_page(self, story: Story) -> None:
        assert list(asked(story.agent, EXAMPLE)) == ["columns", "rows", "row_count", "elapsed_ms"]

    def test_params_may_be_left_out_or_null(self, story: Story) -> None:
        given = {"board_id": "alpha", "cypher": EXAMPLE}
        ways: list[dict[str, Any]] = [{}, {"params": {}}, {"params": None}]
        answers = [story.agent.call("query_cypher", **given, **more)["rows"] for more in ways]
        assert answers[0] == answers[1] == answers[2]

    def test_a_column_has_its_alias_or_the_text_of_its_expression(self, story: Story) -> None:
        cypher = "MATCH (d:Decision) RETURN  d . title , count( * )  AS `how many`, toUpper('a')+'b' LIMIT 1"
        assert asked(story.agent, cypher)["columns"] == ["d . title", "how many", "toUpper('a')+'b'"]

    def test_a_star_has_a_column_for_each_name_even_where_there_is_no_row(self, story: Story) -> None:
        answer = asked(story.agent, "MATCH (a:Bug)-[r:supersedes]->() RETURN *")
        assert (answer["columns"], answer["rows"], answer["row_count"]) == (["a", "r"], [], 0)

    def test_a_node_comes_with_all_that_the_board_knows_of_it(self, story: Story) -> None:
        ((node,),) = rows(story.agent, "MATCH (d:Decision) WHERE d.title STARTS WITH 'Webhook retries' RETURN d")
        known = node["properties"]
        assert {key: value for key, value in node.items() if key != "properties"} == {
            "id": story["backoff"],
            "label": "Decision",
            "contradicted": True,
        }
        expected = {
            "id": story["backoff"],
            "title": BACKOFF,
            "body": "Each wait doubles.",
            "rationale": HERD,
            "confidence": 0.9,
            "source_ref": "spec:spec_007#third",
            "created_at": "2026-06-15T00:00:00.000Z",
        }
        assert {key: known.get(key) for key in expected} == expected
        assert list(known) == sorted(known)
        assert not {"board_id", "embedding"} & known.keys()
        assert None not in known.values()

    def test_a_relationship_comes_with_its_ends_and_what_was_said_of_it(self, story: Story) -> None:
        ((edge,),) = rows(story.agent, "MATCH ({id: $id})-[r:supersedes]->() RETURN r", {"id": story["backoff"]})
        known = edge.pop("properties")
        assert edge == {
            "id": story.edges["backoff", "supersedes", "fixed"],
            "type": "supersedes",
            "from": story["backoff"],
            "to": story["fixed"],
        }
        assert (known["edge_id"], known["reason"], known["created_at"]) == (
            edge["id"],
            "All clients came back at once.",
            "2026-06-15T00:00:00.000Z",
        )
        assert "board_id" not in known

    def test_a_path_is_the_list_of_its_nodes_and_relationships_in_turn(self, story: Story) -> None:
        ((path,),) = rows(story.agent, "MATCH p = ({id: $id})-[:supersedes*2]->() RETURN p", {"id": story["backoff"]})
        assert [part.get("label", part.get("type")) for part in path] == ["Decision", "supersedes", "Decision", "supersedes", "Decision"]
        assert [part["id"] for part in path[::2]] == [story["backoff"], story["fixed"], story["drop"]]

    def test_every_node_says_whether_it_is_superseded_or_contradicted_wherever_it_stands(self, story: Story) -> None:
        cypher = "MATCH (n) WHERE n.id IN $ids WITH n ORDER BY n.created_at RETURN collect({inner: [n]}) AS c"
        (([fixed, order],),) = rows(story.agent, cypher, {"ids": [story["fixed"], story["order"]]})
        assert fixed["inner"][0]["superseded_by"] == story["backoff"]
        assert "contradicted" not in fixed["inner"][0]
        assert order["inner"][0]["contradicted"] is True
        assert "superseded_by" not in order["inner"][0]

    def test_a_node_that_was_taken_back_says_so(self, world: World) -> None:
        story = retry_story(world)
        before = rows(story.agent, "MATCH (n {id: $id}) RETURN n", {"id": story["spacing"]})
        administer_node(Administration("alpha", story["spacing"], "revoke", "It was wrong.", "root"), world.container.services)
        ((node,),) = rows(story.agent, "MATCH (n {id: $id}) RETURN n", {"id": story["spacing"]})
        assert "status" not in before[0][0]
        assert node["status"] == "revoked"

    @pytest.mark.parametrize(
        ("expression", "shown"),
        [
            ("null", None),
            ("true", True),
            ("1", 1),
            ("1.0", 1.0),
            ("9223372036854775807", 2**63 - 1),
            ("'é'", "é"),
            ("[1, [null], {}]", [1, [None], {}]),
            ("{a: {b: null}}", {"a": {"b": None}}),
            ("0.0 / 0.0", "NaN"),
            ("1.0 / 0.0", "Infinity"),
            ("-1.0 / 0.0", "-Infinity"),
            ("datetime('2026-05-07T16:30:00+02:00')", "2026-05-07T14:30:00.000Z"),
            ("date('2026-05-07')", "2026-05-07"),
            ("duration({days: 2, hours: 3})", "P2DT3H"),
        ],
    )
    def test_every_kind_of_value_has_its_form_in_json(self, story: Story, expression: str, shown: object) -> None:
        ((value,),) = rows(story.agent, f"RETURN {expression} AS v")
        assert (value, type(value)) == (shown, type(shown))

    def test_a_value_that_nests_deeper_than_a_reader_of_json_can_take_is_refused(self, story: Story) -> None:
        nested = "RETURN reduce(v = 1, i IN range(1, {}) | [v]) AS v"
        ((value,),) = rows(story.agent, nested.format(100))
        for depth in (101, 300, 480, 520, 100_000):
            error = refused(story.agent, nested.format(depth))
            assert (error["code"], error["details"]["kind"]) == ("invalid_cypher", "NestingTooDeep"), depth
        for _ in range(100):
            (value,) = value
        assert value == 1

    def test_what_a_board_does_not_have_is_null_and_matches_nothing(self, story: Story) -> None:
        assert rows(story.agent, "MATCH (n:Decision) RETURN DISTINCT n.colour, n['board_id'], n.embedding") == [[None, None, None]]
        assert rows(story.agent, "MATCH (n:Colour)-[:painted]->() RETURN n") == []


class TestParams:
    VALUES: Mapping[str, Any] = {
        "null": None,
        "bool": True,
        "int": -5,
        "big": 2**63 - 1,
        "small": -(2**63),
        "float": 0.5,
        "text": "O'Neil\n\u2028\U0001f600 $x `y`",
        "list": [1, [None], {"a": []}],
        "map": {"a b": {"c": 1}, "": 2},
    }

    def test_each_kind_of_json_value_arrives_as_it_is(self, story: Story) -> None:
        names = list(self.VALUES)
        answer = asked(story.agent, f"RETURN {', '.join(f'${name}' for name in names)}", self.VALUES)
        assert answer["columns"] == [f"${name}" for name in names]
        assert answer["rows"] == [list(self.VALUES.values())]

    def test_a_value_never_becomes_part_of_the_query(self, story: Story) -> None:
        hostile = "x'}) DETACH DELETE n //"
        assert rows(story.agent, "MATCH (n {title: $t}) RETURN n", {"t": hostile}) == []
        assert rows(story.agent, "MATCH (n) WHERE n[$t] IS NOT NULL RETURN n", {"t": hostile}) == []
        for cypher in ("MATCH (n:$t) RETURN n", "MATCH (n) RETURN n.$t", "MATCH ()-[r:$t]->() RETURN r"):
            assert refused(story.agent, cypher, {"t": "Decision"})["code"] == "invalid_cypher"

    def test_a_missing_one_is_named_with_those_that_were_given(self, story: Story) -> None:
        error = refused(story.agent, "RETURN $a,\n $title", {"a": 1, "titel": "x"})
        assert (error["code"], error["status"]) == ("invalid_cypher", 422)
        assert {k: error["details"][k] for k in ("kind", "line", "column")} == {"kind": "ParameterMissing", "line": 2, "column": 2}
        assert "$titel" in error["message"]

    def test_one_that_the_query_does_not_name_does_no_harm(self, story: Story) -> None:
        assert rows(story.agent, "RETURN 1", {"unused": 1}) == [[1]]

    @staticmethod
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return value

    @pytest.mark.parametrize(
        ("params", "problem"),
        [
            ({"n": 2**63}, "64 bits"),
            ({"n": [{"deep": -(2**63) - 1}]}, "64 bits"),
            ({"n": float("nan")}, "finite"),
            ({"n": [float("-inf")]}, "finite"),
            ({"": 1}, "names of 1 to 64 characters"),
            ({"n" * 65: 1}, "names of 1 to 64 characters"),
            ({f"n{i}": i for i in range(101)}, "100"),
            ({"n": list(range(20_000))}, "20000 values"),
            ({"n": "x" * 262_145}, "262144 characters"),
            ({"n": {"k" * 65_537: "x" * 200_000}}, "262144 characters"),
            ({"n": "a\x00b"}, ""),
            ({"n": "\ud800"}, ""),
            ({"n": {"\ud800": 1}}, ""),
            ([], "object"),
            ("{}", "object"),
        ],
    )
    def test_odd_ones_are_refused(self, story: Story, params: Any, problem: str) -> None:
        error = refused(story.agent, "RETURN 1", params)
        assert (error["status"], error["code"]) == (422, "invalid_argument")
        (found,) = error["details"]["problems"]
        assert found["path"].startswith("params")
        assert problem in found["problem"]

    def test_too_deep_ones_are_refused_and_the_deepest_that_are_not_arrive(self, story: Story) -> None:
        deep = self.nested(30)
        assert rows(story.agent, "RETURN $n", {"n": deep}) == [[deep]]
        (problem,) = refused(story.agent, "RETURN 1", {"n": self.nested(40)})["details"]["problems"]
        assert "nested" in problem["problem"]

    def test_all_that_is_wrong_is_told_at_once(self, story: Story) -> None:
        error = story.agent.refusal("query_cypher", board_id="A b", cypher=" ", params={"n": 2**63, "": 1, "x": float("nan")}, colour="red")
        told = {problem["path"]: problem["problem"] for problem in error["details"]["problems"]}
        assert told.keys() == {"board_id", "cypher", "params", "params.x", "colour"}
        assert "64 bits" in told["params"]
        assert "names of 1 to 64" in told["params"]


class TestRows:
    @pytest.mark.parametrize(
        ("cypher", "count", "truncated"),
        [
            ("UNWIND range(1, 999) AS x RETURN x", 999, False),
            ("UNWIND range(1, 1000) AS x RETURN x", 1_000, False),
            ("UNWIND range(1, 1001) AS x RETURN x", 1_000, True),
            ("UNWIND range(1, 5000) AS x RETURN x LIMIT 1200", 1_200, False),
            ("UNWIND range(1, 5000) AS x RETURN x LIMIT 6000", 5_000, False),
            ("UNWIND range(1, 10000) AS x RETURN x LIMIT 20000", 10_000, False),
            ("UNWIND range(1, 10001) AS x RETURN x LIMIT 20000", 10_000, True),
            ("UNWIND range(1, 5000) AS x RETURN x LIMIT $n", 3_000, False),
            ("UNWIND range(1, 5000) AS x RETURN x ORDER BY x DESC SKIP 10 LIMIT 500 + 1000", 1_500, False),
            ("UNWIND range(1, 5000) AS x RETURN x LIMIT 0", 0, False),
            ("RETURN 1 LIMIT 0", 0, False),
            ("UNWIND range(1, 5000) AS x WITH x LIMIT 4000 RETURN x", 1_000, True),
            ("CALL { UNWIND range(1, 5000) AS x RETURN x LIMIT 4000 } RETURN x", 1_000, True),
            ("UNWIND range(1, 5000) AS x RETURN x LIMIT 4000 UNION ALL RETURN 0 AS x", 1_000, True),
            ("RETURN 0 AS x UNION ALL UNWIND range(1, 5000) AS x RETURN x LIMIT 4000", 1_000, True),
            ("WITH 'LIMIT 5000' AS most UNWIND range(1, 5000) AS x RETURN x // LIMIT 5000", 1_000, True),
        ],
    )
    def test_a_thousand_come_without_a_limit_and_ten_thousand_with_one(
        self, world: World, cypher: str, count: int, truncated: bool
    ) -> None:
        answer = asked(world.agent(), cypher, {"n": 3_000})
        assert (answer["row_count"], len(answer["rows"])) == (count, count)
        assert answer.get("truncated", False) is truncated
        assert answer.get("truncated") is not False

    @pytest.mark.parametrize("limit", ["-1", "1.5", "'1'", "null", "x", "$n"])
    def test_a_limit_that_is_no_number_of_rows_is_refused(self, world: World, limit: str) -> None:
        error = refused(world.agent(), f"UNWIND [1] AS x RETURN x LIMIT {limit}", {"n": -1})
        assert error["code"] == "invalid_cypher"


class TestNotices:
    def test_a_name_that_the_board_does_not_have_is_told_with_the_nearest_one(self, story: Story) -> None:
        answer = asked(story.agent, "MATCH (d:Decisoin)-[r:superseeds]->(o) WHERE d.titel = r.raeson RETURN o.title")
        assert answer["rows"] == []
        told = answer["notices"]
        assert [
            any(wrong in one and near in one for one in told)
            for wrong, near in (
                ("Decisoin", "Decision"),
                ("superseeds", "supersedes"),
                ("titel", "title"),
                ("raeson", "reason"),
            )
        ] == [True] * 4
        assert len(told) == 4

    def test_names_that_it_has_are_not_told(self, story: Story) -> None:
        assert "notices" not in asked(story.agent, "MATCH (d:Decision)-[r:supersedes]->(o) RETURN d.rationale, r.reason, o.created_at")

    def test_there_are_never_more_than_twenty_of_them(self, story: Story) -> None:
        many = ", ".join(f"d.colour_{i}" for i in range(1_000))
        assert len(asked(story.agent, f"MATCH (d:Decision) RETURN {many} LIMIT 1")["notices"]) == 20

    @pytest.mark.parametrize("function", ["datetime()", "date()", "timestamp()", "date.truncate('year')"])
    def test_an_answer_that_hangs_on_the_clock_says_so(self, story: Story, function: str) -> None:
        assert asked(story.agent, f"RETURN {function} AS now")["notices"] == ["time_dependent"]

    def test_one_that_does_not_is_silent(self, story: Story) -> None:
        assert "notices" not in asked(story.agent, "RETURN datetime('2026-05-07T16:30:00Z') AS t")

    def test_paths_that_go_on_beyond_the_bound_are_told(self, world: World) -> None:
        agent = world.agent()
        session = agent.begin()
        line = [session.decide(f"Turn {i} of the line", "x " * i, section=f"turn-{i}") for i in range(23)]
        for one, two in pairwise(line):
            session.edge(one, "depends_on", two)
        session.commit()
        longest = asked(agent, "MATCH p = (:Decision)-[:depends_on*]->() RETURN max(length(p))")
        assert (longest["rows"], longest["notices"]) == ([[20]], ["path_bound_reached"])
        assert "notices" not in asked(agent, "MATCH p = (:Decision)-[:depends_on*..19]->() RETURN max(length(p))")
        assert refused(agent, "MATCH p = ()-[:depends_on*..21]->() RETURN p")["code"] == "invalid_cypher"


class TestRefusals:
    @pytest.mark.parametrize(
        ("cypher", "code", "place"),
        [
            ("CREATE (n)", "unsafe_cypher", (1, 1)),
            ("MATCH (n)\n  DELETE n", "unsafe_cypher", (2, 3)),
            ("MATCH (n) CALL { MERGE (m) RETURN m } RETURN n", "unsafe_cypher", (1, 18)),
            ("CALL db.labels()", "unsafe_cypher", (1, 1)),
            ("LOAD CSV FROM 'file:///etc/passwd' AS x RETURN x", "unsafe_cypher", (1, 1)),
            ("MATCH (n) RETURN m", "invalid_cypher", (1, 18)),
            ("MATCH (n)\n\n\tRETURN n.title +", "invalid_cypher", (3, 18)),
            ("RETURN 1 RETURN 2", "invalid_cypher", (1, 10)),
            ("RETURN 1; MATCH (n) DELETE n", "invalid_cypher", (1, 11)),
            ("RETURN nowhere(1)", "invalid_cypher", (1, 8)),
            ("RETURN 1 / 0", "invalid_cypher", (1, 8)),
            ("ＭＡＴＣＨ (n) RETURN n", "invalid_cypher", (1, 1)),
        ],
    )
    def test_a_query_that_can_not_be_run_is_refused_with_its_place(
        self, story: Story, cypher: str, code: str, place: tuple[int, int]
    ) -> None:
        error = refused(story.agent, cypher)
        assert (error["status"], error["code"], error["retryable"]) == (422, code, False)
        assert (error["details"]["line"], error["details"]["column"]) == place
        assert f"Line {place[0]}, column {place[1]}" in error["message"]

    def test_a_query_has_at_most_16_kib_and_this_is_told_before_all_else(self, story: Story) -> None:
        longest = "RETURN '" + "é" * ((16_384 - 9) // 2) + "'"
        assert len(longest.encode()) in {16_383, 16_384}
        assert len(rows(story.agent, longest)) == 1
        error = refused(story.agent, longest + "  ")
        assert (error["status"], error["code"]) == (413, "payload_too_large")
        assert error["details"] == {"bytes": len(longest.encode()) + 2, "limit_bytes": 16_384, "path": "cypher"}

    @pytest.mark.parametrize("cypher", ["", " \n\t", None, 1, ["RETURN 1"]])
    def test_what_is_no_text_is_refused(self, story: Story, cypher: object) -> None:
        error = story.agent.refusal("query_cypher", board_id="alpha", cypher=cypher)
        assert (error["code"], error["details"]["problems"][0]["path"]) == ("invalid_argument", "cypher")

    def test_a_board_that_is_not_granted_is_refused_as_one_that_is_not_there(self, story: Story) -> None:
        def told(board_id: str) -> str:
            error = story.agent.refusal("query_cypher", board_id=board_id, cypher="RETURN 1")
            return json.dumps(error).replace(board_id, "?")

        assert told("beta") == told("nowhere")
        assert '"permission_denied"' in told("beta")

    def test_the_board_is_asked_for_before_the_query_is_read(self, story: Story) -> None:
        assert story.agent.refusal("query_cypher", board_id="beta", cypher="CREATE (n)")["code"] == "permission_denied"

    @pytest.mark.parametrize("preset", list(PRESETS))
    def test_full_control_alone_may_ask(self, world: World, preset: str) -> None:
        agent = world.agent("someone", preset=preset)
        answer = agent.try_call("query_cypher", {"board_id": "alpha", "cypher": "RETURN 1"})
        assert answer.is_error is (preset != "Full Control")
        if answer.is_error:
            assert answer.body["error"]["code"] == "permission_denied"
            assert "kg.power.cypher" in json.dumps(answer.body)

    def test_a_flag_of_its_own_lets_others_ask(self, world: World) -> None:
        agent = world.agent("someone", preset="Reporter", flags=("kg.power.cypher",))
        assert rows(agent, "RETURN 1") == [[1]]


class TestTheRate:
    def test_thirty_calls_a_minute_and_agent_are_counted_for_all_processes_together(self, tmp_path: Path) -> None:
        clock = FixedClock()
        with opened(tmp_path / "team.db", clock=clock) as one, opened(tmp_path / "team.db", clock=clock) as two:
            one.board("alpha")
            self.check(one, two, clock)

    @pytest.mark.served
    def test_and_on_the_servers(self) -> None:
        from pulse_kg.adapters.embedding.hashing import HashingEmbedder
        from pulse_kg.bootstrap import served_container
        from pulse_kg.settings import Settings
        from tests.support.served import fresh_endpoints
        from tests.support.world import CountingIds

        with fresh_endpoints() as endpoints:
            clock, settings = FixedClock(), Settings.from_environment({"PULSE_KG_STORE": "aws"})
            worlds = []
            for _ in range(2):
                ids = CountingIds()
                container = served_container(settings, endpoints, embedder=HashingEmbedder(), clock=clock, ids=ids, identity_seconds=0.0)
                worlds.append(World(container, clock, ids))
            try:
                worlds[0].board("alpha")
                self.check(worlds[0], worlds[1], clock)
            finally:
                for world in worlds:
                    world.container.close()

    @staticmethod
    def check(one: World, two: World, clock: FixedClock) -> None:
        ada, ben = one.agent("ada"), one.agent("ben")
        elsewhere = Agent(two, ada.api_key, ada.agent_id, ada.name)
        clock.advance(seconds=7)
        for _ in range(14):
            rows(ada, "RETURN 1")
            rows(elsewhere, "RETURN 1")
        assert refused(ada, "CREATE (n)")["code"] == "unsafe_cypher"  # counts too: it was looked at
        rows(elsewhere, "RETURN 1")
        errors = [refused(agent, "RETURN 1") for agent in (ada, elsewhere)]
        assert [(error["status"], error["code"], error["retryable"]) for error in errors] == [(429, "rate_limit", True)] * 2
        waits = {error["details"]["retry_after_seconds"] for error in errors}
        assert [error["details"]["limit_per_minute"] for error in errors] == [30, 30]
        assert waits <= set(range(1, 61))
        assert rows(ben, "RETURN 1") == [[1]]
        clock.advance(seconds=max(waits))
        assert rows(elsewhere, "RETURN 1") == [[1]]

    def test_the_limit_is_a_setting(self) -> None:
        with opened(environment={"PULSE_KG_CYPHER_PER_MINUTE": "2"}) as world:
            world.board("alpha")
            agent = world.agent()
            rows(agent, "RETURN 1")
            rows(agent, "RETURN 1")
            assert refused(agent, "RETURN 1")["details"]["limit_per_minute"] == 2


class HastyClock(FixedClock):
    """A clock on which each look takes a while."""

    seconds = 0.0

    def monotonic(self) -> float:
        self.advance(seconds=self.seconds)
        return super().monotonic()


class TestBudgets:
    @pytest.mark.parametrize(
        ("cypher", "few", "name"),
        [
            ("MATCH (a), (b), (c), (d) RETURN count(*)", {"steps": 2_000}, "steps"),
            ("RETURN size(range(1, 1000000)) + size(range(1, 1900000)) + size(range(1, 1900000)) + size(range(1, 1900000))", {}, "steps"),
            ("MATCH (n) RETURN count(n.title)", {"elements": 5}, "elements"),
            ("MATCH (n) RETURN count(n.body)", {"characters": 100}, "characters"),
            ("MATCH (n) RETURN n.title AS t ORDER BY t", {"held_rows": 5}, "held_rows"),
            ("MATCH (n) RETURN DISTINCT n.title", {"held_rows": 5}, "held_rows"),
            ("MATCH (n) RETURN n.title, count(*)", {"held_rows": 5}, "held_rows"),
            ("UNWIND range(1, 9) AS i MATCH (n {id: toString(i)}) OPTIONAL MATCH (n)--(m) RETURN m", {"requests": 0}, "requests"),
            ("RETURN range(1, 3000000)", {}, "list_items"),
            ("RETURN size(reduce(t = 'ab', i IN range(1, 30) | t + t))", {}, "text_characters"),
            ("WITH reduce(t = 'ab', i IN range(1, 18) | t + t) AS t RETURN t =~ '.*(a.{1,900}b.{1,900}a)c'", {}, "pattern_work"),
        ],
    )
    def test_each_is_named_where_a_query_needs_more(
        self, story: Story, monkeypatch: pytest.MonkeyPatch, cypher: str, few: Mapping[str, int], name: str
    ) -> None:
        monkeypatch.setattr(budget, "Limits", partial(budget.Limits, **few))
        error = refused(story.agent, cypher)
        assert (error["status"], error["code"], error["retryable"]) == (422, "resource_exhausted", False)
        assert error["details"]["budget"] == name
        assert error["details"]["limit"] == few.get(name, error["details"]["limit"])

    def test_an_answer_has_no_more_bytes_than_a_reader_takes(self) -> None:
        with opened(environment={**OFTEN, "PULSE_KG_MAX_RESPONSE_BYTES": str(FEW_BYTES)}) as world:
            world.board("alpha")
            agent = world.agent()
            assert len(rows(agent, "RETURN [i IN range(1, 900) | $t]", {"t": "x" * 15})) == 1
            error = refused(agent, "RETURN [i IN range(1, 2000) | $t]", {"t": "x" * 15})
            assert (error["code"], error["details"]["budget"]) == ("resource_exhausted", "response_bytes")

    def test_lists_that_share_their_items_have_no_end_and_are_refused(self, story: Story) -> None:
        shared = "reduce(v = {}, i IN range(1, 60) | [v, v])"
        for start in ("[]", "[1]", "{a: 1}", "null"):
            error = refused(story.agent, f"RETURN {shared.format(start)} AS v")
            assert (error["code"], error["details"]["budget"]) == ("resource_exhausted", "response_bytes")

    def test_a_query_is_stopped_when_its_time_is_up(self) -> None:
        clock = HastyClock()
        with opened(environment=OFTEN, clock=clock) as world:
            world.board("alpha")
            agent = world.agent()
            clock.seconds = 1.0
            error = refused(agent, "UNWIND range(1, 1000000) AS i WITH i WHERE i < 0 RETURN count(*)")
        assert (error["status"], error["code"], error["retryable"]) == (504, "query_timeout", True)
        assert 0 < error["details"]["seconds"] <= 25


class Counted:
    """A source that notes what is asked of it."""

    def __init__(self, inner: Any, calls: list[str]) -> None:
        self._inner, self._calls = inner, calls

    def of(self, board_id: str) -> Counted:
        return Counted(self._inner.of(board_id), self._calls)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: Any) -> Any:
            self._calls.append(name)
            return found(*args)

        return call


class TestPlans:
    CYPHER = "MATCH (d:Decision {title: $t})-[:supersedes*1..3]->(o) WHERE EXISTS { (o)--() } RETURN o.title ORDER BY o.title"

    def test_an_explained_query_reads_no_node_and_no_edge(self, story: Story) -> None:
        calls: list[str] = []
        container = story.world.container
        services = replace(container.services, sources=Counted(container.services.sources, calls))
        host = LocalToolHost(services, container.authenticate, max_response_bytes=container.settings.max_response_bytes)
        caller = host.authenticate(story.agent.api_key)

        def ask(cypher: str) -> Mapping[str, Any]:
            given = {"board_id": "alpha", "cypher": cypher, "params": {"t": BACKOFF}}
            outcome = host.call(caller, "query_cypher", given, correlation_id="-")
            assert not outcome.is_error, outcome.body
            return outcome.body

        answer = ask(f"EXPLAIN {self.CYPHER}")
        assert set(calls) <= {"counts"}
        assert answer["columns"] == ["operator", "detail", "pushed", "estimate"]
        assert answer["row_count"] == len(answer["rows"]) > 2
        ask(self.CYPHER)
        assert set(calls) - {"counts"}

    def test_a_profiled_query_runs_and_tells_what_each_operator_did(self, story: Story) -> None:
        answer = asked(story.agent, f"PROFILE {self.CYPHER}", {"t": BACKOFF})
        assert answer["columns"] == ["operator", "detail", "pushed", "estimate", "rows", "requests", "elements", "ms"]
        plan = [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]
        assert plan[-1]["rows"] == 2
        assert sum(line["requests"] or 0 for line in plan) > 0

    @pytest.mark.parametrize("prefix", ["EXPLAIN", "PROFILE"])
    def test_a_plan_is_shown_of_queries_alone_that_read(self, story: Story, prefix: str) -> None:
        assert refused(story.agent, f"{prefix} CREATE (n)")["code"] == "unsafe_cypher"


class TestHits:
    @pytest.fixture(params=["embedded", pytest.param("served", marks=pytest.mark.served)])
    def own(self, request: pytest.FixtureRequest) -> Iterator[Story]:
        with opened(environment=OFTEN) if request.param == "embedded" else opened_served(environment=OFTEN) as world:
            world.board("alpha")
            yield retry_story(world)

    def test_each_node_of_an_answer_counts_once_and_the_tick_writes_it(self, own: Story) -> None:
        def counted() -> dict[str, int]:
            return {own.name_of(i): hits for i, (hits, _) in own.world.container.services.hits.counted("alpha").items()}

        asked(own.agent, "MATCH (n) WHERE n.title = $t RETURN n.title, n.id", {"t": SLOW})
        asked(own.agent, "PROFILE MATCH (n) RETURN n")
        assert counted() == {}  # no node was returned
        asked(own.agent, "MATCH p = (n {id: $id})-[:supersedes]->(m) RETURN n, [n], {m: m}, p", {"id": own["backoff"]})
        asked(own.agent, "MATCH (n:Alternative) RETURN n")
        asked(own.agent, "MATCH (n) RETURN n ORDER BY n.created_at, n.id LIMIT 1")
        assert counted() == {"backoff": 1, "fixed": 1, "bucket": 1, "drop": 1}

        own.world.container.tick(seconds=30)

        hits = dict(rows(own.agent, "MATCH (n) WHERE n.query_hits > 0 RETURN n.title, n.query_hits"))
        assert hits == {BACKOFF: 1, FIXED: 1, BUCKET: 1, DROP: 1}


class TestDeterminism:
    QUERIES = (
        "MATCH (n) RETURN n ORDER BY n.id",
        "MATCH (n)-[r]-(m) RETURN n.id, r, m.title",
        "MATCH (n) RETURN labels(n)[0] AS l, count(*), collect(n.id), collect(DISTINCT n.source_ref)",
        "MATCH p = (a)-[*1..3]-(b) RETURN p LIMIT 50",
        "MATCH (n) RETURN DISTINCT keys(n), properties(n), n{.*}",
        "MATCH (n) WITH n, rand() AS r ORDER BY r RETURN n.id, r",
        "MATCH (a:Decision), (b:Constraint), p = allShortestPaths((a)-[*]-(b)) RETURN p",
        "MATCH (n) RETURN n.id UNION MATCH (n)-->(m) RETURN m.id AS `n.id`",
        "PROFILE MATCH (n:Decision) RETURN n",
        "RETURN {b: 1, a: [2, {d: 3, c: 4}]} AS m, $p",
    )
    SCRIPT = (
        "import json, sys\n"
        "from tests.support.world import Agent, FixedClock, opened\n"
        "path, key, queries, answers = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), []\n"
        "with opened(path, environment={'PULSE_KG_CYPHER_PER_MINUTE': '1000'}, clock=FixedClock(1_900_000_000_000)) as world:\n"
        "    for cypher in queries:\n"
        "        arguments = {'board_id': 'alpha', 'cypher': cypher, 'params': {'p': {'y': 1, 'x': 2}}}\n"
        "        body = dict(Agent(world, key, '', '').try_call('query_cypher', arguments).body)\n"
        "        body['elapsed_ms'] = 0\n"
        "        if cypher.startswith('PROFILE'):\n"
        "            body['rows'] = [row[:-1] for row in body['rows']]\n"
        "        answers.append(body)\n"
        "print(json.dumps(answers))\n"
    )

    def test_the_same_query_gives_the_same_bytes_in_every_process(self, tmp_path: Path) -> None:
        path = tmp_path / "team.db"
        with opened(path) as world:
            world.board("alpha")
            key = retry_story(world).agent.api_key
        told = []
        for seed in ("0", "1", "4242"):
            ran = subprocess.run(
                [sys.executable, "-c", self.SCRIPT, str(path), key, json.dumps(self.QUERIES)],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
                cwd=Path(__file__).parents[2],
            )
            told.append(ran.stdout)
        assert told[0] == told[1] == told[2]
        answers = json.loads(told[0])
        assert [list(answer) for answer in answers if "error" in answer] == []
        assert all(answer["rows"] for answer in answers)


class TestALongQuery:
    def test_what_breaks_a_constraint_is_told_with_what_was_learned_from_it(self, story: Story) -> None:
        """Several clauses together, as an agent would write them."""
        cypher = (
            "MATCH (c:Constraint {title: $t})<-[:violates]-(b:Bug) OPTIONAL MATCH (b)<-[:validates]-(l:Learning) "
            "WITH c, b, collect(l.title) AS learned CALL (c) { MATCH (c)<-[:depends_on]-(d) RETURN count(d) AS dependents } "
            "RETURN b.title, size(learned), dependents, b.resolved_at < datetime('2026-08-01T00:00:00Z') AS early"
        )
        assert rows(story.agent, cypher, {"t": TIMEOUT}) == [[SLOW, 1, 1, True]]
