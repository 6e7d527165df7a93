"""The vector index on the local OpenSearch: what only a real server can show."""

from __future__ import annotations

import random
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from pulse_kg.adapters.opensearch import IndexRefused, OpenSearchClient, OpenSearchVectorIndex
from pulse_kg.adapters.opensearch.layout import current, indexes, make, mapping
from pulse_kg.domain.model import TextVector
from pulse_kg.domain.plan import CommitPlan, VectorWrite
from pulse_kg.domain.schema import NodeType
from pulse_kg.errors import EmbeddingModelMismatch, StoreUnavailable
from pulse_kg.ports.embedder import ModelInfo
from pulse_kg.ports.vectors import Hit
from tests.support.opensearch_vectors import LOCAL, VectorStores, client, index_name, made_index, vector_stores
from tests.support.plans import DIMENSION, Content, add, node, plan, session, unit

pytestmark = pytest.mark.served

Write = tuple[str, bool, bytes | None]


@pytest.fixture(scope="module")
def server() -> Iterator[OpenSearchClient]:
    made = client()
    yield made
    made.close()


@pytest.fixture(scope="module")
def name(server: OpenSearchClient) -> Iterator[str]:
    with made_index(server) as name:
        yield name


@pytest.fixture
def store(server: OpenSearchClient, name: str) -> Iterator[VectorStores]:
    with vector_stores(server, name) as made:
        yield made


def planned(store: VectorStores, seq: int, *writes: Write, board: str = "alpha", node_type: NodeType = "Decision") -> CommitPlan:
    """A plan that does nothing but write these vectors: id, liveness, vector or None."""
    vectors = tuple(VectorWrite(n, node_type, live, None if v is None else TextVector(v)) for n, live, v in writes)
    return replace(plan(store, session(1, board), Content(), seq=seq), vectors=vectors)


def applied(store: VectorStores, *plans: CommitPlan) -> None:
    for each in plans:
        store.vectors.apply(each)
        store.applied[each.board_id] = max(each.seq, store.applied[each.board_id])


def kept(store: VectorStores, board: str = "alpha") -> dict[str, tuple[bytes, bool]]:
    return {n: (v.vector, live) for n, v, live in store.vectors.all_vectors(board)}


def versions(server: OpenSearchClient, index: str, *keys: str) -> list[int]:
    docs = server.request("POST", f"/{index}/_mget", {"docs": [{"_id": key, "routing": key.split(":")[0]} for key in keys]})["docs"]
    return [doc["_version"] for doc in docs]


# Late doubles, replays, order.


def test_a_late_double_of_a_text_changes_nothing_after_a_later_loss_of_liveness(store: VectorStores) -> None:
    first, second = planned(store, 5, ("dec_a", True, unit(1))), planned(store, 7, ("dec_a", True, unit(0, 1)))
    third = planned(store, 9, ("dec_a", False, None))
    applied(store, first, second, third)
    for late in (second, first, second):
        store.vectors.apply(late)
        assert kept(store) == {"dec_a": (unit(0, 1), False)}


def test_a_late_double_of_a_loss_of_liveness_changes_nothing_after_a_later_text(store: VectorStores) -> None:
    first, second = planned(store, 1, ("dec_a", True, unit(1))), planned(store, 2, ("dec_a", False, None))
    third = planned(store, 3, ("dec_a", True, unit(0, 1)))
    applied(store, first, second, third)
    for late in (second, first, third, second):
        store.vectors.apply(late)
        assert kept(store) == {"dec_a": (unit(0, 1), True)}


def test_texts_in_reverse_order_leave_the_newest(store: VectorStores) -> None:
    plans = [planned(store, seq, ("dec_a", True, unit(1, seq))) for seq in range(1, 6)]
    applied(store, *reversed(plans))
    assert kept(store) == {"dec_a": (unit(1, 5), True)}


def test_losses_of_liveness_never_make_a_version_overtake_the_commits(store: VectorStores, server: OpenSearchClient, name: str) -> None:
    applied(store, planned(store, 1, ("dec_a", True, unit(1))))
    for seq in range(2, 8):
        flip = planned(store, seq, ("dec_a", bool(seq % 2), None))
        applied(store, flip, flip)
    assert versions(server, name, "alpha:dec_a") == [7]
    applied(store, planned(store, 8, ("dec_a", True, unit(0, 1))))
    assert kept(store) == {"dec_a": (unit(0, 1), True)}
    assert versions(server, name, "alpha:dec_a") == [8]


