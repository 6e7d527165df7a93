"""`=~` matches whole texts, in linear time, and says which patterns it can't take."""

from __future__ import annotations

from typing import Any

import pytest

from pulse_kg.cypher.faults import Fault
from pulse_kg.cypher.regex import MAX_PATTERN, matches


@pytest.mark.parametrize(
    ("text", "pattern", "answer"),
    [
        ("abc", "abc", True),
        ("abc", "ab", False),
        ("abc", "bc", False),
        ("abc", "b", False),
        ("abc", ".*b.*", True),
        ("abc", "a|abc", True),
        ("ABC", "abc", False),
        ("ABC", "(?i)abc", True),
        ("a\nb", "a.b", False),
        ("a\nb", "(?s)a.b", True),
        ("abc\n", "abc", False),
        ("Größe", "Gr..e", True),
        ("Größe", r"\p{L}+", True),
        ("42", r"\d+", True),
        ("", "", True),
        ("", ".+", False),
        ("a.b", r"a\.b", True),
        ("axb", r"a\.b", False),
    ],
)
def test_the_whole_text_matches_or_not(text: str, pattern: str, answer: bool) -> None:
    assert matches(text, pattern) is answer


@pytest.mark.parametrize("other", [None, 1, True, ["abc"], {}])
def test_it_is_not_known_unless_both_are_texts(other: Any) -> None:
    assert matches(other, "abc") is None
    assert matches("abc", other) is None


@pytest.mark.parametrize(
    ("pattern", "named"), [("(?=a)b", r"\(\?="), (r"(a)\1", r"\\1"), ("(", "missing"), ("a++", r"\+\+"), ("[z-a]", "z-a")]
)
def test_a_pattern_that_can_not_be_taken_is_refused_and_its_fault_named(pattern: str, named: str) -> None:
    for _ in range(2):  # the second time is like the first
        with pytest.raises(Fault, match=named) as refused:
            matches("abc", pattern)
        assert (refused.value.kind, refused.value.phase) == ("InvalidArgumentValue", "run")


def test_a_refusal_writes_nothing_to_the_error_stream(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Fault):
        matches("abc", "(?<!a)b")
    assert capfd.readouterr() == ("", "")


def test_a_pattern_has_a_length_and_a_size() -> None:
    assert matches("a" * MAX_PATTERN, "a" * MAX_PATTERN) is True
    with pytest.raises(Fault, match="1,000 characters"):
        matches("a", "a" * (MAX_PATTERN + 1))
    with pytest.raises(Fault):
        matches("a", "(((a{1,100}){1,100}){1,100})")


def test_a_pattern_that_backtracking_would_never_end_with_answers() -> None:
    assert matches("a" * 50_000 + "c", "(a+)+b") is False
    assert matches("a" * 50_000, "(a|aa)*") is True


def test_a_lone_surrogate_matches_nothing() -> None:
    assert matches("\ud800", ".*") is False
    assert matches("a", "\ud800") is False
