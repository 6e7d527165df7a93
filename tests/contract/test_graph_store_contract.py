"""What `GraphStore` promises, of every store."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse_kg.domain.model import Node
from pulse_kg.domain.plan import Contradiction, Surroundings
from pulse_kg.domain.text import fold, prefix_similarity
from tests.support.plans import NOW, Content, add, administered, commit, edge, node, plan, session
from tests.support.stores import STORES, Stores

RICH = {
    "rationale": "Grüße \u2028 日本語",
    "n": 1,
    "f": 1.0,
    "list": [1, 2.5, None, True],
    "deep": {"b": 1, "a": {"z": "\n"}},
    "confidence": 0.25,
}


def test_nodes_come_back_as_they_were_committed(store: Stores) -> None:
    drafts = [
        node("Grüße", "Entity", "body\n\tmore", attributes=RICH, source_ref="spec:spec_007#a%3Ab"),
        node("Use Redis", attributes={"status": "active"}),
    ]
    made = commit(store, session(1), Content(drafts))
    found = store.graph.nodes("alpha", [n.node_id for n in made.nodes])
    assert found == {n.node_id: n for n in made.nodes}
    assert list(found) == sorted(found)
    entity = next(n for n in found.values() if n.node_type == "Entity")
    assert entity.attributes == RICH
    assert isinstance(entity.attributes["f"], float)
    assert (entity.human_curated, entity.truncated, entity.live) == (False, False, True)


def test_ids_that_the_board_has_not_are_left_out(store: Stores) -> None:
    (mine,) = add(store, 1, node("A"))
    (theirs,) = add(store, 2, node("A"), board_id="beta")
    assert list(store.graph.nodes("alpha", [mine, theirs, "dec_none", "' OR 1=1 --"])) == [mine]
    assert store.graph.nodes("alpha", []) == {}
    assert store.graph.nodes("nowhere", [mine]) == {}


def test_thousands_of_ids_may_be_asked_for_at_once(store: Stores) -> None:
    mine = add(store, 1, *(node(f"n{n}") for n in range(50)))
    wanted = [*mine, *(f"dec_{n}" for n in range(5000))]
    assert len(store.graph.nodes("alpha", wanted)) == 50


def test_digests_find_live_and_superseded_nodes_by_age(store: Stores) -> None:
    (first,) = add(store, 1, node("Same"))
    (second,) = add(store, 2, node("same"))
    add(store, 3, node("New"), hints={"cand_001": ("SUPERSEDE", first)})
    digest = store.graph.nodes("alpha", [first])[first].content_digest
    assert [n.node_id for n in store.graph.with_digests("alpha", [digest, "sha256:none"])] == [first, second]
    assert store.graph.with_digests("beta", [digest]) == []
    assert store.graph.with_digests("alpha", []) == []


def test_refs_find_live_nodes_only(store: Stores) -> None:
    ref = "spec:spec_007#retry"
    (first,) = add(store, 1, node("One", source_ref=ref))
    (second,) = add(store, 2, node("Two", source_ref=ref))
    add(store, 3, node("Three", source_ref="spec:spec_007#other"))
    add(store, 4, node("Four", source_ref="spec:spec_007#new"), hints={"cand_001": ("SUPERSEDE", first)})
    assert [n.node_id for n in store.graph.with_refs("alpha", [ref])] == [second]
    assert store.graph.with_refs("beta", [ref]) == []


def test_the_nearest_titles_share_the_longest_start(store: Stores) -> None:
    titles = ["Use Redis for sessions", "Use Redis", "Use Postgres", "use redis for session data", "Avoid Redis", "Üse Rédis fór"]
    ids = dict(zip(titles, add(store, 1, *(node(t, "Criterion") for t in titles)), strict=True))
    add(store, 2, node("Use Redis for sessions", "Assumption"))
    found = store.graph.nearest_titles("alpha", "Criterion", fold("Use Redis for"), limit=4, live_only=True)
    assert [(m.node.node_id, m.score) for m in found] == [
        (ids["Üse Rédis fór"], 1.0),
        (ids["Use Redis"], round(9 / 13, 4)),
        (ids["Use Redis for sessions"], round(13 / 22, 4)),
        (ids["use redis for session data"], 0.5),
    ]


def test_titles_without_a_common_start_or_of_another_board_are_not_near(store: Stores) -> None:
    add(store, 1, node("zebra", "Bug"))
    add(store, 2, node("apple", "Bug"), board_id="beta")
    assert store.graph.nearest_titles("alpha", "Bug", "apple", limit=5, live_only=False) == []
    assert store.graph.nearest_titles("alpha", "Bug", "", limit=5, live_only=False) == []
    assert store.graph.nearest_titles("alpha", "Bug", "zebra", limit=0, live_only=False) == []


def test_equal_titles_come_live_before_superseded_and_then_by_id(store: Stores) -> None:
    ids = [add(store, n, node("Same title", "Criterion"))[0] for n in range(1, 6)]
    old = min(ids)
    add(store, 9, node("Other", "Criterion"), hints={"cand_001": ("SUPERSEDE", old)})
    found = [m.node.node_id for m in store.graph.nearest_titles("alpha", "Criterion", "same title", limit=5, live_only=False)]
    assert found == [*sorted(ids)[1:], old]
    live = [m.node.node_id for m in store.graph.nearest_titles("alpha", "Criterion", "same title", limit=5, live_only=True)]
    assert live == sorted(ids)[1:]


TITLES = st.text(st.sampled_from("ab \U0010ffff\ue000é"), min_size=1, max_size=8).map(fold).filter(bool)


@pytest.mark.parametrize("name", STORES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(titles=st.lists(TITLES, min_size=1, max_size=30), asked=TITLES, limit=st.integers(1, 6))
def test_the_nearest_titles_are_those_of_a_full_scan(
    name: str, titles: list[str], asked: str, limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with STORES[name](tmp_path_factory.mktemp("store")) as store:
        store.boards.create("alpha", "Alpha", now=NOW)
        ids = add(store, 1, *(node(t, "Criterion") for t in titles))
        scored = [(-round(prefix_similarity(asked, fold(t)), 4), i) for t, i in zip(titles, ids, strict=True)]
        wanted = sorted((s, i) for s, i in scored if s < 0)[:limit]
        found = store.graph.nearest_titles("alpha", "Criterion", asked, limit=limit, live_only=False)
        assert [(-m.score, m.node.node_id) for m in found] == wanted


def test_edges_come_back_as_they_were_committed(store: Stores) -> None:
    drafts = [
        edge("cand_001", "relates_to", "cand_002", reason="r", evidence="e", confidence=0.25),
        replace(edge("cand_002", "mentions", "cand_003"), layer="deterministic", rule_id="spec/1"),
    ]
    made = commit(store, session(1), Content([node("A"), node("B"), node("C", "Entity")], drafts))
    assert list(store.graph.all_edges("alpha")) == sorted(made.edges, key=lambda e: e.edge_id)
    assert store.graph.edges_of("alpha", [made.edges[0].src]) == [made.edges[0]]
    both = store.graph.edges_of("alpha", [made.edges[0].src, made.edges[0].dst])
    assert both == sorted(made.edges, key=lambda e: e.edge_id)
    assert store.graph.edges_of("alpha", []) == []
    assert store.graph.edges_of("beta", [made.edges[0].src]) == []
    ids = [e.edge_id for e in made.edges]
    assert store.graph.existing_edges("alpha", [*ids, "edge_none"]) == frozenset(ids)
    assert store.graph.existing_edges("beta", ids) == frozenset()


def test_surroundings_count_every_edge_in_and_out_and_name_who_contradicts(store: Stores) -> None:
    a, b, c, d = add(store, 1, node("A"), node("B"), node("C"), node("D"))
    edges = [edge(b, "contradicts", a, confidence=0.9), edge(c, "contradicts", a), edge(d, "contradicts", a), edge(a, "relates_to", b)]
    commit(store, session(2), Content(edges=edges))
    add(store, 3, node("B2"), hints={"cand_001": ("SUPERSEDE", b)})
    administered(store, "alpha", c, kind="revoke")
    found = store.graph.surroundings("alpha", [a, b, "dec_none"])
    assert found[a] == Surroundings(
        4, tuple(sorted([Contradiction(b, 0.9, True), Contradiction(c, 0.7, True), Contradiction(d, 0.7, False)], key=lambda x: x.src))
    )
    assert found[b] == Surroundings(3, ())
    assert set(found) == {a, b}
    assert store.graph.surroundings("beta", [a]) == {}


def test_supersedes_edges_are_followed_downwards_over_every_branch(store: Stores) -> None:
    one, two, three = add(store, 1, node("1"), node("2"), node("3"))
    (four,) = add(store, 2, node("4"), hints={"cand_001": ("SUPERSEDE", three)})
    commit(store, session(3), Content(edges=[edge(four, "supersedes", two), edge(two, "supersedes", one), edge(one, "relates_to", three)]))
    below = {k: list(v) for k, v in store.graph.supersedes_below("alpha", [four]).items()}
    assert below == {four: sorted([three, two]), two: [one]}
    assert dict(store.graph.supersedes_below("alpha", [one, "dec_none"])) == {}
    assert dict(store.graph.supersedes_below("beta", [four])) == {}


def test_all_nodes_and_counts_tell_of_one_board(store: Stores) -> None:
    mine = add(store, 1, node("A"), node("B"))
    (new,) = add(store, 2, node("C"), hints={"cand_001": ("SUPERSEDE", mine[0])})
    add(store, 3, node("D"), board_id="beta")
    assert [n.node_id for n in store.graph.all_nodes("alpha")] == sorted([*mine, new])
    assert store.graph.counts("alpha") == {"nodes": 3, "live_nodes": 2, "edges": 1}
    assert store.graph.counts("beta") == {"nodes": 1, "live_nodes": 1, "edges": 0}
    assert store.graph.counts("nowhere") == {"nodes": 0, "live_nodes": 0, "edges": 0}


def test_a_walk_over_all_nodes_is_of_one_moment(store: Stores) -> None:
    before = add(store, 1, *(node(f"n{n}") for n in range(600)))
    walk = store.graph.all_nodes("alpha")
    seen = [next(walk).node_id]
    add(store, 2, node("late"), hints={"cand_001": ("SUPERSEDE", max(before))})
    rest = list(walk)
    assert [*seen, *(n.node_id for n in rest)] == sorted(before)
    assert all(n.live for n in rest)


def _state(store: Stores, board_id: str = "alpha") -> tuple[list[Node], list[object]]:
    return list(store.graph.all_nodes(board_id)), list(store.graph.all_edges(board_id))


def test_applying_a_plan_again_changes_nothing_even_after_a_later_one(store: Stores) -> None:
    first = commit(store, session(1), Content([node("A"), node("B")], [edge("cand_001", "relates_to", "cand_002")]))
    a, b = (n.node_id for n in first.nodes)
    state = _state(store)
    store.graph.apply(first)
    assert _state(store) == state
    second = commit(store, session(2), Content([node("A2")], [edge(a, "contradicts", b)], hints={"cand_001": ("UPDATE", a)}), now=NOW + 1)
    third = administered(store, "alpha", a, kind="curate", priority_boost=0.1)
    state = _state(store)
    for older in (first, second, third, second, first):
        store.graph.apply(older)
    assert _state(store) == state


def test_an_administrative_change_is_kept_though_it_raises_no_version(store: Stores) -> None:
    (a,) = add(store, 1, node("A"))
    administered(store, "alpha", a, kind="curate", priority_boost=0.2)
    found = store.graph.nodes("alpha", [a])[a]
    assert (found.human_curated, found.priority_boost, found.version, found.commit_seq) == (True, 0.2, 1, 1)
    administered(store, "alpha", a, kind="revoke")
    found = store.graph.nodes("alpha", [a])[a]
    assert (found.status, found.revocation_reason, found.live) == ("revoked", "A test says so.", True)


def test_a_relevance_score_alone_changes_nothing_else(store: Stores) -> None:
    a, b = add(store, 1, node("A"), node("B"))
    before = store.graph.nodes("alpha", [a, b])
    made = commit(store, session(2), Content(edges=[edge(a, "contradicts", b)]), now=NOW + 5)
    assert {w.node_id for w in made.relevances} == {a, b}
    after = store.graph.nodes("alpha", [a, b])
    assert after[b].relevance_score < before[b].relevance_score
    for node_id in (a, b):
        score = after[node_id].relevance_score
        assert after[node_id] == replace(before[node_id], relevance_score=score, last_recomputed_at=NOW + 5)


def test_a_plan_of_one_board_can_not_touch_another(store: Stores) -> None:
    (theirs,) = add(store, 1, node("canary"), board_id="beta")
    before = _state(store, "beta")
    add(store, 2, *(node(f"n{n}") for n in range(20)))
    assert _state(store, "beta") == before
    for reader in (store.graph.with_digests, store.graph.with_refs, store.graph.edges_of):
        values = [theirs, before[0][0].content_digest, before[0][0].source_ref]
        assert all(found.board_id == "alpha" for found in reader("alpha", values))


def test_an_empty_plan_is_applied_too(store: Stores) -> None:
    with store.commits.turn("alpha", wait_seconds=1) as turn:
        empty = plan(store, session(1), Content(), seq=turn.board.commit_seq + 1)
    store.graph.apply(empty)
    assert _state(store) == ([], [])
