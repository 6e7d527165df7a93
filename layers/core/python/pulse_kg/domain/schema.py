"""The graph's schema: node and relationship types, their attributes, and which ends an edge may join."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from pulse_kg.domain.instants import parse_instant
from pulse_kg.errors import Problem

SCHEMA_VERSION: Final = "0.3.3"

NodeType = Literal[
    "Decision",
    "Criterion",
    "Constraint",
    "Assumption",
    "Requirement",
    "Entity",
    "APIContract",
    "TestScenario",
    "Bug",
    "Learning",
    "Alternative",
]
RelType = Literal[
    "supersedes",
    "contradicts",
    "derives_from",
    "relates_to",
    "mentions",
    "depends_on",
    "violates",
    "implements",
    "tests",
    "validates",
    "belongs_to",
]
NODE_TYPES: Final[tuple[NodeType, ...]] = get_args(NodeType)
REL_TYPES: Final[tuple[RelType, ...]] = get_args(RelType)
AGENT_REL_TYPES: Final[tuple[RelType, ...]] = ("supersedes", "contradicts", "depends_on", "relates_to", "validates")
RESERVED_REL_TYPES: Final[tuple[RelType, ...]] = tuple(r for r in REL_TYPES if r not in AGENT_REL_TYPES)
SEARCHABLE_TYPES: Final[tuple[NodeType, ...]] = ("Decision", "Constraint", "Requirement", "Entity", "Learning")
VERSIONED_TYPES: Final[frozenset[NodeType]] = frozenset({"Decision", "Constraint"})
"""Types whose changed text is a new node that supersedes, rather than an update."""

NODE_PREFIXES: Final[Mapping[NodeType, str]] = dict(
    zip(NODE_TYPES, ("dec", "crt", "con", "asm", "req", "ent", "api", "tst", "bug", "lrn", "alt"), strict=True)
)

DEFAULT_CONFIDENCE: Final = 0.7
MAX_TEXT: Final = 4_000
"""Characters of a text attribute."""
MAX_ALIASES: Final = 50
MAX_UNKNOWN_TOLD: Final = 100
"""Unknown attributes that an answer names one by one: a commit's answer must fit, for nobody can ask for a shorter one."""

_ANY: Final = NODE_TYPES
_CLAIMS: Final[tuple[NodeType, ...]] = ("Decision", "Constraint", "Requirement", "Assumption")
_DEPENDENTS: Final[tuple[NodeType, ...]] = (*_CLAIMS, "Criterion", "TestScenario", "APIContract")


def _pairs(sources: Sequence[NodeType], targets: Sequence[NodeType]) -> tuple[tuple[NodeType, NodeType], ...]:
    return tuple((s, t) for s in NODE_TYPES if s in sources for t in NODE_TYPES if t in targets)


ENDPOINT_PAIRS: Final[Mapping[RelType, tuple[tuple[NodeType, NodeType], ...]]] = {
    "supersedes": tuple((t, t) for t in NODE_TYPES),
    "contradicts": _pairs(_CLAIMS, _CLAIMS),
    "derives_from": _pairs(("Decision", "Constraint", "Criterion", "Requirement"), ("Requirement", "Entity", "Decision")),
    "relates_to": _pairs(_ANY, _ANY),
    "mentions": _pairs(_ANY, ("Entity",)),
    "depends_on": _pairs(_DEPENDENTS, _DEPENDENTS),
    "violates": _pairs(("Bug",), ("Constraint", "Requirement")),
    "implements": _pairs(("APIContract",), ("Requirement",)),
    "tests": _pairs(("TestScenario",), ("Criterion",)),
    "validates": _pairs(("Learning",), ("Bug", "Decision", "Assumption")) + _pairs(("TestScenario",), ("Requirement", "Criterion")),
    "belongs_to": _pairs(_ANY, ("Entity",)),
}


def is_undirected(rel_type: RelType, *, equal_types: bool) -> bool:
    """Whether the two directions of an edge are one edge."""
    return rel_type == "contradicts" or (rel_type == "relates_to" and equal_types)


AttributeKind = Literal["text", "choice", "instant", "bool", "number", "text_or_number", "texts", "object_or_text"]
ADDABLE_KINDS: Final[tuple[AttributeKind, ...]] = ("text", "instant", "bool", "number", "text_or_number", "texts", "object_or_text")


@dataclass(frozen=True)
class AttributeSpec:
    """What values an attribute takes.

    Attributes:
        kind: The kind of value.
        choices: The allowed words where `kind` is ``choice``.
    """

    kind: AttributeKind
    choices: tuple[str, ...] = ()


_TEXT, _AT, _BOOL = AttributeSpec("text"), AttributeSpec("instant"), AttributeSpec("bool")


def _choice(*words: str) -> AttributeSpec:
    return AttributeSpec("choice", words)


