"""Imported once by the server that the crash tests' processes are forks of: everything that a first call loads and builds."""

from __future__ import annotations

from pulse_kg.usecases.boards import create_board
from tests.support.crash_worker import Committer, new_agent, store

with store(":memory:", create=True) as container:
    create_board("warm", None, boards=container.boards, now=container.clock.now())
    Committer(container, new_agent(container, "warm", "warm"), "warm", "warm").commit_one()
