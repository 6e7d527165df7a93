"""The tools that walk the graph, and the check of an answer against it: the page's examples on a board with a story, and every ruling."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from pulse_kg.domain.audit import Administration
from pulse_kg.domain.schema import NODE_TYPES, REL_TYPES, SEARCHABLE_TYPES
from pulse_kg.usecases.administration import administer_node
from pulse_kg.usecases.boards import add_attribute
from tests.support.direct import ask, refusal, tool_of
from tests.support.story_board import (
    BACKOFF,
    BUCKET,
    DISCARDED,
    DROP,
    FIXED,
    HERD,
    ORDER,
    SLOW,
    SPACING,
    TIMEOUT,
    Story,
    retry_story,
    worker_edge,
)
from tests.support.world import Agent, Consolidation, World, opened, opened_served

TOOLS = (
    "get_related_context",
    "get_supersedence_chain",
    "find_contradictions",
    "explain_constraint",
    "list_alternatives",
    "schema_info",
    "verify_grounding",
)
FLAGS = {
    "get_related_context": "kg.query.related_context",
    "get_supersedence_chain": "kg.query.supersedence_chain",
    "find_contradictions": "kg.query.contradictions",
    "explain_constraint": "kg.query.constraint_explain",
    "list_alternatives": "kg.query.alternatives",
    "schema_info": "kg.power.schema_info",
    "verify_grounding": "kg.power.natural",
}


@pytest.fixture(scope="module", params=["embedded", pytest.param("served", marks=pytest.mark.served)])
def story(request: pytest.FixtureRequest) -> Iterator[Story]:
    """The story on the board alpha, which no test changes, and again on beta."""
    with opened() if request.param == "embedded" else opened_served() as world:
        world.board("alpha")
        world.board("beta")
        told = retry_story(world)
        retry_story(world, "beta")
        yield told


@pytest.fixture
def world() -> Iterator[World]:
    """A world of the test's own."""
    with opened() as made:
        made.board("alpha")
        yield made


@pytest.fixture
def agent(world: World) -> Agent:
    """An agent with all permissions on the board alpha."""
    return world.agent("ada")


def added(session: Consolidation) -> list[str]:
    """Commits; the ids of the new nodes, in order."""
    return [a["node_id"] for a in session.commit()["applied"]["added"]]


def revoke(world: World, node_id: str) -> None:
    """An administrator takes a node back."""
    administer_node(Administration("alpha", node_id, "revoke", "It was wrong.", "root"), world.container.services)


@dataclass
class Line:
    """Decisions of which each supersedes the one before, the oldest first."""

    agent: Agent
    ids: list[str] = field(default_factory=list)

    def grow(self, number: int) -> Line:
        for _ in range(number):
            session = self.agent.begin("spec_line", len(self.ids) + 1)
            session.decide(f"Turn {len(self.ids)} of the line", "x " * len(self.ids), section=f"turn-{len(self.ids)}")
            if self.ids:
                session.edge("cand_001", "supersedes", self.ids[-1])
            self.ids += added(session)
            self.agent.world.clock.advance(days=1)
        return self


