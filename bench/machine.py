"""The machine that a report is of: facts, the speed of its disk and processor, and how much that varies.

No name of the machine and no path goes into a report.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.stats import Summary, timed_ms

_PAGE = bytes(range(256)) * 16  # 4 KiB
_ROUNDS = 40_000
_MIB = 1024 * 1024
_BLOCK = 8 * _MIB
_CALM = 1.2  # crowding of a quiet machine
_LOOK_AGAIN_SECONDS = 5.0


def facts(folder: Path) -> dict[str, Any]:
    """What is known of the machine.

    Args:
        folder: Where the stores of the benchmark are, whose disk is measured.
    """
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_mib": _memory_mib(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: importlib.metadata.version(name) for name in ("numpy", "onnxruntime", "pydantic", "tokenizers")},
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "fsync_ms": fsync(folder).as_dict(),
        "calibration_ms": calibration(21).as_dict(),
    }


def calibration(times: int = 9) -> Summary:
    """Milliseconds of a fixed loop of plain Python, to compare machines by and to see how quiet one is."""
    return Summary.of([timed_ms(_loop) for _ in range(times)])


def crowding(times: int = 9) -> Summary:
    """How much longer all cores take for one piece of work each than one core for its own: 1 where nothing else runs."""
    cores = os.cpu_count() or 1
    block = bytes(_BLOCK)

    def hashed() -> None:
        hashlib.sha256(block).digest()  # outside of Python's global lock

    with ThreadPoolExecutor(cores) as pool:

        def all_at_once() -> None:
            for done in [pool.submit(hashed) for _ in range(cores)]:
                done.result()

        all_at_once()
        alone = min(timed_ms(hashed) for _ in range(times))
        return Summary.of([timed_ms(all_at_once) / alone for _ in range(times)])


def noise() -> dict[str, Any]:
    """How quiet the machine is at this moment."""
    return {"loop_ms": calibration().as_dict(), "crowding": crowding().as_dict()}


def calm(patience_seconds: float) -> bool:
    """Waits until all cores are free, or for so many seconds; tells whether they are."""
    until = time.monotonic() + patience_seconds
    while crowding(3).p50 > _CALM:
        if time.monotonic() >= until:
            return False
        time.sleep(_LOOK_AGAIN_SECONDS)
    return True


def fsync(folder: Path, times: int = 100) -> Summary:
    """Milliseconds of appending 4 KiB to a file and making them durable."""
    path = folder / f"fsync-{os.getpid()}.tmp"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    def append() -> None:
        os.write(descriptor, _PAGE)
        os.fsync(descriptor)

    try:
        append()
        return Summary.of([timed_ms(append) for _ in range(times)])
    finally:
        os.close(descriptor)
        path.unlink()


def rss_mib(pid: int) -> float | None:
    """The memory of a process in MiB; None where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    except (OSError, StopIteration):
        told = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout.strip()
        if not told.isdigit():
            return None
        kib = int(told)
    return round(kib / 1024, 1)


def revision(root: Path) -> str | None:
    """The commit that is checked out, with ``-dirty`` where files differ from it; None outside of git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def now() -> str:
    """The time of a report, UTC, in whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _loop() -> int:
    total, seen = 0, {}
    for number in range(_ROUNDS):
        total = (total * 31 + number) & 0xFFFFFFFF
        seen[number & 255] = f"{total:x}"
    return total + len(seen)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _memory_mib() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
    except (ValueError, OSError):
        return None
