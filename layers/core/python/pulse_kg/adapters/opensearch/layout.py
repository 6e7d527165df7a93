"""What the index is: its mapping, the alias before it, and the proof that a server can keep its promises."""

from __future__ import annotations

import re
import secrets
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.adapters.opensearch.client import OpenSearchClient, lines
from pulse_kg.adapters.opensearch.errors import IndexRefused, kind_of, missing, no_knn, refusal, serverless, unavailable

MODEL_ID: Final = "model"
"""Id of the one document that is no vector: which model made them. Documents of boards have a colon in theirs."""
EF_SEARCH: Final = 256
"""Candidates of an approximate search, at least: with the k of the search alone the older servers miss one in six of a large board."""

_LEAST_VERSION: Final = (2, 16)  # the first that takes ef_search with a search
_PROBE_BOARD: Final = ":probe"  # no board has a colon
_LATER: Final = frozenset({"at"})  # fields that the first version had not
_KEPT: Final = ("type", "dimension", "enabled", "method")


@dataclass(frozen=True)
class IndexSettings:
    """How the server keeps the index.

    Attributes:
        shards: Primary shards; a board's vectors are all in one of them. Fixed for the life of an index.
        replicas: Copies of each shard.
        refresh_interval: How often writes become visible, which is what a commit waits for.
    """

    shards: int = 1
    replicas: int = 1
    refresh_interval: str = "200ms"


def numbers(vector: bytes) -> list[float]:
    """The numbers of a vector with nine digits, which name each float32 and no other."""
    return [float(f"{number:.9g}") for number in struct.unpack(f"<{len(vector) // 4}f", vector)]


def packed(values: Sequence[float]) -> bytes:
    """The inverse of `numbers`, bit by bit."""
    return struct.pack(f"<{len(values)}f", *values)


