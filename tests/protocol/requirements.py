"""What the protocol asks of this server, one list a revision, and two for the transports.

A test names what it covers: ``@pytest.mark.requirement("2026-07-28/ladder-order")``. ``2025/x`` stands for requirement x of
all three revisions that begin with `initialize`. The words are this project's, not the specification's.
"""

from __future__ import annotations

LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"

_COMMON_TO_LEGACY = {
    "negotiation-echo": "initialize answers the requested revision if it is served",
    "negotiation-fallback": "initialize answers the newest revision of its era if the requested one is not served",
    "server-info": "initialize states name and version of the server, its capabilities and its instructions",
    "tools-capability": "the tools capability is declared, and no other",
    "no-session": "no session id is issued, and one that a client sends is ignored",
    "initialized": "notifications are answered 202 without a body",
    "posted-response": "a response that a client posts is answered 202 without a body",
    "ping": "ping is answered with an empty result",
    "unknown-method": "an unknown method is error -32601",
    "version-header": "an unsupported version header is HTTP 400",
    "bad-params": "parameters that are not an object are error -32602",
    "list-order": "tools/list is sorted and the same each time",
    "list-cursor": "a cursor that no answer held is error -32602",
    "annotations": "each tool states its four hints",
    "call-text": "a tool's answer is text content that holds JSON",
    "call-error": "a tool's refusal is a result with isError and the envelope as text",
    "unknown-tool": "an unknown tool is error -32602",
    "absent-arguments": "absent and null arguments are an empty object",
    "official-client": "the official SDK's client lists and calls tools over HTTP",
}

REQUIREMENTS: dict[str, dict[str, str]] = {
    "2025-03-26": {
        **_COMMON_TO_LEGACY,
        "assumed": "a request without a version header is of this revision",
        "no-batch": "a batch is refused with one error (its support is left out, as documented)",
        "no-later-fields": "title, outputSchema and structuredContent, which came later, are left out",
    },
    "2025-06-18": {
        **_COMMON_TO_LEGACY,
        "no-batch": "a batch is refused with one error",
        "structured": "a success has structuredContent that equals its text and fits the tool's outputSchema",
        "titles": "tools and server have a title",
    },
    "2025-11-25": {
        **_COMMON_TO_LEGACY,
        "no-batch": "a batch is refused with one error",
        "structured": "a success has structuredContent that equals its text and fits the tool's outputSchema",
        "titles": "tools and server have a title",
        "argument-errors": "wrong arguments are a tool's refusal, not a protocol error",
        "origin-403": "a bad Origin is HTTP 403",
    },
    "2026-07-28": {
        "no-batch": "a batch is refused with one error",
        "envelope": "a request without the version or the capabilities in _meta is -32602 with HTTP 400",
        "envelope-shape": "capabilities and client info of the wrong shape are -32602 with HTTP 400",
        "headers": "headers that are missing or differ from the body are -32020 with HTTP 400",
        "name-sentinel": "Mcp-Name may be wrapped in base64 and is decoded before it is compared",
        "unsupported-version": "an unsupported version is -32022 with HTTP 400, with the supported ones and the requested one",
        "ladder-order": "the checks run in the order envelope, headers, version, method",
        "oracle": "a broken request gets the code and the HTTP status that the official SDK gives it",
        "unknown-method": "an unknown method is -32601 with HTTP 404",
        "gone": "initialize, ping and what else the revision dropped are unknown methods",
        "unsupported-features": "resources, prompts and subscriptions, which are not served, are unknown methods",
        "discover": "server/discover states versions, capabilities and instructions",
        "result-type": "each result says that it is complete",
        "server-info": "each result identifies the server in _meta",
        "cache-hints": "tools/list and server/discover say how long and for whom they may be kept",
        "list-order": "tools/list is sorted and the same each time",
        "list-cursor": "a cursor that no answer held is -32602",
        "annotations": "each tool states its four hints",
        "structured": "a success has structuredContent that equals its text and fits the tool's outputSchema",
        "call-error": "a tool's refusal is a result with isError and the envelope as text",
        "argument-errors": "wrong arguments are a tool's refusal, not a protocol error",
        "unknown-tool": "an unknown tool is -32602 with HTTP 400",
        "absent-arguments": "absent and null arguments are an empty object",
        "notification": "a notification is answered 202 without a body, one of an unknown version is refused",
        "posted-response": "a posted response is refused",
        "internal-error": "an unforeseen exception is -32603 with HTTP 200 and without its text",
        "no-session": "no session id is issued, and one that a client sends is ignored",
        "official-client": "the official SDK's client discovers, lists and calls tools over HTTP",
        "fastmcp-client": "fastmcp's client lists and calls tools over HTTP",
    },
    "http": {
        "405": "every method but POST and OPTIONS is 405 with Allow: POST, before authentication",
        "options": "OPTIONS does not name GET, and answers a preflight to allowed origins only",
        "origin": "an Origin may be absent, must be allowed if present, else 403",
        "401": "no, a bad or a revoked key is 401 with WWW-Authenticate: Bearer, before the body is read",
        "key-headers": "the key comes from Authorization: Bearer or X-API-Key, never from the URL",
        "identity-down": "an identity store that is down is 503, retryable",
        "413": "a body over the limit is 413, and is not read to its end",
        "415": "a content type other than JSON in UTF-8 is 415, a charset parameter is understood",
        "406": "Accept is read liberally, and refused only if it excludes JSON",
        "parse-error": "what is not JSON is -32700 with id null and HTTP 400",
        "invalid-request": "JSON that is no message is -32600 and HTTP 400",
        "ids": "ids are strings or integers",
        "surrogates": "lone surrogates in any string are answered, not crashed on",
        "json-only": "every answer is JSON, never a stream",
        "headers": "answers carry content type, no-store and a correlation id",
        "internal-error": "an unforeseen exception never shows its text",
        "routes": "each tool is a plain route",
        "healthz": "health needs no key, and says 503 while a store fails",
        "shutdown": "SIGTERM finishes the running calls and ends with 0",
        "port-in-use": "a port in use is an OSError",
    },
    "stdio": {
        "legacy": "initialize negotiates, and the revision holds for what follows",
        "stateless": "a request with an envelope is served without headers",
        "parse-error": "an invalid line is -32700, and the next one is served",
        "long-line": "a line over the limit is refused, and the next one is served",
        "concurrent": "requests run at once and are answered as they finish",
        "cancelled": "a cancelled request is not answered",
        "eof": "the end of input lets running requests finish, and ends with 0",
        "sigterm": "SIGTERM ends with 0",
        "clean-stdout": "nothing but messages reaches standard output",
        "key": "the key is checked for each request",
        "utf-8": "text beyond ASCII goes through, and no line separator splits a message",
        "official-client": "the official SDK's client lists and calls tools in both eras",
    },
}


def expand(name: str) -> list[str]:
    """The requirements that a marker's argument stands for."""
    group, _, rest = name.partition("/")
    return [f"{revision}/{rest}" for revision in LEGACY] if group == "2025" else [name]


def all_ids() -> set[str]:
    """Every requirement, as ``group/name``."""
    return {f"{group}/{name}" for group, entries in REQUIREMENTS.items() for name in entries}
