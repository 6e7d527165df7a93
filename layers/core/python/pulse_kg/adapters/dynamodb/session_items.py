"""Sessions and candidates as items, and back."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pulse_kg.adapters.dynamodb import blobs, keys
from pulse_kg.adapters.dynamodb.client import Item, Value
from pulse_kg.adapters.dynamodb.tables import PK, SK, TTL
from pulse_kg.adapters.jsontext import from_json, to_json
from pulse_kg.domain import ids
from pulse_kg.domain.audit import edge_candidate_dict, edge_candidate_of, node_candidate_dict, node_candidate_of, proposal_of
from pulse_kg.domain.instants import Instant, format_instant
from pulse_kg.domain.model import Candidates, EdgeCandidate, EdgeDraft, NodeCandidate, NodeDraft, Session, Source, TextVector
from pulse_kg.domain.refs import Artifact
from pulse_kg.domain.schema import canonical_json
from pulse_kg.errors import (
    PayloadTooLarge,
    PulseError,
    SessionAborted,
    SessionAlreadyCommitted,
    SessionExpired,
    SessionNotFound,
)
from pulse_kg.ports.sessions import GRACE_MS

Kind = Literal["node", "edge"]

SESSION: Final = (
    "board_id",
    "agent_id",
    "source_type",
    "source_id",
    "source_version",
    "content_hash",
    "hash_basis",
    "started_at",
    "expires_at",
    "state",
    "committable",
    "reason",
    "nodes",
    "edges",
    "proposed_nodes",
    "proposed_edges",
)
"""The attributes of an open session; a committed one has `answer` or `answer_token`, and `overrides`, as well."""

OPEN: Final = "#state = :open AND expires_at > :now"
"""What every change of a session asks of it; with the values of `open_at`."""

_LETTER: Final[Mapping[Kind, str]] = {"node": "n", "edge": "e"}
_ID_OF: Final = {"node": ids.candidate_id, "edge": ids.edge_candidate_id}
_DAY_SECONDS: Final = 86_400
_MAX_OVERRIDES: Final = 250_000  # packed; with an answer of `blobs.INLINE_BYTES` they fit in one item
_LIVE: Final[Mapping[bool | None, str]] = {True: "1", False: "0", None: "-"}


def open_at(now: Instant) -> dict[str, Value]:
    """The values of `OPEN`."""
    return {"open": "open", "now": now}


def ttl(expires_at: Instant, *, days_more: int = 0) -> int:
    """Epoch seconds from which an item of the session may be deleted.

    The session itself goes first, and what leads to it last, for DynamoDB deletes in any order, and hours late.
    """
    return -(-(expires_at + GRACE_MS) // 1000) + days_more * _DAY_SECONDS


CONTENT_DAYS: Final = 1
LIST_DAYS: Final = 8


def item_of(session: Session) -> dict[str, Value]:
    """A session as its item."""
    return {
        "board_id": session.board_id,
        "agent_id": session.agent_id,
        "source_type": session.source.artifact.source_type,
        "source_id": session.source.artifact.source_id,
        "source_version": session.source.version,
        "content_hash": session.content_hash,
        "hash_basis": session.hash_basis,
        "started_at": session.started_at,
        "expires_at": session.expires_at,
        "state": session.state,
        "committable": session.committable,
        "reason": session.reason,
        "nodes": session.nodes,
        "edges": session.edges,
        "proposed_nodes": session.proposed_nodes,
        "proposed_edges": session.proposed_edges,
        "answer": None if session.answer is None else blobs.packed(session.answer),
        "overrides": None if session.overrides is None else packed_overrides(session.overrides),
        TTL: ttl(session.expires_at),
    }


def session_of(item: Item, answer: bytes | None) -> Session:
    """The inverse of `item_of`, with the answer from wherever it was."""
    overrides = item.get("overrides")
    return Session(
        session_id=item[PK].removeprefix(keys.session("")),
        board_id=item["board_id"],
        agent_id=item["agent_id"],
        source=Source(Artifact(item["source_type"], item["source_id"]), item["source_version"]),
        content_hash=item["content_hash"],
        hash_basis=item["hash_basis"],
        started_at=item["started_at"],
        expires_at=item["expires_at"],
        state=item["state"],
        committable=item["committable"],
        reason=item.get("reason"),
        nodes=item["nodes"],
        edges=item["edges"],
        proposed_nodes=item["proposed_nodes"],
        proposed_edges=item["proposed_edges"],
        answer=None if answer is None else blobs.unpacked(answer),
        overrides=None if overrides is None else blobs.unpacked(overrides),
    )


def packed_overrides(overrides: str) -> bytes:
    """The overrides of a commit, as they are kept with its session.

    Raises:
        PayloadTooLarge: They do not fit.
    """
    packed = blobs.packed(overrides)
    if len(packed) > _MAX_OVERRIDES:
        raise PayloadTooLarge(
            "The rationales of the overrides are too long together, and nothing was written. Shorten them, and commit again.",
            {"limit": _MAX_OVERRIDES, "kind": "overrides"},
        )
    return packed


def why_closed(item: Item | None, now: Instant) -> PulseError | None:
    """Why a session takes no change; None for one that is open."""
    if not item:
        return SessionNotFound()
    if item["state"] == "committed":
        return SessionAlreadyCommitted(
            "The session was committed and takes no more changes. Open a new one with begin_consolidation.",
            {"session_id": item[PK].removeprefix(keys.session(""))},
        )
    if item["state"] == "aborted":
        return SessionAborted()
    if now >= item["expires_at"]:
        return SessionExpired(format_instant(item["expires_at"]))
    return None


def check_open(item: Item | None, now: Instant) -> Item:
    """The item of a session that is open.

    Raises:
        SessionNotFound, SessionExpired, SessionAlreadyCommitted, SessionAborted: It is not.
    """
    error = why_closed(item, now)
    if error is not None:
        raise error
    return item or {}


@dataclass(frozen=True)
class Draft:
    """A candidate on its way in.

    Attributes:
        kind: Node or edge.
        content: The candidate as JSON, without its number.
        target_was_live: Of an edge.
    """

    kind: Kind
    content: Mapping[str, Any]
    target_was_live: bool | None = None

    @property
    def digest(self) -> str:
        """Equal for equal drafts, whatever the schema said of their keys."""
        draft = {key: value for key, value in self.content.items() if key != "unknown_keys"}
        return hashlib.sha256(canonical_json(draft).encode()).hexdigest()

    @property
    def counter(self) -> str:
        """The attribute of the session that counts its kind."""
        return f"{self.kind}s"

    def item(self, expires_at: Instant) -> dict[str, Value]:
        """Its item."""
        return {
            "content": blobs.packed(self.content),
            "target_was_live": self.target_was_live,
            TTL: ttl(expires_at, days_more=CONTENT_DAYS),
        }


def node_draft(draft: NodeDraft, unknown_keys: Sequence[str]) -> Draft:
    """A node on its way in."""
    return Draft("node", node_candidate_dict(NodeCandidate("", draft, tuple(unknown_keys))))


def edge_draft(draft: EdgeDraft, unknown_keys: Sequence[str], target_was_live: bool | None) -> Draft:
    """An edge on its way in."""
    return Draft("edge", edge_candidate_dict(EdgeCandidate("", draft, tuple(unknown_keys))), target_was_live)


def candidate_key(kind: Kind, number: int) -> str:
    """The sort key of a candidate."""
    return keys.candidate(_LETTER[kind], number)


def named(kind: Kind, number: int) -> str:
    """The id of the candidate of that number."""
    return _ID_OF[kind](number)


def number_of(candidate_id: str, kind: Kind) -> int:
    """The number in a candidate's id; 0, which no candidate has, for any other text."""
    digits = candidate_id.rpartition("_")[2]
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 7 else 0  # noqa: PLR2004 - the width of sort keys
    return number if _ID_OF[kind](number) == candidate_id else 0


