"""Makes the queues on a machine of one's own. On AWS the template makes them."""

from __future__ import annotations

import json
from typing import Any, Final

_RETENTION_SECONDS: Final = 14 * 86_400
_VISIBILITY_SECONDS: Final = 180  # six times what a reader's function may take
_MAX_RECEIVES: Final = 5
_TAKEN: Final = frozenset({"QueueAlreadyExists", "QueueNameExists"})


def ensure_queues(client: Any, prefix: str) -> str:
    """Makes the queue of events and the one of events that nobody could handle, or brings their settings up to date.

    Both are FIFO, encrypted, and keep a message for 14 days; one that was received five times goes to the second.

    Args:
        client: An SQS client of boto3 or botocore.
        prefix: What the names begin with; ``events.fifo`` and ``events_dead.fifo`` follow.

    Returns:
        The address of the queue of events.
    """
    dead = _ensure(client, f"{prefix}events_dead.fifo", {})
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": _MAX_RECEIVES})
    return _ensure(client, f"{prefix}events.fifo", {"RedrivePolicy": redrive, "VisibilityTimeout": str(_VISIBILITY_SECONDS)})


def _ensure(client: Any, name: str, more: dict[str, str]) -> str:
    from botocore.exceptions import ClientError

    settings = {
        "ContentBasedDeduplication": "false",
        "MessageRetentionPeriod": str(_RETENTION_SECONDS),
        "SqsManagedSseEnabled": "true",
        **more,
    }
    try:
        made: str = client.create_queue(QueueName=name, Attributes={"FifoQueue": "true", **settings})["QueueUrl"]
    except ClientError as error:
        if error.response["Error"]["Code"] not in _TAKEN:
            raise
        made = client.get_queue_url(QueueName=name)["QueueUrl"]
        client.set_queue_attributes(QueueUrl=made, Attributes=settings)
    return made
