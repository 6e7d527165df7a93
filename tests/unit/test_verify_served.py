"""What verify finds on the served stores, where a commit is decided first and carried out after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pulse_kg.adapters.dynamodb.journal import STAGED_GRACE_MS
from pulse_kg.adapters.served.commits import LATE_MS
from pulse_kg.domain.plan import CommitPlan, VectorWrite
from pulse_kg.usecases.verify import verify_board
from tests.support.emulated import Crash, Process, Servers, servers
from tests.support.world import Agent, World


class Ground:
    """Two processes on one set of servers, and a board with a commit of two nodes and an edge."""

    def __init__(self, of: Servers) -> None:
        self.servers, self.one, self.two = of, of.process(), of.process()
        of.board(self.one, "alpha")
        self.world: World = of.world(self.one)
        self.ada: Agent = self.world.agent()
        of_session = self.ada.begin()
        a, b = of_session.decide("Retries stop after a day"), of_session.decide("Peers wait")
        of_session.edge(a, "relates_to", b)
        self.first = of_session.commit()

    def findings(self, process: Process | None = None) -> tuple[str, ...]:
        return verify_board("alpha", (process or self.two).container.services, pause=lambda _: None).findings

    def delete(self, table: str) -> None:
        with self.servers.data._database.writing() as connection:
            for statement in ("PRAGMA defer_foreign_keys = 1", f"DELETE FROM {table}"):  # noqa: S608
                connection.execute(statement)

    def commit_and_die(self, step: str) -> None:
        of = self.ada.begin()
        of.decide("Logs are kept")
        self.one.steps.at(step, "before", self.one.steps.crash)
        with pytest.raises(Crash):
            of.commit()


@pytest.fixture
def ground() -> Iterator[Ground]:
    with servers() as made:
        yield Ground(made)


def test_a_board_whose_commits_were_all_carried_out_is_clean(ground: Ground) -> None:
    assert ground.findings() == ()


def test_a_stray_node_edge_and_vector_are_found(ground: Ground) -> None:
    nodes, edges, vectors = ground.servers.stored("alpha")
    (node, *_), (edge,) = nodes.values(), edges.values()
    added = [replace(node, node_id="dec_stray", commit_seq=1), replace(node, node_id="dec_other")]
    between = replace(edge, edge_id="edge_stray", src="dec_stray", dst="dec_other")
    write = VectorWrite("dec_none", "Decision", live=True, text_vector=vectors[node.node_id][0])
    strays = CommitPlan("alpha", 1, 0, tuple(added), (between,), (write,), (), audit={}, event={}, answer={})
    ground.servers.data.graph.apply(strays)
    ground.servers.data.vectors.apply(strays)
    assert ground.findings() == (
        "node dec_other is in the graph, and no commit made it",
        "node dec_stray is in the graph, and no commit made it",
        "edge edge_stray is in the graph, and no commit made it",
        "there is a vector of dec_none, which is no searchable node",
        "node dec_other has no vector",
        "node dec_stray has no vector",
    )


@pytest.mark.parametrize(
    ("table", "finding"), [("edges", "edge {edge} of commit 1 is not in the graph"), ("vectors", "{node} has no vector")]
)
def test_a_missing_element_is_found(ground: Ground, table: str, finding: str) -> None:
    ground.delete(table)
    ground.servers.data.vectors.forget("alpha")
    told = {"edge": ground.first["edges_added"][0]["edge_id"], "node": f"node {ground.first['applied']['added'][0]['node_id']}"}
    assert finding.format(**told) in ground.findings()


def test_a_missing_node_is_found(ground: Ground) -> None:
    ground.delete("edges")
    ground.delete("nodes")
    node_id = ground.first["applied"]["added"][0]["node_id"]
    assert f"node {node_id} of commit 1 is not in the graph" in ground.findings()


@pytest.mark.parametrize("step", ["graph.apply", "vectors.apply", "journal.mark_applied"])
def test_a_decided_commit_that_nobody_carries_out_is_found_and_left_to_the_relay(ground: Ground, step: str) -> None:
    ground.commit_and_die(step)
    assert "commit 2 is decided and not carried out" in ground.findings()
    assert "commit 2 is decided and not carried out" in ground.findings()
    ground.two.container.relay_outbox(60)
    assert ground.findings() == ()


@pytest.mark.parametrize("step", ["graph.apply", "vectors.apply", "journal.mark_applied"])
def test_a_commit_that_is_just_being_carried_out_is_waited_for(ground: Ground, step: str) -> None:
    ground.commit_and_die(step)
    pauses: list[float] = []

    def then_it_is_done(seconds: float) -> None:
        pauses.append(seconds)
        ground.two.container.relay_outbox(60)

    assert verify_board("alpha", ground.two.container.services, pause=then_it_is_done).clean
    assert len(pauses) == 1


def test_an_event_that_was_not_sent_is_found_when_it_is_late(ground: Ground) -> None:
    ground.servers.queue.full = True
    of = ground.ada.begin()
    of.decide("Logs are kept")
    of.commit()
    assert ground.findings() == ()
    ground.servers.clock.advance(seconds=LATE_MS / 1_000)
    assert ground.findings() == ("the event of commit 2 was not sent",)
    assert ground.findings(ground.servers.process(queue=False)) == ()
    ground.servers.queue.full = False
    ground.two.container.relay_outbox(60)
    assert ground.findings() == ()


def test_texts_of_a_commit_that_was_never_decided_are_found_when_nobody_sweeps(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse_kg.adapters.dynamodb.blobs.INLINE_BYTES", 300)
    ground.commit_and_die("journal.decide")
    assert ground.findings() == ()
    ground.servers.clock.advance(seconds=(STAGED_GRACE_MS + LATE_MS) / 1_000)
    (finding,) = ground.findings()
    assert finding.startswith("the texts of a commit that was never decided, 2-2-")
    ground.two.container.relay_outbox(60)
    assert ground.findings() == ()
