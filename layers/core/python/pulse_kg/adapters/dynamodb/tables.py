"""The tables: their keys, and what makes them on a machine of one's own. On AWS the template makes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

PK: Final = "pk"
SK: Final = "sk"
TTL: Final = "ttl"
"""Epoch seconds from which an item may be deleted by DynamoDB."""
PENDING_INDEX: Final = "pending"
PENDING_SHARD: Final = "pending_shard"
PENDING_AT: Final = "pending_at"

_READY_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: What follows the prefix.
        pending: Whether it has the sparse index of what is still to be done.
    """

    name: str
    pending: bool = False


SESSIONS: Final = Table("sessions")
"""Sessions, their candidates, and who has which open."""
BOARDS: Final = Table("boards", pending=True)
"""Boards with their lease, audit rows, outbox, artifacts and staged commits."""
IDENTITY: Final = Table("identity")
"""Agents and keys."""
RATES: Final = Table("rates")
"""Windows of calls."""

TABLES: Final = (SESSIONS, BOARDS, IDENTITY, RATES)


def make_tables(client: Any, prefix: str, *, expiry: bool = True, sleep: Callable[[float], None] = time.sleep) -> list[str]:
    """Makes the tables that are missing; two processes may do it at once.

    Args:
        client: A DynamoDB client.
        prefix: What the names begin with.
        expiry: Whether DynamoDB deletes items whose time is over; not for callers whose clock is not the world's.
        sleep: Waits for a table to be ready.

    Returns:
        The names of those that were made.
    """
    made = []
    for table in TABLES:
        name = prefix + table.name
        try:
            client.create_table(**_definition(table, name))
        except client.exceptions.ResourceInUseException:
            continue
        made.append(name)
    for name in made:
        _wait(client, name, sleep)
        if expiry:
            client.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": TTL})
    return made


def _definition(table: Table, name: str) -> dict[str, Any]:
    keys = {PK: "S", SK: "S"}
    definition: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": PK, "KeyType": "HASH"}, {"AttributeName": SK, "KeyType": "RANGE"}],
    }
    if table.pending:
        keys |= {PENDING_SHARD: "S", PENDING_AT: "N"}
        schema = [{"AttributeName": PENDING_SHARD, "KeyType": "HASH"}, {"AttributeName": PENDING_AT, "KeyType": "RANGE"}]
        definition["GlobalSecondaryIndexes"] = [
            {"IndexName": PENDING_INDEX, "KeySchema": schema, "Projection": {"ProjectionType": "KEYS_ONLY"}}
        ]
    definition["AttributeDefinitions"] = [{"AttributeName": k, "AttributeType": t} for k, t in keys.items()]
    return definition


def _wait(client: Any, name: str, sleep: Callable[[float], None]) -> None:
    waited = 0.0
    while client.describe_table(TableName=name)["Table"]["TableStatus"] != "ACTIVE" and waited < _READY_SECONDS:
        sleep(0.25)
        waited += 0.25
