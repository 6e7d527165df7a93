"""query_cypher: a read-only query in openCypher over one board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.cypher import budget, engine
from pulse_kg.cypher.encode import encode
from pulse_kg.cypher.limits import MAX_BYTES
from pulse_kg.cypher.notices import Vocabulary
from pulse_kg.domain.model import EDGE_PROPERTIES, NODE_PROPERTIES, Board
from pulse_kg.domain.permissions import Caller
from pulse_kg.domain.schema import ATTRIBUTES, NODE_TYPES, REL_TYPES
from pulse_kg.errors import PayloadTooLarge, RateLimited
from pulse_kg.ports.graph_source import GraphNode
from pulse_kg.ports.reading import Place
from pulse_kg.usecases.access import granted_board
from pulse_kg.usecases.add_node_candidate import added_attributes
from pulse_kg.usecases.services import Deadline, Services

NODE_KEYS: Final = frozenset({"id", *NODE_PROPERTIES}).union(*ATTRIBUTES.values())
"""The properties that a node of any board may have."""
EDGE_KEYS: Final = frozenset({"edge_id", *EDGE_PROPERTIES})
_PATIENCE: Final = 0.05
"""Seconds that a query waits at most to be counted while a commit is being written: reads do not wait for commits."""
_ANSWER_SHARE: Final = 0.05  # of the time is kept for the answer


@dataclass(frozen=True)
class CypherAnswer:
    """The answer, ready for JSON.

    Attributes:
        columns: The names of the columns.
        rows: A value for each column.
        elapsed_ms: How long it took.
        truncated: Whether there were more rows than may be shown.
        notices: What a reader should know of the rows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    elapsed_ms: int
    truncated: bool
    notices: Sequence[str]


def query_cypher(caller: Caller, board_id: str, cypher: str, params: Mapping[str, Any], services: Services) -> CypherAnswer:
    """Runs a query; counts a hit for each node in its rows.

    Args:
        caller: Who asks.
        board_id: The board; the query sees nothing else.
        cypher: At most 16 KiB.
        params: Name → JSON value.
        services: The ports.

    Raises:
        PayloadTooLarge: The query is too long.
        PermissionDenied: The board is not granted.
        RateLimited: The agent asked too often in this minute, or too much at once.
        InvalidCypher, UnsafeCypher: The query can't be run.
        ResourceExhausted, QueryTimeout: It used too much.
    """
    size = len(cypher.encode())
    if size > MAX_BYTES:
        raise PayloadTooLarge(
            f"The query has {size} bytes, and {MAX_BYTES} are allowed. Make it shorter, and give long values as params.",
            {"bytes": size, "limit_bytes": MAX_BYTES, "path": "cypher"},
        )
    began, now = services.clock.monotonic(), services.clock.now()
    deadline = Deadline(services)
    board = granted_board(caller, board_id, services)
    at_once = services.limits.cypher_at_once
    with services.running.turn(caller.agent_id, of_agent=at_once, in_all=2 * at_once):
        _take_turn(caller, now, services)
        found, places = _run(board, cypher, params, now, deadline, services)
    if found.node_ids:
        # After the snapshot: what is counted must not wait for what is read, nor the other way round.
        services.hits.count(board_id, found.node_ids, now=now)
    rows = _encoded(found.rows, places)
    return CypherAnswer(found.columns, rows, round((services.clock.monotonic() - began) * 1_000), found.truncated, found.notices)


def _run(
    board: Board, cypher: str, params: Mapping[str, Any], now: int, deadline: Deadline, services: Services
) -> tuple[engine.QueryResult, Mapping[str, Place]]:
    """What the query gives, and where the nodes in it stand."""
    query = engine.compile_query(cypher, params, vocabulary=vocabulary_of(board))
    limits = budget.Limits(seconds=min(services.limits.cypher_seconds, deadline.left() * (1 - _ANSWER_SHARE)))
    with services.snapshot():
        source = services.sources.of(board.board_id)
        found = engine.run(
            query,
            source,
            now=now,
            budget=budget.Budget(services.clock.monotonic, limits),
            max_bytes=services.limits.response_bytes,
        )
        places = services.queries.places(board.board_id, found.node_ids) if found.node_ids else {}
    return found, places


def _take_turn(caller: Caller, now: int, services: Services) -> None:
    limit = services.limits.cypher_per_minute
    wait = services.rates.take(f"cypher:{caller.agent_id}", limit=limit, window_seconds=60, now=now, patience=_PATIENCE)
    if wait is not None:
        raise RateLimited(
            f"No more calls of query_cypher this minute (limit {limit}). Go on in {wait} s, or use the other tools that read.",
            {"retry_after_seconds": wait, "limit_per_minute": limit},
        )


def vocabulary_of(board: Board) -> Vocabulary:
    """The names that a query on a board may use."""
    own = frozenset(key for keys in added_attributes(board).values() for key in keys)
    return Vocabulary(frozenset(NODE_TYPES), frozenset(REL_TYPES), NODE_KEYS | own, EDGE_KEYS)


def _encoded(rows: Sequence[Sequence[Any]], places: Mapping[str, Place]) -> list[list[Any]]:
    """The rows for JSON, every node with what the other tools say of it too."""

    def marks(node: GraphNode) -> dict[str, Any]:
        known = node.properties
        found: dict[str, Any] = {}
        if "superseded_by" in known:
            found["superseded_by"] = known["superseded_by"]
        if known.get("status") == "revoked" or "revocation_reason" in known:
            found["status"] = "revoked"
        place = places.get(node.node_id)
        if place is not None and place.contradicted:
            found["contradicted"] = True
        return found

    return [[encode(value, marks) for value in row] for row in rows]
