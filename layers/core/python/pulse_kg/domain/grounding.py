"""Whether an answer says what its sources say. By words and rules alone, so that the same answer and sources always give the same result.

The rules, in the order in which they apply:

1. Answer and sources are cut into sentences. Marks of lists and headings and citations like ``[1]`` are no part of them. A title is one
   sentence, so is each attribute with its name, each sentence of it.
2. An answer's sentence is cut into phrases: what stands in quotes; numbers with their unit ("30 s" is "30 seconds" is "thirty seconds");
   code-like words (``max_depth``, ``kg.query.global``, ``DynamoDB``, ``sha256``); and the runs of content words between stop words
   (`STOP_WORDS`), negations and punctuation. Plural endings don't count.
3. A quote is matched where its words stand in the sources in that order, a code-like word where the whole of it does. A number is matched
   where the same number with the same unit is; if it counts something ("5 attempts"), a sentence that counts the same with another
   number is no match. A run is cut, from its start, into the longest pieces of at most 8 words that stand in the sources; if words are
   left over, the whole run is matched all the same where a sentence has at least 0.7 of both their words (Jaccard).
4. The score is the weight of what was matched over the weight of everything: one for each content word, two for a number.
5. The evidence of a sentence is that sentence of the sources which has most of its weight; at equal weight the earlier one. If one of the
   two has a negation and the other has none, the negation is unmatched; so is one without evidence.
6. Grounded is an answer with a score of 0.7 or more, and no number and no negation unmatched. Where nothing can be checked it is not.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple

from pulse_kg.domain.text import NEGATIONS, NUMBER, NUMBER_WORDS, UNITS, fold
from pulse_kg.domain.words import STOP_WORDS

GROUNDED_FROM: Final = 0.7
"""The least score of a grounded answer."""
LONGEST_PIECE: Final = 8
"""Words of a piece of a run."""
MAX_SHOWN: Final = 240
"""Characters of a phrase or sentence, as it is told."""

_ABBREVIATIONS: Final = frozenset("e.g i.e etc vs cf a.m p.m approx resp incl".split())
_VALUES: Final[Mapping[str, str]] = {
    **{word: str(n) for n, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), 2)},
    **{word: str(n) for n, word in zip(range(20, 70, 10), "twenty thirty forty fifty sixty".split(), strict=True)},
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
}
_LETTERS: Final = r"[^\W\d_]"
_UNIT: Final = rf"(?:[%$€]|(?:{'|'.join(sorted((u for u in UNITS if u not in '$€%'), key=len, reverse=True))})(?!{_LETTERS}))"
# A text may be 32 KiB of one sign: where a pattern could begin at each of many equal signs, it looks behind and begins at the first alone.
_TOKEN: Final = re.compile(  # a word or else a number; most are words
    rf"(?P<word>(?:(?<!_)_+)?(?![vV]\d){_LETTERS}[^\W_]*(?:(?:[._]|::)_*[^\W_]+)*(?:['’]{_LETTERS}+)?)|(?P<number>(?:[$€])?(?i:{NUMBER}))"
)
_AFTER_NUMBER: Final = re.compile(rf"[\s-]?(?P<unit>{_UNIT}(?:/{_UNIT})?)|(?P<joined>{_LETTERS}[^\W_]*)", re.IGNORECASE)
_CODE: Final = re.compile(r"[._\d]|::|[a-z][A-Z]")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_MARK: Final = re.compile(r"^[ \t]*(?:[-*•>]|#{1,6}|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_CITATION: Final = re.compile(r"\[\d{1,3}\]")
_BREAK: Final = re.compile(r"(?<=[.!?…])[\"”’)\]]*\s+|(?<=[。！？])|(?<!\s)\s*\n\s*\n\s*")
_QUOTED: Final = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|(?<!`)`+([^`\n]+)`+|(?<!\w)['‘]([^'‘’\n]+)['’](?!\w)")
_WITHIN_RUN: Final = re.compile(r"[\s*-]*")

_LONGEST_KEPT: Final = 64
"""Characters of a word whose reading is kept; longer ones are rare, and many of them would fill the memory."""

_Kind = Literal["word", "number", "code", "stop", "negation"]
_WEIGHTS: Final[Mapping[_Kind, int]] = {"word": 1, "code": 1, "number": 2, "stop": 0, "negation": 0}


@dataclass(frozen=True)
class Material:
    """What a node says.

    Attributes:
        node_id: Its id, which an answer may cite.
        title: Its title.
        body: Its body.
        attributes: Its attributes.
        around: The titles of its neighbours.
    """

    node_id: str
    title: str
    body: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    around: Sequence[str] = ()


@dataclass(frozen=True)
class Grounding:
    """What a check found.

    Attributes:
        grounded: Whether the sources say what the answer says, by rule 6.
        score: 0..1, rounded half to even to 4 decimals.
        matched: Phrases that were found, in the answer's words and order, each once.
        unmatched: Phrases that were not, and sentences of which the negation was not.
        numbers_unmatched: How many of the phrases that were not found hold a number.
        negations_unmatched: How many sentences have a negation that was not.
    """

    grounded: bool
    score: float
    matched: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    numbers_unmatched: int = 0
    negations_unmatched: int = 0


class _Token(NamedTuple):
    """A word or number: where it stands in its sentence, and what it is compared by."""

    start: int
    end: int
    key: str
    kind: _Kind

    @property
    def weight(self) -> int:
        return _WEIGHTS[self.kind]


@dataclass(frozen=True)
class _Phrase:
    """A piece of an answer's sentence; `counts` is the key of what a bare number counts."""

    kind: Literal["quote", "number", "code", "run"]
    start: int
    end: int
    tokens: tuple[_Token, ...]
    counts: str | None = None

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(t.key for t in self.tokens)

    @cached_property
    def _starts(self) -> list[int]:
        return [t.start for t in self.tokens]

    def weight(self, start: int, end: int) -> int:
        """The weight of what begins between two places of the sentence."""
        return sum(t.weight for t in self.tokens[bisect_left(self._starts, start) : bisect_left(self._starts, end)])


