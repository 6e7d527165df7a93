"""The official SDK's client and fastmcp's, against a real server and a real process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import fastmcp
import httpx2
import mcp_types as types
import pytest
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from pulse_kg.mcp.asgi import create_app
from tests.protocol.fakes import BROKEN, ECHO, KEY, REFUSE, SLOW, FakeHost, fake_edge
from tests.protocol.processes import COMMAND, ENVIRONMENT, ROOT
from tests.protocol.requirements import LEGACY
from tests.support.http_server import serve_in_thread

NAMES = sorted([BROKEN, ECHO, REFUSE, SLOW])
HEADERS = {"authorization": f"Bearer {KEY}"}
MODES = [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]


@pytest.fixture
def url(host: FakeHost) -> Iterator[str]:
    with serve_in_thread(create_app(fake_edge(host))) as base:
        yield f"{base}/mcp"


@asynccontextmanager
async def sdk_client(url: str, mode: str, headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=HEADERS if headers is None else headers) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
    ):
        yield client


async def use(client: Client) -> None:
    """Lists, calls, is refused, and names a tool that there is not."""
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == NAMES
    result = await client.call_tool(ECHO, {"text": "grüße"})
    assert result.is_error is False
    assert result.structured_content == {"text": "grüße", "length": 5}
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    assert json.loads(block.text) == result.structured_content
    refused = await client.call_tool(REFUSE, {})
    assert refused.is_error is True
    (block,) = refused.content
    assert isinstance(block, types.TextContent)
    assert json.loads(block.text)["error"]["code"] == "session_not_found"
    with pytest.raises(MCPError) as unknown:
        await client.call_tool("nope", {})
    assert unknown.value.code == -32602


@pytest.mark.requirement("2025-11-25/official-client", "2026-07-28/official-client")
@pytest.mark.parametrize(("mode", "version"), MODES)
def test_the_official_client_works_in_either_era(url: str, mode: str, version: str) -> None:
    async def run() -> None:
        async with sdk_client(url, mode) as client:
            assert client.protocol_version == version
            await use(client)
            if mode != "2026-07-28":  # a pinned version asks nobody who the server is
                assert client.server_info is not None
                assert (client.server_info.name, client.server_info.title) == ("fake", "A fake")
                assert client.server_capabilities.tools is not None
                assert client.server_capabilities.resources is None

    anyio.run(run)


@pytest.mark.requirement("2025/official-client")
@pytest.mark.parametrize("revision", LEGACY)
def test_the_official_client_works_in_each_revision_that_initialize_negotiates(url: str, revision: str) -> None:
    """The client always asks for its newest; asking for an older one by hand makes it go on in that one."""

    async def run() -> None:
        async with (
            httpx2.AsyncClient(headers=HEADERS) as http_client,
            streamable_http_client(url, http_client=http_client) as streams,
            ClientSession(*streams) as session,
        ):
            info = types.Implementation(name="tests", version="0")
            params = types.InitializeRequestParams(protocol_version=revision, capabilities=types.ClientCapabilities(), client_info=info)
            session.adopt(await session.send_request(types.InitializeRequest(params=params), types.InitializeResult))
            await session.send_notification(types.InitializedNotification())
            assert session.protocol_version == revision
            assert [tool.name for tool in (await session.list_tools()).tools] == NAMES
            result = await session.call_tool(ECHO, {"text": "x"})
            assert isinstance(result, types.CallToolResult)
            assert result.structured_content == (None if revision == "2025-03-26" else {"text": "x", "length": 1})
            await session.send_ping()

    anyio.run(run)


@pytest.mark.requirement("http/401")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_gives_up_on_a_bad_key(url: str, host: FakeHost, mode: str) -> None:
    """It shows nothing of the body of a 401, so there is no more to assert of it than that it ends."""

    async def run() -> None:
        async with sdk_client(url, mode, {"authorization": "Bearer pk_wrong"}):
            pass

    with pytest.raises(ExceptionGroup) as refused:
        anyio.run(run)
    leaf: BaseException = refused.value
    while isinstance(leaf, BaseExceptionGroup):
        (leaf,) = leaf.exceptions
    assert isinstance(leaf, MCPError)
    assert host.calls == []


@pytest.mark.requirement("stdio/official-client")
@pytest.mark.parametrize(("mode", "version"), MODES)
def test_the_official_client_works_over_stdio(mode: str, version: str) -> None:
    async def run() -> None:
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "stdio"], env=ENVIRONMENT, cwd=ROOT)
        async with Client(server, mode=mode) as client:
            assert client.protocol_version == version
            await use(client)

    anyio.run(run)


@pytest.mark.requirement("2026-07-28/fastmcp-client")
@pytest.mark.parametrize(("mode", "version"), MODES)
def test_fastmcps_client_works_in_either_era(url: str, mode: str, version: str) -> None:
    anyio.run(_use_fastmcp, StreamableHttpTransport(url, headers=HEADERS), mode, version)


@pytest.mark.parametrize(("mode", "version"), MODES)
def test_fastmcps_client_works_over_stdio(mode: str, version: str) -> None:
    transport = StdioTransport(COMMAND[0], [*COMMAND[1:], "stdio"], env=ENVIRONMENT, cwd=str(ROOT), keep_alive=False)
    anyio.run(_use_fastmcp, transport, mode, version)


async def _use_fastmcp(transport: Any, mode: str, version: str) -> None:
    async with fastmcp.Client(transport, mode=mode) as client:
        assert client.protocol_version == version
        assert [tool.name for tool in await client.list_tools()] == NAMES
        result = await client.call_tool(ECHO, {"text": "x"})
        assert result.structured_content == {"text": "x", "length": 1}
        refused = await client.call_tool(REFUSE, {}, raise_on_error=False)
        assert refused.is_error is True
        assert json.loads(refused.content[0].text)["error"]["code"] == "session_not_found"
