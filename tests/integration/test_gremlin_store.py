"""The graph on the local Gremlin server: late and repeated commits, sizes, broken wires, two boards, and what readers may see."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from pulse_kg.adapters.budget import time_budget
from pulse_kg.adapters.gremlin import GremlinConnection, GremlinGraphStore
from pulse_kg.adapters.gremlin.connection import source
from pulse_kg.adapters.gremlin.errors import GraphRefused, ServerFault
from pulse_kg.domain.model import Node
from pulse_kg.domain.plan import CommitPlan, RelevanceWrite
from pulse_kg.errors import StoreUnavailable
from pulse_kg.ports.graph import Survey
from tests.support import local_stack
from tests.support.gremlin_graph import connection, graph_stores
from tests.support.plans import NOW, Content, add, administered, commit, edge, node, plan, session
from tests.support.stores import Stores
from tests.support.tcp_proxy import Wire, wire

pytestmark = pytest.mark.served

ONE, TWO = "gremlin_one", "gremlin_one_dec"
"""The name of the second could be read as the first with the start of a node's id."""
LAST = 1_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[GremlinConnection]:
    made = connection()
    yield made
    made.close()


@pytest.fixture
def store(server: GremlinConnection) -> Iterator[Stores]:
    with graph_stores(server, ONE, TWO) as made:
        for board_id in (ONE, TWO):
            made.boards.create(board_id, board_id, now=NOW)
        yield made


@pytest.fixture
def all_seen(server: GremlinConnection) -> GremlinGraphStore:
    """The same graph for a reader who may see everything."""
    return GremlinGraphStore(server, applied=lambda board_id: LAST)


def planned(store: Stores, number: int, content: Content, seq: int, board_id: str = ONE) -> CommitPlan:
    return plan(store, session(number, board_id), content, seq=seq)


def properties(server: GremlinConnection, node_id: str, board_id: str = ONE) -> dict[str, Any]:
    """What the server has of a vertex."""
    (found,) = server.submit(source().V().has("nid", f"{board_id}_{node_id}").value_map())
    return {name: values[0] for name, values in found.items()}


def elements(server: GremlinConnection, board_id: str) -> tuple[int, int]:
    """Vertices and edges of a board, seen or not."""
    (vertices,) = server.submit(source().V().has("board_id", board_id).count())
    (edges,) = server.submit(source().E().has("board_id", board_id).count())
    return vertices, edges


# Commits.


@pytest.mark.parametrize("count", [1, 99, 100, 101, 500])
def test_a_commit_of_any_size_is_written_whole_and_once(store: Stores, server: GremlinConnection, count: int) -> None:
    drafts = [node(f"n{n}", "Requirement", body="ß" * n) for n in range(count)]
    edges = [edge(f"cand_{n:03d}", "relates_to", f"cand_{n + 1:03d}") for n in range(1, count)]
    made = commit(store, session(1, ONE), Content(drafts, edges))
    store.graph.apply(made)
    assert elements(server, ONE) == (count, count - 1)
    assert list(store.graph.all_nodes(ONE)) == list(made.nodes)
    assert list(store.graph.all_edges(ONE)) == sorted(made.edges, key=lambda e: e.edge_id)


def test_a_plan_that_comes_after_a_later_one_changes_only_what_the_later_one_left(store: Stores, all_seen: GremlinGraphStore) -> None:
    first = planned(store, 1, Content([node("A"), node("B")], [edge("cand_001", "contradicts", "cand_002")]), seq=1)
    a, b = (n.node_id for n in first.nodes)
    later = replace(first, seq=2, nodes=(replace(first.nodes[0], title="A2", body="", commit_seq=2, version=2),), edges=(), relevances=())
    all_seen.apply(later)
    all_seen.apply(first)
    found = all_seen.nodes(ONE, [a, b])
    assert found == {later.nodes[0].node_id: later.nodes[0], first.nodes[1].node_id: first.nodes[1]}
    assert len(list(all_seen.all_edges(ONE))) == 1


def test_a_late_score_changes_nothing(store: Stores, server: GremlinConnection) -> None:
    (a,) = add(store, 1, node("A"), board_id=ONE)
    empty = planned(store, 2, Content(), seq=2)
    store.graph.apply(replace(empty, seq=5, relevances=(RelevanceWrite(a, 1.25, NOW + 5),)))
    store.graph.apply(replace(empty, seq=4, relevances=(RelevanceWrite(a, 0.1, NOW + 4),)))
    found = properties(server, a)
    assert (found["relevance_score"], found["last_recomputed_at"], found["applied_seq"], found["commit_seq"]) == (1.25, NOW + 5, 5, 1)


