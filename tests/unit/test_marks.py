"""The applied mark of a board within one call: what was read of it first counts for all of the call."""

from __future__ import annotations

import pytest

from pulse_kg.adapters.served.marks import Marks


class Store:
    """Boards whose mark moves with each time it is asked for.

    Attributes:
        asked: How often.
    """

    def __init__(self) -> None:
        self.asked = 0

    def applied(self, board_id: str) -> int:
        """The next mark."""
        self.asked += 1
        return self.asked


@pytest.fixture
def store() -> Store:
    return Store()


def test_a_call_inside_another_one_goes_on_with_the_marks_that_are_known(store: Store) -> None:
    marks = Marks(store.applied)
    with marks.call():
        marks.note("alpha", 7)
        with marks.call():
            assert marks.applied("alpha") == 7
            assert marks.applied("beta") == 1
        assert marks.applied("beta") == 1
    assert store.asked == 1


def test_a_call_after_another_one_knows_nothing_of_it(store: Store) -> None:
    marks = Marks(store.applied)
    for number in (1, 2):
        with marks.call():
            assert marks.applied("alpha") == marks.applied("alpha") == number
    assert [marks.applied("alpha"), marks.applied("alpha")] == [3, 4]


def test_a_turn_raises_the_mark_of_the_call_that_it_is_in(store: Store) -> None:
    marks = Marks(store.applied)
    with marks.call():
        marks.note("alpha", 7)
        with marks.holding("alpha", 8):
            assert marks.applied("alpha") == 8
        assert marks.applied("alpha") == 8
    with marks.holding("alpha", 8):
        assert marks.applied("alpha") == 8
    assert marks.applied("alpha") == 1
