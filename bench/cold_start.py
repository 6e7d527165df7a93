"""Cold starts of the functions: ``python -m bench.cold_start``, or `make bench-cold`; the local servers must be up.

The template is deployed into the local emulator of AWS, for the embedding function and the stores; then each function is started on its
own by AWS's emulator of the runtime, with a call that does its work: a tool gets a session that is there and answers 200. Measured is the
time from the start of the process to the answer, the emulator's own start included, which is shown as `floor`: a handler that does nothing.
The functions take turns, so that a noisy moment meets all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import machine, report
from bench.context import ROOT, WORK, Table
from bench.stats import Summary
from infra.deploy.emulator import running
from infra.deploy.events import FOLDER as EVENTS
from infra.deploy.events import event_of
from infra.deploy.invoke import STACK_FILE
from infra.deploy.layers import FUNCTION_LAYERS, NAMES, size_of
from infra.deploy.stack import local_variables
from infra.deploy.trial import TRIAL_LAYERS, Agent, Trial, trial
from pulse_kg import __version__
from pulse_kg.mcp.tools import TOOL_NAMES

REPORT: Final = report.REPORTS / "cold_start.json"
_FORMAT: Final = 1
_FLOOR: Final = "floor"
_LISTED, _DYNAMO_ONLY, _ALL_STORES = 350.0, 500.0, 900.0
AIMS: Final[Mapping[str, float]] = {
    "mcp": _LISTED,
    **dict.fromkeys(TOOL_NAMES, _ALL_STORES),
    **dict.fromkeys(("begin_consolidation", "add_node_candidate", "add_edge_candidate", "abort_consolidation"), _DYNAMO_ONLY),
}
"""Milliseconds of the median: listing the tools, tools that need DynamoDB alone, tools that need every store."""

_IN_SESSION: Final[Mapping[str, Mapping[str, Any]]] = {
    "add_node_candidate": {"node_type": "Decision", "title": "Retries wait with jitter", "body": "They would collide."},
    "add_edge_candidate": {"src": {"candidate_id": "cand_001"}, "dst": {"candidate_id": "cand_002"}, "rel_type": "relates_to"},
    "get_similar_nodes": {"candidate_id": "cand_001"},
    "propose_reconciliation": {},
    "commit_consolidation": {},
    "abort_consolidation": {},
}
"""What tools of a session take beside its id."""


@dataclass
class _Bench:
    trial: Trial
    code: Path
    logs: Path
    reader: Agent
    nodes: dict[str, str]
    starts: int = 0

    def started(self, function: str) -> float:
        """Milliseconds of one cold call that does its work."""
        event, code = self._call(function), self.code if function == _FLOOR else None
        variables = {} if function == _FLOOR else self.trial.environment(function)
        with running(function, variables, log=self.logs / f"{function}.log", layers=TRIAL_LAYERS, code=code) as started:
            answer = started.invoke(event)
            taken = (time.perf_counter() - started.started) * 1000
        if isinstance(answer, dict) and ("errorType" in answer or answer.get("statusCode", 200) != 200):
            raise SystemExit(f"bench: {function} answered {json.dumps(answer)[:2000]}")
        return taken

    def _call(self, function: str) -> Any:
        """The function's sample event, with a key, and arguments that are not refused."""
        if function == _FLOOR:
            return {}
        in_session = function == "begin_consolidation" or function in _IN_SESSION
        agent = self._newcomer() if in_session else self.reader
        event = event_of(function, agent.key)
        if in_session:
            event["body"] = json.dumps(self._for_session(function, agent))
        elif function in TOOL_NAMES:
            # What the sample event asks, of the board and the nodes that there are.
            asked = json.loads(event["body"])
            node = self.nodes["Constraint" if function == "explain_constraint" else "Decision"]
            known = {"board_id": agent.board, "node_id": node, "retrieved_nodes": [node]}
            event["body"] = json.dumps({**asked, **{name: value for name, value in known.items() if name in asked}})
        return event

    def _newcomer(self) -> Agent:
        """A new agent for each start, so that none meets its limits."""
        self.starts += 1
        return self.trial.agent(f"agent_{self.starts}")

    def _for_session(self, tool: str, agent: Agent) -> dict[str, Any]:
        begin = {"board_id": agent.board, "source_type": "spec", "source_id": "spec_007", "source_version": 1}
        if tool == "begin_consolidation":
            return begin
        session = {"session_id": self.trial.call("begin_consolidation", begin, agent.key)["session_id"]}
        if tool != "abort_consolidation":
            for node_type in ("Decision", "Constraint"):
                candidate = {"node_type": node_type, "title": f"A {node_type} on retries", "body": "Clients would collide."}
                self.trial.call("add_node_candidate", {**session, **candidate}, agent.key)
        return {**session, **_IN_SESSION[tool]}


