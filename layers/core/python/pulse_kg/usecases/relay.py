"""The relay: finishes commits that their callers left behind, and sends the events of finished ones."""

from __future__ import annotations

from typing import Any

from pulse_kg.errors import PulseError
from pulse_kg.ports.clock import Clock
from pulse_kg.ports.commits import Outbox


def relay(outbox: Outbox | None, clock: Clock, seconds: float) -> dict[str, Any]:
    """Sweeps every board that has open work, as long as the time lasts. May run in several places at once.

    Args:
        outbox: Finishes commits; None for a store that leaves nothing behind.
        clock: The time.
        seconds: How long it may take.

    Returns:
        `boards` (swept), `applied` (commits carried out), `published` (events sent), `unstaged` (commits without a decision whose parts
        were removed), `failed` (board → code of what went wrong; tried again by the next run), `left` (boards that the time did not
        reach).

    Raises:
        StoreUnavailable: The boards can't be listed.
    """
    report: dict[str, Any] = {"boards": 0, "applied": 0, "published": 0, "unstaged": 0, "failed": {}, "left": 0}
    if outbox is None:
        return report
    end = clock.monotonic() + seconds
    boards = outbox.pending_boards()
    for number, board_id in enumerate(boards):
        left = end - clock.monotonic()
        if left <= 0:
            report["left"] = len(boards) - number
            break
        try:
            swept = outbox.sweep(board_id, wait_seconds=left)
        except PulseError as error:  # one board's trouble is no reason to leave the others
            report["failed"][board_id] = error.code
            continue
        report["boards"] += 1
        report["applied"] += swept.applied
        report["published"] += swept.published
        report["unstaged"] += swept.unstaged
    return report
