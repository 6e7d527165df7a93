"""The publisher of events: what it sends, and what it makes of the queue's refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError
from moto import mock_aws

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.dynamodb.client import connect
from pulse_kg.adapters.sqs import SqsEventPublisher, ensure_queues
from pulse_kg.domain.events import MAX_EVENT_BYTES, event_id
from pulse_kg.endpoints import Endpoints
from pulse_kg.errors import PayloadTooLarge, StoreUnavailable


def event(seq: int = 1, board: str = "alpha", **data: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": event_id(board, seq), "type": "kg.consolidated.v1", "data": {"b": 1.0, "a": "ä", **data}}


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1")


def attributes(sqs: Any, url: str) -> dict[str, str]:
    found: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return found


def test_an_event_is_one_message_of_canonical_json_with_what_a_filter_needs(sqs: Any) -> None:
    url = ensure_queues(sqs, "pulse_kg_")
    SqsEventPublisher(sqs, url).publish("alpha", 7, event(7))
    (message,) = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"], AttributeNames=["All"])["Messages"]
    assert message["Body"] == '{"data":{"a":"ä","b":1},"id":"alpha.7","specversion":"1.0","type":"kg.consolidated.v1"}'
    assert message["Attributes"]["MessageGroupId"] == "alpha"
    assert message["Attributes"]["MessageDeduplicationId"] == "alpha.7"
    values = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert values == {"type": "kg.consolidated.v1", "board": "alpha", "seq": "7"}


def test_an_event_sent_again_is_one_message(sqs: Any) -> None:
    url = ensure_queues(sqs, "pulse_kg_")
    publisher = SqsEventPublisher(sqs, url)
    for _ in range(3):
        publisher.publish("alpha", 1, event())
    assert attributes(sqs, url)["ApproximateNumberOfMessages"] == "1"


def test_the_queues_are_made_once_and_brought_up_to_date(sqs: Any) -> None:
    url = ensure_queues(sqs, "pulse_kg_")
    assert ensure_queues(sqs, "pulse_kg_") == url
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"MessageRetentionPeriod": "60"})
    assert ensure_queues(sqs, "pulse_kg_") == url
    found = attributes(sqs, url)
    assert url.endswith("/pulse_kg_events.fifo")
    assert (found["FifoQueue"], found["MessageRetentionPeriod"], found["SqsManagedSseEnabled"]) == ("true", "1209600", "true")
    redrive = json.loads(found["RedrivePolicy"])
    assert int(redrive["maxReceiveCount"]) == 5
    dead = sqs.get_queue_url(QueueName="pulse_kg_events_dead.fifo")["QueueUrl"]
    assert redrive["deadLetterTargetArn"] == attributes(sqs, dead)["QueueArn"]
    assert attributes(sqs, dead)["MessageRetentionPeriod"] == "1209600"


def test_the_largest_event_fits_and_a_larger_one_is_refused_before_it_is_sent(sqs: Any) -> None:
    url = ensure_queues(sqs, "pulse_kg_")
    publisher = SqsEventPublisher(sqs, url)
    publisher.publish("alpha", 1, event(text="x" * (MAX_EVENT_BYTES - 120)))
    with pytest.raises(PayloadTooLarge) as refused:
        publisher.publish("alpha", 2, event(2, text="ä" * 131_000))
    assert refused.value.details["bytes"] > refused.value.details["max_bytes"] == 262_144
    assert attributes(sqs, url)["ApproximateNumberOfMessages"] == "1"


def test_a_queue_that_is_not_there_is_told(sqs: Any) -> None:
    url = ensure_queues(sqs, "pulse_kg_")
    with pytest.raises(StoreUnavailable, match="no event queue"):
        SqsEventPublisher(sqs, url.replace("events", "other")).publish("alpha", 1, event())


class Refusing:
    """A client that raises these errors one after the other, and then takes everything; None for ever the first."""

    def __init__(self, *errors: Exception, ever: bool = False) -> None:
        self.errors, self.ever, self.sent = list(errors), ever, list[dict[str, Any]]()

    def send_message(self, **message: Any) -> None:
        self.sent.append(message)
        if self.errors:
            raise self.errors[0] if self.ever else self.errors.pop(0)


def refusal(code: str, status: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "secret-host"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "SendMessage")


PASSING = [
    refusal("OverLimit", 403),
    refusal("RequestThrottled", 403),
    refusal("KmsThrottled"),
    refusal("ThrottlingException"),
    refusal("Any", 429),
    refusal("InternalError", 500),
    refusal("ServiceUnavailable", 503),
    EndpointConnectionError(endpoint_url="http://secret-host"),
    ReadTimeoutError(endpoint_url="http://secret-host"),
]


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_what_may_pass_is_tried_again_with_the_same_deduplication_and_then_told(error: Exception) -> None:
    client, slept = Refusing(error, error), list[float]()
    SqsEventPublisher(client, "url", sleep=slept.append, randomness=lambda: 1.0).publish("alpha", 1, event())
    assert slept == [0.05, 0.1]
    assert [m["MessageDeduplicationId"] for m in client.sent] == ["alpha.1"] * 3
    full = Refusing(error, ever=True)
    with time_budget(0.5), pytest.raises(StoreUnavailable) as told:
        SqsEventPublisher(full, "url", randomness=lambda: 1.0).publish("alpha", 1, event())
    assert told.value.retryable
    assert told.value.details == {"store": "queue"}
    assert "secret-host" not in told.value.message
    assert len(full.sent) > 1


@pytest.mark.parametrize("error", [refusal("AccessDenied", 403), refusal("InvalidParameterValue"), NoCredentialsError()], ids=str)
def test_what_stays_is_told_at_once(error: Exception) -> None:
    client = Refusing(error, ever=True)
    with pytest.raises(StoreUnavailable):
        SqsEventPublisher(client, "url").publish("alpha", 1, event())
    assert len(client.sent) == 1


def test_a_queue_that_does_not_answer_is_told_within_the_time(sqs: Any) -> None:
    nobody = Endpoints("", "", "", aws_url="http://127.0.0.1:9", region="us-east-1", access_key="test", secret_key="test")
    client = connect(nobody, "sqs")
    with time_budget(0.5), pytest.raises(StoreUnavailable) as told:
        SqsEventPublisher(client, "http://127.0.0.1:9/1/x.fifo").publish("alpha", 1, event())
    assert told.value.retryable
