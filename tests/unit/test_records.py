"""Records: dataclasses that are made in little time."""

from __future__ import annotations

from dataclasses import field, fields, replace

import pytest

from pulse_kg.domain.records import record


@record
class Point:
    """A point."""

    x: int
    y: int = 0
    names: tuple[str, ...] = field(default=(), kw_only=True)


@record
class Named(Point):
    """A point with a name."""

    name: str = ""

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and other.name == self.name


def test_a_record_has_its_fields_and_their_defaults() -> None:
    point = Point(1, names=("a",))
    assert (point.x, point.y, point.names) == (1, 0, ("a",))
    assert [each.name for each in fields(Point)] == ["x", "y", "names"]
    assert replace(point, y=2).y == 2


def test_a_record_shows_what_it_has() -> None:
    assert repr(Point(1)) == "Point(x=1, y=0, names=())"


def test_two_records_are_equal_only_where_they_say_how() -> None:
    assert Point(1) != Point(1)
    assert Named(1, 2, "a") == Named(3, 4, "a")
    assert len({Named(1, 2, "a"), Named(3, 4, "a"), Named(1, 2, "b")}) == 2


def test_a_record_takes_nothing_that_it_does_not_name() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]