class TestRelatedContext:
    def test_the_example_shows_the_anchor_the_nodes_around_it_and_the_edges_among_them(self, story: Story) -> None:
        answer = ask(
            story.agent,
            "get_related_context",
            board_id="alpha",
            node_id=story["backoff"],
            edge_types=["supersedes", "depends_on", "violates"],
            direction="both",
            max_depth=2,
        )

        assert answer == {
            "anchor": {
                "node_id": story["backoff"],
                "title": BACKOFF,
                "type": "Decision",
                "body": "Each wait doubles.",
                "attributes": {"confidence": 0.9, "rationale": HERD},
                "source_ref": "spec:spec_007#third",
                "created_at": "2026-06-15T00:00:00.000Z",
                "contradicted": True,
            },
            "nodes": [
                {"node_id": story["fixed"], "title": FIXED, "type": "Decision", "depth": 1, "superseded_by": story["backoff"]},
                {"node_id": story["timeout"], "title": TIMEOUT, "type": "Constraint", "depth": 1},
                {"node_id": story["drop"], "title": DROP, "type": "Decision", "depth": 2, "superseded_by": story["fixed"]},
                {"node_id": story["slow"], "title": SLOW, "type": "Bug", "depth": 2},
            ],
            "edges": sorted(
                (
                    self.edge(story, "backoff", "depends_on", "timeout"),
                    self.edge(story, "backoff", "supersedes", "fixed", "All clients came back at once."),
                    self.edge(story, "fixed", "supersedes", "drop", "Customers lost events."),
                    self.edge(story, "slow", "violates", "timeout"),
                ),
                key=lambda e: e["edge_id"],
            ),
        }

    @staticmethod
    def edge(story: Story, src: str, rel: str, dst: str, reason: str | None = None) -> dict[str, str]:
        made = {"edge_id": story.edges[src, rel, dst], "src": story[src], "rel": rel, "dst": story[dst]}
        return made if reason is None else made | {"reason": reason}

    @staticmethod
    def names(story: Story, **more: Any) -> list[tuple[str, int]]:
        """What is around `backoff`, with its depths."""
        answer = ask(story.agent, "get_related_context", **{"board_id": "alpha", "node_id": story["backoff"]} | more)
        return [(story.name_of(n["node_id"]), n["depth"]) for n in answer["nodes"]]

    def test_without_arguments_it_goes_two_hops_over_every_relationship_and_direction(self, story: Story) -> None:
        near = sorted(
            ("fixed", "timeout", "order", "bucket"), key=lambda n: (["Decision", "Constraint", "Alternative"].index(self.kind(n)), story[n])
        )
        assert self.names(story) == [(n, 1) for n in near] + [("drop", 2), ("slow", 2)]
        assert self.names(story) == self.names(story, max_depth=2, direction="both", limit=200, edge_types=list(REL_TYPES))

    @staticmethod
    def kind(name: str) -> str:
        return {"fixed": "Decision", "bucket": "Alternative"}.get(name, "Constraint")

    def test_each_further_hop_is_asked_for(self, story: Story) -> None:
        assert {d for _, d in self.names(story, max_depth=1)} == {1}
        assert self.names(story, max_depth=3)[-1] == ("latency", 3)
        assert self.names(story, max_depth=4) == self.names(story, max_depth=3)

    def test_the_direction_holds_on_every_hop(self, story: Story) -> None:
        rels = ["depends_on", "violates", "supersedes"]
        assert self.names(story, direction="out", edge_types=rels) == [("fixed", 1), ("timeout", 1), ("drop", 2)]
        assert self.names(story, direction="in", edge_types=rels) == []
        assert self.names(story, node_id=story["timeout"], direction="in", edge_types=rels) == [("backoff", 1), ("slow", 1)]

    def test_the_relationships_hold_on_every_hop(self, story: Story) -> None:
        assert self.names(story, edge_types=["supersedes"]) == [("fixed", 1), ("drop", 2)]
        assert self.names(story, edge_types=["violates"]) == []

    def test_the_nearest_stay_where_the_limit_cuts_and_the_answer_says_so(self, story: Story) -> None:
        whole = ask(story.agent, "get_related_context", board_id="alpha", node_id=story["backoff"])
        cut = ask(story.agent, "get_related_context", board_id="alpha", node_id=story["backoff"], limit=3)
        assert cut["nodes"] == whole["nodes"][:3]
        assert cut["truncated"] is True
        assert "truncated" not in whole
        shown = {cut["anchor"]["node_id"], *(n["node_id"] for n in cut["nodes"])}
        assert cut["edges"] == [e for e in whole["edges"] if {e["src"], e["dst"]} <= shown]

    def test_a_source_reference_that_one_live_node_has_stands_for_it(self, story: Story) -> None:
        by_ref = ask(story.agent, "get_related_context", board_id="alpha", node_id="spec:spec_007#third")
        assert by_ref == ask(story.agent, "get_related_context", board_id="alpha", node_id=story["backoff"])

    def test_a_source_reference_that_no_live_node_has_is_unknown(self, story: Story) -> None:
        for ref in ("spec:spec_007#second", "spec:spec_404#third", "spec:spec_007"):
            error = refusal(story.agent, "get_related_context", board_id="alpha", node_id=ref)
            assert (error["code"], error["details"]) == ("node_not_found", {"node_ids": [ref]})

    def test_a_source_reference_of_several_nodes_is_refused_with_at_most_twenty_of_their_ids(self, agent: Agent) -> None:
        made: list[str] = []
        for number in (2, 23):
            session = agent.begin("spec_many", number)
            for place in range(len(made), number):
                session.add("Requirement", f"{chr(97 + place) * 9} {place}", source_ref={"spec_id": "spec_many"})
            made += added(session)
            error = refusal(agent, "get_related_context", board_id="alpha", node_id="spec:spec_many")
            assert (error["status"], error["code"]) == (422, "invalid_argument")
            assert error["details"]["nodes"] == number
            assert len(error["details"]["node_ids"]) == min(number, 20)
            assert set(error["details"]["node_ids"]) <= set(made)
            assert [p["path"] for p in error["details"]["problems"]] == ["node_id"]

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            ("node_id", "con-99"),
            ("node_id", "spec:"),
            ("node_id", "spec:a:b"),
            ("node_id", ""),
            ("edge_types", []),
            ("edge_types", ["follows"]),
            ("direction", "up"),
            ("max_depth", 0),
            ("max_depth", 5),
            ("limit", 0),
            ("limit", 201),
        ],
    )
    def test_an_argument_out_of_range_is_named(self, story: Story, argument: str, value: object) -> None:
        error = refusal(story.agent, "get_related_context", **{"board_id": "alpha", "node_id": story["backoff"]} | {argument: value})
        assert error["code"] == "invalid_argument"
        assert error["details"]["problems"][0]["path"].startswith(argument)

    def test_a_revoked_node_says_so_wherever_it_comes(self, world: World, agent: Agent) -> None:
        session = agent.begin()
        session.decide("One", section="one")
        session.decide("Two", section="two")
        session.edge("cand_001", "depends_on", "cand_002")
        one, two = added(session)
        revoke(world, two)

        around = ask(agent, "get_related_context", board_id="alpha", node_id=one)
        assert [(n["node_id"], n["status"]) for n in around["nodes"]] == [(two, "revoked")]
        assert ask(agent, "get_related_context", board_id="alpha", node_id=two)["anchor"]["status"] == "revoked"
        assert "status" not in around["anchor"]