def mapping(dimension: int, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The mapping of an index.

    Args:
        dimension: Numbers in a vector.
        meta: What is recorded of the model.
    """
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil", "parameters": {"m": 16, "ef_construction": 128}}
    return {
        "dynamic": "strict",
        "_routing": {"required": True},
        "_meta": dict(meta or {}),
        "properties": {
            "board_id": {"type": "keyword"},
            "node_id": {"type": "keyword"},
            "node_type": {"type": "keyword"},
            "live": {"type": "boolean"},
            "truncated": {"type": "boolean"},
            "commit_seq": {"type": "long"},
            "created_seq": {"type": "long"},
            "at": {"type": "long"},
            "vector": {"type": "knn_vector", "dimension": dimension, "method": method},
            "model": {"type": "object", "enabled": False},
        },
    }


def number_of(name: str, index: str) -> int | None:
    """Which of the indexes behind the alias one is; None for another's."""
    found = re.fullmatch(re.escape(name) + r"_([1-9][0-9]{0,8})", index)
    return int(found[1]) if found else None


def current(client: OpenSearchClient, name: str) -> str | None:
    """The index behind the alias; None where there is no alias."""
    answer = client.request("GET", f"/_alias/{name}", ignore=404)
    found = [index for index in answer if number_of(name, index) is not None]
    return found[0] if len(found) == 1 else None


def indexes(client: OpenSearchClient, name: str) -> list[str]:
    """All indexes that are or were behind the alias, or are being made for it, oldest first."""
    rows = client.request("GET", f"/_cat/indices/{name}_*", params={"format": "json", "h": "index", "expand_wildcards": "all"})
    found = [(number, row["index"]) for row in rows if (number := number_of(name, row["index"])) is not None]
    return [index for _, index in sorted(found)]


def create(client: OpenSearchClient, name: str, dimension: int, settings: IndexSettings) -> None:
    """Makes the alias and an index behind it, unless they are there; two processes may do it at once.

    An index of an older version gets the fields that it has not yet.

    Raises:
        IndexRefused: The server has no k-NN, or an index of that name stands there without the alias.
    """
    if current(client, name) is not None:
        _complete(client, name, dimension)
        return
    if make(client, f"{name}_1", mapping(dimension), settings, alias=name):
        return
    if current(client, name) is None:  # who made it in between made the alias in the same step
        raise IndexRefused(f"There is an index '{name}_1' that the alias '{name}' does not point to; it was left as it is.")


def _complete(client: OpenSearchClient, name: str, dimension: int) -> None:
    (index,) = client.request("GET", f"/{name}/_mapping").values()
    there = index["mappings"].get("properties", {})
    missing = {field: declared for field, declared in mapping(dimension)["properties"].items() if field not in there}
    if there and missing and missing.keys() <= _LATER:  # else it is no index of ours, and the probe says so
        client.request("PUT", f"/{name}/_mapping", {"properties": missing})


def make(
    client: OpenSearchClient, index: str, with_mapping: Mapping[str, Any], settings: IndexSettings, *, alias: str | None = None
) -> bool:
    """Makes one index; False if there is one of that name.

    Raises:
        IndexRefused: The server has no k-NN.
    """
    body = {
        "settings": {
            "index": {
                "knn": True,
                "number_of_shards": settings.shards,
                "number_of_replicas": settings.replicas,
                "refresh_interval": settings.refresh_interval,
            }
        },
        "mappings": with_mapping,
        "aliases": {alias: {}} if alias else {},
    }
    answer = client.request("PUT", f"/{index}", body, ignore=400)
    if "error" not in answer:
        return True
    kind = kind_of(answer["error"])
    if kind == "resource_already_exists_exception":
        return False
    raise no_knn() if kind in {"mapper_parsing_exception", "illegal_argument_exception"} else refusal(400, kind)


def unblock(client: OpenSearchClient, index: str) -> None:
    """Lets an index take writes again."""
    client.request("PUT", f"/{index}/_settings", {"index.blocks.write": None})


def probe(client: OpenSearchClient, name: str, dimension: int) -> str:
    """Finds out in four requests whether the server and the index are what is needed; leaves nothing behind.

    Returns:
        The server's version.

    Raises:
        IndexRefused: They are not; the message says why.
    """
    version = _check_server(client)
    answer = client.request("GET", f"/{name}", ignore=404)
    if "error" in answer:
        raise missing()
    (index,) = answer.values()
    _check_mapping(index, dimension)
    _check_writes(client, name)
    nobody = {"term": {"board_id": _PROBE_BOARD}}
    knn = {"vector": [1.0] * dimension, "k": 1, "filter": nobody, "method_parameters": {"ef_search": EF_SEARCH}}
    query = {"knn": {"vector": knn}}
    client.request("POST", f"/{name}/_search", {"size": 1, "_source": False, "query": query}, params={"routing": _PROBE_BOARD})
    return version


def _check_server(client: OpenSearchClient) -> str:
    answer = client.request("GET", "/", ignore=404)
    version = answer.get("version") if isinstance(answer, Mapping) else None
    if not isinstance(version, Mapping):
        raise serverless()  # a collection has no answer here
    number = str(version.get("number"))
    found = re.match(r"(\d+)\.(\d+)", number)
    if version.get("distribution") != "opensearch" or found is None or (int(found[1]), int(found[2])) < _LEAST_VERSION:
        raise IndexRefused(
            f"The vector index's server calls itself {version.get('distribution') or 'something else'} {number}; OpenSearch "
            f"{'.'.join(map(str, _LEAST_VERSION))} or later is needed, and a domain must not hide its version."
        )
    return number


def _check_mapping(index: Mapping[str, Any], dimension: int) -> None:
    wanted, found = mapping(dimension), index["mappings"]
    fields = found.get("properties", {})
    wrong = [name for name in wanted["properties"] if _kept(fields.get(name, {})) != _kept(wanted["properties"][name])]
    wrong += sorted(fields.keys() - wanted["properties"].keys())
    wrong += [part for part in ("dynamic", "_routing") if found.get(part) != wanted[part]]
    if wrong:
        raise IndexRefused(
            f"The vector index has another mapping than is needed, in: {', '.join(wrong)}. Make it anew with 'pulse-kg reindex', or use "
            "another name."
        )


def _kept(declared: Mapping[str, Any]) -> dict[str, Any]:
    return {key: declared[key] for key in _KEPT if key in declared}


def _check_writes(client: OpenSearchClient, name: str) -> None:
    """Writes, is refused an older version, and deletes, all in one request before anybody can see it."""
    key = {"_id": f"{_PROBE_BOARD}:{secrets.token_hex(8)}", "routing": _PROBE_BOARD, "version_type": "external"}
    document = {"board_id": _PROBE_BOARD}
    operations = [{"index": {**key, "version": 2}}, document, {"index": {**key, "version": 1}}, document, {"delete": {**key, "version": 3}}]
    items = client.request("POST", f"/{name}/_bulk", lines(operations)).get("items", ())
    statuses = [result.get("status") for item in items for result in item.values()]
    if statuses == [201, 409, 200]:
        return
    if statuses and all(status == 400 for status in statuses):  # noqa: PLR2004
        raise serverless()
    if 429 in statuses or 503 in statuses:  # noqa: PLR2004
        raise unavailable()
    raise IndexRefused("The vector index does not keep ids and versions as it must: an older write was not refused.")


def settings_of(client: OpenSearchClient, name: str) -> IndexSettings:
    """The settings of the index that stands behind an alias.

    Raises:
        StoreUnavailable: They can't be read.
    """
    default = IndexSettings()
    for found in client.request("GET", f"/{name}/_settings").values():
        index = found["settings"]["index"]
        return IndexSettings(
            shards=int(index.get("number_of_shards", default.shards)),
            replicas=int(index.get("number_of_replicas", default.replicas)),
            refresh_interval=str(index.get("refresh_interval", default.refresh_interval)),
        )
    return default
