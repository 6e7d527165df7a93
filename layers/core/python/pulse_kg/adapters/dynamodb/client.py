"""DynamoDB with plain values, its refusals in our words, and tries that end with the call's time.

The one place that reads the driver's error codes.
"""

from __future__ import annotations

import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal, Protocol

from pulse_kg.adapters.aws import aws_client
from pulse_kg.adapters.budget import seconds_left
from pulse_kg.adapters.dynamodb.tables import PENDING_INDEX, PENDING_SHARD, PK, SK, Table
from pulse_kg.errors import StoreUnavailable

Value = str | int | bytes | bool | None
"""What an attribute may be; None stands for an attribute that is not there."""
Item = dict[str, Any]
"""An item: attribute → value, its keys included."""

STORE: Final = "sessions"
"""How an error names this store: it keeps the sessions, and an agent knows no tables."""

MAX_WRITES: Final = 100
"""Writes of one transaction."""
MAX_BATCH_GETS: Final = 100
MAX_BATCH_WRITES: Final = 25

_BUSY: Final = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_BUSY_REASONS: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_DENIED: Final = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    }
)
_CONNECTIONS: Final = 3
_FIRST_WAIT: Final = 0.025
_LONGEST_WAIT: Final = 1.0
_FIRST_RETURN: Final = 0.005
_LONGEST_RETURN: Final = 0.1

_NAMES: Final = re.compile("#([a-z_]+)")
"""Attributes in expressions, written `#name`: many plain names are words of DynamoDB's own, and refused."""

Operation = Literal["Put", "Update", "Delete", "ConditionCheck"]


@dataclass(frozen=True)
class Write:
    """One write of a transaction.

    Attributes:
        operation: What is done.
        table: Where.
        pk: Partition key.
        sk: Sort key.
        item: For `Put`: the other attributes.
        change: For `Update`: an update expression; attributes are written `#name`, values `:name`.
        condition: A condition expression, or None; written likewise.
        values: Values of `change` and `condition`, by name without the colon.
    """

    operation: Operation
    table: Table
    pk: str
    sk: str
    item: Mapping[str, Value] = field(default_factory=dict)
    change: str = ""
    condition: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)


class Refused(Exception):
    """A condition was not met; nothing was written.

    Attributes:
        items: For each write of the transaction, in order: None where its condition was met, else the item as it is, empty where there
            is none.
    """

    def __init__(self, items: Sequence[Item | None]) -> None:
        super().__init__("a condition was not met")
        self.items = tuple(items)


def put(table: Table, pk: str, sk: str, item: Mapping[str, Value], *, condition: str | None = None, **values: Value) -> Write:
    """Writes a whole item."""
    return Write("Put", table, pk, sk, item=item, condition=condition, values=values)


def update(table: Table, pk: str, sk: str, change: str, *, condition: str | None = None, **values: Value) -> Write:
    """Changes attributes of an item, which is made if it is missing and no condition forbids."""
    return Write("Update", table, pk, sk, change=change, condition=condition, values=values)


def delete(table: Table, pk: str, sk: str, *, condition: str | None = None, **values: Value) -> Write:
    """Removes an item."""
    return Write("Delete", table, pk, sk, condition=condition, values=values)


def check(table: Table, pk: str, sk: str, condition: str, **values: Value) -> Write:
    """Writes nothing, and refuses the transaction unless the condition is met."""
    return Write("ConditionCheck", table, pk, sk, condition=condition, values=values)


