"""DynamoDB in this process, single-threaded, whose driver fails where a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

from pulse_kg.adapters.dynamodb.client import Dynamo, connect
from pulse_kg.adapters.dynamodb.tables import TABLES, make_tables
from pulse_kg.endpoints import Endpoints

PREFIX = "test_"
OPERATIONS = ("get_item", "batch_get_item", "query", "put_item", "update_item", "batch_write_item", "transact_write_items")
WRITES = OPERATIONS[3:]


class Faulty:
    """A driver's client that asks `fault` before each request; what that gives is raised instead of the answer.

    Attributes:
        sent: Operation and parameters of every request.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.fault: Callable[[str], Exception | None] = lambda operation: None
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, operation: str) -> Any:
        if operation not in OPERATIONS:
            return getattr(self._client, operation)

        def call(**parameters: Any) -> Any:
            self.sent.append((operation, parameters))
            error = self.fault(operation)
            if error is not None:
                raise error
            return getattr(self._client, operation)(**parameters)

        return call

    def fail(self, *errors: Exception) -> None:
        """The next requests fail, each by one of these."""
        left = list(errors)
        self.fault = lambda operation: left.pop(0) if left else None


def refused_by_driver(code: str, *, status: int = 400, reasons: Sequence[str] = ()) -> ClientError:
    """An error as the driver raises it."""
    response: Any = {"Error": {"Code": code, "Message": "?"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    if reasons:
        response["CancellationReasons"] = [{"Code": reason} for reason in reasons]
    return ClientError(response, "AnyOperation")


@contextmanager
def faulty() -> Iterator[Faulty]:
    """Empty tables in this process."""
    from moto import mock_aws

    with mock_aws():
        account = Endpoints("", "", PREFIX, region="us-east-1", access_key="test", secret_key="test")
        client = connect(account)
        make_tables(client, PREFIX)
        yield Faulty(client)


def dynamo_on(client: Faulty, pauses: list[float] | None = None) -> Dynamo:
    """The tables as one process sees them; it does not sleep, and notes how long it would have."""
    return Dynamo(lambda: client, PREFIX, sleep=([] if pauses is None else pauses).append, randomness=lambda: 1.0)


def items(client: Faulty) -> list[dict[str, Any]]:
    """All items of all tables, as the driver shows them."""
    return [item for table in TABLES for item in client.scan(TableName=PREFIX + table.name)["Items"]]
