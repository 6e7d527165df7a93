"""The things of the domain, immutable: sessions and their candidates, nodes, edges, proposals and commits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, Literal

from pulse_kg.domain.instants import Instant, parse_instant
from pulse_kg.domain.refs import Artifact, artifact_of, stable_part
from pulse_kg.domain.schema import DEFAULT_CONFIDENCE, NodeType, RelType, canonical_json
from pulse_kg.domain.text import fold

Hint = Literal["ADD", "UPDATE", "SUPERSEDE", "NOOP"]
HashBasis = Literal["payload", "artifact", "version"]
SessionState = Literal["open", "committed", "aborted"]
MatchMode = Literal["hnsw", "exact", "title_prefix"]
Layer = Literal["cognitive", "deterministic"]


def content_digest(node_type: NodeType, title: str, body: str, attributes: Mapping[str, Any]) -> str:
    """What makes two nodes the same statement: type, folded title and body, attributes as agents gave them."""
    content = canonical_json([node_type, fold(title), fold(body), attributes])
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Source:
    """The version of an artifact that a session consolidates; `version` is 0 or more."""

    artifact: Artifact
    version: int


@dataclass(frozen=True)
class Board:
    """A tenant.

    Attributes:
        board_id: `[a-z0-9][a-z0-9_]{0,63}`.
        name: For people.
        created_at: When it was made.
        commit_seq: Number of its last commit, 0 before the first.
        settings: `strict_attributes` (bool) and what later settings there are.
        added_attributes: Node type → key → kind, beyond the common schema.
        erasing: Commits are refused while its traces are removed.
        last_commit_at: The time of its last commit; None before the first, and where an older version made it.
        ticked_at: For which time a tick last computed the relevance of its nodes; None before the first.
    """

    board_id: str
    name: str
    created_at: Instant
    commit_seq: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    added_attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    erasing: bool = False
    last_commit_at: Instant | None = None
    ticked_at: Instant | None = None

    @property
    def as_of(self) -> Instant:
        """What the formulas of the tools take as now: the time of the last commit or tick, whichever is later; never the clock's."""
        return max(self.created_at, self.last_commit_at or 0, self.ticked_at or 0)


@dataclass(frozen=True)
class Session:
    """One consolidation in flight, or what is remembered of it.

    Attributes:
        session_id: `kgs_` + ULID.
        board_id: The tenant.
        agent_id: The owner.
        source: What is consolidated.
        content_hash: `sha256:` + 64 hex digits.
        hash_basis: What the hash was made of.
        started_at: When it began.
        expires_at: From here on an open session is expired.
        state: Open, committed or aborted.
        committable: Whether the last attempt left it fit for a commit; it informs and never blocks.
        reason: Why it is not committable.
        nodes: How many node candidates it has.
        edges: How many edge candidates.
        proposed_nodes: How many of the node candidates the last propose saw.
        proposed_edges: How many of the edge candidates.
        answer: The answer of the commit, once committed.
        overrides: The overrides of that commit, canonical JSON.
    """

    session_id: str
    board_id: str
    agent_id: str
    source: Source
    content_hash: str
    hash_basis: HashBasis
    started_at: Instant
    expires_at: Instant
    state: SessionState = "open"
    committable: bool = True
    reason: str | None = None
    nodes: int = 0
    edges: int = 0
    proposed_nodes: int = 0
    proposed_edges: int = 0
    answer: Mapping[str, Any] | None = None
    overrides: str | None = None


@dataclass(frozen=True)
class NodeDraft:
    """A node as an agent states it.

    Attributes:
        node_type: The type.
        title: 1..500 characters.
        body: Up to 32 KiB.
        attributes: As given, unknown keys included.
        source_ref: Canonical text, or None for the session's artifact as a whole.
    """

    node_type: NodeType
    title: str
    body: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    source_ref: str | None = None