def check(answer: str, materials: Sequence[Material]) -> Grounding:
    """Checks an answer against its sources.

    Args:
        answer: Any text.
        materials: The sources, in the order of the argument.
    """
    sentences = [(text, tokens, _phrases(text, tokens)) for text in _sentences(answer) for tokens in [_tokens(text)]]
    sources = _Sources((s for material in materials for s in _said(material)), [p for *_, phrases in sentences for p in phrases])
    matched: dict[str, None] = {}
    unmatched: dict[str, None] = {}
    all_weight = matched_weight = numbers = negations = 0
    for text, tokens, phrases in sentences:
        weights: Counter[str] = Counter()
        for phrase in phrases:
            has_number = any(t.kind == "number" for t in phrase.tokens)
            for found, part in sources.parts(phrase):
                shown = text[part[0] : part[1]][:MAX_SHOWN]
                (matched if found else unmatched)[shown] = None
                weight = phrase.weight(*part)
                all_weight += weight
                matched_weight += weight if found else 0
                numbers += has_number and not found
            for token in phrase.tokens:
                weights[token.key] += token.weight
        if any(weights.values()) and sources.negated_by(+weights) != any(t.kind == "negation" for t in tokens):
            negations += 1
            unmatched[text.strip()[:MAX_SHOWN]] = None
    score = round(matched_weight / all_weight, 4) if all_weight else 0.0
    grounded = bool(all_weight) and score >= GROUNDED_FROM and not numbers and not negations
    return Grounding(grounded, score, tuple(matched), tuple(unmatched), numbers, negations)


# What stands in a text.


def _sentences(text: str) -> list[str]:
    text = _CITATION.sub("", _MARK.sub("\n\n", unicodedata.normalize("NFKC", text)))
    found: list[str] = []
    start = looked = 0
    for gap in _BREAK.finditer(text):
        last, looked = _word_before_point(text[looked : gap.start()]), gap.end()
        if last and "\n" not in gap.group() and (last.casefold() in _ABBREVIATIONS or len(last) == 1):
            continue
        found.append(text[start : gap.end()])
        start = gap.end()
    return [s for s in (*found, text[start:]) if s.strip()]


