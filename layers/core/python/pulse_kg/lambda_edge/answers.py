"""What an invocation answers, also when it fails: the outermost edge of every function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulse_kg.errors import PulseError, ResourceExhausted
from pulse_kg.lambda_edge.observed import Seen, logger
from pulse_kg.lambda_edge.shapes import http_response, is_too_large
from pulse_kg.mcp import jsontext
from pulse_kg.mcp.envelope import envelope, internal_error
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.mcp.http import HttpResponse, json_response
from pulse_kg.settings import SettingsError


def answered(seen: Seen, run: Callable[[], HttpResponse]) -> dict[str, Any]:
    """The HTTP response of a route; what it refuses or breaks on is an envelope."""
    try:
        response = run()
    except PulseError as error:
        response = _refused(_envelope(error, seen), seen)
    except Exception:  # noqa: BLE001 - the function's outermost edge: what nobody foresaw is logged and told as internal_error
        response = _refused(_broken(seen), seen)
    answer = http_response(response)
    if is_too_large(answer):
        too_large = ResourceExhausted("The answer is too large to be sent. Ask for less.", {"budget": "response_bytes"})
        answer = http_response(_refused(envelope(too_large, seen.correlation_id), seen))
    if answer["statusCode"] >= 400:  # noqa: PLR2004 - where HTTP's refusals begin
        seen.saw(jsontext.decode(answer["body"].encode()) if answer["body"] else None)
    return answer


def outcome_of(seen: Seen, run: Callable[[], ToolOutcome]) -> ToolOutcome:
    """The outcome of a call without HTTP; what it refuses or breaks on is an outcome too."""
    try:
        outcome = run()
    except PulseError as error:
        shown = _envelope(error, seen)
        outcome = ToolOutcome(shown, is_error=True, status=shown["error"]["status"])
    except Exception:  # noqa: BLE001 - as above
        outcome = ToolOutcome(_broken(seen), is_error=True, status=500)
    seen.saw(outcome.body if outcome.is_error else None)
    return outcome


def _refused(shown: dict[str, Any], seen: Seen) -> HttpResponse:
    """The response of a refusal that did not come from a route."""
    return json_response(shown["error"]["status"], shown, {"cache-control": "no-store", "x-correlation-id": seen.correlation_id})


def _envelope(error: PulseError, seen: Seen) -> dict[str, Any]:
    # A deployment's wrong variable is no fault of the caller, and none of its business.
    return _broken(seen) if isinstance(error, SettingsError) else envelope(error, seen.correlation_id)


def _broken(seen: Seen) -> dict[str, Any]:
    logger().exception("call failed")
    return internal_error(seen.correlation_id)
