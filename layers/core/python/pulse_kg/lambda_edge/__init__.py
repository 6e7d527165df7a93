"""The edge of the Lambda functions: event shapes, time, logs and metrics; what all handlers share."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulse_kg.lambda_edge.tool import Handler

if "AWS_LAMBDA_RUNTIME_API" in os.environ:
    # A cold start makes a lot and throws nearly nothing away: the collector would look through all of it again and again. `observed`
    # turns it on again after the first call.
    gc.disable()


def tool_function(name: str) -> Handler:
    """The handler of a tool's own function; see `pulse_kg.lambda_edge.tool`."""
    from pulse_kg.lambda_edge.tool import tool_function as made  # here, so that a function without a tool loads none

    return made(name)
