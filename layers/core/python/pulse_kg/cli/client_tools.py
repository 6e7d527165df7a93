"""The seven write tools as methods, over any way to call them: in process, or through an MCP client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pulse_kg.cli.client import Call
from pulse_kg.mcp.host import ToolOutcome

Sleep = Callable[[float], None]

_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_TRIES: Final = 5
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 120  # what a minute's limit can ask for; a longer wait is for a person to decide on


class Refused(Exception):
    """A tool's refusal.

    Attributes:
        tool: The tool's name, without the prefix.
        body: The envelope.
    """

    def __init__(self, tool: str, body: Mapping[str, Any]) -> None:
        self.tool = tool
        self.body = dict(body)
        super().__init__(f"{tool}: {self.code}: {self.message}")

    @property
    def code(self) -> str:
        """The contract's code."""
        return str(self.body["error"]["code"])

    @property
    def message(self) -> str:
        """What the tool says to do next."""
        return str(self.body["error"]["message"])

    @property
    def passing(self) -> bool:
        """Whether the same work may succeed when it is begun again: the store was away or busy, or others changed the board."""
        return bool(self.body["error"]["retryable"]) or self.code == "commit_conflict"


class Tools:
    """The write tools; a refusal is raised.

    Args:
        call: How a tool is called.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def begin(self, board_id: str, source_type: str, source_id: str, version: int, payload_hash: str) -> dict[str, Any]:
        """Opens a session, unless nothing changed."""
        return self._run(
            "begin_consolidation",
            {
                "board_id": board_id,
                "source_type": source_type,
                "source_id": source_id,
                "source_version": version,
                "payload_hash": payload_hash,
            },
        )

    def add_node(self, session_id: str, node: Mapping[str, Any]) -> str:
        """Adds a node and gives its candidate id."""
        return str(self._run("add_node_candidate", {"session_id": session_id, **node})["candidate_id"])

    def add_edge(
        self, session_id: str, src: Mapping[str, str], rel_type: str, dst: Mapping[str, str], attributes: Mapping[str, Any] | None = None
    ) -> str:
        """Adds an edge and gives its candidate id; each end is ``{"candidate_id": …}`` or ``{"node_id": …}``."""
        given = {"session_id": session_id, "src": dict(src), "rel_type": rel_type, "dst": dict(dst), "attributes": dict(attributes or {})}
        return str(self._run("add_edge_candidate", given)["edge_candidate_id"])

    def similar(self, session_id: str, candidate_id: str, k: int) -> dict[str, Any]:
        """The nodes that look like a candidate."""
        return self._run("get_similar_nodes", {"session_id": session_id, "candidate_id": candidate_id, "k": k})

    def propose(self, session_id: str) -> list[dict[str, Any]]:
        """A proposal for each node candidate."""
        proposals: list[dict[str, Any]] = self._run("propose_reconciliation", {"session_id": session_id})["proposals"]
        return proposals

    def commit(self, session_id: str, overrides: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Writes the session."""
        return self._run("commit_consolidation", {"session_id": session_id, "agent_overrides": [dict(o) for o in overrides]})

    def abort(self, session_id: str) -> dict[str, Any]:
        """Drops the session."""
        return self._run("abort_consolidation", {"session_id": session_id})

    @contextmanager
    def aborting(self, session_id: str) -> Iterator[None]:
        """Aborts the session where the block ends by an exception, an interrupt included."""
        finished = False
        try:
            yield
            finished = True
        finally:
            if not finished:
                # Without a look at the outcome: what ended the block is what the caller has to hear of.
                self._call("abort_consolidation", {"session_id": session_id})

    def _run(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        outcome = self._call(tool, arguments)
        if outcome.is_error:
            raise Refused(tool, outcome.body)
        return outcome.body


def patient(call: Call, sleep: Sleep, note: Callable[[str], None]) -> Call:
    """Waits where a refusal says that the same call may succeed later.

    A rate limit is waited for as long as it says, however often; another retryable refusal is tried a few times.

    Args:
        call: How a tool is called.
        sleep: Waits for so many seconds.
        note: Tells a person that there is a wait.
    """

    def patiently(tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        tries = 1
        while True:
            outcome = call(tool, arguments)
            wait = _wait_seconds(outcome, tries)
            if wait is None:
                return outcome
            if outcome.status != _TOO_MANY:
                tries += 1
            note(f"{outcome.body['error']['code']}: going on in {wait:g} s")
            sleep(wait)

    return patiently


def _wait_seconds(outcome: ToolOutcome, tries: int) -> float | None:
    if not outcome.is_error or not outcome.body["error"]["retryable"]:
        return None
    details = outcome.body["error"]["details"]
    if outcome.status == _TOO_MANY:
        wait = float(details.get("retry_after_seconds", _LONGEST_WAIT_SECONDS))
        # Too many open sessions end with somebody's commit or abort, or in an hour.
        return wait if wait <= _LONGEST_WAIT_SECONDS and "open_sessions" not in details else None
    if outcome.status == _UNAVAILABLE and tries < _TRIES:
        return float(_FIRST_PAUSE_SECONDS * 2 ** (tries - 1))
    return None
