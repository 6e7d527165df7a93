"""What `VectorIndex` promises, of every store."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse_kg.domain.model import TextVector
from pulse_kg.domain.plan import CommitPlan, VectorWrite
from pulse_kg.domain.schema import SEARCHABLE_TYPES, NodeType
from pulse_kg.errors import EmbeddingModelMismatch
from pulse_kg.ports.embedder import ModelInfo
from pulse_kg.ports.vectors import Hit
from tests.support.plans import DIMENSION, NOW, Content, add, commit, node, plan, session, unit
from tests.support.stores import STORES, Stores

MODEL = ModelInfo("a/model", DIMENSION, "sha256:" + "a" * 64)


def nearest(
    store: Stores, vector: bytes, node_type: NodeType = "Decision", *, board: str = "alpha", limit: int = 10, live: bool = True
) -> list[Hit]:
    (hits,) = store.vectors.nearest(board, node_type, [vector], limit=limit, live_only=live)
    return hits


def test_the_nearest_come_best_first_with_rounded_scores(store: Stores) -> None:
    vectors = {"A": unit(1), "B": unit(1, 1), "C": unit(0, 1), "D": unit(-1)}
    a, b, c, d = add(store, 1, *(node(t) for t in "ABCD"), vectors=vectors)
    assert nearest(store, unit(1)) == [Hit(a, 1.0, True), Hit(b, 0.7071, True), *(Hit(n, 0.0, True) for n in sorted([c, d]))]
    assert nearest(store, unit(1), limit=2) == [Hit(a, 1.0, True), Hit(b, 0.7071, True)]
    assert nearest(store, unit(1), limit=0) == []


def test_each_vector_has_its_own_answer_that_does_not_depend_on_the_others(store: Stores) -> None:
    add(store, 1, *(node(f"n{n}") for n in range(40)), vectors={f"n{n}": unit(1, n, n * n % 7, n % 3) for n in range(40)})
    queries = [unit(n, 1, n % 5) for n in range(13)]
    together = store.vectors.nearest("alpha", "Decision", queries, limit=5, live_only=True)
    assert together == [nearest(store, q, limit=5) for q in queries]
    assert store.vectors.nearest("alpha", "Decision", [], limit=5, live_only=True) == []


def test_boards_and_types_are_filtered_before_the_best_are_chosen(store: Stores) -> None:
    add(store, 1, *(node(f"e{n}", "Entity") for n in range(30)), vectors={f"e{n}": unit(1) for n in range(30)})
    add(store, 2, *(node(f"b{n}") for n in range(30)), board_id="beta", vectors={f"b{n}": unit(1) for n in range(30)})
    mine = add(store, 3, node("x"), node("y"), vectors={"x": unit(1, 3), "y": unit(1, 4)})
    assert [h.node_id for h in nearest(store, unit(1), limit=2)] == mine
    assert nearest(store, unit(1), "Learning") == []
    assert nearest(store, unit(1), board="nowhere") == []


def test_liveness_is_filtered_before_the_best_are_chosen(store: Stores) -> None:
    old = add(store, 1, *(node(f"o{n}") for n in range(10)), vectors={f"o{n}": unit(1) for n in range(10)})
    new = []
    for number, target in enumerate(old, 2):
        new += add(store, number, node(f"n{number}"), hints={"cand_001": ("SUPERSEDE", target)}, vectors={f"n{number}": unit(1, 2)})
    assert [h.node_id for h in nearest(store, unit(1), limit=3)] == sorted(new)[:3]
    everything = nearest(store, unit(1), limit=30, live=False)
    assert [(h.node_id, h.live) for h in everything] == [*((n, False) for n in sorted(old)), *((n, True) for n in sorted(new))]


def test_at_equal_score_live_nodes_come_first_then_ids(store: Stores) -> None:
    ids = add(store, 1, *(node(f"n{n}") for n in range(6)), vectors={f"n{n}": unit(1) for n in range(6)})
    old = min(ids)
    (new,) = add(store, 2, node("new"), hints={"cand_001": ("SUPERSEDE", old)}, vectors={"new": unit(1)})
    assert [h.node_id for h in nearest(store, unit(1), live=False)] == [
        *sorted([*ids, new])[: sorted([*ids, new]).index(old)],
        *[n for n in sorted([*ids, new]) if n > old],
        old,
    ]


def test_a_search_sees_a_commit_at_once(store: Stores) -> None:
    seen: list[str] = []
    for number in range(1, 12):
        seen += add(store, number, node(f"n{number}"), vectors={f"n{number}": unit(1)})
        assert [h.node_id for h in nearest(store, unit(1), limit=50)] == sorted(seen)


def test_a_superseded_node_keeps_its_vector_and_loses_its_liveness(store: Stores) -> None:
    (old,) = add(store, 1, node("old"), vectors={"old": unit(1)})
    assert nearest(store, unit(1)) == [Hit(old, 1.0, True)]
    add(store, 2, node("new"), hints={"cand_001": ("SUPERSEDE", old)}, vectors={"new": unit(0, 1)})
    assert Hit(old, 1.0, False) in nearest(store, unit(1), live=False)
    assert old not in [h.node_id for h in nearest(store, unit(1))]
    assert {n: (v.vector, live) for n, v, live in store.vectors.all_vectors("alpha")}[old] == (unit(1), False)


def test_a_changed_text_replaces_the_vector(store: Stores) -> None:
    (a,) = add(store, 1, node("before"), vectors={"before": unit(1)})
    nearest(store, unit(1))
    add(store, 2, node("after"), hints={"cand_001": ("UPDATE", a)}, vectors={"after": unit(0, 1)})
    assert nearest(store, unit(0, 1)) == [Hit(a, 1.0, True)]
    assert len(list(store.vectors.all_vectors("alpha"))) == 1


def test_similarities_are_those_of_a_search_and_know_one_board(store: Stores) -> None:
    a, b = add(store, 1, node("A"), node("B"), vectors={"A": unit(1, 2), "B": unit(-1)})
    (criterion,) = add(store, 2, node("C", "Criterion"))
    (theirs,) = add(store, 3, node("D"), board_id="beta")
    found = store.vectors.similarities("alpha", unit(1), [a, b, criterion, theirs, "dec_none"])
    assert found == {h.node_id: h.score for h in nearest(store, unit(1))}
    assert store.vectors.similarities("alpha", unit(1), []) == {}
    assert store.vectors.similarities("alpha", unit(1), [theirs]) == {}


def test_all_vectors_come_by_id_with_all_that_is_kept(store: Stores) -> None:
    made = commit(store, session(1), Content([node("A"), node("B", "Entity"), node("C", "Bug")]))
    assert list(store.vectors.all_vectors("alpha")) == [(w.node_id, w.text_vector, True) for w in made.vectors]
    assert len(made.vectors) == 2
    assert list(store.vectors.all_vectors("beta")) == []


def test_a_truncated_text_stays_known_as_such(store: Stores) -> None:
    made = _with_vectors(plan(store, session(1), Content(), seq=1), [VectorWrite("dec_a", "Decision", True, TextVector(unit(1), True))])
    store.vectors.apply(made)
    assert [v.truncated for _, v, _ in store.vectors.all_vectors("alpha")] == [True]


def _with_vectors(made: CommitPlan, writes: Sequence[VectorWrite]) -> CommitPlan:
    return replace(made, vectors=tuple(writes))


def test_applying_a_plan_again_changes_nothing_even_after_a_later_one(store: Stores) -> None:
    first = commit(store, session(1), Content([node("A")], vectors={"A": unit(1)}))
    (a,) = (n.node_id for n in first.nodes)
    second = commit(store, session(2), Content([node("B")], hints={"cand_001": ("UPDATE", a)}, vectors={"B": unit(0, 1)}))
    third = commit(store, session(3), Content([node("C")], hints={"cand_001": ("SUPERSEDE", a)}, vectors={"C": unit(0, 0, 1)}))
    state = list(store.vectors.all_vectors("alpha"))
    for older in (first, second, third, first):
        store.vectors.apply(older)
    assert list(store.vectors.all_vectors("alpha")) == state
    assert nearest(store, unit(0, 1), live=False, limit=1) == [Hit(a, 1.0, False)]


def test_the_model_is_recorded_once_and_another_is_refused(store: Stores) -> None:
    assert store.vectors.describe("alpha") == []
    store.vectors.check_model(MODEL)
    store.vectors.check_model(MODEL)
    assert [(i.node_type, i.dim, i.metric, i.model) for i in store.vectors.describe("alpha")] == [
        (t, DIMENSION, "cosine", "a/model") for t in SEARCHABLE_TYPES
    ]
    for other in (replace(MODEL, model_id="b/model"), replace(MODEL, dimension=9), replace(MODEL, digest="sha256:" + "b" * 64)):
        with pytest.raises(EmbeddingModelMismatch) as refused:
            store.vectors.check_model(other)
        assert refused.value.details["expected"] == {"model_id": "a/model", "dimension": DIMENSION, "digest": MODEL.digest}
        assert refused.value.details["got"]["model_id"] == other.model_id
        assert "rebuild" in refused.value.message
    store.vectors.check_model(MODEL)


def test_the_match_mode_says_how_it_searches(store: Stores) -> None:
    assert store.vectors.match_mode in {"exact", "hnsw"}


NUMBERS = st.floats(-1, 1, width=16)
VECTORS = st.lists(NUMBERS, min_size=3, max_size=3).filter(lambda v: math.fsum(x * x for x in v) > 1e-4).map(lambda v: unit(*v))


def _score(left: bytes, right: bytes) -> float:
    pairs = zip(struct.unpack(f"<{DIMENSION}f", left), struct.unpack(f"<{DIMENSION}f", right), strict=True)
    return round(min(max(0.0, sum(a * b for a, b in pairs)), 1.0), 4)


@pytest.mark.parametrize("name", STORES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    writes=st.lists(st.tuples(st.integers(0, 30), VECTORS, st.sampled_from(["Decision", "Entity"]), st.booleans()), max_size=40),
    queries=st.lists(VECTORS, min_size=1, max_size=4),
    limit=st.integers(1, 12),
    live_only=st.booleans(),
    every=st.integers(1, 10),
)
def test_a_search_is_equal_to_comparing_everything(
    name: str,
    writes: list[tuple[int, bytes, NodeType, bool]],
    queries: list[bytes],
    limit: int,
    live_only: bool,
    every: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with STORES[name](tmp_path_factory.mktemp("store")) as store:
        if store.vectors.match_mode != "exact":
            pytest.skip("an approximate index may miss some")
        store.boards.create("alpha", "Alpha", now=NOW)
        empty = plan(store, session(1), Content(), seq=1)
        model: dict[str, tuple[bytes, str, bool]] = {}
        for seq, (number, vector, node_type, live) in enumerate(writes, 1):
            node_id = f"{node_type.lower()}_{number}"
            if seq % 3 == 0 and node_id in model:  # a change of liveness alone
                write = VectorWrite(node_id, node_type, live)
                model[node_id] = (model[node_id][0], node_type, live)
            else:
                write = VectorWrite(node_id, node_type, live, TextVector(vector))
                model[node_id] = (vector, node_type, live)
            store.vectors.apply(replace(empty, seq=seq, vectors=(write,)))
            if seq % every and seq != len(writes):
                continue
            for kind in ("Decision", "Entity"):
                wanted = [
                    sorted(
                        (Hit(n, _score(v, q), is_live) for n, (v, t, is_live) in model.items() if t == kind and (is_live or not live_only)),
                        key=lambda h: (-h.score, not h.live, h.node_id),
                    )[:limit]
                    for q in queries
                ]
                assert store.vectors.nearest("alpha", kind, queries, limit=limit, live_only=live_only) == wanted


def test_all_vectors_of_a_board_can_be_replaced_whatever_was_there(store: Stores) -> None:
    old, other = add(store, 1, node("A"), node("B"), vectors={"A": unit(1), "B": unit(0, 1)})
    (new,) = add(store, 2, node("C"), vectors={"C": unit(0, 0, 1)}, hints={"cand_001": ("SUPERSEDE", old)})
    (theirs,) = add(store, 3, node("A"), board_id="beta", vectors={"A": unit(1)})
    nodes = store.graph.nodes("alpha", [old, new])

    replaced = [(nodes[old], TextVector(unit(0, 1))), (nodes[new], TextVector(unit(1), True))]
    assert store.vectors.replace_all("alpha", replaced, seq=0) == 0  # the other one is of a later commit
    assert store.vectors.replace_all("alpha", replaced, seq=2) == 1

    assert {n: (v, live) for n, v, live in store.vectors.all_vectors("alpha")} == {
        old: (TextVector(unit(0, 1)), False),
        new: (TextVector(unit(1), True), True),
    }
    assert other not in {hit.node_id for hit in nearest(store, unit(0, 1), live=False)}
    assert [n for n, *_ in store.vectors.all_vectors("beta")] == [theirs]
    (late,) = add(store, 4, node("D"), vectors={"D": unit(0, 1)}, hints={"cand_001": ("SUPERSEDE", new)})
    assert nearest(store, unit(0, 1)) == [Hit(late, 1.0, True)]