def node_of(item: Item) -> NodeCandidate:
    """The node candidate of its item."""
    return node_candidate_of({**blobs.unpacked(item["content"]), "candidate_id": ids.candidate_id(_numbered(item))})


def edge_of(item: Item, live: str) -> EdgeCandidate:
    """The edge candidate of its item; what the last propose saw wins over what was seen when it was added."""
    number = _numbered(item)
    seen = {"1": True, "0": False}.get(live[number - 1 : number], item.get("target_was_live"))
    return edge_candidate_of(
        {**blobs.unpacked(item["content"]), "edge_candidate_id": ids.edge_candidate_id(number), "target_was_live": seen}
    )


def _numbered(item: Item) -> int:
    return int(item[SK].rpartition("#")[2])


def packed_live(targets_live: Mapping[str, bool]) -> str:
    """One character for each edge candidate: `1` or `0` as its target was live or not, `-` where nobody looked."""
    by_number = {number_of(candidate, "edge"): was for candidate, was in targets_live.items()}
    return "".join(_LIVE[by_number.get(n)] for n in range(1, max(by_number, default=0) + 1))


def vector_items(vectors: Mapping[str, TextVector], *, now: Instant, expires_at: Instant) -> list[tuple[str, dict[str, Value]]]:
    """Vectors as (sort key, item), many in one item; those of later items replace those of earlier ones."""
    numbered = [(number, vector) for candidate, vector in vectors.items() if (number := number_of(candidate, "node"))]
    items: list[tuple[str, dict[str, Value]]] = []
    for some in _portions(numbered):
        content = b"".join(vector.vector for _, vector in some)
        index = to_json([[number, len(vector.vector), vector.truncated] for number, vector in some])
        name = hashlib.sha256(index.encode() + content).hexdigest()[:16]
        item: dict[str, Value] = {"vectors": content, "index": index, TTL: ttl(expires_at, days_more=CONTENT_DAYS)}
        items.append((f"{keys.VECTORS}{now:015d}#{name}", item))
    return items


