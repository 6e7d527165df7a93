"""Functions that no caller waits for: the outbox's relay, the decay tick, and the keeper of dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pulse_kg.adapters.budget import time_budget
from pulse_kg.lambda_edge import environment
from pulse_kg.lambda_edge.observed import count_one, logger, observed

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

    from pulse_kg.lambda_edge.tool import Handler

TICK_RESERVE_SECONDS = 10.0
"""What a tick keeps of its function's time for the portion of nodes that it is at."""

_SHOWN = ("id", "type", "source", "subject", "time", "specversion")


class Relays(Protocol):
    """What the relay needs of a container."""

    def relay_outbox(self, seconds: float) -> Mapping[str, Any]:
        """Publishes what is pending; gives numbers, JSON-ready."""
        ...


def relay_function(container: Callable[[], Relays] | None = None) -> Handler:
    """The handler of the scheduled relay: publishes events that no commit's own process published. Safe to run twice at once.

    Args:
        container: Opens the stores.
    """
    opened = container or environment.container

    def handle(_event: Any, context: Any) -> Any:
        seconds = environment.seconds_for(context, at_most=float("inf"))
        with observed("outbox_relay", context) as seen, time_budget(seconds):
            # What fails is raised: the scheduler tries it again, and the alarm counts it.
            report = dict(opened().relay_outbox(seconds))
            seen.facts["report"] = report
            return report

    return handle


class Ticks(Protocol):
    """What the decay tick needs of a container."""

    def tick(self, seconds: float) -> Mapping[str, Any]:
        """Computes the relevance of all nodes; gives numbers, JSON-ready."""
        ...


def tick_function(container: Callable[[], Ticks] | None = None) -> Handler:
    """The handler of the scheduled decay tick. Safe to start twice at once: one of the two does nothing.

    Args:
        container: Opens the stores.
    """
    opened = container or environment.container

    def handle(_event: Any, context: Any) -> Any:
        seconds = environment.seconds_for(context, at_most=float("inf"))
        with observed("decay_tick", context) as seen, time_budget(seconds):
            # It ends with the portion that it is at when the time is over, and the next run goes on from there.
            report = dict(opened().tick(max(0.0, seconds - TICK_RESERVE_SECONDS)))
            seen.facts["report"] = report
            return report

    return handle


def dead_letters_function() -> Handler:
    """The handler of the queue of dead letters: writes each one to the log and counts it.

    An event holds ids and counts, not statements, and can be read again from the audit row that it names; so its head is kept in the log,
    and the message leaves the queue. A message that is no event is kept as a digest of its size and its queue's own facts.
    """

    def handle(event: Any, context: Any) -> Any:
        from aws_lambda_powertools.utilities.batch import SqsFifoPartialProcessor, process_partial_response

        with observed("dead_letters", context) as seen:
            seen.facts["records"] = len(event.get("Records", []))
            return process_partial_response(event=event, record_handler=_kept, processor=SqsFifoPartialProcessor(), context=context)

    return handle


def _kept(record: SQSRecord) -> None:
    attributes = record.raw_event.get("attributes", {})
    head = _head(record.body)
    logger().error(
        "dead letter",
        extra={
            "event": head,
            "bytes": len(record.body.encode()),
            "message_id": record.message_id,
            "group": attributes.get("MessageGroupId"),
            "receives": attributes.get("ApproximateReceiveCount"),
        },
    )
    count_one("DeadLetters", "dead_letters", {"type": str(head.get("type", "unknown"))})


def _head(body: str) -> dict[str, Any]:
    """What names an event, without its data."""
    try:
        event = json.loads(body)
    except ValueError:
        return {}
    return {name: str(event[name])[:256] for name in _SHOWN if name in event} if isinstance(event, dict) else {}
