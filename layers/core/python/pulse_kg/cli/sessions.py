"""`pulse-kg sessions`: consolidations in flight."""

from __future__ import annotations

import click

from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Group
from pulse_kg.cli.documents import moment, session_document
from pulse_kg.cli.output import Table, to_the_second
from pulse_kg.domain.ids import SESSION_ID
from pulse_kg.domain.text import brief
from pulse_kg.errors import Problem, SessionNotFound
from pulse_kg.usecases.boards import refused, require_board
from pulse_kg.usecases.identity import find_agent


class _NoSession(SessionNotFound):
    """There is no such session, for an administrator, who sees those of all agents."""

    def __init__(self, session_id: str) -> None:
        super().__init__()
        self.message = f"There is no session {session_id}. 'pulse-kg sessions list' shows the open ones."


@click.group(cls=Group, examples=("pulse-kg sessions list --board web", "pulse-kg sessions abort kgs_01J…"))
def sessions() -> None:
    """Sessions are consolidations in flight; each ends by a commit, an abort, or its time."""


@sessions.command("list", examples=("pulse-kg sessions list", "pulse-kg sessions list --agent ann --json"))
@click.option("--board", "board_id", metavar="BOARD", help="Only those of a board.")
@click.option("--agent", "agent_name", metavar="NAME", help="Only those of an agent.")
@pass_app
def list_sessions(app: App, board_id: str | None, agent_name: str | None) -> None:
    """List the open sessions that are not expired."""
    container = app.container()
    now = container.clock.now()
    agent_id = find_agent(agent_name, container.identity).agent_id if agent_name is not None else None
    chosen = [b.board_id for b in container.boards.boards()] if board_id is None else [require_board(board_id, container.boards).board_id]
    found = [s for b in chosen for s in container.sessions.open_sessions(agent_id=agent_id, board_id=b, now=now)]
    names = {a.agent_id: a.name for a in container.identity.agents()}
    rows = [
        (
            s.session_id,
            s.board_id,
            names.get(s.agent_id, s.agent_id),
            s.source.artifact.canonical,
            s.nodes,
            s.edges,
            to_the_second(moment(s.expires_at)),
        )
        for s in found
    ]
    columns = ("session", "board", "agent", "artifact", "nodes", "edges", "expires")
    table = Table(columns, rows, "No session is open.", texts=("agent", "artifact"))
    app.answer({"sessions": [session_document(s) for s in found]}, table)


@sessions.command("abort", examples=("pulse-kg sessions abort kgs_01J…",))
@click.argument("session")
@pass_app
def abort(app: App, session: str) -> None:
    """Abort SESSION, whoever owns it, and drop its candidates."""
    container = app.container()
    if not SESSION_ID.fullmatch(session):
        problem = Problem("session", f"'{brief(session)}' has not the form of a session's id; 'pulse-kg sessions list' shows the open ones")
        raise refused("No session was found", [problem])
    try:
        container.sessions.abort(session, now=container.clock.now())
    except SessionNotFound:
        raise _NoSession(session) from None
    app.answer({"session_id": session, "aborted": True}, f"Aborted {session}; nothing of it was written.")