def test_an_edge_without_an_end_undoes_the_whole_commit(store: Stores, server: GremlinConnection) -> None:
    good = planned(store, 1, Content([node("A"), node("B")], [edge("cand_001", "relates_to", "cand_002")]), seq=1)
    for end in ("src", "dst"):
        broken = replace(good, edges=(replace(good.edges[0], **{end: "dec_missing"}),))  # type: ignore[arg-type]
        with pytest.raises(GraphRefused, match="damaged") as refused:
            store.graph.apply(broken)
        assert not refused.value.retryable
        assert elements(server, ONE) == (0, 0)
    store.graph.apply(good)
    assert elements(server, ONE) == (2, 1)


def test_a_score_of_a_node_that_is_not_there_undoes_the_whole_commit(store: Stores, server: GremlinConnection) -> None:
    good = planned(store, 1, Content([node("A")]), seq=1)
    with pytest.raises(GraphRefused):
        store.graph.apply(replace(good, relevances=(RelevanceWrite("dec_missing", 1.0, NOW),)))
    assert elements(server, ONE) == (0, 0)


def test_a_property_that_became_none_is_gone(store: Stores, server: GremlinConnection) -> None:
    (a,) = add(store, 1, node("A"), board_id=ONE)
    administered(store, ONE, a, kind="revoke")
    revoked = store.graph.nodes(ONE, [a])[a]
    full = replace(revoked, superseded_by="dec_1", superseded_at=NOW, last_queried_at=NOW, last_recomputed_at=NOW)
    empty = planned(store, 2, Content(), seq=3)
    store.graph.apply(replace(empty, nodes=(full,)))
    assert store.graph.nodes(ONE, [a])[a] == full
    nothing = dict.fromkeys(
        ("artifact_version", "superseded_by", "superseded_at", "revocation_reason", "last_queried_at", "last_recomputed_at", "status")
    )
    bare = replace(full, **nothing)  # type: ignore[arg-type]
    store.graph.apply(replace(empty, seq=4, nodes=(bare,)))
    assert store.graph.nodes(ONE, [a])[a] == bare
    assert not nothing.keys() & properties(server, a).keys()


def test_numbers_and_long_texts_come_back_as_they_were(store: Stores, all_seen: GremlinGraphStore) -> None:
    made = planned(store, 1, Content([node("A", "Entity", "body")]), seq=1)
    extreme = replace(
        made.nodes[0], body="\U0001f9ed" * 32_000, query_hits=2**40, relevance_score=0.1 + 0.2, confidence=0.0, title="\u2028 \ue000 ß"
    )
    all_seen.apply(replace(made, nodes=(extreme,)))
    found = all_seen.nodes(ONE, [extreme.node_id])[extreme.node_id]
    assert found == extreme
    assert {type(found.query_hits), type(found.relevance_score), type(found.human_curated)} == {int, float, bool}


# What a reader may see.


def everything(graph: GremlinGraphStore, board_id: str, of: CommitPlan) -> list[Any]:
    """Whatever the store tells of the elements of a plan; empty where it shows nothing of them."""
    node_ids, edge_ids = [n.node_id for n in of.nodes], [e.edge_id for e in of.edges]
    digests, refs = [n.content_digest for n in of.nodes], [n.source_ref for n in of.nodes]
    counts = graph.counts(board_id)
    answers: list[Any] = [
        graph.nodes(board_id, node_ids),
        graph.existing_edges(board_id, edge_ids),
        graph.surroundings(board_id, node_ids),
        graph.supersedes_below(board_id, node_ids),
        graph.with_digests(board_id, digests),
        graph.with_refs(board_id, refs),
        graph.nearest_titles(board_id, "Decision", "canary", limit=5, live_only=False),
        graph.edges_of(board_id, node_ids),
        list(graph.all_nodes(board_id)),
        list(graph.all_edges(board_id)),
        [counts] if any(counts.values()) else [],
    ]
    surveyed = graph.survey(board_id, node_ids, digests=digests, refs=refs)
    return [*answers, *vars(surveyed).values()]


CANARY = Content(
    [node("canary", source_ref="spec:s#1"), node("canary two", source_ref="spec:s#2"), node("canary three")],
    [edge("cand_001", "contradicts", "cand_002"), edge("cand_002", "supersedes", "cand_003"), edge("cand_003", "relates_to", "cand_001")],
)


def test_what_is_of_a_commit_after_the_applied_mark_is_shown_by_no_read(
    store: Stores, server: GremlinConnection, all_seen: GremlinGraphStore
) -> None:
    made = planned(store, 1, CANARY, seq=7)
    store.graph.apply(made)
    assert all(everything(all_seen, ONE, made))
    assert not any(everything(GremlinGraphStore(server, applied=lambda board_id: 6), ONE, made))


