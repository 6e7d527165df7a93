"""What the connections to a Gremlin server do when they break, when the server refuses, and when time is short; and how errors read."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.gremlin.connection import GremlinConnection
from pulse_kg.adapters.gremlin.errors import (
    ConnectionLost,
    Fault,
    GraphRefused,
    NotAllowed,
    NotReachable,
    ServerFault,
    translate,
)
from pulse_kg.adapters.gremlin.lane import Sink
from pulse_kg.adapters.gremlin.signing import signed
from pulse_kg.errors import StoreUnavailable

ASKED = SimpleNamespace(bytecode="a traversal")
CONFLICT = ServerFault(500, "Could not commit transaction due to exception during persistence")
Answer = list[Any] | Exception


class FakeLane:
    """Answers as it is told, in order."""

    def __init__(self, answers: list[Answer]) -> None:
        self._answers = answers
        self.ended = False

    def ask(self, bytecode: Any, into: Sink, *, timeout: float) -> None:
        assert not self.ended
        assert timeout > 0
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            into.extend(["a part"])
            raise answer
        into.extend(answer)

    def close(self) -> None:
        self.ended = True


class Server:
    """Opens lanes that answer from one list."""

    def __init__(self, *answers: Answer, refuses: Sequence[Exception] = ()) -> None:
        self.answers = list(answers)
        self.refuses = list(refuses)
        self.lanes: list[FakeLane] = []
        self.slept: list[float] = []
        self.timeouts: list[float] = []

    def open_lane(self, timeout: float) -> FakeLane:
        self.timeouts.append(timeout)
        if self.refuses:
            raise self.refuses.pop(0)
        self.lanes.append(FakeLane(self.answers))
        return self.lanes[-1]

    def connection(self, **options: Any) -> GremlinConnection:
        options.setdefault("randomness", lambda: 1.0)
        return GremlinConnection("ws://nowhere.test/gremlin", sleep=self.slept.append, open_lane=self.open_lane, **options)


def test_nothing_is_opened_before_the_first_request_and_one_connection_serves_all_that_follow() -> None:
    server = Server([1], [2, 3])
    connection = server.connection()
    assert server.lanes == []
    assert [connection.submit(ASKED), connection.submit(ASKED)] == [[1], [2, 3]]
    assert len(server.lanes) == 1


def test_a_connection_that_broke_while_it_was_idle_is_replaced_and_the_request_sent_once_more() -> None:
    server = Server([1], ConnectionLost("CLOSED"), [2])
    connection = server.connection()
    connection.submit(ASKED)
    assert connection.submit(ASKED) == [2]
    assert [lane.ended for lane in server.lanes] == [True, False]
    assert server.slept == []


def test_a_connection_that_was_idle_for_long_is_not_trusted() -> None:
    clock = [0.0]
    server = Server([1], [2], [3])
    connection = server.connection(monotonic=lambda: clock[0])
    connection.submit(ASKED)
    clock[0] += 60
    connection.submit(ASKED)
    clock[0] += 61
    assert connection.submit(ASKED) == [3]
    assert [lane.ended for lane in server.lanes] == [True, False]


def test_a_request_that_breaks_two_connections_is_given_up() -> None:
    server = Server(ConnectionLost("CLOSED"), ConnectionLost("CLOSED"), [3])
    connection = server.connection()
    with pytest.raises(StoreUnavailable) as refused:
        connection.submit(ASKED)
    assert refused.value.retryable
    assert [lane.ended for lane in server.lanes] == [True, True]
    assert connection.submit(ASKED) == [3]


def test_what_a_broken_try_had_answered_is_not_mixed_into_the_next_one() -> None:
    assert Server(ConnectionLost("CLOSED"), [2]).connection().submit(ASKED) == [2]


def test_a_conflict_is_tried_again_after_growing_pauses() -> None:
    server = Server(CONFLICT, CONFLICT, CONFLICT, [4])
    assert server.connection().submit(ASKED) == [4]
    assert server.slept == [0.02, 0.04, 0.08]
    assert [lane.ended for lane in server.lanes] == [False]


def test_pauses_are_spread_by_chance() -> None:
    server = Server(CONFLICT, [2])
    server.connection(randomness=lambda: 0.0).submit(ASKED)
    assert server.slept == [0.01]


def test_conflicts_are_tried_again_only_while_the_call_has_time() -> None:
    server = Server(*[CONFLICT] * 50)
    with time_budget(0.5), pytest.raises(StoreUnavailable, match="Other calls are writing") as refused:
        server.connection().submit(ASKED)
    assert refused.value.retryable
    assert max(server.slept) < 0.5
    assert len(server.slept) <= 5


def test_conflicts_end_also_where_nobody_set_a_time() -> None:
    clock = iter(range(0, 1_000, 2))
    server = Server(*[CONFLICT] * 50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: float(next(clock)))
        with pytest.raises(StoreUnavailable):
            server.connection().submit(ASKED)
    assert len(server.slept) < 50


def test_after_a_failover_every_connection_is_opened_anew() -> None:
    server = Server([1], ServerFault(500, '{"code":"ReadOnlyViolationException"}'), [2])
    connection = server.connection()
    connection.submit(ASKED)
    assert connection.submit(ASKED) == [2]
    assert [lane.ended for lane in server.lanes] == [True, False]


def test_a_request_that_takes_too_long_ends_its_connection_and_says_so() -> None:
    server = Server(TimeoutError(), [2])
    connection = server.connection()
    with pytest.raises(StoreUnavailable, match="did not answer in time") as refused:
        connection.submit(ASKED)
    assert refused.value.retryable
    assert server.lanes[0].ended
    assert connection.submit(ASKED) == [2]


def test_a_call_without_time_left_asks_nothing() -> None:
    server = Server([1])
    with time_budget(0), pytest.raises(StoreUnavailable):
        server.connection().submit(ASKED)
    assert server.answers == [[1]]


def test_an_absent_server_is_told_at_once() -> None:
    server = Server(refuses=[NotReachable("ClientConnectorError")] * 2)
    connection = server.connection()
    with pytest.raises(StoreUnavailable) as refused:
        connection.submit(ASKED)
    assert refused.value.details == {"store": "graph"}
    assert refused.value.retryable
    assert len(server.timeouts) == 1
    assert server.slept == []


def test_opening_a_connection_takes_no_more_than_the_call_has_left() -> None:
    server = Server([1], [2])
    with time_budget(1):
        server.connection().submit(ASKED)
    server.connection().submit(ASKED)
    assert server.timeouts[0] <= 1
    assert server.timeouts[1] == 3


def test_a_server_that_does_not_know_this_program_is_not_asked_again() -> None:
    server = Server(refuses=[NotAllowed("403")])
    with pytest.raises(GraphRefused, match="the right to connect") as refused:
        server.connection().submit(ASKED)
    assert not refused.value.retryable


def test_an_ordinary_refusal_is_not_tried_again_and_keeps_the_connection() -> None:
    server = Server(ServerFault(500, "Expected: class java.lang.Integer at /srv/graph"), [2])
    connection = server.connection()
    with pytest.raises(StoreUnavailable) as refused:
        connection.submit(ASKED)
    assert "java" not in f"{refused.value.message} {refused.value.details}"
    assert connection.submit(ASKED) == [2]
    assert len(server.lanes) == 1


def test_a_fault_of_this_program_ends_the_connection_and_comes_out_as_it_is() -> None:
    server = Server(ValueError("0 is not a valid DataType"), [2])
    connection = server.connection()
    with pytest.raises(ValueError, match="DataType"):
        connection.submit(ASKED)
    assert server.lanes[0].ended
    assert connection.submit(ASKED) == [2]


def test_one_who_reads_refusals_gets_them_at_once() -> None:
    server = Server(CONFLICT)
    with pytest.raises(ServerFault):
        server.connection().request(ASKED)
    assert server.slept == []


def test_callers_beyond_the_lanes_wait_no_longer_than_their_time() -> None:
    server = Server([1], [2])
    connection = server.connection(lanes=1)
    asked, go_on = threading.Event(), threading.Event()

    class Slow(FakeLane):
        def ask(self, bytecode: Any, into: Sink, *, timeout: float) -> None:
            asked.set()
            assert go_on.wait(10)
            super().ask(bytecode, into, timeout=timeout)

    server.open_lane = lambda timeout: Slow(server.answers)  # type: ignore[method-assign]
    connection = GremlinConnection("ws://nowhere.test", lanes=1, open_lane=server.open_lane)
    first = threading.Thread(target=connection.submit, args=(ASKED,))
    first.start()
    assert asked.wait(10)
    with time_budget(0.05), pytest.raises(StoreUnavailable, match="Other calls"):
        connection.submit(ASKED)
    go_on.set()
    first.join()
    assert connection.submit(ASKED) == [2]


def test_closing_ends_the_connections_and_refuses_what_comes_later() -> None:
    server = Server([1], [2])
    connection = server.connection()
    connection.submit(ASKED)
    connection.close()
    connection.close()
    assert server.lanes[0].ended
    with pytest.raises(StoreUnavailable, match="being closed"):
        connection.submit(ASKED)


def test_a_connection_that_nobody_closed_is_closed_when_it_is_forgotten() -> None:
    server = Server([1])
    server.connection().submit(ASKED)
    gc.collect()
    assert server.lanes[0].ended


FAULTS: dict[str, tuple[int, str, Fault]] = {
    "neptune, two writers": (500, '{"code":"ConcurrentModificationException","detailedMessage":"…"}', Fault.CONFLICT),
    "neptune, older engines": (500, '{"code":"InternalFailureException"}', Fault.CONFLICT),
    "neptune, a made id": (
        500,
        '{"code":"ConstraintViolationException","detailedMessage":"Vertex with id already exists"}',
        Fault.CONFLICT,
    ),
    "janusgraph, commit": (500, "Could not commit transaction due to exception during persistence", Fault.CONFLICT),
    "janusgraph, locks": (500, "org.janusgraph.diskstorage.locking.PermanentLockingException: Local lock contention", Fault.CONFLICT),
    "janusgraph, unique": (500, "Adding this property for key [nid] and value [x] violates a uniqueness constraint", Fault.CONFLICT),
    "berkeleydb": (500, "com.sleepycat.je.LockTimeoutException", Fault.CONFLICT),
    "tinkerpop, temporary": (596, "try again", Fault.CONFLICT),
    "neptune, failover": (500, '{"code":"ReadOnlyViolationException"}', Fault.MOVED),
    "a guard": (595, "missing", Fault.FAILED_STEP),
    "no right": (403, "AccessDeniedException", Fault.NOT_ALLOWED),
    "no identity": (401, "", Fault.NOT_ALLOWED),
    "too slow there": (598, "ConcurrentModificationException", Fault.OTHER),
    "a wrong type": (500, "Expected: class java.lang.Integer", Fault.OTHER),
    "out of memory": (500, '{"code":"MemoryLimitExceededException"}', Fault.OTHER),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told_apart(name: str) -> None:
    code, message, fault = FAULTS[name]
    assert ServerFault(code, message, {}).fault is fault


def test_the_cause_may_stand_in_the_attributes_alone() -> None:
    fault = ServerFault(500, "Error", {"exceptions": ["java.util.ConcurrentModificationException"]})
    assert fault.fault is Fault.CONFLICT


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_is_told_without_a_word_of_the_server(fault: Fault) -> None:
    code, message, _ = next(known for known in FAULTS.values() if known[2] is fault)
    told = translate(ServerFault(code, message))
    assert told.details["store"] == "graph"
    assert told.retryable is (fault in {Fault.CONFLICT, Fault.MOVED, Fault.OTHER})
    assert all(word not in told.message for word in ("Exception", "java", "missing'", "{"))


def test_a_handshake_for_aws_is_signed_for_the_cluster_and_its_region() -> None:
    from botocore.credentials import Credentials

    url = "wss://graph.cluster.test:8182/gremlin"
    headers: Callable[[], Any] = signed(url, "eu-west-1", credentials=lambda: Credentials("AKIDEXAMPLE", "secret", "a token"))
    found = headers()
    assert found["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/neptune-db/aws4_request" in found["Authorization"]
    assert "host" in found["Authorization"]
    assert found["X-Amz-Security-Token"] == "a token"
    assert "secret" not in str(found)


def test_without_credentials_nothing_can_be_signed() -> None:
    with pytest.raises(GraphRefused):
        signed("wss://graph.cluster.test:8182/gremlin", "eu-west-1", credentials=lambda: None)()


def test_loading_the_adapter_loads_no_driver() -> None:
    drivers = ("gremlin_python", "aiohttp", "botocore")
    program = f"import sys, pulse_kg.adapters.gremlin as _; sys.exit(any(name.startswith({drivers}) for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
