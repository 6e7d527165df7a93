"""What DynamoDB would charge for a request, by its published rules; the local emulator charges nothing.

An item's size is that of its attributes' names and values. A write takes a unit for each KiB of the larger of the item before and after it,
in a transaction two; a consistent read one for each 4 KiB, an eventual one half. A refused write is charged like one that was done. A check
inside a transaction is taken for a write: the documentation is silent on it, and that is the dearer reading. An index of keys alone takes a
unit for each entry that goes or comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.adapters.dynamodb.tables import PENDING_AT, PENDING_SHARD, PK, SK

_WRITE_BYTES: Final = 1_024
_READ_BYTES: Final = 4_096
_INDEXED: Final = (PENDING_SHARD, PENDING_AT)

Attributes = Mapping[str, Mapping[str, Any]]
"""An item as the driver has it: name → {type: value}."""


@dataclass(frozen=True)
class Used:
    """Units of an on-demand table: read request units and write request units."""

    reads: float = 0.0
    writes: float = 0.0

    def __add__(self, other: Used) -> Used:
        return Used(self.reads + other.reads, self.writes + other.writes)


NOTHING: Final = Used()


def item_bytes(item: Attributes) -> int:
    """The size of an item as DynamoDB counts it; 0 for one that is not there."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(str(content).encode())
    if kind == "B":
        return len(bytes(content))
    if kind == "N":  # one byte for two digits that count, and one more; a sign is another
        digits = content.lstrip("-").replace(".", "").strip("0")
        return -(-len(digits) // 2) + 1 + int(content.startswith("-"))
    if kind in {"BOOL", "NULL"}:
        return 1
    raise ValueError(f"the tables have no attributes of the type {kind}")


def write_units(before: Attributes, after: Attributes) -> int:
    """Units of one write outside of a transaction."""
    return _portions(max(item_bytes(before), item_bytes(after)), _WRITE_BYTES)


def index_units(before: Attributes, after: Attributes) -> int:
    """Units of what a write changes in the index of open work."""
    was, now = ([item.get(name) for name in _INDEXED] for item in (before, after))
    if was == now:
        return 0
    return (None not in was) + (None not in now)


def read_units(size: int, *, consistent: bool) -> float:
    """Units of a read of so many bytes; nothing at all costs as much as the smallest."""
    return _portions(size, _READ_BYTES) * (1.0 if consistent else 0.5)


def _portions(size: int, portion: int) -> int:
    return max(1, -(-size // portion))


@dataclass(frozen=True)
class _Written:
    table: str
    key: Attributes
    transacted: bool


class Meter:
    """Reckons one request. It reads by itself what the answer does not tell.

    Args:
        client: Of the tables.
        operation: The client's method.
        parameters: Of the call.
    """

    def __init__(self, client: Any, operation: str, parameters: Mapping[str, Any]) -> None:
        self._client, self._operation, self._parameters = client, operation, parameters
        self._written = list(_writes(operation, parameters))
        self._before = [self._item(w) for w in self._written]

    def used(self, answer: Mapping[str, Any] | None) -> Used:
        """The units, after the call.

        Args:
            answer: None where it was refused.
        """
        if self._written:
            return sum((self._write(w, before) for w, before in zip(self._written, self._before, strict=True)), NOTHING)
        return NOTHING if answer is None else Used(reads=self._reads(answer))

    def _write(self, written: _Written, before: Attributes) -> Used:
        after = self._item(written)
        units = write_units(before, after) * (2 if written.transacted else 1)
        return Used(writes=float(units + index_units(before, after)))

    def _item(self, written: _Written) -> Attributes:
        answer = self._client.get_item(TableName=written.table, Key=written.key, ConsistentRead=True)
        found: Attributes = answer.get("Item", {})
        return found

    def _reads(self, answer: Mapping[str, Any]) -> float:
        if self._operation == "get_item":
            return read_units(item_bytes(answer.get("Item", {})), consistent=True)
        if self._operation == "query":
            consistent = bool(self._parameters.get("ConsistentRead"))
            return read_units(sum(map(item_bytes, self._whole(answer)["Items"])), consistent=consistent)
        if self._operation == "batch_get_item":
            ((table, asked),) = self._parameters["RequestItems"].items()
            found = self._whole(answer)["Responses"].get(table, ())
            missing = len(asked["Keys"]) - len(found)
            return sum(read_units(item_bytes(item), consistent=True) for item in found) + missing
        return 0.0

    def _whole(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer as it would be without a projection, for what is left out is read and charged as well."""
        call = getattr(self._client, self._operation)
        parameters = dict(self._parameters)
        if parameters.pop("ProjectionExpression", None) is not None:
            parameters.pop("ExpressionAttributeNames")
        elif self._operation == "batch_get_item":
            parameters["RequestItems"] = {
                table: {name: asked[name] for name in ("Keys", "ConsistentRead")} for table, asked in parameters["RequestItems"].items()
            }
        else:
            return answer
        whole: Mapping[str, Any] = call(**parameters)
        return whole


def _writes(operation: str, parameters: Mapping[str, Any]) -> Iterator[_Written]:
    if operation == "transact_write_items":
        for action in parameters["TransactItems"]:
            ((_, write),) = action.items()
            yield _one(write, transacted=True)
    elif operation == "batch_write_item":
        for table, requests in parameters["RequestItems"].items():
            for request in requests:
                ((_, write),) = request.items()
                yield _one({"TableName": table, **write}, transacted=False)
    elif operation in {"put_item", "update_item", "delete_item"}:
        yield _one(parameters, transacted=False)


def _one(write: Mapping[str, Any], *, transacted: bool) -> _Written:
    key = write.get("Key") or {name: write["Item"][name] for name in (PK, SK)}
    return _Written(write["TableName"], key, transacted)


def summed(several: Sequence[Used]) -> Used:
    """All of them together."""
    return sum(several, NOTHING)
