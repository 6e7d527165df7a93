"""The jobs: the relay of the outbox, the decay tick, and what becomes of dead letters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pulse_kg.adapters.budget import seconds_left
from pulse_kg.errors import StoreUnavailable
from pulse_kg.lambda_edge.jobs import TICK_RESERVE_SECONDS, dead_letters_function, relay_function, tick_function
from tests.support.lambda_calls import Context, package_logger_restored


@pytest.fixture(autouse=True)
def _logger() -> Iterator[None]:
    with package_logger_restored():
        yield


class Outbox:
    def __init__(self, failure: Exception | None = None) -> None:
        self.budgets: list[float] = []
        self._failure = failure

    def relay_outbox(self, seconds: float) -> dict[str, Any]:
        self.budgets.append(seconds)
        assert seconds_left() <= seconds
        if self._failure is not None:
            raise self._failure
        return {"published": 2}


def test_the_relay_works_within_its_own_time_and_reports() -> None:
    outbox = Outbox()
    assert relay_function(lambda: outbox)({"source": "aws.scheduler"}, Context(remaining_ms=55_500)) == {"published": 2}
    assert outbox.budgets == [55.0]


def test_a_failure_of_the_relay_is_left_to_the_scheduler() -> None:
    with pytest.raises(StoreUnavailable):
        relay_function(lambda: Outbox(StoreUnavailable("boards")))({}, Context())


class Ticking:
    def __init__(self) -> None:
        self.budgets: list[float] = []

    def tick(self, seconds: float) -> dict[str, Any]:
        self.budgets.append(seconds)
        assert seconds_left() > seconds
        return {"boards": 2}


def test_the_tick_keeps_time_for_the_portion_that_it_is_at() -> None:
    ticking = Ticking()
    assert tick_function(lambda: ticking)({"source": "aws.scheduler"}, Context(remaining_ms=55_500)) == {"boards": 2}
    assert ticking.budgets == [55.0 - TICK_RESERVE_SECONDS]
    tick_function(lambda: ticking)({}, Context(remaining_ms=1_000))
    assert ticking.budgets[1] == 0


def record(number: int, body: str) -> dict[str, Any]:
    return {
        "messageId": f"m{number}",
        "receiptHandle": "r",
        "body": body,
        "attributes": {"MessageGroupId": "alpha", "ApproximateReceiveCount": "1", "SentTimestamp": "1"},
        "messageAttributes": {},
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:kg-events-dead.fifo",
        "awsRegion": "us-east-1",
    }


EVENT = {
    "specversion": "1.0",
    "id": "alpha.7",
    "source": "/pulse-kg/boards/alpha",
    "type": "kg.consolidated.v1",
    "subject": "kgs_1",
    "time": "2026-01-01T00:00:00.000Z",
    "data": {"title": "canary"},
}


@pytest.mark.parametrize("body", [json.dumps(EVENT), "no json", "[]", '{"id": 1}'])
def test_every_dead_letter_is_told_in_the_log_and_none_is_tried_again(body: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = dead_letters_function()({"Records": [record(1, body), record(2, body)]}, Context())
    assert answer == {"batchItemFailures": []}
    out = capsys.readouterr().out
    told = [json.loads(line) for line in out.splitlines() if '"dead letter"' in line]
    assert [(line["message_id"], line["group"]) for line in told] == [("m1", "alpha"), ("m2", "alpha")]
    assert "canary" not in out


def test_the_log_names_the_event_so_that_it_can_be_sent_again(capsys: pytest.CaptureFixture[str]) -> None:
    dead_letters_function()({"Records": [record(1, json.dumps(EVENT))]}, Context())
    out = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = next(line for line in out if line.get("message") == "dead letter")
    assert told["event"] == {name: value for name, value in EVENT.items() if name != "data"}
    assert any(line.get("DeadLetters") == [1.0] and line["type"] == "kg.consolidated.v1" for line in out)
