"""What `GraphQueries` promises, of every store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse_kg.domain.instants import format_instant, parse_instant
from pulse_kg.domain.model import NodeDraft
from pulse_kg.domain.schema import NODE_TYPES, NodeType, RelType
from pulse_kg.domain.text import fold
from pulse_kg.ports.reading import Direction, Ends, Lineage, Neighbourhood, Neighbours, Place
from tests.support.plans import NOW, Content, add, administered, commit, edge, node, session
from tests.support.query_model import QueryModel, in_time
from tests.support.stores import STORES, Stores

NOTHING = Neighbourhood({}, [])
UNKNOWN = "dec_none"
FORGED = (UNKNOWN, "", "dec", "alpha", "' OR 1=1 --", "beta_dec_0", "dec_0_0", "dec_\u0430", "*")


def linked(store: Stores, number: int, *edges: Any, board_id: str = "alpha", now: int = NOW) -> list[str]:
    """Commits edges between nodes that are there; gives their ids in the order of the edges."""
    made = commit(store, session(number, board_id), Content(edges=edges), now=now)
    return [e.edge_id for e in made.edges]


def model_of(store: Stores, board_id: str = "alpha") -> QueryModel:
    return QueryModel.of(store.graph.all_nodes(board_id), store.graph.all_edges(board_id))


def edge_ids(around: Neighbourhood) -> list[str]:
    return [e.edge_id for e in around.edges]


# Places.


def test_a_place_counts_every_edge_at_a_node_from_both_sides(store: Stores) -> None:
    a, b, c, lone = add(store, 1, node("A"), node("B"), node("C"), node("D", "Entity"))
    linked(store, 2, edge(a, "relates_to", b), edge(a, "depends_on", b), edge(c, "depends_on", a), edge(b, "mentions", lone))
    found = store.queries.places("alpha", [c, lone, a, b, a, UNKNOWN])
    assert found == {a: Place(3), b: Place(3), c: Place(1), lone: Place(1)}
    assert list(found) == sorted(found)
    assert store.queries.places("alpha", []) == {}


def test_a_contradiction_marks_both_ends_until_one_is_superseded_or_revoked(store: Stores) -> None:
    a, b, c, d, calm = add(store, 1, *(node(title) for title in "ABCDE"))
    linked(store, 2, edge(a, "contradicts", b), edge(c, "contradicts", d), edge(a, "relates_to", calm))

    def contradicted() -> set[str]:
        return {n for n, place in store.queries.places("alpha", [a, b, c, d, calm]).items() if place.contradicted}

    assert contradicted() == {a, b, c, d}
    add(store, 3, node("B2"), hints={"cand_001": ("SUPERSEDE", b)})
    assert contradicted() == {c, d}
    administered(store, "alpha", c, kind="revoke")
    assert contradicted() == set()


def test_a_node_with_a_resolved_and_an_open_contradiction_stays_contradicted(store: Stores) -> None:
    a, b, c = add(store, 1, node("A"), node("B"), node("C"))
    linked(store, 2, edge(a, "contradicts", b), edge(c, "contradicts", a))
    administered(store, "alpha", b, kind="revoke")
    assert store.queries.places("alpha", [a, b, c]) == {a: Place(2, contradicted=True), b: Place(1), c: Place(1, contradicted=True)}


def test_nodes_come_with_their_places(store: Stores) -> None:
    a, b, c, lone = add(store, 1, node("A"), node("B"), node("C"), node("D", "Entity"))
    linked(store, 2, edge(a, "contradicts", b), edge(c, "depends_on", a))
    found = store.queries.placed("alpha", [lone, c, b, a, a, UNKNOWN])
    nodes, places = store.graph.nodes("alpha", [a, b, c, lone]), store.queries.places("alpha", [a, b, c, lone])
    assert found == {i: (nodes[i], places[i]) for i in nodes}
    assert list(found) == sorted(found)
    assert store.queries.placed("alpha", []) == store.queries.placed("alpha", FORGED) == {}


# Around.


def test_each_node_around_has_its_least_depth_and_the_anchor_is_not_among_them(store: Stores) -> None:
    a, b, c, d, e, f = add(store, 1, *(node(t) for t in "ABCDEF"))
    ring = [edge(x, "depends_on", y) for x, y in pairwise([a, b, c, d, e, f])]
    ids = linked(store, 2, *ring, edge(a, "depends_on", c), edge(f, "depends_on", b))
    q = store.queries
    assert q.around("alpha", a, max_depth=1).depths == {b: 1, c: 1}
    assert q.around("alpha", a).depths == {b: 1, c: 1, d: 2, f: 2}
    whole = q.around("alpha", a, max_depth=4)
    assert (whole.depths, whole.truncated) == ({b: 1, c: 1, d: 2, f: 2, e: 3}, False)
    assert edge_ids(whole) == sorted(ids)
    assert a not in whole.depths


def test_edges_among_what_lies_around_are_there_though_no_hop_walked_them(store: Stores) -> None:
    a, b, c, far = add(store, 1, *(node(t) for t in "ABCD"))
    ids = linked(store, 2, edge(a, "depends_on", b), edge(a, "depends_on", c), edge(c, "relates_to", b), edge(b, "depends_on", far))
    found = store.queries.around("alpha", a, max_depth=1, direction="out")
    assert found.depths == {b: 1, c: 1}
    assert edge_ids(found) == sorted(ids[:3])
    assert list(found.edges) == [e for e in store.graph.all_edges("alpha") if e.edge_id in ids[:3]]


def test_relationships_and_direction_hold_on_every_hop(store: Stores) -> None:
    a, b, c, d, e = add(store, 1, *(node(t) for t in "ABCDE"))
    depends = linked(store, 2, edge(a, "depends_on", b), edge(b, "depends_on", c), edge(d, "depends_on", b), edge(d, "depends_on", e))
    linked(store, 3, edge(b, "validates", e), edge(a, "validates", c))
    q = store.queries
    assert q.around("alpha", a, direction="out", rel_types=["depends_on"], max_depth=4).depths == {b: 1, c: 2}
    assert q.around("alpha", c, direction="in", rel_types=["depends_on"], max_depth=4).depths == {b: 1, a: 2, d: 2}
    assert q.around("alpha", a, direction="out").depths == {b: 1, c: 1, e: 2}
    both = q.around("alpha", a, rel_types=["depends_on"], max_depth=3)
    assert both.depths == {b: 1, c: 2, d: 2, e: 3}
    assert edge_ids(both) == sorted(depends)
    assert q.around("alpha", a, rel_types=["depends_on", "validates"], max_depth=1).depths == {b: 1, c: 1}
    alone = Neighbourhood({}, [], nodes=q.placed("alpha", [a]))
    assert q.around("alpha", a, rel_types=["supersedes"]) == q.around("alpha", a, rel_types=[]) == alone


def test_a_hub_keeps_the_nodes_of_the_first_types_and_ids(store: Stores) -> None:
    types: list[NodeType] = ["Learning", "Decision", "Bug", "Entity"]
    hub, *spokes = add(store, 1, node("hub", "Entity"), *(node(f"n{n}", types[n % 4]) for n in range(40)))
    linked(store, 2, *(edge(s, "relates_to", hub) for s in spokes))
    (behind,) = add(store, 3, node("behind"))
    linked(store, 4, edge(behind, "depends_on", min(spokes)))
    ranked = sorted(spokes, key=lambda i: (NODE_TYPES.index(store.graph.nodes("alpha", [i])[i].node_type), i))
    for limit in (1, 9, 39):
        found = store.queries.around("alpha", hub, limit=limit)
        assert (dict(found.depths), found.truncated) == (dict.fromkeys(ranked[:limit], 1), True)
        assert {e.src for e in found.edges} == set(ranked[:limit])
    exactly = store.queries.around("alpha", hub, limit=40)
    assert (set(exactly.depths), exactly.truncated) == (set(ranked), True)
    assert not store.queries.around("alpha", hub, limit=40, max_depth=1).truncated
    whole = store.queries.around("alpha", hub, limit=41)
    assert (len(whole.depths), whole.depths[behind], whole.truncated) == (41, 2, False)


def test_nothing_lies_around_a_lone_node_or_one_that_is_not_there(store: Stores) -> None:
    (lone,) = add(store, 1, node("A"))
    assert store.queries.around("alpha", lone) == Neighbourhood({}, [], nodes=store.queries.placed("alpha", [lone]))
    for node_id in FORGED:
        assert store.queries.around("alpha", node_id) == NOTHING
    assert store.queries.around("nowhere", lone) == NOTHING


def test_a_ring_without_direction_is_walked_from_both_sides_and_ends(store: Stores) -> None:
    ring = add(store, 1, *(node(str(n), "Entity") for n in range(6)))
    ids = linked(store, 2, *(edge(x, "relates_to", y) for x, y in pairwise([*ring, ring[0]])))
    found = store.queries.around("alpha", ring[0], max_depth=4)
    assert found.depths == {ring[1]: 1, ring[5]: 1, ring[2]: 2, ring[4]: 2, ring[3]: 3}
    assert (edge_ids(found), found.truncated) == (sorted(ids), False)


def test_what_lies_around_comes_with_its_nodes_and_their_places(store: Stores) -> None:
    a, b, c, far = add(store, 1, *(node(t) for t in "ABCD"))
    linked(store, 2, edge(a, "depends_on", b), edge(b, "contradicts", c), edge(c, "depends_on", far))
    assert store.queries.around("alpha", a, max_depth=2).nodes == store.queries.placed("alpha", [a, b, c])
    assert store.queries.around("alpha", a, max_depth=2, limit=1).nodes == store.queries.placed("alpha", [a, b])


def test_superseded_and_revoked_nodes_are_walked_through(store: Stores) -> None:
    a, b, c = add(store, 1, node("A"), node("B"), node("C"))
    linked(store, 2, edge(a, "depends_on", b), edge(b, "depends_on", c))
    (new,) = add(store, 3, node("B2"), hints={"cand_001": ("SUPERSEDE", b)})
    administered(store, "alpha", b, kind="revoke")
    assert store.queries.around("alpha", a).depths == {b: 1, c: 2, new: 2}


# Lineage.


def test_a_lineage_is_the_same_from_each_of_its_members(store: Stores) -> None:
    one, two, other, root = add(store, 1, node("1"), node("2"), node("x"), node("0"))
    linked(store, 2, edge(one, "supersedes", root), edge(two, "supersedes", root), edge(other, "relates_to", one))
    (three,) = add(store, 3, node("3"), hints={"cand_001": ("SUPERSEDE", one)})
    linked(store, 4, edge(three, "supersedes", two))
    wanted = Lineage(
        store.graph.nodes("alpha", [root, one, two, three]),
        {root: sorted([one, two]), one: [three], two: [three]},
        {one: [root], two: [root], three: sorted([one, two])},
    )
    places = store.queries.places("alpha", [root, one, two, three, other])
    for member in (root, one, two, three):
        assert store.queries.lineage("alpha", [member]) == replace(wanted, places={member: places[member]})
    alone = Lineage(store.graph.nodes("alpha", [other]), {}, {}, {other: places[other]})
    assert store.queries.lineage("alpha", [other]) == alone
    together = replace(wanted, nodes={**wanted.nodes, **alone.nodes}, places={i: places[i] for i in (other, two)})
    assert store.queries.lineage("alpha", [two, other, UNKNOWN]) == together
    for node_id in FORGED:
        assert store.queries.lineage("alpha", [node_id]) == Lineage({}, {}, {})


def test_a_lineage_reaches_no_further_than_its_steps(store: Stores) -> None:
    ids = add(store, 1, *(node(str(n)) for n in range(7)))
    linked(store, 2, *(edge(new, "supersedes", old) for old, new in pairwise(ids)))
    middle = ids[3]
    assert set(store.queries.lineage("alpha", [middle], most=2).nodes) == set(ids[1:6])
    near = store.queries.lineage("alpha", [middle], most=1)
    assert (near.newer, near.older) == ({ids[2]: [middle], middle: [ids[4]]}, {middle: [ids[2]], ids[4]: [middle]})
    assert set(store.queries.lineage("alpha", [middle], most=3).nodes) == set(ids)


def test_a_shorter_way_counts_though_a_longer_one_leads_there_too(store: Stores) -> None:
    ids = add(store, 1, *(node(str(n)) for n in range(7)))
    linked(store, 2, *(edge(new, "supersedes", old) for old, new in pairwise(ids)), edge(ids[4], "supersedes", ids[0]))
    assert set(store.queries.lineage("alpha", [ids[0]], most=2).nodes) == {*ids[:3], ids[3], ids[4], ids[5]}


def test_a_long_chain_is_followed_to_both_ends(store: Stores, store_name: str) -> None:
    length = 60 if store_name == "served" else 1_000
    ids = add(store, 1, *(node(f"n{n}") for n in range(length)))
    linked(store, 2, *(edge(new, "supersedes", old) for old, new in pairwise(ids)))
    for start in (ids[0], ids[length // 2], ids[-1]):
        found = store.queries.lineage("alpha", [start])
        assert set(found.nodes) == set(ids)
        assert found.newer == {old: [new] for old, new in pairwise(ids)}
        assert found.older == {new: [old] for old, new in pairwise(ids)}
    assert len(store.queries.lineage("alpha", [ids[0]], most=length - 2).nodes) == length - 1


# Contradictions.


def test_contradictions_come_newest_first_with_resolved_ones(store: Stores) -> None:
    a, b, c, d = add(store, 1, *(node(t) for t in "ABCD"))
    early = linked(store, 2, edge(a, "contradicts", b), edge(c, "contradicts", a), edge(a, "depends_on", b))[:2]
    late = linked(store, 3, edge(d, "contradicts", b, reason="r"), now=NOW + 5)
    administered(store, "alpha", b, kind="revoke")
    assert [e.edge_id for e in store.queries.contradictions("alpha")] == [*late, *sorted(early)]
    assert [e.edge_id for e in store.queries.contradictions("alpha", node_id=b)] == [*late, early[0]]
    assert [e.edge_id for e in store.queries.contradictions("alpha", node_id=c)] == [early[1]]
    assert store.queries.contradictions("alpha")[0].reason == "r"
    for most in (1, 2, 3, 4):
        assert store.queries.contradictions("alpha", most=most) == store.queries.contradictions("alpha")[:most]
        assert store.queries.contradictions("alpha", node_id=a, most=most) == store.queries.contradictions("alpha", node_id=a)[:most]
    for node_id in FORGED:
        assert store.queries.contradictions("alpha", node_id=node_id) == []
    assert store.queries.contradictions("beta") == []


# Neighbours.


def test_an_edge_between_two_asked_nodes_comes_once_for_each(store: Stores) -> None:
    a, b, c, e = add(store, 1, node("A"), node("B"), node("C"), node("E", "Entity"))
    ids = linked(store, 2, edge(a, "depends_on", b), edge(c, "depends_on", a), edge(b, "mentions", e))

    def found(node_ids: list[str], **more: Any) -> list[tuple[str, str]]:
        return [(edge.edge_id, other.node_id) for edge, other in store.queries.neighbours("alpha", node_ids, **more).links]

    assert found([a, b, a]) == sorted([(ids[0], a), (ids[0], b), (ids[1], c), (ids[2], e)])
    assert found([a, b], direction="out") == sorted([(ids[0], b), (ids[2], e)])
    assert found([a, b], direction="in") == sorted([(ids[0], a), (ids[1], c)])
    assert found([a, b], rel_types=["depends_on"], direction="out") == [(ids[0], b)]
    assert found([a, b], node_types=["Entity", "Bug"]) == [(ids[2], e)]
    assert found([b], node_types=["Decision"], rel_types=["mentions"]) == []
    assert found([a, b], rel_types=[]) == found([a, b], node_types=[]) == found([]) == found(list(FORGED)) == []
    whole = {other.node_id: other for _, other in store.queries.neighbours("alpha", [a, b]).links}
    assert whole == store.graph.nodes("alpha", [a, b, c, e])


def test_the_nodes_that_are_asked_about_and_the_places_of_all_may_come_with_their_neighbours(store: Stores) -> None:
    a, b, c, lone = add(store, 1, node("A"), node("B"), node("C"), node("D"))
    linked(store, 2, edge(a, "depends_on", b), edge(b, "contradicts", c))
    q = store.queries
    places = q.places("alpha", [a, b, c, lone])
    assert (q.neighbours("alpha", [a]).near, q.neighbours("alpha", [a]).places) == ({}, {})
    assert q.neighbours("alpha", [lone, a, UNKNOWN], near=True).near == store.graph.nodes("alpha", [a, lone])
    assert q.neighbours("alpha", [lone, a, UNKNOWN], placed="near").places == {i: places[i] for i in (a, lone)}
    assert q.neighbours("alpha", [lone, a], placed="all").places == {i: places[i] for i in (a, b, lone)}
    assert q.neighbours("alpha", [a], rel_types=["contradicts"], placed="all").places == {a: places[a]}
    nothing = q.neighbours("alpha", [a], rel_types=[], near=True, placed="all")
    assert nothing == Neighbours([], store.graph.nodes("alpha", [a]), {a: places[a]})
    assert q.neighbours("alpha", [a], node_types=[], near=True, placed="all") == nothing
    assert places[b].contradicted


def test_two_relationships_between_the_same_nodes_are_two_neighbours(store: Stores) -> None:
    a, b = add(store, 1, node("A"), node("B"))
    ids = linked(store, 2, edge(a, "depends_on", b), edge(b, "depends_on", a), edge(a, "relates_to", b))
    assert [(e.edge_id, n.node_id) for e, n in store.queries.neighbours("alpha", [a]).links] == [(i, b) for i in sorted(ids)]
    assert [e.src for e, _ in store.queries.neighbours("alpha", [a], direction="in", rel_types=["depends_on"]).links] == [b]


# Words.


def titled(store: Stores, types: list[NodeType], phrase: str, *words: str, at_least: int = 1, **more: Any) -> list[str]:
    found = store.queries.with_words("alpha", types, phrase=fold(phrase), words=[fold(w) for w in words], at_least=at_least, **more)
    assert [n.node_id for n in found] == sorted(n.node_id for n in found)
    return sorted(n.title for n in found)


def test_titles_are_found_by_a_phrase_or_by_enough_of_the_words(store: Stores) -> None:
    titles = ["Retry webhooks  with Backoff", "Queue webhooks", "Rétry the queue", "Cache sessions", "50%_off\\now"]
    ids = add(store, 1, *(node(t) for t in titles), node("Retry queue", "Bug"))
    add(store, 2, node("Cache users"), hints={"cand_001": ("SUPERSEDE", ids[3])})
    only: list[NodeType] = ["Decision"]
    assert titled(store, only, "webhooks with back") == [titles[0]]
    assert titled(store, only, "", "retry", "queue") == sorted([*titles[:3]])
    assert titled(store, only, "", "retry", "queue", at_least=2) == [titles[2]]
    assert titled(store, only, "cache", "retry", "queue", at_least=2) == ["Cache sessions", "Cache users", titles[2]]
    assert titled(store, ["Bug", "Decision"], "", "retry", "queue", at_least=2) == ["Retry queue", titles[2]]
    assert titled(store, only, "%") == titled(store, only, "_") == titled(store, only, "\\") == [titles[4]]
    assert titled(store, only, "", "hook") == sorted(titles[:2])


def test_nodes_that_are_named_come_too_whatever_their_words_type_and_time(store: Stores) -> None:
    a, b, c, d = add(store, 1, node("Retry"), node("Queue"), node("Cache"), node("Retry", "Bug"))
    asked: dict[str, Any] = {"words": [], "at_least": 1, "also": [d, b, UNKNOWN, "", a]}
    ids = [n.node_id for n in store.queries.with_words("alpha", ["Decision"], phrase="retry", until=NOW, **asked)]
    assert ids == sorted([a, b, d])
    ids = [n.node_id for n in store.queries.with_words("alpha", ["Decision"], phrase="c", bodies=True, **asked)]
    assert ids == sorted([a, b, c, d])
    named = list(store.graph.nodes("alpha", [a, b, d]).values())
    assert store.queries.with_words("alpha", ["Decision"], phrase="", **asked) == named
    assert store.queries.with_words("alpha", [], phrase="retry", **asked) == named


def test_no_words_and_no_phrase_find_nothing(store: Stores) -> None:
    add(store, 1, node("A title"))
    for arguments in (("",), ("", ""), ("", "title", "title"), ("x", "")):
        assert titled(store, ["Decision"], *arguments, at_least=2) == []
    assert titled(store, [], "title", "title") == []


def test_words_of_bodies_and_areas_are_found_where_they_are_asked_for(store: Stores) -> None:
    add(
        store,
        1,
        node("One", "Learning", "The Lock was held", attributes={"area": "Stórage"}),
        node("Two", "Bug", "A lock in storage"),
        node("Three", "Bug", "nothing", attributes={"area": "storage lock"}),
        node("Lock", "Bug", "in the storage"),
    )
    both: list[NodeType] = ["Bug", "Learning"]
    assert titled(store, both, "", "lock", "storage", at_least=2, bodies=True) == ["Lock", "One", "Two"]
    assert titled(store, both, "in the storage", bodies=True) == []
    assert titled(store, both, "", "lock") == ["Lock"]
    assert titled(store, ["Learning"], "", "storage", bodies=True) == ["One"]


def test_a_body_that_is_changed_is_found_by_its_new_words_alone(store: Stores) -> None:
    (kept,) = add(store, 1, node("One", "Bug", "the lock was held"))
    add(store, 2, node("One", "Bug", "the pool was empty"), hints={"cand_001": ("UPDATE", kept)})
    held = store.graph.nodes("alpha", [kept])[kept].body
    assert "pool" in held
    assert titled(store, ["Bug"], "", "pool", bodies=True) == ["One"]
    assert (titled(store, ["Bug"], "", "lock", bodies=True) == ["One"]) == ("lock" in held)


def test_signs_of_patterns_stand_for_themselves(store: Stores) -> None:
    titles = ["a*c", "abc", "a?c", "a[b]c", "a]c"]
    add(store, 1, *(node(title, body=title) for title in titles))
    for word, found in {"a*c": ["a*c"], "a?c": ["a?c"], "a[b]c": ["a[b]c"], "[b]": ["a[b]c"], "]": ["a[b]c", "a]c"], "*": ["a*c"]}.items():
        assert titled(store, ["Decision"], "", word) == titled(store, ["Decision"], word) == found
        assert titled(store, ["Decision"], "", word, bodies=True) == found


def test_a_long_word_is_looked_for_to_its_end(store: Stores) -> None:
    add(store, 1, node("long", "Bug", "x" * 3_000))
    assert titled(store, ["Bug"], "", "x" * 3_000, bodies=True) == ["long"]
    assert titled(store, ["Bug"], "", "x" * 2_999 + "y", bodies=True) == []


def test_the_nodes_of_an_artifact_are_found_whatever_part_of_it_states_them(store: Stores) -> None:
    titles = {"A": "spec:spec_007#a", "B": None, "C": "spec:spec_007#c", "D": "spec:spec_0070#a", "E": "spec:spec_00"}
    part, whole, old, _, _ = add(store, 1, *(node(title, source_ref=ref) for title, ref in titles.items()))
    add(store, 2, node("F", "Bug"), node("C2", source_ref="spec:spec_008"), hints={"cand_002": ("SUPERSEDE", old)})
    found = store.queries.stated_in("alpha", "spec:spec_007", ["Decision", "Learning"])
    assert found == list(store.queries.placed("alpha", [part, whole, old]).values())
    assert store.queries.stated_in("alpha", "spec:spec_007", ["Learning"]) == []
    assert store.queries.stated_in("alpha", "spec:spec_007", []) == []
    assert store.queries.stated_in("beta", "spec:spec_007", ["Decision"]) == []


def test_the_time_of_a_node_is_when_it_was_decided_or_else_made(store: Stores) -> None:
    at = "2025-05-07T10:00:00+02:00"
    day = parse_instant(at)
    dated = {"decided_at": at}
    add(store, 1, node("x old", attributes=dated), node("x new"), node("x req", "Requirement"))
    types: list[NodeType] = ["Decision", "Requirement"]
    assert titled(store, types, "x", since=day) == ["x new", "x old", "x req"]
    assert titled(store, types, "x", since=day + 1) == ["x new", "x req"]
    assert titled(store, types, "x", until=day) == []
    assert titled(store, types, "x", until=day + 1) == ["x old"]
    assert titled(store, types, "x", since=NOW, until=NOW) == []
    assert format_instant(day) == "2025-05-07T08:00:00.000Z"


def test_hundreds_of_words_may_be_asked_for(store: Stores) -> None:
    add(store, 1, node(" ".join(f"w{n}" for n in range(100, 160))), node("w100 w101"))
    words = [f"w{n}" for n in range(100, 900)]
    assert titled(store, ["Decision"], "", *words, at_least=2) == sorted(n.title for n in store.graph.all_nodes("alpha"))
    assert len(titled(store, ["Decision"], "", *words, at_least=60)) == 1
    assert titled(store, ["Decision"], "", *words, at_least=61) == []


# Boards.


def test_no_read_tells_anything_of_another_board(store: Stores) -> None:
    store.boards.create("alpha_dec", "Its name could be read as alpha and the start of an id", now=NOW)
    for number, board_id in enumerate(("alpha_dec", "beta"), 1):
        a, b, c = add(store, 10 * number, node("canary", body="canary"), node("canary too"), node("x", "Bug", "canary"), board_id=board_id)
        linked(store, 10 * number + 1, edge(a, "contradicts", b), edge(a, "relates_to", c), board_id=board_id)
        add(store, 10 * number + 2, node("canary 3"), board_id=board_id, hints={"cand_001": ("SUPERSEDE", b)})
    mine = add(store, 1, node("mine"), node("mine too"))
    linked(store, 2, edge(mine[0], "relates_to", mine[1]))
    hidden = sorted({*(n.node_id for board in ("alpha_dec", "beta") for n in store.graph.all_nodes(board))})
    assert len(hidden) == 8
    forged = [*hidden, *(i.removeprefix("dec_") for i in hidden), *(f"beta_{i}" for i in hidden), *FORGED]
    q = store.queries
    assert q.places("alpha", forged) == {}
    assert q.neighbours("alpha", forged, near=True, placed="all") == Neighbours([])
    assert q.placed("alpha", forged) == {}
    assert q.contradictions("alpha") == []
    assert {n.node_id for n, _ in q.stated_in("alpha", "spec:spec_007", list(NODE_TYPES))} == set(mine)
    assert q.with_words("alpha", list(NODE_TYPES), phrase="canary", words=["x", "canary"], at_least=1, bodies=True, also=forged) == []
    assert q.with_words("alpha", [], phrase="", words=[], at_least=1, also=forged) == []
    for node_id in forged:
        assert q.around("alpha", node_id) == NOTHING
        assert q.contradictions("alpha", node_id=node_id) == []
    assert q.lineage("alpha", forged) == Lineage({}, {}, {})
    assert set(q.places("alpha", [*forged, *mine])) == set(q.placed("alpha", [*forged, *mine])) == set(mine)
    assert set(q.lineage("alpha", [*forged, *mine]).nodes) == set(mine)
    assert set(q.neighbours("alpha", [*forged, *mine], near=True).near) == set(mine)
    assert len(q.neighbours("alpha", [*forged, *mine]).links) == 2
    assert q.around("alpha", mine[0], max_depth=4).depths == {mine[1]: 1}
    assert len(q.contradictions("beta")) == len(q.contradictions("alpha_dec")) == 1
    (superseded,) = (n for n in store.graph.all_nodes("beta") if not n.live)
    assert set(q.lineage("beta", [superseded.node_id]).nodes) == {superseded.node_id, superseded.superseded_by}


# Any graph.

TITLES = ["Use redis", "Retry webhooks", "Redis webhooks", "the queue", "Café"]
TYPES: st.SearchStrategy[NodeType] = st.sampled_from(["Decision", "Bug", "Learning"])
RELS: list[RelType] = ["relates_to", "depends_on", "contradicts", "supersedes", "mentions"]


@st.composite
def contents(draw: st.DrawFn) -> Content:
    """Nodes of few types with any edges between them; supersedes edges go from later nodes to earlier ones of their type."""
    types = draw(st.lists(TYPES, min_size=1, max_size=12))
    drafts: list[NodeDraft] = [
        node(draw(st.sampled_from(TITLES)), t, draw(st.sampled_from(TITLES)), attributes={"area": "Redis"} if t == "Learning" else {})
        for t in types
    ]
    edges = []
    for rel in draw(st.lists(st.sampled_from(RELS), max_size=30)):
        src, dst = draw(st.integers(0, len(types) - 1)), draw(st.integers(0, len(types) - 1))
        if src != dst and (rel != "supersedes" or (src > dst and types[src] == types[dst])):
            edges.append(edge(f"cand_{src + 1:03d}", rel, f"cand_{dst + 1:03d}"))
    return Content(drafts, edges)


FILTERS = st.none() | st.lists(st.sampled_from(RELS), max_size=3, unique=True)
ENDS: st.SearchStrategy[Ends | None] = st.sampled_from([None, "near", "all"])
DIRECTIONS: st.SearchStrategy[Direction] = st.sampled_from(["in", "out", "both"])


@contextmanager
def filled(name: str, content: Content, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with STORES[name](tmp_path_factory.mktemp("store")) as store:
        store.boards.create("alpha", "Alpha", now=NOW)
        commit(store, session(1), content)
        yield store


def check_against_the_model(store: Stores, data: st.DataObject) -> None:
    model, q = model_of(store), store.queries
    ids = sorted(model.node_by_id)
    assert q.places("alpha", ids) == {i: model.place(i) for i in ids}
    assert q.placed("alpha", ids) == model.placed(ids)
    some = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4))
    rels, direction = data.draw(FILTERS), data.draw(DIRECTIONS)
    types = data.draw(st.none() | st.lists(TYPES, max_size=2))
    near, placed = data.draw(st.booleans()), data.draw(ENDS)
    assert q.neighbours("alpha", some, rel_types=rels, direction=direction, node_types=types, near=near, placed=placed) == model.neighbours(
        some, rels, direction, types, near=near, placed=placed
    )
    depth, limit = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 12))
    assert q.around("alpha", some[0], rel_types=rels, direction=direction, max_depth=depth, limit=limit) == model.around(
        some[0], rels, direction, depth, limit
    )
    most = data.draw(st.integers(1, 4))
    assert q.lineage("alpha", some, most=most) == model.lineage(some, most)
    for node_id in (None, some[0]):
        assert q.contradictions("alpha", node_id=node_id) == model.contradictions(node_id)
        assert q.contradictions("alpha", node_id=node_id, most=most) == model.contradictions(node_id, most)
    words = data.draw(st.lists(st.sampled_from(["redis", "webhooks", "e", "cafe", "", "zebra"]), max_size=4))
    phrase, at_least = data.draw(st.sampled_from(["", "use r", "queue"])), data.draw(st.integers(1, 3))
    bodies, since = data.draw(st.booleans()), data.draw(st.sampled_from([None, NOW, NOW + 1]))
    asked: dict[str, Any] = {"phrase": phrase, "words": words, "at_least": at_least, "bodies": bodies}
    of_types: list[NodeType] = ["Decision", "Learning"]
    worded = in_time(model.with_words(of_types, **asked), since, None)
    assert q.with_words("alpha", of_types, since=since, **asked) == worded
    named = {n.node_id: n for n in worded} | store.graph.nodes("alpha", some)
    assert q.with_words("alpha", of_types, since=since, also=some, **asked) == [named[i] for i in sorted(named)]
    assert q.stated_in("alpha", "spec:spec_007", of_types) == model.stated_in("spec:spec_007", of_types)


@settings(max_examples=100, deadline=None)
@given(content=contents(), data=st.data())
def test_every_read_of_any_graph_is_that_of_a_plain_walk(
    content: Content, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with filled("sqlite-memory", content, tmp_path_factory) as store:
        check_against_the_model(store, data)


@pytest.mark.served
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(content=contents(), data=st.data())
def test_every_read_of_any_served_graph_is_that_of_a_plain_walk(
    content: Content, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with filled("served", content, tmp_path_factory) as store:
        check_against_the_model(store, data)