def test_edges_of_a_later_commit_between_older_nodes_are_not_seen_either(store: Stores, server: GremlinConnection) -> None:
    a, b, c = add(store, 1, node("A"), node("B"), node("C"), board_id=ONE)
    edges = [edge(a, "contradicts", b), edge(b, "supersedes", c)]
    later = planned(store, 2, Content(edges=edges), seq=2)
    store.graph.apply(later)
    before = GremlinGraphStore(server, applied=lambda board_id: 1)
    survey = before.survey(ONE, [a, b, c])
    assert survey.edges_between == frozenset()
    assert {s.degree for s in survey.surroundings.values()} == {0}
    assert all(not s.contradictions for s in [*survey.surroundings.values(), *before.surroundings(ONE, [a, b]).values()])
    assert not before.supersedes_below(ONE, [b])
    assert not before.edges_of(ONE, [a, b, c])
    assert before.counts(ONE)["edges"] == 0


def test_no_read_of_a_board_shows_anything_of_another_whatever_it_is_asked(store: Stores, all_seen: GremlinGraphStore) -> None:
    for mine, other in ((ONE, TWO), (TWO, ONE)):
        made = planned(store, 1, CANARY, seq=1, board_id=mine)
        disguised = replace(made, nodes=tuple(replace(n, node_id=f"{mine}_{n.node_id}") for n in made.nodes))
        tricky = replace(made, nodes=tuple(replace(n, node_id=f"dec_{n.node_id}") for n in made.nodes))
        all_seen.apply(made)
        for asked in (made, disguised, tricky):
            assert not any(everything(all_seen, other, asked))
        assert all_seen.erase(mine) == {"nodes": 0, "edges": 0}


def test_an_element_that_says_it_is_of_another_board_is_thrown_away(store: Stores, server: GremlinConnection) -> None:
    class Confused(GremlinConnection):
        def submit(self, traversal: Any) -> list[Any]:
            return [row | {"board_id": [TWO]} for row in server.submit(traversal)]

    (a,) = add(store, 1, node("A"), board_id=ONE)
    graph = GremlinGraphStore(Confused("ws://nowhere.test"), applied=lambda board_id: LAST)
    with pytest.raises(GraphRefused, match="another board"):
        graph.nodes(ONE, [a])


# A survey, and erasing.


def test_a_survey_says_what_the_single_reads_say(store: Stores) -> None:
    made = commit(store, session(1, ONE), CANARY)
    a, b, c = (made.audit["mapping"][f"cand_00{n}"] for n in (1, 2, 3))
    (new,) = add(store, 2, node("new"), board_id=ONE, hints={"cand_001": ("SUPERSEDE", a)})
    graph = store.graph
    known = graph.nodes(ONE, [a, b, c])
    digests, refs = [known[a].content_digest], [known[a].source_ref, known[b].source_ref]
    survey = graph.survey(ONE, [a, b, c, "dec_none"], digests=digests, refs=refs)
    assert survey == Survey(
        nodes=known,
        with_digests=graph.with_digests(ONE, digests),
        with_refs=graph.with_refs(ONE, refs),
        surroundings=graph.surroundings(ONE, [a, b, c]),
        edges_between=frozenset(e.edge_id for e in made.edges),
    )
    assert survey.surroundings[b].contradictions[0].src_resolved
    assert survey.surroundings[a].degree == 3
    assert new not in survey.nodes


def test_a_survey_is_one_request(store: Stores, server: GremlinConnection) -> None:
    class Counting(GremlinConnection):
        requests = 0

        def submit(self, traversal: Any) -> list[Any]:
            self.requests += 1
            return server.submit(traversal)

    ids = add(store, 1, *(node(f"n{n}") for n in range(40)), board_id=ONE)
    counting = Counting("ws://nowhere.test")
    graph = GremlinGraphStore(counting, applied=lambda board_id: LAST)
    survey = graph.survey(ONE, [*ids, *(f"dec_{n}" for n in range(2_000))], digests=["sha256:x"], refs=["spec:s#1"])
    assert len(survey.nodes) == 40
    assert counting.requests == 1
    assert not any(vars(graph.survey(ONE, [])).values())
    assert counting.requests == 1


def test_erasing_a_board_leaves_the_others_and_may_be_done_again(store: Stores, server: GremlinConnection) -> None:
    count = 250
    drafts = [node(f"n{n}") for n in range(count)]
    edges = [edge("cand_001", "relates_to", f"cand_{n:03d}") for n in range(2, count)]
    commit(store, session(1, ONE), Content(drafts, edges))
    add(store, 2, node("theirs"), board_id=TWO)
    for _ in range(2):
        assert GremlinGraphStore(server, applied=lambda board_id: 0).erase(ONE) == {"nodes": 0, "edges": 0}
        assert elements(server, ONE) == (0, 0)
        assert elements(server, TWO) == (1, 0)


# The wire.


