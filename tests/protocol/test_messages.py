"""Bodies that are no message, and messages that are odd but valid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.fakes import ECHO, META, FakeHost, Wire, rpc, stateless_headers

NESTED_TOO_DEEP = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 100 + b"]" * 100 + b"}}"
VERSIONS = [None, "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


@pytest.mark.requirement("http/parse-error")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"{",
        b"not json",
        b'{"jsonrpc":"2.0",}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing',
        b"\xff\xfe{}",
        b'{"a": "\xff"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        NESTED_TOO_DEEP,
    ],
    ids=lambda body: repr(body[:30]),
)
def test_what_is_not_json_is_a_parse_error_with_id_null(wire: Wire, body: bytes, version: str | None) -> None:
    answer = wire.post(body, {"mcp-protocol-version": version})
    assert answer.status == 400
    assert answer.json["id"] is None
    assert answer.error["code"] == -32700


@pytest.mark.requirement("http/invalid-request")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "body",
    [
        1,
        "text",
        None,
        True,
        {},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"id": 1, "method": "ping"},
        {"jsonrpc": 2.0, "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "method": "notifications/initialized", "params": [1]},
        {"jsonrpc": "2.0", "method": 5},
    ],
    ids=str,
)
def test_json_that_is_no_message_is_an_invalid_request(wire: Wire, body: object, version: str | None) -> None:
    answer = wire.post(body, {"mcp-protocol-version": version})
    assert answer.status == 400
    assert answer.error["code"] == -32600


@pytest.mark.requirement("2025/no-batch", "2026-07-28/no-batch", "http/invalid-request")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("batch", [[], [rpc("ping")], [rpc("ping"), rpc("tools/list", id=2)]], ids=str)
def test_a_batch_is_one_error(wire: Wire, version: str | None, batch: list[Any]) -> None:
    answer = wire.post(batch, {"mcp-protocol-version": version})
    assert answer.status == 400
    assert (answer.json["id"], answer.error["code"]) == (None, -32600)


@pytest.mark.requirement("http/ids")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("request_id", [None, True, False, 1.5, 1.0, [], {}], ids=repr)
def test_ids_of_other_types_are_refused(wire: Wire, request_id: object, version: str | None) -> None:
    answer = wire.post(rpc("ping", id=request_id), {"mcp-protocol-version": version})
    assert answer.status == 400
    assert (answer.json["id"], answer.error["code"]) == (None, -32600)


@pytest.mark.requirement("http/ids", "http/surrogates")
@pytest.mark.parametrize("request_id", [0, -1, 2**53 + 1, 10**40, "", "1", "ü\u2028", "\ud800", "a\udfff"], ids=repr)
def test_strings_and_integers_are_echoed_exactly(wire: Wire, request_id: object) -> None:
    answer = wire.legacy("2025-11-25", "ping", id=request_id)
    assert answer.status == 200
    assert answer.json["id"] == request_id
    assert type(answer.json["id"]) is type(request_id)


@pytest.mark.requirement("http/surrogates")
@pytest.mark.parametrize("place", ["method", "name", "arguments", "version", "member"])
def test_a_lone_surrogate_anywhere_is_answered(wire: Wire, place: str) -> None:
    bad = "x\ud83d"
    body = {
        "method": rpc(bad),
        "name": rpc("tools/call", {"name": bad}),
        "arguments": rpc("tools/call", {"name": ECHO, "arguments": {"text": bad}}),
        "version": rpc("initialize", {"protocolVersion": bad}),
        "member": rpc("ping", {bad: bad}),
    }[place]
    answer = wire.post(body)
    assert answer.status == 200
    assert answer.json["id"] == 1
    answer.response.body.decode("utf-8")


def test_a_surrogate_in_the_text_of_an_answer_comes_back_as_it_was(wire: Wire) -> None:
    result = wire.legacy("2025-11-25", "tools/call", {"name": ECHO, "arguments": {"text": "x\ud83d"}}).result
    assert result["structuredContent"] == {"text": "x\ud83d", "length": 2}
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_a_byte_order_mark_is_passed_over(wire: Wire) -> None:
    assert wire.post(b"\xef\xbb\xbf" + json.dumps(rpc("ping")).encode()).status == 200


def test_nesting_below_the_limit_reaches_the_tool(wire: Wire, host: FakeHost) -> None:
    deep: object = 1
    for _ in range(90):
        deep = [deep]
    wire.legacy(None, "tools/call", {"name": ECHO, "arguments": {"deep": deep}})
    assert host.calls == [(ECHO, {"deep": deep})]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers() | st.text() | JSON,
        "method": st.sampled_from(["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/x"]) | JSON,
        "params": st.fixed_dictionaries(
            {},
            optional={
                "_meta": st.just(META) | JSON,
                "name": st.sampled_from(["okto_pulse_kg_echo", "nope"]) | JSON,
                "arguments": JSON,
                "cursor": JSON,
                "protocolVersion": JSON,
            },
        )
        | JSON,
    },
)


@given(body=MEMBERS | JSON, version=st.sampled_from(VERSIONS) | st.text(max_size=12), mirrored=st.booleans())
def test_any_json_gets_an_answer_and_never_an_internal_error(body: Any, version: str | None, mirrored: bool) -> None:
    headers: dict[str, str | None] = {"mcp-protocol-version": version}
    if mirrored and isinstance(body, dict) and isinstance(body.get("method"), str) and isinstance(body.get("params"), dict):
        headers = stateless_headers(body)
    answer = Wire(FakeHost()).post(body, headers)
    assert answer.status in (200, 202, 400, 404)
    if answer.status == 202:
        assert answer.response.body == b""
        return
    assert answer.json["jsonrpc"] == "2.0"
    assert ("result" in answer.json) != ("error" in answer.json)
    assert answer.json.get("error", {}).get("code") != -32603


@given(body=st.binary(max_size=300))
def test_any_bytes_get_an_answer(body: bytes) -> None:
    answer = Wire(FakeHost()).post(body)
    assert answer.status in (200, 202, 400)
