"""The second board of the demo: what an imaginary team that builds an installer has decided, has to keep, and has learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulse_kg.cli.client_tools import Tools
from pulse_kg.cli.peps import content_hash
from pulse_kg.cli.story import BOARD
from pulse_kg.cli.story_run import Checks

TEAM: Final = "installer"
_RULES: Final = "installer-rules"


@dataclass(frozen=True)
class Statement:
    """A node of the board, in the tools' words; its reference is `spec_id#section`."""

    node_type: str
    title: str
    body: str
    ref: str
    attributes: Mapping[str, Any]

    def node(self) -> dict[str, Any]:
        """As add_node_candidate takes it."""
        spec, _, section = self.ref.partition("#")
        return {
            "node_type": self.node_type,
            "title": self.title,
            "body": self.body,
            "attributes": dict(self.attributes),
            "source_ref": {"spec_id": spec, "section": section},
        }


STATEMENTS: Final[Mapping[str, Statement]] = {
    "no_code": Statement(
        "Constraint",
        "Installing a package runs no code of that package",
        "Whoever publishes a package could otherwise act on every machine that installs it.",
        f"{_RULES}#no-code",
        {"severity": "critical", "scope": "installation"},
    ),
    "hashes": Statement(
        "Constraint",
        "Every file is compared with its SHA-256 before it is unpacked",
        "A mirror may serve another file under the same name.",
        f"{_RULES}#hashes",
        {"severity": "high", "scope": "installation"},
    ),
    "wheels": Statement(
        "Decision",
        "The installer prefers wheels",
        "A wheel is unpacked and never run.",
        "installer-design#wheels",
        {"rationale": "A wheel can be installed without running anything.", "decided_at": "2025-02-03"},
    ),
    "builds": Statement(
        "Decision",
        "A package without a wheel is built on the user's machine",
        "Its build backend runs there during the installation.",
        "installer-design#builds",
        {"rationale": "Some packages are published as source alone.", "decided_at": "2025-03-10"},
    ),
    "cache": Statement(
        "Bug",
        "A build removed the user's cache during an installation",
        "Its setup script deleted what it took for a temporary folder of its own.",
        "installer-bugs#cache",
        {"severity": "major", "resolved_at": "2025-06-20"},
    ),
    "sandbox": Statement(
        "Learning",
        "Build in an empty folder, with a home folder of its own",
        "The next setup script that cleans up finds nothing that belongs to the user.",
        "installer-bugs#sandbox",
        {"area": "building packages", "captured_at": "2025-06-24"},
    ),
}

_EDGES: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("wheels", "depends_on", "no_code", {}),
    ("builds", "contradicts", "no_code", {"reason": "A build runs code of the package."}),
    ("sandbox", "validates", "cache", {}),
)


def team_of(board: str) -> str:
    """The team's board beside a board of the demo."""
    return TEAM if board == BOARD else f"{board}_{TEAM}"


def record(board: str, tools: Tools, checks: Checks) -> dict[str, str]:
    """Records the statements in one session.

    Returns:
        Name → node id.

    Raises:
        Refused: A tool refused it.
    """
    nodes = [statement.node() for statement in STATEMENTS.values()]
    session_id: str = tools.begin(board, "spec", _RULES, 1, content_hash(nodes))["session_id"]
    with tools.aborting(session_id):
        candidates = {name: tools.add_node(session_id, node) for name, node in zip(STATEMENTS, nodes, strict=True)}
        for src, rel, dst, attributes in _EDGES:
            tools.add_edge(session_id, {"candidate_id": candidates[src]}, rel, {"candidate_id": candidates[dst]}, attributes)
        answer = tools.commit(session_id)
    node_of = {added["candidate_id"]: added["node_id"] for added in answer["applied"]["added"]}
    checks.expect("The team's statements are all new.", holds=set(node_of) == set(candidates.values()), seen=answer["applied"])
    return {name: node_of[candidate] for name, candidate in candidates.items()}
