"""Makes the index anew beside the old one, and swaps them.

Commits may go on. A first pass copies everything, with the versions that the documents have. Then the old index takes no more writes, a
second pass copies what changed since the first began, the two are compared board by board, and the alias is moved in one step. A commit
that comes in between is told StoreUnavailable after its decision, and is finished by its caller, the board's next commit or the sweeper, as
every other whose write failed. Searches see the old index until the alias moves, and then the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.adapters.opensearch import layout
from pulse_kg.adapters.opensearch.client import OpenSearchClient
from pulse_kg.adapters.opensearch.erasure import delete
from pulse_kg.adapters.opensearch.errors import IndexRefused, missing, refusal, unavailable
from pulse_kg.errors import StoreUnavailable

Progress = Callable[[int, int], None]
"""Documents looked at so far, and in all."""

_POLL_SECONDS: Final = 0.2
_REQUEST_SECONDS: Final = 120.0  # deleting an index waits for what its merges are at
_BOARDS: Final = 1_000  # boards of one page

_Contents = dict[str, tuple[int, float]]
"""Board → how many vectors, and the sum of the numbers of their commits."""


@dataclass(frozen=True)
class Rebuilt:
    """What was done.

    Attributes:
        old: The index that was behind the alias.
        new: The one that is.
        copied: Documents copied, those of the second pass again.
        old_deleted: Whether the old one is gone.
    """

    old: str
    new: str
    copied: int
    old_deleted: bool


def rebuild(
    client: OpenSearchClient,
    name: str,
    with_mapping: Mapping[str, Any],
    settings: layout.IndexSettings,
    *,
    delete_old: bool,
    discard_unfinished: bool,
    progress: Progress | None,
) -> Rebuilt:
    """Copies everything into a new index and puts it behind the alias. Takes as long as it takes: only its single requests are bounded.

    Args:
        client: The server.
        name: The alias.
        with_mapping: The mapping of the new index; what is recorded of the model is taken over.
        settings: Of the new index.
        delete_old: Whether the old index is deleted after the swap; without it stays, unused, until the next that deletes.
        discard_unfinished: Whether a copy that an earlier run left behind is deleted first. Only where none is running.
        progress: Told of the first pass.

    Raises:
        IndexRefused: There is no index, or another run has not finished; nothing was changed.
        StoreUnavailable: It broke off. One of the two is in use and holds everything: the old one, unless it was at the swap or after it.
    """
    client = client.patient(_REQUEST_SECONDS)
    old = layout.current(client, name)
    if old is None:
        raise missing()
    number = layout.number_of(name, old) or 0
    new = f"{name}_{number + 1}"
    if discard_unfinished:
        for index in layout.indexes(client, name):
            if (layout.number_of(name, index) or 0) > number:
                client.request("DELETE", f"/{index}", ignore=404)
        layout.unblock(client, old)
    meta = client.request("GET", f"/{old}/_mapping")[old]["mappings"].get("_meta", {})
    # Making it is the lock: who finds it made leaves it alone.
    if not layout.make(client, new, {**with_mapping, "_meta": meta}, settings):
        raise IndexRefused(
            "The vector index is being made anew already, or was and it broke off. Wait for it; if none runs, discard the unfinished one."
        )
    copied = _copy_and_swap(client, name, old, new, progress)
    if delete_old:
        for index in layout.indexes(client, name):
            if (layout.number_of(name, index) or 0) <= number:
                client.request("DELETE", f"/{index}", ignore=404)
    return Rebuilt(old, new, copied, delete_old)


def _copy_and_swap(client: OpenSearchClient, name: str, old: str, new: str, progress: Progress | None) -> int:
    blocked = False
    try:
        since = _first_unseen(client, old)  # before the refresh: what comes between the two is copied twice, and never left out
        client.request("POST", f"/{old}/_refresh")
        copied = _copy(client, old, new, 0, progress)
        blocked = True
        client.request("PUT", f"/{old}/_block/write")  # waits for the writes that are under way
        client.request("POST", f"/{old}/_refresh")
        copied += _copy(client, old, new, since, None)
        _check_equal(client, old, new)
    except BaseException:
        if blocked:
            layout.unblock(client, old)
        client.request("DELETE", f"/{new}", ignore=404)
        raise
    try:
        _swap(client, name, old, new)
    except BaseException:
        layout.unblock(client, old)
        raise
    # The old one stays closed: a request that found it behind the alias may still be on its way.
    return copied


def _first_unseen(client: OpenSearchClient, index: str) -> int:
    """The sequence number from which on a write may be missed by a copy that begins now: the least of all shards."""
    answer = client.request("GET", f"/{index}/_stats/docs", params={"level": "shards"})
    copies: list[dict[str, Any]] = [copy for shard in answer["indices"][index]["shards"].values() for copy in shard]
    return 1 + min(int(copy["seq_no"]["global_checkpoint"]) for copy in copies)


def _copy(client: OpenSearchClient, old: str, new: str, since: int, progress: Progress | None) -> int:
    body = {
        "conflicts": "proceed",  # what the first pass copied and nobody changed is refused as not newer
        "source": {"index": old, "query": {"range": {"_seq_no": {"gte": since}}}},
        "dest": {"index": new, "version_type": "external"},
    }
    # Not tried again by itself: two copies at once would be harmless, but slow.
    task = client.ask("POST", "/_reindex", body, params={"wait_for_completion": "false"})["task"]
    try:
        while True:
            answer = client.request("GET", f"/_tasks/{task}")
            status = answer["task"]["status"]
            done: int = sum(status[part] for part in ("created", "updated", "version_conflicts", "noops"))
            if progress is not None and status["total"]:
                progress(done, status["total"])
            if answer["completed"]:
                break
            client.wait(_POLL_SECONDS)
    except BaseException:
        client.request("POST", f"/_tasks/{task}/_cancel", ignore=404)
        raise
    if "error" in answer:
        raise refusal(None, answer["error"])
    response = answer["response"]
    if response["failures"] or response["timed_out"] or "canceled" in response:
        raise unavailable()
    return int(response["created"] + response["updated"])


def _check_equal(client: OpenSearchClient, old: str, new: str) -> None:
    """The copy holds what the original does; a board that was erased meanwhile is erased from the copy."""
    client.request("POST", f"/{new}/_refresh")
    wanted = _contents(client, old)
    for board_id in _contents(client, new).keys() - wanted.keys():
        delete(client, new, board_id)
    if _contents(client, new) != wanted:
        raise StoreUnavailable("vectors", "The new vector index is not equal to the old one and was thrown away. Try again.")


def _contents(client: OpenSearchClient, index: str) -> _Contents:
    found: _Contents = {}
    pages: dict[str, Any] = {"size": _BOARDS, "sources": [{"board": {"terms": {"field": "board_id"}}}]}
    while True:
        sums = {"sums": {"sum": {"field": "commit_seq"}}}
        body = {"size": 0, "track_total_hits": False, "aggs": {"boards": {"composite": pages, "aggs": sums}}}
        answer = client.request("POST", f"/{index}/_search", body, params={"allow_partial_search_results": "false"})
        boards = answer["aggregations"]["boards"]
        found |= {bucket["key"]["board"]: (bucket["doc_count"], bucket["sums"]["value"]) for bucket in boards["buckets"]}
        if len(boards["buckets"]) < _BOARDS:
            return found
        pages["after"] = boards["after_key"]


def _swap(client: OpenSearchClient, name: str, old: str, new: str) -> None:
    actions = [{"remove": {"index": old, "alias": name, "must_exist": True}}, {"add": {"index": new, "alias": name}}]

    def once() -> None:
        # An answer that was lost may have been of a swap that was done.
        if layout.current(client, name) != new:
            client.ask("POST", "/_aliases", {"actions": actions})

    client.retried(once)
