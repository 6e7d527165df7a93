"""What a commit plan writes into graph and index, as JSON: kept beside its decision, so that anybody can finish it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pulse_kg.domain.model import Edge, Node, TextVector
from pulse_kg.domain.plan import CommitPlan, RelevanceWrite, VectorWrite


def writes_of(plan: CommitPlan) -> dict[str, Any]:
    """The writes of a plan."""
    return {
        "nodes": [asdict(node) for node in plan.nodes],
        "edges": [asdict(edge) for edge in plan.edges],
        "vectors": [_vector_dict(write) for write in plan.vectors],
        "relevances": [asdict(write) for write in plan.relevances],
    }


def plan_of(board_id: str, seq: int, committed_at: int, writes: Mapping[str, Any], *, audit: Mapping[str, Any]) -> CommitPlan:
    """The plan again, as far as graph and index need it: without session, event and answer."""
    return CommitPlan(
        board_id=board_id,
        seq=seq,
        committed_at=committed_at,
        nodes=tuple(Node(**node) for node in writes["nodes"]),
        edges=tuple(Edge(**edge) for edge in writes["edges"]),
        vectors=tuple(_vector_of(write) for write in writes["vectors"]),
        relevances=tuple(RelevanceWrite(**write) for write in writes["relevances"]),
        audit=audit,
        event={},
        answer={},
        restored=True,
    )


def _vector_dict(write: VectorWrite) -> dict[str, Any]:
    text = write.text_vector
    shown = None if text is None else {"vector": base64.b64encode(text.vector).decode(), "truncated": text.truncated}
    return {"node_id": write.node_id, "node_type": write.node_type, "live": write.live, "text_vector": shown}


def _vector_of(shown: Mapping[str, Any]) -> VectorWrite:
    text = shown["text_vector"]
    vector = None if text is None else TextVector(base64.b64decode(text["vector"]), text["truncated"])
    return VectorWrite(shown["node_id"], shown["node_type"], shown["live"], vector)
