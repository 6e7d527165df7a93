"""schema_info: what a board's graph is made of, and what may be asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import ATTRIBUTES, CONFIDENCE, NODE_TYPES, AttributeSpec, NodeType
from pulse_kg.ports.vectors import IndexInfo
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.add_node_candidate import added_attributes
from pulse_kg.usecases.services import Limits, Services


@dataclass(frozen=True)
class SchemaInfo:
    """The answer, as far as it is not the same for every board.

    Attributes:
        indexes: As the store has them, in the order of the node types.
        attributes: Node type → key → what it takes; the board's own keys after the common ones, by name.
        limits: The bounds of this installation.
    """

    indexes: Sequence[IndexInfo]
    attributes: Mapping[NodeType, Mapping[str, AttributeSpec]]
    limits: Limits


def schema_info(caller: Caller, board_id: str, services: Services) -> SchemaInfo:
    """The schema of a board.

    Raises:
        PermissionDenied: The board is not granted.
        StoreUnavailable: The index can't be asked.
    """
    board = granted_board(caller, board_id, services)
    added = added_attributes(board)
    attributes = {
        node_type: {**ATTRIBUTES[node_type], CONFIDENCE: AttributeSpec("number"), **dict(sorted(added.get(node_type, {}).items()))}
        for node_type in NODE_TYPES
    }
    return SchemaInfo(_indexes(board_id, services), attributes, services.limits)


def _indexes(board_id: str, services: Services) -> Sequence[IndexInfo]:
    found = services.vectors.describe(board_id)
    if not found:  # nothing was embedded yet; as for every first use, the store learns which model is its own
        services.vectors.check_model(services.embedder.info())
        found = services.vectors.describe(board_id)
    return found
