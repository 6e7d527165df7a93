"""The same as `make crash`, in small: some processes die at a step of the protocol, and each server once."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.crash.served_kills import run
from tests.support import local_stack

KILLS = int(os.environ.get("PULSE_TEST_SERVED_KILLS", "12"))
Report = Callable[..., None]


@pytest.mark.slow
@pytest.mark.served
@pytest.mark.timeout(300 + 15 * KILLS)
def test_what_was_acknowledged_is_there_once_after_kills_of_processes_and_servers(report: Report) -> None:
    servers, folder = local_stack.servers(), local_stack.own_folder()
    names = ("janusgraph", "opensearch", "ministack") if folder is not None else ()  # others' servers are not ours to kill

    done = run(servers, KILLS, lambda _: None, folder=folder, names=names)

    assert done["problems"] == []
    assert done["numbers"]["processes killed"] >= KILLS
    report(**{name.replace(" ", "_"): number for name, number in done["numbers"].items()})
