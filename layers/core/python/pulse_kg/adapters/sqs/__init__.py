"""The events of the outbox on an SQS queue."""

from pulse_kg.adapters.sqs.publisher import SqsEventPublisher
from pulse_kg.adapters.sqs.queues import ensure_queues

__all__ = ["SqsEventPublisher", "ensure_queues"]
