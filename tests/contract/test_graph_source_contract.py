"""What `GraphSource` promises, of every source."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.sqlite import source as sqlite_source
from pulse_kg.cypher.memory_source import MemorySource
from pulse_kg.domain.model import Edge, NodeDraft
from pulse_kg.domain.schema import NODE_TYPES, REL_TYPES, NodeType
from pulse_kg.ports.graph_source import Direction, GraphEdge, GraphNode, GraphSource, Hop
from tests.support.plans import NOW, Content, add, administered, commit, edge, node, session
from tests.support.sources import SOURCES, Graphs, graphs, in_memory, properties_of, properties_of_edge, put_edges

NOTHING: frozenset[str] = frozenset()
TITLE = frozenset({"title"})
HOSTILE = ("", "dec", "alpha", "x' OR 1=1 --", "').drop()", "*", "dec_1_1", "dec_\u0430", "\ud800", "a\x00b", "%", "dec_1\n", "beta_dec_1")
DIRECTIONS: Sequence[Direction] = ("out", "in", "both")


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.served] if name == "served" else []) for name in SOURCES])
def graph(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graphs]:
    """A store with the empty boards alpha and beta."""
    # Small pages, so that the ends of pages fall in the midst of everything.
    monkeypatch.setattr(sqlite_source, "FIRST_PAGE", 2)
    monkeypatch.setattr(sqlite_source, "LATER_PAGES", 3)
    with graphs(request.param, tmp_path) as made:
        made.store.boards.create("alpha", "Alpha", now=NOW)
        made.store.boards.create("beta", "Beta", now=NOW)
        yield made


def linked(graph: Graphs, number: int, *edges: Any, board_id: str = "alpha") -> list[Edge]:
    """Commits edges between nodes that are there."""
    return list(commit(graph.store, session(number, board_id), Content(edges=edges)).edges)


def loop(graph: Graphs, number: int, node_id: str, edge_id: str) -> Edge:
    """Makes an edge from a node to itself."""
    made = commit(graph.store, session(number), Content([node(f"beside {number}")]))
    looped = Edge("alpha", edge_id, node_id, "relates_to", node_id, NOW, "agt_ada", made.seq, session(number).session_id)
    put_edges(graph.store, made, looped)
    return looped


def of_all_kinds(board: str = "") -> list[NodeDraft]:
    return [
        node(
            f"Decision {board}",
            body="A body.",
            attributes={"rationale": "why", "status": "active", "decided_at": "2026-01-02", "confidence": 0.9},
        ),
        node(f"Older {board}", attributes={"status": "active"}),
        node(f"Whole {board}", "Criterion", attributes={"threshold": 3}),
        node(f"Broken {board}", "Criterion", attributes={"threshold": 0.1 + 0.2}),
        node(f"Round {board}", "Criterion", attributes={"threshold": 3.0}),
        node(f"Assumed {board}", "Assumption", attributes={"validated": True}),
        node(f"Doubted {board}", "Assumption", attributes={"validated": False}),
        node(f"Named {board}", "Entity", attributes={"aliases": ["ß", "\U0001f9ed", ""], "kind": ""}),
        node(f"Called {board}", "APIContract", attributes={"request_schema": {"a": [1, 2.5, None, True, {"b": {}}], "": "empty"}}),
        node(f"Bug {board}", "Bug", attributes={"status": "open", "severity": "major"}),
        # Keys that a board may give to a type, and that stores use for columns of their own.
        node(
            f"Odd {board}",
            "Learning",
            attributes={
                "truncated": "T",
                "folded_title": "F",
                "nid": "N",
                "applied_seq": 5,
                "attributes": "A",
                "node_id": "I",
                "node_type": "K",
            },
        ),
    ]


def furnished(graph: Graphs, first: int = 1, board_id: str = "alpha") -> list[str]:
    """A board with a node of every kind and state, and edges."""
    ids = add(graph.store, first, *of_all_kinds(board_id), board_id=board_id)
    newer = add(graph.store, first + 1, node(f"Newer {board_id}"), board_id=board_id, hints={"cand_001": ("SUPERSEDE", ids[1])})
    administered(graph.store, board_id, ids[9], kind="revoke")
    administered(graph.store, board_id, ids[0], kind="curate", priority_boost=0.1)
    linked(
        graph,
        first + 2,
        edge(ids[0], "depends_on", ids[2], reason="because", evidence="seen", confidence=0.4),
        edge(ids[0], "relates_to", ids[7]),
        edge(ids[9], "relates_to", ids[0]),
        edge(ids[0], "contradicts", ids[5]),
        board_id=board_id,
    )
    return sorted([*ids, *newer])


def ids_of(nodes: Any) -> list[str]:
    return [n.node_id for n in nodes]


def by_type(graph: Graphs, node_type: str, board_id: str = "alpha") -> list[str]:
    return [n.node_id for n in graph.store.graph.all_nodes(board_id) if n.node_type == node_type]


# Scanning.


def test_a_scan_gives_the_nodes_of_a_label_or_all_of_them_by_id(graph: Graphs) -> None:
    ids = furnished(graph)
    source = graph.of("alpha")
    assert ids_of(source.scan(None, {}, NOTHING)) == ids_of(source.scan(None, {}, None)) == ids
    for node_type in NODE_TYPES:
        for need in (NOTHING, TITLE):
            found = list(source.scan(node_type, {}, need))
            assert ids_of(found) == by_type(graph, node_type)
            assert {n.labels for n in found} <= {(node_type,)}


def test_a_node_has_its_common_properties_and_attributes_in_one_map_and_none_that_is_null(graph: Graphs) -> None:
    furnished(graph)
    expected = {n.node_id: properties_of(n) for n in graph.store.graph.all_nodes("alpha")}
    for found in graph.of("alpha").scan(None, {}, None):
        assert dict(found.properties) == expected[found.node_id]
        assert {name: type(value) for name, value in found.properties.items()} == {
            name: type(value) for name, value in expected[found.node_id].items()
        }
        assert not {"board_id", "embedding", "vector"} & found.properties.keys()
        if found.labels != ("Learning",):
            assert not {"node_id", "node_type", "truncated", "folded_title", "applied_seq", "nid"} & found.properties.keys()


def test_the_properties_of_a_decision_read_as_every_tool_shows_them(graph: Graphs) -> None:
    ids = furnished(graph)
    found = {str(n.properties["title"]): n.properties for n in graph.of("alpha").scan("Decision", {}, None)}
    decision = found["Decision alpha"]
    assert (decision["id"] in ids, decision["rationale"], decision["decided_at"], decision["confidence"]) == (
        True,
        "why",
        "2026-01-02",
        0.9,
    )
    assert (decision["created_at"], decision["human_curated"], decision["priority_boost"]) == ("2026-01-01T00:00:00.000Z", True, 0.1)
    assert (decision["artifact"], decision["artifact_version"], decision["status"]) == ("spec:spec_007", 1, "active")
    older = found["Older alpha"]
    assert (older["status"], older["superseded_by"], older["superseded_at"]) == (
        "superseded",
        found["Newer alpha"]["id"],
        "2026-01-01T00:00:00.000Z",
    )
    assert "superseded_by" not in decision
    assert older["human_curated"] is False


@pytest.mark.parametrize(
    "need",
    [
        NOTHING,
        TITLE,
        {"id"},
        {"status"},
        {"confidence", "validated"},
        {"threshold", "severity", "kind"},
        {"truncated", "folded_title", "nid", "applied_seq"},
        {"node_id", "node_type", "attributes"},
        {"board_id", "embedding", "vector"},
        {"created_at", "superseded_at", "human_curated", "title", "request_schema"},
        set(HOSTILE),
    ],
)
def test_a_reader_gets_the_properties_that_he_needs_and_no_others(graph: Graphs, need: Any) -> None:
    ids = furnished(graph)
    source, need = graph.of("alpha"), frozenset(need)
    expected = {
        n.node_id: {name: value for name, value in properties_of(n).items() if name in need} for n in graph.store.graph.all_nodes("alpha")
    }
    assert {n.node_id: dict(n.properties) for n in source.scan(None, {}, need)} == expected
    assert {i: dict(n.properties) for i, n in source.get(ids, need).items()} == expected
    assert all(dict(h.far.properties) == expected[h.far.node_id] for h in source.expand(ids, "both", None, NOTHING, need))
    assert all(dict(a.properties) == expected[a.node_id] for a, _, _ in source.edges(None, NOTHING, need))


def test_an_integer_that_no_query_can_count_with_comes_as_the_nearest_float(graph: Graphs) -> None:
    if isinstance(graph.of("alpha"), MemorySource):
        pytest.skip("gives what it was given")
    numbers = [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**30, 10**18, 0, -1]
    add(graph.store, 1, *(node(f"n{n}", "Criterion", attributes={"threshold": number}) for n, number in enumerate(numbers)))
    add(graph.store, 2, node("deep", "APIContract", attributes={"request_schema": {"a": [2**64, 10**400]}}))
    found = {n.properties["title"]: n.properties["threshold"] for n in graph.of("alpha").scan("Criterion", {}, None)}
    expected = [2**63 - 1, -(2**63), float(2**63), -float(2**63), 1e30, 10**18, 0, -1]
    assert [(found[f"n{n}"], type(found[f"n{n}"])) for n in range(len(numbers))] == [(value, type(value)) for value in expected]
    (deep,) = graph.of("alpha").scan("APIContract", {}, None)
    assert deep.properties["request_schema"] == {"a": [float(2**64), math.inf]}


def test_names_that_nothing_has_find_nothing_whatever_they_are(graph: Graphs) -> None:
    ids = furnished(graph)
    source = graph.of("alpha")
    for name in (*HOSTILE, "decision", "DECISION", "Decision ", "Node"):
        assert list(source.scan(name, {}, None)) == []
        assert source.expand(ids, "both", [name], None, None) == []
        assert list(source.edges([name], None, None)) == []
    assert source.get(HOSTILE, None) == {}
    assert source.expand(HOSTILE, "both", None, None, None) == []
    assert source.expand(ids, "both", [], None, None) == []
    assert list(source.edges([], None, None)) == []
    assert source.get([], None) == {}
    assert source.expand([], "both", None, None, None) == []


def test_a_board_that_is_empty_or_not_there_has_nothing(graph: Graphs) -> None:
    furnished(graph)
    for board_id in ("beta", "gamma"):
        source = graph.of(board_id)
        assert list(source.scan(None, {}, None)) == list(source.scan("Decision", {}, NOTHING)) == list(source.edges(None, None, None)) == []
        assert dict(source.counts().nodes) == {}


# Filters.


def same(found: Any, asked: Any) -> bool:
    """Equality of JSON: kinds matter, but 1 is 1.0."""
    if isinstance(found, bool) or isinstance(asked, bool):
        return found is asked
    return bool(found == asked)


def test_a_filter_never_rules_out_a_node_that_has_the_values(graph: Graphs) -> None:
    furnished(graph)
    source, nodes = graph.of("alpha"), list(in_memory(graph.store, "alpha").scan(None, {}, None))
    pairs = {(name, repr(value)): (name, value) for n in nodes for name, value in n.properties.items()}
    pairs |= {(name, "other"): (name, other) for name in ("threshold", "version", "confidence", "validated") for other in (1, 1.0, 3, 3.0)}
    for name, value in pairs.values():
        for label in (None, "Decision", "Criterion"):
            expected = [n for n in nodes if same(n.properties.get(name), value) and label in {None, *n.labels}]
            found = list(source.scan(label, {name: value}, None))
            assert set(ids_of(found)) >= set(ids_of(expected)), (name, value)
            assert ids_of(found) == sorted(ids_of(found))
            assert {n.node_id: dict(n.properties) for n in found}.items() <= {n.node_id: dict(n.properties) for n in nodes}.items()


@pytest.mark.parametrize(
    "equals",
    [
        {"title": "Decision alpha"},
        {"title": "Decision alpha", "status": "active"},
        {"human_curated": True},
        {"severity": "major"},
        {"validated": False},
        {"status": "open"},
        {"status": "superseded"},
        {"source_ref": "spec:spec_007", "rationale": "why"},
        {"truncated": "T"},
        {"folded_title": "F", "nid": "N"},
        {"revocation_reason": "A test says so."},
    ],
    ids=str,
)
def test_a_filter_of_texts_and_booleans_is_kept_by_the_store(graph: Graphs, equals: dict[str, Any]) -> None:
    ids = furnished(graph)
    expected = [n.node_id for n in graph.store.graph.all_nodes("alpha") if equals.items() <= properties_of(n).items()]
    source = graph.of("alpha")
    assert 0 < len(expected) < len(ids)
    assert ids_of(source.scan(None, equals, NOTHING)) == ids_of(source.scan(None, equals, None)) == expected
    for one in expected:
        assert ids_of(source.scan(None, {**equals, "id": one}, TITLE)) == [one]


def test_a_filter_by_id_finds_one_node_of_the_label_or_none(graph: Graphs) -> None:
    ids = furnished(graph)
    (learning,) = by_type(graph, "Learning")
    source = graph.of("alpha")
    assert ids_of(source.scan("Learning", {"id": learning}, TITLE)) == [learning]
    assert ids_of(source.scan("Decision", {"id": learning}, TITLE)) == []
    for name in HOSTILE:
        assert ids_of(source.scan(None, {"id": name}, None)) == []
    assert len(ids) > 1


def test_a_query_names_the_id_of_a_node_of_a_board_by_the_property_id(graph: Graphs) -> None:
    (one,) = add(graph.store, 1, node("A"))
    source = graph.of("alpha")
    assert source.id_key == "id"
    assert [n.properties["id"] for n in source.scan(None, {"id": one}, None)] == [one]


def test_a_value_that_no_node_can_have_is_no_error(graph: Graphs) -> None:
    ids = set(furnished(graph))
    source = graph.of("alpha")
    values = [None, [], {}, [1], {"a": 1}, math.nan, math.inf, -math.inf, 2**63, -(2**70), 10**400, b"x", object(), *HOSTILE]
    for name in (
        "id",
        "title",
        "version",
        "confidence",
        "human_curated",
        "created_at",
        "superseded_by",
        "status",
        "severity",
        "x'y",
        *HOSTILE,
    ):
        for value in values:
            assert set(ids_of(source.scan(None, {name: value}, NOTHING))) <= ids
    assert ids_of(source.scan(None, {"title": "\ud800"}, TITLE)) == []


# By id.


def test_nodes_are_got_by_id_in_the_order_of_the_ids_each_once(graph: Graphs) -> None:
    ids = furnished(graph)
    source = graph.of("alpha")
    found = source.get([*reversed(ids), *ids, "dec_0000000000000000", *HOSTILE], None)
    assert list(found) == ids
    assert all(found[i].node_id == i for i in ids)
    assert list(source.get(frozenset(ids[2:4]), TITLE)) == ids[2:4]


def test_hundreds_of_ids_are_found_and_expanded_as_well_as_one(graph: Graphs) -> None:
    hub, *spokes = add(graph.store, 1, node("hub", "Entity"), *(node(f"n{n}") for n in range(299)))
    made = commit(graph.store, session(2), Content(edges=[edge(spoke, "relates_to", hub) for spoke in spokes[:270]]))
    source = graph.of("alpha")
    assert list(source.get([*spokes, hub], TITLE)) == sorted([*spokes, hub])
    hops = source.expand([*spokes, hub], "both", None, NOTHING, TITLE)
    assert [(h.near, h.edge.edge_id, h.far.node_id) for h in hops] == sorted(
        [(e.src, e.edge_id, hub) for e in made.edges] + [(hub, e.edge_id, e.src) for e in made.edges]
    )
    assert {h.far.properties["title"] for h in hops if h.near != hub} == {"hub"}


# Edges.


def seen(hops: Sequence[Hop]) -> list[tuple[str, str, str]]:
    return [(h.near, h.edge.edge_id, h.far.node_id) for h in hops]


def test_edges_are_walked_along_against_and_both_ways(graph: Graphs) -> None:
    a, b, c = add(graph.store, 1, *(node(title) for title in "ABC"))
    ab, ac, cb = linked(graph, 2, edge(a, "depends_on", b), edge(a, "validates", c), edge(c, "depends_on", b))
    source = graph.of("alpha")
    out = [(a, ab.edge_id, b), (a, ac.edge_id, c)]
    assert sorted(seen(source.expand([a], "out", None, None, None))) == sorted(out)
    assert source.expand([a], "in", None, None, None) == source.expand([b], "out", None, None, None) == []
    assert sorted(seen(source.expand([b], "in", None, None, None))) == sorted([(b, ab.edge_id, a), (b, cb.edge_id, c)])
    assert sorted(seen(source.expand([c], "both", None, None, None))) == sorted([(c, ac.edge_id, a), (c, cb.edge_id, b)])
    assert seen(source.expand([a], "out", ["validates"], None, None)) == [(a, ac.edge_id, c)]
    assert len(source.expand([a], "out", ["validates", "depends_on", "tests"], None, None)) == 2


def test_an_edge_between_two_of_the_nodes_comes_once_for_each_of_them_and_a_self_loop_once(graph: Graphs) -> None:
    a, b = add(graph.store, 1, node("A"), node("B"))
    (ab,) = linked(graph, 2, edge(a, "depends_on", b))
    aa = loop(graph, 3, a, "edge_0000000000000001")
    source = graph.of("alpha")
    both = source.expand([a, b, a], "both", None, None, None)
    assert sorted(seen(both)) == sorted([(a, ab.edge_id, b), (a, aa.edge_id, a), (b, ab.edge_id, a)])
    assert [(h.near, h.edge.src, h.edge.dst) for h in both if h.edge.edge_id == aa.edge_id] == [(a, a, a)]
    assert sorted(seen(source.expand([a], "in", None, None, None))) == [(a, aa.edge_id, a)]
    assert sorted(seen(source.expand([a, b], "out", None, None, None))) == sorted([(a, ab.edge_id, b), (a, aa.edge_id, a)])
    assert (both[0].near, both[0].edge.rel_type, both[1].edge.rel_type) == (
        (a, "depends_on", "relates_to") if a < b else (b, "depends_on", "depends_on")
    )


def test_an_edge_has_the_properties_that_are_needed(graph: Graphs) -> None:
    ids = furnished(graph)
    expected = {e.edge_id: e for e in graph.store.graph.all_edges("alpha")}
    source = graph.of("alpha")
    for need in (None, NOTHING, frozenset({"reason", "created_at", "board_id", "src", "rel_type"}), frozenset({"edge_id", "commit_seq"})):
        found = [h.edge for h in source.expand(ids, "out", None, need, NOTHING)]
        assert {e.edge_id for e in found} == expected.keys()
        assert found == [e for _, e, _ in source.edges(None, need, NOTHING)]
        for each in (*found, *(e for _, e, _ in source.edges(None, need, NOTHING))):
            true = expected[each.edge_id]
            assert (each.src, each.rel_type, each.dst) == (true.src, true.rel_type, true.dst)
            assert dict(each.properties) == {n: v for n, v in properties_of_edge(true).items() if need is None or n in need}
    because = next(e for _, e, _ in source.edges(["depends_on"], None, NOTHING))
    assert because.properties["reason"] == "because"
    assert because.properties["confidence"] == 0.4
    assert because.properties["created_at"] == "2026-01-01T00:00:00.000Z"


def test_all_edges_come_with_their_ends_by_start_type_and_id(graph: Graphs) -> None:
    furnished(graph)
    (bug,) = by_type(graph, "Bug")
    loop(graph, 50, bug, "edge_0000000000000001")
    source = graph.of("alpha")
    found = list(source.edges(None, NOTHING, TITLE))
    true = sorted(graph.store.graph.all_edges("alpha"), key=lambda e: (e.src, e.rel_type, e.edge_id))
    assert [(s.node_id, e.rel_type, e.edge_id, t.node_id) for s, e, t in found] == [(e.src, e.rel_type, e.edge_id, e.dst) for e in true]
    assert all("title" in n.properties and n.labels for s, _, t in found for n in (s, t))
    some = ["relates_to", "supersedes"]
    assert [e.edge_id for _, e, _ in source.edges(some, None, NOTHING)] == [e.edge_id for e in true if e.rel_type in some]


def test_the_nodes_of_each_label_are_counted(graph: Graphs) -> None:
    ids = furnished(graph)
    source = graph.of("alpha")
    assert dict(source.counts().nodes) == {t: len(by_type(graph, t)) for t in NODE_TYPES if by_type(graph, t)}
    assert sum(source.counts().nodes.values()) == len(ids)
    assert source.counts().exact
    add(graph.store, 60, node("One more", "Alternative"))
    assert graph.of("alpha").counts().nodes["Alternative"] == 1


def test_every_read_agrees_with_a_graph_in_memory(graph: Graphs) -> None:
    dice = random.Random(7)
    types: list[NodeType] = ["Decision", "Entity", "Constraint", "Bug"]
    ids = add(graph.store, 1, *(node(f"n{n}", types[n % 4]) for n in range(24)))
    ends = {(dice.choice(ids), dice.choice(["depends_on", "relates_to", "validates"]), dice.choice(ids)) for _ in range(70)}
    commit(graph.store, session(2), Content(edges=[edge(s, r, d) for s, r, d in sorted(ends) if s != d]))  # type: ignore[arg-type]
    for n, looped in enumerate(sorted(dice.sample(ids, 3))):
        loop(graph, 10 + n, looped, f"edge_000000000000000{n}")
    source, model = graph.of("alpha"), in_memory(graph.store, "alpha")

    def of(found: GraphSource) -> list[Any]:
        return [(h.near, h.edge.edge_id, h.far.node_id, dict(h.edge.properties), dict(h.far.properties)) for h in found.expand(*asked)]

    for _ in range(40):
        rels = dice.choice([None, dice.sample(REL_TYPES, 3), ["relates_to"], ["depends_on", "validates"]])
        asked = (dice.sample(ids, dice.randint(1, 6)), dice.choice(DIRECTIONS), rels, dice.choice([None, NOTHING]), TITLE)
        assert of(source) == of(model)
    for rels in (None, ["relates_to"], ["depends_on", "tests"]):
        mine, true = ([(s.node_id, e.edge_id, t.node_id) for s, e, t in x.edges(rels, NOTHING, NOTHING)] for x in (source, model))
        assert mine == true


# Tenancy.


def test_nothing_of_another_board_comes_whatever_is_asked(graph: Graphs) -> None:
    own, other = furnished(graph), furnished(graph, 101, "beta")
    source = graph.of("alpha")
    foreign = {i: n.properties["title"] for i, n in graph.of("beta").get(other, None).items()}
    assert len(foreign) == len(other)
    assert source.get([*other, *(f"beta_{i}" for i in other)], None) == {}
    for direction in DIRECTIONS:
        assert source.expand(other, direction, None, None, None) == []
        assert {h.far.node_id for h in source.expand([*own, *other], direction, None, None, None)} <= set(own)
    for i, title in foreign.items():
        assert list(source.scan(None, {"id": i}, None)) == list(source.scan(None, {"title": title}, None)) == []
    for board_id in ("alpha", "beta"):
        assert ids_of(source.scan(None, {"board_id": board_id}, NOTHING)) in ([], own)
    told = repr([list(source.scan(None, {}, None)), list(source.edges(None, None, None)), source.counts()])
    assert "alpha" in told
    assert "beta" not in told
    assert not any(i in told for i in other)


# The double alone.


def test_the_memory_has_nodes_of_several_labels_and_of_none_and_properties_of_any_kind() -> None:
    nodes = [
        GraphNode("2", ("A", "B"), {"x": 1, "none": None}),
        GraphNode("1", (), {"x": True, "y": (1,)}),
        GraphNode("3", ("B",), {"x": 1.0}),
    ]
    edges = [GraphEdge("e2", "R", "1", "2"), GraphEdge("e1", "R", "1", "2", {"w": 1}), GraphEdge("e0", "S", "1", "1")]
    source = MemorySource(nodes, edges)
    assert ids_of(source.scan(None, {}, None)) == ["1", "2", "3"]
    assert ids_of(source.scan("B", {}, None)) == ["2", "3"]
    assert ids_of(source.scan(None, {"x": 1}, None)) == ["2", "3"]
    assert ids_of(source.scan(None, {"y": 1}, None)) == ["1"]
    assert dict(source.get(["2"], None)["2"].properties) == {"x": 1}
    assert seen(source.expand(["1"], "both", None, None, None)) == [("1", "e1", "2"), ("1", "e2", "2"), ("1", "e0", "1")]
    assert dict(source.counts().nodes) == {"A": 1, "B": 2}
    assert not source.counts().exact
    assert source.id_key is None


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [(["1", "1"], []), (["1"], [("e", "1", "2")]), (["1"], [("e", "2", "1")]), (["1"], [("e", "1", "1"), ("e", "1", "1")])],
)
def test_the_memory_refuses_what_is_no_graph(nodes: list[str], edges: list[tuple[str, str, str]]) -> None:
    with pytest.raises(ValueError, match=r"id|there"):
        MemorySource([GraphNode(i, ()) for i in nodes], [GraphEdge(i, "R", src, dst) for i, src, dst in edges])
