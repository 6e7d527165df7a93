"""The audit log is the system of record: what it says is what the store has, and from it alone a store can be made anew."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pulse_kg.domain.audit import Administration
from pulse_kg.domain.model import Node
from pulse_kg.errors import InvalidArgument, NodeNotFound
from pulse_kg.usecases.administration import administer_node
from pulse_kg.usecases.rebuild import rebuild_board
from pulse_kg.usecases.verify import verify_board
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
