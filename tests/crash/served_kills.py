"""kill -9 at every step of a commit on the real servers, and of the servers themselves; then whatever was acknowledged must be there, once.

    python -m tests.crash.served_kills --kills 100 --report bench/reports/crash.json

A process kills itself at a chosen step, before or after it. Then an agent calls the same commit again, or the relay runs first; both wait
for the dead process's lease. JanusGraph and OpenSearch are killed by SIGKILL while others commit. The emulator of AWS writes its tables
only when it ends in good order, so that it is asked to end, in the middle of commits, and started again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.client import connect
from pulse_kg.adapters.dynamodb.journal import STAGED_GRACE_MS
from pulse_kg.adapters.dynamodb.tables import BOARDS, PK, SESSIONS, SK, TABLES
from pulse_kg.adapters.system import SystemClock
from pulse_kg.bootstrap import Container
from pulse_kg.cli.stack_prepare import prepare
from pulse_kg.cli.stack_process import Record
from pulse_kg.endpoints import Endpoints
from pulse_kg.usecases.boards import create_board, erase_board
from tests.support.crash_checks import chain_of, check_board
from tests.support.crash_worker import Caller, Committer, new_agent
from tests.support.local_stack import free_ports, read_endpoints
from tests.support.processes import Child
from tests.support.served_worker import LEASE_MS, Point, commit_until_told, die_committing, die_sweeping, served_process

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".local" / "crash"

_COMMITTING = (
    *("journal.acquire", "journal.stage", "journal.decide", "graph.apply", "vectors.apply", "journal.mark_applied"),
    *("journal.progress", "publisher.publish", "journal.drop_writes", "journal.mark_published"),
)
_FINISHING = ("journal.acquire", "journal.decided", "graph.apply", "vectors.apply", "journal.mark_applied", "journal.release")
_SENDING = ("journal.progress", "journal.sweep_staged", "publisher.publish", "journal.drop_writes", "journal.mark_published")
_CHECK_EVERY = 20
_WHENS = ("before", "after")

Advance = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """One death: of who commits, or of who sweeps what such a death left.

    Attributes:
        role: `commit` or `sweep`.
        point: Where.
    """

    role: str
    point: Point


def plans(kills: int, chance: random.Random) -> list[Plan]:
    """As many deaths as are wanted, at all points in turn."""
    every = [Plan("commit", Point(step, when)) for step in _COMMITTING for when in _WHENS]
    every += [Plan("sweep", Point(step, when)) for step in (*_FINISHING, *_SENDING) for when in _WHENS]
    chosen: list[Plan] = []
    while len(chosen) < kills:
        chosen += chance.sample(every, len(every))
    return [replace(p, point=replace(p.point, staging=chance.random() < 0.5)) for p in chosen[:kills]]


@dataclass
class Counted:
    """What is in the report."""

    by_step: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    numbers: Counter[str] = field(default_factory=Counter)
    swept: Counter[str] = field(default_factory=Counter)
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def telling(self, what: str) -> Iterator[None]:
        """A check that failed is a problem of the report, and the run goes on."""
        try:
            yield
        except AssertionError as failed:
            self.problems.append(f"{what}: {str(failed).splitlines()[0] if str(failed) else 'an assertion failed'}")


class Ground:
    """Tables, an index and a queue of the run's own on the servers, two boards with a chain each, and an agent."""

    def __init__(self, servers: Endpoints) -> None:
        number = f"{os.getpid()}_{time.time_ns() // 1_000_000}"
        wanted = replace(servers, table_prefix=f"kills{number}_", queue_url=None)
        self.endpoints = replace(wanted, queue_url=prepare(wanted)["queue_url"])
        self.boards = [f"kills_{number}_{n}" for n in range(2)]
        self.answers: dict[str, list[Mapping[str, Any]]] = {}
        self.roots: dict[str, str] = {}
        with served_process(self.endpoints) as container:
            for board in self.boards:
                create_board(board, None, boards=container.boards, now=container.clock.now())
            self.key = new_agent(container, "ada", *self.boards)
            for board in self.boards:
                first = Committer(container, self.key, board, "first").commit_one()
                self.answers[board], self.roots[board] = [first], first["applied"]["added"][2]["node_id"]

    def close(self) -> None:
        """Removes everything; of the boards nothing is left in the graph."""
        with served_process(self.endpoints) as container:
            for board in self.boards:
                erase_board(board, boards=container.boards, now=container.clock.now())
            store: Any = container.store
            store.index_client.request("DELETE", f"/{self.endpoints.table_prefix}nodes_1", ignore=404)
        client = connect(self.endpoints)
        for table in TABLES:
            client.delete_table(TableName=self.endpoints.table_prefix + table.name)
        queues = connect(self.endpoints, "sqs")
        for url in queues.list_queues(QueueNamePrefix=self.endpoints.table_prefix).get("QueueUrls", []):
            queues.delete_queue(QueueUrl=url)


