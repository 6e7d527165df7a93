"""Identifiers: their forms, and those that follow from content so that a repeated commit makes the same ones."""

from __future__ import annotations

import hashlib
import re

from pulse_kg.domain.schema import NODE_PREFIXES, NodeType, RelType, is_undirected

BOARD_ID = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
NODE_ID = re.compile(r"[a-z]+_[A-Za-z0-9]{1,64}")
SESSION_ID = re.compile(r"kgs_[0-9A-HJKMNP-TV-Z]{26}")
SOURCE_TYPE = re.compile(r"[a-z][a-z0-9_]{0,31}")
CONTENT_HASH = re.compile(r"sha256:[0-9a-f]{64}")

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_SEPARATOR = "\x1f"  # can stand in no identifier, so that ("a", "bc") and ("ab", "c") differ


def _hex16(*parts: str) -> str:
    return hashlib.sha256(_SEPARATOR.join(parts).encode()).hexdigest()[:16]


def node_id(board_id: str, session_id: str, candidate_id: str, node_type: NodeType) -> str:
    """The id of the node that a candidate becomes: type prefix, `_`, 16 hex digits."""
    return f"{NODE_PREFIXES[node_type]}_{_hex16(board_id, session_id, candidate_id)}"


def edge_id(board_id: str, src: str, rel_type: RelType, dst: str, *, equal_types: bool) -> str:
    """The id of an edge; the same for both directions where the relationship has none.

    Args:
        board_id: The tenant.
        src: Node id.
        rel_type: The relationship.
        dst: Node id.
        equal_types: Whether both ends are of one node type (`relates_to` has no direction then).
    """
    if is_undirected(rel_type, equal_types=equal_types) and dst < src:
        src, dst = dst, src
    return f"edge_{_hex16(board_id, src, rel_type, dst)}"


def candidate_id(number: int) -> str:
    """`cand_001` for 1."""
    return f"cand_{number:03d}"


def edge_candidate_id(number: int) -> str:
    """`edge_cand_001` for 1."""
    return f"edge_cand_{number:03d}"


def ulid(instant_ms: int, randomness: bytes) -> str:
    """A ULID of an instant (48 bits of epoch milliseconds) and ten random bytes: 26 Crockford base32 characters."""
    value = (instant_ms << 80) | int.from_bytes(randomness[:10], "big")
    return "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -5, -5))
