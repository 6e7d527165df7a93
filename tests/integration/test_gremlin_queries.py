"""The reads for the tools on the local Gremlin server: what is not applied yet, and how often the server is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import pytest

from pulse_kg.adapters.gremlin import GremlinConnection
from pulse_kg.adapters.gremlin.queries import GremlinGraphQueries
from pulse_kg.ports.reading import Lineage, Neighbourhood, Neighbours, Place
from tests.support.gremlin_graph import GraphStores, connection, graph_stores
from tests.support.plans import NOW, Content, add, commit, edge, node, plan, session
from tests.support.stores import Stores

pytestmark = pytest.mark.served

BOARD = "gremlin_reads"


class Counted:
    """A connection that counts.

    Attributes:
        requests: How many were sent.
    """

    def __init__(self, inner: GremlinConnection) -> None:
        self._inner = inner
        self.requests = 0

    def submit(self, traversal: Any) -> list[Any]:
        """See `GremlinConnection.submit`."""
        self.requests += 1
        return self._inner.submit(traversal)


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
        [node("New one"), node("New two")],
        [
            edge("cand_001", "supersedes", a),
            edge(a, "contradicts", b),
            edge(b, "depends_on", "cand_002"),
            edge(a, "relates_to", b),
        ],
    )
    late = plan(store, session(2, BOARD), coming, seq=2)
    marks: defaultdict[str, int] = defaultdict(lambda: 1)
    q = GremlinGraphQueries(server, applied=lambda board_id: marks[board_id])
    store.graph.apply(late)
    new = [n.node_id for n in late.nodes if n.node_id not in {a, b}]

    assert q.places(BOARD, [a, b, *new]) == {a: Place(), b: Place()}
    assert {i: place for i, (_, place) in q.placed(BOARD, [a, b, *new]).items()} == {a: Place(), b: Place()}
    assert q.around(BOARD, a) == Neighbourhood({}, [], nodes=q.placed(BOARD, [a]))
    assert q.around(BOARD, new[0]) == Neighbourhood({}, [])
    assert set(q.lineage(BOARD, [a, *new]).nodes) == {a}
    assert q.lineage(BOARD, new) == Lineage({}, {}, {})
    assert q.contradictions(BOARD) == q.contradictions(BOARD, node_id=a) == []
    assert q.neighbours(BOARD, [a, b, *new]) == Neighbours([])
    assert set(q.neighbours(BOARD, [a, b, *new], near=True, placed="all").places) == {a, b}
    assert {n.node_id for n, _ in q.stated_in(BOARD, "spec:spec_007", ["Decision"])} == {a, b}
    assert {n.node_id for n in q.with_words(BOARD, ["Decision"], phrase="one", words=["two"], at_least=1, also=new)} == {a, b}
    assert {n.node_id for n in q.with_words(BOARD, ["Decision"], phrase="", words=["two"], at_least=1, bodies=True)} == {b}

    marks[BOARD] = 2
    assert {i: p.degree for i, p in q.places(BOARD, [a, b]).items()} == {a: 3, b: 3}
    assert set(q.around(BOARD, a).depths) == {b, *new}
    assert len(q.lineage(BOARD, [a]).nodes) == len(q.contradictions(BOARD)) + 1 == 2
    assert len(q.neighbours(BOARD, [a]).links) == 3
    assert len(q.with_words(BOARD, ["Decision"], phrase="one", words=[], at_least=1)) == 2


def test_a_read_is_one_request_and_a_walk_two(store: Stores, server: GremlinConnection) -> None:
    ids = add(store, 1, *(node(f"n{n}") for n in range(6)), board_id=BOARD)
    commit(store, session(2, BOARD), Content(edges=[edge(new, "supersedes", old) for old, new in pairwise(ids)]))
    counted = Counted(server)
    q = GremlinGraphQueries(cast("GremlinConnection", counted), applied=lambda board_id: cast("GraphStores", store).applied[board_id])

    def requests(read: Any) -> int:
        counted.requests = 0
        read()
        return counted.requests

    forged = ["dec", "dec_\u0430", ""]
    assert requests(lambda: q.places(BOARD, ids)) == 1
    assert requests(lambda: q.placed(BOARD, ids)) == 1
    assert requests(lambda: q.lineage(BOARD, [ids[2], ids[5]])) == 1
    assert requests(lambda: q.contradictions(BOARD)) == 1
    assert requests(lambda: q.neighbours(BOARD, ids)) == 1
    assert requests(lambda: q.neighbours(BOARD, ids, near=True, placed="all")) == 1
    assert requests(lambda: q.with_words(BOARD, ["Decision"], phrase="n", words=[], at_least=1)) == 1
    assert requests(lambda: q.with_words(BOARD, ["Decision"], phrase="n", words=[], at_least=1, also=ids)) == 1
    assert requests(lambda: q.stated_in(BOARD, "spec:spec_007", ["Decision"])) == 1
    for depth in (1, 2, 3, 4):
        assert requests(lambda depth=depth: q.around(BOARD, ids[0], max_depth=depth)) == 2
    assert requests(lambda: q.around(BOARD, ids[0], limit=1)) == 2
    assert requests(lambda: q.around(BOARD, ids[0], rel_types=["tests"])) == 2
    assert requests(lambda: q.around(BOARD, ids[0], rel_types=[])) == 1
    assert requests(lambda: (q.places(BOARD, forged), q.placed(BOARD, forged), q.neighbours(BOARD, forged, near=True))) == 0
    assert requests(lambda: (q.around(BOARD, ""), q.lineage(BOARD, [""]), q.lineage(BOARD, []))) == 0
    assert requests(lambda: q.with_words(BOARD, ["Decision"], phrase="", words=["a"], at_least=2)) == 0