@dataclass(frozen=True)
class NodeCandidate:
    """A numbered node of a session.

    Attributes:
        candidate_id: `cand_001` ….
        draft: What was given.
        unknown_keys: Attribute keys that the board's schema does not have; they are dropped at commit.
    """

    candidate_id: str
    draft: NodeDraft
    unknown_keys: tuple[str, ...] = ()

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that the schema has."""
        return {k: v for k, v in self.draft.attributes.items() if k not in self.unknown_keys}

    @cached_property
    def digest(self) -> str:
        """The content digest, without the unknown keys; made once, for the rules compare every candidate with every other."""
        return content_digest(self.draft.node_type, self.draft.title, self.draft.body, self.attributes)

    @property
    def stable_ref(self) -> str | None:
        """The source reference where it can identify a node."""
        return stable_part(self.draft.source_ref) if self.draft.source_ref else None

    def artifact(self, source: Source) -> str:
        """Canonical text of the artifact that states it: that of its reference, else the session's."""
        return artifact_of(self.draft.source_ref) if self.draft.source_ref else source.artifact.canonical

    def version(self, source: Source) -> int | None:
        """The artifact's version, known only for the session's own artifact."""
        return source.version if self.artifact(source) == source.artifact.canonical else None


@dataclass(frozen=True)
class EdgeEnd:
    """One end of an edge candidate: exactly one of the two ids is set."""

    candidate_id: str | None = None
    node_id: str | None = None

    def as_dict(self) -> dict[str, str]:
        """The end as the tools show it."""
        return {"candidate_id": self.candidate_id} if self.candidate_id is not None else {"node_id": str(self.node_id)}


@dataclass(frozen=True)
class EdgeDraft:
    """An edge as an agent, or the deterministic worker, states it.

    Attributes:
        src: Where it starts.
        rel_type: The relationship.
        dst: Where it ends.
        attributes: reason, evidence, confidence, as given; unknown keys included.
        layer: Who states it.
        rule_id: The worker's rule.
    """

    src: EdgeEnd
    rel_type: RelType
    dst: EdgeEnd
    attributes: Mapping[str, Any] = field(default_factory=dict)
    layer: Layer = "cognitive"
    rule_id: str | None = None


@dataclass(frozen=True)
class EdgeCandidate:
    """A numbered edge of a session.

    Attributes:
        candidate_id: `edge_cand_001` ….
        draft: What was given.
        unknown_keys: Attribute keys that edges do not have.
        target_was_live: For a supersedes edge to a node: whether the session saw it live, at its last propose or,
            if added later, at the add. None for every other edge.
    """

    candidate_id: str
    draft: EdgeDraft
    unknown_keys: tuple[str, ...] = ()
    target_was_live: bool | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that edges have."""
        return {k: v for k, v in self.draft.attributes.items() if k not in self.unknown_keys}


@dataclass(frozen=True)
class Candidates:
    """All candidates of a session in the order of their numbers, and what is kept with them.

    Attributes:
        nodes: Node candidates.
        edges: Edge candidates.
        vectors: Candidate id → vector of its text, for those embedded already.
        proposals: Candidate id → its stored proposal.
    """

    nodes: tuple[NodeCandidate, ...] = ()
    edges: tuple[EdgeCandidate, ...] = ()
    vectors: Mapping[str, TextVector] = field(default_factory=dict)
    proposals: Mapping[str, Proposal] = field(default_factory=dict)


@dataclass(frozen=True)
class TextVector:
    """The vector of a text.

    Attributes:
        vector: Little-endian float32, 384 of them, L2 norm 1.
        truncated: Whether the text was longer than the model reads.
    """

    vector: bytes
    truncated: bool = False


@dataclass(frozen=True)
class Node:
    """A node of the graph with all its common properties.

    Attributes:
        attributes: As agents gave them, merged by updates; `confidence` among them if it was given.
        source_ref: Canonical text.
        artifact: Canonical text of the artifact alone.
        artifact_version: Of the last commit that wrote the content; None unless the artifact was that session's own.
        created_seq: The commit that inserted it.
        commit_seq: The last commit that changed content or liveness.
        version: Raised by each change of content or liveness, from 1.
        confidence: 0..1.
        relevance_score: 0..1.5.
        priority_boost: 0..0.2.
        superseded_by: None for a live node.
        status: A Decision's: active, revoked or superseded; None for the other types.
        truncated: Whether its text was longer than the embedding model reads.
    """

    board_id: str
    node_id: str
    node_type: NodeType
    title: str
    body: str
    attributes: Mapping[str, Any]
    source_ref: str
    artifact: str
    artifact_version: int | None
    source_session_id: str
    created_seq: int
    commit_seq: int
    version: int
    content_digest: str
    created_at: Instant
    updated_at: Instant
    created_by: str
    confidence: float = DEFAULT_CONFIDENCE
    relevance_score: float = 0.0
    query_hits: int = 0
    last_queried_at: Instant | None = None
    last_recomputed_at: Instant | None = None
    priority_boost: float = 0.0
    superseded_by: str | None = None
    superseded_at: Instant | None = None
    revocation_reason: str | None = None
    human_curated: bool = False
    status: str | None = None
    truncated: bool = False

    @property
    def happened_at(self) -> Instant:
        """When what it states was decided, where it says so; else when it was made. What `since` and `until` compare."""
        # A board may give another type a key of that name, whose value is then any text.
        stated = self.attributes.get("decided_at") if self.node_type == "Decision" else None
        return self.created_at if not isinstance(stated, str) else parse_instant(stated)

    @property
    def live(self) -> bool:
        """Nothing supersedes it. A revoked node is live."""
        return self.superseded_by is None

    @property
    def revoked(self) -> bool:
        """An agent or an administrator took it back."""
        return self.revocation_reason is not None or self.status == "revoked"

    @property
    def stable_ref(self) -> str | None:
        """The source reference where it can identify a node."""
        return stable_part(self.source_ref)


@dataclass(frozen=True)
class Edge:
    """An edge of the graph.

    Attributes:
        edge_id: From board, ends and relationship: the same edge twice is one edge.
        confidence: 0..1.
        layer: `cognitive`, or `deterministic` for the worker's.
        rule_id: The worker's rule.
    """

    board_id: str
    edge_id: str
    src: str
    rel_type: RelType
    dst: str
    created_at: Instant
    created_by: str
    commit_seq: int
    source_session_id: str
    reason: str | None = None
    evidence: str | None = None
    confidence: float = DEFAULT_CONFIDENCE
    layer: Layer = "cognitive"
    rule_id: str | None = None


NODE_PROPERTIES: Final = tuple(
    f.name for f in fields(Node) if f.name not in {"board_id", "node_id", "node_type", "attributes", "truncated"}
)
"""The properties that nodes of all types have, but for the id; `status` is a Decision's."""
EDGE_PROPERTIES: Final = tuple(f.name for f in fields(Edge) if f.name not in {"board_id", "edge_id", "src", "rel_type", "dst"})
"""The properties of an edge, but for the id."""


