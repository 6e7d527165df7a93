"""The audit log is the system of record: what it says is what the store has, and from it alone a store can be made anew."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import open_container
from pulse_kg.domain.audit import Administration
from pulse_kg.domain.model import Node
from pulse_kg.errors import InvalidArgument, NodeNotFound, StoreUnavailable
from pulse_kg.usecases.administration import administer_node
from pulse_kg.usecases.rebuild import rebuild_board
from pulse_kg.usecases.verify import Verification, verify_board
from tests.support.crash_points import Faults, faulty
from tests.support.world import Agent, World, opened


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """In a file, so that a test can damage it behind the program's back."""
    with opened(tmp_path / "kg.db") as made:
        made.board("alpha")
        made.board("beta")
        yield made


@pytest.fixture
def told(world: World, agent: Agent) -> World:
    """A board with updates, supersedences, overrides, contradictions and administrative changes."""
    session = agent.begin("spec_007", 1)
    one = session.decide("Poll the queue every 5 s", "The worker polls.", section="poll", rationale="simple")
    two = session.add("Constraint", "Answers within 30 s", attributes={"severity": "high", "shade": "blue"})
    session.edge(one, "depends_on", two)
    three = session.add("Alternative", "Push to the worker", attributes={"reason_discarded": "needs an address"})
    session.edge(one, "relates_to", three)
    ids = {e["candidate_id"]: e["node_id"] for e in session.commit()["applied"]["added"]}
    world.clock.advance(days=1)
    session = agent.begin("spec_007", 2)
    session.decide("Poll the queue every 5 s", "The worker polls, and sleeps between.", section="poll", confidence=0.4)
    session.edge(session.decide("Never poll"), "contradicts", ids[one])
    session.commit({"candidate_id": "cand_002", "hint": "ADD", "rationale": "new"})
    world.clock.advance(days=1)
    session = agent.begin("spec_007", 3)
    session.edge(session.decide("Let the queue call the worker"), "supersedes", ids[one])
    session.commit()
    act = Administration("alpha", ids[two], "curate", "checked with the vendor", "root", priority_boost=0.1)
    administer_node(act, world.container.services)
    administer_node(Administration("alpha", ids[three], "revoke", "never meant", "root"), world.container.services)
    return world


def test_a_board_that_was_only_changed_by_commits_verifies_clean(told: World) -> None:
    result = verify_board("alpha", told.container.services)
    assert result.findings == ()
    assert (result.commits, result.nodes, result.edges, result.vectors) == (5, 5, 4, 4)
    assert verify_board("beta", told.container.services).clean


def test_curating_and_revoking_are_numbered_commits_that_raise_no_version(told: World) -> None:
    rows = list(told.container.commits.audit_rows("alpha"))
    assert [(r["audit_row_id"], r["kind"]) for r in rows[3:]] == [(4, "administration"), (5, "administration")]
    assert (rows[3]["reason"], rows[3]["agent_id"]) == ("checked with the vendor", "root")
    curated = told.node(rows[3]["node_id"])
    assert (curated.human_curated, curated.priority_boost, curated.version, curated.commit_seq) == (True, 0.1, 1, 1)
    revoked = told.node(rows[4]["node_id"])
    assert (revoked.revocation_reason, revoked.revoked, revoked.live) == ("never meant", True, True)
    assert [r.event["type"] for r in told.container.commits.outbox("alpha", after=3)] == ["kg.administered.v1"] * 2


def test_an_administrative_change_needs_a_reason_and_a_node(told: World) -> None:
    with pytest.raises(InvalidArgument):
        administer_node(Administration("alpha", "dec_1", "revoke", " ", "root"), told.container.services)
    with pytest.raises(NodeNotFound):
        administer_node(Administration("alpha", "dec_1", "revoke", "gone", "root"), told.container.services)


def test_agents_leave_a_curated_node_as_it_is(told: World) -> None:
    agent = told.agent("bob")
    node_id = told.container.commits.audit_row("alpha", 4)["node_id"]  # type: ignore[index]
    session = agent.begin("spec_007", 9)
    session.add("Constraint", "Answers within 40 s")
    error = agent.refusal(
        "add_edge_candidate",
        session_id=session.session_id,
        src={"candidate_id": "cand_001"},
        dst={"node_id": node_id},
        rel_type="supersedes",
    )
    assert error["code"] == "invalid_edge_endpoints"


