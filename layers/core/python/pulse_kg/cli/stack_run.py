"""Starting, stopping and looking at the local servers, each by itself: one that fails takes no other with it."""

from __future__ import annotations

import fcntl
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pulse_kg.cli.stack_checks import port_is_free
from pulse_kg.cli.stack_fetch import Tools
from pulse_kg.cli.stack_places import Places, StackError, env_lines, with_log, write_atomically
from pulse_kg.cli.stack_process import Detached, Record, memory_bytes, stop
from pulse_kg.cli.stack_progress import Progress
from pulse_kg.cli.stack_servers import Server, stack_variables

_T = TypeVar("_T")
_Item = TypeVar("_Item")
_POLL_SECONDS: Final = 0.2
_ENV_COMMENTS: Final = ("Made by 'pulse-kg up', removed by 'pulse-kg down': where --store aws finds the local servers.",)


@dataclass(frozen=True)
class State:
    """How a server is.

    Attributes:
        server: The server.
        port: Where it listens, or would.
        record: Its process; None if it does not run.
        trouble: What is wrong; None if it answers as it should.
        seconds: How long its start took; None if it was not started now.
    """

    server: Server
    port: int
    record: Record | None
    trouble: str | None
    seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The state as JSON."""
        memory = memory_bytes(self.record.pid) if self.record else None
        return {
            "name": self.server.name,
            "port": self.port,
            "pid": self.record.pid if self.record else None,
            "uptime_seconds": round(time.time() - self.record.since, 1) if self.record else None,
            "memory_mb": None if memory is None else round(memory / 1e6),
            "healthy": self.trouble is None,
            "health": self.trouble or "ok",
        }


class Stack:
    """The local servers in their folders.

    Args:
        places: The folders.
        tools: The machine's programs.
        servers: The servers.
    """

    def __init__(self, places: Places, tools: Tools, servers: Sequence[Server]) -> None:
        self._places = places
        self._tools = tools
        self._servers = tuple(servers)
        self._interrupted = threading.Event()

    def status(self) -> list[State]:
        """How each server is, now."""
        return self._for_each(self._servers, self._state)

    def up(self, ports: Mapping[str, int | None], progress: Progress, note: Callable[[str], None]) -> list[State]:
        """Starts what does not run, waits until everything answers, and writes the file of variables.

        Args:
            ports: Chosen ports by name; None for the one it has, had, or is meant to have.
            progress: Is told how far each server is.
            note: Takes what else there is to know.

        Raises:
            StackError: Something is missing, in the way, or did not start. What runs goes on running.
        """
        with _alone(self._places.lock_file, note):
            running = {server.name: self._running(server) for server in self._servers}
            missing = [server for server in self._servers if running[server.name] is None]
            self._require_tools(missing)
            settled = self._settle_ports(ports, running)
            self._fetch(missing, progress, note)
            write_atomically(self._places.env_file, env_lines(stack_variables(settled), _ENV_COMMENTS))
            for server in missing:
                if server.after_kill and self._places.record(server.name).exists():
                    note(f"{server.title}: {server.after_kill}")
            states = self._for_each(self._servers, lambda s: self._start(s, settled[s.name], running[s.name], progress))
        if any(state.trouble for state in states):
            raise StackError(self._told(states), {"servers": [state.as_dict() for state in states]})
        return states

    def down(self, *, wipe: bool, progress: Progress, note: Callable[[str], None]) -> list[str]:
        """Stops what `up` started, and nothing else.

        Args:
            wipe: Whether the data are removed as well.
            progress: Is told how far each server is.
            note: Takes what else there is to know.

        Returns:
            The names of the servers that were stopped.

        Raises:
            StackError: One could not be stopped; no data were removed then.
        """
        with _alone(self._places.lock_file, note):
            stopped = self._for_each(self._servers, lambda server: self._stop(server, progress))
            left = [server.title for server, ended in zip(self._servers, stopped, strict=True) if ended is False]
            if left:
                raise StackError(f"{' and '.join(left)} could not be stopped: it belongs to another user, or hangs in the system.")
            self._places.env_file.unlink(missing_ok=True)
            if wipe and self._places.all_data.exists():
                shutil.rmtree(self._places.all_data)
        return [server.name for server, ended in zip(self._servers, stopped, strict=True) if ended]

    def _running(self, server: Server) -> Record | None:
        record = Record.read(self._places.record(server.name))
        return record if record is not None and record.runs else None

    def _state(self, server: Server) -> State:
        record = Record.read(self._places.record(server.name))
        port = record.port if record else server.port
        if record is None:
            return State(server, port, None, "not running")
        if not record.runs:
            return State(server, port, None, "not running; it ended by itself or was killed")
        return State(server, port, record, server.check(port))

    def _settle_ports(self, chosen: Mapping[str, int | None], running: Mapping[str, Record | None]) -> dict[str, int]:
        settled: dict[str, int] = {}
        problems = []
        for server in self._servers:
            runs, wanted = running[server.name], chosen.get(server.name)
            # One that was killed comes back where it was: others know it there.
            kept = runs or Record.read(self._places.record(server.name))
            port = wanted or (kept.port if kept else server.port)
            if runs and port != runs.port:
                problems.append(
                    f"{server.title} runs already, on port {runs.port}. To move it, stop everything first: {self._places.command('down')}."
                )
            elif port in settled.values():
                problems.append(
                    f"{server.title} can't have port {port}, which another of the servers has. Choose one with --{server.option}."
                )
            elif not runs and not port_is_free(port):
                problems.append(
                    f"Port {port}, for {server.title}, is in use by another program, which was not started from {self._places.home}. "
                    f"Stop that program, or choose another port with --{server.option}."
                )
            settled[server.name] = port
        if problems:
            raise StackError("\n".join(problems))
        return settled

    def _require_tools(self, servers: Sequence[Server]) -> None:
        on_java = [server for server in servers if server.uses_java]
        missing = self._tools.missing(to_fetch=any(not server.bundle.complete for server in on_java)) if on_java else []
        if missing:
            raise StackError(
                f"The local servers need what this machine has not: {'; '.join(missing)}. Install it, set JAVA_HOME if Java is not on the "
                "PATH, and run 'pulse-kg up' again. Nothing was started. Without it only the embedded store runs (--store sqlite:PATH), "
                "which needs no server."
            )

    def _fetch(self, servers: Sequence[Server], progress: Progress, note: Callable[[str], None]) -> None:
        def one(server: Server) -> str | None:
            if server.bundle.complete:
                return None
            begun = time.monotonic()
            progress.step(server.name, f"fetching, once ({server.bundle.size})")
            try:
                server.bundle.fetch(lambda text: progress.detail(server.name, text))
            except StackError as error:
                progress.done(server.name, "could not be fetched")
                return error.message
            progress.step(server.name, f"fetched in {time.monotonic() - begun:.0f} s")
            return None

        if all(server.bundle.complete for server in servers):
            return
        # Maven's local repository is not made for two at once.
        by_maven = [server for server in servers if server.uses_java]
        others = [server for server in servers if not server.uses_java]
        # Stacks in other folders share what is fetched.
        with _alone(self._places.fetched / "fetch.lock", note):
            messages = self._for_each([others, by_maven], lambda queue: [one(server) for server in queue])
        failed = [message for queue in messages for message in queue if message]
        if failed:
            raise StackError("\n".join(failed))

    def _start(self, server: Server, port: int, running: Record | None, progress: Progress) -> State:
        if running is not None:
            state = self._wait(server, running, None)
            progress.done(server.name, f"runs already, on port {port}" if state.trouble is None else "runs, but does not answer")
            return state
        progress.step(server.name, f"starting on port {port}")
        log = self._places.log(server.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        launch = server.launch(port)
        try:
            process = Detached(launch.command, launch.environment, log)
        except OSError as error:
            progress.done(server.name, "did not start")
            return State(server, port, None, f"{launch.command[0]} can't be run ({error.strerror})")
        record = process.record(port)
        record.write(self._places.record(server.name))
        state = self._wait(server, record, process)
        process.let_go()
        progress.done(server.name, self._outcome(state))
        return state

    def _outcome(self, state: State) -> str:
        if state.trouble is None:
            return f"answers on port {state.port} after {state.seconds:.1f} s"
        if state.record is None:
            return "did not start"
        return "is still starting" if self._interrupted.is_set() else "does not answer"

    def _wait(self, server: Server, record: Record, process: Detached | None) -> State:
        begun = time.monotonic()
        trouble: str | None = None
        while time.monotonic() - begun < server.start_seconds and not self._interrupted.is_set():
            trouble = server.check(record.port)
            # Asked after the check: what answers may be another program that took the port of one that has ended.
            if process is not None and process.exit_code is not None:
                return State(server, record.port, None, f"it ended with exit code {process.exit_code} before it answered")
            if process is None and not record.runs:
                return State(server, record.port, None, "it ended while it was waited for")
            if trouble is None:
                return State(server, record.port, record, None, None if process is None else time.time() - record.since)
            time.sleep(_POLL_SECONDS)
        late = f"it runs (pid {record.pid}) but does not answer after {time.monotonic() - begun:.0f} s: {trouble}"
        return State(server, record.port, record, late)

    def _stop(self, server: Server, progress: Progress) -> bool | None:
        """True if it was stopped, None if it did not run, False if it can't be."""
        path = self._places.record(server.name)
        record = Record.read(path)
        if record is None or not record.runs:
            path.unlink(missing_ok=True)
            progress.done(server.name, "was not running")
            return None
        progress.step(server.name, f"stopping (pid {record.pid})")
        try:
            ended = stop(record, grace_seconds=server.stop_seconds)
        except PermissionError:
            ended = False
        if ended:
            path.unlink(missing_ok=True)
        progress.done(server.name, "stopped" if ended else "could not be stopped")
        return ended

    def _for_each(self, items: Sequence[_Item], work: Callable[[_Item], _T]) -> list[_T]:
        """Does something with all items at once."""
        if not items:
            return []
        with ThreadPoolExecutor(len(items)) as pool:
            try:
                return list(pool.map(work, items))
            except KeyboardInterrupt:
                self._interrupted.set()
                raise

    def _told(self, states: Sequence[State]) -> str:
        parts = []
        for state in states:
            if state.trouble:
                what = f"{state.server.title} is not up: {state.trouble}."
                parts.append(with_log(what, self._places.log(state.server.name)))
        fine = [state.server.title for state in states if not state.trouble]
        goes_on = f"{' and '.join(fine)} {'go' if len(fine) > 1 else 'goes'} on running. " if fine else ""
        up, down = self._places.command("up"), self._places.command("down")
        parts.append(f"{goes_on}'{up}' tries again, '{down}' stops everything; docs/local-stack.md knows the usual causes.")
        return "\n".join(parts)


@contextmanager
def _alone(lock_file: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Keeps every other holder of a lock file out, in this program and in others."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"Another 'pulse-kg up' or 'down' is at work in {lock_file.parent}; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
