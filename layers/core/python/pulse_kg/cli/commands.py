"""Kinds of commands: each takes `--json`, each teaches by example, and a group imports a command only to run it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pulse_kg.cli.app import App
from pulse_kg.settings import parse_store

Section = str | Sequence[tuple[str, str]]
"""A part of a help: prose, or terms with their meanings."""

_CHECKOUT_DEPTH = 5  # cli, pulse_kg, python, core, layers


class Command(click.Command):
    """A command with `--json` and examples.

    Args:
        args: As click.Command.
        examples: Lines for the end of the help.
        sections: Heading → what stands under it, before the examples.
        kwargs: As click.Command.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), sections: Mapping[str, Section] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common_options()
        self.examples = tuple(examples)
        self.sections = dict(sections or {})

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the sections and the examples."""
        super().format_epilog(ctx, formatter)
        for heading, section in self.sections.items():
            with formatter.section(heading):
                if isinstance(section, str):
                    formatter.write_text(section)
                else:
                    formatter.write_dl(list(section))
        _write_examples(self.examples, formatter)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common_options()
        self.examples = tuple(examples)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of their definition, which follows their use."""
        del ctx
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples."""
        super().format_epilog(ctx, formatter)
        _write_examples(self.examples, formatter)


@dataclass(frozen=True)
class Lazy:
    """Where a command is, and its line in the list, for which it need not be imported.

    Attributes:
        place: ``module:name``.
        summary: One line.
        listed: Whether it is in the list; asked when the list is shown.
    """

    place: str
    summary: str
    listed: Callable[[], bool] = lambda: True


class LazyGroup(click.Group):
    """A group whose commands are imported when they run.

    Args:
        args: As click.Group.
        lazy: Name → where it is.
        examples: Lines for the end of the help.
        kwargs: As click.Group.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy)
        self.examples = tuple(examples)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order given."""
        del ctx
        return [name for name, found in self.lazy.items() if found.listed()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command."""
        del ctx
        found = self.lazy.get(cmd_name)
        if found is None:
            return None
        module, _, name = found.place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.lazy[name].summary) for name in self.list_commands(ctx)])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples."""
        super().format_epilog(ctx, formatter)
        _write_examples(self.examples, formatter)


def checked_store(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """A callback of options whose value is the address of a store."""
    try:
        return None if value is None else parse_store(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def benchmark_root() -> Path | None:
    """The checkout that this package runs from, if it has the benchmark."""
    parents = Path(__file__).resolve().parents
    root = parents[min(_CHECKOUT_DEPTH, len(parents) - 1)]
    return root if (root / "bench" / "__main__.py").is_file() else None


def _common_options() -> list[click.Parameter]:
    def take_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
        app = ctx.find_object(App)
        if value and app is not None:
            app.json = True

    def take_store(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
        app, store = ctx.find_object(App), checked_store(ctx, parameter, value)
        if store is not None and app is not None:
            app.choose(store)

    return [
        # It belongs before the command, where the help has it; who puts it after means the same.
        click.Option(["--store"], expose_value=False, hidden=True, callback=take_store),
        click.Option(
            ["--json"], is_flag=True, expose_value=False, is_eager=True, callback=take_json, help="One JSON document on standard output."
        ),
    ]


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")
