"""Calls functions by AWS Lambda's Invoke. The driver is imported by the first call."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Final

from pulse_kg.adapters.aws import aws_client
from pulse_kg.adapters.budget import seconds_left
from pulse_kg.errors import PayloadTooLarge, PulseError, ResourceExhausted, StoreUnavailable
from pulse_kg.ports.functions import FunctionFailed, FunctionTimeout

MAX_PAYLOAD_BYTES: Final = 6 * 1024 * 1024
"""What Invoke takes, and gives."""

DEFAULT_READ_SECONDS: Final = 27.0
"""Longer than any tool's function may run, and shorter than a REST API waits."""

_CONNECT_SECONDS: Final = 2.0
_BUSY: Final = frozenset(
    "TooManyRequestsException ThrottlingException ServiceException EC2ThrottledException EC2UnexpectedException ENILimitReachedException "
    "ResourceConflictException ResourceNotReadyException SubnetIPAddressLimitReachedException InternalFailure ServiceUnavailable".split()
)
_TOO_LARGE: Final = frozenset({"RequestTooLargeException", "RequestEntityTooLargeException"})
_TIMED_OUT: Final = "Sandbox.Timedout"
_ANSWER_TOO_LARGE: Final = "Function.ResponseSizeTooLarge"


class LambdaInvoker:
    """The invoker over botocore; see `pulse_kg.ports.functions.FunctionInvoker`.

    Args:
        read_seconds: How long an answer is waited for.
        client: Instead of the driver's.
    """

    def __init__(self, *, read_seconds: float = DEFAULT_READ_SECONDS, client: Any = None) -> None:
        self._read_seconds = read_seconds
        self._made = client
        self._lock = threading.Lock()

    def invoke(self, function: str, payload: Mapping[str, Any]) -> Any:
        """See the port."""
        from botocore.exceptions import BotoCoreError, ClientError

        body = _encoded(payload)
        if len(body) > MAX_PAYLOAD_BYTES:
            raise _too_large()
        if seconds_left() <= 0:
            raise StoreUnavailable("function", "No time was left to call the tool. Try the same call again.")
        try:
            response = self._client().invoke(FunctionName=function, InvocationType="RequestResponse", Payload=body)
            answer = response["Payload"].read()
        except ClientError as error:
            raise _refused(function, error.response.get("Error", {}).get("Code", "")) from error
        except BotoCoreError as error:
            raise _lost(error) from error
        return _answer(function, answer, failed="FunctionError" in response)

    def _client(self) -> Any:
        with self._lock:
            if self._made is None:
                from botocore.config import Config

                # One attempt: botocore would also repeat what ran out of time, and a tool's work would be done twice.
                config = Config(
                    connect_timeout=_CONNECT_SECONDS, read_timeout=self._read_seconds, retries={"total_max_attempts": 1, "mode": "standard"}
                )
                self._made = aws_client("lambda", config=config)
            return self._made


def _encoded(payload: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate: only an escape can carry it, and the tool refuses it with its place
        return json.dumps(payload, separators=(",", ":")).encode("ascii")


def _refused(function: str, code: str) -> Exception:
    """Lambda's refusals in our words."""
    if code in _BUSY:
        return StoreUnavailable("function", "Too many calls run at once. Try the same call again in a moment.")
    if code in _TOO_LARGE:
        return _too_large()
    return FunctionFailed(function, code)


def _lost(error: Exception) -> PulseError:
    from botocore.exceptions import ReadTimeoutError

    return FunctionTimeout() if isinstance(error, ReadTimeoutError) else StoreUnavailable("function")


def _answer(function: str, answer: bytes, *, failed: bool) -> Any:
    try:
        value = json.loads(answer)
    except ValueError:
        raise FunctionFailed(function, "its answer is no JSON") from None
    if not failed:
        return value
    said = value if isinstance(value, dict) else {}
    kind = str(said.get("errorType", "unknown"))
    # Some versions of the runtime tell a timeout by its message alone.
    if kind == _TIMED_OUT or "Task timed out" in str(said.get("errorMessage", "")):
        raise FunctionTimeout
    if kind == _ANSWER_TOO_LARGE:
        raise ResourceExhausted("The answer is too large to be sent. Ask for less.", {"budget": "response_bytes"})
    raise FunctionFailed(function, kind)


def _too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"The call is larger than {MAX_PAYLOAD_BYTES} bytes. Send less in one call.", {"max_bytes": MAX_PAYLOAD_BYTES})
