"""Tells the world outside of commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class EventPublisher(Protocol):
    """Sends the events of the outbox to who listens.

    Delivery: at least once; an event sent again has the same `id`, by which a reader knows it.
    Order: the events of one board in the order of their commits, as long as they are sent in it; boards are independent.
    Tenancy: the board is the group of an event, and part of its content.
    Errors: StoreUnavailable (retryable): nothing is known of whether the event went out, so it is sent again.
    """

    def publish(self, board_id: str, seq: int, event: Mapping[str, Any]) -> None:
        """Sends one event; returns when the queue has it."""
        ...
