"""What a board's time is to readers while a commit is under way on the served form."""

from __future__ import annotations

import pytest

from tests.support.emulated import Crash, Servers, servers


@pytest.mark.parametrize("step", ["graph.apply", "vectors.apply", "journal.mark_applied"])
@pytest.mark.parametrize("earlier", [0, 1, 2])
def test_the_time_of_a_commit_is_the_boards_only_when_it_can_be_seen(step: str, earlier: int) -> None:
    """Else the ages in a score would be those of a commit of which nothing else is there yet."""
    with servers() as made:
        process, reader = made.process(), made.process()
        made.board(process, "alpha")
        agent = made.world(process).agent("ada", boards=("alpha",))

        def commit() -> int:
            made.clock.advance(seconds=60)
            session = agent.begin(f"spec_{made.ids.count}")
            session.decide(f"Number {made.ids.count}")
            session.commit()
            return made.clock.now()

        def seen() -> list[int | None]:
            board = reader.store.boards.board("alpha")
            assert board is not None
            return [board.last_commit_at, *(board.last_commit_at for board in reader.store.boards.boards())]

        before: list[int | None] = [None, *(commit() for _ in range(earlier))]
        during: list[int | None] = []
        process.steps.at(step, "before", lambda: during.extend(seen()))

        after = commit()

        assert during == before[-1:] * 2
        assert seen() == [after] * 2


def test_a_commit_that_was_left_undone_counts_when_the_next_turn_has_done_it() -> None:
    with servers() as made:
        _left_undone(made)


def _left_undone(made: Servers) -> None:
    process, other = made.process(), made.process()
    made.board(process, "alpha")
    agent = made.world(process).agent("ada", boards=("alpha",))
    session = agent.begin()
    session.decide("One")
    process.steps.at("graph.apply", "before", process.steps.crash)
    made.clock.advance(seconds=60)
    decided = made.clock.now()
    with pytest.raises(Crash):
        session.commit()
    board = other.store.boards.board("alpha")
    assert board is not None
    assert board.last_commit_at is None

    made.clock.advance(seconds=60)
    other.container.relay_outbox(30)

    board = other.store.boards.board("alpha")
    assert board is not None
    assert board.last_commit_at == decided