def _word_before_point(text: str) -> str:
    """The last word of a text that ends with its point; empty for another."""
    before = text.removesuffix(".")
    return "" if before == text or not before or before[-1].isspace() else before.rsplit(maxsplit=1)[-1]


def _tokens(sentence: str) -> list[_Token]:
    tokens: list[_Token] = []
    reached = 0
    for found in _TOKEN.finditer(sentence):
        start, end = found.span()
        if start < reached:  # the unit of the number before
            continue
        if found.lastgroup == "word":
            key, kind = (_read if end - start <= _LONGEST_KEPT else _read.__wrapped__)(found.group())
        else:
            key, kind = "", "number"
        if kind == "number":
            after = _AFTER_NUMBER.match(sentence, end)
            end = reached = after.end() if after else end
            key = _figure(found.group(), after)
        tokens.append(_Token(start, end, key, kind))
    return tokens


@lru_cache(maxsize=100_000)
def _read(word: str) -> tuple[str, _Kind]:
    """What a word is compared by, and what kind it is of."""
    folded = fold(word)
    if folded in NUMBER_WORDS:
        return folded, "number"
    if folded in NEGATIONS or folded.endswith(("n't", "n’t")):
        return folded, "negation"
    plain = re.split("['’]", folded, maxsplit=1)[0]
    if plain in STOP_WORDS or plain in _ABBREVIATIONS:
        return plain, "stop"
    if _CODE.search(word):
        return plain, "code"
    return _singular(plain), "word"


def _figure(number: str, after: re.Match[str] | None) -> str:
    """What a number is compared by, with its unit and what else belongs to it."""
    currency = number[0] if number[0] in "$€" else ""
    number = fold(number.removeprefix(currency)).removeprefix("v")
    number = _VALUES.get(number, number)
    if _THOUSANDS.fullmatch(number):
        number = number.replace(",", "")
    unit, joined = (after["unit"] or currency, after["joined"] or "") if after else (currency, "")
    return f"#{number}{'/'.join(UNITS[part] for part in fold(unit).split('/') if part)}{fold(joined)}"


