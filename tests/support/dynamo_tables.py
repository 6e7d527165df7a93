"""Empty DynamoDB tables on the local servers, made once for the run of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pulse_kg.adapters.dynamodb.client import Dynamo, connect
from pulse_kg.adapters.dynamodb.tables import PK, SK, TABLES, TTL, Table, make_tables
from tests.support import local_stack


@dataclass(frozen=True)
class Tables:
    """The tables of a run.

    Attributes:
        client: The driver's client.
        prefix: What their names begin with.
    """

    client: Any
    prefix: str

    def dynamo(self) -> Dynamo:
        """The tables as one more process sees them."""
        return Dynamo(lambda: self.client, self.prefix)

    def items(self, table: Table) -> list[dict[str, Any]]:
        """All items of a table, as the driver shows them."""
        pages = self.client.get_paginator("scan").paginate(TableName=self.prefix + table.name, ConsistentRead=True)
        return [item for page in pages for item in page["Items"]]

    def empty(self) -> None:
        """Removes all items."""
        for table in TABLES:
            keys = [{PK: item[PK], SK: item[SK]} for item in self.items(table)]
            for start in range(0, len(keys), 25):
                some = [{"DeleteRequest": {"Key": key}} for key in keys[start : start + 25]]
                self.client.batch_write_item(RequestItems={self.prefix + table.name: some})


@contextmanager
def own_tables() -> Iterator[Tables]:
    """Tables of the test's own; skips the test where the local servers can't be had."""
    tables = Tables(connect(local_stack.servers()), f"t{os.getpid()}d_")
    for name in make_tables(tables.client, tables.prefix):
        # What tests call now is long ago by the server's clock, which would delete it under them.
        tables.client.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": False, "AttributeName": TTL})
    try:
        yield tables
    finally:
        for table in TABLES:
            tables.client.delete_table(TableName=tables.prefix + table.name)
