"""The benchmark of the served form: it counts what is sent, and reckons what that costs. It needs no server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bench import aims
from bench.context import Context, Skipped
from bench.served import cli
from bench.served.parts import NAMES, runner
from bench.served.trips import (
    ACQUIRE,
    CountedClient,
    CountedSearch,
    Labelled,
    LeaseWait,
    Recorder,
    Trip,
    by_step,
    lease_waits,
    span,
)
from bench.served.units import NOTHING, Meter, Used, index_units, item_bytes, read_units, summed, write_units
from bench.served.world import RememberedEmbedder, World, endpoints_from
from bench.world import NewNode
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.endpoints import Endpoints

PENDING = {"pending_shard": {"S": "3"}, "pending_at": {"N": "1"}}


def item(size: int, **more: Mapping[str, Any]) -> dict[str, Any]:
    """An item of that size, without what `more` adds."""
    keys: dict[str, Any] = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    return {**keys, "body": {"B": b"x" * (size - item_bytes(keys) - len("body"))}, **more}


@dataclass
class FakeTables:
    """One table, whatever its name: enough of a client to be measured against."""

    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def get_item(self, *, Key: Any, **_: Any) -> dict[str, Any]:  # noqa: N803 - the driver's name
        found = self.items.get((Key["pk"]["S"], Key["sk"]["S"]))
        return {} if found is None else {"Item": found}

    def put_item(self, *, Item: Any, **_: Any) -> dict[str, Any]:  # noqa: N803
        self.items[Item["pk"]["S"], Item["sk"]["S"]] = Item
        return {}

    def query(self, **parameters: Any) -> dict[str, Any]:
        shown = ("pk", "sk") if "ProjectionExpression" in parameters else None
        found = [{n: v for n, v in i.items() if shown is None or n in shown} for i in self.items.values()]
        return {"Items": found}

    def fail(self, **_: Any) -> None:
        raise LookupError


class TestUnits:
    def test_an_items_size_is_that_of_its_names_and_values(self) -> None:
        assert item_bytes({"pk": {"S": "ä"}, "n": {"N": "1200"}, "yes": {"BOOL": True}, "b": {"B": b"12345"}}) == 4 + 3 + 4 + 6
        assert item_bytes({"n": {"N": "-123"}}) == 1 + 4
        assert item_bytes({}) == 0

    def test_a_type_that_the_tables_have_not_is_refused(self) -> None:
        with pytest.raises(ValueError, match="type L"):
            item_bytes({"l": {"L": []}})

    def test_a_write_is_charged_by_the_larger_of_before_and_after(self) -> None:
        assert write_units({}, item(1_024)) == 1
        assert write_units({}, item(1_025)) == 2
        assert write_units(item(20_480), item(100)) == 20
        assert write_units({}, {}) == 1

    def test_a_read_of_nothing_costs_as_much_as_the_smallest(self) -> None:
        assert read_units(0, consistent=True) == 1
        assert read_units(4_097, consistent=True) == 2
        assert read_units(4_097, consistent=False) == 1

    def test_the_index_is_charged_for_entries_that_come_and_go(self) -> None:
        waiting = item(100, **PENDING)
        assert index_units({}, waiting) == 1
        assert index_units(waiting, item(50, **PENDING)) == 0
        assert index_units(waiting, item(100)) == 1
        assert index_units(waiting, {**waiting, "pending_at": {"N": "2"}}) == 2
        assert index_units({}, item(100)) == 0

    def test_units_add_up(self) -> None:
        assert summed([Used(1, 2), Used(0.5, 0)]) == Used(1.5, 2)
        assert summed([]) == NOTHING


class TestMeter:
    def test_a_transaction_costs_twice(self) -> None:
        tables = FakeTables()
        tables.put_item(Item=item(3_000))
        key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
        check = {"ConditionCheck": {"TableName": "t", "Key": key}}
        new = {"Put": {"TableName": "t", "Item": {"pk": {"S": "a"}, "sk": {"S": "c"}, **PENDING}}}
        meter = Meter(tables, "transact_write_items", {"TransactItems": [check, new]})
        tables.put_item(Item=new["Put"]["Item"])
        assert meter.used({}) == Used(writes=2 * 3 + 2 * 1 + 1)

    def test_a_refused_write_is_charged_too(self) -> None:
        tables = FakeTables()
        tables.put_item(Item=item(2_000))
        meter = Meter(tables, "update_item", {"TableName": "t", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}})
        assert meter.used(None) == Used(writes=2)

    def test_what_a_projection_leaves_out_is_charged(self) -> None:
        tables = FakeTables()
        tables.put_item(Item=item(9_000))
        parameters = {"TableName": "t", "ConsistentRead": True, "ProjectionExpression": "#p0", "ExpressionAttributeNames": {"#p0": "pk"}}
        assert Meter(tables, "query", parameters).used(tables.query(**parameters)) == Used(reads=3)

    def test_a_key_without_an_item_costs_a_read(self) -> None:
        parameters = {"RequestItems": {"t": {"Keys": [{}, {}], "ConsistentRead": True}}}

        class Tables(FakeTables):
            def batch_get_item(self, **_: Any) -> dict[str, Any]:
                return {"Responses": {"t": [item(5_000)]}}

        assert Meter(Tables(), "batch_get_item", parameters).used({}) == Used(reads=3)

    def test_what_is_no_read_or_write_costs_nothing(self) -> None:
        assert Meter(FakeTables(), "send_message", {}).used({}) == NOTHING


class TestTrips:
    def test_a_trip_belongs_to_its_call_and_its_outermost_step(self) -> None:
        recorder = Recorder()
        client = CountedClient(FakeTables(), "dynamodb", recorder)
        with recorder.call("commit_consolidation") as number, recorder.step("publish"), recorder.step("journal.progress"):
            client.get_item(Key={"pk": {"S": "a"}, "sk": {"S": "b"}})
        calls, (trip,) = recorder.taken()
        assert (trip.call, trip.tool, trip.step, trip.store, trip.operation) == (
            number,
            "commit_consolidation",
            "publish",
            "dynamodb",
            "get_item",
        )
        assert [(call.number, call.tool) for call in calls] == [(number, "commit_consolidation")]
        assert recorder.taken() == ([], [])

    def test_a_try_that_failed_is_counted(self) -> None:
        recorder = Recorder()
        with pytest.raises(LookupError):
            CountedClient(FakeTables(), "dynamodb", recorder).fail()
        assert [trip.refused for trip in recorder.taken()[1]] == [True]

    def test_units_are_reckoned_where_they_are_wanted(self) -> None:
        recorder = Recorder()
        CountedClient(FakeTables(), "dynamodb", recorder, units=True).put_item(TableName="t", Item=item(1_500))
        assert [trip.used for trip in recorder.taken()[1]] == [Used(writes=2)]

    def test_requests_to_the_index_are_counted_by_what_they_are(self) -> None:
        class Driver:
            transport: Any = None

            def perform_request(self, method: str, path: str, **_: Any) -> str:
                return f"{method} {path}"

        driver, recorder = Driver(), Recorder()
        driver.transport = driver
        assert CountedSearch(driver, recorder).transport.perform_request("POST", "/nodes/_bulk", body="") == "POST /nodes/_bulk"
        assert [(trip.store, trip.operation) for trip in recorder.taken()[1]] == [("opensearch", "POST _bulk")]

    def test_the_methods_of_a_part_are_steps_and_its_values_are_not(self) -> None:
        class Part:
            mode = "exact"

            def survey(self) -> str:
                with recorder.trip("gremlin", "traversal"):
                    return "seen"

        recorder = Recorder()
        part = Labelled(Part(), "graph", recorder)
        assert (part.mode, part.survey()) == ("exact", "seen")
        assert [trip.step for trip in recorder.taken()[1]] == ["graph.survey"]

    def test_steps_come_in_their_order_with_their_count_in_each_call(self) -> None:
        trips = [
            trip(1, "sessions.load_all", 0.0, 2.0),
            trip(1, "graph.survey", 0.2, 5.0),
            trip(2, "sessions.load_all", 1.0, 4.0),
            trip(2, "sessions.load_all", 1.1, 6.0),
        ]
        steps = by_step(trips)
        assert [(s.step, s.trips) for s in steps] == [("sessions.load_all", "1–2"), ("graph.survey", "0–1")]
        assert (steps[0].ms.n, steps[0].ms.p50) == (3, 4.0)

    def test_equal_counts_are_one_number(self) -> None:
        assert span([8, 8]) == "8"
        assert span([5, 8, 6]) == "5–8"

    def test_waiting_for_a_board_ends_with_the_try_that_gets_it(self) -> None:
        trips = [trip(1, ACQUIRE, 1.0, 3.0), trip(2, ACQUIRE, 1.0, 3.0), trip(2, ACQUIRE, 1.25, 3.0), trip(2, "graph.survey", 2.0, 9.0)]
        assert lease_waits(trips) == [LeaseWait(1, 0.0), LeaseWait(2, 250.0)]


def trip(call: int, step: str, started: float, ms: float) -> Trip:
    return Trip(call, "commit_consolidation", step, "dynamodb", "update_item", started, ms)


class TestWorld:
    def test_it_makes_tables_on_local_servers_only(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        with pytest.raises(Skipped, match="local servers"):
            endpoints_from(variables(tmp_path, "https://dynamodb.us-east-1.amazonaws.com"))

    def test_a_file_says_where_they_are(self, tmp_path: Path) -> None:
        found = endpoints_from(variables(tmp_path, "http://127.0.0.1:4999"))
        assert (found.aws_url, found.gremlin_url) == ("http://127.0.0.1:4999", "ws://127.0.0.1:1/gremlin")

    def test_a_file_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(Skipped, match=r"stack\.env"):
            endpoints_from(tmp_path / "stack.env")

    def test_known_texts_are_not_embedded_again(self) -> None:
        model = HashingEmbedder()
        (known,) = model.embed(["another text"])
        embedder = RememberedEmbedder(model, {"one text": known})
        assert embedder.embed(["one text"]) == [known]
        assert embedder.embed(["one text", "two"]) == model.embed(["one text", "two"])
        assert embedder.info() == model.info()

    def test_no_two_parts_run_the_same_sessions(self, tmp_path: Path) -> None:
        tens = [[NewNode(f"{n}", {})] for n in range(6)]
        world = World(Context(True, tmp_path, tmp_path), Endpoints("", "", ""), HashingEmbedder(), planned={100: list(tens)})
        assert world.sessions(100, count=2) == tens[:2]
        assert world.sessions(100, count=2, tens=2) == [tens[2] + tens[3], tens[4] + tens[5]]
        with pytest.raises(RuntimeError, match="planned"):
            world.sessions(100, count=1)


def variables(folder: Path, aws: str) -> Path:
    path = folder / "some.env"
    values = {
        "AWS_ENDPOINT_URL": aws,
        "PULSE_KG_GREMLIN_URL": "ws://127.0.0.1:1/gremlin",
        "PULSE_KG_OPENSEARCH_URL": "http://127.0.0.1:2",
        "PULSE_KG_TABLE_PREFIX": "x_",
    }
    path.write_text("# where they are\n" + "".join(f"{name}={value}\n" for name, value in values.items()), "utf-8")
    return path


class TestRuns:
    def test_every_part_can_be_run(self) -> None:
        for name in NAMES:
            assert callable(runner(name))

    def test_help_tells_the_parts_by_example(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            cli.main(["--help"])
        assert ended.value.code == 0
        told = capsys.readouterr().out
        assert all(name in told for name in NAMES)
        assert "python -m bench.served --quick" in told

    def test_without_servers_it_says_so(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["--quick", "--endpoints", str(variables(tmp_path, "http://127.0.0.1:9"))]) == 1
        assert "can't run" in capsys.readouterr().err

    def test_a_commit_has_an_aim(self) -> None:
        assert [a["met"] for a in aims.judged({"commits": {"10_candidates": {"round_trips": 8}}})] == [True]
        assert [a["met"] for a in aims.judged({"commits": {"10_candidates": {"round_trips": 9}}})] == [False]
