"""The reads for the tools against a server whose answers are of another board."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from pulse_kg.adapters.gremlin.connection import GremlinConnection
from pulse_kg.adapters.gremlin.elements import edge_properties, node_properties
from pulse_kg.adapters.gremlin.errors import GraphRefused
from pulse_kg.adapters.gremlin.queries import GremlinGraphQueries
from tests.support.gremlin_double import EDGE, NODE

VERTEX = {name: [value] for name, value in node_properties(NODE, 1).items()}
STANDING = {"vertex": VERTEX, "degree": 1, "disputing": 0}
ROW = {"edge": edge_properties(EDGE), "src": EDGE.src, "rel_type": EDGE.rel_type, "dst": EDGE.dst}


class Answering:
    """A server that always answers the same."""

    def __init__(self, *rows: Any) -> None:
        self._rows = rows

    def submit(self, traversal: Any) -> list[Any]:
        """See `GremlinConnection.submit`."""
        return list(self._rows)


def reads(*rows: Any) -> GremlinGraphQueries:
    return GremlinGraphQueries(cast("GremlinConnection", Answering(*rows)), applied=lambda _: 9)


@pytest.mark.parametrize(
    "read",
    [
        lambda: reads(STANDING).places("alpha", ["dec_1"]),
        lambda: reads(STANDING).placed("alpha", ["dec_1"]),
        lambda: reads([VERTEX]).around("alpha", "dec_2", max_depth=1),
        lambda: reads({"hop1": [VERTEX], "hop2": []}).around("alpha", "dec_2"),
        lambda: reads({"kind": "node", "row": {"vertex": VERTEX, "older": []}}).lineage("alpha", ["dec_1"]),
        lambda: reads({"kind": "place", "row": STANDING}).lineage("alpha", ["dec_1"]),
        lambda: reads(ROW).contradictions("alpha"),
        lambda: reads(ROW).contradictions("alpha", node_id="dec_1"),
        lambda: reads({"kind": "other", "row": {"vertex": VERTEX}}).neighbours("alpha", ["dec_2"]),
        lambda: reads({"kind": "near", "row": {"vertex": VERTEX}}).neighbours("alpha", ["dec_1"], near=True),
        lambda: reads({"kind": "near", "row": STANDING}).neighbours("alpha", ["dec_1"], placed="near"),
        lambda: reads({"kind": "edge", "row": ROW}).neighbours("alpha", ["dec_2"]),
        lambda: reads(STANDING).stated_in("alpha", "spec:s", ["Decision"]),
        lambda: reads(VERTEX).with_words("alpha", ["Decision"], phrase="canary", words=[], at_least=1),
    ],
)
def test_an_answer_with_an_element_of_another_board_is_thrown_away(read: Callable[[], object]) -> None:
    with pytest.raises(GraphRefused):
        read()


def test_what_a_later_commit_made_is_dropped_whatever_the_server_made_of_the_filter() -> None:
    vertex = {**VERTEX, "board_id": ["alpha"], "created_seq": [10]}
    edge = {**ROW, "edge": {**edge_properties(EDGE), "board_id": "alpha", "commit_seq": 10}}
    assert reads(vertex).with_words("alpha", ["Decision"], phrase="canary", words=[], at_least=1) == []
    assert reads(vertex).with_words("alpha", [], phrase="", words=[], at_least=1, also=["dec_1"]) == []
    standing = {"vertex": vertex, "degree": 1, "disputing": 0}
    assert reads(standing).stated_in("alpha", "spec:s", ["Decision"]) == []
    assert reads(standing).placed("alpha", ["dec_1"]) == {}
    assert reads({"kind": "near", "row": standing}).neighbours("alpha", ["dec_1"], near=True, placed="all").near == {}
    assert reads(edge).contradictions("alpha") == []
