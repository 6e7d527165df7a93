"""How answers look at a terminal and in a pipe."""

from __future__ import annotations

import io
import sys

import pytest

from pulse_kg.cli.output import Table, plain_lines, render, write_json

TABLE = Table(("board", "what"), [("web", "[bold]as it is[/bold]"), ("a longer one", None)])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_tables_are_aligned_and_have_no_trailing_blanks() -> None:
    assert plain_lines(TABLE) == ["board         what", "web           [bold]as it is[/bold]", "a longer one"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        (False, "no"),
        (None, ""),
        (["b", "a"], "b, a"),
        (frozenset({"b", "a"}), "a, b"),
        ({"a": 1}, '{"a": 1}'),
        ("two\nlines", "two lines"),
        (0, "0"),
    ],
)
def test_cells_are_told_in_words(value: object, text: str) -> None:
    assert plain_lines(Table(("x",), [(value,)]))[1] == text


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    render([Table(("x",), [], "Nothing there.")])
    assert capsys.readouterr().out == "Nothing there.\n"


def test_a_terminal_gets_a_table_in_which_texts_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    render([TABLE])
    assert "\x1b[" in terminal.getvalue()
    assert "[bold]as it is[/bold]" in terminal.getvalue()


def test_json_is_one_line_in_a_pipe_and_indented_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_json({"title": "é"})
    assert capfdbinary.readouterr().out == '{"title":"é"}\n'.encode()
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    write_json({"title": "é"})
    assert terminal.getvalue() == '{\n  "title": "é"\n}\n'
