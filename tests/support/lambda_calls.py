"""Invocations of a function as Lambda makes them, in this process."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

Handler = Callable[[Any, Any], Any]


@dataclass
class Context:
    """What Lambda tells a function of an invocation."""

    remaining_ms: int = 25_000
    client_context: Any = None
    function_name: str = "function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:function"
    aws_request_id: str = "00000000-0000-0000-0000-000000000001"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


def through_gateway(tool: str, headers: Mapping[str, str] | None = None, **more: Any) -> Context:
    """The context of a call by an AgentCore Gateway."""
    custom: dict[str, Any] = {"bedrockAgentCoreToolName": tool, **more}
    if headers is not None:
        custom["bedrockAgentCorePropagatedHeaders"] = dict(headers)
    return Context(client_context=SimpleNamespace(custom=custom))


@dataclass
class Request:
    """A request over HTTP, to be written as either payload version."""

    path: str = "/tools/begin_consolidation"
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | str | None = b"{}"

    def v1(self, **changes: Any) -> dict[str, Any]:
        """As a REST API sends it."""
        return {
            "resource": self.path,
            "path": f"/base{self.path}",
            "httpMethod": self.method,
            "headers": self.headers,
            "multiValueHeaders": {name: [value] for name, value in self.headers.items()},
            "queryStringParameters": None,
            "multiValueQueryStringParameters": None,
            "pathParameters": None,
            "stageVariables": None,
            "requestContext": {"stage": "prod", "path": f"/prod{self.path}", "requestId": "r", "identity": {}},
            "body": self.body.decode() if isinstance(self.body, bytes) else self.body,
            "isBase64Encoded": False,
            **changes,
        }

    def v2(self, **changes: Any) -> dict[str, Any]:
        """As an HTTP API sends it."""
        return {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": f"/prod{self.path}",
            "rawQueryString": "",
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "requestContext": {"stage": "prod", "http": {"method": self.method, "path": f"/prod{self.path}"}},
            "body": self.body.decode() if isinstance(self.body, bytes) else self.body,
            "isBase64Encoded": False,
            **changes,
        }


def json_request(path: str, api_key: str | None, arguments: object, **headers: str) -> Request:
    """A POST of JSON with a key."""
    keyed = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(path, "POST", {"Content-Type": "application/json", **keyed, **named}, json.dumps(arguments))


def base64_body(event: dict[str, Any]) -> dict[str, Any]:
    """The event with its body in base64."""
    return {**event, "body": base64.b64encode(event["body"].encode()).decode(), "isBase64Encoded": True}


def content(answer: Mapping[str, Any]) -> Any:
    """The JSON of an HTTP answer."""
    return json.loads(answer["body"])


@contextmanager
def package_logger_restored() -> Iterator[None]:
    """Leaves the package's logger as it was: the functions make it their own."""
    log = logging.getLogger("pulse_kg")
    before = list(log.handlers), list(log.filters), log.level, log.propagate
    root = logging.getLogger()
    root_filters = {handler: list(handler.filters) for handler in root.handlers}
    try:
        yield
    finally:
        from pulse_kg.lambda_edge import observed

        observed.logger.cache_clear()
        log.handlers[:], log.filters[:] = before[0], before[1]
        log.setLevel(before[2])
        log.propagate = before[3]
        for handler, filters in root_filters.items():
            handler.filters[:] = filters
        for name in ("init", "powertools_handler"):
            if hasattr(log, name):
                delattr(log, name)
