"""The tools of the conformance tests themselves: the kit's notation, the comparison, the loader of graphs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.cypher.values import Path as Trail
from pulse_kg.ports.graph_source import GraphEdge, GraphNode
from tests.conformance import __main__ as program
from tests.conformance.kit import Case, judge, read_expected_failures
from tests.support.cypher_cells import NodeCell, PathCell, RelCell, difference, form, read_cell
from tests.support.cypher_loader import build

A = GraphNode("n1", ("A",), {"name": "x"})
B = GraphNode("n2", ("B", "C"), {})
EDGE = GraphEdge("e1", "T", "n1", "n2", {"num": 1})


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("null", None),
        ("true", True),
        ("-1", -1),
        ("1.5", 1.5),
        ("-1e-5", -0.00001),
        (".5", 0.5),
        ("''", ""),
        ("'it\\'s'", "it's"),
        ("'<(:A)>'", "<(:A)>"),
        ("[]", []),
        ("[1, [null, 'a']]", [1, [None, "a"]]),
        ("{a: 1, b: {c: []}}", {"a": 1, "b": {"c": []}}),
        ("()", NodeCell(frozenset(), {})),
        ("(:A:B {x: -1})", NodeCell(frozenset("AB"), {"x": -1})),
        ("[:T]", RelCell("T", {})),
        ("[:T {x: 'y'}]", RelCell("T", {"x": "y"})),
        ("<()>", PathCell(NodeCell(frozenset(), {}))),
        (
            "<(:A)<-[:T {x: 1}]-()-[:S]->(:B)>",
            PathCell(
                NodeCell(frozenset("A"), {}),
                ((False, RelCell("T", {"x": 1}), NodeCell(frozenset(), {})), (True, RelCell("S", {}), NodeCell(frozenset("B"), {}))),
            ),
        ),
    ],
)
def test_a_cell_is_read(cell: str, value: Any) -> None:
    assert read_cell(cell) == value


def test_not_a_number_is_read_and_equal_to_itself() -> None:
    assert math.isnan(read_cell("NaN"))
    assert form(read_cell("NaN")) == form(math.nan)


@pytest.mark.parametrize("cell", ["", "(", "(:A", "[1", "1 2", "<(:A)-[:T]->>", "nul", "{a 1}"])
def test_what_is_no_cell_is_told(cell: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        read_cell(cell)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("(:A {name: 'x'})", A),
        ("(:C:B)", B),
        ("0.0", -0.0),
        ("[:T {num: 1}]", EDGE),
        ("<(:A {name: 'x'})-[:T {num: 1}]->(:B:C)>", Trail((A, B), (EDGE,))),
        ("<(:B:C)<-[:T {num: 1}]-(:A {name: 'x'})>", Trail((B, A), (EDGE,))),
        ("<(:B:C)>", Trail((B,), ())),
        ("[(:B:C), 1.0, {a: null}]", [B, 1.0, {"a": None}]),
    ],
)
def test_a_value_is_what_its_cell_says(cell: str, value: Any) -> None:
    assert form(read_cell(cell)) == form(value)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1", 1.0),
        ("1", True),
        ("1", "1"),
        ("null", "null"),
        ("{a: null}", {}),
        ("(:A)", A),
        ("(:A {name: 'y'})", A),
        ("(:B)", B),
        ("[:S {num: 1}]", EDGE),
        ("<(:A {name: 'x'})<-[:T {num: 1}]-(:B:C)>", Trail((A, B), (EDGE,))),
        ("[1, 2]", [2, 1]),
        ("[:T {num: 1}]", [EDGE]),
    ],
)
def test_a_value_is_not_what_another_cell_says(cell: str, value: Any) -> None:
    assert form(read_cell(cell)) != form(value)


def test_rows_are_compared_with_or_without_their_order_and_that_of_lists() -> None:
    def differ(expected: Any, answered: Any, *, ordered: bool = False, ignore_list_order: bool = False) -> bool:
        return difference(expected, answered, ordered=ordered, ignore_list_order=ignore_list_order) is not None

    assert not differ([[1], [2]], [[2], [1]])
    assert differ([[1], [2]], [[2], [1]], ordered=True)
    assert differ([[1], [1]], [[1]])
    assert differ([[1]], [[1], [1]])
    assert differ([], [[None]])
    assert differ([[[1, 2]]], [[[2, 1]]])
    assert not differ([[[1, [2, 3]]]], [[[[3, 2], 1]]], ignore_list_order=True)


def test_the_loader_builds_what_the_statements_say() -> None:
    graph = build(
        [
            "CREATE (a:A {name: 'a', gone: null})-[:T {n: 1}]->(b:B:C), (a)<-[:S]-(b), (b)-[:L]->(b) // a loop\nCREATE (a)-[:U]->(:D)",
            "UNWIND range(1, 3) AS i CREATE (e:E {i: i * 2}) WITH e, i WHERE i > 2 CREATE (e)-[:V]->({i: -i, t: toString(i) + 'x'})",
            "MATCH (a:A)-[:U]->(d) SET d.name = a.name + 'd', d:F",
            "MATCH (x)-[r:S]->(y) WHERE NOT x:A DELETE r CREATE (y)-[:W]->(x)",
            "MATCH (e:E {i: 2}) DETACH DELETE e;",
        ]
    )
    nodes, edges = graph.elements()
    looks = {node.node_id: form(node) for node in nodes}
    assert sorted(map(repr, looks.values())) == sorted(
        repr(form(read_cell(cell)))
        for cell in ("(:A {name: 'a'})", "(:B:C)", "(:D:F {name: 'ad'})", "(:E {i: 4})", "(:E {i: 6})", "({i: -3, t: '3x'})")
    )
    ends = sorted((edge.rel_type, looks[edge.src][1], looks[edge.dst][1]) for edge in edges)
    assert ends == [
        ("L", ("B", "C"), ("B", "C")),
        ("T", ("A",), ("B", "C")),
        ("U", ("A",), ("D", "F")),
        ("V", ("E",), ()),
        ("W", ("A",), ("B", "C")),
    ]


def test_the_loader_matches_each_relationship_once_in_a_clause() -> None:
    graph = build(["CREATE (a:A)-[:R]->(b)-[:R]->(c), (c)-[:R]->(c)", "MATCH (x)--(y)--(z) CREATE (:Found)"])
    found = [node for node in graph.nodes if node.labels == ["Found"]]
    assert len(found) == 4  # a b c, and b c c with the loop, each one either way


def case(query: str, **more: Any) -> Case:
    return Case("one", (), {}, query, more.get("expect"), more.get("error"))


def expecting(*rows: list[str], ordered: bool = False) -> dict[str, Any]:
    return {"columns": ["x"], "rows": list(rows), "ordered": ordered, "ignore_list_order": False, "empty": not rows}


def test_a_case_is_judged_by_columns_rows_and_the_phase_of_its_error() -> None:
    assert judge(case("RETURN 1 AS x", expect=expecting(["1"]))) is None
    assert judge(case("RETURN 1 AS y", expect=expecting(["1"]))) is not None
    assert judge(case("RETURN 1 AS x", expect=expecting(["2"]))) is not None
    assert judge(case("RETURN 1 AS x", expect=expecting())) is not None
    assert judge(case("RETURN 1 AS", expect=expecting(["1"]))) is not None
    compiling, running = ({"type": "E", "phase": phase, "detail": "D"} for phase in ("compile time", "runtime"))
    assert judge(case("RETURN y", error=compiling)) is None
    assert judge(case("RETURN 1 AS x", error=compiling)) is not None
    assert judge(case("UNWIND [0] AS x RETURN 1 / x", error=running)) is None
    assert judge(case("UNWIND [0] AS x RETURN 1 / x", error=compiling)) is not None
    assert judge(case("CREATE (n)", error=compiling)) is not None


def test_the_program_names_failures_and_ends_with_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases.jsonl"
    right = '{"id": "a", "setup": [], "params": [["p", "1"]], "query": "RETURN $p AS x", "expect": %s}\n'
    expect = '{"columns": ["x"], "rows": [["%s"]], "ordered": false, "ignore_list_order": false, "empty": false}'
    file.write_text(right % (expect % "1") + right.replace('"a"', '"b"') % (expect % "2"))
    assert program.main([str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "failed: b"
    assert lines[-1] == "1 passed, 1 failed"
    file.write_text(right % (expect % "1"))
    assert program.main([str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed"


def test_a_file_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main([str(tmp_path / "none")])
    assert ended.value.code == 2
    assert "there is no file" in capsys.readouterr().err


def test_an_expected_failure_is_an_id_and_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "expected.txt"
    file.write_text("# why\n\nmatch/Match1.feature#[1] Name~1 :: longer paths than are walked\n")
    assert read_expected_failures(file) == {"match/Match1.feature#[1] Name~1": "longer paths than are walked"}
