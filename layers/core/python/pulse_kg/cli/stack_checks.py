"""Whether a local server does its work: each is asked something in its own protocol, with the standard library alone.

A check returns None for a server that answers as it should, else what is wrong, in one clause.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import socket
import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

HOST: Final = "127.0.0.1"
TIMEOUT_SECONDS: Final = 5.0

Check = Callable[[int], str | None]
"""Asks the server on a port."""

_WEBSOCKET_GUID: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_GRAPHSON: Final = b"application/vnd.gremlin-v3.0+json"
_FINAL_FRAME: Final = 0x80
_TEXT, _BINARY, _CONTINUED = 1, 2, 0
_CLOSE: Final = 8
_LENGTH_16, _LENGTH_64 = 126, 127
_SMALL: Final = 125  # bytes of a frame with a length of one byte
_SWITCHED: Final = 101
_OK: Final = 200
_NO_CONTENT: Final = 204
_LARGEST_ANSWER: Final = 1 << 20  # bytes
_SHOWN: Final = 200  # characters of what a server says of its trouble


def port_is_free(port: int) -> bool:
    """Whether a server could listen on a port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: what an ended connection left behind does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def check_ministack(port: int) -> str | None:
    """Asks the emulator for its health."""
    return _checked(lambda: _ministack(port))


def check_opensearch(port: int) -> str | None:
    """Asks for the health of the cluster, which must be green: every index is whole and can be searched."""
    return _checked(lambda: _opensearch(port))


def check_gremlin(port: int) -> str | None:
    """Counts the vertices of an id that nobody has, by the index: a request through the server, its schema and its store."""
    return _checked(lambda: _gremlin(port))


def _checked(ask: Callable[[], str | None]) -> str | None:
    try:
        return ask()
    except ConnectionRefusedError:
        return "nothing listens on its port"
    except TimeoutError:
        return f"no answer within {TIMEOUT_SECONDS:.0f} s"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"no proper answer ({type(error).__name__})"


def _get(port: int, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read(_LARGEST_ANSWER))
    finally:
        connection.close()


def _ministack(port: int) -> str | None:
    status, health = _get(port, "/_ministack/health")
    services = health.get("services") if isinstance(health, dict) else None
    if status != _OK or not isinstance(services, dict):
        return f"its health page answers {status}"
    missing = sorted({"dynamodb", "sqs"} - services.keys())
    return f"it does not offer {', '.join(missing)}" if missing else None


def _opensearch(port: int) -> str | None:
    _, health = _get(port, "/_cluster/health?wait_for_status=green&timeout=1s")
    colour = health.get("status") if isinstance(health, dict) else None
    if colour == "green":
        return None
    # One node never holds a replica, so an index that asks for one stays yellow.
    hint = " (an index with number_of_replicas above 0?)" if colour == "yellow" else ""
    return f"the cluster is {colour}{hint}" if colour else "its health page says nothing of the cluster"


def _gremlin(port: int) -> str | None:
    status = ask_gremlin(port, [["V"], ["has", "nid", ""], ["count"]])["status"]
    return None if status.get("code") in {_OK, _NO_CONTENT} else f"it refuses a query: {str(status.get('message'))[:_SHOWN]}"


def ask_gremlin(port: int, steps: Sequence[Sequence[object]]) -> dict[str, Any]:
    """Has a graph server run one traversal.

    Args:
        port: Its port.
        steps: Each a name and its arguments, in GraphSON 3.

    Returns:
        The first message of the answer, with ``status`` and ``result``.

    Raises:
        OSError, http.client.HTTPException, ValueError: It does not answer, or not as a graph server does.
    """
    request = {
        "requestId": {"@type": "g:UUID", "@value": str(uuid.uuid4())},
        "op": "bytecode",
        "processor": "traversal",
        "args": {"gremlin": {"@type": "g:Bytecode", "@value": {"step": steps}}, "aliases": {"g": "g"}},
    }
    connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_SECONDS)
    try:
        stream = _open_websocket(connection)
        _send(stream, bytes([len(_GRAPHSON)]) + _GRAPHSON + json.dumps(request).encode())
        answer = json.loads(_receive(stream))
    finally:
        connection.close()
    if not isinstance(answer, dict) or not isinstance(answer.get("status"), dict):
        raise ValueError("no answer of a graph server")  # noqa: TRY004 - the bytes are wrong, not a type
    return answer


def _open_websocket(connection: http.client.HTTPConnection) -> socket.socket:
    """The handshake of RFC 6455."""
    key = base64.b64encode(os.urandom(16)).decode()
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13"}
    connection.request("GET", "/gremlin", headers=headers)
    response = connection.getresponse()
    expected = base64.b64encode(hashlib.sha1((key + _WEBSOCKET_GUID).encode(), usedforsecurity=False).digest()).decode()
    if response.status != _SWITCHED or response.headers.get("Sec-WebSocket-Accept") != expected:
        raise http.client.HTTPException("no WebSocket")
    return connection.sock


def _send(stream: socket.socket, message: bytes) -> None:
    """Sends one binary message, masked as a client must."""
    mask = os.urandom(4)
    if len(message) <= _SMALL:
        head = struct.pack("!BB", _FINAL_FRAME | _BINARY, 0x80 | len(message))
    else:
        head = struct.pack("!BBH", _FINAL_FRAME | _BINARY, 0x80 | _LENGTH_16, len(message))
    stream.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(message)))


def _receive(stream: socket.socket) -> bytes:
    """The next message.

    Raises:
        ConnectionError: The server closed, or sent more than any answer of a check.
    """
    message = b""
    while True:
        first, second = _exactly(stream, 2)
        length = second & 0x7F
        if length == _LENGTH_16:
            (length,) = struct.unpack("!H", _exactly(stream, 2))
        elif length == _LENGTH_64:
            (length,) = struct.unpack("!Q", _exactly(stream, 8))
        if length > _LARGEST_ANSWER or (first & 0x0F) == _CLOSE:
            raise ConnectionError("closed, or too much")
        payload = _exactly(stream, length)
        if (first & 0x0F) in {_TEXT, _BINARY, _CONTINUED}:
            message += payload
            if first & _FINAL_FRAME:
                return message


def _exactly(stream: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = stream.recv(size - len(parts))
        if not part:
            raise ConnectionError("closed")
        parts += part
    return parts
