"""Overrides: an agent's own hints at commit, checked against the proposals and the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulse_kg.domain.model import Node, NodeCandidate, Override, Proposal, Resolution, Target
from pulse_kg.errors import InvalidOverride, Problem


def named_nodes(overrides: Sequence[Override]) -> tuple[str, ...]:
    """The nodes that overrides name as targets, each once, in order."""
    return tuple(dict.fromkeys(o.target_node for o in overrides if o.target_node is not None))


def resolve(
    candidates: Sequence[NodeCandidate],
    proposals: Mapping[str, Proposal],
    overrides: Sequence[Override],
    nodes: Mapping[str, Node],
) -> tuple[Resolution, ...]:
    """What a commit does with each candidate, in their order.

    Args:
        candidates: The session's node candidates.
        proposals: One for each of them.
        overrides: What the agent says instead.
        nodes: The board's nodes that proposals and overrides name.

    Raises:
        InvalidOverride: With every problem of every override.
    """
    types = {c.candidate_id: c.draft.node_type for c in candidates}
    problems: list[Problem] = []
    chosen: dict[str, Resolution] = {}
    for index, override in enumerate(overrides):
        where = f"agent_overrides[{index}]"
        if override.candidate_id not in types:
            problems.append(Problem(f"{where}.candidate_id", f"'{override.candidate_id}' is no node candidate of this session"))
            continue
        if override.candidate_id in chosen:
            problems.append(Problem(f"{where}.candidate_id", f"'{override.candidate_id}' is named twice; keep one override for it"))
            continue
        if not override.rationale.strip():
            problems.append(Problem(f"{where}.rationale", "must not be blank; it goes into the audit row"))
        resolution, fault = _override(override, proposals[override.candidate_id], types[override.candidate_id], nodes)
        chosen[override.candidate_id] = resolution
        if fault:
            problems.append(Problem(f"{where}.target_node", fault))
    if problems:
        raise InvalidOverride(
            f"{len(problems)} of the overrides can't be applied and nothing was changed. Correct them and commit again.", problems
        )
    return tuple(chosen.get(c.candidate_id) or _as_proposed(proposals[c.candidate_id]) for c in candidates)


def _as_proposed(proposal: Proposal) -> Resolution:
    targets = () if proposal.hint == "ADD" else proposal.targets
    return Resolution(proposal.candidate_id, proposal.hint, targets, proposal.twin)


def _override(override: Override, proposal: Proposal, node_type: str, nodes: Mapping[str, Node]) -> tuple[Resolution, str | None]:
    if override.hint == "ADD":
        return Resolution(override.candidate_id, "ADD", overridden=True), None
    same_target = override.target_node is None or [t.node_id for t in proposal.targets[:1]] == [override.target_node]
    if override.hint == proposal.hint and same_target:
        return Resolution(override.candidate_id, proposal.hint, proposal.targets, proposal.twin, overridden=True), None
    target_id = override.target_node or (proposal.targets[0].node_id if proposal.targets else None)
    nothing = Resolution(override.candidate_id, override.hint, overridden=True)
    if target_id is None:
        return nothing, f"{override.hint} needs a target_node, and the proposal for {override.candidate_id} names none"
    node = nodes.get(target_id)
    if node is None:
        return nothing, f"there is no node '{target_id}' on this board"
    if node.node_type != node_type:
        return nothing, f"'{target_id}' is of type {node.node_type}, but {override.candidate_id} is of type {node_type}"
    if not node.live:
        return nothing, f"'{target_id}' was superseded by {node.superseded_by}; name that one, or choose ADD"
    if node.human_curated:
        return nothing, f"'{target_id}' is curated by a person and is not changed by agents; choose ADD"
    seen = next((t for t in proposal.targets if t.node_id == target_id), Target(target_id, node.version))
    return Resolution(override.candidate_id, override.hint, (seen,), overridden=True), None