class TestSupersedenceChain:
    def test_the_example_goes_from_the_newest_to_the_oldest(self, story: Story) -> None:
        answer = ask(story.agent, "get_supersedence_chain", board_id="alpha", node_id=story["backoff"], max_depth=10)

        assert answer == {
            "head": story["backoff"],
            "chain": [
                {"node_id": story["backoff"], "title": BACKOFF, "created_at": "2026-06-15T00:00:00.000Z", "contradicted": True},
                {"node_id": story["fixed"], "title": FIXED, "created_at": "2026-03-09T00:00:00.000Z", "superseded_by": story["backoff"]},
                {"node_id": story["drop"], "title": DROP, "created_at": "2026-01-01T00:00:00.000Z", "superseded_by": story["fixed"]},
            ],
            "depth": 3,
        }

    def test_every_member_leads_to_the_same_chain(self, story: Story) -> None:
        answers = [ask(story.agent, "get_supersedence_chain", board_id="alpha", node_id=story[n]) for n in ("backoff", "fixed", "drop")]
        assert answers[0] == answers[1] == answers[2]

    def test_a_node_that_nothing_joins_is_a_chain_of_one_whatever_its_type(self, story: Story) -> None:
        for name in ("sequence", "timeout", "slow"):
            answer = ask(story.agent, "get_supersedence_chain", board_id="alpha", node_id=story[name])
            assert (answer["head"], answer["depth"], [n["node_id"] for n in answer["chain"]]) == (story[name], 1, [story[name]])

    def test_ten_nodes_are_shown_and_one_beyond_them_comes_last(self, agent: Agent) -> None:
        line = Line(agent).grow(12).ids[::-1]

        def chain(node_id: str, **more: int) -> tuple[list[str], int, bool]:
            answer = ask(agent, "get_supersedence_chain", board_id="alpha", node_id=node_id, **more)
            assert answer["head"] == line[0]
            return [n["node_id"] for n in answer["chain"]], answer["depth"], answer.get("truncated", False)

        assert chain(line[0]) == (line[:10], 10, True)
        assert chain(line[9]) == (line[:10], 10, True)
        assert chain(line[11]) == ([*line[:10], line[11]], 11, True)
        assert chain(line[11], max_depth=12) == (line, 12, False)
        assert chain(line[5], max_depth=50) == (line, 12, False)
        assert chain(line[5], max_depth=1) == ([line[0], line[5]], 2, True)
        assert chain(line[0], max_depth=1) == ([line[0]], 1, True)

    def test_branches_come_newest_first_and_none_before_what_supersedes_it(self, world: World, agent: Agent) -> None:
        first, second = Line(agent).grow(2).ids
        session = agent.begin("spec_other", 1)
        session.decide("Aside")
        session.decide("Beside it", "quite another thing")
        aside = sorted(added(session))  # of the same instant: by id
        world.clock.advance(days=1)
        session = agent.begin("spec_join", 1)
        session.decide("All in one")
        for old in (second, *aside):
            session.edge("cand_001", "supersedes", old)
        (head,) = added(session)

        for start in (head, first, *aside):
            answer = ask(agent, "get_supersedence_chain", board_id="alpha", node_id=start)
            assert [n["node_id"] for n in answer["chain"]] == [head, *aside, second, first]
            assert answer["head"] == head

    def test_of_two_that_supersede_a_node_the_way_up_takes_the_one_that_it_names(self, world: World, agent: Agent) -> None:
        old, new = Line(agent).grow(2).ids
        session = agent.begin("spec_late", 1)
        session.decide("A late one with the same ancestor")
        session.edge("cand_001", "supersedes", old)
        (late,) = added(session)

        assert ask(agent, "get_supersedence_chain", board_id="alpha", node_id=old)["head"] == new
        answer = ask(agent, "get_supersedence_chain", board_id="alpha", node_id=late)
        assert [n["node_id"] for n in answer["chain"]] == [late, old]

    @pytest.mark.parametrize("value", [0, 51, "10", True])
    def test_the_depth_has_bounds(self, story: Story, value: object) -> None:
        error = refusal(story.agent, "get_supersedence_chain", board_id="alpha", node_id=story["drop"], max_depth=value)
        assert [p["path"] for p in error["details"]["problems"]] == ["max_depth"]


