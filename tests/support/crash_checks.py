"""What must be true of a store after whatever happened to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pulse_kg.bootstrap import Container
from pulse_kg.domain.schema import SEARCHABLE_TYPES
from pulse_kg.usecases.verify import verify_board


def check_board(container: Container, board: str, answers: Sequence[Mapping[str, Any]], *, unacknowledged: int = 0) -> int:
    """Looks for every acknowledged commit once in audit, outbox, graph and vectors, and for nothing beyond them.

    Args:
        container: The store.
        board: The board.
        answers: What commits answered, in any order.
        unacknowledged: How many commits may be there beside them, because their answers were lost.

    Returns:
        How many commits there are.
    """
    assert verify_board(board, container.services).findings == ()
    rows = list(container.commits.audit_rows(board))
    stored = container.boards.board(board)
    assert stored is not None
    assert [row["audit_row_id"] for row in rows] == list(range(1, stored.commit_seq + 1)), "commit_seq has gaps"
    assert [record.seq for record in container.commits.outbox(board)] == [row["audit_row_id"] for row in rows]
    assert len({row["session_id"] for row in rows}) == len(rows), "a session was committed twice"
    assert len({record.event["id"] for record in container.commits.outbox(board)}) == len(rows)
    by_seq = {row["audit_row_id"]: row for row in rows}
    assert len({answer["audit_row_id"] for answer in answers}) == len(answers), "two commits were told the same number"
    for answer in answers:
        row = by_seq[answer["audit_row_id"]]
        told = [answer[key] for key in ("session_id", "applied", "edges_added", "superseded_nodes")]
        assert told == [row[key] for key in ("session_id", "applied", "edges_added", "superseded_nodes")]
    assert 0 <= len(rows) - len(answers) <= unacknowledged

    nodes = {node.node_id: node for node in container.graph.all_nodes(board)}
    edges = {edge.edge_id: edge for edge in container.graph.all_edges(board)}
    added = Counter(_ids(rows, "added"))
    assert set(added.values()) <= {1}
    assert set(nodes) == set(added)
    assert {edge["edge_id"] for row in rows for edge in row["edges_added"]} == set(edges)
    searchable = {n for n, node in nodes.items() if node.node_type in SEARCHABLE_TYPES}
    assert {node_id for node_id, _, _ in container.vectors.all_vectors(board)} == searchable
    superseded = Counter(old["node_id"] for row in rows for old in row["superseded_nodes"])
    assert set(superseded.values()) <= {1}, "a node was superseded twice"
    assert {n for n, node in nodes.items() if not node.live} == set(superseded)
    return len(rows)


def _ids(rows: Iterable[Mapping[str, Any]], hint: str) -> list[str]:
    return [entry["node_id"] for row in rows for entry in row["applied"][hint]]


def chain_of(container: Container, board: str, root: str) -> list[str]:
    """The nodes that a root leads to by `superseded_by`, the live head last; every other node of the chain has one successor."""
    nodes = {node.node_id: node for node in container.graph.all_nodes(board)}
    chain = [root]
    while (newer := nodes[chain[-1]].superseded_by) is not None:
        assert newer not in chain, "the chain goes in a circle"
        chain.append(newer)
    ends = {edge.src for edge in container.graph.all_edges(board) if edge.rel_type == "supersedes"} | {root}
    assert [n for n in sorted(ends) if nodes[n].live] == [chain[-1]], "there is not exactly one live head"
    return chain


def check_sessions(container: Container) -> Mapping[str, int]:
    """Looks whether sessions, their candidates and the commits agree; counts the sessions by their state."""
    store: Any = container.store
    with store._database.reading() as connection:
        sessions = connection.execute("SELECT session_id, board_id, state, nodes, edges, answer FROM sessions").fetchall()
        candidates = Counter(connection.execute("SELECT session_id, kind FROM candidates").fetchall())
        damaged = connection.execute("PRAGMA integrity_check").fetchall()
        strays = connection.execute("PRAGMA foreign_key_check").fetchall()
    assert damaged == [("ok",)]
    assert strays == []
    committed = {row["session_id"] for _, board, *_ in sessions for row in container.commits.audit_rows(board)} if sessions else set()
    for session_id, _, state, nodes, edges, answer in sessions:
        assert (state == "committed") == (session_id in committed) == (answer is not None)
        kept = (candidates.pop((session_id, "node"), 0), candidates.pop((session_id, "edge"), 0))
        assert kept == ((nodes, edges) if state == "open" else (0, 0))
    assert candidates == {}, "candidates of no session"
    return Counter(state for _, _, state, *_ in sessions)
