"""What a command works with: the settings, the stores, and where its answer goes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import click

from pulse_kg.cli.output import Part, render, write_json
from pulse_kg.errors import Problem, StoreUnavailable
from pulse_kg.settings import API_KEY_VARIABLE, PREFIX, LogLevel, Settings

if TYPE_CHECKING:
    from pathlib import Path

    from pulse_kg.bootstrap import Container

_STORE_VARIABLE = PREFIX + "STORE"
_PROGRESS_STEP = 20  # commits


class MissingStore(StoreUnavailable):
    """There is no store at the place that was named; calling again does not make one."""

    retryable: ClassVar[bool] = False

    def __init__(self, path: Path) -> None:
        super().__init__(
            "embedded",
            f"There is no store at {path}. Make one with 'pulse-kg boards create BOARD', or try everything with 'pulse-kg demo'; "
            f"another place is named by --store sqlite:PATH or {_STORE_VARIABLE}.",
        )


class App:
    """One run of the program.

    Args:
        environment: The variables by name.

    Attributes:
        json: Whether the answer is one JSON document.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._store: str | None = None
        self._container: Container | None = None
        self._opened: list[Container] = []
        self.json = False

    def choose(self, store: str | None, *, json: bool) -> None:
        """Takes the options before the command.

        Args:
            store: The address of the store; None for that of the environment.
            json: Whether the answer is one JSON document.
        """
        self._store = store
        self.json = json

    @cached_property
    def settings(self) -> Settings:
        """The settings of this run.

        Raises:
            SettingsError: Values that can't be used.
        """
        chosen = {} if self._store is None else {_STORE_VARIABLE: self._store}
        return Settings.from_environment({**self._environment, **chosen})

    @property
    def log_level(self) -> LogLevel:
        """The level of the log, before and after the settings are read."""
        read: Settings | None = self.__dict__.get("settings")
        return "WARNING" if read is None else read.log_level

    @property
    def chosen_path(self) -> Path | None:
        """The file of the store, if `--store` named one."""
        return None if self._store is None else self.settings.sqlite_path

    @property
    def api_key(self) -> str | None:
        """The caller's key from the environment."""
        return self._environment.get(API_KEY_VARIABLE, "").strip() or None

    def container(self, *, create: bool = False) -> Container:
        """The stores of this run, the same at each call.

        Args:
            create: Whether a missing embedded store is made.

        Raises:
            MissingStore: There is none, and none is to be made.
            InvalidArgument: A store that this build has not.
        """
        if self._container is None:
            self._container = self.open(self.settings, create=create)
        return self._container

    def open(self, settings: Settings, *, create: bool = False) -> Container:
        """Opens the stores that the settings name, until `close`.

        Raises:
            MissingStore, InvalidArgument: As `container`.
        """
        import logging

        from pulse_kg.bootstrap import open_container

        require_embedded(settings, create=create)
        logging.basicConfig(level=settings.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        container = open_container(settings, create=create)
        self._opened.append(container)
        return container

    def close(self) -> None:
        """Closes what was opened."""
        while self._opened:
            self._opened.pop().close()

    def answer(self, document: Mapping[str, Any], *parts: Part) -> None:
        """Writes the answer of a command: the document with `--json`, else the parts for a reader."""
        if self.json:
            write_json(document)
        else:
            render(parts)

    def note(self, text: str) -> None:
        """Tells a person something beside the answer."""
        click.echo(text, err=True)

    def progress(self, what: str) -> Callable[[int, int], None]:
        """Tells a person at a terminal how far a long command is; says nothing elsewhere.

        Args:
            what: What is worked on.
        """
        shown = sys.stderr.isatty()

        def tell(done: int, of: int) -> None:
            if shown and (done == of or done % _PROGRESS_STEP == 0):
                click.echo(f"\r{what}: {done} of {of} commits", err=True, nl=done == of)

        return tell


def require_embedded(settings: Settings, *, create: bool) -> None:
    """Refuses a store that is not there, and one that this build has not.

    Raises:
        MissingStore: There is none, and none is to be made.
        InvalidArgument: `aws`, or a folder that is not there.
    """
    from pulse_kg.usecases.boards import refused  # it imports the whole domain, which --help does without

    path = settings.sqlite_path
    if path is None:
        raise refused("This build has only the embedded store", [Problem("store", "the store must be sqlite:PATH, not aws")])
    if not path.exists() and not create:
        raise MissingStore(path)
    if not path.parent.is_dir():
        raise refused("The store can't be made there", [Problem("store", f"there is no folder {path.parent}")])


pass_app = click.make_pass_decorator(App)
