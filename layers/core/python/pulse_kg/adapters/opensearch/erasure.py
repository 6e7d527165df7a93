"""Removes a board from the indexes for good."""

from __future__ import annotations

from typing import Final

from pulse_kg.adapters.opensearch import layout
from pulse_kg.adapters.opensearch.client import OpenSearchClient
from pulse_kg.adapters.opensearch.errors import Busy

_AT_ONCE: Final = 5_000
"""Documents of one request, so that each ends within a call."""


def erase_board(client: OpenSearchClient, name: str, board_id: str) -> int:
    """Deletes a board's documents in every index that is or was behind the alias, or is being made for it.

    Returns:
        How many are left.
    """
    found, newest = layout.indexes(client, name), layout.number_of(name, layout.current(client, name) or "") or 0
    for index in found:
        if (layout.number_of(name, index) or 0) < newest:
            layout.unblock(client, index)  # it was closed when another took its place
        delete(client, index, board_id)
    query = {"query": {"term": {"board_id": board_id}}}
    counts = [client.request("POST", f"/{index}/_count", query, params={"routing": board_id})["count"] for index in found]
    return sum(counts)


def delete(client: OpenSearchClient, index: str, board_id: str) -> None:
    """Deletes a board's documents in one index."""
    client.request("POST", f"/{index}/_refresh")  # what nobody can see yet would not be found
    params = {"routing": board_id, "conflicts": "proceed", "refresh": "true", "max_docs": str(_AT_ONCE)}
    query = {"query": {"term": {"board_id": board_id}}}

    def once() -> bool:
        answer = client.ask("POST", f"/{index}/_delete_by_query", query, params=params)
        if answer["failures"] or answer["timed_out"]:
            raise Busy
        return bool(answer["deleted"] or answer["version_conflicts"])

    while client.retried(once):
        pass