def test_any_doubles_after_each_commit_leave_what_the_commits_left(store: VectorStores) -> None:
    rng = random.Random(7)
    done: list[CommitPlan] = []
    model: dict[str, tuple[bytes, bool]] = {}
    for seq in range(1, 25):
        node_id, live = f"dec_{rng.randrange(4)}", rng.random() < 0.5
        vector = unit(1, seq) if node_id not in model or rng.random() < 0.5 else None
        model[node_id] = (vector or model[node_id][0], live)
        done.append(planned(store, seq, (node_id, live, vector)))
        applied(store, done[-1], *rng.choices(done, k=2))
        assert kept(store) == model


def test_eight_doubles_at_once_leave_one_state(store: VectorStores) -> None:
    first = planned(store, 1, *((f"dec_{n}", True, unit(1, n)) for n in range(20)))
    second = planned(store, 2, *((f"dec_{n}", False, None) for n in range(0, 20, 2)), ("dec_1", True, unit(0, 1)))
    applied(store, first)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.vectors.apply, [second, first] * 4))
    expected = {f"dec_{n}": (unit(1, n), bool(n % 2)) for n in range(20)} | {"dec_1": (unit(0, 1), True)}
    assert kept(store) == expected


def test_a_loss_of_liveness_of_a_vector_that_is_not_there_is_told(store: VectorStores) -> None:
    with pytest.raises(IndexRefused) as refused:
        store.vectors.apply(planned(store, 1, ("dec_gone", False, None)))
    assert not refused.value.retryable
    assert "verify" in refused.value.message


def test_a_vector_that_the_server_refuses_is_told_and_the_rest_is_written(store: VectorStores) -> None:
    broken = planned(store, 1, ("dec_a", True, unit(1)), ("dec_b", True, struct.pack("<3f", 1, 0, 0)))
    with pytest.raises(IndexRefused):
        store.vectors.apply(broken)
    applied(store, replace(broken, vectors=(broken.vectors[0], replace(broken.vectors[1], text_vector=TextVector(unit(0, 1))))))
    assert kept(store) == {"dec_a": (unit(1), True), "dec_b": (unit(0, 1), True)}


def test_vectors_come_back_bit_by_bit(store: VectorStores) -> None:
    rng = random.Random(3)
    made = [struct.pack("<8f", *(rng.uniform(-1, 1) * 10.0 ** -rng.randrange(12) for _ in range(8))) for _ in range(200)]
    made.append(struct.pack("<8f", 1.0, -0.0, 0.0, 1e-40, -1.4e-45, 1.17549435e-38, 0.1, 0.99999994))
    applied(store, planned(store, 1, *((f"dec_{n:03}", True, vector) for n, vector in enumerate(made))))
    assert [vector for vector, _ in kept(store).values()] == made


def test_a_board_with_more_vectors_than_one_page_comes_whole_and_by_id(store: VectorStores) -> None:
    ids = [f"dec_{n:04}" for n in range(601)]
    applied(store, planned(store, 1, *((node_id, True, unit(1)) for node_id in ids)))
    assert [n for n, _, _ in store.vectors.all_vectors("alpha")] == ids


def test_a_reader_of_all_vectors_that_stops_early_leaves_nothing_open(store: VectorStores, server: OpenSearchClient) -> None:
    applied(store, planned(store, 1, ("dec_a", True, unit(1))))
    reader = store.vectors.all_vectors("alpha")
    next(reader)
    before = server.requests
    reader.close()  # type: ignore[attr-defined]
    assert server.requests - before == 1  # which drops what the server kept for it


# What a reader sees.


def test_a_node_is_found_when_its_commit_is_wholly_applied(store: VectorStores) -> None:
    (a,) = add(store, 1, node("A"), vectors={"A": unit(1)})
    made = plan(store, session(2), Content([node("B"), node("C")], hints={"cand_002": ("UPDATE", a)}), seq=2)
    store.vectors.apply(made)  # and the mark is not there yet
    (hits,) = store.vectors.nearest("alpha", "Decision", [unit(1)], limit=9, live_only=True)
    assert [hit.node_id for hit in hits] == [a]
    assert store.vectors.similarities("alpha", unit(1), [w.node_id for w in made.vectors]).keys() == {a}
    assert len(kept(store)) == 2
    store.applied["alpha"] = 2
    (hits,) = store.vectors.nearest("alpha", "Decision", [unit(1)], limit=9, live_only=True)
    assert len(hits) == 2


