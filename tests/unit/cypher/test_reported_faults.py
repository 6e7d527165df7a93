"""What other engines got wrong, by the reports of their users: here each has its right answer.

The names in brackets are those of the projects and the numbers of their issues.
"""

from __future__ import annotations

import pytest

from pulse_kg.cypher.engine import compile_query
from pulse_kg.cypher.memory_source import MemorySource
from pulse_kg.errors import UnsafeCypher
from pulse_kg.ports.graph_source import GraphNode
from tests.support.cypher_answers import column_of, result_of, rows_of

CHAIN = "CREATE (:A {name: 'a'})-[:R]->(:B {name: 'b'})-[:R]->(:C {name: 'c'})-[:R]->(:D {name: 'd'})"
TRIANGLE = "CREATE (a {name: 'a'}), (b {name: 'b'}), (c {name: 'c'}) CREATE (a)-[:R]->(b), (b)-[:R]->(c), (c)-[:R]->(a)"
DIAMOND = "CREATE (a {name: 'a'}), (b), (c), (d {name: 'd'}) CREATE (a)-[:R]->(b), (a)-[:R]->(c), (b)-[:R]->(d), (c)-[:R]->(d)"
EDGE = "CREATE (:A {name: 'a'})-[:R]->(:B {name: 'b'})"
LOOP = "CREATE (n {name: 'a'})-[:X]->(n)"
TWO = "CREATE ({name: 'a'}), ({name: 'b'})"


# Trails.


def test_parts_of_variable_length_do_not_run_over_a_relationship_that_is_bound() -> None:  # ArcadeData/arcadedb#4006
    assert rows_of("MATCH ()-[r]-() MATCH p = (n)-[*0..1]-()-[r]-()-[*0..1]-(m) RETURN count(p)", CHAIN) == [[32]]


def test_a_longer_upper_bound_only_adds_rows_and_a_trail_may_come_back_to_a_node() -> None:  # genezhang/clickgraph#598
    query = "MATCH ({name: 'a'})-[*%s]->(far) RETURN far.name"
    assert column_of(query % "3..3", TRIANGLE) == ["a"]
    assert sorted(column_of(query % "2..3", TRIANGLE)) == ["a", "c"]


def test_each_trail_to_the_same_node_is_a_row() -> None:  # RedisGraph/RedisGraph#321
    assert column_of("MATCH ({name: 'a'})-[*2]->(c) RETURN c.name", DIAMOND) == ["d", "d"]


def test_a_node_named_twice_in_a_pattern_is_the_same_node() -> None:  # DeusData/codebase-memory-mcp#797
    graph = (LOOP, "CREATE (:Y {name: 'y'})-[:X]->(:Z {name: 'z'})")
    assert column_of("MATCH (a)-[:X]->(a) RETURN a.name", *graph) == ["a"]


def test_a_self_loop_is_walked_once_in_a_trail() -> None:  # DeusData/codebase-memory-mcp#797
    assert rows_of("MATCH p = ({name: 'a'})-[:X*]->() RETURN length(p)", LOOP) == [[1]]


@pytest.mark.parametrize(("graph", "times"), [(LOOP, 1), (EDGE, 2)])
def test_without_an_arrow_a_self_loop_matches_once_and_another_edge_twice(graph: str, times: int) -> None:  # samyama-ai/samyama-graph#640
    assert rows_of("MATCH ()--() RETURN count(*)", graph) == [[times]]
    assert rows_of("MATCH (a) RETURN sum(size([(a)--(b) | 1]))", graph) == [[times]]  # ArcadeData/arcadedb#5456
    assert rows_of("MATCH (a) RETURN sum(COUNT { (a)--() })", graph) == [[times]]


def test_one_edge_does_not_go_there_and_back() -> None:  # samyama-ai/samyama-graph#684
    assert rows_of("MATCH (a)-[:R]-(b)-[:R]-(a) RETURN a", EDGE) == []


