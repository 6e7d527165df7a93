"""`pulse-kg serve` as a process: what it prints, how it starts from nothing, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Shell

KEY = re.compile(r"pk_[a-z2-7]{8}_[a-z2-7]{52}")
BEGIN = {"board_id": "default", "source_type": "spec", "source_id": "s1", "source_version": 1}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@contextmanager
def serving(shell: Shell, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "pulse_kg.cli.main", "--store", f"sqlite:{shell.store}", "serve", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PULSE_KG_")}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**kept, "PULSE_KG_EMBEDDER": "hashing", **variables}
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(stream: Any) -> str:
    line: str = stream.readline()
    return line.rstrip("\n")


def post(url: str, body: object, key: str | None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", **({"X-API-Key": key} if key else {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - a URL of this test
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_from_nothing_it_makes_a_store_a_board_and_an_agent_whose_key_works(shell: Shell) -> None:
    with serving(shell, "--init", "--port", "0") as process:
        line = line_of(process.stdout)
        url = re.fullmatch(r"Pulse KG listens on (http://127\.0\.0\.1:\d+)/mcp", line)
        assert url, line
        assert line_of(process.stderr) == f"Made the board default in the new store {shell.store}."
        told = line_of(process.stderr)
        key = KEY.search(told)
        assert key, told
        with urllib.request.urlopen(f"{url[1]}/healthz") as response:  # noqa: S310
            assert response.status == 200
        assert post(f"{url[1]}/tools/begin_consolidation", BEGIN, key[0])[0] == 200
        assert post(f"{url[1]}/tools/begin_consolidation", BEGIN, None)[0] == 401
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")


def test_at_level_debug_no_line_of_the_log_has_a_key(shell: Shell) -> None:
    key = shell.done("boards", "create", "web") and shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")["api_key"]
    with serving(shell, "--port", "0", PULSE_KG_LOG_LEVEL="DEBUG") as process:
        url = re.fullmatch(r"Pulse KG listens on http://127\.0\.0\.1:(\d+)/mcp", line_of(process.stdout))
        assert url
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        with socket.create_connection(("127.0.0.1", int(url[1])), timeout=30) as connection:
            connection.sendall(f"GET /mcp HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n{upgrade}\r\n\r\n".encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 405 ")
        assert post(f"http://127.0.0.1:{url[1]}/tools/begin_consolidation", {**BEGIN, "board_id": "web"}, key)[0] == 200
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert process.returncode == 0
    assert "DEBUG" in err  # it does log at that level
    assert key not in err


def test_init_again_makes_nothing_and_tells_no_key(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    shell.done("agents", "create", "ann", "--preset", "QA", "--board", "web")
    with serving(shell, "--init", "--port", "0") as process:
        line_of(process.stdout)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert err == ""
    assert [b["board_id"] for b in shell.done("boards", "list")["boards"]] == ["web"]
    assert [a["name"] for a in shell.done("agents", "list")["agents"]] == ["ann"]


def test_the_first_agent_is_granted_the_boards_that_are_there(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    with serving(shell, "--init", "--port", "0") as process:
        line_of(process.stdout)
    made = shell.done("agents", "show", "admin")
    assert (made["boards"], made["preset"]) == (["web"], "Full Control")


def test_with_json_it_prints_one_document_when_it_listens(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    with serving(shell, "--port", "0", "--json") as process:
        shown = json.loads(line_of(process.stdout))
        assert shown["listening"] == f"http://127.0.0.1:{shown['port']}/mcp"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")


def test_a_port_in_use_is_refused(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = shell.run("serve", "--port", str(port), "--json")
    assert ran.code == 1
    assert "in use" in ran.error["message"]


def test_a_host_that_is_not_this_machine_s_is_refused(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    ran = shell.run("serve", "--host", "203.0.113.1", "--port", "0")
    assert ran.code == 1
    assert "can't be bound" in ran.err
    assert "beyond this machine" in ran.err


def test_without_init_a_missing_store_is_not_made(shell: Shell) -> None:
    with serving(shell) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert "pulse-kg boards create" in err
    assert not shell.store.exists()


def ask(process: subprocess.Popen[str], number: int, method: str, params: dict[str, Any]) -> Any:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    process.stdin.flush()
    return json.loads(line_of(process.stdout))


def test_over_the_standard_streams_it_speaks_mcp_and_nothing_else(shell: Shell) -> None:
    shell.done("boards", "create", "default")
    key = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "default")["api_key"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with serving(shell, "--stdio", PULSE_KG_API_KEY=key) as process:
        assert ask(process, 1, "initialize", hello)["result"]["serverInfo"]["name"] == "pulse-kg"
        answer = ask(process, 2, "tools/call", {"name": "okto_pulse_kg_begin_consolidation", "arguments": BEGIN})
        assert answer["result"]["structuredContent"]["session_id"].startswith("kgs_")
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")


def test_over_the_standard_streams_a_key_file_opens_the_agent(shell: Shell) -> None:
    shell.done("boards", "create", "default")
    key = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "default")["api_key"]
    file = shell.folder / "key"
    file.write_text(key, encoding="ascii")
    with serving(shell, "--stdio", "--key-file", str(file)) as process:
        assert "result" in ask(process, 1, "tools/list", {})


@pytest.mark.parametrize(("key", "words"), [("", "No API key."), ("pk_wrong", "The key in PULSE_KG_API_KEY is not valid")])
def test_over_the_standard_streams_a_key_that_is_none_is_told_at_the_start(shell: Shell, key: str, words: str) -> None:
    shell.done("boards", "create", "default")
    with serving(shell, "--stdio", PULSE_KG_API_KEY=key) as process:
        told = line_of(process.stderr)
        assert ask(process, 1, "tools/list", {})["error"]["code"] == 401
    assert told.startswith(words)
    assert told.endswith("Until then every request is refused.")
