"""The edge of the Lambda functions: event shapes, time, logs and metrics; what all handlers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulse_kg.lambda_edge.tool import Handler


def tool_function(name: str) -> Handler:
    """The handler of a tool's own function; see `pulse_kg.lambda_edge.tool`."""
    from pulse_kg.lambda_edge.tool import tool_function as made  # here, so that a function without a tool loads none

    return made(name)
