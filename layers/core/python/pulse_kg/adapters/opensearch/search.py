"""Search by meaning over several boards and types, in one request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pulse_kg.adapters.opensearch.answers import field, hits_of
from pulse_kg.adapters.opensearch.client import OpenSearchClient
from pulse_kg.adapters.opensearch.vectors import first_size, larger_size, nearest_query, score_of
from pulse_kg.domain.instants import Instant
from pulse_kg.domain.schema import SEARCHABLE_TYPES, NodeType
from pulse_kg.ports.reading import Found

_FIELDS: Final = ("board_id", "node_id", "node_type", "live", "created_seq")
_CLAUSES: Final = 16
"""Boards that have a clause of their own each from the first request on."""


class OpenSearchVectorSearch:
    """The search; approximate. Of more than 2,000 equally near ones at the last place any may be taken.

    Nodes that were written before the index had their time are found only without `since` and `until`; `pulse-kg reindex` adds it.

    Args:
        client: The server.
        name: The index's alias.
        applied: Boards → the number of each one's last commit that was wholly applied.
    """

    def __init__(self, client: OpenSearchClient, *, name: str, applied: Callable[[Collection[str]], Mapping[str, int]]) -> None:
        self._client, self._name, self._applied = client, name, applied

    def search(
        self,
        board_ids: Collection[str],
        node_types: Collection[NodeType],
        vector: bytes,
        *,
        limit: int,
        min_score: float = 0.0,
        live_only: bool = False,
        since: Instant | None = None,
        until: Instant | None = None,
    ) -> list[Found]:
        """See `VectorSearch.search`.

        One request; another where many are equally near, or where more than 16 boards are searched and one of them is in the middle of a
        commit.
        """
        boards, types = sorted(set(board_ids)), [t for t in SEARCHABLE_TYPES if t in node_types]
        if not boards or not types or limit < 1:
            return []
        wanted: list[dict[str, Any]] = [{"terms": {"node_type": types}}]
        if live_only:
            wanted.append({"term": {"live": True}})
        if since is not None or until is not None:
            span = {"gte": since, "lt": until}
            wanted.append({"range": {"at": {end: at for end, at in span.items() if at is not None}}})
        marks = self._applied(boards)
        apart = set(boards) if len(boards) <= _CLAUSES else set[str]()
        size = first_size(limit)
        while True:
            filters = [*wanted, _visible(boards, apart, marks)]
            rows = self._client.retried(partial(self._ask, boards, nearest_query(vector, filters, size, _FIELDS)))
            early = {found.board_id for found, created_seq in rows if created_seq > marks[found.board_id]}
            if early - apart:  # a commit that began since the marks were read took places of others
                apart |= early
                continue
            found = sorted((found for found, created_seq in rows if created_seq <= marks[found.board_id]), key=_place)
            larger = larger_size(size, limit)
            if not (limit < len(found) == size and found[limit - 1].score == found[-1].score) or larger == size:
                return [one for one in found[:limit] if one.score >= min_score]
            size = larger

    def _ask(self, boards: Sequence[str], query: Mapping[str, Any]) -> list[tuple[Found, int]]:
        params = {"allow_partial_search_results": "false", **({"routing": boards[0]} if len(boards) == 1 else {})}
        hits = hits_of(self._client.ask("POST", f"/{self._name}/_search", query, params=params), *boards)
        return [
            (
                Found(field(hit, "board_id"), field(hit, "node_id"), field(hit, "node_type"), score_of(hit), field(hit, "live")),
                field(hit, "created_seq"),
            )
            for hit in hits
        ]


def _visible(boards: Sequence[str], apart: Collection[str], marks: Mapping[str, int]) -> dict[str, Any]:
    """The boards' nodes: of those that are taken apart only what is wholly applied, for the others the answer tells."""
    clauses: list[dict[str, Any]] = [
        {"bool": {"filter": [{"term": {"board_id": board}}, {"range": {"created_seq": {"lte": marks[board]}}}]}} for board in sorted(apart)
    ]
    together = [board for board in boards if board not in apart]
    if together:
        clauses.append({"terms": {"board_id": together}})
    return clauses[0] if len(clauses) == 1 else {"bool": {"should": clauses, "minimum_should_match": 1}}


def _place(found: Found) -> tuple[float, bool, str, str]:
    return -found.score, not found.live, found.board_id, found.node_id