def test_two_match_clauses_may_use_the_same_edge() -> None:  # openbkn-ai/bkn-foundry#1459
    assert rows_of("MATCH (a)-[r]->(b) MATCH (c)-[s]->(d) RETURN a.name, d.name, r = s", EDGE) == [["a", "b", True]]
    assert rows_of("MATCH (a)-[r]->(b), (c)-[s]->(d) RETURN a.name, d.name", EDGE) == []


def test_an_edge_is_used_once_in_all_of_a_match_and_anew_after_with() -> None:  # neo4j/neo4j#4364
    graph = "CREATE (:root)-[:R]->({name: 'b'})-[:R]->({name: 'c'})"
    assert rows_of("MATCH (a:root), (a)-[:R]->(c), (a)-[*]->(d) RETURN d", graph) == []
    assert sorted(column_of("MATCH (a:root), (a)-[:R]->(c) WITH a, c MATCH (a)-[*]->(d) RETURN d.name", graph)) == ["b", "c"]


def test_a_bound_node_named_again_does_not_change_how_many_rows_there_are() -> None:  # LadybugDB/ladybug#697
    for repeated in ("", ", (a)", ", (b)", ", (a), (b), (a)"):
        assert rows_of(f"MATCH (a)-->(b){repeated} RETURN count(*)", CHAIN) == [[3]]


# OPTIONAL MATCH.


def test_the_where_of_an_optional_match_rules_over_that_clause_alone() -> None:  # colliery-io/graphqlite#34
    query = "MATCH (a) OPTIONAL MATCH (a)-->(b) WHERE b.name = 'c' RETURN a.name, b.name ORDER BY a.name"
    assert rows_of(query, CHAIN) == [["a", None], ["b", "c"], ["c", None], ["d", None]]


def test_the_where_of_an_optional_match_may_speak_of_a_variable_of_before() -> None:  # genezhang/clickgraph#611
    query = "MATCH (a) OPTIONAL MATCH (a)-->(b) WHERE a.name = 'a' RETURN a.name, b.name ORDER BY a.name"
    assert rows_of(query, CHAIN) == [["a", "b"], ["b", None], ["c", None], ["d", None]]


def test_an_optional_match_from_a_null_gives_one_row_of_nulls() -> None:  # memgraph/memgraph#4543
    query = "MATCH (a) OPTIONAL MATCH (a)--(b) OPTIONAL MATCH (b), (c) RETURN %s"
    assert rows_of(query % "count(*)", TWO) == [[2]]
    assert rows_of(query % "b, c", TWO) == [[None, None], [None, None]]


def test_a_null_of_an_optional_match_can_be_filtered_out() -> None:  # FalkorDB/FalkorDB#2508
    assert rows_of("OPTIONAL MATCH (n:Nowhere) WITH * WHERE n IS NOT NULL RETURN n", TWO) == []


def test_rows_of_nulls_are_counted() -> None:  # ArcadeData/arcadedb#5094
    assert rows_of("MATCH (a) OPTIONAL MATCH (a)-->(b) RETURN count(*), count(b)", CHAIN) == [[4, 3]]
    assert rows_of("OPTIONAL MATCH (n:Nowhere) RETURN count(*), count(n)", TWO) == [[1, 0]]


def test_a_trail_of_no_edges_in_an_optional_match_ends_where_it_starts() -> None:  # apache/age#2382
    assert rows_of("MATCH (p) OPTIONAL MATCH (p)-[:F*0..1]->(f) RETURN p.name, f.name, p = f", TWO) == [["a", "a", True], ["b", "b", True]]


def test_an_optional_match_loses_no_row() -> None:  # opencypher/cypher-for-gremlin#371
    query = "MATCH (a) OPTIONAL MATCH (a)-[:R]->(b) OPTIONAL MATCH (b)-[:R]->(c) RETURN a.name, b.name, c.name ORDER BY a.name"
    assert rows_of(query, CHAIN) == [["a", "b", "c"], ["b", "c", "d"], ["c", "d", None], ["d", None, None]]


