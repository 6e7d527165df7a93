"""Texts, instants, references, identifiers, relevance and cycles, for whatever values there are."""

from __future__ import annotations

import json
import unicodedata
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.domain import ids
from pulse_kg.domain.instants import format_instant, parse_instant
from pulse_kg.domain.model import content_digest
from pulse_kg.domain.refs import Artifact, SourceRef, artifact_of, parse_ref, stable_part
from pulse_kg.domain.relevance import MAX_RELEVANCE, Standing, relevance
from pulse_kg.domain.schema import NODE_TYPES, NodeType, RelType, canonical_json, check_node_attributes, is_undirected
from pulse_kg.domain.supersedence import closes_cycle, find_cycle
from pulse_kg.domain.text import claims, fold, prefix_similarity, same_series
from tests.property.profile import fixed

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
titles = st.lists(
    st.sampled_from(["release", "Retry", "3", "3.11", "v2", "2026-05-07", "two", "May", "ii", "not", "–", "s", "10k", "cafés"]), max_size=7
).map(" ".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
printable = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=20)


class TestTexts:
    @fixed(200)
    @given(texts)
    def test_folding_is_idempotent_and_blind_to_case_normal_form_and_blanks(self, text: str) -> None:
        folded = fold(text)
        assert fold(folded) == folded
        assert folded == " ".join(folded.split())
        assert fold(f" \t{text}\n") == folded
        assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text)) == folded

    def test_every_character_folds_to_something_that_stays(self) -> None:
        for code in range(0x110000):
            if not 0xD800 <= code <= 0xDFFF:
                folded = fold(chr(code))
                assert fold(folded) == folded, hex(code)

    @fixed(100)
    @given(texts, texts)
    def test_prefix_similarity_is_symmetric_and_1_for_equal_texts_only(self, left: str, right: str) -> None:
        score = prefix_similarity(left, right)
        assert 0 <= score <= 1
        assert score == prefix_similarity(right, left)
        assert (score == 1) == (left == right != "")

    @fixed(200)
    @given(titles, titles)
    def test_a_series_is_symmetric_and_never_of_equal_titles(self, left: str, right: str) -> None:
        assert same_series(left, right) == same_series(right, left)
        assert not (same_series(left, right) and fold(left) == fold(right))

    @fixed(200)
    @given(titles | texts)
    def test_claims_are_those_of_the_folded_text(self, text: str) -> None:
        assert claims(text) == claims(fold(text)) == claims(text + " ")

    @fixed(100)
    @given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["retries", "s", "ms", "%", "MB/s", "k"]))
    def test_two_numbers_of_one_unit_make_different_claims_of_one_series(self, one: int, other: int, unit: str) -> None:
        left, right = (f"Allow {n} {unit} for calls" for n in (one, other))
        assert (claims(left) != claims(right)) == same_series(left, right) == (one != other)


class TestInstants:
    @fixed(200)
    @given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
    def test_what_is_written_is_read_back(self, instant: int) -> None:
        text = format_instant(instant)
        assert len(text) == 24
        assert parse_instant(text) == instant

    @fixed(100)
    @given(st.integers(0, 253_402_214_400_000), st.integers(-23 * 60 - 59, 23 * 60 + 59))
    def test_an_offset_moves_the_clock_and_not_the_instant(self, instant: int, minutes: int) -> None:
        local = format_instant(instant + minutes * 60_000).removesuffix("Z")
        sign = "-" if minutes < 0 else "+"
        assert parse_instant(f"{local}{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}") == instant

    @fixed(100)
    @given(st.integers(0, 253_402_300_799_999), st.integers(0, 253_402_300_799_999))
    def test_the_order_of_texts_is_the_order_of_instants(self, one: int, other: int) -> None:
        assert (format_instant(one) < format_instant(other)) == (one < other)


class TestReferences:
    @fixed(200)
    @given(st.from_regex(ids.SOURCE_TYPE, fullmatch=True), printable, st.none() | printable)
    def test_what_is_written_is_read_back(self, source_type: str, source_id: str, section: str | None) -> None:
        ref = SourceRef(Artifact(source_type, source_id), section)
        assert parse_ref(ref.canonical) == ref
        assert artifact_of(ref.canonical) == ref.artifact.canonical
        assert stable_part(ref.canonical) == ref.stable

    @fixed(100)
    @given(st.tuples(printable, st.none() | printable), st.tuples(printable, st.none() | printable))
    def test_two_places_never_share_a_text(self, one: tuple[str, str | None], other: tuple[str, str | None]) -> None:
        left, right = (SourceRef(Artifact("spec", source_id), section) for source_id, section in (one, other))
        assert (left.canonical == right.canonical) == (left == right)


