"""What holds for a board after every commit, checked the slow and plain way."""

from __future__ import annotations

from dataclasses import replace

from pulse_kg.domain import ids
from pulse_kg.domain.model import Node, content_digest
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.domain.relevance import Standing, relevance
from pulse_kg.domain.schema import ENDPOINT_PAIRS, SEARCHABLE_TYPES
from pulse_kg.domain.text import embedding_text
from tests.support.drafts import BOARD
from tests.support.graph_model import GraphModel, Indexed, embed


def check_board(model: GraphModel) -> None:
    """Everything that holds between the nodes, the edges and the vectors of a board."""
    for node in model.node_by_id.values():
        _check_node(model, node)
    for edge in model.edge_by_id.values():
        src, dst = model.node_by_id[edge.src], model.node_by_id[edge.dst]
        assert src is not dst
        assert (src.node_type, dst.node_type) in ENDPOINT_PAIRS[edge.rel_type]
        assert edge.edge_id == ids.edge_id(BOARD, edge.src, edge.rel_type, edge.dst, equal_types=src.node_type == dst.node_type)
        assert 1 <= edge.commit_seq <= model.seq
        assert edge.rel_type != "supersedes" or not dst.live
    _check_no_cycle(model.supersedes())
    assert model.index == {
        n.node_id: Indexed(n.live, embed(embedding_text(n.title, n.body)))
        for n in model.node_by_id.values()
        if n.node_type in SEARCHABLE_TYPES
    }
    assert [row["audit_row_id"] for row in model.rows] == list(range(1, model.seq + 1))


def _check_node(model: GraphModel, node: Node) -> None:
    assert 1 <= node.created_seq <= node.commit_seq <= model.seq
    assert (node.version == 1) == (node.commit_seq == node.created_seq)
    assert node.content_digest == content_digest(node.node_type, node.title, node.body, node.attributes)
    assert node.truncated == (node.node_type in SEARCHABLE_TYPES and embed(embedding_text(node.title, node.body)).truncated)
    assert (node.superseded_by is None) == (node.superseded_at is None)
    assert (node.status == "superseded") == (node.node_type == "Decision" and not node.live)
    assert (node.status is not None) == (node.node_type == "Decision")
    if node.superseded_by is not None:
        successor = model.node_by_id[node.superseded_by]
        assert successor.node_type == node.node_type
        assert node.node_id in model.supersedes()[successor.node_id]


def _check_no_cycle(below: dict[str, list[str]]) -> None:
    rest = {n: set(olds) for n, olds in below.items()}
    while rest:
        bottom = {n for n, olds in rest.items() if not olds & set(rest)}
        assert bottom, f"a cycle of supersedence among {sorted(rest)}"
        rest = {n: olds for n, olds in rest.items() if n not in bottom}


def check_step(before: GraphModel, plan: CommitPlan, after: GraphModel) -> None:
    """What a consolidation may and may not change."""
    assert before.node_by_id.keys() <= after.node_by_id.keys()
    assert before.edge_by_id.items() <= after.edge_by_id.items()
    for node_id, new in after.node_by_id.items():
        old = before.node_by_id.get(node_id)
        if old is None:
            assert (new.created_seq, new.commit_seq, new.version) == (plan.seq, plan.seq, 1)
        elif content_and_liveness(old) != content_and_liveness(new):
            assert (new.version, new.commit_seq) == (old.version + 1, plan.seq)
            assert not old.human_curated
            assert old.live, "a node of the past changed"
            assert made(old) == made(new)
        else:
            assert new == replace(old, relevance_score=new.relevance_score, last_recomputed_at=new.last_recomputed_at)


def content_and_liveness(node: Node) -> tuple[object, ...]:
    """What raises a version when it changes."""
    return (node.title, node.body, node.content_digest, node.source_ref, node.superseded_by)


def made(node: Node) -> tuple[object, ...]:
    """What stays as it was when the node was made."""
    return (node.node_type, node.created_seq, node.created_at, node.created_by, node.source_session_id, node.artifact)


def check_relevance(plan: CommitPlan, after: GraphModel) -> None:
    """The scores of inserted and changed nodes and of both ends of added edges are those of the graph after the commit."""
    recomputed = {n.node_id for n in plan.nodes} | {r.node_id for r in plan.relevances}
    assert recomputed >= {end for e in plan.edges for end in (e.src, e.dst)}
    for node_id in recomputed:
        node = after.node_by_id[node_id]
        around = after.surroundings(node_id)
        resolved = not node.live or node.revoked
        contradicting = [] if resolved else [c.confidence for c in around.contradictions if not c.src_resolved]
        expected = relevance(
            confidence=node.confidence,
            standing=Standing(around.degree, contradicting),
            query_hits=node.query_hits,
            last_queried_at=node.last_queried_at,
            priority_boost=node.priority_boost,
            now=plan.committed_at,
        )
        assert (node.relevance_score, node.last_recomputed_at) == (expected, plan.committed_at)