# Three values.


def test_what_is_not_known_to_be_outside_a_list_is_not_outside() -> None:  # memgraph/memgraph#4375
    assert column_of("UNWIND [10, 0, null] AS v WITH v WHERE NOT (v IN [10]) RETURN v") == [0]


@pytest.mark.parametrize("times", [1, 2, 3, 20])
def test_a_list_with_a_null_is_never_known_to_be_in_a_list(times: int) -> None:  # neo4j/neo4j#13958
    assert rows_of("WITH [1, null] AS x RETURN x IN $lists, [1, null] IN $lists, x IN [x, x]", lists=[[1, None]] * times) == [[None] * 3]
    assert column_of("UNWIND range(1, 3) AS i RETURN [1, null] IN $lists", lists=[[1, 2]] * times) == [None] * 3


def test_quantifiers_are_decided_by_what_is_known() -> None:  # vesoft-inc/nebula#6166, #6167
    query = "RETURN all(x IN [null, false] WHERE x), none(x IN [null, true] WHERE x), any(x IN [null, true] WHERE x)"
    assert rows_of(query) == [[False, False, True]]
    unknown = "RETURN all(x IN [null, true] WHERE x), none(x IN [null, false] WHERE x), any(x IN [null, false] WHERE x)"
    assert rows_of(unknown) == [[None, None, None]]


def test_unlike_values_do_not_compare_and_not_does_not_make_that_true() -> None:  # samyama-ai/samyama-graph#607
    assert column_of("RETURN 1 < 'a'") == [None]
    assert column_of("UNWIND [1] AS x WITH x WHERE NOT (x < 'a') RETURN x") == []


def test_null_comes_last_and_in_descending_order_first() -> None:  # samyama-ai/samyama-graph#369
    assert column_of("UNWIND [2, null, 1] AS x RETURN x ORDER BY x") == [1, 2, None]
    assert column_of("UNWIND [2, null, 1] AS x RETURN x ORDER BY x DESC") == [None, 2, 1]


def test_values_of_all_kinds_have_one_order() -> None:  # memgraph/memgraph#3888
    order = [{}, [2], "", True, 1, 3.14, None]
    assert column_of("UNWIND [3.14, null, true, '', {}, 1, [2]] AS x RETURN x ORDER BY x") == order
    assert column_of("UNWIND $values AS x RETURN x ORDER BY x DESC", values=order) == order[::-1]


def test_a_null_in_the_properties_of_a_pattern_matches_nothing() -> None:  # opencypher/cypher-for-gremlin#305
    assert rows_of("MATCH (n {name: $name}) RETURN n", TWO, name=None) == []
    assert rows_of("MATCH (n {nowhere: $name}) RETURN n", TWO, name=None) == []
    assert rows_of("MATCH ()-[r {name: $name}]->() RETURN r", EDGE, name=None) == []
    assert rows_of("OPTIONAL MATCH (n {name: null}) RETURN n", TWO) == [[None]]


@pytest.mark.parametrize(
    "query", ["MATCH (n {id: $id}) RETURN n", "MATCH (n) WHERE n.id = $id RETURN n", "MATCH (n) WHERE id(n) = $id RETURN n"]
)
def test_an_id_that_nobody_has_is_no_node(query: str) -> None:  # JanusGraph/janusgraph#4433
    source = MemorySource([GraphNode("known", ("Bug",), {"id": "known"})], [])
    assert result_of(query, source, id="unknown").rows == []
    assert len(result_of(query, source, id="known").rows) == 1


# Projection.


def test_distinct_comes_before_order_and_limit() -> None:  # DeusData/codebase-memory-mcp#237, #873
    assert column_of("UNWIND range(0, 89) AS i RETURN DISTINCT i % 30 AS x ORDER BY x LIMIT 30") == list(range(30))
    assert column_of("UNWIND range(0, 89) AS i WITH DISTINCT i % 30 AS x LIMIT 30 RETURN count(x)") == [30]


