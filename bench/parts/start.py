"""Processes from their start to their first answer, and the memory that a server takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.context import Context, Part, Table
from bench.machine import rss_mib
from bench.server import PROGRAM, serving
from bench.stats import Summary, timed_ms
from bench.world import BOARD, NewNode, Writer, environment_of, make_agent, make_boards, opened
from pulse_kg.bootstrap import embedder_of
from pulse_kg.settings import Settings

_NOTES = [
    "call: `pulse-kg call begin_consolidation`, a tool that embeds nothing. Bare Python: `python -c pass`, the floor of every process "
    "here; the processes take turns. The memory is what the server's process has in RAM."
]


def run(context: Context) -> Part:
    """Measures starts, then the memory."""
    store = context.scratch / "start.db"
    with opened(store, embedder_of(Settings()), create=True) as container:
        make_boards(container, [BOARD])
        key = make_agent(container, "starter")
    found = _starts(context, environment_of(store, key))
    served, idle, memory = _served(context, store, key)
    found |= served
    figures: dict[str, Any] = {f"{name}_ms": summary.as_dict() for name, summary in found.items()}
    figures["rss_mib"] = {"serving_without_embedding": idle, "serving_after_a_session": memory}
    rows: list[tuple[Any, ...]] = [(name.replace("_", " "), s.n, s.p50, s.p95, s.min, s.max) for name, s in found.items()]
    tables = [
        Table("Start of a process to its answer", ("process", "n", "p50 ms", "p95 ms", "min", "max"), rows),
        Table("Memory of the server", ("state", "MiB"), [("before any embedding", idle), ("after a session", memory)]),
    ]
    return Part(figures, tables, _NOTES)


def _starts(context: Context, environment: Mapping[str, str]) -> dict[str, Summary]:
    def answered(number: int) -> None:
        arguments = {"board_id": BOARD, "source_type": "card", "source_id": f"start-{number}", "source_version": 1}
        _run([PROGRAM, "call", "begin_consolidation", json.dumps(arguments)], environment)

    processes: dict[str, Callable[[int], None]] = {
        "bare_python": lambda _: _run([sys.executable, "-c", "pass"], environment),
        "help": lambda _: _run([PROGRAM, "--help"], environment),
        "call": answered,
    }
    taken: dict[str, list[float]] = {name: [] for name in processes}
    times = context.times(15, 3)
    with context.progress("starts", times) as advance:
        for number in range(-1, times):  # the first round fills the caches of the file system
            for name, process in processes.items():
                spent = timed_ms(lambda process=process, number=number: process(number))  # type: ignore[misc]
                if number >= 0:
                    taken[name].append(spent)
            advance()
    return {name: Summary.of(values) for name, values in taken.items()}


def _served(context: Context, store: Path, key: str) -> tuple[dict[str, Summary], float | None, float | None]:
    listening, answering = list[float](), list[float]()
    idle = after = None
    for number in range(context.times(5, 2)):
        with serving(store, key) as server:
            begin = {"board_id": BOARD, "source_type": "card", "source_id": f"served-{number}", "source_version": 1}
            server.call("begin_consolidation", begin)
            answering.append((time.perf_counter() - server.started) * 1000)
            listening.append(server.listening_ms)
            if number == 0:
                idle = rss_mib(server.pid)
                nodes = [
                    NewNode(f"n{i}", {"node_type": "Decision", "title": f"Decision {i}", "body": "Its text. " * 20}) for i in range(10)
                ]
                Writer(server.call, {}).session("memory", nodes)
                after = rss_mib(server.pid)
    return {"serve_listening": Summary.of(listening), "serve_first_answer": Summary.of(answering)}, idle, after


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    subprocess.run(command, env=dict(environment), check=True, stdout=subprocess.DEVNULL)
