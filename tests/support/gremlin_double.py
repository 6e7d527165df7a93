"""A Gremlin server in a list: it runs the few steps that the reads of this project take, and behaves as badly as a real one may.

Its answers come in another order each time and some of them twice, a key whose traversal finds nothing is absent from its map, and a
lookup by key may find a vertex that has no properties.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulse_kg.adapters.gremlin.elements import NID, edge_properties, nid, node_properties
from pulse_kg.domain.model import Edge, Node
from pulse_kg.errors import StoreUnavailable

NODE = Node(
    board_id="beta",
    node_id="dec_1",
    node_type="Decision",
    title="canary",
    body="",
    attributes={},
    source_ref="spec:s",
    artifact="spec:s",
    artifact_version=None,
    source_session_id="kgs_1",
    created_seq=1,
    commit_seq=1,
    version=1,
    content_digest="sha256:0",
    created_at=0,
    updated_at=0,
    created_by="agt_ada",
)
EDGE = Edge("beta", "edge_1", "dec_1", "contradicts", "dec_2", 0, "agt_ada", 1, "kgs_1")
"""A node and an edge of a board that nobody asks for."""


@dataclass(eq=False)
class Vertex:
    """A vertex; the key is its id too."""

    key: str
    properties: Mapping[str, Any]
    out: list[Arc] = field(default_factory=list)
    into: list[Arc] = field(default_factory=list)


@dataclass(eq=False)
class Arc:
    """An edge."""

    label: str
    properties: Mapping[str, Any]
    tail: Vertex
    head: Vertex


Step = Callable[["GremlinDouble", list[Any], Any], Iterable[Any]]


class GremlinDouble:
    """Stands for a `GremlinConnection`.

    Attributes:
        requests: How many were sent.
        fails_at: The number of the request from which on the server is away.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._vertices: dict[str, Vertex] = {}
        self._phantom = Vertex("", {})
        self.requests = 0
        self.fails_at: int | None = None

    # What is in it.

    def put(self, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
        """Adds the nodes and edges of a board."""
        for node in nodes:
            key = nid(node.board_id, node.node_id)
            self._vertices[key] = Vertex(key, {NID: key, **node_properties(node, node.commit_seq)})
        for edge in edges:
            self.join(edge)

    def join(self, edge: Edge, *, to_board: str | None = None, to: Vertex | None = None) -> None:
        """Adds an edge; perhaps to a node of another board, or to a vertex that is no node."""
        tail = self._vertices[nid(edge.board_id, edge.src)]
        head = self._vertices[nid(to_board or edge.board_id, edge.dst)] if to is None else to
        arc = Arc(edge.rel_type, edge_properties(edge), tail, head)
        tail.out.append(arc)
        head.into.append(arc)

    @property
    def phantom(self) -> Vertex:
        """A vertex without properties."""
        return self._phantom

    # Requests.

    def submit(self, traversal: Any) -> list[Any]:
        """See `GremlinConnection.submit`."""
        self.requests += 1
        if self.fails_at is not None and self.requests >= self.fails_at:
            raise StoreUnavailable("graph")
        results = self._run(traversal.bytecode, [None])
        results += [r for r in results if isinstance(r, dict) and {"kind", "node_id"} & r.keys() and self._random.random() < 0.2]
        self._random.shuffle(results)
        return results

    def _run(self, bytecode: Any, start: list[Any]) -> list[Any]:
        found, steps = start, list(bytecode.step_instructions)
        while steps:
            name, *arguments = steps.pop(0)
            modulators = []
            while steps and steps[0][0] == "by":
                modulators.append(steps.pop(0)[1])
            found = (
                [result for each in found for result in self._each(name, arguments, modulators, each)]
                if name in _EACH
                else (self._all(name, arguments, modulators, found))
            )
        return found

    def _each(self, name: str, arguments: list[Any], modulators: list[Any], at: Any) -> Iterable[Any]:  # noqa: C901, PLR0911 - a table
        match name:
            case "V":
                # JanusGraph may answer an id that it has not with a vertex of no properties.
                return [self._vertices.get(key, self._phantom) for key in arguments] or [*self._vertices.values(), self._phantom]
            case "outE" | "inE":
                return [arc for arc in (at.out if name == "outE" else at.into) if not arguments or arc.label in arguments]
            case "outV" | "inV":
                return [at.tail if name == "outV" else at.head]
            case "bothV":
                return [at.tail, at.head]
            case "has":
                key, wanted = arguments
                return [at] if key in at.properties and _fits(wanted, at.properties[key]) else []
            case "is":
                return [at] if _fits(arguments[0], at) else []
            case "filter":
                return [at] if self._run(arguments[0], [at]) else []
            case "or":
                return [at] if any(self._run(traversal, [at]) for traversal in arguments) else []
            case "values":
                return [at.properties[key] for key in arguments if key in at.properties]
            case "valueMap":
                wrap = isinstance(at, Vertex)
                return [{key: [at.properties[key]] if wrap else at.properties[key] for key in arguments if key in at.properties}]
            case "union":
                return [result for traversal in arguments for result in self._run(traversal, [at])]
            case "project":
                found = {key: self._by(by, at) for key, by in zip(arguments, modulators, strict=True)}
                return [{key: results[0] for key, results in found.items() if results}]
            case "constant" | "inject":
                return arguments
            case _:
                return [at]

    def _all(self, name: str, arguments: list[Any], modulators: list[Any], found: list[Any]) -> list[Any]:
        if name == "dedup":
            return list(dict.fromkeys(found))
        assert name == "groupCount", f"the double has no step {name}"
        return [dict(Counter(self._by(modulators[0], at)[0] for at in found))]

    def _by(self, by: Any, at: Any) -> list[Any]:
        if hasattr(by, "step_instructions"):
            return self._run(by, [at])
        return [at.label] if getattr(by, "name", None) == "label" else [at.properties[by]]


_EACH = frozenset("V outE inE outV inV bothV has is filter or values valueMap union project constant inject identity".split())


def _fits(wanted: Any, found: Any) -> bool:
    match getattr(wanted, "operator", None):
        case None:
            return type(wanted) is type(found) and wanted == found
        case "within":
            return found in wanted.value
        case "lte":
            return bool(found <= wanted.value)
        case "containing":
            return wanted.value in found
        case operator:
            raise AssertionError(f"the double has no predicate {operator}")
