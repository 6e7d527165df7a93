"""The benchmark of the tools that read asks every one of them, and reckons growth and round trips by hand-checked figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bench import aims
from bench.large import graph_of
from bench.read_questions import QUESTIONS, Question, Sample
from bench.reads import Asked, ask_all, growth, per_decade, round_trips, samples
from bench.served.trips import AUTHENTICATE, Trip
from bench.served.trips import Call as Counted
from bench.world import Call, NewEdge, NewNode
from pulse_kg.mcp.tools import all_tools

LATER = {"query_cypher"}
"""Tools that are to get their line with their own benchmark."""
SAMPLE = Sample({"board_id": "b"}, "a phrase", "word", "area", "dec_1", "title", "dec_2", "dec_3", "con_1", "dec_4")


def new(key: str, node_type: str, *edges: NewEdge) -> NewNode:
    given = {"title": f"Title {key}", "body": "", "attributes": {"confidence": 0.9}}
    return NewNode(key, {"node_type": node_type, **given, "source_ref": {"spec_id": key, "section": "s"}}, edges)


def figures(**medians: float) -> dict[str, Any]:
    return {name: {"ms": {"p50": value}} for name, value in medians.items()}


class TestGrowth:
    def test_growth_is_that_of_ten_times_as_many_nodes(self) -> None:
        assert per_decade((1_000, 2.0), (10_000, 5.0)) == 2.5
        assert per_decade((1_000, 2.0), (100_000, 8.0)) == 2.0
        assert per_decade((10_000, 3.0), (10, 3.0)) == 1.0

    def test_each_two_neighbouring_sizes_have_one(self) -> None:
        found = {"10000": figures(one=4.0, two=3.0), "1000": figures(one=2.0, two=3.0), "100000": figures(one=12.0, two=6.0)}
        assert growth(found) == {
            "one": {"1000 to 10000": 2.0, "10000 to 100000": 3.0},
            "two": {"1000 to 10000": 1.0, "10000 to 100000": 2.0},
        }

    def test_one_size_alone_has_none(self) -> None:
        assert growth({"1000": figures(one=2.0)}) == {}


class TestRoundTrips:
    def test_trips_are_counted_for_each_question_by_store_and_step(self) -> None:
        calls = [Counted(n, AUTHENTICATE if n % 2 else "tool", 1.0) for n in range(1, 9)]  # tools are 2, 4, 6, 8
        trips = [
            trip(1, AUTHENTICATE, "dynamodb", "identity.agent"),
            *(trip(n, "tool", "dynamodb", "boards.board") for n in (2, 4, 6)),
            trip(2, "tool", "gremlin", "graph.nodes"),
            *[trip(6, "tool", "gremlin", "graph.nodes")] * 2,
            trip(0, "", "gremlin", "elsewhere"),
        ]
        assert round_trips(list(reversed(calls)), trips, ["one", "two"]) == {
            "one": {
                "most": 3,
                "range": "2–3",
                "by_store": {"dynamodb": "1", "gremlin": "1–2"},
                "by_step": {"dynamodb boards.board": "1", "gremlin graph.nodes": "1–2"},
            },
            "two": {"most": 1, "range": "0–1", "by_store": {"dynamodb": "0–1"}, "by_step": {"dynamodb boards.board": "0–1"}},
        }


def trip(call: int, tool: str, store: str, step: str) -> Trip:
    return Trip(call, tool, step, store, "read", 0.0, 1.0)


class TestQuestions:
    def test_every_tool_that_reads_is_asked(self) -> None:
        reading = {tool.name for tool in all_tools() if tool.flag.startswith(("kg.query.", "kg.power."))}
        assert {question.tool for question in QUESTIONS} >= reading - LATER

    def test_no_two_questions_have_one_name(self) -> None:
        assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)

    def test_the_arguments_are_those_of_the_tool(self) -> None:
        tools = {tool.name: tool for tool in all_tools()}
        for question in QUESTIONS:
            tools[question.tool].input_model.model_validate(question.arguments(SAMPLE))

    def test_an_aim_of_each_question_is_judged(self) -> None:
        slow = {"embedded": {"10000": figures(**{question.name: 1_000.0 for question in QUESTIONS})}}
        assert [aim["met"] for aim in aims.judged(slow)] == [False] * len(QUESTIONS)
        trips = {"served": {"10000": {question.name: {"round_trips": {"most": 3}} for question in QUESTIONS}}}
        assert [aim["met"] for aim in aims.judged(trips)] == [True] * len(QUESTIONS)

    def test_every_question_is_asked_about_every_sample_of_boards_in_turn_and_the_first_round_does_not_count(self) -> None:
        asked: list[tuple[str, str, Mapping[str, Any]]] = []

        def calling(board: str) -> Call:
            def call(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
                asked.append((board, tool, arguments))
                return {}

            return call

        questions = [Question("one", "graph", lambda s: {"word": s.word}), Question("two", "graph", lambda s: {"area": s.area})]
        rounds: list[None] = []
        boards = {name: Asked(calling(name), [SAMPLE, replace(SAMPLE, word="last")]) for name in ("small", "big")}
        taken = ask_all(boards, questions, lambda: rounds.append(None))
        assert asked == [
            (board, *one)
            for word in ("last", "word", "last")
            for board in ("small", "big")
            for one in (("one", {"word": word}), ("two", {"area": "area"}))
        ]
        assert len(rounds) == 6
        assert [one.figures()["ms"]["n"] for found in taken.values() for one in found.values()] == [2] * 4


class TestBoards:
    LINES = (
        new("a", "Decision"),
        new("alt", "Alternative"),
        new("b", "Decision", NewEdge("supersedes", "a"), NewEdge("relates_to", "alt")),
        new("c", "Decision", NewEdge("contradicts", "b")),
        new("con", "Constraint"),
    )

    def test_samples_name_nodes_that_have_what_is_asked_about(self) -> None:
        query = {"phrase": "p", "word": "w", "area": "a"}
        ids = {line.key: f"id_{line.key}" for line in self.LINES}
        found = samples(self.LINES, ids, [query, query], "board")
        assert [s.decision for s in found] == ["id_a", "id_b"]
        assert {(s.superseding, s.compared, s.contradicting, s.constraint) for s in found} == {("id_b", "id_b", "id_c", "id_con")}
        assert found[0].title == "Title a"

    def test_a_large_board_has_its_edges_and_marks_what_is_superseded(self) -> None:
        nodes, edges = graph_of(self.LINES)
        a, alt, b, c, _ = nodes
        assert [(e.src, e.rel_type, e.dst) for e in edges] == [
            (b.node_id, "supersedes", a.node_id),
            (b.node_id, "relates_to", alt.node_id),
            (c.node_id, "contradicts", b.node_id),
        ]
        assert (a.superseded_by, a.status, b.superseded_by, b.status, alt.status) == (b.node_id, "superseded", None, "active", None)
        assert a.superseded_at == b.created_at
        assert (a.source_ref, a.artifact) == ("spec:a#s", "spec:a")

    def test_nodes_of_a_large_board_have_ids_of_their_own(self) -> None:
        nodes, _ = graph_of([new(f"k{n}", "Bug") for n in range(2_000)])
        assert len({node.node_id for node in nodes}) == 2_000


def test_no_sample_is_made_of_a_board_without_decisions() -> None:
    with pytest.raises(IndexError):
        samples([new("con", "Constraint")], {"con": "id"}, [{"phrase": "p", "word": "w", "area": "a"}], "board")
