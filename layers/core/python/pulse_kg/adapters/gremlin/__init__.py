"""The graph on a Gremlin server: JanusGraph here, Neptune in AWS."""

from pulse_kg.adapters.gremlin.connection import GremlinConnection
from pulse_kg.adapters.gremlin.graph import GremlinGraphStore

__all__ = ["GremlinConnection", "GremlinGraphStore"]