def _singular(word: str) -> str:
    if len(word) <= 3:  # noqa: PLR2004 - "gas", "bus"
        return word
    for ending, singular in (("sses", "ss"), ("xes", "x"), ("ies", "y"), ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", "")):
        if word.endswith(ending):
            return word.removesuffix(ending) + singular
    return word


def _phrases(sentence: str, tokens: Sequence[_Token]) -> list[_Phrase]:
    """The phrases of a sentence, in order."""
    quoted = [(found.start(), found.end(), found.span(found.lastindex or 0)) for found in _QUOTED.finditer(sentence)]
    phrases: list[_Phrase] = []
    run: list[_Token] = []

    def close() -> None:
        if run:
            phrases.append(_Phrase("run", run[0].start, run[-1].end, tuple(run)))
            run.clear()

    starts = [t.start for t in tokens]
    taken: set[int] = set()
    for start, end, (a, b) in quoted:
        places = range(bisect_left(starts, start), bisect_left(starts, end))
        taken.update(places)
        inside = tuple(tokens[places.start : places.stop])
        if any(t.weight for t in inside):
            phrases.append(_Phrase("quote", a, b, inside))
    for place, token in enumerate(tokens):
        if place in taken:
            close()
            continue
        if run and (token.kind != "word" or not _WITHIN_RUN.fullmatch(sentence, run[-1].end, token.start)):
            close()
        if token.kind == "word":
            run.append(token)
        elif token.kind == "number":
            counted = _counted(sentence, tokens, place)
            end, counts = (counted.end, counted.key) if counted else (token.end, None)
            phrases.append(_Phrase("number", token.start, end, (token,), counts))
        elif token.kind == "code":
            phrases.append(_Phrase("code", token.start, token.end, (token,)))
    close()
    return sorted(phrases, key=lambda p: (p.start, p.end))


def _counted(sentence: str, tokens: Sequence[_Token], place: int) -> _Token | None:
    """What the bare number at a place counts: the content word right behind it."""
    token, after = tokens[place], tokens[place + 1] if place + 1 < len(tokens) else None
    bare = token.key[-1].isdigit() and after is not None and after.kind == "word"
    return after if bare and after and _WITHIN_RUN.fullmatch(sentence, token.end, after.start) else None


def _said(material: Material) -> Iterator[str]:
    """The sentences of a source, in order."""
    yield _one_line(material.title)
    yield from _sentences(material.body)
    for key, value in sorted(material.attributes.items()):
        yield from _stated(key, value)
    yield material.node_id
    for title in material.around:
        yield _one_line(title)


def _one_line(title: str) -> str:
    return unicodedata.normalize("NFKC", title)


def _stated(key: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name in sorted(value):
            yield from _stated(str(name), value[name])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _stated(key, item)
    elif isinstance(value, bool):
        yield f"{key.replace('_', ' ')}: {str(value).lower()}"
    elif isinstance(value, float) and value.is_integer():
        yield f"{key.replace('_', ' ')}: {int(value)}"
    elif value is not None:
        yield from _sentences(f"{key.replace('_', ' ')}: {value}")


# What is found where. A set of sentences is an integer with a bit for each, the first one lowest: an answer may have thousands of words
# and its sources tens of thousands of sentences, and each word is looked for in all of them at once.


class _Sources:
    """The sentences of the sources, as far as an answer asks for them."""

    def __init__(self, sentences: Iterable[str], phrases: Sequence[_Phrase]) -> None:
        wanted = {t.key for p in phrases for t in p.tokens if t.weight} | {p.counts for p in phrases if p.counts}
        self._pieces = _Trie()
        self._long_quotes: dict[tuple[str, ...], bool] = {}
        for phrase in phrases:
            if phrase.kind == "run":
                for start in range(len(phrase.keys)):
                    self._pieces.add(phrase.keys[start : start + LONGEST_PIECE])
            elif phrase.kind == "quote" and len(phrase.keys) <= LONGEST_PIECE:
                self._pieces.add(phrase.keys)
            elif phrase.kind == "quote":
                self._long_quotes[phrase.keys] = False
        having, counting, by_size, negated = (defaultdict[Any, list[int]](list) for _ in range(4))
        lines: list[str] = []
        total = 0
        for number, text in enumerate(sentences):
            total = number + 1
            tokens = _tokens(text)
            keys = [t.key for t in tokens]
            content = {t.key for t in tokens if t.weight}
            for key in content & wanted:
                having[key].append(number)
            by_size[len(content)].append(number)
            if any(t.kind == "negation" for t in tokens):
                negated[True].append(number)
            for place, token in enumerate(tokens):
                counted = _counted(text, tokens, place) if token.kind == "number" else None
                if counted is not None and counted.key in wanted:
                    counting[counted.key].append(number)
                    counting[token.key, counted.key].append(number)
            self._pieces.walk(keys)
            if self._long_quotes and len(keys) > LONGEST_PIECE:
                lines.append(_line(keys))
        told = "\n".join(lines)  # in no word, so that no quote is found across two sentences
        self._long_quotes = {quote: _line(quote) in told for quote in self._long_quotes}
        self._having = {key: _bits(numbers, total) for key, numbers in having.items()}
        self._counting = {key: _bits(numbers, total) for key, numbers in counting.items()}
        self._by_size = {size: _bits(numbers, total) for size, numbers in by_size.items()}
        self._negated = _bits(negated[True], total)

    def parts(self, phrase: _Phrase) -> list[tuple[bool, tuple[int, int]]]:
        """The phrase in parts, with their places in the sentence, and whether each was found."""
        if phrase.kind == "run":
            return self._parts_of_run(phrase)
        if phrase.kind == "quote":
            found = self._long_quotes.get(phrase.keys, self._pieces.longest(phrase.keys) == len(phrase.keys))
        else:
            places = self._having.get(phrase.keys[0], 0)
            if phrase.counts is not None:
                places &= ~self._counting.get(phrase.counts, 0) | self._counting.get((phrase.keys[0], phrase.counts), 0)
            found = places != 0
        return [(found, (phrase.start, phrase.end))]

    def _parts_of_run(self, phrase: _Phrase) -> list[tuple[bool, tuple[int, int]]]:
        keys, tokens = phrase.keys, phrase.tokens
        parts: list[tuple[bool, tuple[int, int]]] = []
        place = 0
        while place < len(keys):
            length = self._pieces.longest(keys[place : place + LONGEST_PIECE])
            last = tokens[place + max(length, 1) - 1]
            if not length and parts and not parts[-1][0]:
                parts[-1] = (False, (parts[-1][1][0], last.end))  # words that are missing side by side are told as one phrase
            else:
                parts.append((length > 0, (tokens[place].start, last.end)))
            place += max(length, 1)
        if not all(found for found, _ in parts) and self._resembles(set(keys)):
            return [(True, (phrase.start, phrase.end))]
        return parts

    def _resembles(self, keys: Collection[str]) -> bool:
        """Whether a sentence has a token Jaccard of 0.7 or more with these words."""
        tally = _Tally()
        for key in keys:
            tally.add(self._having.get(key, 0), 1)
        size = len(keys)
        for other in range(-(-7 * size // 10), 10 * size // 7 + 1):
            least = -(-7 * (size + other) // 17)  # k / (size + other - k) >= 0.7
            if other in self._by_size and self._by_size[other] & tally.at_least(least):
                return True
        return False

    def negated_by(self, weights: Mapping[str, int]) -> bool:
        """Whether the evidence of a sentence with these weights has a negation; without evidence it has none."""
        tally = _Tally()
        for key, weight in weights.items():
            tally.add(self._having.get(key, 0), weight)
        best = tally.best()
        return bool(best & -best & self._negated)


class _Trie:
    """Sequences of words, and which of their beginnings were seen somewhere."""

    def __init__(self) -> None:
        self.following: dict[str, _Trie] = {}
        self.seen = False

    def add(self, keys: Sequence[str]) -> None:
        """Has a sequence looked for."""
        node = self
        for key in keys:
            node = node.following.setdefault(key, _Trie())

    def walk(self, keys: Sequence[str]) -> None:
        """Sees a text."""
        for start in range(len(keys)):
            node, place = self, start
            while place < len(keys) and (after := node.following.get(keys[place])) is not None:
                after.seen = True
                node, place = after, place + 1

    def longest(self, keys: Sequence[str]) -> int:
        """How many of these words, from the first on, were seen side by side."""
        node = self
        for length, key in enumerate(keys):
            after = node.following.get(key)
            if after is None or not after.seen:
                return length
            node = after
        return len(keys)


class _Tally:
    """A number for each sentence, kept in columns: the n-th integer has the n-th binary digit of all numbers."""

    def __init__(self) -> None:
        self._columns: list[int] = []

    def add(self, places: int, weight: int) -> None:
        """Adds a weight at these sentences."""
        for digit in range(weight.bit_length()):
            carry, column = places if weight >> digit & 1 else 0, digit
            while carry:
                while column >= len(self._columns):
                    self._columns.append(0)
                self._columns[column], carry = self._columns[column] ^ carry, self._columns[column] & carry
                column += 1

    def best(self) -> int:
        """The sentences with the largest number; none if that is 0."""
        best = 0
        for column in reversed(self._columns):
            best = (best & column if best else column) or best
        return best

    def at_least(self, least: int) -> int:
        """The sentences with at least this number, which is 1 or more."""
        if least.bit_length() > len(self._columns):
            return 0
        above, equal = 0, -1  # of the digits so far: larger, and the same
        for digit in reversed(range(len(self._columns))):
            column = self._columns[digit]
            if least >> digit & 1:
                equal &= column
            else:
                above |= equal & column
                equal &= ~column
        return above | equal


def _bits(numbers: Iterable[int], total: int) -> int:
    packed = bytearray(total // 8 + 1)
    for number in numbers:
        packed[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(packed, "little")


def _line(keys: Iterable[str]) -> str:
    return f" {' '.join(keys)} "
