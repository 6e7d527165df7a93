"""Partition and sort keys of all items, in one place; numbers in sort keys have a fixed width, so that they sort as numbers.

boards table
    board#B   #                  the board: name, commit_seq, applied_seq, settings, erasing, lease
    board#B   audit#SEQ          a commit's audit row (inline or the place of its parts), event and state in the outbox
    board#B   artifact#DIGEST    last content hash of an artifact
    board#B   ingested#DIGEST@V  canonical hash of an artifact's version
    board#B   stage#TOKEN        parts that were written for a commit which may never be decided
    board#B   hit#NODE           how often a node was returned, and when last
    parts#B#TOKEN   NAME#N       the parts
    boards    B                  the list of boards
    erased#B  #                  an id that is never used again
    tick      #                  who runs the decay tick, and how far it came
sessions table
    session#S   #                the session
    session#S   n#N, e#N         node and edge candidates
    session#S   k#DIGEST         what an idempotency key made
    session#S   answer#TOKEN#N   parts of a large answer
    session#S   p#N              parts of the proposals
    session#S   v#TIME#DIGEST    vectors of some candidates
    agent#A     s#S              the sessions that an agent opened
    agent#A     #                the last of them, by which two that open at once see each other
    board#B     s#S              the sessions of a board
    due         TIME#S           all sessions, by when they may be forgotten
identity table
    agent#A     #                the agent with its grants
    agent#A     key#PUBLIC       the keys of an agent
    key#PUBLIC  #                a key
    agents      NAME             the list of agents, each name once
rates table
    KEY         SECONDS          the newest window of that length, and what was taken of it
"""

from __future__ import annotations

from typing import Final

HEAD: Final = "#"
"""Sort key of a partition's main item."""
BOARD_LIST: Final = "boards"
AUDIT: Final = "audit#"
ARTIFACT: Final = "artifact#"
INGESTED: Final = "ingested#"
STAGE: Final = "stage#"
HIT: Final = "hit#"
TICK: Final = "tick"
OPENED: Final = "s#"
DUE: Final = "due"
ANSWER: Final = "answer#"
EDGES: Final = "e#"
NODES: Final = "n#"
PROPOSALS: Final = "p"
VECTORS: Final = "v#"
AGENT_LIST: Final = "agents"
KEYS: Final = "key#"


def board(board_id: str) -> str:
    """Partition of a board, in the boards table and, for its sessions, in the sessions table."""
    return f"board#{board_id}"


def erased(board_id: str) -> str:
    """Partition of an erased board's tombstone."""
    return f"erased#{board_id}"


def audit(seq: int) -> str:
    """Sort key of a commit."""
    return f"{AUDIT}{seq:012d}"


def parts(board_id: str, token: str) -> str:
    """Partition of a commit's parts."""
    return f"parts#{board_id}#{token}"


def part(name: str, number: int) -> str:
    """Sort key of a part."""
    return f"{name}#{number:05d}"


def session(session_id: str) -> str:
    """Partition of a session."""
    return f"session#{session_id}"


def agent(agent_id: str) -> str:
    """Partition of the sessions that an agent opened."""
    return f"agent#{agent_id}"


def candidate(kind: str, number: int) -> str:
    """Sort key of a candidate; the kind is `n` or `e`."""
    return f"{kind}#{number:06d}"


def opened(session_id: str) -> str:
    """Sort key of a session in a list of sessions."""
    return f"{OPENED}{session_id}"


def due(instant: int, session_id: str) -> str:
    """Sort key of a session in the list of what may be forgotten, and when."""
    return f"{instant:015d}#{session_id}"


def idempotency(digest: str) -> str:
    """Sort key of what an idempotency key made."""
    return f"k#{digest}"


def api_key(public_id: str) -> str:
    """Partition of a key, and its sort key among those of its agent."""
    return f"{KEYS}{public_id}"
