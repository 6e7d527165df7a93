"""DynamoDB in a dict, behind the driver's own calls: for tests that send many thousand requests, where moto takes milliseconds for each.

It knows what the stores send and nothing else; what it does not know is a failure. A test compares it with moto.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

Attributes = dict[str, dict[str, Any]]

_TOKENS = re.compile(r"\s*(<=|>=|<>|[()=<>,+]|[#:]?[A-Za-z0-9_]+)")
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class MemoryDynamo:
    """A driver's client; threads may share it.

    Attributes:
        tables: Table's name → (partition key, sort key) → item, as the driver shows it.
    """

    def __init__(self) -> None:
        self.tables: defaultdict[str, dict[tuple[str, str], Attributes]] = defaultdict(dict)
        self._lock = threading.RLock()
        self._done: set[str] = set()

    def get_item(self, *, TableName: str, Key: Attributes, ConsistentRead: bool) -> dict[str, Any]:  # noqa: N803 - the driver's names
        assert ConsistentRead
        with self._lock:
            item = self.tables[TableName].get(_key(Key))
            return {} if item is None else {"Item": dict(item)}

    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803
        with self._lock:
            found: dict[str, list[Attributes]] = {}
            for table, asked in RequestItems.items():
                assert len(asked["Keys"]) <= 100
                items = [self.tables[table].get(_key(key)) for key in asked["Keys"]]
                found[table] = [_projected(item, asked) for item in items if item is not None]
            return {"Responses": found, "UnprocessedKeys": {}}

    def query(self, **asked: Any) -> dict[str, Any]:
        values, table = asked["ExpressionAttributeValues"], self.tables[asked["TableName"]]
        condition = asked["KeyConditionExpression"]
        with self._lock:
            if "IndexName" in asked:
                assert condition == "pending_shard = :shard"
                found = [i for i in table.values() if i.get("pending_shard") == values[":shard"] and "pending_at" in i]
                found.sort(key=lambda i: int(i["pending_at"]["N"]))
                return {"Items": [{"pk": i["pk"], "sk": i["sk"]} for i in found]}
            partition = sorted(sk for pk, sk in table if pk == values[":pk"]["S"])
            if "BETWEEN" in condition:
                low, high = values[":after"]["S"], values[":before"]["S"]
                partition = [sk for sk in partition if low <= sk <= high]
            elif "begins_with" in condition:
                partition = [sk for sk in partition if sk.startswith(values[":begins"]["S"])]
            else:
                assert condition == "pk = :pk"
            if "ExclusiveStartKey" in asked:
                partition = [sk for sk in partition if sk > asked["ExclusiveStartKey"]["sk"]["S"]]
            limit = asked.get("Limit", 1_000_000)
            items = [_projected(table[values[":pk"]["S"], sk], asked) for sk in partition[:limit]]
            last = {} if len(partition) <= limit else {"LastEvaluatedKey": {"pk": values[":pk"], "sk": {"S": partition[limit - 1]}}}
            return {"Items": items, **last}

    def batch_write_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803
        with self._lock:
            for table, requests in RequestItems.items():
                assert len(requests) <= 25
                for request in requests:
                    if "PutRequest" in request:
                        item = request["PutRequest"]["Item"]
                        self.tables[table][_key(item)] = dict(item)
                    else:
                        self.tables[table].pop(_key(request["DeleteRequest"]["Key"]), None)
        return {"UnprocessedItems": {}}

    def put_item(self, **write: Any) -> dict[str, Any]:
        self._alone("Put", write)
        return {}

    def update_item(self, **write: Any) -> dict[str, Any]:
        return {"Attributes": self._alone("Update", write)}

    def _alone(self, operation: str, write: Mapping[str, Any]) -> Attributes:
        with self._lock:
            refused = self._refused(write)
            if refused is not None:
                item = {"Item": refused} if refused else {}
                raise ClientError({"Error": {"Code": "ConditionalCheckFailedException", "Message": "?"}, **item}, operation)
            self._write(operation, write)
            return dict(self.tables[write["TableName"]][_key(write.get("Key") or write["Item"])])

    def transact_write_items(self, *, TransactItems: list[Any], ClientRequestToken: str) -> dict[str, Any]:  # noqa: N803
        with self._lock:
            if ClientRequestToken in self._done:
                return {}
            writes = [next(iter(item.items())) for item in TransactItems]
            places = [(w["TableName"], _key(w.get("Key") or w["Item"])) for _, w in writes]
            assert len(set(places)) == len(places) <= 100, "a transaction writes each item once, and at most 100"
            assert sum(len(repr(w)) for _, w in writes) < 16_000_000
            refusals = [self._refused(write) for _, write in writes]
            if any(refused is not None for refused in refusals):
                reasons = [
                    {"Code": "None"} if r is None else {"Code": "ConditionalCheckFailed", **({"Item": r} if r else {})} for r in refusals
                ]
                error: Any = {"Error": {"Code": "TransactionCanceledException", "Message": "?"}, "CancellationReasons": reasons}
                raise ClientError(error, "TransactWriteItems")
            for operation, write in writes:
                self._write(operation, write)
            self._done.add(ClientRequestToken)
        return {}

    def _refused(self, write: Mapping[str, Any]) -> Attributes | None:
        """The item as it is where the condition is not met, empty for none; None where it is met."""
        item = self.tables[write["TableName"]].get(_key(write.get("Key") or write["Item"]), {})
        condition = write.get("ConditionExpression")
        if condition is None or _Expression(condition, write, item).condition():
            return None
        return dict(item)

    def _write(self, operation: str, write: Mapping[str, Any]) -> None:
        table = self.tables[write["TableName"]]
        if operation == "Put":
            assert _size(write["Item"]) <= 400_000, "an item has at most 400 KB"
            table[_key(write["Item"])] = dict(write["Item"])
        elif operation == "Delete":
            table.pop(_key(write["Key"]), None)
        elif operation == "Update":
            key = _key(write["Key"])
            before = table.get(key, dict(write["Key"]))
            table[key] = {**before, **_Expression(write["UpdateExpression"], write, before).assignments()}
            for name in _Expression(write["UpdateExpression"], write, before).removals():
                table[key].pop(name, None)
            assert _size(table[key]) <= 400_000, "an item has at most 400 KB"
        else:
            assert operation == "ConditionCheck"


class _Expression:
    """One expression, over one item."""

    def __init__(self, text: str, write: Mapping[str, Any], item: Attributes) -> None:
        self._tokens = _TOKENS.findall(text)
        assert "".join(self._tokens) == re.sub(r"\s", "", text), text
        used = _TOKENS.findall(f"{write.get('ConditionExpression', '')} {write.get('UpdateExpression', '')}")
        unused = {*write.get("ExpressionAttributeNames", {}), *write.get("ExpressionAttributeValues", {})} - set(used)
        assert not unused, f"{unused} are of no use, which is refused"
        self._names = write.get("ExpressionAttributeNames", {})
        self._values = write.get("ExpressionAttributeValues", {})
        self._item, self._at = item, 0

    def condition(self) -> bool:
        met = self._any()
        assert self._at == len(self._tokens), self._tokens
        return met

    def assignments(self) -> Attributes:
        """What SET sets."""
        made: Attributes = {}
        if self._take("SET"):
            while True:
                name = self._name(self._next())
                self._expect("=")
                made[name] = self._sum()
                if not self._take(","):
                    break
        return made

    def removals(self) -> list[str]:
        """What REMOVE removes."""
        if "REMOVE" not in self._tokens:
            return []
        return [self._name(token) for token in self._tokens[self._tokens.index("REMOVE") + 1 :] if token != ","]

    def _sum(self) -> dict[str, Any]:
        left = self._operand()
        if self._take("+"):
            left = {"N": str(int(left["N"]) + int(self._operand()["N"]))}
        assert left is not None
        return left

    def _operand(self) -> Any:
        token = self._next()
        if token == "if_not_exists":
            self._expect("(")
            name = self._name(self._next())
            self._expect(",")
            other = self._operand()
            self._expect(")")
            return self._item.get(name, other)
        return self._values[token] if token.startswith(":") else self._item.get(self._name(token))

    def _any(self) -> bool:
        met = self._all()
        while self._take("OR"):
            met = self._all() or met
        return met

    def _all(self) -> bool:
        met = self._term()
        while self._take("AND"):
            met = self._term() and met
        return met

    def _term(self) -> bool:
        if self._take("("):
            met = self._any()
            self._expect(")")
            return met
        for function, wanted in (("attribute_exists", True), ("attribute_not_exists", False)):
            if self._take(function):
                self._expect("(")
                there = self._name(self._next()) in self._item
                self._expect(")")
                return there is wanted
        left = self._operand()
        compare = _COMPARED[self._next()]
        right = self._operand()
        if left is None or right is None or left.keys() != right.keys():
            return False
        ((kind, a),), ((_, b),) = left.items(), right.items()
        return compare(int(a), int(b)) if kind == "N" else compare(a, b)

    def _name(self, token: str) -> str:
        return str(self._names[token]) if token.startswith("#") else token

    def _next(self) -> str:
        self._at += 1
        return str(self._tokens[self._at - 1])

    def _take(self, token: str) -> bool:
        taken = self._tokens[self._at : self._at + 1] == [token]
        self._at += taken
        return taken

    def _expect(self, token: str) -> None:
        assert self._take(token), (self._tokens, self._at, token)


def _key(attributes: Attributes) -> tuple[str, str]:
    return attributes["pk"]["S"], attributes["sk"]["S"]


def _projected(item: Attributes, asked: Mapping[str, Any]) -> Attributes:
    names = asked.get("ExpressionAttributeNames")
    if "ProjectionExpression" not in asked or names is None:
        return dict(item)
    return {name: item[name] for name in names.values() if name in item}


def _size(item: Attributes) -> int:
    return sum(len(name) + len(next(iter(value.values()))) for name, value in item.items() if "BOOL" not in value and "NULL" not in value)
