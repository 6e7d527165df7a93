"""Processes that outlive the program: started apart, found again later, ended only if they are still the same.

A number alone does not name a process, for the system gives it to another one later. So a record keeps when the process began and with
which command line, and whatever differs in one of the two is somebody else's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pulse_kg.cli.stack_places import write_atomically

_PROC: Final = Path("/proc")
_POLL_SECONDS: Final = 0.05
_IDENTIFY_SECONDS: Final = 2.0
_AFTER_KILL_SECONDS: Final = 10.0
_STATE, _THREADS, _BEGAN = 0, 17, 19  # fields of /proc/PID/stat after the name
_LSTART_WORDS: Final = 5  # Mon Nov 30 15:00:00 2026
_ENDED: Final = frozenset("ZXx")
_KIB: Final = 1024


@dataclass(frozen=True)
class Identity:
    """What tells a process from a later one with its number.

    Attributes:
        began: When it began, as the system says it.
        command: Its command line.
    """

    began: str
    command: str


@dataclass(frozen=True)
class Record:
    """A process that was started, as its file keeps it.

    Attributes:
        pid: Its number.
        port: Where it listens.
        since: When it was started, in seconds of the epoch.
        began: As `Identity`.
        command: As `Identity`.
    """

    pid: int
    port: int
    since: float
    began: str
    command: str

    @property
    def runs(self) -> bool:
        """Whether that very process still runs, or is still ending: until then it holds its port and its files."""
        now = identify(self.pid)
        # One that is ending has lost its command line already.
        return now is not None and now.began == self.began and now.command in {self.command, ""}

    def write(self, path: Path) -> None:
        """Keeps it in a file."""
        write_atomically(path, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """The record in a file; None if there is none that can be read."""
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            return cls(int(kept["pid"]), int(kept["port"]), float(kept["since"]), str(kept["began"]), str(kept["command"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None


class Detached:
    """A process just started, in a session of its own: it outlives this program and its terminal.

    Args:
        command: The program and its arguments.
        environment: All its variables.
        log: The file for its output; an older one is kept beside it.

    Raises:
        OSError: It can't be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        if log.exists():
            log.replace(log.with_suffix(".previous.log"))
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                list(command),
                env=dict(environment),
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.since = time.time()

    def record(self, port: int) -> Record:
        """What is to be kept of it; if it ended at once, a record of something that does not run."""
        until = time.monotonic() + _IDENTIFY_SECONDS
        while self.exit_code is None and time.monotonic() < until:
            identity = identify(self.pid)
            if identity is not None and identity.command:  # for a moment after its start it has none
                return Record(self.pid, port, self.since, identity.began, identity.command)
            time.sleep(_POLL_SECONDS)
        return Record(self.pid, port, self.since, "", "")

    @property
    def exit_code(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.poll()

    def let_go(self) -> None:
        """It is on its own now: without this, the library would complain of a child left behind."""
        if self._process.returncode is None:
            self._process.returncode = 0


def identify(pid: int) -> Identity | None:
    """What tells the process of that number from others; None if there is none that runs."""
    if not (_PROC / "self" / "stat").exists():
        return identify_by_ps(pid)
    try:
        # The name before the last bracket may hold anything.
        fields = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        command = (_PROC / str(pid) / "cmdline").read_bytes()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # Its first thread may have ended before the others.
    if fields[_STATE] in _ENDED and int(fields[_THREADS]) <= 1:
        return None
    return Identity(f"{boot}:{fields[_BEGAN]}", command.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace"))


def identify_by_ps(pid: int) -> Identity | None:
    """The same where there is no /proc."""
    shown = _ps(pid, "state=,lstart=,command=")
    words = shown.split(maxsplit=1 + _LSTART_WORDS)
    if len(words) < 1 + _LSTART_WORDS or words[0][0] in _ENDED:
        return None
    return Identity(" ".join(words[1 : 1 + _LSTART_WORDS]), "".join(words[1 + _LSTART_WORDS :]))


def memory_bytes(pid: int) -> int | None:
    """The memory of a process that is in use now, without what was swapped out."""
    try:
        lines = (_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        shown = _ps(pid, "rss=")
        return int(shown) * _KIB if shown.isdecimal() else None
    return next((int(line.split()[1]) * _KIB for line in lines if line.startswith("VmRSS:")), None)


def stop(record: Record, *, grace_seconds: float) -> bool:
    """Asks a process to end, and ends it if it does not in time.

    Args:
        record: The process. Another one that got its number is left alone.
        grace_seconds: How long it may take to end by itself.

    Returns:
        Whether it has ended.

    Raises:
        PermissionError: It belongs to another user.
    """
    if record.runs:
        _signal(record.pid, signal.SIGTERM)
        if not _ended(record, grace_seconds) and record.runs:
            # It leads a session of its own, so what it started goes with it.
            _signal(-record.pid, signal.SIGKILL)
            return _ended(record, _AFTER_KILL_SECONDS)
    return True


def _ended(record: Record, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while record.runs:
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        if pid < 0:
            os.killpg(-pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return


def _ps(pid: int, columns: str) -> str:
    try:
        ran = subprocess.run(["ps", "-ww", "-o", columns, "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S607
    except OSError:
        return ""
    return ran.stdout.strip()
