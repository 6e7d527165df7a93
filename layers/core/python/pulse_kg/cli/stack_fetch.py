"""What the local servers are made of: fetched once, checked against the locks of the checkout, kept in its .local.

A folder is complete when it has a stamp that matches the files it was made from; anything else is made anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulse_kg.cli.stack_places import Places, StackError, with_log, write_atomically

Tell = Callable[[str], None]
"""Takes how far a fetch is."""

JAVA_VERSION: Final = 17
_STAMP: Final = ".complete"
_SHOWN: Final = 3  # names of wrong jars
_JAVA_MAJOR: Final = re.compile(r'version "(?:1\.)?(\d+)')
_MAVEN_GOT: Final = re.compile(r"Downloaded from \S+ \S*?([^/\s]+) \(([\d.]+) (B|kB|MB)")
_MEGABYTES: Final = {"B": 1e-6, "kB": 1e-3, "MB": 1.0}
_PIP_COLLECTS: Final = re.compile(r"Collecting (\S+?)==")


@dataclass(frozen=True)
class Tools:
    """The programs of this machine that the servers need, as paths; None for one that is not there.

    Attributes:
        java: Runs the servers.
        javac: Compiles the start of OpenSearch.
        mvn: Fetches the jars.
    """

    java: str | None
    javac: str | None
    mvn: str | None

    @classmethod
    def find(cls, environment: Mapping[str, str]) -> Tools:
        """Looks in JAVA_HOME, then on the PATH."""
        path = environment.get("PATH", os.defpath)
        home = environment.get("JAVA_HOME")
        java_path = os.pathsep.join([str(Path(home) / "bin"), path]) if home else path
        return cls(shutil.which("java", path=java_path), shutil.which("javac", path=java_path), shutil.which("mvn", path=path))

    def missing(self, *, to_fetch: bool) -> list[str]:
        """What is missing to run the servers, each in words.

        Args:
            to_fetch: Whether they have to be fetched first.
        """
        missing = []
        if self.java is None:
            missing.append(f"Java {JAVA_VERSION} or later (the program java)")
        elif (major := _major(self.java)) is None or major < JAVA_VERSION:
            missing.append(f"Java {JAVA_VERSION} or later ({self.java} {f'is Java {major}' if major else 'does not run'})")
        if to_fetch and self.javac is None:
            missing.append("a JDK (the program javac; a JRE alone is not enough)")
        if to_fetch and self.mvn is None:
            missing.append("Maven (the program mvn)")
        return missing


def _major(java: str) -> int | None:
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _JAVA_MAJOR.search(ran.stderr + ran.stdout)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class Bundle:
    """One thing to fetch.

    Attributes:
        folder: Where it is kept.
        sources: The files it is made from; when one of them changes, it is made anew.
        make: Fills the empty folder.
        size: What is fetched, for a person.
        program: A file without which the folder is of no use; None for none.
    """

    folder: Path
    sources: Sequence[Path]
    make: Callable[[Tell], None]
    size: str
    program: Path | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing has to be fetched."""
        if self.program is not None and not self.program.exists():
            return False
        try:
            return (self.folder / _STAMP).read_text(encoding="ascii") == self._digest()
        except OSError:
            return False

    def fetch(self, tell: Tell) -> None:
        """Makes it anew.

        Raises:
            StackError: It could not be fetched, or is not what the lock says.
        """
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        self.make(tell)
        write_atomically(self.folder / _STAMP, self._digest())

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for source in self.sources:
            digest.update(hashlib.sha256(source.read_bytes()).digest())
        return digest.hexdigest()


def emulator(places: Places, environment: Mapping[str, str]) -> Bundle:
    """The emulator in a Python environment of its own, from a lock with hashes."""
    folder = places.fetched / "emulator"
    python = folder / "bin" / "python"
    lock = places.checkout / "requirements" / "emulator.txt"

    def make(tell: Tell) -> None:
        log = places.log("fetch-ministack")
        what = "The emulator of AWS could not be installed"
        log.unlink(missing_ok=True)
        _run([sys.executable, "-m", "venv", str(folder)], what, log, environment)
        # Its output is what the progress is read from, and `make` has pip quiet.
        heard = {name: value for name, value in environment.items() if name != "PIP_QUIET"}
        pip = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
        count = 0

        def read(line: str) -> None:
            nonlocal count
            found = _PIP_COLLECTS.match(line)
            if found:
                count += 1
                tell(f"{count} packages, {found[1]}")

        _run([*pip, "--require-hashes", "-r", str(lock)], what, log, heard, read)

    return Bundle(folder, [lock], make, "17 packages, 20 MB", python)


def jars(name: str, size: str, places: Places, environment: Mapping[str, str], tools: Tools) -> Bundle:
    """The jars of a server, as Maven resolves its pom.xml, with what is compiled against them.

    Args:
        name: Its folder in infra/local.
        size: What is fetched, for a person.
        places: The folders.
        environment: Variables for Maven.
        tools: The machine's programs.
    """
    folder = places.fetched / "jars" / name
    home = places.sources / name
    pom, manifest, launchers = home / "pom.xml", home / "jars.sha256", sorted(home.glob("*.java"))

    def make(tell: Tell) -> None:
        log = places.log(f"fetch-{name}")
        log.unlink(missing_ok=True)
        count, megabytes = 0, 0.0

        def read(line: str) -> None:
            nonlocal count, megabytes
            found = _MAVEN_GOT.search(line)
            if found:
                count += 1
                megabytes += float(found[2]) * _MEGABYTES[found[3]]
                tell(f"{count} files, {megabytes:.0f} MB, {found[1]}")

        command = [str(tools.mvn), "--batch-mode", "--file", str(pom), "generate-resources", f"-DjarsDir={folder}"]
        _run(command, f"The jars of {name} could not be fetched by Maven", log, environment, read)
        tell("checking")
        check_jars(folder, manifest)
        if launchers:
            tell("compiling")
            compiler = [str(tools.javac), "-proc:none", "-cp", f"{folder}/*", "-d", str(folder / "classes")]
            _run([*compiler, *map(str, launchers)], f"The start of {name} could not be compiled", log, environment)

    return Bundle(folder, [pom, manifest, *launchers], make, size)


def check_jars(folder: Path, manifest: Path) -> None:
    """Compares the jars in a folder with a list of their SHA-256 digests.

    Raises:
        StackError: One is missing, is another, or is not in the list.
    """
    wanted = {line.split()[1]: line.split()[0] for line in manifest.read_text(encoding="utf-8").splitlines() if line.strip()}
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.glob("*.jar")}
    wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if wrong:
        shown = ", ".join(wrong[:_SHOWN]) + (", …" if len(wrong) > _SHOWN else "")
        raise StackError(
            f"What Maven gave differs from {manifest}: {shown}. A damaged file is cured by removing it from Maven's local repository and "
            "running 'pulse-kg up' again. After a change of the pom.xml, write the list anew as docs/local-stack.md says."
        )


def _run(command: Sequence[str], what: str, log: Path, environment: Mapping[str, str], read: Tell | None = None) -> None:
    """Runs a program whose output goes to a log, line by line past `read`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as kept:
        try:
            program = subprocess.Popen(
                list(command),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise StackError(f"{what}: {command[0]} can't be run ({error.strerror}).") from None
        with program as running:
            for line in running.stdout or ():
                kept.write(line)
                if read is not None:
                    read(line)
    if program.returncode:
        raise StackError(with_log(f"{what} (exit code {program.returncode}). It is tried again by the next 'pulse-kg up'.", log))