# Deaths of processes.


def die_once(ground: Ground, container: Container, plan: Plan, board: str, number: int, counted: Counted, *, relay_first: bool) -> None:
    """Lets a process die, and then does what an agent does whose call was never answered."""
    sweeping = plan.role == "sweep"
    left = ("journal.decide", "after") if plan.point.step in _FINISHING else ("journal.mark_applied", "after")
    first = Point(*left, staging=plan.point.staging) if sweeping else replace(plan.point, occurrence=1 + number % 2)
    in_flight = _killed(ground, counted, board, f"kill {number}", first)
    if sweeping:
        child = Child(die_sweeping, ground.endpoints, plan.point)
        try:
            lived = child.hear_all()
        finally:
            child.close()
        counted.by_step[f"sweeping: {plan.point.step}"][plan.point.when if not lived else "not reached"] += 1
        for _, report in lived:
            counted.swept.update({k: report[k] for k in ("applied", "published", "unstaged")})
    else:
        counted.by_step[f"committing: {plan.point.step}"][plan.point.when] += 1
    counted.numbers["processes killed"] += 1 + sweeping
    if relay_first:
        _sweep(container, counted)
    if in_flight is not None:
        _again(ground, container, board, in_flight, counted)
    _sweep(container, counted)
    with counted.telling(f"after a death {plan.point.when} {plan.point.step} while it should {plan.role}"):
        states = {record.state for record in container.commits.outbox(board)}
        assert states == {"published"}, f"after the relay there are events in the states {sorted(states)}"
        stored = container.boards.board(board)
        assert stored is not None
        assert stored.commit_seq == len(ground.answers[board]), "a commit was lost, or one is there that nobody was told of"


def _killed(ground: Ground, counted: Counted, board: str, name: str, point: Point) -> str | None:
    """Lets a process commit until it dies; takes note of what it acknowledged, and gives the session that was in flight."""
    child = Child(die_committing, ground.endpoints, point, ground.key, board, name, ground.roots[board])
    try:
        heard = child.hear_all()
        code = child.finished()
    finally:
        child.close()
    with counted.telling(f"{point.when} {point.step}"):
        assert code == -signal.SIGKILL, f"it ended with {code} and was not killed"
    told = [what for kind, what in heard if kind == "committed"]
    ground.answers[board] += told
    counted.numbers["acknowledged"] += len(told)
    begun = [what for kind, what in heard if kind == "begun"]
    return begun[-1] if begun and begun[-1] not in {answer["session_id"] for answer in told} else None


def _again(ground: Ground, container: Container, board: str, session_id: str, counted: Counted) -> None:
    """Calls the commit again that was in flight; it answers what the first call would have, or commits now, or conflicts."""
    before = container.boards.board(board)
    assert before is not None
    caller = Caller(container.tool_host(), ground.key)
    was_decided = before.commit_seq == len(ground.answers[board]) + 1
    answer = caller.call("commit_consolidation", allowed=("invalid_argument", "commit_conflict"), session_id=session_id)
    counted.numbers["in flight, decided" if was_decided else "in flight, not decided"] += 1
    with counted.telling(f"session {session_id}"):
        assert answer is not None or not was_decided, "a decided commit was refused"
        if answer is None:
            counted.numbers["aborted after a conflict"] += 1
            assert caller.call("abort_consolidation", session_id=session_id) == {"session_id": session_id, "aborted": True}
            return
        ground.answers[board].append(answer)
        counted.numbers["acknowledged"] += 1
        assert (answer["audit_row_id"] == before.commit_seq) == was_decided, "it was committed a second time"
        assert caller.call("commit_consolidation", session_id=session_id) == answer, "the same commit was told another answer"


def _sweep(container: Container, counted: Counted) -> None:
    report = container.relay_outbox(60)
    counted.swept.update({k: report[k] for k in ("applied", "published", "unstaged")})
    with counted.telling("the relay"):
        assert report["failed"] == {}, f"it failed: {report['failed']}"


# Deaths of servers.