def test_nothing_of_one_board_is_ever_shown_to_another(store: VectorStores) -> None:
    for board, seq in (("alpha", 1), ("beta", 1)):
        applied(store, planned(store, seq, *((f"dec_{n}", True, unit(1, n if board == "alpha" else 0)) for n in range(40)), board=board))
    (alphas,) = store.vectors.nearest("alpha", "Decision", [unit(1)], limit=50, live_only=True)
    (betas,) = store.vectors.nearest("beta", "Decision", [unit(1)], limit=50, live_only=True)
    assert len(alphas) == len(betas) == 40
    assert {hit.score for hit in betas} == {1.0}
    assert len({hit.score for hit in alphas}) > 30
    assert {v for v, _ in kept(store, "beta").values()} == {unit(1)}
    assert store.vectors.erase("beta") == {"vectors": 0}
    assert len(kept(store)) == 40
    assert kept(store, "beta") == {}


def test_of_many_ties_the_first_by_liveness_and_id_are_taken(store: VectorStores) -> None:
    # Of many more an approximate search may miss one now and then.
    ids = [f"dec_{n:03}" for n in range(100)]
    random.Random(1).shuffle(ids)
    applied(store, planned(store, 1, *((node_id, node_id > "dec_004", unit(1)) for node_id in ids), ("dec_x", True, unit(1, 1))))
    (hits,) = store.vectors.nearest("alpha", "Decision", [unit(1)], limit=5, live_only=False)
    assert [hit.node_id for hit in hits] == [f"dec_{n:03}" for n in range(5, 10)]


def test_one_vector_of_another_length_fails_the_whole_search(store: VectorStores) -> None:
    applied(store, planned(store, 1, ("dec_a", True, unit(1))))
    with pytest.raises(StoreUnavailable):
        store.vectors.nearest("alpha", "Decision", [unit(1), struct.pack("<2f", 1, 0)], limit=1, live_only=True)


# Recall.


def _clustered(count: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    centres = rng.normal(size=(40, dimension))
    points = centres[rng.integers(0, 40, count)] + 0.6 * rng.normal(size=(count, dimension))
    unit_length: np.ndarray = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype("<f4")
    return unit_length


@pytest.mark.slow
def test_two_thousand_vectors_are_found_as_by_comparing_everything(server: OpenSearchClient) -> None:
    rng = np.random.default_rng(5)
    vectors, queries = _clustered(2_000, 384, rng), _clustered(50, 384, rng)
    other = _clustered(500, 384, rng)
    with made_index(server, 384) as name, vector_stores(server, name) as store:
        index = OpenSearchVectorIndex(server, name=name, applied=lambda board_id: 1)
        before = server.requests
        index.apply(planned(store, 1, *((f"dec_{n:04}", n % 10 > 0, v.tobytes()) for n, v in enumerate(vectors))))
        assert server.requests - before > 1  # more than 5 MB
        index.apply(planned(store, 1, *((f"dec_{n:04}", True, v.tobytes()) for n, v in enumerate(other)), board="beta"))
        found = index.nearest("alpha", "Decision", [q.tobytes() for q in queries], limit=10, live_only=True)
        exact = np.clip(vectors.astype("f8") @ queries.T.astype("f8"), 0, 1)
        exact[::10] = -1  # not live
        hit = 0
        for query, hits in enumerate(found):
            assert len(hits) == 10
            best = np.argsort(-exact[:, query])[:10]
            hit += len({f"dec_{n:04}" for n in best} & {h.node_id for h in hits})
            for h in hits:
                assert h.score == pytest.approx(exact[int(h.node_id[4:]), query], abs=1.1e-4)
        assert hit >= 0.99 * 10 * len(queries)
        assert index.erase("alpha") == {"vectors": 0}
        assert len(list(index.all_vectors("beta"))) == 500


# The index itself.


def test_eight_processes_at_once_make_one_index(server: OpenSearchClient) -> None:
    with index_name(server) as name:
        makers = [OpenSearchVectorIndex(client(), name=name, applied=lambda board_id: 0, dimension=8) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda index: index.create_index(LOCAL), makers))
        assert indexes(server, name) == [f"{name}_1"]
        assert current(server, name) == f"{name}_1"
        for index in makers:
            index._client.close()


