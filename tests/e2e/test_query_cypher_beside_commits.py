"""A query reads many times; a commit that comes in between shows in all of its reads or in none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import served_container
from pulse_kg.mcp.local_host import LocalToolHost
from pulse_kg.settings import Settings
from tests.support.questions import OFTEN
from tests.support.story_board import Story, retry_story
from tests.support.world import CountingIds, FixedClock, World, opened

THRICE = (
    "MATCH (d:Decision) WITH collect(d.id) AS ids "
    "MATCH (d:Decision)-[r]-(m) WHERE d.id IN ids WITH ids, collect(DISTINCT r.edge_id) AS edges, collect(DISTINCT m.id) AS far "
    "MATCH (d:Decision) WITH ids, edges, far, collect(d.id) AS again, sum(COUNT { (d)--() }) AS around "
    "MATCH (a)-[r]->(b) WHERE a:Decision OR b:Decision "
    "RETURN size(ids), size(again), size(edges), count(r), size(far), around"
)
"""Decisions, and edges at them, each counted twice by reads of their own."""


@contextmanager
def two_processes(store: str, folder: Path) -> Iterator[tuple[World, World]]:
    """Two containers of one store."""
    clock = FixedClock()
    with ExitStack() as stack:
        if store == "embedded":
            path = folder / "store.db"
            yield (
                stack.enter_context(opened(path, clock=clock, environment=OFTEN)),
                stack.enter_context(opened(path, clock=clock, environment=OFTEN)),
            )
            return
        from tests.support.served import fresh_endpoints

        endpoints = stack.enter_context(fresh_endpoints())
        settings = Settings.from_environment({"PULSE_KG_STORE": "aws", "PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "10000", **OFTEN})
        ids, worlds = CountingIds(), []
        for _ in range(2):
            container = served_container(settings, endpoints, embedder=HashingEmbedder(), clock=clock, ids=ids, identity_seconds=0.0)
            stack.callback(container.close)
            worlds.append(World(container, clock, ids))
        yield worlds[0], worlds[1]


class Interrupted:
    """A source that does something else before one of its reads.

    Args:
        inner: The source, or what makes it.
        reads: Takes up the names of the reads.
        at: The number of the read, from 1.
        other: What is done.
    """

    def __init__(self, inner: Any, reads: list[str], at: int, other: Callable[[], None]) -> None:
        self._inner, self._reads, self._at, self._other = inner, reads, at, other

    def of(self, board_id: str) -> Interrupted:
        return Interrupted(self._inner.of(board_id), self._reads, self._at, self._other)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def read(*args: Any) -> Any:
            self._reads.append(name)
            if len(self._reads) == self._at:
                self._other()
            return found(*args)

        return read


def commit_one_more(story: Story, elsewhere: World, number: int) -> None:
    """A commit of another process: two decisions, an edge between them, and one to the story's."""
    agent = replace(story.agent, world=elsewhere)
    session = agent.begin(f"spec_beside_{number}", board_id="alpha")
    one, two = (
        session.decide(f"Turn {number} beside the query, {word}", section=word, spec=f"spec_beside_{number}")
        for word in ("first", "second")
    )
    session.edge(one, "depends_on", two)
    session.edge(two, "relates_to", story["backoff"])
    assert session.commit()["committed"] is True


@pytest.mark.timeout(180)
@pytest.mark.parametrize("store", ["embedded", pytest.param("served", marks=pytest.mark.served)])
def test_a_commit_between_any_two_reads_of_a_query_is_not_seen_by_it_and_wholly_by_the_next(tmp_path: Path, store: str) -> None:
    with two_processes(store, tmp_path) as (world, elsewhere):
        world.board("alpha")
        story = retry_story(world)
        container = world.container
        elsewhere.ids.count = 1_000_000  # ids that the other has not

        def ask(at: int, other: Callable[[], None]) -> tuple[list[Any], list[str]]:
            reads: list[str] = []
            services = replace(container.services, sources=Interrupted(container.services.sources, reads, at, other))
            host = LocalToolHost(services, container.authenticate, max_response_bytes=container.settings.max_response_bytes)
            arguments = {"board_id": "alpha", "cypher": THRICE}
            outcome = host.call(host.authenticate(story.agent.api_key), "query_cypher", arguments, correlation_id="-")
            assert not outcome.is_error, outcome.body
            (row,) = outcome.body["rows"]
            return row, reads

        before, reads = ask(0, lambda: None)
        assert len(reads) >= 3
        for number in range(1, len(reads) + 1):
            commits: list[int] = []

            def commit(number: int = number, commits: list[int] = commits) -> None:
                commits.append(number)
                commit_one_more(story, elsewhere, number)

            during, _ = ask(number, commit)
            assert commits == [number]
            after, _ = ask(0, lambda: None)
            decisions, again, edges, counted, *_ = during
            assert (decisions, edges) == (again, counted)
            # The first read may be what takes the view of the store; from the second on it is that of the beginning.
            assert during in ([before] if number > 1 else [before, after]), reads[:number]
            assert after[:4] == [before[0] + 2, before[0] + 2, before[2] + 2, before[2] + 2]
            before = after
