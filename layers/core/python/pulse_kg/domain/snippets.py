"""The piece of a text that shows best why it was found."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final

from pulse_kg.domain.model import Node
from pulse_kg.domain.words import words

MAX_SNIPPET: Final = 240
"""Characters."""
_PROSE: Final = ("rationale", "reason_discarded", "given", "when", "then")
_SENTENCE: Final = re.compile(r"\n|(?<=[.!?…])[\"'”’)\]]*\s+")
_TOKEN: Final = re.compile(r"\S+")
_CUT: Final = "…"


def node_snippet(node: Node, wanted: Collection[str]) -> str:
    """The snippet of a node's body and the attributes that are prose; of one that has neither, its title.

    Args:
        node: The node.
        wanted: Folded words that it was asked for by.
    """
    attributes = [node.attributes.get(key) for key in _PROSE]
    text = "\n".join([node.body, *(value for value in attributes if isinstance(value, str))])
    return snippet(text if text.strip() else node.title, wanted)


def snippet(text: str, wanted: Collection[str]) -> str:
    """At most 240 characters around the sentence that has most of the words, the first of several.

    White space is collapsed. What is longer is cut between words, and an ellipsis stands where something was left out; only a single word
    of more than that length is cut itself.

    Args:
        text: The text; blank gives nothing.
        wanted: Folded words.
    """
    wanted = frozenset(wanted)
    lined = "\n".join(line for line in (" ".join(line.split()) for line in text.splitlines()) if line)
    start, end = _best_sentence(lined, wanted)
    flat = lined.replace("\n", " ")
    if len(flat) <= MAX_SNIPPET:
        return flat
    tokens = [found.span() for found in _TOKEN.finditer(flat)]
    inside = [n for n, (at, _) in enumerate(tokens) if start <= at < end]
    first, last = inside[0], inside[-1]
    if not _fits(tokens, first, last):
        first = last = next((n for n in inside if not wanted.isdisjoint(words(flat[slice(*tokens[n])]))), first)
    while last + 1 < len(tokens) and _fits(tokens, first, last + 1):
        last += 1
    while first > 0 and _fits(tokens, first - 1, last):
        first -= 1
    before, after = _CUT if first > 0 else "", _CUT if last + 1 < len(tokens) else ""
    shown = flat[tokens[first][0] : tokens[last][1]]
    if len(before) + len(shown) + len(after) > MAX_SNIPPET:
        shown, after = shown[: MAX_SNIPPET - len(before) - len(_CUT)], _CUT
    return before + shown + after


def _best_sentence(text: str, wanted: frozenset[str]) -> tuple[int, int]:
    bounds = [0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]
    spans = [(a, b) for a, b in pairwise(bounds) if text[a:b].strip()]
    return min(spans, key=lambda span: (-len(wanted.intersection(words(text[slice(*span)]))), span), default=(0, 0))


def _fits(tokens: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    length = tokens[last][1] - tokens[first][0]
    return length + (first > 0) + (last + 1 < len(tokens)) <= MAX_SNIPPET