class TestContent:
    @fixed(100)
    @given(json_values)
    def test_canonical_json_is_read_back_and_stays(self, value: object) -> None:
        text = canonical_json(value)
        assert json.loads(text) == value
        assert canonical_json(json.loads(text)) == text

    @fixed(100)
    @given(st.dictionaries(texts, json_values, max_size=5))
    def test_the_order_of_keys_does_not_matter(self, value: dict[str, object]) -> None:
        turned = dict(reversed(list(value.items())))
        assert canonical_json(turned) == canonical_json(value)
        assert content_digest("Decision", "t", "b", turned) == content_digest("Decision", "t", "b", value)

    @fixed(100)
    @given(
        st.sampled_from(NODE_TYPES),
        st.dictionaries(st.sampled_from(["rationale", "status", "confidence", "kind", "x"]) | texts, json_values),
    )
    def test_every_attribute_is_either_known_or_unknown(self, node_type: NodeType, attributes: dict[str, object]) -> None:
        checked = check_node_attributes(node_type, attributes)
        assert {*checked.known, *checked.unknown} == set(attributes)
        assert not set(checked.known) & set(checked.unknown)
        assert {p.path.removeprefix("attributes.") for p in checked.problems} <= set(checked.known)

    @fixed(100)
    @given(st.sampled_from(["contradicts", "relates_to", "supersedes"]), st.booleans(), st.sampled_from("abc"), st.sampled_from("abc"))
    def test_an_edge_and_its_reverse_are_one_where_they_have_no_direction(self, rel_type: RelType, equal: bool, a: str, b: str) -> None:
        forth, back = ids.edge_id("alpha", a, rel_type, b, equal_types=equal), ids.edge_id("alpha", b, rel_type, a, equal_types=equal)
        assert (forth == back) == (a == b or is_undirected(rel_type, equal_types=equal))


unit = st.floats(0, 1)


class TestRelevance:
    @fixed(200)
    @given(
        unit,
        st.integers(0, 10_000),
        st.lists(unit, max_size=5),
        st.integers(0, 10**6),
        st.none() | st.integers(0, 10**13),
        st.floats(0, 0.2),
    )
    def test_it_stays_in_range_and_rises_with_all_but_contradictions(
        self, confidence: float, degree: int, contradicting: list[float], hits: int, queried: int | None, boost: float
    ) -> None:
        def score(*, degree: int = degree, contradicting: list[float] = contradicting, hits: int = hits, boost: float = boost) -> float:
            return relevance(
                confidence=confidence,
                standing=Standing(degree, contradicting),
                query_hits=hits,
                last_queried_at=queried,
                priority_boost=boost,
                now=10**13,
            )

        assert 0 <= score() <= MAX_RELEVANCE
        assert score(degree=degree + 1) >= score()
        assert score(hits=hits + 1) >= score()
        assert score(boost=boost + 0.1) >= score()
        assert score(contradicting=[*contradicting, 0.5]) <= score()


class TestCycles:
    @fixed(200)
    @given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde")), max_size=8), st.integers(0, 8))
    def test_a_cycle_is_found_exactly_if_there_is_one(self, edges: list[tuple[str, str]], split: int) -> None:
        known: dict[str, list[str]] = {}
        for src, dst in edges[:split]:
            known.setdefault(src, []).append(dst)
        if _has_cycle(edges[:split]):
            return
        cycle = find_cycle(edges[split:], known)
        assert (cycle is not None) == _has_cycle(edges)
        if cycle is not None:
            assert cycle[0] == cycle[-1]
            assert set(pairwise(cycle)) <= set(edges)

    @fixed(500)
    @given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), min_size=1, max_size=10), st.integers(0, 9))
    def test_one_more_edge_closes_the_cycle_that_looking_at_all_of_them_finds(self, edges: list[tuple[str, str]], split: int) -> None:
        *earlier, (src, dst) = edges
        if _has_cycle(earlier):
            return
        known: dict[str, list[str]] = {}
        for newer, older in earlier[:split]:
            known.setdefault(newer, []).append(older)
        assert closes_cycle(src, dst, earlier[split:], known) == find_cycle([*earlier[split:], (src, dst)], known)


def _has_cycle(edges: list[tuple[str, str]]) -> bool:
    """Takes away what has nothing below it until nothing more goes."""
    rest = set(edges)
    while True:
        tops = {src for src, _ in rest}
        kept = {(src, dst) for src, dst in rest if dst in tops}
        if kept == rest:
            return bool(rest)
        rest = kept