@dataclass(frozen=True)
class Target:
    """A node that a proposal is about, with the content version that was seen."""

    node_id: str
    version: int


@dataclass(frozen=True)
class Proposal:
    """What the rules say of one candidate.

    Attributes:
        candidate_id: The candidate.
        hint: What a commit does with it unless it is overridden.
        rule: The number of the rule that fired, 1..6.
        rationale: Why, for a reader.
        targets: The node it goes to; for SUPERSEDE by edges all of them, the first one first; for ADD a possible duplicate.
        twin: For a NOOP onto an earlier candidate of the session: that candidate.
        score: Similarity, 0..1 with 4 decimals, where it mattered.
        warnings: What a reader should look at.
        seen_seq: The board's last commit when the proposal was made.
    """

    candidate_id: str
    hint: Hint
    rule: int
    rationale: str
    targets: tuple[Target, ...] = ()
    twin: str | None = None
    score: float | None = None
    warnings: tuple[str, ...] = ()
    seen_seq: int = 0


@dataclass(frozen=True)
class Override:
    """An agent's own hint for a candidate, with its reason."""

    candidate_id: str
    hint: Hint
    rationale: str
    target_node: str | None = None


@dataclass(frozen=True)
class Resolution:
    """What a commit does with a candidate: its proposal, or the override of it.

    Attributes:
        candidate_id: The candidate.
        hint: What is done.
        targets: The nodes it is done to.
        twin: For NOOP: the earlier candidate whose node it is.
        overridden: Whether an override decided.
    """

    candidate_id: str
    hint: Hint
    targets: tuple[Target, ...] = ()
    twin: str | None = None
    overridden: bool = False


@dataclass(frozen=True)
class Resolved:
    """A session whose candidates all have a resolution.

    Attributes:
        session: The session.
        candidates: Its candidates.
        proposals: The proposal of each node candidate.
        overrides: As the agent gave them.
        resolutions: What is done with each node candidate, in order.
    """

    session: Session
    candidates: Candidates
    proposals: Sequence[Proposal]
    overrides: Sequence[Override]
    resolutions: Sequence[Resolution]
