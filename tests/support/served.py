"""The served store on the real servers, empty for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from pulse_kg.adapters.dynamodb import keys
from pulse_kg.adapters.dynamodb.tables import TABLES, make_tables
from pulse_kg.adapters.gremlin.connection import source
from pulse_kg.adapters.opensearch.layout import IndexSettings
from pulse_kg.adapters.served.store import ServedStore
from pulse_kg.adapters.system import SystemClock
from pulse_kg.bootstrap import DIMENSION, served_store
from pulse_kg.cli.stack_prepare import local_session
from pulse_kg.endpoints import Endpoints
from tests.support import local_stack

_NUMBERS = itertools.count(1)


@contextmanager
def fresh_endpoints(*, dimension: int = DIMENSION) -> Iterator[Endpoints]:
    """Tables and an index of the test's own, removed at the end; and an empty graph."""
    endpoints = replace(local_stack.servers(), table_prefix=f"t{os.getpid()}_{next(_NUMBERS)}_", queue_url=None)
    client = local_session(endpoints).client("dynamodb")
    make_tables(client, endpoints.table_prefix, expiry=False)  # a test's clock stands years away
    store = opened_store(endpoints, dimension=dimension)
    store.connection.submit(source().V().drop())
    store.vectors.create_index(IndexSettings(replicas=0, refresh_interval="50ms"))
    try:
        yield endpoints
    finally:
        for table in TABLES:
            with suppress(client.exceptions.ResourceNotFoundException):
                client.delete_table(TableName=endpoints.table_prefix + table.name)
        store.index_client.request("DELETE", f"/{endpoints.table_prefix}nodes_1", ignore=404)
        store.close()


@contextmanager
def served(*, dimension: int = DIMENSION, **more: Any) -> Iterator[ServedStore]:
    """An empty served store."""
    with fresh_endpoints(dimension=dimension) as endpoints:
        store = opened_store(endpoints, dimension=dimension, **more)
        try:
            yield store
        finally:
            store.close()


def opened_store(endpoints: Endpoints, *, dimension: int = DIMENSION, **more: Any) -> ServedStore:
    """A store on tables that are there; what is known of agents is asked for each time."""
    more.setdefault("clock", SystemClock())
    more.setdefault("identity_seconds", 0.0)
    return served_store(endpoints, dimension=dimension, **more)


_OF_A_LEASE = frozenset({"lease_epoch", "lease_holder", "lease_until"})


def dump_served(store: ServedStore, board_id: str | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """All that the store holds, but for leases, which come and go; or what belongs to one board."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for table in TABLES:
        pages = store.dynamo.client.get_paginator("scan").paginate(TableName=store.dynamo.prefix + table.name, ConsistentRead=True)
        items = [{n: v for n, v in item.items() if n not in _OF_A_LEASE} for page in pages for item in page["Items"]]
        mine = [i for i in items if board_id is None or i.get("board_id", i["pk"]) in ({"S": board_id}, {"S": keys.board(board_id)})]
        found[table.name] = sorted((tuple(sorted(item.items(), key=repr)) for item in mine), key=repr)
    vertices = source().V() if board_id is None else source().V().has("board_id", board_id)
    edges = source().E() if board_id is None else source().E().has("board_id", board_id)
    found["nodes"] = sorted(((repr(sorted(v.items(), key=repr)),) for v in store.connection.submit(vertices.value_map())), key=repr)
    found["edges"] = sorted(((repr(sorted(e.items(), key=repr)),) for e in store.connection.submit(edges.value_map())), key=repr)
    everything: dict[str, Any] = {"match_all": {}} if board_id is None else {"term": {"board_id": board_id}}
    answer = store.index_client.request("POST", f"/{store.dynamo.prefix}nodes/_search", {"size": 10_000, "query": everything})
    found["vectors"] = sorted(((h["_id"], repr(h["_source"])) for h in answer["hits"]["hits"]), key=repr)
    return found
