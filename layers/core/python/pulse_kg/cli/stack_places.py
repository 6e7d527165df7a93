"""Where the local servers have their things, and how their commands refuse."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from pulse_kg.errors import StoreUnavailable

_CHECKOUT_DEPTH: Final = 5  # cli, pulse_kg, python, core, layers
_LOCAL: Final = ".local"
_TAIL_LINES: Final = 15
_TAIL_BYTES: Final = 16_384
_WIDEST: Final = 240  # characters of a log line that is shown


class StackError(StoreUnavailable):
    """The local servers can't be had; the message says what to do, and the same call again changes nothing by itself."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__("local", message, details)


@dataclass(frozen=True)
class Places:
    """The folders.

    Attributes:
        checkout: The root of the checkout, which holds infra/local and what was fetched.
        home: Data, logs and records of one stack; .local of the checkout unless another was named.
    """

    checkout: Path
    home: Path

    @classmethod
    def find(cls, named: Path | None) -> Places:
        """The folders for a stack.

        Args:
            named: The folder for data, logs and records; None for that of the checkout.

        Raises:
            StackError: The package does not run from a checkout, or a folder's name can't be used.
        """
        above = Path(__file__).resolve().parents
        checkout = above[min(_CHECKOUT_DEPTH, len(above) - 1)]
        if not (checkout / "infra" / "local").is_dir():
            raise StackError(
                "The local servers come with a checkout of the project (its folder infra/local), and this package runs from none. "
                "Clone the project and run 'make up' there. The embedded store, --store sqlite:PATH, needs none of them."
            )
        places = cls(checkout, (named or checkout / _LOCAL).resolve())
        for folder in (places.fetched, places.home):
            # A comma ends a value in JanusGraph's properties, and a class path is a list.
            faults = [character for character in f",{os.pathsep}*\n" if character in str(folder)]
            if faults:
                raise StackError(f"The servers can't run in the folder {folder}: its name has {faults[0]!r}. Name another with --dir.")
        return places

    def command(self, name: str) -> str:
        """How a person calls a command for these folders."""
        usual = self.home == (self.checkout / _LOCAL).resolve()
        return f"pulse-kg {name}" if usual else f"pulse-kg {name} --dir {shlex.quote(str(self.home))}"

    @property
    def sources(self) -> Path:
        """How the servers are set up."""
        return self.checkout / "infra" / "local"

    @property
    def fetched(self) -> Path:
        """What is fetched once for all stacks of a checkout."""
        return self.checkout / _LOCAL

    @property
    def env_file(self) -> Path:
        """The variables that lead `--store aws` to the servers."""
        return self.home / "stack.env"

    @property
    def lock_file(self) -> Path:
        """Held while servers are started or stopped."""
        return self.home / "run" / "lock"

    @property
    def all_data(self) -> Path:
        """What `down --wipe` removes."""
        return self.home / "data"

    def data(self, name: str) -> Path:
        """The data of a server."""
        return self.all_data / name

    def run(self, name: str) -> Path:
        """What a server is started with: settings made for it, its temporary files."""
        return self.home / "run" / name

    def record(self, name: str) -> Path:
        """The record of a server's process."""
        return self.home / "run" / f"{name}.json"

    def log(self, name: str) -> Path:
        """The output of a server, or of what fetched it."""
        return self.home / "log" / f"{name}.log"


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that a reader sees the old text or the new one, wholly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def env_lines(variables: Mapping[str, str], comments: Iterable[str]) -> str:
    """The text of a file of variables: KEY=VALUE lines that a shell can source as well."""
    return "".join([*(f"# {comment}\n" for comment in comments), *(f"{name}={value}\n" for name, value in variables.items())])


def tail(log: Path) -> list[str]:
    """The last lines of a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    return [line[:_WIDEST] for line in lines if line.strip()][-_TAIL_LINES:]


def with_log(what: str, log: Path) -> str:
    """A failure, where its log is, and how that ends."""
    last = tail(log)
    return "\n".join([what, f"  Log: {log}", *(f"  | {line}" for line in last)] if last else [what, f"  Log: {log} (empty)"])