def test_the_probe_passes_and_leaves_nothing_behind(store: VectorStores, server: OpenSearchClient, name: str) -> None:
    before = server.requests
    assert store.vectors.probe().split(".")[0].isdigit()
    assert server.requests - before <= 4
    server.request("POST", f"/{name}/_refresh")
    assert server.request("POST", f"/{name}/_count", {"query": {"match_all": {}}})["count"] == 0


def test_the_probe_refuses_what_is_not_ours(server: OpenSearchClient) -> None:
    with index_name(server) as name:
        index = OpenSearchVectorIndex(server, name=name, applied=lambda board_id: 0, dimension=DIMENSION)
        with pytest.raises(IndexRefused, match="does not exist"):
            index.probe()
        other = mapping(DIMENSION)
        other["properties"]["board_id"] = {"type": "text"}
        assert make(server, f"{name}_1", other, LOCAL, alias=name)
        with pytest.raises(IndexRefused, match="board_id"):
            index.probe()
        with pytest.raises(IndexRefused, match="vector"):
            OpenSearchVectorIndex(server, name=name, applied=lambda board_id: 0, dimension=9).probe()


def test_an_index_without_its_alias_is_left_as_it_is(server: OpenSearchClient) -> None:
    with index_name(server) as name:
        assert make(server, f"{name}_1", mapping(DIMENSION), LOCAL)
        with pytest.raises(IndexRefused, match="alias"):
            OpenSearchVectorIndex(server, name=name, applied=lambda board_id: 0, dimension=DIMENSION).create_index(LOCAL)


def test_of_two_first_models_at_once_one_wins(store: VectorStores, server: OpenSearchClient, name: str) -> None:
    barrier = threading.Barrier(8)

    def first_use(number: int) -> str:
        index = OpenSearchVectorIndex(server, name=name, applied=lambda board_id: 0, dimension=DIMENSION)
        barrier.wait()
        try:
            index.check_model(ModelInfo(f"model/{number % 2}", DIMENSION, "sha256:" + "a" * 64))
        except EmbeddingModelMismatch as refused:
            return str(refused.details["expected"]["model_id"])
        return f"model/{number % 2}"

    with ThreadPoolExecutor(8) as pool:
        (winner,) = set(pool.map(first_use, range(8)))
    assert {info.model for info in store.vectors.describe("alpha")} == {winner}


def test_a_first_model_of_another_length_than_the_index_is_not_recorded(store: VectorStores) -> None:
    with pytest.raises(EmbeddingModelMismatch) as refused:
        store.vectors.check_model(ModelInfo("a/model", DIMENSION + 1, "sha256:" + "a" * 64))
    assert refused.value.details["expected"] == {"dimension": DIMENSION}
    assert store.vectors.describe("alpha") == []


# Making it anew.


@pytest.fixture
def other(server: OpenSearchClient) -> Iterator[VectorStores]:
    """Stores over an index of their own, whose alias may be moved."""
    with made_index(server) as name, vector_stores(server, name) as made:
        yield made


def name_of(stores: VectorStores) -> str:
    return stores.vectors._name


def test_an_index_made_anew_holds_the_same_with_the_same_versions(other: VectorStores, server: OpenSearchClient) -> None:
    other.vectors.check_model(ModelInfo("a/model", DIMENSION, "sha256:" + "a" * 64))
    applied(
        other,
        planned(other, 4, *((f"dec_{n}", True, unit(1, n)) for n in range(30))),
        planned(other, 6, ("dec_3", False, None), ("dec_4", True, unit(0, 1))),
        planned(other, 2, ("dec_0", True, unit(0, 0, 1)), board="beta"),
    )
    name = name_of(other)
    before = kept(other), kept(other, "beta"), versions(server, name, "alpha:dec_3", "alpha:dec_4", "beta:dec_0")
    told: list[tuple[int, int]] = []
    made = other.vectors.reindex(LOCAL, progress=lambda done, total: told.append((done, total)))
    assert (made.old, made.new, made.copied, made.old_deleted) == (f"{name}_1", f"{name}_2", 32, False)
    assert told[-1] == (32, 32)
    assert current(server, name) == f"{name}_2"
    assert (kept(other), kept(other, "beta"), versions(server, name, "alpha:dec_3", "alpha:dec_4", "beta:dec_0")) == before
    other.vectors.probe()
    fresh = OpenSearchVectorIndex(server, name=name, applied=lambda board_id: 9, dimension=DIMENSION)
    assert fresh.describe("alpha")[0].model == "a/model"
    applied(other, planned(other, 7, ("dec_3", True, None)))
    assert kept(other)["dec_3"] == (unit(1, 3), True)
    assert other.vectors.reindex(LOCAL, delete_old=True).old_deleted
    assert indexes(server, name) == [f"{name}_3"]
    assert len(kept(other)) == 30


