"""Makes on the local servers what a deployment makes on AWS: tables, queues, the index. What is there stays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pulse_kg.bootstrap import DIMENSION
from pulse_kg.endpoints import Endpoints


def prepare(endpoints: Endpoints, *, dimension: int = DIMENSION) -> dict[str, Any]:
    """Makes what is missing.

    Args:
        endpoints: The servers.
        dimension: Numbers of a vector.

    Returns:
        `tables_made` (names) and `queue_url`.

    Raises:
        StoreUnavailable: A server does not answer, or is not fit; the message says why.
    """
    from pulse_kg.adapters.dynamodb.tables import make_tables
    from pulse_kg.adapters.opensearch.layout import IndexSettings
    from pulse_kg.adapters.sqs.queues import ensure_queues
    from pulse_kg.adapters.system import SystemClock
    from pulse_kg.bootstrap import served_store

    session = local_session(endpoints)
    tables = make_tables(session.client("dynamodb"), endpoints.table_prefix)
    queue_url = ensure_queues(session.client("sqs"), endpoints.table_prefix)
    store = served_store(endpoints, clock=SystemClock(), dimension=dimension)
    try:
        # One node has no place for a copy, and a commit waits for the refresh.
        store.vectors.create_index(IndexSettings(replicas=0, refresh_interval="50ms"))
        store.ping()
    finally:
        store.close()
    return {"tables_made": tables, "queue_url": queue_url}


def local_session(endpoints: Endpoints) -> Any:
    """A session of the driver whose clients all talk to the local emulator, and never to AWS."""
    from localstack_client.session import Session

    with _variable("AWS_ENDPOINT_URL", str(endpoints.aws_url)):  # it is what the session reads, whatever else it is told
        return Session(aws_access_key_id=endpoints.access_key, aws_secret_access_key=endpoints.secret_key, region_name=endpoints.region)


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def endpoints_from(variables: Mapping[str, str]) -> Endpoints:
    """The endpoints of a stack's variables alone, whatever else the environment says."""
    return Endpoints(
        gremlin_url=variables["PULSE_KG_GREMLIN_URL"],
        opensearch_url=variables["PULSE_KG_OPENSEARCH_URL"],
        table_prefix=variables["PULSE_KG_TABLE_PREFIX"],
        queue_url=variables.get("PULSE_KG_QUEUE_URL"),
        aws_url=variables["AWS_ENDPOINT_URL"],
        region=variables["AWS_REGION"],
        access_key=variables["AWS_ACCESS_KEY_ID"],
        secret_key=variables["AWS_SECRET_ACCESS_KEY"],
    )
