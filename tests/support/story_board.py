"""A board with a story: how the retries of webhooks were decided, thrice, and what was learned; told through the write tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pulse_kg.domain.model import EdgeDraft, EdgeEnd
from pulse_kg.domain.schema import RelType
from tests.support.world import Agent, Consolidation, World

DROP = "Failed webhooks are dropped, without a retry"
FIXED = "Webhooks are retried 5 times, every 3 s"
BACKOFF = "Webhook retries wait by exponential backoff with jitter"
TIMEOUT = "Webhook receivers answer within 30 s"
SPACING = "Waits between retries grow exponentially"
ORDER = "Webhook payloads arrive in the order of their events"
BUCKET = "A token bucket for each tenant in place of waiting"
SLOW = "A slow consumer kept deliveries open for a minute"
LATENCY = "Log the raw latency of a delivery, not the count of its retries"
SEQUENCE = "Queue consumers gate events by their sequence number"
HERD = "After fixed waits all clients return at once, a thundering herd at the peer's recovery."
DISCARDED = "It would need accounting for each tenant, and there is little traffic."


@dataclass(frozen=True)
class Story:
    """What was told.

    Attributes:
        world: Where.
        agent: Who told it; it has all permissions on the board.
        board_id: The board.
        ids: Node id by the name of its title: `drop`, `fixed`, `backoff`, `timeout`, `spacing`, `order`, `bucket`, `slow`, `latency`,
            `sequence`.
        edges: (name, relationship, name) → edge id.
    """

    world: World
    agent: Agent
    board_id: str
    ids: Mapping[str, str]
    edges: Mapping[tuple[str, str, str], str]

    def __getitem__(self, name: str) -> str:
        return self.ids[name]

    def name_of(self, node_id: str) -> str:
        """The name of a node."""
        return {v: k for k, v in self.ids.items()}[node_id]


def worker_edge(session: Consolidation, src: str, rel_type: RelType, dst: str) -> None:
    """Adds an edge as only the deterministic worker may."""
    ends = [EdgeEnd(candidate_id=label) if label.startswith("cand_") else EdgeEnd(node_id=label) for label in (src, dst)]
    world = session.agent.world
    world.container.sessions.append_edge(
        session.session_id,
        EdgeDraft(ends[0], rel_type, ends[1], layer="deterministic", rule_id="told"),
        unknown_keys=(),
        target_was_live=None,
        idempotency_key=None,
        limit=1_000,
        now=world.clock.now(),
    )


def retry_story(world: World, board_id: str = "alpha") -> Story:
    """Tells the story on a board; three chapters of spec_007, half a year apart, and one of another spec.

    `backoff` supersedes `fixed`, which supersedes `drop`; it depends on `timeout`, contradicts `order` and was preferred to `bucket`.
    `slow` violates `timeout`, and `latency` was learned from it. `timeout` and `spacing` come from the same spec. `sequence` stands alone.
    """
    agent = world.agent(f"teller of {board_id}", boards=(board_id,))
    ids: dict[str, str] = {}
    edges: dict[tuple[str, str, str], str] = {}

    def tell(version: int, nodes: list[tuple[str, str, str, str, str, dict[str, Any]]], links: list[tuple[str, RelType, str, str]]) -> None:
        session = agent.begin("spec_007", version, board_id=board_id)
        labels = dict(ids)
        for name, node_type, title, body, place, attributes in nodes:
            spec, _, section = place.partition("#")
            ref = {"spec_id": spec, "section": section}
            labels[name] = session.add(node_type, title, body, attributes=attributes, source_ref=ref)
        for src, rel_type, dst, reason in links:
            if rel_type == "violates":
                worker_edge(session, labels[src], rel_type, labels[dst])
            else:
                session.edge(labels[src], rel_type, labels[dst], **({"reason": reason} if reason else {}))
        answer = session.commit()
        made = {a["candidate_id"]: a["node_id"] for a in answer["applied"]["added"]}
        assert len(made) == len(nodes), answer
        ids.update({name: made[labels[name]] for name, *_ in nodes})
        named = {node_id: name for name, node_id in ids.items()}
        edges.update({(named[e["src"]], e["rel"], named[e["dst"]]): e["edge_id"] for e in answer["edges_added"]})

    tell(1, [("drop", "Decision", DROP, "Nobody has asked for retries so far.", "spec_007#first", {})], [])
    world.clock.advance(days=67)
    tell(
        2,
        [("fixed", "Decision", FIXED, "Most peers are back within 15 s.", "spec_007#second", {"confidence": 0.8})],
        [("fixed", "supersedes", "drop", "Customers lost events.")],
    )
    world.clock.advance(days=98)
    webhooks = {"severity": "high", "scope": "webhook delivery"}
    tell(
        3,
        [
            ("backoff", "Decision", BACKOFF, "Each wait doubles.", "spec_007#third", {"confidence": 0.9, "rationale": HERD}),
            ("timeout", "Constraint", TIMEOUT, "A slower one counts as failed.", "spec_007#receivers", webhooks),
            ("spacing", "Constraint", SPACING, "A peer needs time to recover.", "spec_007#spacing", {}),
            ("order", "Constraint", ORDER, "The ledger depends on it.", "spec_009#order", {}),
            ("bucket", "Alternative", BUCKET, "", "spec_007#bucket", {"reason_discarded": DISCARDED}),
        ],
        [
            ("backoff", "supersedes", "fixed", "All clients came back at once."),
            ("backoff", "depends_on", "timeout", ""),
            ("backoff", "contradicts", "order", "A delayed event is overtaken by the next."),
            ("backoff", "relates_to", "bucket", ""),
        ],
    )
    world.clock.advance(days=16)
    learned = {"area": "webhook delivery", "captured_at": "2026-07-02T11:00:00Z"}
    tell(
        4,
        [
            ("slow", "Bug", SLOW, "Its queue had no limit.", "spec_007#slow", {"severity": "major", "resolved_at": "2026-07-01"}),
            ("latency", "Learning", LATENCY, "The count hid how slow the peer was.", "spec_007#latency", learned),
            ("sequence", "Decision", SEQUENCE, "Events that come too early wait.", "spec_011#gate", {"decided_at": "2025-12-24"}),
        ],
        [("latency", "validates", "slow", ""), ("slow", "violates", "timeout", "")],
    )
    return Story(world, agent, board_id, ids, edges)