def test_rows_are_ordered_by_an_expression_that_has_an_alias() -> None:  # ArcadeData/arcadedb#5286
    graph = "CREATE ({age: 3}), ({age: 1}), ({age: 2}), ({age: 1})"
    assert rows_of("MATCH (n) RETURN n.age AS a, count(*) ORDER BY n.age", graph) == [[1, 2], [2, 1], [3, 1]]


def test_what_is_grouped_by_may_be_a_function() -> None:  # DeusData/codebase-memory-mcp#1279
    graph = "CREATE (:A), (:B), (:A), (:A)"
    assert rows_of("MATCH (n) RETURN labels(n), count(n) ORDER BY count(n)", graph) == [[["B"], 1], [["A"], 3]]


@pytest.mark.parametrize("before", ["MATCH (n:Nowhere)", "MATCH (n) WITH n WHERE false", "UNWIND [] AS n", "UNWIND null AS n"])
def test_an_aggregate_over_nothing_is_one_row_but_no_row_with_a_key(
    before: str,
) -> None:  # RedisGraph/RedisGraph#1455, FalkorDB/FalkorDB#1794
    assert rows_of(f"{before} RETURN count(*), count(n), collect(n), sum(1), max(1)", TWO) == [[0, 0, [], 0, None]]
    assert rows_of(f"{before} WITH count(*) AS c RETURN c", TWO) == [[0]]
    assert rows_of(f"{before} RETURN n, count(*)", TWO) == []


def test_a_limit_of_nothing_gives_nothing() -> None:  # FalkorDB/FalkorDB#2733
    assert rows_of("RETURN 1 LIMIT 0") == []
    assert rows_of("MATCH (n) WITH n LIMIT 0 RETURN count(n)", TWO) == [[0]]


def test_a_limit_inside_a_subquery_holds_for_each_outer_row() -> None:  # FalkorDB/FalkorDB#938
    query = "UNWIND [1, 2, 3] AS x CALL { WITH x UNWIND [10, 20] AS y RETURN x + y AS z ORDER BY z LIMIT 1 } RETURN x, z"
    assert rows_of(query) == [[1, 11], [2, 12], [3, 13]]


def test_order_and_limit_of_the_first_arm_of_a_union_hold_for_that_arm() -> None:  # genezhang/clickgraph#512
    query = "UNWIND [3, 1, 2] AS x RETURN x ORDER BY x SKIP 1 LIMIT 1 UNION ALL UNWIND [9, 8] AS x RETURN x"
    assert column_of(query) == [2, 9, 8]


def test_a_list_comprehension_sees_the_row_around_it() -> None:  # turing-db/turingdb#944
    assert column_of("UNWIND [1, 2] AS k RETURN [x IN [1, 2] | x + k]") == [[2, 3], [3, 4]]


# What is more than reading.


@pytest.mark.parametrize(
    "query",
    [
        "LOAD FROM '/etc/passwd' RETURN *",  # RoboFinSystems/robosystems#800
        "INSTALL httpfs",
        "LOAD EXTENSION httpfs",
        "ATTACH '/data/other.db' AS other (dbtype lbug)",
        "FOREACH (x IN [1] | CREATE (n))",  # CodeGraphContext/CodeGraphContext#883
        "MATCH (n) FOREACH (x IN [1] | SET n.x = x)",
        "CALL { CREATE (n) RETURN n } RETURN n",
        "MATCH (n) CALL { WITH n CREATE (m) } RETURN n",
        "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
        "MATCH (n) LOAD CSV WITH HEADERS FROM 'https://example.org/x.csv' AS line RETURN line",
        "CALL db.labels()",  # neo4j/mcp#289
        "CALL apoc.cypher.doIt('CREATE (n)', {}) YIELD value RETURN value",
    ],
)
def test_reading_files_loading_code_and_writing_behind_a_subquery_are_refused(query: str) -> None:
    with pytest.raises(UnsafeCypher):
        compile_query(query, {})
