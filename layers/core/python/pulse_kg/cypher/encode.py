"""Values of a run → JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pulse_kg.cypher.temporal import Date, DateTime, Duration
from pulse_kg.cypher.values import Path
from pulse_kg.ports.graph_source import GraphEdge, GraphNode

Marks = Callable[[GraphNode], Mapping[str, Any]]


def encode(value: Any, marks: Marks | None = None) -> Any:
    """A value as JSON has it.

    A node is ``{id, label, properties}``, a relationship ``{id, type, from, to, properties}``, a path the list of its nodes and
    relationships in turn; NaN and the infinities are strings, and so are instants, dates and durations, in ISO form.

    Args:
        value: Of a run.
        marks: What is to be said of a node beside.
    """
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is int:
        return value
    if kind is float:
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if kind is list:
        return [encode(item, marks) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item, marks) for key, item in value.items()}
    return _element(value, marks)


def _element(value: Any, marks: Marks | None) -> Any:
    if isinstance(value, GraphNode):
        label = value.labels[0] if len(value.labels) == 1 else list(value.labels)
        own = {"id": value.node_id, "label": label, "properties": encode(_sorted(value.properties))}
        return own if marks is None else {**own, **marks(value)}
    if isinstance(value, GraphEdge):
        ends = {"from": value.src, "to": value.dst}
        return {"id": value.edge_id, "type": value.rel_type, **ends, "properties": encode(_sorted(value.properties))}
    if isinstance(value, Path):
        turns = [value.nodes[0], *(part for pair in zip(value.rels, value.nodes[1:], strict=True) for part in pair)]
        return [encode(part, marks) for part in turns]
    if isinstance(value, DateTime | Date | Duration):
        return value.text
    raise TypeError(type(value).__name__)


def _sorted(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: properties[key] for key in sorted(properties)}
