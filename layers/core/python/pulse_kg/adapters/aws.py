"""One session of AWS's driver for the whole process: to read its descriptions takes longer than to make a client of them."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

_LOCK = threading.Lock()  # the driver makes one client at a time


@cache
def aws_session() -> Any:
    """The session, with the settings and credentials of this machine or function. Not boto3's: a cold function would load its resources."""
    import botocore.session

    return botocore.session.get_session()


def aws_client(service: str, **options: Any) -> Any:
    """A client of a service; threads may share it.

    Args:
        service: As in ``dynamodb``.
        **options: Of `create_client`; what is None is the session's own.
    """
    with _LOCK:
        return aws_session().create_client(service, **options)
