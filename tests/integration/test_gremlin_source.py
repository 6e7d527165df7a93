"""The source of a query's graph on the local Gremlin server: what is not applied yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest

from pulse_kg.adapters.gremlin import GremlinConnection
from pulse_kg.adapters.gremlin.source import GremlinGraphSources
from tests.support.gremlin_graph import connection, graph_stores
from tests.support.plans import NOW, Content, add, edge, node, plan, session
from tests.support.stores import Stores

pytestmark = pytest.mark.served

BOARD = "gremlin_source"


@pytest.fixture(scope="module")
def server() -> Iterator[GremlinConnection]:
    made = connection()
    yield made
    made.close()


@pytest.fixture
def store(server: GremlinConnection) -> Iterator[Stores]:
    with graph_stores(server, BOARD) as made:
        made.boards.create(BOARD, BOARD, now=NOW)
        yield made


def test_nothing_of_a_commit_is_seen_before_all_of_it_is_applied(store: Stores, server: GremlinConnection) -> None:
    a, b = add(store, 1, node("Old one"), node("Old two"), board_id=BOARD)
    coming = Content(
        [node("New one"), node("New two", "Bug")], [edge(b, "depends_on", "cand_001"), edge(a, "relates_to", b), edge(a, "contradicts", b)]
    )
    late = plan(store, session(2, BOARD), coming, seq=2)
    marks: defaultdict[str, int] = defaultdict(lambda: 1)
    sources = GremlinGraphSources(server, applied=lambda board_id: marks[board_id])
    held = sources.of(BOARD)
    store.graph.apply(late)
    new = [n.node_id for n in late.nodes if n.node_id not in {a, b}]

    def old_alone() -> None:
        assert [n.node_id for n in held.scan(None, {}, None)] == list(held.get([a, b, *new], None)) == sorted([a, b])
        assert (
            list(held.scan(None, {"title": "New one"}, None))
            == list(held.scan("Bug", {}, None))
            == list(held.edges(None, None, None))
            == []
        )
        assert held.expand([a, b, *new], "both", None, None, None) == []
        assert dict(held.counts().nodes) == {"Decision": 2}

    old_alone()
    marks[BOARD] = 2
    source = sources.of(BOARD)
    assert len(list(source.scan(None, {}, None))) == len(source.get([a, b, *new], None)) == 4
    assert len(source.expand([a, b], "both", None, None, None)) == 5
    assert len(list(source.edges(None, None, None))) == 3
    assert dict(source.counts().nodes) == {"Bug": 1, "Decision": 3}
    old_alone()
