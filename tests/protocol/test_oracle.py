"""Broken requests of the stateless revision, judged by the official SDK's own validation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    decode_header_value,
    encode_header_value,
)
from mcp_types.methods import CLIENT_REQUESTS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from pulse_kg.mcp.headers import decode_sentinel
from pulse_kg.mcp.revisions import by_envelope, by_initialize, is_of_initialize_era, supported_names
from tests.protocol.fakes import ECHO, META, FakeHost, Wire, rpc, stateless_headers

VERSION = "io.modelcontextprotocol/protocolVersion"
SERVED = {"server/discover", "tools/list", "tools/call"}
METHODS = ["server/discover", "tools/list", "tools/call", "prompts/get", "resources/read", "ping", "initialize", "nope", "tools/List"]
VERSIONS = ["2026-07-28", "2025-11-25", "2024-11-05", "2099-01-01", ""]
NAMES = [ECHO, "nope", "värktyg", " padded ", "=?base64?eA==?="]


def expected(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, int] | None:
    """The code and the HTTP status that the SDK gives a request, or `None` if it would serve it."""
    verdict = classify_inbound_request(body, headers=headers)
    if isinstance(verdict, InboundLadderRejection):
        return verdict.code, ERROR_CODE_HTTP_STATUS[verdict.code]
    if body["method"] not in SERVED:
        return -32601, ERROR_CODE_HTTP_STATUS[-32601]
    return None


def meta_keys(body: dict[str, Any]) -> set[str]:
    meta = body["params"].get("_meta")
    return set(meta) if isinstance(meta, dict) else set()


def agree(body: dict[str, Any], headers: dict[str, str]) -> None:
    answer = Wire(FakeHost()).post(body, dict(headers))
    wanted = expected(body, headers)
    if wanted is None:
        assert answer.json.get("error", {}).get("code") in (None, -32602), (body, headers)
    else:
        assert (answer.error["code"], answer.status) == wanted, (body, headers)


ANY: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.just([]) | st.just({})
META_VALUES = st.fixed_dictionaries(
    {},
    optional={
        VERSION: st.sampled_from(VERSIONS) | ANY,
        "io.modelcontextprotocol/clientCapabilities": st.just({}) | ANY,
        "io.modelcontextprotocol/clientInfo": st.just(META["io.modelcontextprotocol/clientInfo"]) | ANY,
        "progressToken": ANY,
    },
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={"_meta": st.just(META) | META_VALUES | ANY, "name": st.sampled_from(NAMES) | ANY, "uri": st.just("x:y") | ANY},
)
# Only what a header can hold, so that a real server would see the same.
HEADER_TEXT = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=8)
HEADERS = st.fixed_dictionaries(
    # A header of the stateless era decides the era alone, for the SDK's server as for this one.
    {"mcp-protocol-version": st.just("2026-07-28") | st.sampled_from(["2099-01-01", "draft"])},
    optional={
        "mcp-method": st.sampled_from(METHODS) | HEADER_TEXT,
        "mcp-name": st.sampled_from(NAMES).map(encode_header_value) | st.just(ECHO) | HEADER_TEXT,
    },
)


@pytest.mark.requirement("2026-07-28/oracle")
@settings(max_examples=400)
@given(method=st.sampled_from(METHODS), params=PARAMS, headers=HEADERS)
def test_any_mixture_of_body_and_headers_gets_what_the_sdk_gives(method: str, params: dict[str, Any], headers: dict[str, str]) -> None:
    agree(rpc(method, params), headers)


@pytest.mark.requirement("2026-07-28/oracle")
@settings(max_examples=200)
@given(method=st.sampled_from(METHODS), params=PARAMS, wrong=st.sampled_from(["", "mcp-protocol-version", "mcp-method", "mcp-name"]))
def test_one_wrong_header_of_a_coherent_request_gets_what_the_sdk_gives(method: str, params: dict[str, Any], wrong: str) -> None:
    body = rpc(method, {"_meta": META, **params})
    headers = {"mcp-method": method, "mcp-protocol-version": "2026-07-28"}
    named = body["params"].get("uri" if method == "resources/read" else "name")
    if isinstance(named, str):
        headers["mcp-name"] = encode_header_value(named)
    headers.pop(wrong, None)
    # Without the header the era is the body's to say.
    if "mcp-protocol-version" in headers or VERSION in meta_keys(body):
        agree(body, headers)


@pytest.mark.requirement("2026-07-28/oracle")
@pytest.mark.parametrize("method", sorted({method for method, _ in CLIENT_REQUESTS}))
def test_every_method_of_the_protocol_is_served_or_404(wire: Wire, method: str) -> None:
    answer = wire.stateless(method, {"name": ECHO})
    exists = (method, "2026-07-28") in CLIENT_REQUESTS
    assert answer.status == (200 if method in SERVED else 404)
    assert exists or method not in SERVED


@pytest.mark.requirement("2026-07-28/name-sentinel", "2026-07-28/oracle")
@given(name=st.text(st.characters(exclude_categories=["Cs"])))
def test_what_the_sdk_wraps_is_read_back(name: str) -> None:
    assert decode_sentinel(encode_header_value(name)) == name


@pytest.mark.requirement("2026-07-28/name-sentinel")
@pytest.mark.parametrize(
    "value",
    [
        "=?base64??=",
        "=?base64?eA?=",
        "=?base64?eB==?=",
        "=?base64?/w==?=",
        "=?base64?e A==?=",
        "=?BASE64?eA==?=",
        "=?base64?eA==?= ",
    ],
)
def test_a_malformed_wrapper_means_what_it_means_to_the_sdk(value: str) -> None:
    assert decode_sentinel(value) == decode_header_value(value)


@pytest.mark.requirement("2026-07-28/oracle")
def test_the_revisions_are_those_of_the_sdk_but_the_first() -> None:
    assert set(supported_names()) == set(KNOWN_PROTOCOL_VERSIONS) - {"2024-11-05"}
    assert {name for name in KNOWN_PROTOCOL_VERSIONS if by_initialize(name)} == set(HANDSHAKE_PROTOCOL_VERSIONS) - {"2024-11-05"}
    assert {name for name in KNOWN_PROTOCOL_VERSIONS if by_envelope(name)} == set(MODERN_PROTOCOL_VERSIONS)
    assert {name for name in KNOWN_PROTOCOL_VERSIONS if is_of_initialize_era(name)} == set(HANDSHAKE_PROTOCOL_VERSIONS)


def test_the_oracle_itself_serves_a_good_request() -> None:
    body = rpc("tools/call", {"_meta": META, "name": ECHO})
    assert expected(body, {key: value for key, value in stateless_headers(body).items() if value}) is None
