"""What a command works with: the settings, the stores, and where its answer goes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import click

from pulse_kg.cli.output import Part, render, write_json
from pulse_kg.errors import Problem, PulseError, StoreUnavailable
from pulse_kg.settings import API_KEY_VARIABLE, PREFIX, LogLevel, Settings

if TYPE_CHECKING:
    from pathlib import Path

    from pulse_kg.bootstrap import Container

_STORE_VARIABLE = PREFIX + "STORE"
_SQLITE = "sqlite"  # what the embedded store's own errors call it
_PATIENCE_SECONDS = 60.0  # for one request to a served store, some of which read a whole board; a tool's call has its own bound
_PROGRESS_STEP = 20  # commits
_TALKATIVE = ("uvicorn", "websockets", "httpcore")  # at DEBUG they log the headers of requests, and so API keys


class UnusablePlace(StoreUnavailable):
    """No store can be at the place that was named; calling again changes nothing."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__("embedded", f"{message} Another place is named by --store sqlite:PATH or {_STORE_VARIABLE}.")


class MissingStore(UnusablePlace):
    """There is no store at the place that was named; calling again does not make one."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"There is no store at {path.absolute()}. Make one with 'pulse-kg boards create BOARD', or try everything with 'pulse-kg demo'."
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
        self._paths: list[Path] = []
        self.json = False

    def choose(self, store: str | None, *, json: bool = False) -> None:
        """Takes options that every command has; what is not given stays as it is.

        Args:
            store: The address of the store; None for that of the environment.
            json: Whether the answer is one JSON document.
        """
        self._store = store or self._store
        self.json = json or self.json

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
    def missing_path(self) -> Path | None:
        """The whole path of the embedded store, while there is none yet."""
        path = self.settings.sqlite_path
        if path is None:
            return None
        try:
            return None if path.exists() else path.absolute()
        except OSError:  # `container` tells what is wrong with it
            return None

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
            StoreUnavailable: The served stores' addresses are not known.
        """
        if self._container is None:
            self._container = self.open(self.settings, create=create)
        return self._container

    def open(self, settings: Settings, *, create: bool = False) -> Container:
        """Opens the stores that the settings name, until `close`.

        Raises:
            MissingStore, StoreUnavailable: As `container`.
        """
        from pulse_kg.bootstrap import open_container

        path = embedded_file(settings, create=create)
        _log_to_stderr(settings.log_level)
        paths = [] if path is None else [path]
        others, self._paths = self._paths, paths  # where opening fails, this file is the one
        container = open_container(settings, create=create, environment=self._environment)
        if path is None:
            from pulse_kg.adapters.budget import be_patient

            be_patient(_PATIENCE_SECONDS)
        self._paths = [*others, *paths]
        self._opened.append(container)
        return container

    def located(self, error: PulseError) -> str:
        """The message of an error, and which file it is about if it comes from the embedded store; for this program only, not for tools."""
        if not (self._paths and error.details.get("store") == _SQLITE):
            return error.message
        return f"{error.message} (Store: {', '.join(str(path.absolute()) for path in self._paths)})"

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

    def progress(self, what: str, unit: str = "commits") -> Callable[[int, int], None]:
        """Tells a person at a terminal how far a long command is; says nothing elsewhere.

        Args:
            what: What is worked on.
            unit: What is counted.
        """
        shown = sys.stderr.isatty()

        def tell(done: int, of: int) -> None:
            if shown and (done == of or done % _PROGRESS_STEP == 0):
                click.echo(f"\r{what}: {done} of {of} {unit}", err=True, nl=done == of)

        return tell


def _log_to_stderr(level: LogLevel) -> None:
    import logging

    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLevelNamesMapping()[level]))


def embedded_file(settings: Settings, *, create: bool) -> Path | None:
    """The file of the embedded store, None for the served ones; refuses one that is not there.

    Raises:
        MissingStore: There is none, and none is to be made.
        UnusablePlace: What is there can't be a store, or none can be made there.
        InvalidArgument: A folder that is not there.
    """
    from pulse_kg.usecases.boards import refused  # it imports the whole domain, which --help does without

    path = settings.sqlite_path
    if path is None:
        return None
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if not create:
            raise MissingStore(path) from None
        folder = path.absolute().parent
        if not folder.is_dir():
            raise refused("The store can't be made there", [Problem("store", f"there is no folder {folder}")]) from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UnusablePlace(f"You may not make a file in the folder {folder}, so no store can be made there.") from None
    except OSError as error:
        raise UnusablePlace(f"The store {path.absolute()} can't be reached: {error.strerror}.") from None
    else:
        if stat.S_ISDIR(mode):
            raise UnusablePlace(f"{path.absolute()} is a folder, and a store is a file: name one in it.")
        if not os.access(path, os.R_OK):
            raise UnusablePlace(f"You may not read the store {path.absolute()}: its owner has to let you.")
    return path


pass_app = click.make_pass_decorator(App)
