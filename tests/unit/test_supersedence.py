"""Cycles of supersedence."""

from __future__ import annotations

import pytest

from pulse_kg.domain.supersedence import closes_cycle, find_cycle


@pytest.mark.parametrize(
    ("edges", "known"),
    [
        ([], {}),
        ([("c", "b"), ("b", "a")], {}),
        ([("d", "b"), ("d", "c")], {"b": ["a"], "c": ["a"]}),
        ([("c", "b"), ("c", "b")], {"b": ["a"]}),
        ([("new", "b")], {"x": ["y"], "y": ["z"]}),
    ],
    ids=["nothing", "a chain", "a diamond", "the same edge twice", "apart from what is known"],
)
def test_chains_and_diamonds_have_no_cycle(edges: list[tuple[str, str]], known: dict[str, list[str]]) -> None:
    assert find_cycle(edges, known) is None


@pytest.mark.parametrize(
    ("edges", "known", "cycle"),
    [
        ([("a", "a")], {}, ["a", "a"]),
        ([("a", "b"), ("b", "a")], {}, ["b", "a", "b"]),
        ([("a", "b"), ("b", "c"), ("c", "a")], {}, ["c", "a", "b", "c"]),
        ([("a", "c")], {"c": ["b"], "b": ["a"]}, ["a", "c", "b", "a"]),
        ([("a", "new"), ("new", "c")], {"c": ["b"], "b": ["a"]}, ["new", "c", "b", "a", "new"]),
    ],
    ids=["itself", "a pair", "three new edges", "a known chain", "a new node above and below"],
)
def test_the_edge_that_closes_a_cycle_is_found(edges: list[tuple[str, str]], known: dict[str, list[str]], cycle: list[str]) -> None:
    assert find_cycle(edges, known) == cycle


def test_the_first_closing_edge_in_the_given_order_is_named() -> None:
    assert find_cycle([("a", "b"), ("c", "d"), ("d", "c"), ("b", "a")], {}) == ["d", "c", "d"]


def test_what_is_known_is_left_as_it_was() -> None:
    known = {"b": ["a"]}
    find_cycle([("c", "b"), ("b", "x")], known)
    assert known == {"b": ["a"]}


def test_a_known_cycle_does_not_hang_the_search() -> None:
    assert find_cycle([("new", "a")], {"a": ["b"], "b": ["a"]}) is None


def test_a_long_chain_is_searched_in_a_moment() -> None:
    chain = [(f"n{i + 1}", f"n{i}") for i in range(100_000)]
    found = closes_cycle("n0", "n100000", chain, {})
    assert found is not None
    assert len(found) == 100_002
    assert closes_cycle("new", "n100000", chain, {}) is None
