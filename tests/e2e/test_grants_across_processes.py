"""A key or a grant that one process takes away or gives is gone or there in another that knew it otherwise, within a minute."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulse_kg.bootstrap import IDENTITY_SECONDS
from tests.support.cli import Shell

LIMIT_SECONDS = 60.0
"""How long a change may take to be known everywhere."""
POLL_SECONDS = 0.5


@dataclass
class Town:
    """A store with two boards that say something about webhooks, and who serves it.

    Attributes:
        run: Runs a command of another process's on the store; gives its JSON document.
        url: Where the tools are served.
        keys: Key by the name of its agent.
    """

    run: Callable[..., Any]
    url: str
    keys: Mapping[str, str]

    def post(self, agent: str, tool: str, **arguments: Any) -> tuple[int, Any]:
        """A call through the process that serves."""
        headers = {"Authorization": f"Bearer {self.keys[agent]}"}
        answer = httpx.post(f"{self.url}/tools/{tool}", json=arguments, headers=headers, timeout=30)
        return answer.status_code, answer.json()

    def seen_by(self, agent: str) -> tuple[int, list[str]]:
        """The status of a search of all boards, and the boards whose nodes it finds."""
        status, answer = self.post(agent, "query_global", query="webhooks")
        boards = sorted({hit["board_id"] for hit in answer.get("results", ())})
        assert status != 200 or answer["boards_searched"] == len(boards)
        return status, boards

    def history_on(self, agent: str, board: str) -> int:
        """The status of a read of one board."""
        return self.post(agent, "get_decision_history", board_id=board, topic="webhooks")[0]


@contextmanager
def served(store: str, variables: Mapping[str, str]) -> Iterator[str]:
    """`pulse-kg serve` as a process of its own; yields its address."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PULSE_KG_", "AWS_"))}
    command = [sys.executable, "-m", "pulse_kg.cli.main", "--store", store, "serve", "--port", "0"]
    environment = {**inherited, "PULSE_KG_EMBEDDER": "hashing", **variables}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            listens = re.fullmatch(r"Pulse KG listens on (http://127\.0\.0\.1:\d+)/mcp", line)
            assert listens, line
            yield listens[1]
        finally:
            process.kill()


@contextmanager
def town(store: str, shell: Shell) -> Iterator[Town]:
    """Two boards, five agents, and a server that answered each of them once."""

    def run(*arguments: str, **more: str) -> Any:
        ran = shell.bare("--store", store, *arguments, "--json", **more)
        assert ran.code == 0, (ran.out, ran.err)
        return ran.json

    for board in ("alpha", "beta"):
        run("boards", "create", board)
    boards = {"revoked": "ab", "rotated": "ab", "gone": "ab", "denied": "ab", "granted": "a", "flagless": "ab"}
    keys = {}
    for name, letters in boards.items():
        named = [option for board in ("alpha", "beta") if board[0] in letters for option in ("--board", board)]
        keys[name] = run("agents", "create", name, "--preset", "Full Control", *named)["api_key"]

    def call(tool: str, **arguments: Any) -> Any:
        return run("call", tool, json.dumps(arguments), PULSE_KG_API_KEY=keys["revoked"])

    for board in ("alpha", "beta"):
        begun = call("begin_consolidation", board_id=board, source_type="spec", source_id="spec_1", source_version=1)
        call("add_node_candidate", session_id=begun["session_id"], node_type="Decision", title="Webhooks are retried")
        call("commit_consolidation", session_id=begun["session_id"])
    with served(store, shell.variables) as url:
        made = Town(run, url, keys)
        for name, letters in boards.items():
            assert made.seen_by(name) == (200, [board for board in ("alpha", "beta") if board[0] in letters])
        yield made


def until(expected: Mapping[str, Any], look: Callable[[], Mapping[str, Any]], deadline: float) -> None:
    """Looks again and again until everything is as expected; fails at the deadline."""
    while True:
        found = look()
        if found == expected:
            return
        assert time.monotonic() < deadline, {name: (found[name], expected[name]) for name in expected if found[name] != expected[name]}
        time.sleep(POLL_SECONDS)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("store", ["embedded", pytest.param("served", marks=pytest.mark.served)])
def test_what_another_process_changes_is_known_within_a_minute(tmp_path: Path, store: str) -> None:
    if store == "embedded":
        _changes(f"sqlite:{tmp_path / 'team.db'}", Shell(tmp_path))
        return
    from tests.support.deployment import variables_of
    from tests.support.served import fresh_endpoints

    with fresh_endpoints() as endpoints:
        _changes("aws", Shell(tmp_path, variables_of(endpoints)))


def _changes(store: str, shell: Shell) -> None:
    with town(store, shell) as made:
        deadline = time.monotonic() + LIMIT_SECONDS
        made.run("keys", "revoke", "revoked")
        new_key = made.run("keys", "rotate", "rotated")["api_key"]
        made.run("agents", "revoke", "gone")
        made.run("agents", "deny", "denied", "--board", "beta")
        made.run("agents", "grant", "granted", "--board", "beta")
        made.run("agents", "flags", "flagless", "-kg.query.global")

        def look() -> Mapping[str, Any]:
            names = ("revoked", "rotated", "gone", "denied", "granted", "flagless")
            seen: dict[str, Any] = {name: made.seen_by(name) for name in names}
            return seen | {f"{name} on beta": made.history_on(name, "beta") for name in names}

        expected = {
            "revoked": (401, []),
            "rotated": (401, []),
            "gone": (401, []),
            "denied": (200, ["alpha"]),
            "granted": (200, ["alpha", "beta"]),
            "flagless": (403, []),
            "revoked on beta": 401,
            "rotated on beta": 401,
            "gone on beta": 401,
            "denied on beta": 403,
            "granted on beta": 200,
            "flagless on beta": 200,
        }
        until(expected, look, deadline)
        made.keys = {**made.keys, "rotated": new_key}
        assert made.seen_by("rotated") == (200, ["alpha", "beta"])


def test_what_a_served_process_remembers_is_well_within_the_minute() -> None:
    assert 0 < IDENTITY_SECONDS <= LIMIT_SECONDS / 2
