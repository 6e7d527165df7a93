"""Makes on the local servers what a deployment makes on AWS: tables, queues, the index. What is there stays."""

from __future__ import annotations

from collections.abc import Mapping
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
    from pulse_kg.adapters.dynamodb.client import connect
    from pulse_kg.adapters.dynamodb.tables import make_tables
    from pulse_kg.adapters.opensearch.layout import IndexSettings
    from pulse_kg.adapters.sqs.queues import ensure_queues
    from pulse_kg.adapters.system import SystemClock
    from pulse_kg.bootstrap import served_store

    tables = make_tables(connect(endpoints), endpoints.table_prefix)
    queue_url = ensure_queues(connect(endpoints, "sqs"), endpoints.table_prefix)
    store = served_store(endpoints, clock=SystemClock(), dimension=dimension)
    try:
        # One node has no place for a copy, and a commit waits for the refresh.
        store.vectors.create_index(IndexSettings(replicas=0, refresh_interval="50ms"))
        store.ping()
    finally:
        store.close()
    return {"tables_made": tables, "queue_url": queue_url}


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
