"""The handshake of a graph that knows its callers by their AWS identity.

Not tried against Neptune itself: what is tested is that the handshake carries a signature of the right service and region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from pulse_kg.adapters.gremlin.errors import not_allowed

SERVICE: Final = "neptune-db"

Headers = Callable[[], Mapping[str, str]]


def unsigned() -> Mapping[str, str]:
    """For a server that asks for no identity."""
    return {}


def signed(url: str, region: str, *, credentials: Callable[[], Any] | None = None) -> Headers:
    """Signature Version 4 of the websocket's handshake, made anew for each connection: a signature lives some minutes.

    Args:
        url: `wss://…`.
        region: Of the cluster.
        credentials: Gives botocore's credentials; the process's own by default.
    """
    target = urlunsplit(urlsplit(url)._replace(scheme="https"))

    def headers() -> Mapping[str, str]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        found = (credentials or _of_process)()
        if found is None:
            raise not_allowed()
        request = AWSRequest(method="GET", url=target)
        SigV4Auth(found.get_frozen_credentials(), SERVICE, region).add_auth(request)
        return dict(request.headers.items())

    return headers


def _of_process() -> Any:
    from botocore.session import get_session

    return get_session().get_credentials()
