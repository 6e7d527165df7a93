"""One log line and one set of metrics for each invocation; never its payload, never a key."""

from __future__ import annotations

import gc
import importlib.util
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pulse_kg.mcp.envelope import new_correlation_id

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger, Tracer

NAMESPACE: Final = "PulseKG"

_cold: list[bool] = [True]
"""Whether the next invocation is the first of this environment."""


@dataclass
class Seen:
    """What is told of an invocation.

    Attributes:
        correlation_id: In the answer's envelope and in every line of its log.
        code: The error's code; None while there is none.
        facts: Further numbers and names for the log line.
    """

    correlation_id: str
    code: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def saw(self, body: object) -> None:
        """Notes the code of an answer that is an envelope."""
        error = body.get("error") if isinstance(body, dict) else None
        if isinstance(error, dict):
            self.code = str(error.get("code"))


@contextmanager
def observed(function: str, context: Any, *, correlation_id: str | None = None) -> Iterator[Seen]:
    """Logs and counts what runs inside it.

    Args:
        function: The tool or job, for the metrics' dimension.
        context: Lambda's.
        correlation_id: From the caller; a new one otherwise.
    """
    seen = Seen(correlation_id or new_correlation_id())
    cold, _cold[0] = _cold[0], False
    log = logger()
    log.append_keys(function=function, correlation_id=seen.correlation_id, request_id=getattr(context, "aws_request_id", None))
    begun = time.perf_counter()
    try:
        with _traced(function, seen):
            yield seen
    finally:
        milliseconds = round((time.perf_counter() - begun) * 1000, 1)
        log.info("call", extra={"code": seen.code or "ok", "duration_ms": milliseconds, "cold_start": cold, **seen.facts})
        _count(function, seen, milliseconds, cold=cold)
        if cold and not gc.isenabled():
            gc.freeze()  # what a cold start made stays
            gc.enable()


@cache
def logger() -> Logger:
    """The logger of this environment. It carries the package's name, so that all modules of the package log through it, as JSON."""
    from aws_lambda_powertools import Logger

    return Logger(service="pulse_kg", level=os.environ.get("PULSE_KG_LOG_LEVEL", "WARNING").strip().upper(), log_uncaught_exceptions=False)


def _count(function: str, seen: Seen, milliseconds: float, *, cold: bool) -> None:
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

    metrics = EphemeralMetrics(namespace=NAMESPACE, service=function)
    metrics.add_metric("Calls", MetricUnit.Count, 1)
    metrics.add_metric("Duration", MetricUnit.Milliseconds, milliseconds)
    metrics.add_metric("ColdStarts", MetricUnit.Count, int(cold))
    metrics.add_metric("Errors", MetricUnit.Count, int(seen.code is not None))
    metrics.flush_metrics()
    if seen.code is not None:
        count_one("ErrorsByCode", function, {"code": seen.code})


def count_one(name: str, function: str, dimensions: Mapping[str, str], value: float = 1) -> None:
    """Counts something with dimensions of its own."""
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

    metrics = EphemeralMetrics(namespace=NAMESPACE, service=function)
    for dimension, text in dimensions.items():
        metrics.add_dimension(dimension, text)
    metrics.add_metric(name, MetricUnit.Count, value)
    metrics.flush_metrics()


@contextmanager
def _traced(function: str, seen: Seen) -> Iterator[None]:
    """A subsegment that holds the outcome and nothing of the payload, where the X-Ray library is there and tracing is on."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    with tracer.provider.in_subsegment(name=f"## {function}") as segment:
        try:
            yield
        finally:
            segment.put_annotation("correlation_id", seen.correlation_id)
            segment.put_annotation("code", seen.code or "ok")


@cache
def _tracer() -> Tracer | None:
    wanted = os.environ.get("POWERTOOLS_TRACE_DISABLED", "true").strip().lower() in ("false", "0")
    if not wanted or importlib.util.find_spec("aws_xray_sdk") is None:
        return None
    from aws_lambda_powertools import Tracer

    return Tracer(service="pulse_kg", auto_patch=False)
