"""Questions over the decision history of the test data whose answers are known: by its own headers, by fixed rules, and by hand."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pulse_kg.cli.peps import Document, closing_links, links_of
from pulse_kg.domain.text import fold
from pulse_kg.domain.words import content_words, words

_EVERY: Final = 9  # one document in nine gives a question of a rule
_RAREST: Final = 8
_LEAST_TITLE: Final = 3  # content words that a title must have left


@dataclass(frozen=True)
class Question:
    """A question.

    Attributes:
        kind: Where it comes from.
        text: What is asked.
        answers: The documents that answer it; not empty.
    """

    kind: str
    text: str
    answers: frozenset[int]


BY_HAND: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("How can I be sure that a file is closed when a block is left by an exception?", (343,)),
    ("How do we write functions that are suspended and resumed and give one value after the other?", (255,)),
    ("Which syntax puts expressions straight into the text of a string?", (498, 701)),
    ("Run Python threads on several cores at the same time", (703,)),
    ("Who decides about the language since its creator stepped down?", (13, 8016)),
    ("Where do tools read from what is needed to build a project?", (518,)),
    ("How are the installed packages of one project kept apart from those of another?", (405,)),
    ("Can a literal of one million be written so that people can read it?", (515,)),
    ("Give a value a name inside of a condition", (572,)),
    ("Why does dividing two whole numbers give a fraction?", (238,)),
    ("How do I see whether two floats are nearly equal?", (485,)),
    ("A fixed set of named constants that can be compared and iterated", (435,)),
    ("List a large directory without a system call for each file", (471,)),
    ("Random numbers for passwords and security tokens", (506,)),
    ("Take data apart by its shape instead of a chain of if and elif", (634, 635, 636, 622)),
    ("Read configuration files in TOML without installing anything", (680,)),
    ("How often does a new feature version come out?", (602,)),
    ("Which old modules are thrown out of the standard library?", (594,)),
    ("Run calls in a pool of threads or processes and collect their results later", (3148,)),
    ("Raise several unrelated errors together", (654,)),
    ("A traceback that points at the exact column of the expression that failed", (657,)),
    ("Time zones without a third-party package", (615,)),
    ("Merge two dictionaries with an operator", (584,)),
    ("Arguments that callers can't pass by their name", (570, 457)),
    ("Keep pip from breaking the packages of the operating system", (668,)),
    ("Record the exact versions of all dependencies so that an installation can be repeated", (751, 665)),
    ("Make classes that only hold data without writing their methods", (557,)),
    ("How does a web server talk to an application?", (333, 3333)),
)
"""Written by a person who knows the documents and does not quote their titles."""


def questions(documents: Sequence[Document]) -> list[Question]:
    """All questions, in a fixed order; those by hand only where their documents are there."""
    known = {d.pep for d in documents}
    by_hand = (Question("by hand", text, frozenset(peps)) for text, peps in BY_HAND if known.issuperset(peps))
    return [*_relations(documents), *_title_words(documents), *_rare_words(documents), *by_hand]


def _relations(documents: Sequence[Document]) -> Iterable[Question]:
    """What replaced a document, and what it replaced, as the headers state it."""
    titles = {d.pep: d.title for d in documents}
    links = links_of(documents)[0]
    closing = closing_links(links)
    newer, older = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for link in links:
        if link.rel == "supersedes" and link not in closing:
            newer[link.dst].add(link.src)
            older[link.src].add(link.dst)
    for pep in sorted(newer):
        yield Question("what replaced it", f"What replaced {titles[pep]}?", frozenset(newer[pep]))
    for pep in sorted(older):
        yield Question("what it replaced", f"What did {titles[pep]} replace?", frozenset(older[pep]))


def _title_words(documents: Sequence[Document]) -> Iterable[Question]:
    """The content words of a title from the last to the second; documents of the same words answer too."""
    said: Callable[[Document], frozenset[str]] = lambda d: frozenset(content_words(d.title))  # noqa: E731
    for document in documents[::_EVERY]:
        rest = list(dict.fromkeys(content_words(document.title)))[:0:-1]
        if len(rest) >= _LEAST_TITLE:
            answers = {d.pep for d in documents if said(d) == said(document)}
            yield Question("words of the title", " ".join(rest), frozenset(answers))


def _rare_words(documents: Sequence[Document]) -> Iterable[Question]:
    """The rarest words of an abstract that its title has not, in their order; only plain words of four letters or more."""
    found = Counter(word for d in documents for word in set(words(d.abstract)))
    for document in documents[_EVERY // 2 :: _EVERY]:
        own = [
            w for w in dict.fromkeys(content_words(document.abstract)) if re.fullmatch(r"[a-z]{4,}", w) and w not in fold(document.title)
        ]
        rarest = set(sorted(own, key=lambda w: (found[w], w))[:_RAREST])
        if len(rarest) == _RAREST:
            yield Question("rare words of the text", " ".join(w for w in own if w in rarest), frozenset({document.pep}))