class TestContradictions:
    def test_the_example_has_the_anchor_on_the_left(self, story: Story) -> None:
        left = {"node_id": story["backoff"], "title": BACKOFF, "contradicted": True}
        right = {"node_id": story["order"], "title": ORDER, "contradicted": True}
        pair = {
            "edge_id": story.edges["backoff", "contradicts", "order"],
            "created_at": "2026-06-15T00:00:00.000Z",
            "reason": "A delayed event is overtaken by the next.",
            "resolved": False,
        }

        for anchor, pairs in (
            (story["backoff"], [{"left": left, "right": right, **pair}]),
            (story["order"], [{"left": right, "right": left, **pair}]),
            (story["timeout"], []),
        ):
            answer = ask(story.agent, "find_contradictions", board_id="alpha", node_id=anchor)
            assert answer == {"anchor": anchor, "pairs": pairs}

    def test_without_a_node_all_pairs_of_the_board_come(self, story: Story) -> None:
        answer = ask(story.agent, "find_contradictions", board_id="alpha")
        assert answer["anchor"] is None
        assert [{p["left"]["node_id"], p["right"]["node_id"]} for p in answer["pairs"]] == [{story["backoff"], story["order"]}]

    @pytest.fixture
    def pairs(self, world: World, agent: Agent) -> list[tuple[str, str]]:
        """Five pairs, a day apart, the oldest first; the first two are resolved."""
        made = []
        for number in range(5):
            session = agent.begin(f"spec_{number}", 1)
            session.decide(f"{'abcde'[number] * 8} holds", section="yes")
            session.add("Constraint", f"{'abcde'[number] * 8} does not", source_ref={"spec_id": f"spec_{number}", "section": "no"})
            session.edge("cand_001", "contradicts", "cand_002")
            one, other = added(session)
            made.append((one, other))
            world.clock.advance(days=1)
        revoke(world, made[0][1])
        session = agent.begin("spec_1", 2)
        session.decide("Something else altogether holds")
        session.edge("cand_001", "supersedes", made[1][0])
        session.commit()
        return made

    def test_pairs_come_newest_first_and_say_whether_they_are_resolved(self, agent: Agent, pairs: list[tuple[str, str]]) -> None:
        answer = ask(agent, "find_contradictions", board_id="alpha")
        assert [(p["left"]["node_id"], p["right"]["node_id"]) for p in answer["pairs"]] == pairs[::-1]
        assert [p["resolved"] for p in answer["pairs"]] == [False, False, False, True, True]
        assert [("contradicted" in p["left"], "contradicted" in p["right"]) for p in answer["pairs"]] == [(True, True)] * 3 + [
            (False, False)
        ] * 2
        assert answer["pairs"][4]["right"]["status"] == "revoked"
        assert answer["pairs"][3]["left"]["superseded_by"]
        assert "reason" not in answer["pairs"][0]

    def test_resolved_pairs_are_left_out_on_demand_before_the_limit_counts(self, agent: Agent, pairs: list[tuple[str, str]]) -> None:
        answer = ask(agent, "find_contradictions", board_id="alpha", include_resolved=False, limit=3)
        assert [p["left"]["node_id"] for p in answer["pairs"]] == [one for one, _ in pairs[:1:-1]]
        assert "truncated" not in answer

    def test_the_newest_stay_where_the_limit_cuts_and_the_answer_says_so(self, agent: Agent, pairs: list[tuple[str, str]]) -> None:
        answer = ask(agent, "find_contradictions", board_id="alpha", limit=2)
        assert [p["left"]["node_id"] for p in answer["pairs"]] == [pairs[4][0], pairs[3][0]]
        assert answer["truncated"] is True
        assert "truncated" not in ask(agent, "find_contradictions", board_id="alpha", limit=5)

    def test_the_same_pair_is_one_row_however_it_was_stated(self, agent: Agent, pairs: list[tuple[str, str]]) -> None:
        session = agent.begin("spec_9", 1)
        session.edge(pairs[4][1], "contradicts", pairs[4][0])
        session.decide("Another matter")
        session.commit()
        assert len(ask(agent, "find_contradictions", board_id="alpha", node_id=pairs[4][0])["pairs"]) == 1

    def test_pairs_that_were_stated_both_ways_take_one_place_each_below_the_limit(self, agent: Agent, pairs: list[tuple[str, str]]) -> None:
        for one, other in pairs[2:]:
            session = agent.begin("spec_9", 1)
            session.decide(f"Another matter of {one}")
            session.edge(other, "contradicts", one)
            session.commit()
        answer = ask(agent, "find_contradictions", board_id="alpha", limit=3)
        assert [{p["left"]["node_id"], p["right"]["node_id"]} for p in answer["pairs"]] == [set(pair) for pair in pairs[:1:-1]]
        assert answer["truncated"] is True
        assert "truncated" not in ask(agent, "find_contradictions", board_id="alpha", limit=5)

    @pytest.mark.parametrize(("argument", "value"), [("limit", 0), ("limit", 201), ("include_resolved", 1), ("node_id", "x")])
    def test_an_argument_out_of_range_is_named(self, story: Story, argument: str, value: object) -> None:
        error = refusal(story.agent, "find_contradictions", **{"board_id": "alpha", argument: value})
        assert [p["path"] for p in error["details"]["problems"]] == [argument]