def test_commits_meanwhile_are_all_there_or_told_to_be_tried_again(other: VectorStores) -> None:
    applied(other, planned(other, 1, *((f"dec_{n}", True, unit(1, n)) for n in range(200))))
    model = kept(other)
    over, failed = threading.Event(), list[StoreUnavailable]()

    def commits() -> None:
        seq = 2
        while not over.is_set() or seq < 4:
            live = bool(seq % 3)
            write: Write = (f"dec_{seq % 200}", live, unit(0, seq) if seq % 2 else None)
            made = planned(other, seq, write, (f"new_{seq}", True, unit(1, seq)))
            while True:
                try:
                    applied(other, made)
                    break
                except StoreUnavailable as error:
                    failed.append(error)
            model[write[0]] = (write[2] or model[write[0]][0], live)
            model[f"new_{seq}"] = (unit(1, seq), True)
            seq += 1

    writer = threading.Thread(target=commits)
    writer.start()
    try:
        for _ in range(2):
            other.vectors.reindex(LOCAL, delete_old=True)
    finally:
        over.set()
        writer.join()
    assert all(error.retryable for error in failed)
    assert kept(other) == model


def test_a_second_run_is_refused_and_an_unfinished_one_can_be_discarded(other: VectorStores, server: OpenSearchClient) -> None:
    name = name_of(other)
    applied(other, planned(other, 1, ("dec_a", True, unit(1))))
    assert make(server, f"{name}_2", mapping(DIMENSION), LOCAL)
    server.request("PUT", f"/{name}_1/_block/write")  # what a killed run leaves
    with pytest.raises(StoreUnavailable) as blocked:
        other.vectors.apply(planned(other, 2, ("dec_a", False, None)))
    assert blocked.value.retryable
    with pytest.raises(IndexRefused, match="already"):
        other.vectors.reindex(LOCAL)
    assert current(server, name) == f"{name}_1"
    assert other.vectors.reindex(LOCAL, discard_unfinished=True).new == f"{name}_2"
    applied(other, planned(other, 2, ("dec_a", False, None)))
    assert kept(other) == {"dec_a": (unit(1), False)}


def test_an_erased_board_is_gone_from_the_old_index_too(other: VectorStores, server: OpenSearchClient) -> None:
    applied(other, planned(other, 1, ("dec_a", True, unit(1))), planned(other, 1, ("dec_b", True, unit(1)), board="beta"))
    other.vectors.reindex(LOCAL)
    assert other.vectors.erase("alpha") == {"vectors": 0}
    assert other.vectors.erase("alpha") == {"vectors": 0}
    for index in indexes(server, name_of(other)):
        found = server.request("POST", f"/{index}/_search", {"query": {"exists": {"field": "board_id"}}, "_source": ["board_id"]})
        assert {hit["_source"]["board_id"] for hit in found["hits"]["hits"]} == {"beta"}


def test_what_was_erased_is_made_again_when_the_server_forgets_it(store: VectorStores) -> None:
    first = planned(store, 3, ("dec_a", True, unit(1)))
    applied(store, first, planned(store, 4, ("dec_a", False, None)))
    assert store.vectors.erase("alpha") == {"vectors": 0}
    applied(store, first)
    assert store.vectors.nearest("alpha", "Decision", [unit(1)], limit=1, live_only=True) == [[Hit("dec_a", 1.0, True)]]


def test_more_vectors_than_one_request_takes_are_answered_in_order(store: VectorStores) -> None:
    rng = random.Random(2)
    vectors = {f"dec_{n:03}": unit(*(rng.gauss(0, 1) for _ in range(DIMENSION))) for n in range(130)}
    applied(store, planned(store, 1, *((node_id, True, vector) for node_id, vector in vectors.items())))
    found = store.vectors.nearest("alpha", "Decision", list(vectors.values()), limit=1, live_only=True)
    assert [hits[0].node_id for hits in found] == list(vectors)
