"""The vector index's client and what it makes of a server's answers, without a server."""

from __future__ import annotations

import http.server
import json
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import opensearchpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.opensearch import IndexRefused, OpenSearchClient, OpenSearchVectorIndex, connect
from pulse_kg.adapters.opensearch.layout import mapping, numbers, packed
from pulse_kg.adapters.sqlite import open_store
from pulse_kg.domain.model import TextVector
from pulse_kg.domain.plan import CommitPlan, VectorWrite
from pulse_kg.errors import StoreUnavailable
from tests.support.plans import DIMENSION, Content, plan, session, unit

Answer = Any


class Server:
    """Answers as told: a value, an exception to raise, or a function of the request; the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[SimpleNamespace] = []
        self.slept: list[float] = []
        self.transport = self

    def perform_request(self, method: str, path: str, **how: Any) -> Any:
        asked = SimpleNamespace(method=method, path=path, **how)
        self.asked.append(asked)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(asked) if callable(answer) else answer

    def close(self) -> None:
        pass

    def client(self) -> OpenSearchClient:
        return OpenSearchClient(lambda: self, sleep=self.slept.append, randomness=lambda: 1.0)

    def index(self) -> OpenSearchVectorIndex:
        return OpenSearchVectorIndex(self.client(), name="kg_nodes", applied=lambda board_id: 5, dimension=DIMENSION)

    def lines(self, number: int = -1) -> list[Any]:
        return [json.loads(line) for line in self.asked[number].body.splitlines()]


def refused(status: int, kind: str = "some_exception") -> opensearchpy.TransportError:
    return opensearchpy.TransportError(status, kind, {"error": {"type": kind, "reason": "secret-host:9200 said no"}})


def item(action: str, status: int, **more: Any) -> dict[str, Any]:
    return {action: {"_id": "x", "status": status, "result": "created", **more}}


def hit(node_id: str, score: float = 1.0, board: str = "alpha", *, live: bool = True) -> dict[str, Any]:
    return {"_score": score, "fields": {"node_id": [node_id], "board_id": [board], "live": [live]}}


def search(*hits: Mapping[str, Any], failed: int = 0, timed_out: bool = False) -> dict[str, Any]:
    return {"timed_out": timed_out, "_shards": {"total": 1, "failed": failed}, "hits": {"hits": list(hits)}, "status": 200}


def several(*answers: Mapping[str, Any]) -> dict[str, Any]:
    return {"responses": list(answers)}


@pytest.fixture
def empty() -> Iterator[CommitPlan]:
    store = open_store(":memory:", create=True)
    try:
        yield plan(store, session(1), Content(), seq=3)
    finally:
        store.close()


def writes(empty: CommitPlan, count: int, *, live: bool | None = None) -> CommitPlan:
    vector = TextVector(unit(1)) if live is None else None
    return replace(empty, vectors=tuple(VectorWrite(f"dec_{n}", "Decision", live is not False, vector) for n in range(count)))


# Errors of the driver.


@pytest.mark.parametrize(
    "error",
    [
        *(refused(status) for status in (429, 502, 503, 504)),
        opensearchpy.ConnectionError("N/A", "secret-host refused", OSError()),
        opensearchpy.ConnectionTimeout("TIMEOUT", "secret-host", OSError()),
        opensearchpy.SerializationError("<html>secret-host</html>"),
    ],
    ids=lambda e: type(e).__name__ + str(e.args[0])[:3],
)
def test_what_may_pass_is_tried_again_and_then_told_without_the_drivers_words(error: Exception) -> None:
    server = Server(error, error, {"ok": 1})
    assert server.client().request("GET", "/x") == {"ok": 1}
    assert server.slept == [0.025, 0.05]
    down = Server(error)
    with pytest.raises(StoreUnavailable) as told, time_budget(1.0):
        down.client().request("GET", "/x")
    assert told.value.retryable
    assert told.value.details == {"store": "vectors"}
    assert "secret-host" not in told.value.message


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "said"),
    [
        (400, "mapper_parsing_exception", False, "mapping"),
        (401, "", False, "credentials"),
        (403, "security_exception", False, "credentials"),
        (403, "cluster_block_exception", True, "rebuilt"),
        (404, "index_not_found_exception", False, "does not exist"),
        (404, "search_context_missing_exception", True, "right now"),
        (413, "", False, "size"),
        (500, "", True, "right now"),
    ],
)
def test_a_refusal_is_told_at_once_in_our_words(status: int, kind: str, *, retryable: bool, said: str) -> None:
    server = Server(refused(status, kind))
    with pytest.raises(StoreUnavailable, match=said) as told:
        server.client().request("GET", "/x")
    assert told.value.retryable is retryable
    assert told.value.code == "store_unavailable"
    assert len(server.asked) == 1
    assert "secret-host" not in told.value.message


def test_tries_end_with_the_calls_time_and_each_has_a_bound() -> None:
    server = Server(refused(503))
    client = OpenSearchClient(lambda: server, randomness=lambda: 1.0)
    with time_budget(0.3), pytest.raises(StoreUnavailable):
        client.request("GET", "/x")
    assert 2 <= len(server.asked) <= 6
    for asked in server.asked:
        assert 0 < asked.timeout.read_timeout <= 0.3
        assert 0 < asked.timeout.connect_timeout <= 0.3
    with time_budget(0), pytest.raises(StoreUnavailable):
        client.request("GET", "/x")
    assert 2 <= len(server.asked) <= 6


def test_a_long_call_leaves_time_for_a_second_try() -> None:
    server = Server({})
    with time_budget(20):
        server.client().request("GET", "/x")
    assert server.asked[0].timeout.read_timeout <= 10
    assert server.asked[0].timeout.connect_timeout <= 2


def test_no_server_at_all_is_told_within_the_time() -> None:
    client = OpenSearchClient(lambda: connect("http://127.0.0.1:9"))
    with time_budget(0.5), pytest.raises(StoreUnavailable) as told:
        client.request("GET", "/x")
    assert told.value.retryable
    client.close()


# Searches.


@pytest.mark.parametrize(
    "broken",
    [
        several(search(hit("a")), {"error": {"type": "search_phase_execution_exception"}, "status": 400}),
        several(search(hit("a")), {"error": {"type": "search_phase_execution_exception"}, "status": 503}),
        several(search(hit("a")), search(hit("b"), failed=1)),
        several(search(hit("a")), search(timed_out=True)),
        several(search(hit("a"))),
    ],
)
def test_a_search_that_failed_in_part_is_never_fewer_hits(broken: Answer) -> None:
    server = Server(broken)
    with pytest.raises(StoreUnavailable), time_budget(0.2):
        server.index().nearest("alpha", "Decision", [unit(1), unit(2)], limit=3, live_only=True)


def test_a_search_that_was_busy_in_part_is_asked_again() -> None:
    busy = several({"error": {"type": "rejected_execution_exception"}, "status": 429})
    server = Server(busy, several(search(hit("a"))))
    (hits,) = server.index().nearest("alpha", "Decision", [unit(1)], limit=3, live_only=True)
    assert [h.node_id for h in hits] == ["a"]


def test_a_hit_of_another_board_is_refused_with_all_the_rest() -> None:
    with pytest.raises(IndexRefused, match="boards apart"):
        Server(several(search(hit("a"), hit("b", board="beta")))).index().nearest("alpha", "Decision", [unit(1)], limit=3, live_only=True)
    with pytest.raises(IndexRefused):
        Server(search(hit("b", board="beta"))).index().similarities("alpha", unit(1), ["b"])
    source = {"board_id": "beta", "node_id": "b", "vector": [1.0], "live": True, "truncated": False}
    with pytest.raises(IndexRefused):
        list(Server({"pit_id": "p"}, search({"_source": source}), {}).index().all_vectors("alpha"))


def test_the_filter_is_inside_the_search_and_holds_board_type_liveness_and_mark() -> None:
    server = Server(several(search()))
    server.index().nearest("alpha", "Decision", [unit(1)], limit=3, live_only=True)
    head, query = server.lines()
    assert head["routing"] == "alpha"
    knn = query["query"]["knn"]["vector"]
    assert knn["filter"]["bool"]["filter"] == [
        {"term": {"node_type": "Decision"}},
        {"term": {"board_id": "alpha"}},
        {"range": {"created_seq": {"lte": 5}}},
        {"term": {"live": True}},
    ]
    assert knn["k"] == query["size"] > 3
    assert knn["method_parameters"]["ef_search"] >= 256
    server.index().nearest("alpha", "Decision", [unit(1)], limit=100, live_only=False)
    knn = server.lines()[1]["query"]["knn"]["vector"]
    assert knn["method_parameters"]["ef_search"] >= 400
    assert {"term": {"live": True}} not in knn["filter"]["bool"]["filter"]


def test_scores_are_cosines_clamped_rounded_and_in_the_ports_order() -> None:
    found = search(hit("old", 1.0, live=False), hit("b", 1.0), hit("a", 0.9999999), hit("c", 0.8535534), hit("d", 0.25))
    (hits,) = Server(several(found)).index().nearest("alpha", "Decision", [unit(1)], limit=9, live_only=False)
    assert [(h.node_id, h.score) for h in hits] == [("a", 1.0), ("b", 1.0), ("old", 1.0), ("c", 0.7071), ("d", 0.0)]


def test_a_hundred_vectors_are_one_request_and_more_are_more() -> None:
    server = Server(lambda asked: several(*[search()] * (len(asked.body.splitlines()) // 2)))
    assert server.index().nearest("alpha", "Decision", [unit(1)] * 100, limit=1, live_only=True) == [[]] * 100
    assert len(server.asked) == 1
    assert server.index().nearest("alpha", "Decision", [unit(1)] * 250, limit=1, live_only=True) == [[]] * 250
    assert len(server.asked) == 4


def test_nothing_asked_is_no_request() -> None:
    index = (server := Server({})).index()
    assert index.nearest("alpha", "Decision", [], limit=5, live_only=True) == []
    assert index.nearest("alpha", "Decision", [unit(1)], limit=0, live_only=True) == [[]]
    assert index.similarities("alpha", unit(1), []) == {}
    assert server.asked == []


# Writes.


def test_a_plan_without_vectors_is_no_request(empty: CommitPlan) -> None:
    server = Server({})
    server.index().apply(empty)
    assert server.asked == []


def test_a_plan_is_one_request_that_waits_until_it_can_be_seen(empty: CommitPlan) -> None:
    server = Server({"items": [item("index", 201)] * 2})
    server.index().apply(writes(empty, 2))
    (asked,) = server.asked
    assert asked.params == {"refresh": "wait_for"}
    head, document, *_ = server.lines()
    assert head == {"index": {"_id": "alpha:dec_0", "routing": "alpha", "version": 3, "version_type": "external"}}
    assert document["vector"] == [1.0] + [0.0] * 7
    assert (document["created_seq"], document["commit_seq"]) == (3, 3)


def test_a_large_plan_is_several_requests_of_which_the_last_waits(empty: CommitPlan) -> None:
    server = Server(lambda asked: {"items": [item("index", 201)] * (len(asked.body.splitlines()) // 2)})
    wide = TextVector(struct.pack("<4096f", *(n / 7 for n in range(4096))))
    server.index().apply(replace(empty, vectors=tuple(VectorWrite(f"dec_{n}", "Decision", True, wide) for n in range(300))))
    assert [asked.params["refresh"] for asked in server.asked] == [*["false"] * (len(server.asked) - 1), "wait_for"]
    assert len(server.asked) > 2
    assert all(len(asked.body) < 5_100_000 for asked in server.asked)
    heads = [line["index"]["_id"] for number in range(len(server.asked)) for line in server.lines(number)[::2]]
    assert heads == [f"alpha:dec_{n}" for n in range(300)]


@pytest.mark.parametrize(
    ("bad", "retryable"),
    [
        (item("index", 400, error={"type": "mapper_parsing_exception"}), False),
        (item("index", 500, error={"type": "any"}), True),
        (item("index", 403, error={"type": "cluster_block_exception"}), True),
        (item("index", 404, error={"type": "index_not_found_exception"}), False),
    ],
)
def test_one_item_that_failed_is_told(empty: CommitPlan, bad: Answer, *, retryable: bool) -> None:
    server = Server({"errors": False, "items": [item("index", 201), bad]})
    with pytest.raises(StoreUnavailable) as told:
        server.index().apply(writes(empty, 2))
    assert told.value.retryable is retryable
    assert len(server.asked) == 1


def test_an_item_that_was_busy_is_sent_again(empty: CommitPlan) -> None:
    busy = item("index", 429, error={"type": "rejected_execution_exception"})
    server = Server({"items": [item("index", 201), busy]}, {"items": [item("index", 201)] * 2})
    server.index().apply(writes(empty, 2))
    assert len(server.asked) == 2


def test_an_answer_that_lacks_items_is_not_taken_for_done(empty: CommitPlan) -> None:
    with pytest.raises(StoreUnavailable), time_budget(0.1):
        Server({"items": [item("index", 201)]}).index().apply(writes(empty, 2))


def test_a_newer_version_counts_as_done_when_it_is_there_and_is_made_visible(empty: CommitPlan) -> None:
    older = {"items": [item("index", 201), item("index", 409)]}
    server = Server(older, {"docs": [{"found": True, "_source": {"commit_seq": 3}}]}, {})
    server.index().apply(writes(empty, 2))
    assert [asked.path for asked in server.asked] == ["/kg_nodes/_bulk", "/kg_nodes/_mget", "/kg_nodes/_refresh"]


@pytest.mark.parametrize("there", [{"found": False}, {"found": True, "_source": {"commit_seq": 2}}])
def test_a_version_that_refuses_without_being_there_is_not_taken_for_done(empty: CommitPlan, there: Answer) -> None:
    older = {"items": [item("index", 409)]}
    with pytest.raises(StoreUnavailable), time_budget(0.1):
        Server(lambda asked: {"docs": [there]} if asked.path.endswith("_mget") else older).index().apply(writes(empty, 1))


def test_a_liveness_that_others_change_at_the_same_time_is_tried_again(empty: CommitPlan) -> None:
    server = Server({"items": [item("update", 409)]}, {"items": [item("update", 200, result="updated")]})
    server.index().apply(writes(empty, 1, live=False))
    assert len(server.asked) == 2
    head, script = server.lines()
    assert head["update"]["routing"] == "alpha"
    assert script["script"]["params"] == {"seq": 3, "live": False, "at": None}


# The server itself.

HERE: dict[str, Any] = {"version": {"distribution": "opensearch", "number": "2.19.6"}}
OURS: dict[str, Any] = {"kg_nodes_1": {"mappings": mapping(DIMENSION)}}
GOOD: dict[str, Any] = {"items": [item("index", 201), item("index", 409), item("delete", 200)]}


def probing(*, root: Answer = HERE, index: Answer = OURS, bulk: Answer = GOOD) -> tuple[Server, Callable[[], str]]:
    server = Server(root, index, bulk, search())
    return server, server.index().probe


def test_a_good_server_passes_in_four_requests() -> None:
    server, probe = probing()
    assert probe() == "2.19.6"
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"root": {"error": "not found", "status": 404}}, "serverless"),
        ({"root": {"message": "Not Found"}}, "serverless"),
        ({"root": {"version": {"number": "7.10.2"}}}, "7.10.2"),
        ({"root": {"version": {"distribution": "opensearch", "number": "2.11.0"}}}, "2.16"),
        ({"index": {"error": {"type": "index_not_found_exception"}}}, "does not exist"),
        ({"index": {"kg_nodes_1": {"mappings": mapping(384)}}}, "vector"),
        ({"bulk": {"items": [item(a, 400) for a in ("index", "index", "delete")]}}, "serverless"),
        ({"bulk": {"items": [item("index", 201), item("index", 200), item("delete", 200)]}}, "versions"),
    ],
)
def test_a_server_that_does_not_fit_is_refused_with_the_reason(answers: Mapping[str, Any], said: str) -> None:
    _, probe = probing(**answers)
    with pytest.raises(IndexRefused, match=said) as told:
        probe()
    assert not told.value.retryable


@pytest.mark.parametrize("url", ["https://abc.us-east-1.aoss.amazonaws.com", "https://abc.aoss.eu-west-1.on.aws:443/"])
def test_a_serverless_address_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(IndexRefused, match="serverless"):
        OpenSearchClient(lambda: connect(url)).request("GET", "/")


def test_a_server_without_knn_is_refused_when_the_index_is_made() -> None:
    unknown = {"error": {"type": "mapper_parsing_exception"}, "status": 400}
    with pytest.raises(IndexRefused, match="k-NN"):
        Server({}, unknown).index().create_index()


# Signatures.


class _Recorder(http.server.BaseHTTPRequestHandler):
    seen: list[Mapping[str, str]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.seen.append(dict(self.headers.items()))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[tuple[str, Sequence[Mapping[str, str]]]]:
    handler = type("Recorder", (_Recorder,), {"seen": []})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler.seen  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


def test_requests_are_signed_where_that_is_asked_for(
    recorder: tuple[str, Sequence[Mapping[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    url, seen = recorder
    for sign in (True, None):
        client = OpenSearchClient(lambda sign=sign: connect(url, sign=sign, region="eu-west-1"))  # type: ignore[misc]
        client.request("POST", "/x", {"a": 1})
        client.close()
    assert seen[0]["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/es/aws4_request" in seen[0]["Authorization"]
    assert "Authorization" not in seen[1]


def test_an_address_of_aws_is_signed_for_its_own_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for host in ("search-kg-abc.eu-west-1.es.amazonaws.com", "search-kg-abc.aos.eu-west-1.on.aws"):
        driver = connect(f"https://{host}")
        signer = driver.transport.get_connection().http_auth
        assert (signer.signer.region, signer.signer.service) == ("eu-west-1", "es")
        driver.close()


# Numbers, and what an import costs.


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_a_vector_survives_json_bit_by_bit(values: list[float]) -> None:
    vector = struct.pack(f"<{len(values)}f", *values)
    assert packed(json.loads(json.dumps(numbers(vector)))) == vector


def test_importing_the_adapter_imports_no_driver_and_no_numpy() -> None:
    code = (
        "import sys, pulse_kg.adapters.opensearch, pulse_kg.adapters.sqs\n"
        "print([m for m in ('opensearchpy', 'urllib3', 'requests', 'numpy', 'botocore', 'boto3') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