DAMAGE = {
    "a node that no commit made": "INSERT INTO nodes SELECT {columns} FROM nodes WHERE node_id = '{node}'",
    "an edge that lost its end": "UPDATE edges SET dst = 'dec_0000000000000000' WHERE rel_type = 'depends_on'",
    "a title changed behind the log": "UPDATE nodes SET title = 'Poll never' WHERE node_id = '{node}'",
    "a node gone": "DELETE FROM nodes WHERE node_id = '{node}'",
    "a vector gone": "DELETE FROM vectors WHERE node_id = '{node}'",
    "a vector marked as live": "UPDATE vectors SET live = 1 - live WHERE node_id = '{node}'",
    "an audit row gone": "DELETE FROM audit WHERE seq = 2",
    "the last audit row gone": "DELETE FROM audit WHERE seq = 5",
    "an outbox record gone": "DELETE FROM outbox WHERE seq = 3",
    "an edge gone": "DELETE FROM edges WHERE rel_type = 'contradicts'",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_verify_finds(told: World, tmp_path: Path, damage: str) -> None:
    node = next(n for n in told.container.graph.all_nodes("alpha") if n.title == "Never poll")
    with closing(sqlite3.connect(tmp_path / "kg.db")) as connection, connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(nodes)")]
        columns = ", ".join("'dec_ffffffffffffffff'" if n == "node_id" else n for n in names)
        assert connection.execute(DAMAGE[damage].format(columns=columns, node=node.node_id)).rowcount > 0

    assert verify_board("alpha", told.container.services).findings != ()


SHORT = {
    "OF_NODE": "WHERE node_id = (SELECT node_id FROM nodes WHERE title = 'Never poll')",
    "NOT_A_NUMBER": f"x'{'0000c07f' * 384}'",
    "ENDLESS": f"x'{'0000807f' * 384}'",
}
FOUND = {
    "an answer's part in an audit row": (
        "UPDATE audit SET content = json_set(content, '$.applied.added[0].node_id', 'dec_0') WHERE seq = 1",
        "audit row 1 differs from what its commit did in applied",
    ),
    "a mapping": ("UPDATE audit SET content = json_set(content, '$.mapping.cand_001', 'dec_0') WHERE seq = 1", "in mapping"),
    "an added edge": ("UPDATE audit SET content = json_set(content, '$.edges_added[0].rel', 'x') WHERE seq = 1", "in edges_added"),
    "the counts": ("UPDATE audit SET content = json_set(content, '$.counts.added', 99) WHERE seq = 2", "in counts"),
    "a superseded node": (
        "UPDATE audit SET content = json_set(content, '$.superseded_nodes', json('[]')) WHERE seq = 3",
        "audit row 3 differs from what its commit did in superseded_nodes",
    ),
    "an event's id": ("UPDATE audit SET content = json_set(content, '$.event_id', 'alpha.9') WHERE seq = 4", "in event_id"),
    "an event": (
        "UPDATE outbox SET event = json_set(event, '$.data.agent_id', 'mallory') WHERE seq = 2",
        "the outbox record of commit 2 holds another event than the commit made",
    ),
    "an event that is no object": ("UPDATE outbox SET event = '[]' WHERE seq = 2", "the outbox record of commit 2 holds another event"),
    "an event that was never applied": ("UPDATE outbox SET state = 'decided' WHERE seq = 2", "commit 2 is in the state 'decided'"),
    "an event that is no JSON": ("UPDATE outbox SET event = '{' WHERE seq = 2", "outbox record 2 can't be read (JSONDecodeError)"),
    "a row that is no JSON": ("UPDATE audit SET content = '{' WHERE seq = 3", "audit row 3 can't be read (JSONDecodeError)"),
    "a row that is no object": (
        "UPDATE audit SET content = '[1]' WHERE seq = 3",
        "commit 3 can't be replayed from its audit row (TypeError)",
    ),
    "a row of another shape": (
        "UPDATE audit SET content = json_set(content, '$.source', 7) WHERE seq = 3",
        "commit 3 can't be replayed from its audit row (TypeError)",
    ),
    "a row without candidates": (
        "UPDATE audit SET content = json_remove(content, '$.candidates') WHERE seq = 3",
        "commit 3 can't be replayed from its audit row (KeyError)",
    ),
    "a time that is none": (
        "UPDATE audit SET content = json_set(content, '$.committed_at', 'noon') WHERE seq = 3",
        "commit 3 can't be replayed from its audit row (ValueError)",
    ),
    "a node that is no JSON": ("UPDATE nodes SET attributes = '{' OF_NODE", " can't be read (JSONDecodeError)"),
    "a node of another shape": ("UPDATE nodes SET attributes = '[1]' OF_NODE", " differs from what its commits made of it in attributes"),
    "a node that is no text": ("UPDATE nodes SET body = CAST(x'ff' AS TEXT) OF_NODE", " can't be read (StoreRefused)"),
    "an edge that is no text": ("UPDATE edges SET reason = CAST(x'ff' AS TEXT)", "the edges can't be read (StoreRefused)"),
    "a vector of an odd length": ("UPDATE vectors SET vector = substr(vector, 1, 1535) OF_NODE", "is damaged: it has 1535 bytes"),
    "a vector too short": ("UPDATE vectors SET vector = substr(vector, 1, 1532) OF_NODE", "is damaged: it has 1532 bytes"),
    "a vector without bytes": ("UPDATE vectors SET vector = x'' OF_NODE", "is damaged: it has 0 bytes"),
    "a vector of no numbers": (
        "UPDATE vectors SET vector = NOT_A_NUMBER OF_NODE",
        "is damaged: it has numbers that are not finite",
    ),
    "an endless vector": ("UPDATE vectors SET vector = ENDLESS OF_NODE", "is damaged: it has numbers that are not finite"),
    "a vector of nothing": ("UPDATE vectors SET vector = zeroblob(1536) OF_NODE", "is damaged: its length is not 1"),
    "a vector of another type": ("UPDATE vectors SET node_type = 'Constraint' OF_NODE", " is not filed under the node's type Decision"),
    "no model": ("DELETE FROM meta WHERE key = 'embedding_model'", "there are vectors, and it is not recorded which model made them"),
    "a model that is no JSON": ("UPDATE meta SET value = '{'", "what the vector index is can't be read (JSONDecodeError)"),
    "the hash of an artifact": ("UPDATE artifacts SET content_hash = 'sha256:0'", " is not that of its last commit"),
    "no hash of an artifact": ("DELETE FROM artifacts", " is not that of its last commit"),
}


def spelled_out(statement: str) -> str:
    for name, text in SHORT.items():
        statement = statement.replace(name, text)
    return statement


def damaged(world: World, path: Path, *statements: str) -> Verification:
    """What a process of its own finds after that was done behind the program's back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            assert connection.execute(spelled_out(statement)).rowcount > 0
    other = open_container(world.container.settings, embedder=HashingEmbedder())
    try:
        return verify_board("alpha", other.services)
    finally:
        other.close()


@pytest.mark.parametrize("damage", FOUND)
def test_verify_says_what_is_wrong_with(told: World, tmp_path: Path, damage: str) -> None:
    statement, finding = FOUND[damage]
    findings = damaged(told, tmp_path / "kg.db", statement).findings
    assert any(finding in found for found in findings), findings


def test_a_row_that_can_not_be_read_hides_no_other(told: World, tmp_path: Path) -> None:
    result = damaged(
        told,
        tmp_path / "kg.db",
        "UPDATE nodes SET attributes = '{' OF_NODE",
        "UPDATE nodes SET body = 'another' WHERE title = 'Push to the worker'",
        "UPDATE outbox SET event = '{' WHERE seq IN (1, 5)",
        "UPDATE outbox SET state = 'decided' WHERE seq = 2",
        "UPDATE edges SET confidence = 0.1 WHERE rel_type = 'depends_on'",
        "UPDATE vectors SET vector = x'00' WHERE node_type = 'Constraint'",
    )
    ends = ("(JSONDecodeError)", "in the state 'decided', though the commit was applied", "what its commit made", "in body", "1 bytes")
    assert {next((e for e in ends if found.endswith(e)), found) for found in result.findings} == set(ends)
    assert (result.nodes, result.edges) == (4, 4)


def test_verify_sees_one_state_of_a_board_that_others_write_to(told: World) -> None:
    agent, faults = told.agent("bob"), Faults()
    versions = iter(range(10, 100))

    def commit() -> None:
        session = agent.begin("spec_008", next(versions))
        session.edge(session.decide("Another one"), "depends_on", session.add("Constraint", "Another"))
        session.commit()

    with ThreadPoolExecutor(1) as pool:
        for port in ("commits.outbox", "commits.audit_rows", "graph.all_nodes", "graph.all_edges", "vectors.all_vectors"):
            before = verify_board("alpha", told.container.services)
            faults.arm(1, only=port, instead=lambda: pool.submit(commit).result(60))
            assert verify_board("alpha", faulty(told.container.services, faults)) == before
            assert faults.struck == port
            faults.disarm()
    assert verify_board("alpha", told.container.services).commits == 10


def test_without_snapshots_verify_looks_again_and_gives_up_when_the_board_never_rests(told: World) -> None:
    agent, faults = told.agent("bob"), Faults()
    services = replace(faulty(told.container.services, faults), snapshot=nullcontext)
    versions = iter(range(10, 100))

    def commit() -> None:
        session = agent.begin("spec_008", next(versions))
        session.decide(f"Another one: {session.session_id}")
        session.commit()

    def commit_each_time() -> None:
        commit()
        faults.arm(1, only="graph.all_nodes", instead=commit_each_time)

    faults.arm(1, only="graph.all_nodes", instead=commit)
    result = verify_board("alpha", services)
    assert (result.findings, result.commits) == ((), 6)
    faults.arm(1, only="graph.all_nodes", instead=commit_each_time)
    with pytest.raises(StoreUnavailable, match="in use") as refused:
        verify_board("alpha", services)
    assert refused.value.retryable


def test_a_store_that_is_only_busy_is_no_finding(told: World) -> None:
    faults = Faults()
    for port in ("commits.outbox", "commits.audit_rows", "graph.all_nodes", "graph.all_edges", "vectors.all_vectors", "commits.last_hash"):
        faults.arm(1, only=port)
        with pytest.raises(StoreUnavailable):
            verify_board("alpha", faulty(told.container.services, faults))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE nodes SET applied_seq = 99 WHERE title LIKE 'Let the queue%'",
        "UPDATE vectors SET commit_seq = 99 WHERE node_id = (SELECT node_id FROM nodes WHERE title LIKE 'Let the queue%')",
        "DELETE FROM vectors WHERE node_id = (SELECT node_id FROM nodes WHERE title LIKE 'Let the queue%')",
    ],
)
def test_a_commit_that_a_damaged_store_would_not_take_is_refused_as_a_whole(told: World, tmp_path: Path, damage: str) -> None:
    with closing(sqlite3.connect(tmp_path / "kg.db")) as connection, connection:
        assert connection.execute(damage).rowcount == 1
    before = [list(told.container.graph.all_nodes("alpha")), list(told.container.graph.all_edges("alpha"))]
    (old,) = (n.node_id for n in told.container.graph.all_nodes("alpha") if n.title.startswith("Let the queue"))
    agent = told.agent("bob")
    session = agent.begin("spec_007", 9)
    session.edge(session.decide("Ask the operator"), "supersedes", old)

    error = agent.refusal("commit_consolidation", session_id=session.session_id)

    assert (error["code"], error["retryable"]) == ("store_unavailable", False)
    assert "pulse-kg verify" in error["message"]
    assert [list(told.container.graph.all_nodes("alpha")), list(told.container.graph.all_edges("alpha"))] == before
    assert len(list(told.container.commits.audit_rows("alpha"))) == 5


@pytest.fixture
def fresh() -> Iterator[World]:
    """An empty store."""
    with opened() as made:
        yield made


def test_a_store_made_anew_from_the_audit_log_is_equal_but_for_what_is_counted(told: World, fresh: World) -> None:
    source, target = told.container, fresh.container
    board = source.boards.board("alpha")
    assert board is not None

    assert rebuild_board(board, source.commits, target.services) == 5

    def comparable(node: Node) -> Node:
        return replace(node, query_hits=0, last_queried_at=None, last_recomputed_at=None, relevance_score=0.0)

    assert [comparable(n) for n in target.graph.all_nodes("alpha")] == [comparable(n) for n in source.graph.all_nodes("alpha")]
    assert list(target.graph.all_edges("alpha")) == list(source.graph.all_edges("alpha"))
    assert list(target.commits.audit_rows("alpha")) == list(source.commits.audit_rows("alpha"))
    assert list(target.commits.outbox("alpha")) == list(source.commits.outbox("alpha"))
    for (left, a, live), (right, b, also) in zip(source.vectors.all_vectors("alpha"), target.vectors.all_vectors("alpha"), strict=True):
        assert (left, live, a.truncated) == (right, also, b.truncated)
        numbers = zip(struct.unpack("<384f", a.vector), struct.unpack("<384f", b.vector), strict=True)
        assert max(abs(x - y) for x, y in numbers) <= 1e-4
    assert verify_board("alpha", target.services).clean
    again = target.boards.board("alpha")
    assert again is not None
    assert (again.commit_seq, again.name) == (5, board.name)


def test_a_rebuild_goes_on_where_it_stopped_and_refuses_another_history(told: World, fresh: World) -> None:
    board = told.container.boards.board("alpha")
    assert board is not None
    assert rebuild_board(board, told.container.commits, fresh.container.services) == 5
    assert rebuild_board(board, told.container.commits, fresh.container.services) == 0

    agent = fresh.agent("eve")
    session = agent.begin("spec_009")
    session.decide("A history of its own")
    session.commit()
    with pytest.raises(InvalidArgument):
        rebuild_board(board, told.container.commits, fresh.container.services)


def test_a_rebuilt_store_knows_what_was_consolidated(told: World, fresh: World) -> None:
    board = told.container.boards.board("alpha")
    assert board is not None
    rebuild_board(board, told.container.commits, fresh.container.services)
    row = told.container.commits.audit_row("alpha", 3)
    assert row is not None
    answer = fresh.agent("eve").call(
        "begin_consolidation",
        board_id="alpha",
        source_type="spec",
        source_id="spec_007",
        source_version=3,
        payload_hash=row["content_hash"],
    )
    assert answer["nothing_changed"] is True
