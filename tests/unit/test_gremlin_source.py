"""The source of a query's graph against a Gremlin server that answers badly: foreign, damaged, late, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from pulse_kg.adapters.gremlin.connection import GremlinConnection
from pulse_kg.adapters.gremlin.elements import NID, edge_properties, nid, node_properties
from pulse_kg.adapters.gremlin.errors import GraphRefused
from pulse_kg.adapters.gremlin.source import COUNTED_BOARDS, GremlinGraphSource, GremlinGraphSources
from pulse_kg.adapters.sqlite import SqliteStore, open_store
from pulse_kg.domain.model import Edge, Node
from pulse_kg.errors import StoreUnavailable
from tests.support.gremlin_double import EDGE, NODE, GremlinDouble
from tests.support.plans import NOW, Content, add, commit, edge, node, session
from tests.support.sources import double_of, over

VERTEX = {name: [value] for name, value in node_properties(NODE, 1).items()}
OWN_VERTEX = {**VERTEX, "board_id": ["alpha"]}
ROW = {"edge": edge_properties(EDGE), "src": "alpha_dec_1", "rel_type": EDGE.rel_type, "dst": "alpha_dec_2"}
OWN_ROW = {**ROW, "edge": {**ROW["edge"], "board_id": "alpha"}}  # type: ignore[dict-item]
NOTHING: frozenset[str] = frozenset()


class Answering:
    """A server that always answers the same.

    Attributes:
        asked: The traversals that were sent.
    """

    def __init__(self, *rows: Any) -> None:
        self._rows = rows
        self.asked: list[str] = []

    def submit(self, traversal: Any) -> list[Any]:
        """See `GremlinConnection.submit`."""
        self.asked.append(str(traversal.bytecode))
        return list(self._rows)


def reads(*rows: Any) -> GremlinGraphSource:
    return GremlinGraphSource(cast("GremlinConnection", Answering(*rows)), "alpha", 9)


def as_node(vertex: Any) -> dict[str, Any]:
    return {"kind": "node", "row": vertex}


def as_edge(row: Any) -> dict[str, Any]:
    return {"kind": "edge", "row": row}


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    made = open_store(":memory:", create=True)
    for board_id in ("alpha", "beta"):
        made.boards.create(board_id, board_id, now=NOW)
    yield made
    made.close()


@pytest.mark.parametrize(
    "read",
    [
        lambda: reads(VERTEX).scan(None, {}, NOTHING),
        lambda: reads(VERTEX).get(["dec_1"], NOTHING),
        lambda: reads(as_node(VERTEX)).expand(["dec_2"], "both", None, NOTHING, NOTHING),
        lambda: reads(as_edge(ROW)).expand(["dec_1"], "out", None, NOTHING, NOTHING),
        lambda: reads(as_node(VERTEX)).edges(None, NOTHING, NOTHING),
        lambda: reads(as_edge(ROW)).edges(None, NOTHING, NOTHING),
    ],
)
def test_an_answer_with_an_element_of_another_board_is_thrown_away(read: Callable[[], object]) -> None:
    with pytest.raises(GraphRefused, match="another board"):
        read()


@pytest.mark.parametrize("lost", ["node_id", "node_type", "created_seq", "attributes"])
def test_a_node_that_is_not_whole_is_no_node(lost: str) -> None:
    with pytest.raises(GraphRefused, match="damaged"):
        reads({name: value for name, value in OWN_VERTEX.items() if name != lost}).scan(None, {}, None)


def test_a_vertex_without_properties_is_not_there() -> None:
    assert reads({}).get(["dec_1"], None) == {}
    assert reads({}, OWN_VERTEX).get(["dec_1"], None).keys() == {"dec_1"}


def test_what_a_later_commit_made_is_dropped_whatever_the_server_made_of_the_filter() -> None:
    late = {**OWN_VERTEX, "created_seq": [10]}
    late_row = {**OWN_ROW, "edge": {**OWN_ROW["edge"], "commit_seq": 10}}  # type: ignore[dict-item]
    assert reads(late).get(["dec_1"], None) == {}
    assert list(reads(late).scan(None, {}, None)) == []
    ends = [as_node({**OWN_VERTEX, "node_id": [i]}) for i in ("dec_1", "dec_2")]
    assert len(reads(as_edge(OWN_ROW), *ends).expand(["dec_1"], "out", None, None, None)) == 1
    assert reads(as_edge(late_row), *ends).expand(["dec_1"], "out", None, None, None) == []
    assert list(reads(as_edge(late_row), *ends).edges(None, None, None)) == []


def test_an_edge_to_another_board_is_left_out_with_a_warning(store: SqliteStore, caplog: pytest.LogCaptureFixture) -> None:
    a, b = add(store, 1, node("A"), node("B"))
    (made,) = commit(store, session(2), Content(edges=[edge(a, "depends_on", b)])).edges
    double = double_of(store, "alpha")
    twin = next(iter(store.graph.all_nodes("alpha")))
    foreign = Node(**{**vars(twin), "board_id": "beta", "node_id": b, "title": "canary"})
    double.put([foreign], ())
    planted = Edge("alpha", "edge_planted", a, "depends_on", b, NOW, "agt_ada", 1, "kgs_1")
    double.join(planted, to_board="beta")
    double.join(Edge("alpha", "edge_to_none", a, "depends_on", b, NOW, "agt_ada", 1, "kgs_1"), to=double.phantom)
    source = over(double).of("alpha")
    with caplog.at_level(logging.WARNING):
        assert [h.edge.edge_id for h in source.expand([a, b], "out", None, None, None)] == [made.edge_id]
    assert [record.getMessage() for record in caplog.records] == [
        "2 edges of the board alpha do not lead to nodes of it, and were left out"
    ]
    assert [e.edge_id for _, e, _ in source.edges(None, None, None)] == [made.edge_id]
    assert [h.edge.edge_id for h in source.expand([b], "in", None, None, None)] == [made.edge_id]
    assert "canary" not in repr([*source.scan(None, {}, None), *source.edges(None, None, None)])


def test_a_board_whose_name_begins_like_another_ones_is_another_board(store: SqliteStore) -> None:
    store.boards.create("alpha_b", "B", now=NOW)
    add(store, 1, node("canary"), board_id="alpha_b")
    (a,) = add(store, 2, node("A"))
    double = double_of(store, "alpha", "alpha_b")
    (canary,) = store.graph.all_nodes("alpha_b")
    double.join(Edge("alpha", "edge_1", a, "depends_on", canary.node_id, NOW, "agt_ada", 1, "kgs_1"), to_board="alpha_b")
    source = over(double).of("alpha")
    assert source.get([f"b_{canary.node_id}", canary.node_id], None) == {}
    assert source.expand([a], "out", None, None, None) == []
    assert nid("alpha", f"b_{canary.node_id}") == canary.board_id + "_" + canary.node_id


def test_each_read_is_one_request_for_each_256_ids_and_none_where_nothing_can_be_found(store: SqliteStore) -> None:
    ids = add(store, 1, *(node(f"n{n}") for n in range(300)))
    double = double_of(store, "alpha")
    source = over(double).of("alpha")

    def requests(read: Callable[[], Any]) -> int:
        before = double.requests
        read()
        return double.requests - before

    assert requests(lambda: source.scan(None, {}, None)) == requests(lambda: source.edges(None, None, None)) == 1
    assert requests(lambda: source.get(ids[:256], None)) == requests(lambda: source.expand(ids[:256] * 2, "both", None, None, None)) == 1
    assert requests(lambda: source.get(ids, None)) == requests(lambda: source.expand(ids, "both", None, None, None)) == 2
    assert requests(lambda: source.scan("Nonsense", {}, None)) == requests(lambda: source.scan(None, {"id": "dec"}, None)) == 0
    assert requests(lambda: source.scan(None, {"title": "\ud800"}, None)) == requests(lambda: source.get(["dec", ""], None)) == 0
    assert requests(lambda: source.expand(ids, "out", [], None, None)) == requests(lambda: source.edges(["nonsense"], None, None)) == 0


def test_only_what_is_needed_comes_over_the_wire() -> None:
    server = Answering()
    source = GremlinGraphSource(cast("GremlinConnection", server), "alpha", 9)
    needs = frozenset({"title", "severity"}), frozenset({"reason"})
    source.scan(None, {}, needs[0])
    source.get(["dec_1"], needs[0])
    source.expand(["dec_1"], "both", None, needs[1], needs[0])
    source.edges(None, needs[1], needs[0])
    for asked in server.asked:
        assert "'title'" in asked
        assert "'attributes'" in asked
        assert not any(f"'{name}'" in asked for name in ("body", "evidence", "folded_title", "source_ref"))
    server.asked.clear()
    source.scan(None, {}, NOTHING)
    assert "'attributes'" not in server.asked[0]


def test_a_vertex_that_is_found_by_its_key_is_not_looked_for_among_all_of_the_board() -> None:
    server = Answering()
    source = GremlinGraphSource(cast("GremlinConnection", server), "alpha", 9)
    source.get(["dec_1"], NOTHING)
    source.scan(None, {"id": "dec_1"}, NOTHING)
    source.scan(None, {}, NOTHING)
    by_board = "['has', 'board_id', 'alpha']"
    assert [by_board in asked for asked in server.asked] == [False, False, True]
    assert all("['values', 'board_id'], ['is', 'alpha']" in asked for asked in server.asked)


def test_a_server_that_goes_away_in_the_middle_leaves_no_half_of_an_answer(store: SqliteStore) -> None:
    ids = add(store, 1, *(node(f"n{n}") for n in range(300)))
    double = double_of(store, "alpha")
    source = over(double).of("alpha")
    for read in (lambda: source.get(ids, None), lambda: source.expand(ids, "both", None, None, None)):
        double.requests, double.fails_at = 0, 2
        with pytest.raises(StoreUnavailable):
            read()
        double.fails_at = None
        read()


def test_a_board_is_counted_once_for_each_of_its_commits(store: SqliteStore) -> None:
    add(store, 1, node("A"), node("B", "Bug"))
    add(store, 2, node("C", "Entity"), board_id="beta")
    double, marks = double_of(store, "alpha", "beta"), {"alpha": 1, "beta": 1}
    sources = GremlinGraphSources(cast("GremlinConnection", double), applied=lambda board_id: marks[board_id])
    assert dict(sources.of("alpha").counts().nodes) == dict(sources.of("alpha").counts().nodes) == {"Bug": 1, "Decision": 1}
    assert dict(sources.of("beta").counts().nodes) == {"Entity": 1}
    assert double.requests == 2
    held = sources.of("alpha")
    double.put([Node(**{**vars(NODE), "board_id": "alpha", "created_seq": 2})], ())
    assert dict(held.counts().nodes) == {"Bug": 1, "Decision": 1}
    marks["alpha"] = 2
    assert dict(sources.of("alpha").counts().nodes) == {"Bug": 1, "Decision": 2}
    assert dict(held.counts().nodes) == {"Bug": 1, "Decision": 1}
    assert double.requests == 4


def test_counts_of_many_boards_do_not_pile_up() -> None:
    double = GremlinDouble()
    sources = over(double)
    for n in range(COUNTED_BOARDS + 10):
        assert dict(sources.of(f"board_{n}").counts().nodes) == {}
    assert 0 < len(sources._counted) <= COUNTED_BOARDS


def test_the_mark_is_asked_for_once_a_source(store: SqliteStore) -> None:
    add(store, 1, node("A"))
    asked: list[str] = []

    def applied(board_id: str) -> int:
        asked.append(board_id)
        return len(asked) - 1

    sources = GremlinGraphSources(cast("GremlinConnection", double_of(store, "alpha")), applied=applied)
    before, after = sources.of("alpha"), sources.of("alpha")
    for _ in range(2):
        assert list(before.scan(None, {}, NOTHING)) == []
        assert len(list(after.scan(None, {}, NOTHING))) == 1
    assert asked == ["alpha", "alpha"]


def test_a_key_is_read_only_as_a_key_of_the_board() -> None:
    ends = [as_node({**OWN_VERTEX, "node_id": [i]}) for i in ("dec_1", "dec_2")]
    for key in ("beta_dec_2", "alpha_", "alpha", "alpha_x", "dec_2", "alphadec_2", "alpha_b_dec_2", None):
        row = {**OWN_ROW, "dst": key} if key is not None else {n: v for n, v in OWN_ROW.items() if n != "dst"}
        assert reads(as_edge(row), *ends).expand(["dec_1"], "out", None, None, None) == []
    assert NID not in reads(OWN_VERTEX).get(["dec_1"], None)["dec_1"].properties
