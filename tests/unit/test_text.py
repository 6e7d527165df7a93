"""Folding, prefixes, series of titles and the claims of a text."""

from __future__ import annotations

import pytest

from pulse_kg.domain.text import brief, claims, embedding_text, fold, prefix_similarity, same_series


class TestFold:
    @pytest.mark.parametrize(
        ("text", "folded"),
        [
            ("Retry POLICY", "retry policy"),
            ("  Retry\t\n policy\u00a0 ", "retry policy"),
            ("Überprüfung der Größe", "uberprufung der grosse"),
            ("café", "cafe"),
            ("cafe\u0301", "cafe"),
            ("décision prise à Orléans", "decision prise a orleans"),
            ("façade", "facade"),
            ("Tiếng Việt", "tieng viet"),
            ("Йогурт", "иогурт"),
            ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
            ("ＡＰＩ ｖ２", "api v2"),
            ("ﬁle", "file"),
            ("", ""),
            ("\n\t ", ""),
        ],
    )
    def test_case_accents_and_white_space_do_not_count(self, text: str, folded: str) -> None:
        assert fold(text) == folded

    @pytest.mark.parametrize(("left", "right"), [("ガ", "カ"), ("パ", "ハ"), ("が", "か")])
    def test_dakuten_and_handakuten_make_another_letter(self, left: str, right: str) -> None:
        assert fold(left) != fold(right)

    def test_composed_and_decomposed_dakuten_are_one_letter(self) -> None:
        assert fold("ガード") == fold("カ\u3099ート\u3099") == "ガード"

    def test_half_width_katakana_is_katakana(self) -> None:
        assert fold("ｶﾞｰﾄﾞ") == "ガード"

    def test_marks_that_spell_hindi_stay(self) -> None:
        assert fold("क्षमता") != fold("कषमता")

    @pytest.mark.parametrize("text", ["ẞ Straße", "ﬃ ＡＰＩ", "İstanbul", "ǅ", "㎒ and ℡", "ϓ"])
    def test_folding_what_is_folded_changes_nothing(self, text: str) -> None:
        assert fold(fold(text)) == fold(text)


class TestPrefixSimilarity:
    @pytest.mark.parametrize(
        ("left", "right", "expected"),
        [
            ("abcd", "abcd", 1.0),
            ("abcd", "abxx", 0.5),
            ("ab", "abcdefgh", 0.25),
            ("abc", "xbc", 0.0),
            ("", "abc", 0.0),
            ("", "", 0.0),
        ],
    )
    def test_it_is_the_shared_start_over_the_longer_text(self, left: str, right: str, expected: float) -> None:
        assert prefix_similarity(left, right) == prefix_similarity(right, left) == expected


class TestSameSeries:
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ("Release 3.11 schedule", "Release 3.12 schedule"),
            ("PEP 619 – Python 3.10 Release Schedule", "PEP 664 – Python 3.11 Release Schedule"),
            ("Support policy for v1", "Support policy for v2"),
            ("Support policy for v2.0rc1", "Support policy for v2.0rc2"),
            ("Sprint review 2026-01-12", "Sprint review 2026-01-26"),
            ("Sprint review 5 May 2026", "Sprint review 12 June 2026"),
            ("January release", "February release"),
            ("Roadmap Q1 2026", "Roadmap Q3 2026"),
            ("Migration phase I", "Migration phase II"),
            ("Migration phase two", "Migration phase three"),
            ("Meeting notes 12/03/2026", "Meeting notes 19/03/2026"),
            ("Incident #1042", "Incident #1043"),
        ],
    )
    def test_titles_equal_but_for_numbers_versions_and_dates_are_a_series(self, left: str, right: str) -> None:
        assert same_series(left, right)
        assert same_series(right, left)

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ("Release 3.11 schedule", "Release 3.12 policy"),
            ("Retry three times", "Retry with backoff"),
            ("Use Postgres for storage", "Use MySQL for storage"),
            ("API v2", "API"),
        ],
    )
    def test_titles_that_differ_in_words_are_none(self, left: str, right: str) -> None:
        assert not same_series(left, right)

    @pytest.mark.parametrize(("left", "right"), [("Release 3.11", "Release 3.11"), ("Release 3.11", "  RELEASE  3.11 ")])
    def test_equal_titles_are_none(self, left: str, right: str) -> None:
        assert not same_series(left, right)


class TestClaims:
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ("Retry 3 times", "Retry 5 times"),
            ("Time out after 30 s", "Time out after 30 ms"),
            ("Time out after 30s", "Time out after 30m"),
            ("Keep backups daily", "Keep backups weekly"),
            ("Target Python 3.11", "Target Python 3.12"),
            ("Speak HTTP/1.1", "Speak HTTP/2"),
            ("Ship v2.0rc1", "Ship v2.0rc2"),
            ("Allow 5 MB/s", "Allow 5 GB/s"),
            ("Allow 5 req/s", "Allow 5 req/min"),
            ("Serve 10k users", "Serve 10M users"),
            ("Cap the cost at 50 %", "Cap the cost at 50 $"),
            ("Pay $5", "Pay €5"),
            ("Keep two replicas", "Keep three replicas"),
            ("Keep it 1.5 GB", "Keep it 1.5 GiB"),
            ("Retry on failure", "Do not retry on failure"),
            ("The worker retries", "The worker doesn't retry"),
            ("The worker retries", "The worker doesn’t retry"),
            ("Client v2 retries", "Client v2 doesn't retry"),
            ("Deploy with approval", "Deploy without approval"),
            ("Cache responses", "Never cache responses"),
            ("Requests can be replayed", "Requests cannot be replayed"),
        ],
    )
    def test_another_number_version_unit_or_negation_is_another_claim(self, left: str, right: str) -> None:
        assert claims(left) != claims(right)

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ("Retry 3 times", "Repeat 3 times"),
            ("Retry 3 times", "3 times we retry"),
            ("Time out after 30s", "Time out after 30 seconds"),
            ("Time out after 30 sec.", "TIME OUT after 30 Seconds"),
            ("Allow 5 MB/s", "Allow 5 megabytes/second"),
            ("Allow 100 requests/second", "Allow 100 requests per second"),
            ("Version v2", "Version 2"),
            ("Keep 50%", "Keep 50 percent"),
            ("It takes 5 µs", "It takes 5 μs"),
            ("It takes 5 us", "It takes 5 microseconds"),
            ("Do not retry", "Never retry"),
            ("It can't be replayed", "It cannot be replayed"),
            ("We chose option b", "We chose option d"),
            ("Keep backups", "Retain backups"),
        ],
    )
    def test_another_wording_of_the_same_numbers_units_and_negations_is_none(self, left: str, right: str) -> None:
        assert claims(left) == claims(right)

    def test_a_doubled_negation_is_not_a_single_one(self) -> None:
        assert claims("not retried and not logged").negations == 2

    def test_figures_carry_their_units(self) -> None:
        assert claims("at most 30 s, 2 retries, 5 MB/s, weekly").figures == {"30s", "2", "5mb", "s", "week"}

    def test_a_text_without_any_claims_nothing(self) -> None:
        assert claims("Use the outbox pattern") == claims("")


def test_the_embedded_text_is_title_newline_body() -> None:
    assert embedding_text("Title", "Body\nmore") == "Title\nBody\nmore"


def test_a_long_name_is_repeated_in_part_only() -> None:
    longest = next(n for n in range(1, 10_000) if brief("x" * n) != "x" * n) - 1
    assert brief("x" * longest) == "x" * longest
    assert brief("x" * 10_000) == "x" * longest + "…"
    assert longest >= 64, "the longest key of a schema is shown whole"
