"""How answers look at a terminal and in a pipe."""

from __future__ import annotations

import io
import re
import sys

import pytest

from pulse_kg.cli.output import Table, counted, plain_lines, render, to_the_second, write_json

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
        (0.83508230, "0.8351"),
        (0.95, "0.95"),
        (1.0, "1.0"),
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


ID = "kgs_01ARZ3NDEKTSV4RRFFQ69G5FAV"
WORDS = "a decision that was made for a reason, and superseded for another one, long after anybody remembered"


def shown(monkeypatch: pytest.MonkeyPatch, table: Table, columns: int) -> list[str]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    render([table])
    return [line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", terminal.getvalue()).splitlines()]


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_only_texts_are_broken_over_lines_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    table = Table(("session", "what", "n"), [(ID, WORDS, 17)], texts=("what",))
    lines = shown(monkeypatch, table, columns)
    assert any(ID in line and "17" in line for line in lines)
    assert max(map(len, lines)) <= columns
    assert set(WORDS.split()) <= set(" ".join(lines).split())


def test_on_a_narrow_terminal_texts_stand_below_their_row(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(("session", "what", "n"), [(ID, "short", 17), (ID, "[bold] other", 4)], texts=("what",))
    assert shown(monkeypatch, table, 40) == [f"session{' ' * 25}n", f"{ID}  17", "  short", f"{ID}  4", "  [bold] other"]


def test_a_table_without_texts_is_wider_than_a_terminal_rather_than_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Table(("a", "b"), [(ID, ID)]), 40)[1] == f"{ID}  {ID}"


def test_times_in_tables_have_no_fraction() -> None:
    assert to_the_second("2026-01-02T03:04:05.678Z") == "2026-01-02T03:04:05Z"
    assert to_the_second(None) is None


def test_one_of_a_thing_is_told_as_one() -> None:
    assert [counted(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
    assert [counted(n, "body", "bodies") for n in (1, 2)] == ["1 body", "2 bodies"]


def test_json_is_one_line_in_a_pipe_and_indented_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_json({"title": "é"})
    assert capfdbinary.readouterr().out == '{"title":"é"}\n'.encode()
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    write_json({"title": "é"})
    assert terminal.getvalue() == '{\n  "title": "é"\n}\n'
