"""schema_info: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pulse_kg.cypher.limits import DEFAULT_ROWS, MAX_BYTES, MAX_HOPS, MOST_ROWS
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import ENDPOINT_PAIRS, MAX_TEXT, NODE_TYPES, REL_TYPES, SCHEMA_VERSION, AttributeSpec, NodeType, RelType
from pulse_kg.mcp.arguments import ToolInput
from pulse_kg.mcp.tools.add_node_candidate import MAX_TITLE
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId
from pulse_kg.mcp.tools.reading import MAX_QUERY
from pulse_kg.usecases.reading import MAX_LISTED
from pulse_kg.usecases.schema_info import schema_info
from pulse_kg.usecases.services import Limits, Services
from pulse_kg.usecases.verify_grounding import MAX_ANSWER_BYTES


class SchemaInput(ToolInput):
    """Arguments of schema_info."""

    board_id: BoardId


class IndexOutput(Answer):
    """A vector index."""

    node_type: NodeType
    dim: int
    metric: Literal["cosine"]
    model: str | None = None


class AttributeOutput(Answer):
    """What an attribute takes."""

    kind: str
    choices: list[str] | None = None


class SchemaOutput(Answer):
    """Answer of schema_info."""

    schema_version: str
    node_types: list[NodeType]
    rel_types: list[RelType]
    vector_indexes: list[IndexOutput]
    attributes: dict[NodeType, dict[str, AttributeOutput]]
    endpoint_pairs: dict[RelType, list[list[NodeType]]]
    limits: dict[str, int]


def _schema(caller: Caller, given: SchemaInput, services: Services) -> Mapping[str, Any]:
    info = schema_info(caller, given.board_id, services)
    indexes: list[dict[str, Any]] = [{"node_type": i.node_type, "dim": i.dim, "metric": i.metric} for i in info.indexes]
    if indexes:
        indexes[0]["model"] = info.indexes[0].model  # one for all; named once
    return {
        "schema_version": SCHEMA_VERSION,
        "node_types": list(NODE_TYPES),
        "rel_types": list(REL_TYPES),
        "vector_indexes": indexes,
        "attributes": {t: {key: _attribute(spec) for key, spec in specs.items()} for t, specs in info.attributes.items()},
        "endpoint_pairs": {rel: [list(pair) for pair in ENDPOINT_PAIRS[rel]] for rel in REL_TYPES},
        "limits": _limits(info.limits),
    }


def _attribute(spec: AttributeSpec) -> dict[str, Any]:
    return {"kind": spec.kind, "choices": list(spec.choices)} if spec.choices else {"kind": spec.kind}


def _limits(limits: Limits) -> dict[str, int]:
    return {
        "title_characters": MAX_TITLE,
        "body_bytes": limits.body_bytes,
        "attribute_characters": MAX_TEXT,
        "candidate_bytes": limits.candidate_bytes,
        "node_candidates": limits.node_candidates,
        "edge_candidates": limits.edge_candidates,
        "open_sessions": limits.open_sessions,
        "session_ttl_seconds": limits.session_ttl_seconds,
        "consolidations_per_minute": limits.consolidations_per_minute,
        "cypher_per_minute": limits.cypher_per_minute,
        "cypher_bytes": MAX_BYTES,
        "cypher_rows": DEFAULT_ROWS,
        "cypher_rows_with_limit": MOST_ROWS,
        "cypher_path_length": MAX_HOPS,
        "cypher_seconds": int(limits.cypher_seconds),
        "query_characters": MAX_QUERY,
        "answer_text_bytes": MAX_ANSWER_BYTES,
        "list_results": MAX_LISTED,
        "response_bytes": limits.response_bytes,
    }


TOOL = Tool(
    "schema_info",
    "Show the schema",
    "What a board's graph is made of: schema_version, node and relationship types, the attributes that each node type takes (the board's "
    "own among them; choice kinds list their words), which pairs of types each relationship joins (from, to), and the limits of this "
    "installation. vector_indexes lists the types that are searched by meaning; the other types are found by title. Read it before a "
    "Cypher query, or when a candidate was refused; it changes rarely.",
    "kg.power.schema_info",
    hints(read_only=True, idempotent=True),
    SchemaInput,
    SchemaOutput,
    _schema,
)
