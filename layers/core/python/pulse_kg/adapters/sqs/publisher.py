"""Publishes the events of the outbox to a FIFO queue."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulse_kg.adapters.budget import seconds_left, time_budget
from pulse_kg.domain.schema import canonical_json
from pulse_kg.errors import PayloadTooLarge, StoreUnavailable

STORE: Final = "queue"
"""How an error names it."""
MAX_MESSAGE_BYTES: Final = 262_144
"""Of a message with its attributes' names, types and values."""

_BUSY: Final = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "KmsThrottled",
        "KMS.ThrottlingException",
        "OverLimit",
        "AWS.SimpleQueueService.OverLimit",
        "RequestThrottled",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_BUSY_STATUSES: Final = frozenset({429, 500, 502, 503, 504})
_MISSING: Final = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 1.0


class SqsEventPublisher:
    """Sends each event as one message: its group is the board, its deduplication id the event's id.

    So the queue hands out a board's events in order, boards side by side, and drops an event that is sent again within five minutes.

    Args:
        client: An SQS client of boto3 or botocore.
        queue_url: The FIFO queue.
        sleep: Waits between tries.
        randomness: Numbers from 0 to 1 that spread the tries.
    """

    def __init__(
        self,
        client: Any,
        queue_url: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        randomness: Callable[[], float] = random.random,
    ) -> None:
        self._client, self._queue_url, self._sleep, self._randomness = client, queue_url, sleep, randomness

    def publish(self, board_id: str, seq: int, event: Mapping[str, Any]) -> None:
        """See `EventPublisher.publish`.

        Raises:
            PayloadTooLarge: No queue takes an event of this size.
            StoreUnavailable: It is not known whether the queue has it.
        """
        body = canonical_json(event)
        attributes = {
            "type": {"DataType": "String", "StringValue": str(event["type"])},
            "board": {"DataType": "String", "StringValue": board_id},
            "seq": {"DataType": "Number", "StringValue": str(seq)},
        }
        size = len(body.encode()) + sum(len(part) for name, value in attributes.items() for part in (name, *value.values()))
        if size > MAX_MESSAGE_BYTES:
            raise PayloadTooLarge(
                f"The event of commit {seq} has {size} bytes with its attributes, and a message may have {MAX_MESSAGE_BYTES}.",
                {"bytes": size, "max_bytes": MAX_MESSAGE_BYTES},
            )
        self._sent(
            QueueUrl=self._queue_url,
            MessageBody=body,
            MessageAttributes=attributes,
            MessageGroupId=board_id,
            MessageDeduplicationId=str(event["id"]),
        )

    def _sent(self, **message: Any) -> None:
        from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError  # noqa: A004 - the driver's name

        longest = _FIRST_WAIT
        with time_budget(seconds_left()):
            while True:
                try:
                    self._client.send_message(**message)
                    return
                except ClientError as error:
                    if not _passes(error):
                        raise _translated(error) from error
                    cause: Exception = error
                except (ConnectionError, HTTPClientError) as error:  # no answer: sent again, it is dropped as a duplicate
                    cause = error
                except BotoCoreError as error:  # no credentials, no region: the same each time
                    raise StoreUnavailable(STORE) from error
                pause = longest * self._randomness()
                if pause >= seconds_left():
                    raise StoreUnavailable(STORE) from cause
                self._sleep(pause)
                longest = min(2 * longest, _LONGEST_WAIT)


def _passes(error: Any) -> bool:
    """Whether the same request may succeed in a moment."""
    response = error.response
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return response["Error"]["Code"] in _BUSY or status in _BUSY_STATUSES


def _translated(error: Any) -> StoreUnavailable:
    if error.response["Error"]["Code"] in _MISSING:
        return StoreUnavailable(STORE, "There is no event queue at the address that was given. Set the queues up, or name another.")
    return StoreUnavailable(STORE)