def kill_server(ground: Ground, folder: Path, name: str, counted: Counted) -> None:
    """Kills a server while two processes commit, brings it back, and lets both go on for a while."""
    heard: list[tuple[str, Any]] = []
    with ExitStack() as stack:
        children = []
        for number, board in enumerate(ground.boards):
            child = Child(commit_until_told, ground.endpoints, ground.key, board, f"{name} {number}")
            stack.callback(child.close)
            children.append((board, child))
        heard += [(board, child.hear()) for board, child in children for _ in range(2)]
        record = Record.read(folder / "run" / f"{name}.json")
        assert record is not None
        assert record.runs
        clean = name == "ministack"
        os.kill(record.pid, signal.SIGTERM if clean else signal.SIGKILL)
        _await(lambda: not record.runs)
        began = time.monotonic()
        up(folder)
        seconds = time.monotonic() - began
        heard += [(board, child.hear(180)) for board, child in children for _ in range(3)]
        for _, child in children:
            child.tell("enough")
        waits = 0
        for board, child in children:
            *told, waited = child.hear_all()
            with counted.telling(f"beside the death of {name}"):
                assert child.finished() == 0, "who commits did not get over it"
            heard += [(board, answer) for answer in told]
            waits += waited
    for board, answer in heard:
        ground.answers[board].append(answer)
    counted.numbers["acknowledged"] += len(heard)
    counted.numbers["servers killed"] += 1
    counted.servers[name] = {
        "signal": "SIGTERM, as it keeps its tables only so" if clean else "SIGKILL",
        "commits_beside_it": len(heard),
        "calls_refused_meanwhile": waits,
        "back_after_seconds": round(seconds, 1),
    }


def up(folder: Path, ports: Sequence[int] = ()) -> None:
    """Starts what does not run of a stack."""
    options = [f"--{name}-port={port}" for name, port in zip(("aws", "gremlin", "opensearch"), ports, strict=False)]
    command = [sys.executable, "-m", "pulse_kg.cli.main", "up", "--dir", str(folder), *options, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stdout + ran.stderr)


