"""What an execution environment keeps between invocations: settings, the container, and how long a call may take."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pulse_kg.bootstrap import key_check, open_container
from pulse_kg.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulse_kg.bootstrap import Container
    from pulse_kg.domain.permissions import Caller

GATEWAY_SECONDS: Final = 28.0
"""API Gateway ends an integration after 29 s; a call is answered before."""

RESERVE_SECONDS: Final = 0.5
"""Of the function's own time, for the answer and the log."""

MIN_SECONDS: Final = 0.2
"""With less than this nothing is begun."""


@cache
def settings() -> Settings:
    """The settings, read once.

    Raises:
        SettingsError: A variable of the function can't be used.
    """
    return Settings.from_environment(os.environ)


@cache
def container() -> Container:
    """The container, opened by the first call that needs it; what failed is tried again by the next.

    Raises:
        StoreUnavailable: A store can't be opened.
    """
    return open_container(settings())


def authenticate(api_key: str | None) -> Caller:
    """The agent of a key, for a function that needs nothing else of the stores.

    Raises:
        StoreUnavailable: The store does not answer.
        Unauthorized: There is no such agent.
    """
    return _key_check()(api_key)


@cache
def _key_check() -> Callable[[str | None], Caller]:
    return key_check(settings())


def seconds_for(context: Any, *, at_most: float = GATEWAY_SECONDS) -> float:
    """How long this invocation may still work. Seconds, 0 or more.

    Args:
        context: Lambda's.
        at_most: What the caller waits at most.
    """
    return max(0.0, min(at_most, float(context.get_remaining_time_in_millis()) / 1000 - RESERVE_SECONDS))
