"""Commits of every size on the real servers: what changes with it is how they are written, and nothing that a caller or a reader sees."""

from __future__ import annotations

import base64
import itertools
import random
from collections.abc import Iterator

import pytest

from pulse_kg.usecases.verify import verify_board
from tests.support.world import Agent, World, opened_served

pytestmark = [pytest.mark.served, pytest.mark.timeout(300)]


@pytest.fixture
def world() -> Iterator[World]:
    with opened_served() as made:
        made.board("alpha")
        yield made


@pytest.fixture
def ada(world: World) -> Agent:
    return world.agent()


def text(number: int, size: int) -> str:
    """A text of that many bytes that can't be packed to less than three quarters."""
    return base64.b64encode(random.Random(number).randbytes(size)).decode()[:size]


@pytest.mark.parametrize("count", [1, 99, 100, 101, pytest.param(500, marks=pytest.mark.slow)])
def test_a_commit_of_so_many_nodes_and_edges_is_whole_and_answers_the_same_again(world: World, ada: Agent, count: int) -> None:
    session = ada.begin()
    nodes = [session.decide(f"Number {number} of them") for number in range(count)]
    for src, dst in itertools.pairwise(nodes):
        session.edge(src, "depends_on", dst)
    answer = session.commit()
    assert (len(answer["applied"]["added"]), len(answer["edges_added"])) == (count, count - 1)
    assert session.commit() == answer
    result = verify_board("alpha", world.container.services)
    assert (result.findings, result.nodes, result.edges, result.vectors) == ((), count, count - 1, count)


@pytest.mark.slow
def test_a_commit_of_megabytes_is_staged_and_comes_back_whole(world: World, ada: Agent) -> None:
    session = ada.begin()
    for number in range(150):
        session.decide(f"Large number {number}", text(number, 32_768))
    answer = session.commit()
    assert session.commit() == answer
    assert verify_board("alpha", world.container.services).findings == ()
    bodies = {node.title: node.body for node in world.container.graph.all_nodes("alpha")}
    assert bodies == {f"Large number {number}": text(number, 32_768) for number in range(150)}


def test_what_is_over_a_limit_is_refused_before_it_is_in_the_session_which_commits_without_it(world: World, ada: Agent) -> None:
    session = ada.begin()
    session.decide("Number 1")
    refused = ada.refusal(
        "add_node_candidate", session_id=session.session_id, node_type="Decision", title="Number 2", body=text(0, 32_768) + "x"
    )
    assert refused["code"] == "payload_too_large"
    answer = session.commit()
    assert len(answer["applied"]["added"]) == 1
    assert verify_board("alpha", world.container.services).clean
