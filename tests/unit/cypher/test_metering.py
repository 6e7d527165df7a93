"""What a query makes, compares or goes through is counted, in whatever it hides: the budget ends it, and not the memory or the patience."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from pulse_kg.cypher.budget import Budget, Limits
from pulse_kg.cypher.engine import compile_query, run
from pulse_kg.cypher.memory_source import MemorySource
from pulse_kg.cypher.regex import MAX_WORK, matches
from pulse_kg.errors import InvalidCypher, ResourceExhausted
from pulse_kg.ports.graph_source import GraphEdge, GraphNode
from tests.support.world import START

FEW = Limits(seconds=60, steps=20_000, held_rows=2_000)
"""So few that a query which is counted ends at once; one that is not would go on until the time is up."""
WIDE = ", ".join(f"x AS a{number}" for number in range(1_000))
SUMS = ", ".join(f"sum(x) AS s{number}" for number in range(500))
LONG = "reduce(t = 'ab', i IN range(1, 18) | t + t)"
SHARED = "reduce(v = [1], i IN range(1, 60) | [v, v])"


def clique(size: int) -> MemorySource:
    """A graph in which each node has an edge to each other one."""
    nodes = [GraphNode(f"n{i:02}", ("Decision",), {"id": f"n{i:02}", "title": f"t{i}"}) for i in range(size)]
    ends = [(a.node_id, b.node_id) for a in nodes for b in nodes if a is not b]
    return MemorySource(nodes, [GraphEdge(f"{a}-{b}", "relates_to", a, b) for a, b in ends], id_key="id")


def answer(query: str, limits: Limits | None = None, **params: Any) -> list[list[Any]]:
    return run(compile_query(query, params), clique(8), now=START, budget=Budget(time.monotonic, limits)).rows


@pytest.mark.parametrize(
    "query",
    [
        # Comparisons of lists.
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i WITH l, i WHERE l = l RETURN count(*)",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i WITH l, i WHERE l <> l RETURN count(*)",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i WITH l, i WHERE l < l <= l RETURN count(*)",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i WITH l, i WHERE l IN [l] RETURN count(*)",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i RETURN count(CASE l WHEN l THEN 1 END)",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i RETURN count(nullIf(l, l))",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i WITH DISTINCT [l] AS k RETURN count(*)",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i RETURN count(DISTINCT l)",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i RETURN l, count(*)",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i RETURN max([l])",
        "WITH range(1, 9000) AS l UNWIND range(1, 9000) AS i WITH l ORDER BY l RETURN count(*)",
        f"WITH {SHARED} AS l RETURN l = l",
        f"WITH {SHARED} AS l WITH DISTINCT l RETURN 1",
        f"WITH {SHARED} AS l ORDER BY l RETURN 1",
        # Lists and maps that are made.
        "RETURN size([x IN range(1, 5000) | {a: x, b: x, c: x, d: x}])",
        "WITH {a: 1, b: 2, c: 3, d: 4} AS m RETURN size([x IN range(1, 5000) | m {.*}])",
        "WITH {a: 1} AS m RETURN size([x IN range(1, 5000) | m {.a, .b, .c, d: x}])",
        "MATCH (n) WITH n LIMIT 1 RETURN size([x IN range(1, 9000) | properties(n)])",
        "RETURN size([x IN range(1, 9000) | [1, 2][0..1]])",
        # Texts, small and large, narrow and wide.
        "RETURN size([x IN range(1, 7000) | [x + 'a', x + 'b']])",
        "RETURN size([x IN range(1, 7000) | x + '\U0001f600\U0001f600\U0001f600\U0001f600\U0001f600\U0001f600\U0001f600\U0001f600']) ",
        f"WITH {LONG} AS t UNWIND range(1, 9000) AS i RETURN count(replace(t, 'a', ''))",
        f"WITH {LONG} AS t UNWIND range(1, 9000) AS i WITH t, i WHERE t CONTAINS 'x' RETURN count(*)",
        f"WITH {LONG} AS t UNWIND range(1, 9000) AS i RETURN count(toInteger(t))",
        f"WITH {LONG} AS t UNWIND range(1, 9000) AS i RETURN count(toFloatOrNull(t))",
        f"WITH {LONG} AS t UNWIND range(1, 9000) AS i RETURN count(trim(t, 'ab'))",
        f"WITH {LONG} AS t UNWIND range(1, 9000) AS i RETURN count(split(t, ['x', 'y']))",
        f"WITH {LONG} AS t UNWIND range(1, 9000) AS i WITH t, i WHERE t =~ 'a*' RETURN count(*)",
        "UNWIND range(1, 9000) AS i WITH i WHERE 'a' =~ ('[^a]{900}' + i) RETURN count(*)",
        # Much for each row.
        "UNWIND range(1, 9000) AS x RETURN sum(" + "+".join(["x"] * 1_000) + ")",
        f"UNWIND range(1, 1900) AS x WITH {WIDE} RETURN count(*)",
        # Walks.
        "MATCH (a)-[*1..20]->(b) RETURN count(*)",
        "MATCH (a) WHERE EXISTS { MATCH (a)-[*20..20]->(b) WHERE b.title = 'nowhere' } RETURN a",
        "MATCH (a), (b), (c), (d), (e), (f) RETURN count(*)",
        "UNWIND range(1, 1000) AS x CALL { UNWIND range(1, 1000) AS y CALL { UNWIND range(1, 9) AS z RETURN z } RETURN y } RETURN count(*)",
    ],
)
def test_every_step_is_counted(query: str) -> None:
    with pytest.raises(ResourceExhausted) as refused:
        answer(query, FEW)
    assert refused.value.details["budget"] == "steps"


@pytest.mark.parametrize(
    "query",
    [
        f"UNWIND range(1, 200) AS x WITH {WIDE} ORDER BY a1 RETURN count(*)",
        f"WITH 1 AS x WITH {WIDE} UNWIND range(1, 200) AS y WITH * ORDER BY y RETURN count(*)",
        f"UNWIND range(1, 200) AS x RETURN DISTINCT {WIDE}",
        f"UNWIND range(1, 200) AS x RETURN x, {SUMS}",
        f"UNWIND range(1, 200) AS x RETURN {WIDE}, count(*)",
    ],
)
def test_a_wide_row_that_is_held_counts_as_many(query: str) -> None:
    with pytest.raises(ResourceExhausted) as refused:
        answer(query, FEW)
    assert refused.value.details["budget"] == "held_rows"


def test_rows_that_are_held_no_more_are_given_back_whatever_their_width() -> None:
    query = f"UNWIND range(1, 4) AS x WITH {WIDE} ORDER BY a1 WITH DISTINCT a1, a2 WITH a1, count(*) AS c RETURN count(c)"
    budget = Budget(time.monotonic)
    assert run(compile_query(query, {}), clique(1), now=START, budget=budget).rows == [[4]]
    assert budget.held_rows == 0


@pytest.mark.parametrize("end", ["", "c", "ab"])
def test_a_text_is_split_at_the_first_separator_and_of_those_at_one_place_at_the_longest(end: str) -> None:
    parts = answer("RETURN split($t, ['b', 'bc', 'abc', 'b'])", t="xabcbbcy" + end)
    assert parts == [[["x", "", "", "y" + end.removesuffix("b")] + ([""] if end == "ab" else [])]]


def test_separators_that_nearly_match_everywhere_take_no_longer_than_others() -> None:
    query = f"WITH {LONG} AS t RETURN size(split(replace(t, 'b', 'a'), [$near, 'c', 'd']))"
    assert answer(query, near="a" * 200_000 + "b") == [[1]]


def test_characters_that_are_cut_off_may_be_many() -> None:
    query = f"WITH {LONG} AS t RETURN trim(t, t), ltrim(t, 'b') = t, rtrim(t + 'x', 'xb') = left(t, size(t) - 1)"
    assert answer(query) == [["", True, True]]


def test_a_pattern_with_too_many_states_for_its_text_is_refused() -> None:
    many, text = ".*(a.{1,900}b.{1,900}a)c", "ab" * 10_000
    assert matches("abac", many) is False
    with pytest.raises(ResourceExhausted) as refused:
        matches(text, many)
    assert refused.value.details == {"budget": "pattern_work", "limit": MAX_WORK}
    assert matches(text, ".*b") is True


@pytest.mark.parametrize("form", ["[v]", "{a: v}"])
def test_a_result_has_at_most_a_hundred_lists_and_maps_in_one_another(form: str) -> None:
    assert len(answer(f"RETURN reduce(v = 1, i IN range(1, 100) | {form})")) == 1
    for depth in (101, 400, 499, 600, 9_000):
        with pytest.raises(InvalidCypher) as refused:
            answer(f"RETURN reduce(v = 1, i IN range(1, {depth}) | {form})")
        assert refused.value.details["kind"] == "NestingTooDeep"


def test_a_result_of_lists_that_share_their_items_is_refused_for_its_size() -> None:
    with pytest.raises(ResourceExhausted) as refused:
        answer(f"RETURN {SHARED} AS l")
    assert refused.value.details["budget"] == "response_bytes"


def test_the_deviation_of_numbers_whose_squares_are_beyond_the_floats_is_no_fault() -> None:
    for numbers in ([1e308, 1e308, -1e308], [1e308, -1e308], [math.inf, 1], [1e200, 2e200]):
        ((sample, whole),) = answer("UNWIND $numbers AS x RETURN stDev(x), stDevP(x)", numbers=numbers)
        assert not math.isfinite(sample)
        assert not math.isfinite(whole)


def test_an_id_that_is_not_there_is_looked_for_once() -> None:
    budget = Budget(time.monotonic, Limits(requests=40))
    query = "UNWIND range(1, 9000) AS i OPTIONAL MATCH (n {id: 'nobody'}) RETURN count(i), count(n)"
    assert run(compile_query(query, {}), clique(2), now=START, budget=budget).rows == [[9_000, 0]]


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (a)-[r]->(b) RETURN sum(size(a.body))",
        "MATCH (a {id: 'n000'})-[r]->(b) RETURN sum(size(r.evidence))",
    ],
)
def test_the_texts_of_edges_and_of_their_ends_are_counted(query: str) -> None:
    nodes = [GraphNode(f"n{i:03}", ("Decision",), {"id": f"n{i:03}", "body": "x" * 100}) for i in range(300)]
    edges = [GraphEdge(f"e{i:03}", "relates_to", "n000", f"n{i:03}", {"evidence": "y" * 100}) for i in range(1, 300)]
    source = MemorySource(nodes, edges, id_key="id")
    for most, fits in ((40_000, True), (20_000, False)):
        budget = Budget(time.monotonic, Limits(characters=most))
        if fits:
            run(compile_query(query, {}), source, now=START, budget=budget)
            continue
        with pytest.raises(ResourceExhausted) as refused:
            run(compile_query(query, {}), source, now=START, budget=budget)
        assert refused.value.details["budget"] == "characters"
