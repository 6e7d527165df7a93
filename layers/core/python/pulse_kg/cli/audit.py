"""`pulse-kg audit`: what was done on a board, by whom, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from pulse_kg.cli.app import App, pass_app
from pulse_kg.cli.commands import Command
from pulse_kg.cli.output import Part, Table, counted, indented, to_the_second
from pulse_kg.domain.audit import AuditRow
from pulse_kg.errors import Problem
from pulse_kg.usecases.boards import refused, require_board

if TYPE_CHECKING:
    from pulse_kg.ports.commits import CommitLog


@click.command(
    cls=Command,
    examples=(
        "pulse-kg audit web",
        "pulse-kg audit web --seq 12",
        "pulse-kg audit web --session kgs_01J…",
        "pulse-kg audit web --node dec_1f0a… --json",
    ),
)
@click.argument("board")
@click.option("--seq", type=click.IntRange(min=1), metavar="N", help="The row of commit N, whole.")
@click.option("--session", metavar="SESSION", help="The row of a session.")
@click.option("--node", metavar="NODE", help="The rows that made, changed or named a node.")
@pass_app
def audit(app: App, board: str, seq: int | None, session: str | None, node: str | None) -> None:
    """Read the audit log of BOARD: a row for each commit, oldest first."""
    if sum(given is not None for given in (seq, session, node)) > 1:
        raise click.UsageError("Say one of --seq, --session and --node.")
    container = app.container()
    last = require_board(board, container.boards).commit_seq
    beyond = seq is not None and seq > last  # not even asked for: it may be larger than any number of the store
    rows = [] if beyond else list(_rows(container.commits, board, seq=seq, session=session, node=node))
    if not rows and seq is not None:
        raise refused("No row was found", [Problem("seq", f"the board has no commit {seq}; its last is {last}")])
    parts: list[Part] = (
        [indented(rows[0])] if seq is not None else [_table(rows, {a.agent_id: a.name for a in container.identity.agents()})]
    )
    app.answer({"board_id": board, "rows": [dict(row) for row in rows]}, *parts)


def _rows(commits: CommitLog, board: str, *, seq: int | None, session: str | None, node: str | None) -> Iterator[AuditRow]:
    if seq is not None:
        row = commits.audit_row(board, seq)
        if row is not None:
            yield row
        return
    for row in commits.audit_rows(board):
        if session is not None and row["session_id"] != session:
            continue
        if node is None or node in _nodes_of(row):
            yield row


def _nodes_of(row: Mapping[str, Any]) -> set[str]:
    """Every node that a commit made, changed or named."""
    if row["kind"] == "administration":
        return {row["node_id"]}
    ends = {edge[end] for edge in row["edges_added"] for end in ("src", "dst")}
    return {*row["mapping"].values(), *(s["node_id"] for s in row["superseded_nodes"]), *ends}


def _table(rows: list[AuditRow], names: Mapping[str, str]) -> Table:
    shown = [
        (r["audit_row_id"], to_the_second(r["committed_at"]), names.get(r["agent_id"], r["agent_id"]), _what(r), r["session_id"])
        for r in rows
    ]
    return Table(("commit", "at", "by", "what", "session"), shown, "No row.", texts=("what",))


def _what(row: Mapping[str, Any]) -> str:
    if row["kind"] == "administration":
        return f"{_action(row)} {row['node_id']}: {row['reason']}"
    source = row["source"]
    done = [f"{len(entries)} {name}" for name, entries in row["applied"].items() if entries]
    done += [counted(len(row["edges_added"]), "edge")] if row["edges_added"] else []
    return f"{source['source_type']}:{source['source_id']} v{source['source_version']}: {', '.join(done) or 'nothing new'}"


def _action(row: Mapping[str, Any]) -> str:
    if row["action"] != "curate":
        return str(row["action"])
    boost = row["priority_boost"]
    return ("curate" if row["curated"] else "curate off") + ("" if boost is None else f" (boost {boost:g})")