def _opened(trial: Trial, code: Path, logs: Path) -> _Bench:
    """With a board that has something to read."""
    bench = _Bench(trial, code, logs, trial.agent("reader"), {})
    committed = trial.call("commit_consolidation", bench._for_session("commit_consolidation", bench.reader), bench.reader.key)  # noqa: SLF001 - its own maker
    added = [row["node_id"] for row in committed["applied"]["added"]]
    bench.nodes |= dict(zip(("Decision", "Constraint"), added, strict=True))
    return bench


def measure(starts: int, servers: Mapping[str, str], *, patience: float = 0.0) -> dict[str, Any]:
    """Starts every function so many times.

    Args:
        starts: How often each; one more start before them does not count.
        servers: Where the local servers are, as in ``stack.env``.
        patience: Seconds to wait for a quiet moment before each round.

    Returns:
        The report, ready for JSON.
    """
    names = [_FLOOR, *sorted(path.stem for path in EVENTS.glob("*.json"))]
    taken: dict[str, list[float]] = {name: [] for name in names}
    WORK.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cold-", dir=WORK)))
        code = scratch / "floor"
        code.mkdir()
        (code / "handler.py").write_text("def handler(event, context):\n    return {}\n", encoding="utf-8")
        bench = _opened(stack.enter_context(trial(servers)), code, scratch)
        before = machine.noise()
        for number in range(-1, starts):
            if patience and not machine.calm(patience):
                print(f"  the machine was not quiet for {patience:.0f} s; measuring all the same", file=sys.stderr)
            for name in names:
                spent = bench.started(name)
                if number >= 0:
                    taken[name].append(spent)
            print(f"  round {number + 1} of {starts}", file=sys.stderr)
        noise = {"before": before, "after": machine.noise()}
        facts = machine.facts(scratch)
    found = {name: Summary.of(values) for name, values in taken.items()}
    return {
        "format": _FORMAT,
        "made_at": machine.now(),
        "pulse_kg": __version__,
        "revision": machine.revision(ROOT),
        "machine": facts,
        "aims": [
            {"what": f"cold {name}, p50", "aim": f"≤ {aim:g} ms", "is": round(found[name].p50, 1), "met": found[name].p50 <= aim}
            for name, aim in AIMS.items()
        ],
        "cold_ms": {name: summary.as_dict() for name, summary in found.items()},
        "packages_bytes": packages(),
        "noise": noise,
    }


def packages() -> dict[str, Any]:
    """Bytes of layers and functions, as built for this machine."""
    layers = {name: {"unzipped": size_of(TRIAL_LAYERS / name), "zipped": (TRIAL_LAYERS / f"{name}.zip").stat().st_size} for name in NAMES}
    functions = {name: sum(layers[layer]["unzipped"] for layer in of) for name, of in FUNCTION_LAYERS.items()}
    return {"layers": layers, "functions_unzipped": functions}


def _shown(made: Mapping[str, Any]) -> list[Table]:
    rows: list[tuple[Any, ...]] = [
        (name, s["n"], s["p50"], s["min"], s["max"], AIMS.get(name), _judged(name, s["p50"])) for name, s in made["cold_ms"].items()
    ]
    sizes: list[tuple[Any, ...]] = [
        (name, round(size["unzipped"] / 1e6, 1), round(size["zipped"] / 1e6, 1)) for name, size in made["packages_bytes"]["layers"].items()
    ]
    return [
        Table("Cold start, from the start of the process to its answer", ("function", "n", "p50 ms", "min", "max", "aim", ""), rows),
        Table("Layers", ("layer", "unzipped MB", "zipped MB"), sizes),
    ]


def _judged(name: str, median: float) -> str:
    return "" if name not in AIMS else "met" if median <= AIMS[name] else "missed"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold_start", description="Measure cold starts of the functions.")
    parser.add_argument("--starts", type=int, default=11, metavar="N", help="starts of each function (11)")
    parser.add_argument("--calm", type=float, default=0.0, metavar="SECONDS", help="before each round, wait so long for a quiet machine")
    parser.add_argument("--stack", type=Path, default=STACK_FILE, metavar="FILE", help="where the local servers are (.local/stack.env)")
    parser.add_argument("--output", type=Path, default=REPORT, metavar="FILE", help="write the report there")
    given = parser.parse_args()
    if not given.stack.is_file():
        sys.exit("bench: the local servers are not up; run: make up")
    made = measure(given.starts, local_variables(given.stack.read_text(encoding="utf-8")), patience=given.calm)
    report.write(made, given.output)
    report.print_tables(_shown(made))


if __name__ == "__main__":
    main()
