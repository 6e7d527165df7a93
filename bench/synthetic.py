"""The synthetic boards: what the generator of the test data writes, as sessions of the tools.

An agent may write five of the relationships. On a loaded board the others (belongs_to, derives_from, violates, tests)
are left out; in a measured session belongs_to becomes a relates_to to the same Entity, so that a node has its two edges.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from bench.context import Context
from bench.world import NewEdge, NewNode
from pulse_kg.domain.schema import AGENT_REL_TYPES

SEED = 7
GENERATOR = "synthetic_board.py"

_ATTRIBUTES_WITH_RATIONALE = {"Decision", "Constraint", "Assumption"}


def board(context: Context, size: int, *, every_edge: bool = False) -> list[NewNode]:
    """The nodes of a board; every edge goes to an earlier one.

    Args:
        context: The run.
        size: How many nodes.
        every_edge: Whether they have the edges too that no agent may write, for a board that no agent writes.
    """
    return [_node(line, within_session=False, every_edge=every_edge) for line in _lines(context, "--n", str(size))]


def sessions(context: Context, board_size: int, *, count: int, size: int, short: bool = False) -> list[list[NewNode]]:
    """Further sessions of Decisions for such a board, to be committed in this order.

    Args:
        context: The run.
        board_size: Nodes of the board.
        count: How many sessions.
        size: Decisions of each.
        short: Whether they have a title and no body: some 15 tokens a text, where the whole has some 75.
    """
    lines = _lines(context, "--n", str(board_size), "--sessions", str(count), "--size", str(size))
    return [[_node({**node, "body": ""} if short else node, within_session=True) for node in line["nodes"]] for line in lines]


def queries(context: Context) -> list[dict[str, Any]]:
    """Questions about such a board: phrase, word, area and title, each a text."""
    return _lines(context, "--queries")


def _lines(context: Context, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(context.data_file(GENERATOR)), "--seed", str(SEED), *options]
    made = subprocess.run(command, capture_output=True, check=True)
    return [json.loads(line) for line in made.stdout.splitlines()]


def _node(line: Mapping[str, Any], *, within_session: bool, every_edge: bool = False) -> NewNode:
    node_type, attributes = line["type"], {"confidence": line["confidence"]}
    if line["rationale"] and node_type in _ATTRIBUTES_WITH_RATIONALE:
        attributes["rationale"] = line["rationale"]
    arguments = {
        "node_type": node_type,
        "title": line["title"],
        "body": line["body"],
        "attributes": attributes,
        # Each node an artifact of its own: the texts are made of few words, and from one artifact they would replace each other.
        "source_ref": {"spec_id": line["ref"].removeprefix("spec:"), "section": "statement"},
    }
    edges = []
    for edge in line["edges"]:
        if every_edge or edge["type"] in AGENT_REL_TYPES:
            edges.append(NewEdge(edge["type"], edge["to"]))
        elif within_session and edge["type"] == "belongs_to":
            edges.append(NewEdge("relates_to", edge["to"]))
    return NewNode(line["id"], arguments, tuple(edges))