class TestExplainConstraint:
    def test_the_example_names_origin_related_constraints_and_violations(self, story: Story) -> None:
        answer = ask(story.agent, "explain_constraint", board_id="alpha", node_id=story["timeout"])

        assert answer == {
            "constraint": {"node_id": story["timeout"], "title": TIMEOUT, "severity": "high", "scope": "webhook delivery"},
            "origin": {"type": "spec", "id": "spec_007", "title": None},
            "related_constraints": [{"node_id": story["spacing"], "title": SPACING}],
            "violations": [{"node_id": story["slow"], "title": SLOW, "resolved_at": "2026-07-01"}],
        }

    def test_what_was_never_said_is_not_there(self, story: Story) -> None:
        answer = ask(story.agent, "explain_constraint", board_id="alpha", node_id=story["order"])
        assert answer == {
            "constraint": {"node_id": story["order"], "title": ORDER, "contradicted": True},
            "origin": {"type": "spec", "id": "spec_009", "title": None},
            "related_constraints": [],
            "violations": [],
        }

    def test_the_origin_is_the_artifact_by_its_own_id_however_that_is_written(self, agent: Agent) -> None:
        session = agent.begin("a:b#c%d", 1, source_type="runbook")
        session.add("Constraint", "Odd names hold")
        (node_id,) = added(session)
        origin = ask(agent, "explain_constraint", board_id="alpha", node_id=node_id)["origin"]
        assert origin == {"type": "runbook", "id": "a:b#c%d", "title": None}

    def test_constraints_that_an_edge_joins_are_related_whatever_their_origin(self, agent: Agent) -> None:
        session = agent.begin("spec_a", 1)
        ids = [
            session.add("Constraint", f"{letter * 8} holds", source_ref={"spec_id": f"spec_{letter}", "section": "s"})
            for letter in "abcdef"
        ]
        session.edge(ids[0], "relates_to", ids[1])
        session.edge(ids[2], "depends_on", ids[0])
        session.edge(ids[0], "contradicts", ids[3])
        session.edge(ids[0], "supersedes", ids[4])
        session.decide("Something depends on it")
        session.edge("cand_007", "depends_on", ids[0])
        nodes = added(session)

        answer = ask(agent, "explain_constraint", board_id="alpha", node_id=nodes[0])

        assert [n["node_id"] for n in answer["related_constraints"]] == sorted(nodes[1:4])
        assert answer["constraint"]["contradicted"] is True

    def test_a_node_that_it_derives_from_is_the_origin_and_lends_its_other_constraints(self, agent: Agent) -> None:
        session = agent.begin("spec_a", 1)
        first = session.add("Constraint", "Answers come in 30 s", source_ref={"spec_id": "spec_a", "section": "1"})
        same_spec = session.add("Constraint", "Payloads stay small", source_ref={"spec_id": "spec_a", "section": "2"})
        sister = session.add("Constraint", "Queues are bounded", source_ref={"spec_id": "spec_b", "section": "1"})
        requirement = session.add("Requirement", "Deliveries are quick", source_ref={"spec_id": "spec_b", "section": "2"})
        entity = session.add("Entity", "Webhook receiver", source_ref={"spec_id": "spec_b", "section": "3"})
        for src, dst in ((first, entity), (first, requirement), (sister, requirement)):
            worker_edge(session, src, "derives_from", dst)
        nodes = dict(zip((first, same_spec, sister, requirement, entity), added(session), strict=True))

        answer = ask(agent, "explain_constraint", board_id="alpha", node_id=nodes[first])

        assert answer["origin"] == {"type": "Requirement", "id": nodes[requirement], "title": "Deliveries are quick"}
        assert [n["node_id"] for n in answer["related_constraints"]] == [nodes[sister]]

    def test_an_origin_that_does_not_hold_any_more_says_so_and_a_live_one_goes_before_it(self, world: World, agent: Agent) -> None:
        session = agent.begin("spec_a", 1)
        constraint = session.add("Constraint", "Answers come in 30 s")
        decision = session.decide("Deliveries are quick", section="x")
        requirement = session.add("Requirement", "Receivers are quick", source_ref={"spec_id": "spec_a", "section": "y"})
        worker_edge(session, constraint, "derives_from", decision)
        constraint, decision, requirement = added(session)
        session = agent.begin("spec_a", 2)
        session.decide("Deliveries may take their time", section="z")
        session.edge("cand_001", "supersedes", decision)
        (newer,) = added(session)

        origin = ask(agent, "explain_constraint", board_id="alpha", node_id=constraint)["origin"]
        assert origin == {"type": "Decision", "id": decision, "title": "Deliveries are quick", "superseded_by": newer}

        session = agent.begin("spec_a", 3)
        session.add("Entity", "Something else")
        worker_edge(session, constraint, "derives_from", requirement)
        session.commit()
        assert ask(agent, "explain_constraint", board_id="alpha", node_id=constraint)["origin"]["id"] == requirement

    def test_superseded_ones_come_last(self, agent: Agent) -> None:
        session = agent.begin("spec_a", 1)
        for number, letter in enumerate("abc"):
            session.add("Constraint", letter * 9, source_ref={"spec_id": "spec_a", "section": str(number)})
        first, second, third = sorted(added(session))
        session = agent.begin("spec_a", 2)
        session.add("Constraint", "Quite another one", source_ref={"spec_id": "spec_a", "section": "9"})
        session.edge("cand_001", "supersedes", first)
        (newer,) = added(session)

        related = ask(agent, "explain_constraint", board_id="alpha", node_id=third)["related_constraints"]
        assert [n["node_id"] for n in related] == [*sorted((second, newer)), first]
        assert [n.get("superseded_by") for n in related] == [None, None, newer]

    def test_lists_stop_at_two_hundred_and_say_so(self, agent: Agent) -> None:
        session = agent.begin("spec_a", 1)
        for number in range(202):
            session.add(
                "Constraint",
                f"{number} is {chr(97 + number % 26) * (number // 26 + 3)}",
                source_ref={"spec_id": "spec_a", "section": str(number)},
            )
        nodes = added(session)
        answer = ask(agent, "explain_constraint", board_id="alpha", node_id=nodes[0])
        assert (len(answer["related_constraints"]), answer["truncated"]) == (200, True)

    def test_another_type_is_refused_with_its_name(self, story: Story) -> None:
        error = refusal(story.agent, "explain_constraint", board_id="alpha", node_id=story["backoff"])
        assert (error["status"], error["code"]) == (422, "invalid_argument")
        assert error["details"]["problems"] == [{"path": "node_id", "problem": "must be a Constraint"}]
        assert "Decision" in error["message"]


