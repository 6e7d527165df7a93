"""The embedding model as a function, for the functions of this deployment alone: no key, its role is its door.

``{"texts": [...], "timeout_seconds"?}`` → ``{"model": {"model_id", "dimension", "digest"}, "vectors": [base64 of little-endian float32],
"truncated": [...]}``, in the order of the texts, or the error envelope. Without texts it tells the model and loads nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from pulse_kg.adapters.budget import time_budget
from pulse_kg.bootstrap import embedder_of
from pulse_kg.errors import InvalidArgument, Problem
from pulse_kg.lambda_edge import environment
from pulse_kg.lambda_edge.answers import outcome_of
from pulse_kg.lambda_edge.observed import observed
from pulse_kg.mcp.host import ToolOutcome

if TYPE_CHECKING:
    from pulse_kg.lambda_edge.tool import Handler
    from pulse_kg.ports.embedder import Embedder


def embed_function(embedder: Callable[[], Embedder] | None = None) -> Handler:
    """The handler of the embedding function.

    Args:
        embedder: Makes the model's embedder, once; the one that the settings name by default.
    """
    kept = cache(embedder or (lambda: embedder_of(environment.settings())))

    def handle(event: Any, context: Any) -> Any:
        seconds = environment.seconds_for(context)
        with observed("embed", context) as seen, time_budget(seconds):

            def run() -> ToolOutcome:
                texts, wanted = _arguments(event)
                seen.facts["texts"] = len(texts)
                return ToolOutcome(_embedded(kept(), texts, min(seconds, wanted)), is_error=False)

            return outcome_of(seen, run).body

    return handle


def _arguments(event: object) -> tuple[list[str], float]:
    given = event if isinstance(event, dict) else {}
    texts, seconds = given.get("texts"), given.get("timeout_seconds", float("inf"))
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InvalidArgument("The call can't be read.", [Problem("texts", "must be a list of strings")])
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgument("The call can't be read.", [Problem("timeout_seconds", "must be a number")])
    return texts, float(seconds)


def _embedded(embedder: Embedder, texts: list[str], seconds: float) -> dict[str, Any]:
    vectors = embedder.embed(texts, timeout_seconds=seconds)
    return {
        "model": asdict(embedder.info()),
        "vectors": [base64.b64encode(vector.vector).decode("ascii") for vector in vectors],
        "truncated": [vector.truncated for vector in vectors],
    }