def _portions(vectors: Iterable[tuple[int, TextVector]]) -> Iterable[list[tuple[int, TextVector]]]:
    some: list[tuple[int, TextVector]] = []
    size = 0
    for number, vector in vectors:
        if some and size + len(vector.vector) > blobs.PART_BYTES:
            yield some
            some, size = [], 0
        some.append((number, vector))
        size += len(vector.vector)
    if some:
        yield some


def _vectors_of(items: Iterable[Item]) -> dict[str, TextVector]:
    vectors: dict[str, TextVector] = {}
    for item in items:
        index = from_json(item["index"])
        parts = struct.unpack("".join(f"{size}s" for _, size, _ in index), item["vectors"])
        vectors |= {ids.candidate_id(n): TextVector(part, cut) for (n, _, cut), part in zip(index, parts, strict=True)}
    return vectors


def candidates_of(head: Item, items: Sequence[Item]) -> Candidates | None:
    """The candidates of a session out of all its items, as they were when the session's own item was read; None where some are missing.

    Args:
        head: The session's own item.
        items: The others, by sort key.
    """
    if head["state"] != "open":
        return Candidates()

    def starting(begins: str) -> list[Item]:
        return [item for item in items if item[SK].startswith(begins)]

    nodes, edges = starting(keys.NODES)[: head["nodes"]], starting(keys.EDGES)[: head["edges"]]
    parts = starting(keys.PROPOSALS + "#")[: head.get("proposal_parts", 0)]
    if len(nodes) < head["nodes"] or len(edges) < head["edges"] or len(parts) < head.get("proposal_parts", 0):
        return None
    if any(part["generation"] != head["proposals"] for part in parts):
        return None
    known = {ids.candidate_id(n) for n in range(1, len(nodes) + 1)}
    proposals = [proposal_of(p) for p in blobs.unpacked(b"".join(part["part"] for part in parts))] if parts else []
    live = head.get("live", "")
    return Candidates(
        nodes=tuple(node_of(item) for item in nodes),
        edges=tuple(edge_of(item, live) for item in edges),
        vectors={c: v for c, v in sorted(_vectors_of(starting(keys.VECTORS)).items()) if c in known},
        proposals={p.candidate_id: p for p in proposals if p.candidate_id in known},
    )