class TestAlternatives:
    def test_the_example_says_why_each_was_discarded(self, story: Story) -> None:
        answer = ask(story.agent, "list_alternatives", board_id="alpha", node_id=story["backoff"])
        assert answer == {
            "decision": story["backoff"],
            "alternatives": [{"node_id": story["bucket"], "title": BUCKET, "reason_discarded": DISCARDED}],
        }

    def test_a_decision_without_any_has_an_empty_list(self, story: Story) -> None:
        answer = ask(story.agent, "list_alternatives", board_id="alpha", node_id=story["sequence"])
        assert answer == {"decision": story["sequence"], "alternatives": []}

    def test_only_alternatives_that_the_decision_relates_to_count_live_ones_first_then_by_id(self, agent: Agent) -> None:
        session = agent.begin("spec_a", 1)
        decision = session.decide("The one that was chosen")
        ids = [session.add("Alternative", letter * 9) for letter in "abcd"]
        requirement = session.add("Requirement", "What it was for")
        for other in (*ids[:3], requirement):
            session.edge(decision, "relates_to", other)
        session.edge(ids[3], "relates_to", decision)  # says something else: that it is about the decision
        session.edge(ids[1], "supersedes", ids[0])
        decision, *alternatives, _ = added(session)

        answer = ask(agent, "list_alternatives", board_id="alpha", node_id=decision)

        assert [a["node_id"] for a in answer["alternatives"]] == [*sorted(alternatives[1:3]), alternatives[0]]
        assert [a["reason_discarded"] for a in answer["alternatives"]] == [None] * 3
        assert answer["alternatives"][2]["superseded_by"] == alternatives[1]

    def test_another_type_is_refused_with_its_name(self, story: Story) -> None:
        error = refusal(story.agent, "list_alternatives", board_id="alpha", node_id=story["bucket"])
        assert (error["status"], error["code"]) == (422, "invalid_argument")
        assert error["details"]["problems"] == [{"path": "node_id", "problem": "must be a Decision"}]


class TestSchemaInfo:
    def test_the_example_lists_types_in_their_order_and_the_indexes_that_the_store_has(self, story: Story) -> None:
        answer = ask(story.agent, "schema_info", board_id="alpha")

        assert answer["schema_version"] == "0.3.3"
        assert answer["node_types"] == list(NODE_TYPES)
        assert answer["rel_types"] == list(REL_TYPES)
        model = story.world.container.embedder.info().model_id
        assert answer["vector_indexes"] == [
            {"node_type": t, "dim": 384, "metric": "cosine"} | ({"model": model} if t == "Decision" else {}) for t in SEARCHABLE_TYPES
        ]

    def test_attributes_pairs_and_limits_are_what_the_write_tools_go_by(self, story: Story) -> None:
        answer = ask(story.agent, "schema_info", board_id="alpha")

        assert answer["attributes"]["Constraint"] == {
            "severity": {"kind": "choice", "choices": ["low", "medium", "high", "critical"]},
            "scope": {"kind": "text"},
            "rationale": {"kind": "text"},
            "confidence": {"kind": "number"},
        }
        assert list(answer["attributes"]) == list(NODE_TYPES)
        assert answer["endpoint_pairs"]["implements"] == [["APIContract", "Requirement"]]
        assert list(answer["endpoint_pairs"]) == list(REL_TYPES)
        assert answer["limits"] == {
            "title_characters": 500,
            "body_bytes": 32_768,
            "attribute_characters": 4_000,
            "candidate_bytes": 49_152,
            "node_candidates": 500,
            "edge_candidates": 1_000,
            "open_sessions": 50,
            "session_ttl_seconds": 3_600,
            "consolidations_per_minute": 10_000,
            "cypher_per_minute": 30,
            "cypher_bytes": 16_384,
            "cypher_rows": 1_000,
            "cypher_rows_with_limit": 10_000,
            "cypher_path_length": 20,
            "cypher_seconds": 25,
            "query_characters": 4_000,
            "answer_text_bytes": 32_768,
            "list_results": 200,
            "response_bytes": 4_000_000,
        }

    def test_a_board_on_which_nothing_was_written_yet_has_its_indexes(self, world: World, agent: Agent) -> None:
        indexes = ask(agent, "schema_info", board_id="alpha")["vector_indexes"]
        assert [i["node_type"] for i in indexes] == list(SEARCHABLE_TYPES)
        assert indexes[0]["model"] == world.container.embedder.info().model_id

    def test_settings_show_in_the_limits(self) -> None:
        with opened(environment={"PULSE_KG_MAX_BODY_BYTES": "1000", "PULSE_KG_MAX_RESPONSE_BYTES": "2000"}) as world:
            world.board("alpha")
            limits = ask(world.agent(), "schema_info", board_id="alpha")["limits"]
        assert (limits["body_bytes"], limits["response_bytes"]) == (1_000, 2_000)

    def test_keys_that_a_board_added_are_its_own(self, world: World) -> None:
        world.board("beta")
        agent = world.agent(boards=("alpha", "beta"))
        add_attribute("alpha", "Bug", "found_by", "text", boards=world.container.boards)
        assert ask(agent, "schema_info", board_id="alpha")["attributes"]["Bug"]["found_by"] == {"kind": "text"}
        assert "found_by" not in ask(agent, "schema_info", board_id="beta")["attributes"]["Bug"]


