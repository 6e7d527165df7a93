"""get_supersedence_chain: its words and models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.permissions import Caller
from pulse_kg.mcp.arguments import ToolInput, whole
from pulse_kg.mcp.tools.base import Answer, Tool, hints
from pulse_kg.mcp.tools.fields import BoardId, NodeId
from pulse_kg.mcp.tools.reading import NodeRef, node_ref, truncated_if
from pulse_kg.usecases.get_supersedence_chain import get_supersedence_chain
from pulse_kg.usecases.services import Services

MAX_DEPTH = 50


class ChainInput(ToolInput):
    """Arguments of get_supersedence_chain."""

    board_id: BoardId
    node_id: NodeId
    max_depth: Annotated[
        int, Field(ge=1, le=MAX_DEPTH, description="How many nodes at most, counted from the newest."), BeforeValidator(whole)
    ] = 10


class ChainNode(NodeRef):
    """A node of the chain."""

    created_at: str


class ChainOutput(Answer):
    """Answer of get_supersedence_chain."""

    head: str
    chain: list[ChainNode]
    depth: int
    truncated: bool = False


def _chain(caller: Caller, given: ChainInput, services: Services) -> Mapping[str, Any]:
    found = get_supersedence_chain(caller, given.board_id, given.node_id, given.max_depth, services)
    chain = [node_ref(seen, created_at=format_instant(seen.node.created_at)) for seen in found.chain]
    return truncated_if(found.truncated, {"head": found.head, "chain": chain, "depth": len(chain)})


TOOL = Tool(
    "get_supersedence_chain",
    "Follow what superseded what",
    "From any version of a statement, old or new, to the one that holds now and back through all that it replaced. head is the node that "
    "holds: go by it, not by the one you came with. chain runs from newest to oldest and begins with head; depth is its length. With "
    "truncated true there is more than max_depth shows; the node you asked for is in the chain all the same, at the end if need be.",
    "kg.query.supersedence_chain",
    hints(read_only=True, idempotent=True),
    ChainInput,
    ChainOutput,
    _chain,
)
