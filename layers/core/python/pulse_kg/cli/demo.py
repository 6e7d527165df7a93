"""`pulse-kg demo`: a real decision history goes through a real server, and everything that is shown is checked.

It makes a store of its own, serves it as `pulse-kg serve` does, and talks to it as agents do, over MCP. On the served stores it makes
boards of its own, and erases them at the end.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from pulse_kg.bootstrap import embedder_of, open_container
from pulse_kg.cli.client import REVISION, McpClient, ProtocolFailure
from pulse_kg.cli.client_tools import Refused, Tools
from pulse_kg.cli.demo_graph import check_graph, read_graph
from pulse_kg.cli.demo_server import ServerFailed, last_words, serving
from pulse_kg.cli.demo_view import Screen, Silence
from pulse_kg.cli.output import write_json
from pulse_kg.cli.story import AUTHOR, BOARD, SECOND, documents
from pulse_kg.cli.story_ask import Asker
from pulse_kg.cli.story_run import Checks, Story
from pulse_kg.cli.story_team import record, team_of
from pulse_kg.errors import InvalidArgument, Problem
from pulse_kg.mcp.host import TOOL_PREFIX
from pulse_kg.settings import Settings
from pulse_kg.usecases.boards import create_board, erase_board
from pulse_kg.usecases.identity import create_agent, revoke_agent

_PRESET: Final = "Spec"
_BEYOND: Final = {AUTHOR: ("kg.power.cypher",)}
"""Agent → what it may do beyond the preset."""
_WRITE_TOOLS: Final = (
    "begin_consolidation",
    "add_node_candidate",
    "add_edge_candidate",
    "get_similar_nodes",
    "propose_reconciliation",
    "commit_consolidation",
    "abort_consolidation",
)
_READ_TOOLS: Final = (
    "get_decision_history",
    "get_related_context",
    "get_supersedence_chain",
    "find_contradictions",
    "find_similar_decisions",
    "explain_constraint",
    "list_alternatives",
    "get_learning_from_bugs",
    "query_global",
    "query_natural",
    "schema_info",
    "verify_grounding",
    "query_reflective",
    "query_cypher",
)

_NEXT: Final = (
    ("pulse-kg boards create web", "a board of yours"),
    ("pulse-kg agents create ann --preset Spec --board web", "shows a key once"),
    ("export PULSE_KG_API_KEY=pk_…", "for call and ingest"),
    ("pulse-kg serve", "MCP, for any key"),
)


def run_demo(
    *, as_json: bool, keep: Path | None = None, settings: Settings | None = None, monotonic: Callable[[], float] = time.monotonic
) -> int:
    """Plays the demo.

    Args:
        as_json: Whether one JSON document is all that is written on standard output.
        keep: Where to leave the store for the reader to explore; without it, it is removed.
        settings: Where the embedding model is, and `aws` for the served stores; the other settings are the demo's own.
        monotonic: Seconds of a clock that only goes forward.

    Returns:
        The exit code: 0 if every check holds.

    Raises:
        InvalidArgument: There is something at `keep` already.
        StoreUnavailable: The embedding model is not there.
    """
    started = monotonic()
    if keep is not None and (keep.exists() or not keep.absolute().parent.is_dir()):
        raise InvalidArgument(
            "The store can't be kept there.",
            [Problem("keep", f"{keep} " + ("is there already: name a new file" if keep.exists() else "must be in a folder that exists"))],
        )
    given = settings or Settings()
    served = given.sqlite_path is None
    if served and keep is not None:
        raise InvalidArgument("Only a store of the demo's own can be kept.", [Problem("keep", "it goes with the embedded store")])
    screen = None if as_json else Screen()
    checks = Checks()
    document: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="pulse-kg-demo-") as folder:
        store, log = keep or Path(folder) / "demo.db", Path(folder) / "server.log"
        own = Settings(
            store=given.store if served else f"sqlite:{store}", model_dir=given.model_dir, embedder_threads=given.embedder_threads
        )
        embedder_of(own).info()  # before anything is made: without the model there is no story
        try:
            with _guest(own, checks) if served else nullcontext(BOARD) as board:
                document = _play(own, board, log, screen, checks)
        except (Refused, ProtocolFailure, OSError) as error:
            words = f" The server's last words: {last_words(log)}" if log.exists() else ""
            checks.expect("The demo comes to its end.", holds=False, seen=f"{error}{words}")
        except ServerFailed as error:
            checks.expect("The server starts and stops.", holds=False, seen=str(error))
    seconds = round(monotonic() - started, 1)
    if screen is not None:
        screen.end(checks, f"{document.get('mcp_requests', 0)} MCP requests, {seconds:.1f} s.", _next_steps())
        if keep is not None and not checks.failures:
            screen.line(f"The store is kept: pulse-kg --store sqlite:{keep} audit {BOARD}")
    else:
        shown = [{"check": what, "holds": holds} for what, holds in checks.done]
        write_json({"ok": not checks.failures, "seconds": seconds, **document, "checks": shown})
    return 1 if checks.failures else 0


def _next_steps() -> list[tuple[str, str]]:
    activate = Path(sys.prefix) / "bin" / "activate"
    if shutil.which("pulse-kg") is not None or not activate.is_file():
        return list(_NEXT)
    # From the checkout's root; from bin itself it would be a word that the shell looks for on the PATH.
    root = Path(sys.prefix).parent
    shown = activate.relative_to(root) if Path.cwd() == root else activate
    return [(f". {shlex.quote(str(shown))}", "puts it on the PATH"), *_NEXT]


@contextmanager
def _guest(settings: Settings, checks: Checks) -> Iterator[str]:
    """Two boards of the demo's own on stores that have others; they are erased at the end, and their agents are revoked."""
    board = f"demo_{secrets.token_hex(6)}"
    try:
        yield board
    finally:
        with closing(open_container(settings)) as container:
            now = container.clock.now()
            for name in (AUTHOR, SECOND):
                with suppress(InvalidArgument):  # it broke off before the agent was made
                    revoke_agent(_named(name, board), identity=container.identity, now=now)
            for made in (board, team_of(board)):
                with suppress(InvalidArgument):  # it broke off before the board was made
                    left = erase_board(made, boards=container.boards, now=now)
                    checks.expect("A board of the demo is erased, to its last trace.", holds=not any(left.values()), seen=dict(left))