class Dynamo:
    """DynamoDB. All reads are consistent but those of the index; may be shared by threads.

    Errors: every method raises StoreUnavailable where the store can't be reached, stays busy for the call's time, or has no such table.

    Args:
        connect: Makes the driver's client, at first use.
        prefix: What the tables' names begin with.
        sleep: Waits between tries.
        randomness: Numbers from 0 to 1 that spread the tries.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        prefix: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        randomness: Callable[[], float] = random.random,
    ) -> None:
        self._connect, self.prefix, self._sleep, self._randomness = connect, prefix, sleep, randomness
        self._lock = threading.Lock()
        self._client: Any = None
        self.requests = 0
        """How many requests were sent, tries included; for measuring."""

    @property
    def client(self) -> Any:
        """The driver's client."""
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def get(self, table: Table, pk: str, sk: str) -> Item | None:
        """One item, or None."""
        answer = self._send("get_item", TableName=self._name(table), Key=_key(pk, sk), ConsistentRead=True)
        return _item(answer["Item"]) if "Item" in answer else None

    def get_many(self, table: Table, keys: Iterable[tuple[str, str]], *, only: Sequence[str] = ()) -> list[Item]:
        """The items of these keys that there are, or only these attributes of them; in any order."""
        found: list[Item] = []
        wanted = list(dict.fromkeys(keys))
        name = self._name(table)
        for start in range(0, len(wanted), MAX_BATCH_GETS):
            todo = [_key(*key) for key in wanted[start : start + MAX_BATCH_GETS]]
            waits = self._waits()
            while todo:
                asked = {"Keys": todo, "ConsistentRead": True, **_projection(only)}
                answer = self._send("batch_get_item", RequestItems={name: asked})
                found += map(_item, answer["Responses"].get(name, ()))
                todo = answer.get("UnprocessedKeys", {}).get(name, {}).get("Keys", [])
                if todo:
                    self._pause(waits)
        return found

    def query(
        self,
        table: Table,
        pk: str,
        *,
        begins: str = "",
        after: str | None = None,
        before: str | None = None,
        only: Sequence[str] = (),
        page: int | None = None,
    ) -> Iterator[Item]:
        """The items of a partition in the order of their sort keys.

        Args:
            table: The table.
            pk: The partition.
            begins: What the sort keys begin with.
            after: Only keys above this one (not with `begins`).
            before: With `after`: only keys up to this one, itself included.
            only: Only these attributes.
            page: How many are asked for at a time; as many as fit into 1 MB where it is None.
        """
        condition, values = "pk = :pk", {":pk": _value(pk)}
        if after is not None:
            # There is no BETWEEN without its ends; a NUL more is the next key, and a sort key never ends in one.
            condition, values = (
                "pk = :pk AND sk BETWEEN :after AND :before",
                {
                    ":pk": _value(pk),
                    ":after": _value(after + "\0"),
                    ":before": _value(before if before is not None else "\U0010ffff"),
                },
            )
        elif begins:
            condition, values = "pk = :pk AND begins_with(sk, :begins)", {**values, ":begins": _value(begins)}
        parameters: dict[str, Any] = {
            "TableName": self._name(table),
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ConsistentRead": True,
        }
        if page is not None:
            parameters["Limit"] = page
        return self._pages("query", parameters | _projection(only))

    def pending(self, table: Table, shard: str) -> Iterator[Item]:
        """Keys of the index of what is still to be done, oldest first; it may lag behind the table by some seconds."""
        return self._pages(
            "query",
            {
                "TableName": self._name(table),
                "IndexName": PENDING_INDEX,
                "KeyConditionExpression": f"{PENDING_SHARD} = :shard",
                "ExpressionAttributeValues": {":shard": _value(shard)},
            },
        )

    def _pages(self, operation: str, parameters: dict[str, Any]) -> Iterator[Item]:
        start: Any = None
        while True:
            answer = self._send(operation, **parameters, **({} if start is None else {"ExclusiveStartKey": start}))
            yield from map(_item, answer["Items"])
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return

    def put_many(self, table: Table, items: Iterable[tuple[str, str, Mapping[str, Value]]]) -> None:
        """Writes items without conditions, not as one change."""
        self._batch(table, [{"PutRequest": {"Item": _encoded({**item, PK: pk, SK: sk})}} for pk, sk, item in items])

    def delete_many(self, table: Table, keys: Iterable[tuple[str, str]]) -> None:
        """Removes items, not as one change; those that are not there are passed over."""
        self._batch(table, [{"DeleteRequest": {"Key": _key(*key)}} for key in dict.fromkeys(keys)])

    def _batch(self, table: Table, requests: list[Any]) -> None:
        name = self._name(table)
        for some in _portions(requests):
            todo, waits = some, self._waits()
            while todo:
                todo = self._send("batch_write_item", RequestItems={name: todo}).get("UnprocessedItems", {}).get(name, [])
                if todo:
                    self._pause(waits)

    def update(self, write: Write) -> Item:
        """One update or put, and the item after it. A lost answer is tried again: the condition must allow that.

        Raises:
            Refused: Its condition was not met.
        """
        parameters = self._expressed(write)
        if write.operation == "Put":
            self._send("put_item", **parameters)
            return {**write.item, PK: write.pk, SK: write.sk}
        answer = self._send("update_item", **parameters, ReturnValues="ALL_NEW")
        return _item(answer["Attributes"])

    def tries(self) -> Iterator[None]:
        """Tries of something that others may have changed meanwhile, with a growing pause before each but the first.

        Raises:
            StoreUnavailable: The call's time is over.
        """
        # Others had their turn, and nobody is overloaded: there is little to wait for.
        waits = self._waits(_FIRST_RETURN, _LONGEST_RETURN)
        while True:
            yield
            self._pause(waits)

    def transact(self, writes: Sequence[Write]) -> None:
        """Writes all or nothing; a lost answer is tried again without harm.

        Raises:
            Refused: A condition was not met.
        """
        token = uuid.uuid4().hex
        items = [{w.operation: self._expressed(w)} for w in writes]
        self._send("transact_write_items", TransactItems=items, ClientRequestToken=token)

    def _expressed(self, write: Write) -> dict[str, Any]:
        parameters: dict[str, Any] = {"TableName": self._name(write.table), "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if write.operation == "Put":
            parameters["Item"] = _encoded({**write.item, PK: write.pk, SK: write.sk})
        else:
            parameters["Key"] = _key(write.pk, write.sk)
        if write.change:
            parameters["UpdateExpression"] = write.change
        if write.condition is not None:
            parameters["ConditionExpression"] = write.condition
        names = _NAMES.findall(f"{write.change} {write.condition or ''}")
        if names:
            parameters["ExpressionAttributeNames"] = {f"#{name}": name for name in names}
        if write.values:
            parameters["ExpressionAttributeValues"] = {f":{name}": _value(value) for name, value in write.values.items()}
        return parameters

    def _name(self, table: Table) -> str:
        return self.prefix + table.name

    def _send(self, operation: str, **parameters: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
        from botocore.exceptions import ConnectionError as NoConnection

        call = getattr(self.client, operation)
        waits = self._waits()
        unconnected = 0
        while True:
            self.requests += 1
            try:
                return call(**parameters)
            except ClientError as error:
                if not _passes(error):
                    meaning = _translated(error)
                    if meaning is None:
                        raise
                    raise meaning from error
            except HTTPClientError:
                pass  # no answer: every request here may be sent again
            except NoConnection as error:
                unconnected += 1
                if unconnected == _CONNECTIONS:  # nobody is there; who calls is better told soon
                    raise StoreUnavailable(STORE) from error
            except BotoCoreError as error:  # no credentials, no region: the same each time
                raise StoreUnavailable(STORE) from error
            self._pause(waits)

    def _waits(self, longest: float = _FIRST_WAIT, limit: float = _LONGEST_WAIT) -> Iterator[float]:
        while True:
            yield longest * self._randomness()
            longest = min(longest * 2, limit)

    def _pause(self, waits: Iterator[float]) -> None:
        pause = next(waits)
        if pause >= seconds_left():
            raise StoreUnavailable(STORE)
        self._sleep(pause)


class Account(Protocol):
    """Where AWS answers, and as whom; see `pulse_kg.endpoints.Endpoints`."""

    @property
    def aws_url(self) -> str | None: ...  # noqa: D102
    @property
    def region(self) -> str | None: ...  # noqa: D102
    @property
    def access_key(self) -> str | None: ...  # noqa: D102
    @property
    def secret_key(self) -> str | None: ...  # noqa: D102


def connect(account: Account, service: str = "dynamodb") -> Any:
    """The driver's client for an account; what it leaves open is the machine's."""
    from botocore.config import Config

    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5, tcp_keepalive=True, max_pool_connections=32)
    return aws_client(
        service,
        region_name=account.region,
        endpoint_url=account.aws_url,
        aws_access_key_id=account.access_key,
        aws_secret_access_key=account.secret_key,
        config=config,
    )


def _passes(error: Any) -> bool:
    """Whether the same request may succeed in a moment."""
    response = error.response
    if response["Error"]["Code"] in _BUSY or _status(response) >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return True
    # One busy item hides what its condition would have said, so that only another try tells which conditions are met.
    return any(reason.get("Code") in _BUSY_REASONS for reason in response.get("CancellationReasons", ()))


def _status(response: Mapping[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _translated(error: Any) -> Exception | None:
    """What an error means; None for one that only a fault of this program can cause."""
    response = error.response
    code = response["Error"]["Code"]
    if code == "ConditionalCheckFailedException":
        return Refused([_item(response.get("Item", {}))])
    reasons = response.get("CancellationReasons", ())
    if any(reason.get("Code") == "ConditionalCheckFailed" for reason in reasons):
        return Refused([_item(r.get("Item", {})) if r.get("Code") == "ConditionalCheckFailed" else None for r in reasons])
    if code == "ResourceNotFoundException":
        return StoreUnavailable(STORE, "The tables of this store are missing. Deploy it, or start the local servers with 'pulse-kg up'.")
    if code in _DENIED or _status(response) in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return StoreUnavailable(STORE)
    return None


_BATCH_BYTES: Final = 8_000_000  # of 16 MB that a request may have: base64 and JSON take their share


def _portions(requests: Sequence[Any]) -> Iterator[list[Any]]:
    """At most 25 requests, and not too many bytes, at a time."""
    some: list[Any] = []
    size = 0
    for request in requests:
        weight = _weight(request)
        if some and (len(some) == MAX_BATCH_WRITES or size + weight > _BATCH_BYTES):
            yield some
            some, size = [], 0
        some.append(request)
        size += weight
    if some:
        yield some


def _weight(request: Mapping[str, Any]) -> int:
    item = request.get("PutRequest", {}).get("Item", {})
    return sum(len(next(iter(value.values()))) * 2 for value in item.values() if not isinstance(next(iter(value.values())), bool))


def _projection(only: Sequence[str]) -> dict[str, Any]:
    if not only:
        return {}
    return {
        "ProjectionExpression": ", ".join(f"#p{n}" for n in range(len(only))),
        "ExpressionAttributeNames": {f"#p{n}": name for n, name in enumerate(only)},
    }


def _key(pk: str, sk: str) -> dict[str, Any]:
    return {PK: {"S": pk}, SK: {"S": sk}}


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bytes):
        return {"B": value}
    return {"NULL": True}


def _encoded(item: Mapping[str, Value]) -> dict[str, Any]:
    return {name: _value(value) for name, value in item.items() if value is not None}


def _item(attributes: Mapping[str, Any]) -> Item:
    return {name: _plain(value) for name, value in attributes.items()}


def _plain(value: Mapping[str, Any]) -> Value:
    ((kind, content),) = value.items()
    if kind == "N":
        return int(content)
    if kind == "NULL":
        return None
    if kind == "B":
        return bytes(content)
    return content  # type: ignore[no-any-return]
