"""One websocket to a Gremlin server, used by one request at a time.

The driver's own client waits without limit for a free connection, can't give one request less time than another, and writes whole answers
to the log when the server refuses something. So this takes of the driver what makes bytes of a traversal and values of bytes, and of
aiohttp, on which the driver stands too, the websocket.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from pulse_kg.adapters.gremlin.errors import ConnectionLost, NotAllowed, NotReachable, ServerFault

if TYPE_CHECKING:
    import aiohttp

MAX_FRAME_BYTES: Final = 128 * 1024 * 1024
"""Of one frame of an answer: 256 elements of the largest size, and room."""

_DONE, _NO_CONTENT, _MORE = 200, 204, 206
_REFUSED_HANDSHAKE: Final = frozenset({401, 403})
_GOODBYE_SECONDS: Final = 0.1

_T = TypeVar("_T")


class Sink(Protocol):
    """Takes results as they come; a list is one."""

    def extend(self, results: list[Any], /) -> None:
        """The next results of a request."""
        ...


class Lane:
    """An open connection. Not for two threads at once, and not inside a running event loop: it has a loop of its own.

    Args:
        url: `ws://…` or `wss://…`.
        headers: Of the handshake.
        timeout: Seconds that opening it may take.

    Raises:
        NotReachable: No connection in that time.
        NotAllowed: The server refused the handshake.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float) -> None:
        from gremlin_python.driver.serializer import GraphBinarySerializersV1

        self._serializer = GraphBinarySerializersV1()
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._loop = asyncio.new_event_loop()
        try:
            self._run(self._connect(url, headers), timeout)
        except TimeoutError as error:
            self.close()
            raise NotReachable("no handshake in time") from error
        except BaseException:
            self.close()
            raise

    def ask(self, bytecode: Any, into: Sink, *, timeout: float) -> None:
        """Sends a traversal and hands over all of its results.

        After any error but ServerFault the lane is of no use any more, and the caller closes it.

        Args:
            bytecode: Of a traversal.
            into: Gets the results, some at a time; of a request that fails, perhaps some.
            timeout: Seconds until the last byte of the answer.

        Raises:
            ServerFault: The server refused.
            ConnectionLost: The connection ended.
            TimeoutError: The time was over.
        """
        from gremlin_python.driver.request import RequestMessage

        request_id = str(uuid.uuid4())
        message = RequestMessage("traversal", "bytecode", {"gremlin": bytecode, "aliases": {"g": "g"}})
        self._run(self._exchange(request_id, self._serializer.serialize_message(request_id, message), into), timeout)

    def close(self) -> None:
        """Ends the connection, whatever state it is in; waits a tenth of a second at most for the server to say goodbye."""
        if self._loop.is_closed():
            return
        try:
            self._loop.run_until_complete(self._disconnect())
        finally:
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, _T], timeout: float) -> _T:
        async def bounded() -> _T:
            async with asyncio.timeout(timeout):
                return await work

        task = self._loop.create_task(bounded())
        try:
            return self._loop.run_until_complete(task)
        finally:
            task.cancel()  # of no effect, unless a signal broke in: then the loop, which `close` runs once more, ends it

    async def _connect(self, url: str, headers: Mapping[str, str]) -> None:
        import aiohttp

        self._session = aiohttp.ClientSession()
        goodbye = aiohttp.ClientWSTimeout(ws_close=_GOODBYE_SECONDS)
        try:
            self._socket = await self._session.ws_connect(url, headers=headers, max_msg_size=MAX_FRAME_BYTES, timeout=goodbye)
        except aiohttp.WSServerHandshakeError as error:
            raise (NotAllowed if error.status in _REFUSED_HANDSHAKE else NotReachable)(str(error.status)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise NotReachable(type(error).__name__) from error

    async def _disconnect(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        if self._session is not None:
            await self._session.close()

    async def _exchange(self, request_id: str, request: bytes, into: Sink) -> None:
        if self._socket is None:
            raise ConnectionLost("never opened")
        try:
            await self._socket.send_bytes(request)
        except ConnectionError as error:
            raise ConnectionLost(type(error).__name__) from error
        while True:
            answer = self._answer(await self._socket.receive())
            if answer["requestId"] != request_id:
                raise ConnectionLost("the answer to another request")
            status = answer["status"]
            if status["code"] not in {_DONE, _NO_CONTENT, _MORE}:
                raise ServerFault(status["code"], status["message"], status["attributes"])
            if status["code"] != _NO_CONTENT:
                # Equal results come as one, with a number.
                into.extend([t.object for t in answer["result"]["data"] for _ in range(t.bulk)])
            if status["code"] != _MORE:
                return

    def _answer(self, frame: aiohttp.WSMessage) -> Any:
        import aiohttp

        if frame.type is not aiohttp.WSMsgType.BINARY:
            raise ConnectionLost(frame.type.name)
        return self._serializer.deserialize_message(frame.data)
