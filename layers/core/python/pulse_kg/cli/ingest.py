"""`pulse-kg ingest`: loads a decision history through the same tools as any agent.

Loaded again from the start, or after an interrupt, it adds nothing that is there: a session whose content was committed
is not opened, and what a new session states again is a NOOP.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from pulse_kg.cli.client import Call
from pulse_kg.cli.client_tools import Refused, Sleep, Tools, patient
from pulse_kg.cli.ingest_run import Ingest, Report
from pulse_kg.cli.ingest_view import progress_on_stderr, summary_lines
from pulse_kg.cli.output import counted, write_json
from pulse_kg.cli.peps import batches, closing_links, links_of, read_documents
from pulse_kg.mcp.envelope import new_correlation_id
from pulse_kg.mcp.host import CallerHandle, ToolHost

SESSION_SIZE: Final = 40
"""Decisions of a session, unless told otherwise."""

_STDIN: Final = "-"
_AGAIN: Final = "run the same command again to go on."


def run_ingest(
    file: Path,
    *,
    board_id: str,
    host: ToolHost,
    caller: CallerHandle,
    as_json: bool,
    session_size: int = SESSION_SIZE,
    node_limit: int = 500,
    edge_limit: int = 1_000,
    sleep: Sleep = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Loads a file into a board, and tells what became of it.

    Args:
        file: JSON lines; ``-`` is standard input.
        board_id: A board that the key's agent may write to.
        host: The tools.
        caller: The agent.
        as_json: Whether the summary is one JSON document on standard output.
        session_size: The most decisions of a session, 1 or more.
        node_limit: The most node candidates of a session.
        edge_limit: The most edge candidates of a session.
        sleep: Waits for so many seconds.
        monotonic: Seconds of a clock that only goes forward.

    Returns:
        The exit code: 0, or 1 where a tool refused; the sessions before that one are committed.

    Raises:
        InvalidArgument: The file can't be read; nothing was ingested.
        KeyboardInterrupt: From outside, with how far it came; the session that was open is aborted.
    """
    started = monotonic()
    name, data = ("stdin", sys.stdin.buffer.read()) if str(file) == _STDIN else (file.name, file.read_bytes())
    documents = read_documents(data)
    links, foreign = links_of(documents)
    planned = batches(documents, links, size=session_size, node_limit=node_limit, edge_limit=edge_limit)
    report = Report(file=name, board_id=board_id, documents=len(documents), planned=len(planned))
    report.without_end(foreign)
    refusal: Refused | None = None
    with progress_on_stderr(len(documents), as_json=as_json) as progress:
        tools = Tools(patient(_calling(host, caller), sleep, progress.note))
        ingest = Ingest(tools, report, closing_links(links), source_id=name, stated=progress.stated)
        try:
            for batch in planned:
                progress.begin(f"session {batch.number} of {len(planned)}")
                ingest.take(batch)
                progress.end(len(batch.documents))
        except Refused as refused:
            refusal = refused
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"Interrupted after session {report.finished} of {len(planned)}; {_AGAIN}") from None
    report.seconds = round(monotonic() - started, 2)
    return _tell(report, refusal, as_json=as_json)


def _calling(host: ToolHost, caller: CallerHandle) -> Call:
    return lambda tool, arguments: host.call(caller, tool, dict(arguments), correlation_id=new_correlation_id())


def _tell(report: Report, refused: Refused | None, *, as_json: bool) -> int:
    if as_json:
        refusal: dict[str, Any] = {} if refused is None else refused.body
        write_json({**report.document(), **refusal})
        return 0 if refused is None else 1
    if refused is None or report.finished:
        for line in summary_lines(report):
            click.echo(line)
    if refused is None:
        return 0
    click.echo(f"Error: {refused.tool} answered {refused.code}: {refused.message}", err=True)
    after = [f"{report.finished} of {counted(report.planned, 'session')} are done."] if report.finished else []
    after += [_AGAIN.capitalize()] if refused.passing else []
    if after:
        click.echo(" ".join(after), err=True)
    return 1