class TestGrounding:
    def test_the_example_is_grounded_in_its_nodes(self, story: Story) -> None:
        answer = ask(
            story.agent,
            "verify_grounding",
            board_id="alpha",
            answer_text="We use exponential backoff with jitter; fixed waits bring a thundering herd.",
            retrieved_nodes=[story["backoff"], story["order"]],
        )

        assert answer == {
            "grounded": True,
            "score": 0.875,
            "matched_entities": ["exponential backoff", "jitter", "fixed waits", "thundering herd"],
            "unmatched_phrases": ["bring"],
            "missing_nodes": [],
            "superseded_nodes": [],
        }

    @staticmethod
    def check(story: Story, text: str, *names: str) -> dict[str, Any]:
        nodes = [story.ids.get(n, n) for n in names]
        return ask(story.agent, "verify_grounding", board_id="alpha", answer_text=text, retrieved_nodes=nodes)

    def test_a_number_that_no_node_has_is_told_and_is_enough_to_fail(self, story: Story) -> None:
        answer = self.check(story, "Webhook receivers answer within 45 seconds.", "timeout")
        assert (answer["grounded"], answer["score"], answer["unmatched_phrases"]) == (False, 0.6, ["45 seconds"])
        assert self.check(story, "Webhook receivers answer within 30 seconds.", "timeout")["grounded"] is True

    def test_a_negation_that_the_evidence_does_not_have_is_told_with_its_sentence(self, story: Story) -> None:
        text = "Webhook receivers never answer within 30 s."
        answer = self.check(story, text, "timeout")
        assert (answer["grounded"], answer["score"], answer["unmatched_phrases"]) == (False, 1.0, [text])

    def test_titles_of_neighbours_count_and_titles_farther_away_do_not(self, story: Story) -> None:
        assert self.check(story, "Receivers answer within 30 s.", "backoff")["grounded"] is True
        assert self.check(story, "Receivers answer within 30 s.", "fixed")["score"] == 0.0

    def test_attributes_count(self, story: Story) -> None:
        assert self.check(story, "The severity is high.", "timeout")["grounded"] is True
        assert self.check(story, "All clients return at once.", "backoff")["grounded"] is True

    def test_ids_that_are_not_there_are_told_and_change_nothing(self, story: Story) -> None:
        alone = self.check(story, "Receivers answer within 30 s.", "timeout")
        answer = self.check(story, "Receivers answer within 30 s.", "dec_404", "timeout", "con_405", "dec_404", "timeout")
        assert answer == alone | {"missing_nodes": ["dec_404", "con_405"]}

    def test_without_any_node_nothing_is_grounded(self, story: Story) -> None:
        answer = self.check(story, "Receivers answer within 30 s.", "dec_404")
        assert (answer["grounded"], answer["score"], answer["matched_entities"]) == (False, 0.0, [])

    def test_superseded_nodes_are_told_in_the_order_of_the_argument(self, story: Story) -> None:
        answer = self.check(story, "Webhooks are retried 5 times.", "fixed", "backoff", "drop")
        assert answer["superseded_nodes"] == [story["fixed"], story["drop"]]
        assert answer["grounded"] is True

    @pytest.mark.parametrize("text", ["", "   \n", "It is what it is.", "…!?", "No."])
    def test_where_nothing_can_be_checked_nothing_is_grounded(self, story: Story, text: str) -> None:
        answer = self.check(story, text, "backoff")
        assert answer == {
            "grounded": False,
            "score": 0.0,
            "matched_entities": [],
            "unmatched_phrases": [],
            "missing_nodes": [],
            "superseded_nodes": [],
        }

    def test_an_answer_of_32_kib_is_taken_and_a_byte_more_is_not(self, story: Story) -> None:
        longest = "é" * 16_384
        assert self.check(story, longest, "backoff")["grounded"] is False
        error = refusal(story.agent, "verify_grounding", board_id="alpha", answer_text=longest + "e", retrieved_nodes=[story["backoff"]])
        assert (error["status"], error["code"]) == (413, "payload_too_large")
        assert error["details"] == {"bytes": 32_769, "limit_bytes": 32_768, "path": "answer_text"}

    def test_the_list_of_nodes_has_bounds(self, story: Story) -> None:
        for nodes in ([], [f"dec_{n}" for n in range(201)], ["con-99"], "dec_1"):
            error = refusal(story.agent, "verify_grounding", board_id="alpha", answer_text="x", retrieved_nodes=nodes)
            assert error["code"] == "invalid_argument"
            assert error["details"]["problems"][0]["path"].startswith("retrieved_nodes")
        assert self.check(story, "x", *(f"dec_{n}" for n in range(200)))["missing_nodes"][199] == "dec_199"

    def test_lists_of_phrases_stop_at_two_hundred_and_say_so(self, story: Story) -> None:
        letters = ["".join(pair) for pair in itertools.product("bcdfghjklmnpqrst", repeat=2)][:201]
        answer = self.check(story, ", ".join(f"zz{pair}" for pair in letters), "backoff")
        assert (len(answer["unmatched_phrases"]), answer["truncated"]) == (200, True)


# What holds for all of them.


def arguments(tool: str, story: Story, node_id: str | None = None) -> dict[str, Any]:
    """Good arguments; the node is one that the tool takes unless another is given."""
    name = {"explain_constraint": "timeout"}.get(tool, "backoff")
    node_id = node_id or story[name]
    more: dict[str, Any] = {"node_id": node_id}
    if tool == "schema_info":
        more = {}
    elif tool == "verify_grounding":
        more = {"answer_text": f"{BACKOFF}. {TIMEOUT}.", "retrieved_nodes": [node_id]}
    return {"board_id": story.board_id, **more}


