"""Tools that read while a store does not answer: each says so, in words that tell it apart from an answer that found nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import served_container
from pulse_kg.domain.permissions import Caller
from pulse_kg.errors import EmbedderTimeout, StoreUnavailable
from pulse_kg.mcp.local_host import LocalToolHost
from pulse_kg.settings import Settings
from pulse_kg.usecases.services import Services
from tests.support.crash_points import Faults, FaultyPort
from tests.support.questions import OFTEN, READING, SEARCHING, Questions, questions_of
from tests.support.story_board import Story, retry_story
from tests.support.world import Agent, CountingIds, FixedClock, World, opened

NO_PORTS = {"clock", "ids", "one_call", "thresholds", "limits", "hits"}
"""Members of `Services` whose calls can't fail; a counter of hits keeps its failures to itself."""


def call(world: World, agent: Agent, tool: str, arguments: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a call was refused, and what it was told."""
    outcome = Agent(world, agent.api_key, agent.agent_id, agent.name).try_call(tool, arguments)
    return outcome.is_error, json.dumps(outcome.body, ensure_ascii=False)


def error_of(told: str) -> Any:
    return json.loads(told)["error"]


# A fault at each call of each port.


def with_faults(services: Services, faults: Faults) -> Services:
    """The services with faults in every port that is asked; taking a snapshot is a call too."""
    names = {field.name for field in fields(Services)} - NO_PORTS - {"snapshot"}
    ports: dict[str, Any] = {name: FaultyPort(getattr(services, name), name, faults) for name in names}
    ports["sources"] = FaultyPort(_Sources(services, faults), "sources", faults)
    snapshots = FaultyPort(_Snapshots(services), "store", faults)
    return replace(services, **ports, snapshot=snapshots.snapshot)


class _Snapshots:
    def __init__(self, services: Services) -> None:
        self.snapshot = services.snapshot


class _Sources:
    def __init__(self, services: Services, faults: Faults) -> None:
        self._sources, self._faults = services.sources, faults

    def of(self, board_id: str) -> Any:
        return FaultyPort(self._sources.of(board_id), "source", self._faults)


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[Story, Questions, LocalToolHost, Faults]]:
    """A story, a question for each tool, and the tools over ports that fail on demand."""
    with opened(environment=OFTEN) as world:
        world.board("alpha")
        story, faults = retry_story(world), Faults()
        questions = questions_of(story)
        container = world.container
        services = with_faults(container.services, faults)
        yield (
            story,
            questions,
            LocalToolHost(services, container.authenticate, max_response_bytes=container.settings.max_response_bytes),
            faults,
        )


def test_there_is_a_question_for_every_tool_that_reads(told: tuple[Story, Questions, LocalToolHost, Faults]) -> None:
    assert set(told[1]) == set(READING)


@pytest.mark.parametrize("tool", READING)
def test_a_fault_at_any_call_of_any_port_is_told_and_may_be_tried_again(
    told: tuple[Story, Questions, LocalToolHost, Faults], tool: str
) -> None:
    story, questions, host, faults = told
    caller = host.authenticate(story.agent.api_key)

    def ask() -> Any:
        return host.call(caller, tool, questions[tool], correlation_id="-")

    ask()  # what the first call keeps for the next ones is kept
    faults.arm(None)
    whole, calls = ask(), list(faults.calls)
    assert not whole.is_error
    assert {"boards", "sessions"} & {name.partition(".")[0] for name in calls}
    for number, name in enumerate(calls, 1):
        faults.arm(number)
        outcome = ask()
        assert faults.struck == name
        error = outcome.body["error"]
        assert (outcome.is_error, outcome.status) == (True, 503), name
        assert (error["code"], error["retryable"]) == ("store_unavailable", True), name
    faults.disarm()
    assert ask() == whole


@pytest.mark.parametrize("tool", sorted(SEARCHING))
def test_a_model_that_takes_too_long_is_told_as_that(told: tuple[Story, Questions, LocalToolHost, Faults], tool: str) -> None:
    story, questions, host, faults = told
    faults.arm(1, only="embedder.embed", error=EmbedderTimeout())
    arguments = questions[tool]
    if tool == "get_similar_nodes":  # whose candidate's vector is kept with the session once it was made
        session = story.agent.begin("spec_013")
        session.decide("Webhook retries wait by backoff")
        arguments = {**arguments, "session_id": session.session_id}
    outcome = host.call(host.authenticate(story.agent.api_key), tool, arguments, correlation_id="-")
    faults.disarm()
    assert outcome.is_error
    assert (outcome.body["error"]["code"], outcome.body["error"]["retryable"]) == ("embedder_timeout", True)


# A file that is broken.


def told_by(world: World, agent: Agent, questions: Questions) -> dict[str, tuple[bool, str]]:
    """What each tool says, and whether it refuses."""
    return {tool: call(world, agent, tool, arguments) for tool, arguments in questions.items()}


def test_a_store_that_is_closed_under_the_call_is_told(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as world:
        world.board("alpha")
        story = retry_story(world)
        questions, caller = questions_of(story), world.host.authenticate(story.agent.api_key)
        world.container.close()
        for tool, arguments in questions.items():
            outcome = world.host.call(caller, tool, arguments, correlation_id="-")
            assert outcome.is_error, tool
            assert (outcome.body["error"]["code"], outcome.body["error"]["retryable"]) == ("store_unavailable", True), tool
        with pytest.raises(StoreUnavailable):
            world.host.authenticate(story.agent.api_key)


@pytest.mark.parametrize(
    ("table", "without"),
    [
        ("boards", frozenset()),
        ("nodes", {"schema_info"}),
        ("edges", {"schema_info"}),
        ("vectors", set(READING) - SEARCHING),
    ],
)
def test_a_table_that_can_not_be_read_is_told_by_every_tool_that_needs_it(
    tmp_path: Path, table: str, without: set[str] | frozenset[str]
) -> None:
    path = tmp_path / "store.db"
    with opened(path) as world:
        world.board("alpha")
        story = retry_story(world)
        questions = questions_of(story)
        whole = told_by(world, story.agent, questions)
    assert not any(refused for refused, _ in whole.values())
    blot(path, table)

    with opened(path, clock=world.clock) as again:
        told = told_by(again, story.agent, questions)

    for tool, (refused, text) in told.items():
        assert refused or text == whole[tool][1], tool  # nothing in between: not an answer without what could not be read
        assert not refused or error_of(text)["code"] == "store_unavailable", text
    needing = set(READING) - without - _not_needing(table)
    assert {tool for tool, (refused, _) in told.items() if refused} >= needing


def _not_needing(table: str) -> set[str]:
    """Tools that do without a table though they belong to those that mostly need it."""
    return {"boards": {"get_similar_nodes"}, "edges": {"get_similar_nodes"}}.get(table, set())


def blot(path: Path, table: str) -> None:
    """Zeroes the first page of a table and of each of its indexes, as a bad sector would."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        pages = [page for (page,) in connection.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = ? AND rootpage > 0", (table,))]
    assert pages
    assert not path.with_name(path.name + "-wal").exists()
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * size)
            file.write(bytes(size))


