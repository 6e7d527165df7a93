"""The vector index on OpenSearch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from pulse_kg.adapters.jsontext import to_json
from pulse_kg.adapters.opensearch import layout
from pulse_kg.adapters.opensearch.answers import field, hits_of, items_of
from pulse_kg.adapters.opensearch.client import OpenSearchClient, lines
from pulse_kg.adapters.opensearch.erasure import erase_board
from pulse_kg.adapters.opensearch.errors import Busy, damaged, kind_of, refusal
from pulse_kg.adapters.opensearch.rebuild import Progress, Rebuilt, rebuild
from pulse_kg.domain.model import Node, TextVector
from pulse_kg.domain.plan import CommitPlan, VectorWrite
from pulse_kg.domain.schema import SEARCHABLE_TYPES, NodeType
from pulse_kg.errors import EmbeddingModelMismatch, StoreUnavailable
from pulse_kg.ports.embedder import ModelInfo
from pulse_kg.ports.vectors import Hit, IndexInfo

_DIGITS: Final = 4
_TIES: Final = 16  # hits beyond those that are wanted, for a search knows nothing of the order of equal scores
_MORE: Final = 8  # times as many where those were not enough
_MOST: Final = 2_048  # hits that are looked at for the sake of ties
_LIMIT: Final = 10_000  # k, and hits of a search, in OpenSearch
_QUERIES: Final = 100  # vectors of one request
_IDS: Final = 1_000  # ids of one request
_PAGE: Final = 250  # whole documents of one answer: some 2 MB
_KEEP_ALIVE: Final = "5m"  # how long a reader of all vectors may take for a page
_BULK_BYTES: Final = 5_000_000

_CONFLICT: Final = 409
_MISSING: Final = 404
_FIRST_FAULT: Final = 300

# Its own guard, since OpenSearch can't compare a version in an update: the document's commit decides. It raises the document's version by
# 1, which never overtakes the commits: the version is at most the document's commit, and a later commit's is above that.
_SET_STATE: Final = (
    "if (ctx._source.commit_seq < params.seq) { ctx._source.live = params.live; ctx._source.commit_seq = params.seq; "
    "if (params.at != null) { ctx._source.at = params.at } } else { ctx.op = 'none' }"
)

_FIELDS: Final = ("board_id", "node_id", "live")

_Operation = tuple[dict[str, Any], dict[str, Any]]


class OpenSearchVectorIndex:
    """The index: one document for each vector, found by board and node, kept together by board.

    A node that a commit inserts is found when the commit was wholly applied, though a document may be there before.

    Args:
        client: The server.
        name: The alias; behind it is an index of that name and a number.
        applied: Board → the number of its last commit that was wholly applied.
        dimension: Numbers in a vector.
    """

    def __init__(self, client: OpenSearchClient, *, name: str, applied: Callable[[str], int], dimension: int = 384) -> None:
        self._client, self._name, self._applied, self._dimension = client, name, applied, dimension
        self._model: dict[str, Any] | None = None

    # What stands behind the port.

    def create_index(self, settings: layout.IndexSettings | None = None) -> None:
        """Makes the index and its alias where they are missing; two processes may do it at once.

        Raises:
            IndexRefused: The server has no k-NN, or something else stands at that name.
            StoreUnavailable: The server can't be reached.
        """
        layout.create(self._client, self._name, self._dimension, settings or layout.IndexSettings())

    def probe(self) -> str:
        """Finds out in four requests whether server and index keep what is promised here; gives the server's version.

        Raises:
            IndexRefused: They don't, and the message says why.
            StoreUnavailable: The server can't be reached.
        """
        return layout.probe(self._client, self._name, self._dimension)

    def reindex(
        self,
        settings: layout.IndexSettings | None = None,
        *,
        delete_old: bool = False,
        discard_unfinished: bool = False,
        progress: Progress | None = None,
    ) -> Rebuilt:
        """Copies everything into a new index and puts it behind the alias; see `rebuild.rebuild`.

        Without `settings` the new one gets those of the old one.
        """
        made = layout.mapping(self._dimension)
        return rebuild(
            self._client,
            self._name,
            made,
            settings or layout.settings_of(self._client, self._name),
            delete_old=delete_old,
            discard_unfinished=discard_unfinished,
            progress=progress,
        )

    def erase(self, board_id: str) -> dict[str, int]:
        """Removes every vector of a board, from older and unfinished indexes too.

        Returns:
            `vectors`: how many are left; 0 unless somebody wrote meanwhile.

        Raises:
            StoreUnavailable: The time was over before all were removed; running it again goes on.
        """
        return {"vectors": erase_board(self._client, self._name, board_id)}

    # The port.

    @property
    def match_mode(self) -> Literal["hnsw", "exact"]:
        """Approximate; a board's type of some hundred vectors is compared wholly all the same."""
        return "hnsw"

    def check_model(self, info: ModelInfo) -> None:
        """See `VectorIndex.check_model`. One document can be made only once, so of two first users one decides."""
        got = {"model_id": info.model_id, "dimension": info.dimension, "digest": info.digest}
        expected = self._recorded()
        if expected is None:
            if info.dimension != self._dimension:
                expected = {"dimension": self._dimension}
            else:
                expected = self._model = self._record(got)
        if expected != got:
            raise EmbeddingModelMismatch(
                "The store was filled with another embedding model, and vectors of two models can't be compared. "
                "Use the model that the store was filled with, or make a new store with the new one by 'pulse-kg rebuild'.",
                {"expected": expected, "got": got},
            )

    def nearest(self, board_id: str, node_type: NodeType, vectors: Sequence[bytes], *, limit: int, live_only: bool) -> list[list[Hit]]:
        """See `VectorIndex.nearest`; approximate. Of more than 2,000 equally near ones at the last place any may be taken."""
        if not vectors or limit < 1:
            return [[] for _ in vectors]
        wanted: list[dict[str, Any]] = [{"term": {"node_type": node_type}}, *self._visible(board_id)]
        if live_only:
            wanted.append({"term": {"live": True}})
        best: list[list[Hit]] = [[] for _ in vectors]
        still, size = list(range(len(vectors))), first_size(limit)
        while still:
            found = self._searched(board_id, [vectors[place] for place in still], wanted, size)
            for place, hits in zip(still, found, strict=True):
                best[place] = hits[:limit]
            # A tie at the last place that goes on to the end of what came may go on behind it.
            still = [
                p for p, hits in zip(still, found, strict=True) if limit < len(hits) == size and hits[limit - 1].score == hits[-1].score
            ]
            larger = larger_size(size, limit)
            if larger == size:
                break
            size = larger
        return best

    def similarities(self, board_id: str, vector: bytes, node_ids: Collection[str]) -> dict[str, float]:
        """See `VectorIndex.similarities`; exact."""
        wanted, scores = sorted(set(node_ids)), dict[str, float]()
        script = {
            "source": "knn_score",
            "lang": "knn",
            "params": {"field": "vector", "query_value": layout.numbers(vector), "space_type": "cosinesimil"},
        }
        for start in range(0, len(wanted), _IDS):
            some = wanted[start : start + _IDS]
            visible = {"bool": {"filter": [{"terms": {"node_id": some}}, *self._visible(board_id)]}}
            query = _search({"script_score": {"query": visible, "script": script}}, len(some), ["board_id", "node_id"])
            answer = self._client.retried(partial(self._ask, board_id, query))
            scores |= {field(hit, "node_id"): score_of(hit) for hit in answer}
        return scores

    def all_vectors(self, board_id: str) -> Iterator[tuple[str, TextVector, bool]]:
        """See `VectorIndex.all_vectors`; all of one moment, and also those of a commit that is being applied."""
        opened = self._client.request(
            "POST", f"/{self._name}/_search/point_in_time", params={"keep_alive": _KEEP_ALIVE, "routing": board_id}
        )
        pit = opened["pit_id"]
        try:
            after: list[str] = []
            while True:
                query = {
                    "size": _PAGE,
                    "pit": {"id": pit, "keep_alive": _KEEP_ALIVE},
                    "query": {"bool": {"filter": [{"term": {"board_id": board_id}}]}},
                    "sort": [{"node_id": "asc"}],
                    "track_total_hits": False,
                    **({"search_after": after} if after else {}),
                }
                hits = self._client.retried(partial(self._page, board_id, query))
                for hit in hits:
                    kept = hit["_source"]
                    yield kept["node_id"], TextVector(layout.packed(kept["vector"]), kept["truncated"]), kept["live"]
                if len(hits) < _PAGE:
                    return
                after = hits[-1]["sort"]
        finally:
            with contextlib.suppress(StoreUnavailable):  # the server drops it by itself in the end
                self._client.request("DELETE", "/_search/point_in_time", {"pit_id": [pit]})

    def describe(self, board_id: str) -> list[IndexInfo]:  # noqa: ARG002 - one index serves all boards
        """See `VectorIndex.describe`; none before the model is known."""
        model = self._recorded()
        return [] if model is None else [IndexInfo(t, model["dimension"], "cosine", model["model_id"]) for t in SEARCHABLE_TYPES]

    def apply(self, plan: CommitPlan) -> None:
        """See `VectorIndex.apply`; a search sees it when it returns. In one request up to 5 MB.

        Whole documents carry the number of the commit as their version, so that an older one never replaces a newer.

        Raises:
            StoreUnavailable: Some of it was not written; applying again goes on.
            IndexRefused: It would be refused again, or a vector whose liveness changes is not there.
        """
        nodes = {node.node_id: node for node in plan.nodes}
        operations = [_operation(plan, write, nodes.get(write.node_id)) for write in (*plan.vectors, *_redated(plan))]
        portions = list(_portions(operations))
        repeated = False
        for number, portion in enumerate(portions, 1):
            # A board's documents are all in one shard, so the last portion's refresh shows those before it too.
            refresh = "wait_for" if number == len(portions) else "false"
            repeated |= self._client.retried(partial(self._write, portion, plan.seq, refresh))
        if repeated:  # what was there already is not waited for, and who wrote it may not have waited either
            self._client.request("POST", f"/{self._name}/_refresh")

    def replace_all(self, board_id: str, vectors: Sequence[tuple[Node, TextVector]], *, seq: int) -> int:
        """See `VectorIndex.replace_all`.

        Raises:
            StoreUnavailable: Some of it was not written; doing it again goes on.
        """
        kept = {node.node_id for node, _ in vectors}
        others = self._of_commits_until(board_id, sorted(n for n, *_ in self.all_vectors(board_id) if n not in kept), seq)
        operations = [_restored(node, vector) for node, vector in vectors]
        for portion in _portions(operations):
            self._client.retried(partial(self._write_again, portion))
        for start in range(0, len(others), _IDS):
            deletions = [{"delete": {"_id": f"{board_id}:{n}", "routing": board_id}} for n in others[start : start + _IDS]]
            self._client.retried(partial(self._delete, deletions))
        self._client.request("POST", f"/{self._name}/_refresh")
        return len(others)

    def _of_commits_until(self, board_id: str, node_ids: Sequence[str], seq: int) -> list[str]:
        found = list[str]()
        for start in range(0, len(node_ids), _IDS):
            some = node_ids[start : start + _IDS]
            wanted = [{"_id": f"{board_id}:{n}", "routing": board_id, "_source": ["commit_seq"]} for n in some]
            documents = self._client.request("POST", f"/{self._name}/_mget", {"docs": wanted})["docs"]
            found += [n for n, d in zip(some, documents, strict=True) if d.get("found") and d["_source"]["commit_seq"] <= seq]
        return found

    def _write_again(self, operations: Sequence[_Operation]) -> None:
        body = lines(line for operation in operations for line in operation)
        items = items_of(self._client.ask("POST", f"/{self._name}/_bulk", body), len(operations))
        newer = list[str]()
        for (_, result), (head, _) in zip(items, operations, strict=True):
            if result["status"] == _CONFLICT:
                newer.append(head["index"]["_id"])
            elif result["status"] >= _FIRST_FAULT:
                raise refusal(result["status"], result.get("error"))
        if newer:  # of a later commit, or deleted by somebody within the last minute, and then to be tried again
            self._check_newer(operations[0], newer, 0)

    def _delete(self, deletions: Sequence[Mapping[str, Any]]) -> None:
        for _, result in items_of(self._client.ask("POST", f"/{self._name}/_bulk", lines(deletions)), len(deletions)):
            if result["status"] >= _FIRST_FAULT and result["status"] != _MISSING:
                raise refusal(result["status"], result.get("error"))

    def _write(self, operations: Sequence[_Operation], seq: int, refresh: str) -> bool:
        """Sends them once; whether some were done before."""
        body = lines(line for operation in operations for line in operation)
        items = items_of(self._client.ask("POST", f"/{self._name}/_bulk", body, params={"refresh": refresh}), len(operations))
        older, done = list[str](), False
        for (action, result), (head, _) in zip(items, operations, strict=True):
            if result["status"] == _CONFLICT and action == "index":
                older.append(head["index"]["_id"])
            elif result["status"] == _CONFLICT:
                raise Busy
            elif kind_of(result.get("error")) == "document_missing_exception":
                raise damaged()
            elif result["status"] >= _FIRST_FAULT:
                raise refusal(result["status"], result.get("error"))
            else:
                done |= result["result"] == "noop"
        if older:
            self._check_newer(operations[0], older, seq)
        return done or bool(older)

    def _check_newer(self, operation: _Operation, keys: Sequence[str], seq: int) -> None:
        """What a version refused must be there, of this commit or a later one: a deleted document's version refuses for a while too."""
        routing = next(iter(operation[0].values()))["routing"]
        wanted = [{"_id": key, "routing": routing, "_source": ["commit_seq"]} for key in keys]
        for document in self._client.ask("POST", f"/{self._name}/_mget", {"docs": wanted})["docs"]:
            if not document.get("found") or document["_source"]["commit_seq"] < seq:
                raise Busy

    def _visible(self, board_id: str) -> list[dict[str, Any]]:
        return [{"term": {"board_id": board_id}}, {"range": {"created_seq": {"lte": self._applied(board_id)}}}]

    def _searched(self, board_id: str, vectors: Sequence[bytes], wanted: Sequence[Any], size: int) -> list[list[Hit]]:
        """For each vector the `size` nearest in the port's order."""
        found: list[list[Hit]] = []
        for start in range(0, len(vectors), _QUERIES):
            queries = [nearest_query(vector, wanted, size, _FIELDS) for vector in vectors[start : start + _QUERIES]]
            found += self._client.retried(partial(self._ask_all, board_id, queries))
        return found

    def _ask_all(self, board_id: str, queries: Sequence[Mapping[str, Any]]) -> list[list[Hit]]:
        head = {"routing": board_id, "allow_partial_search_results": False}
        answer = self._client.ask("POST", f"/{self._name}/_msearch", lines(line for query in queries for line in (head, query)))
        if len(answer["responses"]) != len(queries):
            raise Busy
        found = [
            [Hit(field(hit, "node_id"), score_of(hit), field(hit, "live")) for hit in hits_of(a, board_id)] for a in answer["responses"]
        ]
        return [sorted(hits, key=lambda h: (-h.score, not h.live, h.node_id)) for hits in found]

    def _ask(self, board_id: str, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        params = {"routing": board_id, "allow_partial_search_results": "false"}
        return hits_of(self._client.ask("POST", f"/{self._name}/_search", query, params=params), board_id)

    def _page(self, board_id: str, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        return hits_of(self._client.ask("POST", "/_search", query), board_id)

    # The model.

    def _recorded(self) -> dict[str, Any] | None:
        if self._model is None:
            answer = self._client.request("GET", f"/{self._name}/_mapping")
            metas = [index["mappings"].get("_meta", {}) for index in answer.values()]
            self._model = next((meta for meta in metas if "model_id" in meta), None)
        return self._model

    def _record(self, got: Mapping[str, Any]) -> dict[str, Any]:
        """Makes the document unless it is there, and writes what stands in it into the mapping; gives that."""
        operation = [{"create": {"_id": layout.MODEL_ID, "routing": layout.MODEL_ID}}, {"model": got}]
        (made,) = self._client.retried(lambda: items_of(self._client.ask("POST", f"/{self._name}/_bulk", lines(operation)), 1))
        if made[1]["status"] >= _FIRST_FAULT and made[1]["status"] != _CONFLICT:
            raise refusal(made[1]["status"], made[1].get("error"))
        key = {"docs": [{"_id": layout.MODEL_ID, "routing": layout.MODEL_ID}]}
        (document,) = self._client.request("POST", f"/{self._name}/_mget", key)["docs"]
        model: dict[str, Any] = document["_source"]["model"]
        self._client.request("PUT", f"/{self._name}/_mapping", {"_meta": model})
        return model


def _operation(plan: CommitPlan, write: VectorWrite, node: Node | None) -> _Operation:
    key = {"_id": f"{plan.board_id}:{write.node_id}", "routing": plan.board_id}
    if write.text_vector is None:
        state = {"seq": plan.seq, "live": write.live, "at": None if node is None else node.happened_at}
        return {"update": {**key, "retry_on_conflict": 3}}, {"script": {"source": _SET_STATE, "params": state}}
    document = _document(plan.board_id, write, write.text_vector, node, seq=plan.seq)
    return {"index": {**key, "version": plan.seq, "version_type": "external"}}, document


def _redated(plan: CommitPlan) -> list[VectorWrite]:
    """Decisions whose attributes changed and whose text did not: when they were decided may be among what changed."""
    written = {write.node_id for write in plan.vectors}
    return [
        VectorWrite(node.node_id, node.node_type, node.live)
        for node in plan.nodes
        if node.node_type == "Decision" and node.node_id not in written and node.created_seq < node.commit_seq == plan.seq
    ]


def _document(board_id: str, write: VectorWrite, text: TextVector, node: Node | None, *, seq: int) -> dict[str, Any]:
    return {
        "board_id": board_id,
        "node_id": write.node_id,
        "node_type": write.node_type,
        "live": write.live,
        "truncated": text.truncated,
        "commit_seq": seq,
        "created_seq": seq if node is None else node.created_seq,
        **({} if node is None else {"at": node.happened_at}),
        "vector": layout.numbers(text.vector),
    }


def _restored(node: Node, text: TextVector) -> _Operation:
    """A document as the node's last commit would have written it, over whatever is of that commit or an older one."""
    write = VectorWrite(node.node_id, node.node_type, node.live)
    document = _document(node.board_id, write, text, node, seq=node.commit_seq)
    key = {"_id": f"{node.board_id}:{node.node_id}", "routing": node.board_id}
    return {"index": {**key, "version": node.commit_seq, "version_type": "external_gte"}}, document


def _search(query: Mapping[str, Any], size: int, fields: Sequence[str]) -> dict[str, Any]:
    return {"size": size, "_source": False, "docvalue_fields": list(fields), "track_total_hits": False, "query": query}


def first_size(limit: int) -> int:
    """How many hits are asked for first to have the best `limit` in order."""
    return min(limit + _TIES, _LIMIT)


def larger_size(size: int, limit: int) -> int:
    """How many are asked for next where a tie at the last place goes on to the end of them; the same where that is enough."""
    return size if size == _LIMIT else max(size, min(size * _MORE, max(_MOST, limit + _TIES)))


def nearest_query(vector: bytes, wanted: Sequence[Any], size: int, fields: Sequence[str]) -> dict[str, Any]:
    """The search of the `size` nearest among the wanted ones."""
    knn = {
        "vector": layout.numbers(vector),
        "k": size,
        "filter": {"bool": {"filter": wanted}},  # inside, or the k nearest of all boards would be chosen first
        "method_parameters": {"ef_search": min(max(layout.EF_SEARCH, 4 * size), _LIMIT)},
    }
    return _search({"knn": {"vector": knn}}, size, fields)


def score_of(hit: Mapping[str, Any]) -> float:
    """The cosine; OpenSearch gives half of one plus it."""
    cosine: float = 2.0 * hit["_score"] - 1.0
    return round(min(max(0.0, cosine), 1.0), _DIGITS)


def _portions(operations: Sequence[_Operation]) -> Iterator[list[_Operation]]:
    portion: list[_Operation] = []
    size = 0
    for operation in operations:
        length = sum(len(to_json(line)) for line in operation)
        if portion and size + length > _BULK_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(operation)
        size += length
    if portion:
        yield portion
