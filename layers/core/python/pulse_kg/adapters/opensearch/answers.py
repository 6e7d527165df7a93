"""Looks into answers: what failed in a part is never passed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulse_kg.adapters.opensearch.errors import Busy, foreign, refusal


def hits_of(answer: Mapping[str, Any], *board_ids: str) -> list[dict[str, Any]]:
    """The hits of a search, all of the boards that were asked for.

    Args:
        answer: The answer, or one of several; its hits have `board_id` as a field or in their source.
        *board_ids: The boards.

    Raises:
        StoreUnavailable: The search failed, in whole or in part.
        IndexRefused: A hit is of another board.
    """
    if "error" in answer:
        raise refusal(answer.get("status"), answer["error"])
    shards = answer["_shards"]
    if answer["timed_out"] or shards["failed"] or not shards["total"]:
        raise Busy
    found: list[dict[str, Any]] = answer["hits"]["hits"]
    asked = frozenset(board_ids)
    if any(_board_of(hit) not in asked for hit in found):
        raise foreign()
    return found


def field(hit: Mapping[str, Any], name: str) -> Any:
    """One field of a hit."""
    (value,) = hit["fields"][name]
    return value


def items_of(answer: Mapping[str, Any], count: int) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """The operations of a bulk request and what became of each, in order.

    Raises:
        Busy: There is not an answer to each.
    """
    items = [next(iter(item.items())) for item in answer["items"]]
    if len(items) != count:
        raise Busy
    return items


def _board_of(hit: Mapping[str, Any]) -> Any:
    return hit["_source"].get("board_id") if "_source" in hit else field(hit, "board_id")
