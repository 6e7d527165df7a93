"""The benchmark of the query engine: its queries can be asked, and its figures are reckoned by hand-checked ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bench import aims
from bench.cypher import distinct_queries, distribution, flat, shortest_ms
from bench.cypher_boards import Graph
from bench.cypher_questions import ANCHORED, COMPARED, QUERIES, QUESTIONS
from bench.large import graph_of
from bench.read_questions import Sample
from bench.world import BOARD, NewEdge, NewNode
from pulse_kg.cypher.budget import Budget
from pulse_kg.cypher.context import Context
from pulse_kg.cypher.engine import compile_query, run
from pulse_kg.cypher.memory_source import MemorySource
from pulse_kg.errors import InvalidCypher

SAMPLE = Sample({"board_id": "b"}, "a phrase", "word", "area", "dec_1", "title", "dec_2", "dec_3", "con_1", "dec_4")


def processor(**medians: float) -> dict[str, Any]:
    return {name: {"processor_ms": {"p50": value}} for name, value in medians.items()}


class TestQueries:
    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
    def test_each_has_the_parameters_that_it_names_and_no_others(self, question: Any) -> None:
        given = question.arguments(SAMPLE)
        assert {f"${key}" for key in given} == set(re.findall(r"\$\w+", QUERIES[question.name]))
        assert run(compile_query(QUERIES[question.name], given), MemorySource([], []), now=0).columns

    def test_what_is_said_to_begin_at_a_node_reads_no_more_than_that(self) -> None:
        asked = {question.name: question for question in QUESTIONS}
        for name in ANCHORED:
            query = compile_query(QUERIES[name], asked[name].arguments(SAMPLE))
            ctx = Context(MemorySource([], [], id_key="id"), query.params, now=0, budget=Budget(lambda: 0.0))
            assert query.pipeline.lines(ctx)[0][1] == "NodeById"

    def test_the_other_engine_is_asked_all_that_it_can_answer_in_time(self) -> None:
        assert len(COMPARED) == len(QUESTIONS) - 1 == 7


class TestReckoning:
    def test_a_distribution_has_the_values_that_few_are_above(self) -> None:
        assert distribution([float(n) for n in range(101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}

    def test_each_query_of_the_kit_is_read_once(self) -> None:
        assert distinct_queries('{"query": "b"}\n{"query": "a"}\n\n{"query": "b"}\n') == ["b", "a"]

    def test_what_is_refused_is_measured_too_and_what_crashes_is_not_hidden(self) -> None:
        def refuse(_text: str) -> None:
            raise InvalidCypher("no")

        found = shortest_ms(refuse, ["a", "b"])
        assert len(found) == 2
        assert min(found) >= 0
        with pytest.raises(ZeroDivisionError):
            shortest_ms(lambda _text: 1 / 0, ["a"])

    def test_flat_is_the_growth_for_ten_times_the_nodes_between_the_smallest_and_the_largest_board(self) -> None:
        small, big = (processor(**dict.fromkeys(ANCHORED, value)) for value in (2.0, 8.0))
        assert flat({"100000": big, "10000": small, "1000": small}) == dict.fromkeys(ANCHORED, 2.0)

    def test_one_board_alone_tells_nothing_of_flatness(self) -> None:
        assert flat({"1000": processor(**dict.fromkeys(ANCHORED, 2.0))}) == {}

    def test_the_aims_are_judged_where_they_were_measured(self) -> None:
        parts = {
            "engine": {"parse_ms": {"p50": 0.15}, "import_processor_ms": {"p50": 70.1}},
            "embedded": {"flat": {ANCHORED[0]: 1.25, ANCHORED[1]: 1.26}},
        }
        assert [(aim["what"], aim["met"]) for aim in aims.judged(parts)] == [
            ("parse a query, p50", True),
            ("import the query engine, processor, p50", False),
            (f"flat: {ANCHORED[0]}, ten times the nodes", True),
            (f"flat: {ANCHORED[1]}, ten times the nodes", False),
        ]


class TestBoards:
    def test_a_graph_becomes_commits_of_a_thousand_nodes_with_the_edges_that_start_there(self) -> None:
        given = {"body": "", "attributes": {"confidence": 0.9}, "source_ref": {"spec_id": "s", "section": "s"}}
        lines = [
            NewNode(f"k{n}", {"node_type": "Bug", "title": f"T{n}", **given}, (NewEdge("relates_to", "k0"),) if n == 1_001 else ())
            for n in range(1_002)
        ]
        graph = Graph(lines, *graph_of(lines))
        first, second = graph.plans("other")
        assert [(len(plan.nodes), len(plan.edges), plan.seq) for plan in (first, second)] == [(1_000, 0, 1), (2, 1, 2)]
        assert {(node.board_id, node.commit_seq) for node in second.nodes} == {("other", 2)}
        assert (second.edges[0].board_id, second.edges[0].commit_seq) == ("other", 2)
        assert graph.ids["k1001"] == second.edges[0].src
        assert all(node.board_id == BOARD for node in graph.nodes)
