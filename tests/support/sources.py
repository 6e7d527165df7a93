"""Every source of a query's graph, for the contract suite; and elements as a query sees them, made apart from the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from pulse_kg.adapters.gremlin import GremlinConnection
from pulse_kg.adapters.gremlin.source import GremlinGraphSources
from pulse_kg.cypher.memory_source import MemorySource
from pulse_kg.domain.instants import format_instant
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.plan import CommitPlan
from pulse_kg.ports.graph_source import GraphEdge, GraphNode, GraphSource
from tests.support.gremlin_double import GremlinDouble
from tests.support.stores import STORES, Stores

Of = Callable[[str], GraphSource]

_INSTANTS = ("created_at", "updated_at", "last_queried_at", "last_recomputed_at", "superseded_at")
_COMMON = (
    *"title body source_ref artifact artifact_version source_session_id created_seq commit_seq version content_digest created_by".split(),
    *"confidence relevance_score query_hits priority_boost superseded_by revocation_reason human_curated status".split(),
)
_OF_EDGES = "edge_id reason evidence confidence layer rule_id created_by commit_seq source_session_id".split()


def properties_of(node: Node) -> dict[str, Any]:
    """All properties of a node of a board."""
    common: dict[str, Any] = {"id": node.node_id, **{name: getattr(node, name) for name in _COMMON}}
    common |= {name: format_instant(at) for name in _INSTANTS if (at := getattr(node, name)) is not None}
    return {**node.attributes, **{name: value for name, value in common.items() if value is not None}}


def properties_of_edge(edge: Edge) -> dict[str, Any]:
    """All properties of an edge of a board."""
    found = {name: getattr(edge, name) for name in _OF_EDGES}
    return {"created_at": format_instant(edge.created_at), **{name: value for name, value in found.items() if value is not None}}


def in_memory(stores: Stores, board_id: str) -> MemorySource:
    """What a store has of a board, in memory."""
    nodes = [GraphNode(n.node_id, (n.node_type,), properties_of(n)) for n in stores.graph.all_nodes(board_id)]
    edges = [GraphEdge(e.edge_id, e.rel_type, e.src, e.dst, properties_of_edge(e)) for e in stores.graph.all_edges(board_id)]
    return MemorySource(nodes, edges, id_key="id")


def double_of(stores: Stores, *boards: str) -> GremlinDouble:
    """What a store has of some boards, on a server that is none."""
    double = GremlinDouble()
    for board_id in boards:
        double.put(stores.graph.all_nodes(board_id), ())
    for board_id in boards:
        double.put((), stores.graph.all_edges(board_id))
    return double


def over(double: GremlinDouble, vertex_ids: Literal["property", "supplied"] = "property", *, mark: int = 1_000) -> GremlinGraphSources:
    """The sources of a server."""
    return GremlinGraphSources(cast("GremlinConnection", double), applied=lambda _: mark, vertex_ids=vertex_ids)


def put_edges(stores: Stores, plan: CommitPlan, *edges: Edge) -> None:
    """Writes edges that no commit would make, as a part of one that was made."""
    stores.graph.apply(replace(plan, nodes=(), edges=edges, relevances=(), vectors=()))


@dataclass(frozen=True)
class Graphs:
    """A store to be filled, and what makes a source of what it has at that moment."""

    store: Stores
    of: Of


_MAKERS: Mapping[str, Callable[[Stores], Of]] = {
    "memory": lambda stores: lambda board_id: in_memory(stores, board_id),
    "gremlin-double": lambda stores: lambda board_id: over(double_of(stores, "alpha", "beta")).of(board_id),
    "gremlin-double-ids": lambda stores: lambda board_id: over(double_of(stores, "alpha", "beta"), "supplied").of(board_id),
}
SOURCES = (*STORES, *_MAKERS)


@contextmanager
def graphs(name: str, folder: Path) -> Iterator[Graphs]:
    """An empty store, and its sources or those of a double."""
    with STORES[name if name in STORES else "sqlite-memory"](folder) as store:
        yield Graphs(store, store.sources.of if name in STORES else _MAKERS[name](store))
