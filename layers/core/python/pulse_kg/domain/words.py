"""The words of a text that carry its content: what titles are searched by and answers are checked by."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from pulse_kg.domain.text import fold

STOP_WORDS: Final = frozenset(
    """
    a about above after again against all also although am an and any are as at be because been before being below between both but by
    can could did do does doing done down during each either else ever every few for from further get gets got had has have having he
    her here hers herself him himself his how however i if in into is it its itself just let many may me might mine more most much must
    my myself need now of off on once only onto or other otherwise our ours ourselves out over own per perhaps quite rather really same
    shall she should since so some somehow such than that the their theirs them themselves then there therefore these they this those
    though through thus to too toward towards under until up upon us use used uses using very via was we were what whatever when
    whenever where wherever whether which while who whoever whom whose why will with within won would yet you your yours yourself
    yourselves
    """.split()
)
"""Words that carry no content of their own. Negations (not, no, never, without, none) are no part of it: they turn a statement around."""

_WORD: Final = re.compile(r"[^\W_]+(?:[.'’_-][^\W_]+)*")


def words(text: str) -> tuple[str, ...]:
    """The folded words of a text, in order; a number with its points, and parts that a hyphen or underscore joins, are one word."""
    return tuple(_WORD.findall(fold(text)))


def content_words(text: str) -> tuple[str, ...]:
    """The folded words of a text that are no stop words, in order, repeated ones too."""
    return tuple(word for word in words(text) if word not in STOP_WORDS)


def share(wanted: Collection[str], found: Collection[str]) -> float:
    """Which share of the wanted words is among the found ones, 0..1; 0 where none is wanted."""
    distinct = set(wanted)
    return len(distinct & set(found)) / len(distinct) if distinct else 0.0
