"""Texts made by chance, over one of two boards: none breaks the engine, writes, or hears of the board beside."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.support.cypher_answers import result_of
from tests.support.cypher_cells import form
from tests.support.cypher_fuzz import ALLOWED, OTHER, OWN, Fuzzer, Ground, board_author, ground, leaks, tell
from tests.support.world import opened

SEED, TEXTS, QUERIES = 7, 1_500, 150


@pytest.fixture(scope="module")
def boards() -> Iterator[Ground]:
    with ground() as made:
        yield made


def test_every_text_is_answered_or_refused_and_nothing_else_happens(boards: Ground) -> None:
    fuzzer = Fuzzer(boards, SEED)
    for _ in range(TEXTS):
        fuzzer.once()
    assert fuzzer.tally.findings == []
    assert fuzzer.tally.kinds.total() == TEXTS
    outcomes = fuzzer.tally.outcomes
    assert outcomes["answered"] > TEXTS / 5, f"too few of the texts were queries to find anything: {outcomes}"
    assert min(outcomes["invalid_cypher"], outcomes["unsafe_cypher"]) > 0


def test_a_query_on_a_board_answers_the_same_whether_or_not_another_board_is_there(boards: Ground) -> None:
    with opened() as alone:
        assert tell(alone, OWN) == boards.own_ids
        source = alone.container.store.sources.of(OWN)
        author = board_author(Random(SEED))
        for _ in range(QUERIES):
            query = author.query().text
            there, alike = ([form(row) for row in result_of(query, one).rows] for one in (boards.source, source))
            assert there == alike, query


FOUND_ON_ONES_OWN = (
    "MATCH (n) WHERE n.id = $id RETURN n",
    "MATCH (n {id: $id}) RETURN n",
    "MATCH (n) WHERE id(n) = $id OR elementId(n) = $id RETURN n",
    "MATCH (n) WHERE n.id IN [$id] RETURN n",
    "UNWIND [$id] AS i MATCH (n {id: i}) RETURN n",
    "WITH $id AS i MATCH (n) WHERE n.id = i RETURN n",
    "MATCH (a)-[r {edge_id: $id}]-(b) RETURN r",
    "MATCH ()-[r]-() WHERE r.edge_id = $id RETURN r",
    "MATCH (n {id: $id})-[*0..3]-(m) RETURN m",
    "MATCH (a)-[*1..4]-(b {id: $id}) RETURN a",
    "MATCH (a {id: $own}), (b {id: $id}), p = shortestPath((a)-[*]-(b)) RETURN p",
    "MATCH (n) WHERE any(k IN keys(n) WHERE toString(n[k]) CONTAINS $board) RETURN n",
    "MATCH (n) WHERE n.title CONTAINS $board OR n.title =~ ('.*' + $board + '.*') RETURN n",
    "CALL { MATCH (n) WHERE n.id = $id RETURN n } RETURN n",
    "MATCH (n) WHERE EXISTS { MATCH (m {id: $id}) } RETURN n",
    "MATCH (n) WHERE COUNT { (m {id: $id}) } > 0 RETURN n",
    "MATCH (n) WHERE size([(n)--(m) WHERE m.id = $id | m]) > 0 RETURN n",
)
"""Questions that find something where `$id` is on the board that is asked."""
FOUND_NOWHERE = (
    "MATCH (n {board_id: $board}) RETURN n",
    "MATCH (n) WHERE n.board_id = $board RETURN n",
    "MATCH (n)-[r {board_id: $board}]-(m) RETURN r",
    "MATCH (n) WHERE n.board_id IS NOT NULL RETURN n",
    "MATCH (n) WHERE n['board_' + 'id'] IS NOT NULL OR n['embedding'] IS NOT NULL RETURN n",
    "MATCH (n) WHERE 'board_id' IN keys(n) OR 'embedding' IN keys(n) RETURN n",
    "MATCH (n) WHERE any(k IN keys(properties(n)) WHERE toLower(k) CONTAINS 'board') RETURN n",
    "MATCH (n)-[r]-() WHERE any(k IN keys(r) WHERE r[k] = $board) RETURN r",
    "MATCH (n:`palladium`) RETURN n",
)
"""Questions for what no query sees of any board."""


@pytest.mark.parametrize("query", [*FOUND_ON_ONES_OWN, *FOUND_NOWHERE])
def test_who_knows_ids_of_another_board_is_told_nothing_by_them(boards: Ground, query: str) -> None:
    for there in boards.other_ids:
        params = {"id": there, "board": OTHER, "own": boards.own_ids[0]}
        used: dict[str, Any] = {name: value for name, value in params.items() if f"${name}" in query}
        assert result_of(query, boards.source, **used).rows == []


@pytest.mark.parametrize("query", FOUND_ON_ONES_OWN)
def test_the_same_questions_find_ones_own_so_that_the_test_before_means_something(boards: Ground, query: str) -> None:
    found = []
    for here in boards.own_ids:
        params = {"id": here, "board": OWN, "own": boards.own_ids[0]}
        used: dict[str, Any] = {name: value for name, value in params.items() if f"${name}" in query}
        found += result_of(query, boards.source, **used).rows
    assert found


def test_no_refusal_tells_of_another_board(boards: Ground) -> None:
    for query in ("MATCH (n) RETURN nosuch(n)", "MATCH (n) RETURN x", "MATCH (n) RETURN n.title + ", "MATCH (n) RETURN toInteger(n)"):
        with pytest.raises(ALLOWED) as refused:
            result_of(query, boards.source)
        assert leaks(f"{refused.value} {refused.value.details}", query, {}, boards.canaries) == []


@pytest.mark.parametrize(
    "query", ["MATCH (n) RETURN n.titel", "MATCH (n:Decisions) RETURN n", "EXPLAIN MATCH (n) RETURN n", "PROFILE MATCH (n) RETURN 1"]
)
def test_no_notice_and_no_plan_tells_of_another_board(boards: Ground, query: str) -> None:
    result = result_of(query, boards.source)
    assert leaks(f"{result.columns} {result.rows} {result.notices}", query, {}, boards.canaries) == []
