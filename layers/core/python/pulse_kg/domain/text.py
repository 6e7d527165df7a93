"""Text: what may be in one, and how the rules compare it by folding, shared prefixes, series of titles, and the claims it makes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache

_ACCENT_CLASS = 200  # combining classes from here on are accents; lower ones are letters' own marks (dakuten, nukta, virama)
_FOLD_ROUNDS = 4  # a compatibility letter may unfold into capitals, which fold again; two rounds do for all of Unicode

NUMBER_WORDS = frozenset(
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand million".split()
)
_MONTHS = frozenset(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_ROMAN = frozenset("i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split())
NEGATIONS = frozenset("not no never without cannot neither nor none nothing nobody nowhere".split())
UNITS = {
    name: unit
    for unit, names in {
        "ns": "ns nanosecond nanoseconds",
        "us": "us µs μs microsecond microseconds",
        "ms": "ms msec millisecond milliseconds",
        "s": "s sec secs second seconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours hourly",
        "d": "d day days daily",
        "week": "week weeks weekly",
        "month": "month months monthly",
        "quarter": "quarter quarters quarterly",
        "year": "year years yearly annually",
        "bit": "bit bits",
        "byte": "b byte bytes",
        "kb": "kb kilobyte kilobytes",
        "kib": "kib kibibyte kibibytes",
        "mb": "mb megabyte megabytes",
        "mib": "mib mebibyte mebibytes",
        "gb": "gb gigabyte gigabytes",
        "gib": "gib gibibyte gibibytes",
        "tb": "tb terabyte terabytes",
        "%": "% percent",
        "hz": "hz",
        "khz": "khz",
        "mhz": "mhz",
        "ghz": "ghz",
        "rps": "rps qps",
        "px": "px pixel pixels",
        "usd": "usd dollar dollars $",
        "eur": "eur euro euros €",
    }.items()
    for name in names.split()
}
_SHORT_UNITS = frozenset(name for name in UNITS if len(name) == 1 and name.isalpha())  # letters, unless a number stands before them
NUMBER = r"v?\d+(?:[.,:/-]\d+)*(?:(?:a|b|rc|alpha|beta|dev|post)\.?\d+)?"
_TOKEN = re.compile(rf"({NUMBER})(\s?)([%$€]|[a-zµμ]++(?:/[a-z]++)?(?!['’]t))?|([a-z]+n['’]t|[^\W\d_]+|[%$€])")
_SERIES_TOKEN = re.compile(rf"({NUMBER})|([^\W\d_]+)|\s+")
_BRIEF = 80  # characters of a name


def fold(text: str) -> str:
    """Casefolded, without accents, white space collapsed to single blanks and cut at both ends. Idempotent."""
    if text.isascii():  # most texts: nothing in them unfolds, and the rest is slow
        return " ".join(text.casefold().split())
    for _ in range(_FOLD_ROUNDS):
        plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if unicodedata.combining(c) < _ACCENT_CLASS)
        folded = " ".join(unicodedata.normalize("NFKC", plain).split())
        if folded == text:
            break
        text = folded
    return text


def prefix_similarity(left: str, right: str) -> float:
    """Length of the shared prefix over the length of the longer text, 0..1; both folded already, two empty texts give 0."""
    longer = max(len(left), len(right))
    shared = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        shared += 1
    return shared / longer if longer else 0.0


def same_series(left: str, right: str) -> bool:
    """Whether two unequal titles are equal but for numbers, versions and dates ("Release 3.11 schedule", "Release 3.12 schedule")."""
    a, b = fold(left), fold(right)
    return a != b and _without_numbers(a) == _without_numbers(b)


def _without_numbers(folded: str) -> str:
    def blank(found: re.Match[str]) -> str:
        number, word = found.groups()
        if number is None and word is None:
            return ""
        return "#" if number is not None or word in NUMBER_WORDS or word in _MONTHS or word in _ROMAN else f" {word} "

    return re.sub(r"[#\s,-]*#[#\s,-]*", "#", _SERIES_TOKEN.sub(blank, folded))


@dataclass(frozen=True)
class Claims:
    """What a small change of wording can turn around.

    Attributes:
        figures: Numbers and versions with their units, and units on their own.
        negations: How many negating words there are.
    """

    figures: frozenset[str]
    negations: int


def claims(text: str) -> Claims:
    """The numbers, versions, units and negations of a text; compare two of them for equality."""
    figures: set[str] = set()
    words: Counter[str] = Counter()
    for number, blank, unit, word in _TOKEN.findall(fold(text)):
        if number:
            counted, _, per = unit.partition("/")  # "5 MB/s"
            magnitude = UNITS.get(counted) or ("" if blank else counted)  # "10k" is a number too
            figures.add(number.removeprefix("v") + magnitude)
            if per in UNITS:
                figures.add(UNITS[per])
            word = "" if magnitude else counted  # noqa: PLW2901
        if word in UNITS and word not in _SHORT_UNITS:
            figures.add(UNITS[word])
        elif word in NUMBER_WORDS:
            figures.add(word)
        words[word] += 1
    negations = sum(count for word, count in words.items() if word in NEGATIONS or word.endswith(("n't", "n’t")))
    return Claims(frozenset(figures), negations)


@cache
def _forbidden() -> dict[int, None]:
    """Control characters but tab and newline, and lone surrogates, as a table for `str.translate`."""
    return {c: None for c in (*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0xD800, 0xE000)) if c not in (0x09, 0x0A)}


def text_fault(text: str) -> str | None:
    """Why a text can't be taken: NUL, another control character, or a lone surrogate; None if it can."""
    if len(text.translate(_forbidden())) == len(text):
        return None
    bad = next(c for c in text if ord(c) in _forbidden())
    name = "NUL" if bad == "\0" else "a lone surrogate" if "\ud800" <= bad <= "\udfff" else "a control character"
    return f"holds {name} (U+{ord(bad):04X}); only tab and newline are allowed"


def brief(name: str) -> str:
    """A name as an answer repeats it: a long one is cut, for an answer must stay small whatever came."""
    return name if len(name) <= _BRIEF else name[:_BRIEF] + "…"


def embedding_text(title: str, body: str) -> str:
    """The text whose vector stands for a node: title, newline, body."""
    return f"{title}\n{body}"