def _named(name: str, board: str) -> str:
    return name if board == BOARD else f"{name}_of_{board}"


def _play(settings: Settings, board: str, log: Path, screen: Screen | None, checks: Checks) -> dict[str, Any]:
    """From the first board to the last check; what it answers is the demo's document."""
    texts = documents()
    if screen is not None:
        screen.opening(_opening(len(texts)))
    keys = _prepare(settings, board)
    with serving(settings, log) as server:
        clients = {name: McpClient(server.url, key) for name, key in keys.items()}
        if screen is not None:
            screen.line(f"The server listens on {server.url}; protocol revision {REVISION}.")
        _check_server(clients[AUTHOR], checks)
        story = Story(board, {name: Tools(client.call) for name, client in clients.items()}, texts, screen or Silence(), checks)
        story.play()
        with closing(open_container(settings)) as container:
            graph = read_graph(container, board, story.names(), story.override_row)
        if screen is not None:
            screen.graph(graph)
            screen.questions()
        asker = Asker(
            board=board,
            team=team_of(board),
            ask_as=clients[AUTHOR].call,
            ask_as_guest=clients[SECOND].call,
            documents=texts,
            node_of=story.node_of,
            statement_of=record(team_of(board), Tools(clients[AUTHOR].call), checks),
            listener=screen or Silence(),
            checks=checks,
        )
        asker.ask_all()
    with closing(open_container(settings)) as container:
        check_graph(container, board, texts, story.node_of, story.commits, checks)
        missing = set(_READ_TOOLS) - {told.tool for told in asker.told}
        checks.expect("Every tool that reads was asked.", holds=not missing, seen=sorted(missing))
    if screen is not None:
        screen.audit(graph.row, story.names())
    return {
        "server": server.url,
        "protocol": REVISION,
        "board_id": board,
        "mcp_requests": sum(client.requests for client in clients.values()),
        "commits": story.commits,
        "sessions": [asdict(told) for told in story.told],
        "graph": {"counts": graph.counts, "decisions": [asdict(branch) for branch in reversed(graph.branches)]},
        "answers": [asdict(told) for told in asker.told],
        "audit_row": graph.row,
    }


def _prepare(settings: Settings, board: str = BOARD) -> dict[str, str]:
    """Makes the store, the two boards and the agents, of whom the second sees one board alone; gives the key of each agent."""
    with closing(open_container(settings, create=True)) as container:
        now = container.clock.now()
        create_board(board, "How Python packaging came to be", boards=container.boards, now=now)
        create_board(team_of(board), "A team that builds an installer", boards=container.boards, now=now)
        granted = {AUTHOR: [board, team_of(board)], SECOND: [board]}
        return {
            name: create_agent(
                _named(name, board),
                _PRESET,
                boards,
                _BEYOND.get(name, ()),
                identity=container.identity,
                boards=container.boards,
                ids=container.ids,
                now=now,
            ).api_key
            for name, boards in granted.items()
        }


def _check_server(client: McpClient, checks: Checks) -> None:
    versions = client.discover()["supportedVersions"]
    checks.expect(f"The server speaks revision {REVISION}.", holds=REVISION in versions, seen=versions)
    offered = {tool["name"].removeprefix(TOOL_PREFIX) for tool in client.tools()}
    for kind, tools in (("write", _WRITE_TOOLS), ("read", _READ_TOOLS)):
        missing = sorted(set(tools) - offered)
        checks.expect(f"The catalogue has the tools that {kind}.", holds=not missing, seen=missing)


def _opening(number: int) -> list[str]:
    return [
        "A memory of decisions for coding agents: what was decided, what replaced it, what was rejected, and why.",
        f"You are about to see it learn from {number} real documents how Python packaging came to be what it is. A server starts on this "
        f"machine with an empty store. Two agents, {AUTHOR} and {SECOND}, read the documents in the order in which they were written and "
        "record them over MCP: a session states what a document decided, hears what the server makes of it (ADD, UPDATE, SUPERSEDE or "
        "NOOP, and why), and commits.",
        "Then the board is asked: why, since when, instead of what, what contradicts it, and whether a drafted answer is what it says.",
        "The reasons and numbers are the server's answers. At the end everything is checked, and the store is removed.",
    ]