@pytest.mark.parametrize("tool", TOOLS)
class TestEachTool:
    def test_its_permission_is_that_of_the_contract_and_is_asked_for(self, story: Story, tool: str) -> None:
        assert tool_of(tool).flag == FLAGS[tool]
        assert (tool_of(tool).annotations.read_only, tool_of(tool).annotations.idempotent) == (True, True)

    def test_the_same_board_and_arguments_give_the_same_bytes(self, story: Story, tool: str) -> None:
        answers = [json.dumps(ask(story.agent, tool, **arguments(tool, story)), ensure_ascii=False) for _ in range(2)]
        assert answers[0] == answers[1]

    def test_it_changes_nothing(self, world: World, tool: str) -> None:
        from tests.support.bad_input import dump

        told = retry_story(world)
        before = dump(world.container)
        ask(told.agent, tool, **arguments(tool, told))
        assert dump(world.container) == before

    def test_a_board_that_is_not_granted_and_one_that_is_not_there_look_the_same(self, story: Story, tool: str) -> None:
        errors = []
        for board_id in ("beta", "gamma"):
            error = refusal(story.agent, tool, **arguments(tool, story) | {"board_id": board_id})
            assert (error["status"], error["code"], error["details"]) == (403, "permission_denied", {"board_id": board_id})
            errors.append(json.dumps(error).replace(board_id, "BOARD"))
        assert errors[0] == errors[1]

    @pytest.mark.parametrize("board_id", ["аlpha", "ａlpha", "Alpha", "alpha ", "alpha\u200b", "alpha/beta", ""])
    def test_names_that_only_look_like_a_board_are_none(self, story: Story, tool: str, board_id: str) -> None:
        error = refusal(story.agent, tool, **arguments(tool, story) | {"board_id": board_id})
        assert error["code"] == "invalid_argument"
        assert [p["path"] for p in error["details"]["problems"]] == ["board_id"]

    def test_unknown_arguments_are_named(self, story: Story, tool: str) -> None:
        error = refusal(story.agent, tool, **arguments(tool, story), depth=2)
        assert [p["path"] for p in error["details"]["problems"]] == ["depth"]

    def test_null_for_an_optional_argument_is_its_absence_and_for_a_required_one_a_fault(self, story: Story, tool: str) -> None:
        schema = tool_of(tool).spec.input_schema
        good = arguments(tool, story)
        optional = {name: None for name in schema["properties"] if name not in schema["required"] and name not in good}
        assert ask(story.agent, tool, **good, **optional) == ask(story.agent, tool, **good)
        for name in schema["required"]:
            assert refusal(story.agent, tool, **good | {name: None})["code"] == "invalid_argument"


NODE_TOOLS = tuple(t for t in TOOLS if t not in {"schema_info", "verify_grounding"})


@pytest.mark.parametrize("tool", NODE_TOOLS)
class TestNodesOfAnotherBoard:
    def test_a_node_that_is_not_there_is_404(self, story: Story, tool: str) -> None:
        error = refusal(story.agent, tool, **arguments(tool, story, "dec_0123456789abcdef"))
        assert (error["status"], error["code"], error["details"]) == (404, "node_not_found", {"node_ids": ["dec_0123456789abcdef"]})

    def test_a_node_of_another_board_looks_like_one_that_is_nowhere(self, story: Story, tool: str) -> None:
        mallory = story.agent  # granted alpha alone
        foreign = [n.node_id for n in story.world.container.graph.all_nodes("beta")]
        assert len(foreign) == 10
        for node_id in foreign:
            foreign_one, unknown = (
                json.dumps(refusal(mallory, tool, **arguments(tool, story, named))).replace(named, "NODE")
                for named in (node_id, "dec_0123456789abcdef")
            )
            assert foreign_one == unknown

    def test_ids_that_only_look_like_a_nodes_are_refused_and_reach_nothing(self, story: Story, tool: str) -> None:
        good = arguments(tool, story)["node_id"]
        for forged in (good.replace("c", "с", 1), good.upper(), good + " ", good + "%", good + "\u200d", f"{good},{good}", good + "\n"):
            assert refusal(story.agent, tool, **arguments(tool, story, forged))["code"] == "invalid_argument", forged


def test_a_reference_of_another_board_looks_like_one_that_is_nowhere(world: World) -> None:
    world.board("beta")
    story, beta = retry_story(world), world.agent("bea", boards=("beta",))
    session = beta.begin("spec_secret", 1, board_id="beta")
    session.decide("Palladium", section="queue", spec="spec_secret")
    session.commit()
    foreign, unknown = (
        json.dumps(refusal(story.agent, "get_related_context", board_id="alpha", node_id=ref)).replace(ref, "REF")
        for ref in ("spec:spec_secret#queue", "spec:spec_nowhere#queue")
    )
    assert foreign == unknown


def test_foreign_nodes_are_missing_and_ground_nothing(story: Story) -> None:
    foreign = sorted(n.node_id for n in story.world.container.graph.all_nodes("beta"))
    text = f"{BACKOFF}. {TIMEOUT}. {ORDER}. {HERD}"
    answer = ask(story.agent, "verify_grounding", board_id="alpha", answer_text=text, retrieved_nodes=foreign)
    nowhere = [f"dec_{number}" for number in range(len(foreign))]
    blank = ask(story.agent, "verify_grounding", board_id="alpha", answer_text=text, retrieved_nodes=nowhere)
    assert (answer["grounded"], answer["score"], answer["missing_nodes"]) == (False, 0.0, foreign)
    assert answer | {"missing_nodes": []} == blank | {"missing_nodes": []}


def test_each_tool_tells_of_the_board_it_is_asked_about_alone(world: World) -> None:
    """A constraint of the same artifact, and edges between nodes of the same titles, on another board are not seen."""
    world.board("beta")
    alone = retry_story(world)
    before = {tool: ask(alone.agent, tool, **arguments(tool, alone)) for tool in TOOLS}
    world.clock.advance(days=-181)
    retry_story(world, "beta")
    assert {tool: ask(alone.agent, tool, **arguments(tool, alone)) for tool in TOOLS} == before


def test_a_granted_agent_without_the_flag_is_refused(world: World) -> None:
    retry_story(world)
    from pulse_kg.usecases.identity import change_flags

    agent = world.agent("eve", preset="Executor")
    change_flags("eve", (), ("kg.query.*", "kg.power.*"), identity=world.container.identity)
    for tool in TOOLS:
        error = refusal(agent, tool, board_id="alpha")
        assert (error["code"], error["details"]) == ("permission_denied", {"required_permission": FLAGS[tool]})
