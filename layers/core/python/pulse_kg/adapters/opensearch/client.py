"""Requests to OpenSearch, with tries that end with the call's time. The driver is imported at the first request."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from pulse_kg.adapters.budget import seconds_left, time_budget
from pulse_kg.adapters.jsontext import to_json
from pulse_kg.adapters.opensearch.errors import Busy, no_credentials, serverless, translate

_FIRST_WAIT: Final = 0.025
_LONGEST_WAIT: Final = 1.0
_CONNECT_SECONDS: Final = 2.0
_WHOLE_TRY: Final = 4.0
"""Seconds left below which one try may take all of them; above, half, so that a silent server leaves time for another try."""
_LONGEST_TRY: Final = 30.0
_CONNECTIONS: Final = 16

_AWS_HOST: Final = re.compile(
    r"(?:.+\.)?(?:(?P<before>[a-z0-9-]+)\.(?P<service>es|aoss)|(?P<also>es|aos|aoss)\.(?P<after>[a-z0-9-]+))\.(?:amazonaws\.com(?:\.cn)?|on\.aws)"
)
"""A host of AWS: the region stands before the service or after it."""
_SERVERLESS: Final = "aoss"

_T = TypeVar("_T")


class OpenSearchClient:
    """One server or domain; may be shared by threads.

    Every request here may be sent again without harm. Errors: StoreUnavailable where there is no answer in the call's time or it is a
    refusal; `IndexRefused` where the same request would be refused again.

    Args:
        connect: Makes the driver's client, at first use.
        sleep: Waits between tries.
        randomness: Numbers from 0 to 1 that spread the tries.
        seconds: How long a request with its tries may take where no budget says less; None for the usual time.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        sleep: Callable[[float], None] = time.sleep,
        randomness: Callable[[], float] = random.random,
        seconds: float | None = None,
    ) -> None:
        self._connect, self._sleep, self._randomness, self._seconds = connect, sleep, randomness, seconds
        self._lock = threading.Lock()
        self._driver: Any = None
        self.requests = 0
        """How many requests were sent, tries included; for measuring."""

    def request(self, method: str, path: str, body: object = None, *, params: Mapping[str, str] | None = None, ignore: int = 0) -> Any:
        """Sends a request, again while it is busy; see `ask`."""
        return self.retried(lambda: self.ask(method, path, body, params=params, ignore=ignore))

    def retried(self, step: Callable[[], _T]) -> _T:
        """Does a step, again while it raises `Busy` and the call has time left."""
        longest = _FIRST_WAIT
        with time_budget(self._seconds or seconds_left()):  # without one around it, all tries together get the default
            while True:
                try:
                    return step()
                except Busy:
                    pause = longest * self._randomness()
                    if pause >= seconds_left():
                        raise
                self.wait(pause)
                longest = min(2 * longest, _LONGEST_WAIT)

    def patient(self, seconds: float) -> OpenSearchClient:
        """The same connections, for work that is no call: a request may take so many seconds where no budget says less."""
        return OpenSearchClient(self._connected, sleep=self._sleep, randomness=self._randomness, seconds=seconds)

    def wait(self, seconds: float) -> None:
        """Sleeps."""
        self._sleep(seconds)

    def ask(self, method: str, path: str, body: object = None, *, params: Mapping[str, str] | None = None, ignore: int = 0) -> Any:
        """Sends a request once.

        Args:
            method: The HTTP method.
            path: The path, which holds nothing that would need quoting.
            body: None, a JSON value, or lines as `lines` makes them.
            params: The query.
            ignore: A status beside 2xx whose answer is returned, not raised.

        Raises:
            Busy: Another try may succeed.
            StoreUnavailable: It would not.
        """
        import opensearchpy

        left = seconds_left()
        if left <= 0:
            raise Busy
        driver = self._connected()
        self.requests += 1
        several = isinstance(body, str)
        try:
            return driver.transport.perform_request(
                method,
                path,
                params=dict(params or {}),
                body=body if body is None or several else to_json(body),
                headers={"content-type": "application/x-ndjson" if several else "application/json"},
                timeout=_timeout(left),
                ignore=(ignore,) if ignore else (),
            )
        except opensearchpy.OpenSearchException as error:
            raise translate(error) from error

    def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        with self._lock:
            driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    def _connected(self) -> Any:
        with self._lock:
            if self._driver is None:
                self._driver = self._connect()
            return self._driver


def lines(values: Iterable[object]) -> str:
    """JSON values one a line, as bulk and multi-search requests want them."""
    return "".join(to_json(value) + "\n" for value in values)


def connect(url: str, *, sign: bool | None = None, region: str | None = None) -> Any:
    """The driver's client.

    Args:
        url: ``https://host``, with a user and password in it where the server wants them.
        sign: Whether requests are signed with the machine's AWS credentials; None for: where the host is one of AWS.
        region: The region of the signature; None for the host's, or else the standard AWS variables'.

    Raises:
        IndexRefused: The host is that of a serverless collection.
    """
    import logging

    import opensearchpy

    # The driver would log every refusal with its host, and there are refusals that are expected.
    logging.getLogger("opensearch").setLevel(logging.CRITICAL)
    of_aws = _AWS_HOST.fullmatch(urlsplit(url).hostname or "")
    if of_aws is not None and _SERVERLESS in of_aws.group("service", "also"):
        raise serverless()
    signed = of_aws is not None if sign is None else sign
    found = None if of_aws is None else of_aws["before"] or of_aws["after"]
    return opensearchpy.OpenSearch(
        hosts=[url],
        http_auth=_signer(region or found) if signed else None,
        max_retries=0,  # the tries are ours: the driver's know nothing of the call's time
        pool_maxsize=_CONNECTIONS,
    )


def _signer(region: str | None) -> Any:
    import botocore.session
    import opensearchpy

    session = botocore.session.get_session()
    credentials, region = session.get_credentials(), region or session.get_config_variable("region")
    if credentials is None or not region:
        raise no_credentials()
    return opensearchpy.Urllib3AWSV4SignerAuth(credentials, region, "es")


def _timeout(left: float) -> Any:
    from urllib3 import Timeout

    read = left if left < _WHOLE_TRY else min(left / 2, _LONGEST_TRY)
    return Timeout(connect=min(_CONNECT_SECONDS, read), read=read)