CONFIDENCE: Final = "confidence"
ATTRIBUTES: Final[Mapping[NodeType, Mapping[str, AttributeSpec]]] = {
    "Decision": {"rationale": _TEXT, "status": _choice("active", "revoked"), "decided_at": _AT},
    "Criterion": {"measure": _TEXT, "threshold": AttributeSpec("text_or_number")},
    "Constraint": {"severity": _choice("low", "medium", "high", "critical"), "scope": _TEXT, "rationale": _TEXT},
    "Assumption": {"rationale": _TEXT, "validated": _BOOL},
    "Requirement": {
        "kind": _choice("functional", "technical", "business"),
        "priority": _choice("must", "should", "could", "wont"),
    },
    "Entity": {"kind": _TEXT, "aliases": AttributeSpec("texts")},
    "APIContract": {
        "method": _TEXT,
        "path": _TEXT,
        "request_schema": AttributeSpec("object_or_text"),
        "response_schema": AttributeSpec("object_or_text"),
    },
    "TestScenario": {"given": _TEXT, "when": _TEXT, "then": _TEXT},
    "Bug": {"severity": _choice("minor", "major", "critical"), "status": _TEXT, "resolved_at": _AT},
    "Learning": {"area": _TEXT, "captured_at": _AT},
    "Alternative": {"reason_discarded": _TEXT},
}
EDGE_ATTRIBUTES: Final[Mapping[str, AttributeSpec]] = {"reason": _TEXT, "evidence": _TEXT, CONFIDENCE: AttributeSpec("number")}

ADDED_KEY: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
RESERVED_KEYS: Final[frozenset[str]] = frozenset(
    "id title body source_ref artifact artifact_version source_session_id created_seq commit_seq version content_digest created_at "
    "updated_at created_by confidence relevance_score query_hits last_queried_at last_recomputed_at priority_boost superseded_by "
    "superseded_at revocation_reason human_curated label key vertex element edge property embedding board_id".split()
)

AddedAttributes = Mapping[NodeType, Mapping[str, AttributeSpec]]
"""The keys that a board added to its node types."""


@dataclass(frozen=True)
class CheckedAttributes:
    """What became of the attributes of a candidate.

    Attributes:
        known: The attributes that the schema has, as they were given.
        unknown: The keys that it does not have, sorted.
        problems: Values of a wrong type or out of range.
    """

    known: dict[str, Any]
    unknown: tuple[str, ...]
    problems: tuple[Problem, ...]


def check_node_attributes(node_type: NodeType, attributes: Mapping[str, Any], added: AddedAttributes | None = None) -> CheckedAttributes:
    """Sorts the attributes of a node candidate into known and unknown ones, and finds the faults of the known."""
    return _check({**ATTRIBUTES[node_type], **((added or {}).get(node_type, {})), CONFIDENCE: AttributeSpec("number")}, attributes)


def check_edge_attributes(attributes: Mapping[str, Any]) -> CheckedAttributes:
    """The same for an edge candidate."""
    return _check(EDGE_ATTRIBUTES, attributes)


def _check(specs: Mapping[str, AttributeSpec], attributes: Mapping[str, Any]) -> CheckedAttributes:
    known, problems = {}, []
    for key in sorted(attributes):
        if key in specs:
            known[key] = attributes[key]
            fault = _fault_of_confidence(attributes[key]) if key == CONFIDENCE else _fault(specs[key], attributes[key])
            if fault:
                problems.append(Problem(f"attributes.{key}", fault))
    return CheckedAttributes(known, tuple(sorted(k for k in attributes if k not in specs)), tuple(problems))


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every double, which the stores could not keep as a number
        return False


def _fault_of_confidence(value: object) -> str | None:
    return None if _is_number(value) and 0 <= value <= 1 else "must be a number from 0 to 1"  # type: ignore[operator]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_instant(value: object) -> bool:
    try:
        parse_instant(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


def _fault(spec: AttributeSpec, value: object) -> str | None:
    text = f"a string of at most {MAX_TEXT} characters"
    fits, wanted = {
        "text": (_is_text(value), text),
        "choice": (isinstance(value, str) and value in spec.choices, "one of " + ", ".join(spec.choices)),
        "instant": (_is_instant(value), "an RFC 3339 date or instant, such as 2026-05-07 or 2026-05-07T16:30:00Z"),
        "bool": (isinstance(value, bool), "true or false"),
        "number": (_is_number(value), "a number"),
        "text_or_number": (_is_text(value) or _is_number(value), f"a number or {text}"),
        "texts": (
            isinstance(value, list) and len(value) <= MAX_ALIASES and all(_is_text(item) for item in value),
            f"a list of at most {MAX_ALIASES} strings",
        ),
        "object_or_text": (_is_text(value) or isinstance(value, dict), f"an object or {text}"),
    }[spec.kind]
    return None if fits else f"must be {wanted}"


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no blanks, a whole float written as an integer: equal values give equal text."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
