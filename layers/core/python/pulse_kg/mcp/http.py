"""What every HTTP route does before and after its own work, on plain values: the same code runs under any server.

In this order: method, origin, key, size, content type, Accept. Nothing of the body is looked at before the key is known
to be good. The Host header is not checked: a page that was rebound to this address still sends its own Origin with a
POST and has no key, and behind a gateway the host is the gateway's affair.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pulse_kg.errors import PayloadTooLarge, PulseError, Unauthorized
from pulse_kg.mcp import envelope, jsontext
from pulse_kg.mcp.headers import DEFAULT_ALLOWED_ORIGINS, accepts_json, api_key, is_allowed_origin, is_json
from pulse_kg.mcp.host import CallerHandle, ToolHost

logger = logging.getLogger(__name__)

DEFAULT_MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""Room for overrides of a full session, and below what gateways pass on. Bytes."""

_BROWSER_HEADERS: Final = (
    "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, x-api-key"
)
"""What a page may send along; those that are ignored too, or the page's request would not be made."""


@dataclass(frozen=True)
class HttpRequest:
    """A request.

    Attributes:
        method: In capitals.
        path: Decoded, without query and without a stage or base path.
        headers: By lower-case name; values of a repeated header joined by ``, ``.
        body: All of it. A server that stopped reading may pass any body longer than the limit.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class HttpResponse:
    """A response; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class HttpRefusal(Exception):
    """A refusal that only HTTP knows, shown as the project's envelope.

    Attributes:
        status: The HTTP status.
        message: One sentence that says what to do.
        code: The contract's code.
        headers: Further headers of the response.
    """

    def __init__(self, status: int, message: str, *, code: str = "invalid_request", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = dict(headers or {})


Answer = Callable[[HttpRequest, CallerHandle, str], HttpResponse]
"""A route's own work: the request, who calls, the correlation id."""


class HttpGate:
    """Admits requests to routes.

    Args:
        host: Knows the keys.
        allowed_origins: See `is_allowed_origin`; a request without an Origin is no browser's and passes.
        max_body_bytes: The largest body.
        new_correlation_id: Called once a request.
    """

    def __init__(
        self,
        host: ToolHost,
        *,
        allowed_origins: Sequence[str] = DEFAULT_ALLOWED_ORIGINS,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        new_correlation_id: Callable[[], str] = envelope.new_correlation_id,
    ) -> None:
        self._host = host
        self._allowed_origins = tuple(allowed_origins)
        self.max_body_bytes = max_body_bytes
        self._new_correlation_id = new_correlation_id

    def post(self, request: HttpRequest, answer: Answer, *, empty_body: bool = False) -> HttpResponse:
        """Runs a route that takes JSON by POST from an authenticated caller.

        Args:
            request: The request.
            answer: The route's work; it may raise `HttpRefusal` and `PulseError`.
            empty_body: Whether a request without a body, and so without a content type, is one that it understands.
        """

        def admitted(correlation_id: str) -> HttpResponse:
            self._check_method(request, "POST")
            if not self._origin_passes(request):
                raise HttpRefusal(
                    403, "This Origin is not allowed. Call from an allowed page, or from a program.", code="permission_denied"
                )
            if request.method == "OPTIONS":
                return _preflight(request)
            caller = self._host.authenticate(api_key(request.headers))
            self._check_size(request)
            if not (empty_body and not request.body) and not is_json(request.headers.get("content-type")):
                raise HttpRefusal(415, "Send the body as 'Content-Type: application/json', in UTF-8.")
            if not accepts_json(request.headers.get("accept")):
                raise HttpRefusal(406, "Answers are JSON: send 'Accept: application/json', or leave the header out.")
            return answer(request, caller, correlation_id)

        return self._guarded(request, admitted)

    def get(self, request: HttpRequest, answer: Callable[[], HttpResponse]) -> HttpResponse:
        """Runs a route that anybody may read."""

        def admitted(_correlation_id: str) -> HttpResponse:
            if request.method not in ("GET", "HEAD"):
                raise _method_not_allowed("GET")
            return answer()

        return self._guarded(request, admitted)

    def not_found(self, request: HttpRequest) -> HttpResponse:
        """The answer of a path that nothing serves."""

        def admitted(_correlation_id: str) -> HttpResponse:
            raise HttpRefusal(404, "Nothing is served here. MCP is at /mcp, a tool at /tools/<tool>, health at /healthz.")

        return self._guarded(request, admitted)

    def _guarded(self, request: HttpRequest, admitted: Callable[[str], HttpResponse]) -> HttpResponse:
        correlation_id = self._new_correlation_id()
        try:
            response = admitted(correlation_id)
        except HttpRefusal as refusal:
            shown = envelope.refusal(refusal.code, refusal.status, refusal.message, correlation_id=correlation_id)
            response = json_response(refusal.status, shown, refusal.headers)
        except PulseError as error:
            challenge = {"www-authenticate": "Bearer"} if isinstance(error, Unauthorized) else {}
            response = json_response(error.status, envelope.envelope(error, correlation_id), challenge)
        except Exception:
            logger.exception("HTTP request failed: correlation_id=%s", correlation_id)
            response = json_response(500, envelope.internal_error(correlation_id))
        return replace(response, headers=self._common_headers(request, correlation_id) | dict(response.headers))

    def _common_headers(self, request: HttpRequest, correlation_id: str) -> dict[str, str]:
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff", "x-correlation-id": correlation_id}
        origin = request.headers.get("origin")
        if origin is not None and self._origin_passes(request):
            headers |= {
                "access-control-allow-origin": origin,
                "access-control-expose-headers": "www-authenticate, x-correlation-id",
                "vary": "origin",
            }
        return headers

    def _check_method(self, request: HttpRequest, allowed: str) -> None:
        if request.method not in (allowed, "OPTIONS"):
            raise _method_not_allowed(allowed)

    def _origin_passes(self, request: HttpRequest) -> bool:
        origin = request.headers.get("origin")
        return origin is None or is_allowed_origin(origin, self._allowed_origins)

    def _check_size(self, request: HttpRequest) -> None:
        if len(request.body) > self.max_body_bytes or declared_length(request.headers) > self.max_body_bytes:
            raise PayloadTooLarge(
                f"The request is larger than {self.max_body_bytes} bytes. Send less in one call.", {"max_bytes": self.max_body_bytes}
            )


def declared_length(headers: Mapping[str, str]) -> int:
    """The length that a request declares; 0 if it declares none that can be read."""
    text = headers.get("content-length", "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(2**63)) else 0


def json_response(status: int, value: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> HttpResponse:
    """A response whose body is JSON."""
    return HttpResponse(status, {"content-type": "application/json", **(headers or {})}, jsontext.encode(value))


def _method_not_allowed(allowed: str) -> HttpRefusal:
    return HttpRefusal(405, f"Only {allowed} is served here.", headers={"allow": allowed})


def _preflight(request: HttpRequest) -> HttpResponse:
    headers = {"allow": "POST"}
    if "origin" in request.headers:
        headers |= {
            "access-control-allow-methods": "POST",
            "access-control-allow-headers": _BROWSER_HEADERS,
            "access-control-max-age": "600",
        }
    return HttpResponse(204, headers)