# Servers that are away.


@pytest.mark.served
def test_a_server_that_is_away_is_told_by_every_tool_that_needs_it() -> None:
    from tests.support.served import fresh_endpoints

    nowhere = "http://127.0.0.1:9"
    with fresh_endpoints() as endpoints:
        settings = Settings.from_environment({"PULSE_KG_STORE": "aws", "PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "10000", **OFTEN})
        clock, ids = FixedClock(), CountingIds()

        def on(do: Callable[[World], Any], **others: Any) -> Any:
            container = served_container(settings, replace(endpoints, **others), embedder=HashingEmbedder(), clock=clock, ids=ids)
            try:
                return do(World(container, clock, ids))
            finally:
                container.close()

        def tell(world: World) -> tuple[Story, Questions, dict[str, tuple[bool, str]], Caller]:
            world.board("alpha")
            story = retry_story(world)
            questions = questions_of(story)
            return story, questions, told_by(world, story.agent, questions), world.host.authenticate(story.agent.api_key)

        story, questions, whole, caller = on(tell)
        assert not any(refused for refused, _ in whole.values())

        def ask_all(world: World) -> dict[str, tuple[bool, str]]:
            told = {}
            for tool, arguments in questions.items():
                with time_budget(1):  # nobody waits for ever for who is away
                    outcome = world.host.call(caller, tool, arguments, correlation_id="c0ffee")
                told[tool] = outcome.is_error, json.dumps(outcome.body, ensure_ascii=False)
            return told

        for away, needing in (
            ({"gremlin_url": "ws://127.0.0.1:9/gremlin"}, set(READING) - {"schema_info"}),
            ({"opensearch_url": nowhere}, SEARCHING | {"schema_info"}),
            ({"aws_url": nowhere}, set(READING)),
        ):
            told = on(ask_all, **away)
            assert {tool for tool, (refused, _) in told.items() if refused} == needing
            for tool, (refused, text) in told.items():
                if refused:
                    assert (error_of(text)["code"], error_of(text)["retryable"]) == ("store_unavailable", True), text
                else:
                    assert text == whole[tool][1], tool

        def knock(world: World) -> None:
            with time_budget(1), pytest.raises(StoreUnavailable):
                world.host.authenticate(story.agent.api_key)

        on(knock, aws_url=nowhere)
