"""The event queues on the local server."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pulse_kg.adapters.dynamodb.client import connect
from pulse_kg.adapters.sqs import SqsEventPublisher, ensure_queues
from pulse_kg.domain.events import event_id
from tests.support import local_stack

pytestmark = pytest.mark.served

_PATIENCE = 30.0


@pytest.fixture
def sqs() -> Any:
    return connect(local_stack.servers(), "sqs")


@pytest.fixture
def prefix(sqs: Any) -> Iterator[str]:
    made = f"t{secrets.token_hex(4)}_"
    yield made
    for url in sqs.list_queues(QueueNamePrefix=made).get("QueueUrls", ()):
        sqs.delete_queue(QueueUrl=url)


def event(board: str, seq: int) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": event_id(board, seq),
        "type": "kg.consolidated.v1",
        "data": {"board_id": board, "audit_row_id": seq},
    }


def received(sqs: Any, url: str, count: int) -> list[dict[str, Any]]:
    """The next messages, each deleted when it was read, as a reader does."""
    found: list[dict[str, Any]] = []
    end = time.monotonic() + _PATIENCE
    while len(found) < count and time.monotonic() < end:
        for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", ()):
            found.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def test_each_boards_events_come_once_and_in_order_though_boards_send_side_by_side(sqs: Any, prefix: str) -> None:
    url = ensure_queues(sqs, prefix)
    publisher = SqsEventPublisher(sqs, url)

    def send(board: str) -> None:
        for seq in range(1, 11):
            publisher.publish(board, seq, event(board, seq))
            publisher.publish(board, seq, event(board, seq))  # the relay was not sure

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(send, ["alpha", "beta", "gamma"]))
    found = received(sqs, url, 30)
    for board in ("alpha", "beta", "gamma"):
        assert [e["data"]["audit_row_id"] for e in found if e["data"]["board_id"] == board] == list(range(1, 11))
    assert "Messages" not in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1)


def test_an_event_that_nobody_can_handle_goes_to_the_second_queue_after_five_receives(sqs: Any, prefix: str) -> None:
    url = ensure_queues(sqs, prefix)
    SqsEventPublisher(sqs, url).publish("alpha", 1, event("alpha", 1))
    dead = sqs.get_queue_url(QueueName=f"{prefix}events_dead.fifo")["QueueUrl"]
    receives, found = 0, list[dict[str, Any]]()
    end = time.monotonic() + _PATIENCE
    while not found and time.monotonic() < end:
        for message in sqs.receive_message(QueueUrl=url, VisibilityTimeout=0, WaitTimeSeconds=0).get("Messages", ()):
            receives += 1
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
        found = sqs.receive_message(QueueUrl=dead, WaitTimeSeconds=0).get("Messages", [])
    assert receives == 5
    assert [json.loads(message["Body"])["id"] for message in found] == ["alpha.1"]


def test_two_processes_at_once_make_the_same_queues(sqs: Any, prefix: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        urls = set(pool.map(lambda _: ensure_queues(sqs, prefix), range(4)))
    assert len(urls) == 1
    assert len(sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"]) == 2