@contextmanager
def wired() -> Iterator[tuple[Wire, GremlinConnection]]:
    target = urlsplit(local_stack.servers().gremlin_url)
    with wire(str(target.hostname), target.port or 8182) as made:
        behind = GremlinConnection(f"ws://127.0.0.1:{made.port}{target.path}", lanes=2)
        try:
            yield made, behind
        finally:
            behind.close()


def test_reads_and_commits_go_on_after_their_connection_was_cut(store: Stores) -> None:
    first = planned(store, 1, Content([node("A")]), seq=1)
    with wired() as (between, behind):
        graph = GremlinGraphStore(behind, applied=lambda board_id: LAST)
        graph.apply(first)
        between.cut()
        assert list(graph.nodes(ONE, [first.nodes[0].node_id])) == [first.nodes[0].node_id]
        between.cut()
        second = planned(store, 2, Content([node("B")]), seq=2)
        graph.apply(second)
        assert between.connections == 3
        assert graph.counts(ONE)["nodes"] == 2


def test_a_commit_whose_answer_was_lost_is_written_once(store: Stores, server: GremlinConnection) -> None:
    made = planned(store, 1, CANARY, seq=1)
    with wired() as (between, behind):
        graph = GremlinGraphStore(behind, applied=lambda board_id: LAST)
        graph.counts(ONE)
        between.cut_next_request = True
        graph.apply(made)
        assert between.connections == 2
    assert elements(server, ONE) == (3, 3)


def test_a_server_that_says_nothing_is_left_when_the_call_has_no_time_left(store: Stores) -> None:
    (a,) = add(store, 1, node("A"), board_id=ONE)
    with wired() as (between, behind):
        graph = GremlinGraphStore(behind, applied=lambda board_id: LAST)
        graph.counts(ONE)
        between.silent = True
        with time_budget(0.2), pytest.raises(StoreUnavailable, match="in time"):
            graph.nodes(ONE, [a])
        between.silent = False
        assert list(graph.nodes(ONE, [a])) == [a]
        assert between.connections == 2


def test_a_port_where_nobody_listens_is_told_as_unavailable() -> None:
    with wire("127.0.0.1", 9) as closed:
        port = closed.port
    nowhere = GremlinConnection(f"ws://127.0.0.1:{port}/gremlin")
    with pytest.raises(StoreUnavailable) as refused:
        nowhere.ping()
    assert refused.value.retryable
    assert str(port) not in refused.value.message
    nowhere.close()


def test_a_process_that_ends_without_closing_says_nothing() -> None:
    program = f"""
from pulse_kg.adapters.gremlin import GremlinConnection
connection = GremlinConnection({local_stack.servers().gremlin_url!r})
connection.ping()
"""
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_threads_share_the_connections(store: Stores, server: GremlinConnection) -> None:
    plans = [planned(store, n, Content([node(f"n{n}"), node(f"m{n}")]), seq=1) for n in range(1, 25)]
    graph = GremlinGraphStore(server, applied=lambda board_id: LAST)
    start = threading.Barrier(8)

    def write(mine: list[CommitPlan]) -> list[Node]:
        start.wait(10)
        found: list[Node] = []
        for each in mine:
            graph.apply(each)
            found += graph.nodes(ONE, [n.node_id for n in each.nodes]).values()
        return found

    with ThreadPoolExecutor(8) as pool:
        results = [n for found in pool.map(write, [plans[n::8] for n in range(8)]) for n in found]
    assert sorted(n.node_id for n in results) == sorted(n.node_id for each in plans for n in each.nodes)
    assert graph.counts(ONE)["nodes"] == 48


def test_threads_that_write_one_node_at_once_make_it_once(store: Stores, server: GremlinConnection) -> None:
    made = planned(store, 1, Content([node("A"), node("B")], [edge("cand_001", "relates_to", "cand_002")]), seq=1)
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(store.graph.apply, made) for _ in range(16)]:
            done.result()
    assert elements(server, ONE) == (2, 1)


def test_a_refusal_of_the_server_writes_nothing_to_the_log(server: GremlinConnection, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(ServerFault):
        server.request(source().inject(1).fail("no"))
    assert caplog.records == []


# Fitness.


def test_a_fit_server_keeps_nothing_of_the_probe(server: GremlinConnection, all_seen: GremlinGraphStore) -> None:
    all_seen.probe()
    assert elements(server, "_probe") == (0, 0)


def test_a_server_that_takes_no_ids_is_refused_where_they_are_to_be_given(server: GremlinConnection) -> None:
    graph = GremlinGraphStore(server, applied=lambda board_id: 0, vertex_ids="supplied")
    with pytest.raises(GraphRefused) as refused:
        graph.probe()
    assert not refused.value.retryable
    assert refused.value.details["reason"] in refused.value.message
