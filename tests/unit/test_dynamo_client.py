"""What the driver's errors mean, and what is tried again."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.dynamodb.client import Dynamo, Refused, check, connect, delete, put, update
from pulse_kg.adapters.dynamodb.tables import BOARDS, PK, SESSIONS, SK
from pulse_kg.endpoints import Endpoints
from pulse_kg.errors import StoreUnavailable
from tests.support.dynamo_faults import Faulty, dynamo_on, faulty, refused_by_driver


@pytest.fixture
def driver() -> Iterator[Faulty]:
    with faulty() as made:
        yield made


def lost_answer() -> Exception:
    return ReadTimeoutError(endpoint_url="somewhere")


BUSY = {
    "a throttled table": lambda: refused_by_driver("ProvisionedThroughputExceededException"),
    "a throttled account": lambda: refused_by_driver("ThrottlingException"),
    "a fault of the server": lambda: refused_by_driver("InternalServerError", status=500),
    "a fault without a known code": lambda: refused_by_driver("Whatever", status=503),
    "a transaction in the way": lambda: refused_by_driver("TransactionConflictException"),
    "no answer": lost_answer,
}


@pytest.mark.parametrize("fault", BUSY)
def test_what_passes_is_tried_again(driver: Faulty, fault: str) -> None:
    pauses: list[float] = []
    dynamo = dynamo_on(driver, pauses)
    driver.fail(*(BUSY[fault]() for _ in range(3)))
    assert dynamo.update(put(SESSIONS, "p", "s", {"n": 1})) == {PK: "p", SK: "s", "n": 1}
    assert dynamo.get(SESSIONS, "p", "s") == {PK: "p", SK: "s", "n": 1}
    assert len(pauses) == 3
    assert pauses == sorted(pauses)


def test_tries_end_with_the_call(driver: Faulty) -> None:
    dynamo = dynamo_on(driver)
    driver.fault = lambda operation: refused_by_driver("ThrottlingException")
    with time_budget(0.2), pytest.raises(StoreUnavailable) as refused:
        dynamo.get(SESSIONS, "p", "s")
    assert refused.value.retryable
    assert 1 < len(driver.sent) < 6


def test_one_of_several_writers_is_told_what_the_others_left(driver: Faulty) -> None:
    dynamo = dynamo_on(driver)
    dynamo.put_many(SESSIONS, [("p", "1", {"n": 1}), ("p", "3", {"n": 3})])
    writes = [
        put(SESSIONS, "p", "1", {}, condition="attribute_not_exists(pk)"),
        put(SESSIONS, "p", "2", {}, condition="attribute_not_exists(pk)"),
        update(SESSIONS, "p", "3", "SET n = :new", condition="n = :old", new=4, old=2),
        check(SESSIONS, "p", "4", "attribute_exists(pk)"),
        delete(BOARDS, "p", "5"),
    ]
    with pytest.raises(Refused) as refused:
        dynamo.transact(writes)
    assert refused.value.items == ({PK: "p", SK: "1", "n": 1}, None, {PK: "p", SK: "3", "n": 3}, {}, None)
    assert [item[SK] for item in dynamo.query(SESSIONS, "p")] == ["1", "3"]


def test_a_refused_update_shows_the_item(driver: Faulty) -> None:
    dynamo = dynamo_on(driver)
    dynamo.put_many(SESSIONS, [("p", "1", {"state": "x", "content": b"\0", "yes": True})])
    with pytest.raises(Refused) as refused:
        dynamo.update(update(SESSIONS, "p", "1", "SET #state = :new", condition="#state = :old", new="z", old="y"))
    assert refused.value.items == ({PK: "p", SK: "1", "state": "x", "content": b"\0", "yes": True},)
    with pytest.raises(Refused) as refused:
        dynamo.update(update(SESSIONS, "p", "2", "SET #state = :new", condition="attribute_exists(pk)", new="z"))
    assert refused.value.items == ({},)


def test_a_transaction_whose_answer_is_lost_is_sent_again_as_the_same_one(driver: Faulty) -> None:
    dynamo = dynamo_on(driver)
    driver.fail(lost_answer(), refused_by_driver("TransactionInProgressException"))
    dynamo.transact([put(SESSIONS, "p", "1", {})])
    dynamo.transact([put(SESSIONS, "p", "1", {})])
    tokens = [parameters["ClientRequestToken"] for _, parameters in driver.sent]
    assert len(tokens) == 4
    assert len(set(tokens[:3])) == 1
    assert tokens[3] != tokens[0]


@pytest.mark.parametrize(
    "reasons", [("TransactionConflict",), ("None", "TransactionConflict", "ConditionalCheckFailed"), ("ThrottlingError", "None")]
)
def test_a_transaction_in_another_ones_way_is_tried_again_whatever_else_was_said(driver: Faulty, reasons: tuple[str, ...]) -> None:
    dynamo = dynamo_on(driver)
    driver.fail(refused_by_driver("TransactionCanceledException", reasons=reasons))
    dynamo.transact([put(SESSIONS, "p", "1", {})])
    assert len(driver.sent) == 2


def test_missing_tables_are_named_as_such(driver: Faulty) -> None:
    dynamo = Dynamo(lambda: driver, "another_")
    with pytest.raises(StoreUnavailable, match="tables of this store are missing"):
        dynamo.get(SESSIONS, "p", "s")
    with pytest.raises(StoreUnavailable, match="tables of this store are missing"):
        dynamo.transact([put(SESSIONS, "p", "s", {})])
    assert len(driver.sent) == 2


@pytest.mark.parametrize("code", ["UnrecognizedClientException", "ExpiredTokenException", "AccessDeniedException"])
def test_a_refused_account_is_told_at_once_and_without_the_drivers_words(driver: Faulty, code: str) -> None:
    driver.fail(refused_by_driver(code))
    with pytest.raises(StoreUnavailable) as refused:
        dynamo_on(driver).get(SESSIONS, "p", "s")
    assert code not in refused.value.message
    driver.fail(NoCredentialsError())
    with pytest.raises(StoreUnavailable):
        dynamo_on(driver).get(SESSIONS, "p", "s")
    assert len(driver.sent) == 2


def test_a_fault_of_ours_is_no_outage(driver: Faulty) -> None:
    with pytest.raises(ClientError):
        dynamo_on(driver).update(update(SESSIONS, "p", "s", "SET nonsense"))
    assert len(driver.sent) == 1


def test_where_nobody_listens_that_is_said_after_a_few_tries() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    account = Endpoints("", "", "", aws_url=f"http://127.0.0.1:{port}", region="us-east-1", access_key="x", secret_key="y")
    pauses: list[float] = []
    dynamo = Dynamo(lambda: connect(account), "test_", sleep=pauses.append)
    with pytest.raises(StoreUnavailable) as refused:
        dynamo.get(SESSIONS, "p", "s")
    assert str(port) not in refused.value.message
    assert dynamo.requests == 3
    assert sum(pauses) < 1


def test_what_a_batch_leaves_over_is_asked_for_again(driver: Faulty) -> None:
    dynamo = dynamo_on(driver)
    keys = [("p", f"{n:03d}") for n in range(250)]
    dynamo.put_many(SESSIONS, [(pk, sk, {"n": 1, "m": 2}) for pk, sk in keys])
    assert len(driver.sent) == 10
    found = dynamo.get_many(SESSIONS, [*keys, ("p", "none"), keys[0]], only=(SK, "n"))
    assert sorted((item[SK], item["n"]) for item in found) == [(sk, 1) for _, sk in keys]
    assert all("m" not in item for item in found)
    dynamo.delete_many(SESSIONS, keys[:240])
    assert [item[SK] for item in dynamo.query(SESSIONS, "p", page=3, only=(SK,))] == [sk for _, sk in keys[240:]]


def test_a_range_of_keys_has_its_upper_end_in_it_and_not_its_lower(driver: Faulty) -> None:
    dynamo = dynamo_on(driver)
    dynamo.put_many(SESSIONS, [("p", sk, {}) for sk in ("a", "a#1", "b", "c", "ü")])

    def keys(**bounds: str) -> list[str]:
        return [item[SK] for item in dynamo.query(SESSIONS, "p", **bounds)]  # type: ignore[arg-type]

    assert keys(after="a", before="c") == ["a#1", "b", "c"]
    assert keys(after="b") == ["c", "ü"]
    assert keys(begins="a") == ["a", "a#1"]
