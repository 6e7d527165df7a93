"""Runs `pulse-kg` in this process, as a shell would: arguments in; exit code, standard output and standard error out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from pulse_kg.cli.main import cli


@dataclass(frozen=True)
class Ran:
    """What a run came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        assert self.out.count("\n") == 1, f"not one line: {self.out!r} {self.err!r}"
        return json.loads(self.out)

    @property
    def error(self) -> Mapping[str, Any]:
        """What the error envelope holds."""
        shown = self.json
        assert list(shown) == ["error"], shown
        error: Mapping[str, Any] = shown["error"]
        return error


@dataclass
class Shell:
    """A folder with a store in it, and variables of its own."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        return self.folder / "team.db"

    def run(self, *arguments: str, stdin: str | bytes | None = None, **variables: str) -> Ran:
        """Runs a command on the store."""
        return self.bare("--store", f"sqlite:{self.store}", *arguments, stdin=stdin, **variables)

    def bare(self, *arguments: str, stdin: str | bytes | None = None, **variables: str) -> Ran:
        """Runs a command without naming the store."""
        inherited = {name: None for name in os.environ if name.startswith("PULSE_KG_")}
        environment = {**inherited, "PULSE_KG_EMBEDDER": "hashing", **self.variables, **variables}
        result = CliRunner().invoke(cli, arguments, input=stdin, env=environment)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    def done(self, *arguments: str, stdin: str | bytes | None = None, **variables: str) -> Any:
        """The JSON document of a command that is expected to succeed."""
        ran = self.run(*arguments, "--json", stdin=stdin, **variables)
        assert ran.code == 0, (ran.out, ran.err)
        return ran.json