def _await(true: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not end"
        time.sleep(0.05)


# What must be true in the end.


class _Later(SystemClock):
    """An hour and more ahead."""

    def now(self) -> int:
        return super().now() + STAGED_GRACE_MS + LEASE_MS


def check_all(ground: Ground, container: Container, counted: Counted) -> None:
    """Every acknowledged commit once and nothing beyond, one live head, whole chains."""
    for board in ground.boards:
        with counted.telling(f"board {board}"):
            check_board(container, board, ground.answers[board])
            chain_of(container, board, ground.roots[board])


def check_leftovers(ground: Ground, counted: Counted) -> None:
    """An hour later: nothing staged but what is in use, no open work."""
    with served_process(ground.endpoints, clock=_Later()) as container:
        _sweep(container, counted)
        assert container.outbox is not None
        with counted.telling("leftovers"):
            pending = container.outbox.pending_boards()
            assert pending == (), f"open work on {pending}"
            strays = stray_parts(container)
            counted.numbers["stray parts"] = len(strays)
            assert not strays, f"parts that nothing names: {sorted(strays)[:3]}"


def stray_parts(container: Container) -> set[tuple[str, str]]:
    """The keys of staged parts that no record and no session names."""
    store: Any = container.store
    items: dict[str, list[Mapping[str, Any]]] = {}
    for table in (BOARDS, SESSIONS):
        pages = store.dynamo.client.get_paginator("scan").paginate(TableName=store.dynamo.prefix + table.name, ConsistentRead=True)
        items[table.name] = [item for page in pages for item in page["Items"]]
    named = set()
    for item in items[BOARDS.name]:
        if item[SK]["S"].startswith(keys.AUDIT) and "token" in item:
            named.add((keys.parts(item[PK]["S"].removeprefix("board#"), item["token"]["S"]), "audit"))
    for item in items[SESSIONS.name]:
        if "answer_token" in item:
            named.add((item[PK]["S"], f"answer#{item['answer_token']['S']}"))
    strays = set()
    for item in (*items[BOARDS.name], *items[SESSIONS.name]):
        pk, sk = item[PK]["S"], item[SK]["S"]
        if (pk.startswith("parts#") or sk.startswith((keys.STAGE, "answer#"))) and (pk, sk.rpartition("#")[0]) not in named:
            strays.add((pk, sk))
    return strays


def check_events(ground: Ground, counted: Counted) -> None:
    """Reads the queue empty: each commit's event came, and for the first time in the order of the commits."""
    queue = connect(ground.endpoints, "sqs")
    heard: defaultdict[str, dict[str, int]] = defaultdict(dict)
    messages = 0
    while True:
        answer = queue.receive_message(
            QueueUrl=ground.endpoints.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1, AttributeNames=["MessageGroupId"]
        )
        found = answer.get("Messages", [])
        if not found:
            break
        for message in found:
            event = json.loads(message["Body"])
            assert event["data"]["board_id"] == message["Attributes"]["MessageGroupId"]
            heard[event["data"]["board_id"]].setdefault(event["id"], event["data"]["audit_row_id"])
            queue.delete_message(QueueUrl=ground.endpoints.queue_url, ReceiptHandle=message["ReceiptHandle"])
            messages += 1
    counted.numbers["events received"] = messages
    counted.numbers["events received twice"] = messages - sum(map(len, heard.values()))
    with counted.telling("events"):
        for board in ground.boards:
            wanted = list(range(1, len(ground.answers[board]) + 1))
            assert list(heard[board].values()) == wanted, f"board {board}: they came as {list(heard[board].values())[:20]} …"


def run(servers: Endpoints, kills: int, advance: Advance, *, folder: Path | None = None, names: Sequence[str] = ()) -> dict[str, Any]:
    """All of it.

    Args:
        servers: The servers.
        kills: How many processes die, sweepers with what they sweep as one.
        advance: Told of each step.
        folder: The servers' own, if they may be killed.
        names: Which of them are.

    Returns:
        The report, ready for JSON; `problems` is empty where everything was as it must be.
    """
    chance, began, counted = random.Random(12), time.monotonic(), Counted()
    ground = Ground(servers)
    with served_process(ground.endpoints) as container:
        for number, plan in enumerate(plans(kills, chance)):
            board = ground.boards[number % 2]
            die_once(ground, container, plan, board, number, counted, relay_first=chance.random() < 0.5)
            advance(f"{plan.role}: {plan.point.when} {plan.point.step}")
            if number % _CHECK_EVERY == _CHECK_EVERY - 1:
                check_all(ground, container, counted)
    for name in names:
        assert folder is not None
        kill_server(ground, folder, name, counted)
        advance(f"kill {name}")
        with served_process(ground.endpoints) as container:
            _sweep(container, counted)
            check_all(ground, container, counted)
    with served_process(ground.endpoints) as container:
        check_all(ground, container, counted)
        found = {board: _verified(container, board) for board in ground.boards}
    check_leftovers(ground, counted)
    check_events(ground, counted)
    advance("checked")
    if not counted.problems:
        ground.close()
    return {
        "format": 1,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(time.monotonic() - began, 1),
        "lease_ms": LEASE_MS,
        "numbers": dict(sorted(counted.numbers.items())),
        "killed_by_step": {step: dict(sorted(c.items())) for step, c in sorted(counted.by_step.items())},
        "swept": dict(counted.swept),
        "servers_killed": counted.servers,
        "verify": found,
        "problems": counted.problems,
    }


def _verified(container: Container, board: str) -> dict[str, Any]:
    from pulse_kg.usecases.verify import verify_board

    result = verify_board(board, container.services)
    counts = {name: getattr(result, name) for name in ("commits", "nodes", "edges", "vectors")}
    return {"clean": result.clean, **counts, "findings": list(result.findings)}


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="how many processes die (100)")
    parser.add_argument("--report", type=Path, help="where the report is written; on stdout otherwise")
    parser.add_argument("--endpoints", type=Path, help="a file of variables of servers that run already and are left alone")
    chosen = parser.parse_args()
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    names = () if chosen.endpoints else ("janusgraph", "opensearch", "ministack")
    with ExitStack() as stack:
        if chosen.endpoints is None and not (FOLDER / "stack.env").exists():
            sys.stderr.write("starting servers of the run's own in .local/crash\n")
            up(FOLDER, free_ports(3))
            stack.callback(subprocess.run, [sys.executable, "-m", "pulse_kg.cli.main", "down", "--wipe", "--dir", str(FOLDER)], check=False)
        servers = read_endpoints(chosen.endpoints or FOLDER / "stack.env")
        columns = (TextColumn("{task.description:<46}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("begins", total=chosen.kills + len(names) + 1)
            report = run(servers, chosen.kills, lambda what: progress.update(task, advance=1, description=what), folder=FOLDER, names=names)
    text = json.dumps(report, indent=1) + "\n"
    if chosen.report is None:
        sys.stdout.write(text)
    else:
        chosen.report.parent.mkdir(parents=True, exist_ok=True)
        chosen.report.write_text(text)
    for problem in report["problems"]:
        sys.stderr.write(f"{problem}\n")
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
