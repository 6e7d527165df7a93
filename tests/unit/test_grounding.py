"""The rules by which an answer is checked against its sources, one by one, and against a plain model of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.domain.grounding import GROUNDED_FROM, MAX_SHOWN, Grounding, Material, check
from pulse_kg.domain.words import STOP_WORDS
from tests.property.profile import fixed


def sources(*titles: str, **more: object) -> list[Material]:
    """A source for each title; what is given more belongs to the first."""
    return [Material(f"dec_{n}", title, **(more if n == 0 else {})) for n, title in enumerate(titles)]  # type: ignore[arg-type]


def unmatched(answer: str, *titles: str, **more: object) -> tuple[str, ...]:
    """What of an answer is not in the sources."""
    return check(answer, sources(*titles, **more)).unmatched


class TestPhrases:
    def test_runs_lie_between_stop_words_negations_and_punctuation(self) -> None:
        found = check("Slow peers, big queues (small buffers) and long waits", [])
        assert found.unmatched == ("Slow peers", "big queues", "small buffers", "long waits")

    def test_hyphens_and_emphasis_do_not_end_a_run(self) -> None:
        assert check("**thundering**-herd *retries*", sources("thundering herd retries")).matched == ("thundering**-herd *retries",)

    def test_code_like_words_are_phrases_of_their_own_and_are_found_whole(self) -> None:
        answer = "Set max_depth via kg.query.global on DynamoDB with sha256 and std::vec"
        assert check(answer, []).unmatched == ("Set", "max_depth", "kg.query.global", "DynamoDB", "sha256", "std::vec")
        assert unmatched("max_depth", "The depth is max") == ("max_depth",)
        assert unmatched("max_depth, DYNAMODB", "max_depth in dynamodb") == ()

    @pytest.mark.parametrize("quotes", ['"{}"', "“{}”", "„{}“", "«{}»", "`{}`", "```{}```", "'{}'", "‘{}’"])
    def test_what_stands_in_quotes_is_found_word_by_word_in_its_order(self, quotes: str) -> None:
        source = "The peer waits for the queue to drain"
        assert check(quotes.format("waits for the queue"), sources(source)).matched == ("waits for the queue",)
        assert unmatched(quotes.format("queue waits"), source) == ("queue waits",)
        assert unmatched(quotes.format("waits for a queue"), source) == ("waits for a queue",)

    def test_a_long_quote_is_found_too(self) -> None:
        long = " ".join(f"word{chr(97 + n)}" for n in range(20))
        assert unmatched(f'"{long}"', f"before {long} after") == ()
        assert unmatched(f'"{long}"', f"before {long[:-1]} after", body=long.replace("wordk", "wordz")) == (long,)

    def test_an_apostrophe_is_no_quote(self) -> None:
        assert check("The peer's queue isn't the clients' own", sources("The clients do not own the queue of the peer")).grounded

    def test_a_quote_of_stop_words_alone_is_nothing_to_check(self) -> None:
        assert check('They "would have been"', sources("x")) == Grounding(grounded=False, score=0.0)

    def test_each_phrase_is_told_once_in_the_order_and_words_of_the_answer(self) -> None:
        found = check("Queues drain. Big queues drain and QUEUES drain.", sources("queue", body="drain"))
        assert found.matched == ("Queues", "drain", "queues", "QUEUES")
        assert found.unmatched == ("Big",)

    def test_a_long_phrase_is_cut_when_it_is_told(self) -> None:
        assert check("x" * 1_000, []).unmatched == ("x" * MAX_SHOWN,)


class TestNumbers:
    @pytest.mark.parametrize(
        ("answer", "source"),
        [
            ("30 seconds", "30s"),
            ("thirty seconds", "30 sec"),
            ("a 30-second limit", "The limit: 30 s"),
            ("1,000 ms", "1000 milliseconds"),
            ("$5", "5 USD"),
            ("99.9 %", "99.9 percent"),
            ("5 MB/s", "5 mb/s"),
            ("v2.1", "2.1"),
            ("10k", "10K"),
            ("2026-05-07", "on 2026-05-07"),
            ("３０ seconds", "30 s"),
            ("five attempts", "5 attempts"),
            ("5 attempts", "at most 5"),
            ("5 attempts", "3 attempts and 5 attempts"),
        ],
    )
    def test_the_same_number_with_the_same_unit_is_found_however_it_is_written(self, answer: str, source: str) -> None:
        assert check(answer, sources(source, body="limit attempts")).numbers_unmatched == 0

    @pytest.mark.parametrize(
        ("answer", "source"),
        [
            ("30 s", "30 ms"),
            ("30 s", "30"),
            ("30", "30 s"),
            ("30 s", "300 s"),
            ("3.1", "3.10"),
            ("5 MB/s", "5 MB"),
            ("10k", "10"),
            ("3 attempts and 5 workers", "5 attempts and 3 workers"),
            ("five attempts", "three attempts"),
            ("not 30 s", "not 31 s"),
            ('"waits 30 s"', "waits 31 s"),
        ],
    )
    def test_another_number_or_unit_is_none_and_the_answer_is_not_grounded(self, answer: str, source: str) -> None:
        words = f"{answer} " + "limit attempts workers waits queue peer " * 3
        found = check(words, sources(source, body="limit attempts workers waits queue peer. not"))
        assert found.numbers_unmatched > 0
        assert not found.grounded

    def test_a_number_weighs_two_words(self) -> None:
        assert check("queue 30 s", sources("queue")).score == round(1 / 3, 4)
        assert check("queue 30 s", sources("30 s")).score == round(2 / 3, 4)
        assert check('"queue 30 s" peer', sources("queue 30 s")).score == 0.75

    def test_marks_of_lists_and_citations_are_no_numbers(self) -> None:
        answer = "# Result\n1. The queue drains [1].\n2) The peer waits [2]\n- Both\n\n> queue"
        found = check(answer, sources("The queue drains", body="The peer waits. Result: both"))
        assert (found.grounded, found.score, found.unmatched) == (True, 1.0, ())

    def test_numbers_of_attributes_count(self) -> None:
        assert check("The threshold is 30", [Material("crt_1", "p", attributes={"threshold": 30.0})]).grounded
        assert check("The threshold is 0.5", [Material("crt_1", "p", attributes={"threshold": 0.5})]).grounded


class TestRuns:
    def test_a_run_is_cut_into_the_longest_pieces_from_its_start(self) -> None:
        titles = ("red green blue", "blue white black")
        assert check("red green blue white black", sources(*titles)).matched == ("red green blue", "white black")

    def test_words_that_are_missing_side_by_side_are_one_phrase(self) -> None:
        found = check("red purple orange green", sources("red green"))
        assert (found.matched, found.unmatched, found.score) == (("red", "green"), ("purple orange",), 0.5)

    def test_a_piece_has_at_most_eight_words(self) -> None:
        words = "ab ac ad ae af ag ah ai aj ak"
        assert check(words, sources(words)).matched == ("ab ac ad ae af ag ah ai", "aj ak")

    def test_plural_endings_accents_and_case_do_not_count(self) -> None:
        assert unmatched("Retries, QUEUES, policies, processes, boxes, café", "retry queue policy process box", body="Cafe\u0301s") == ()
        assert unmatched("this status bus", "statu") == ("status bus",)

    def test_a_run_that_a_sentence_resembles_is_matched_as_a_whole(self) -> None:
        run = "red green blue white black"
        assert check(run, sources("Red, green, blue, black")).matched == (run,)  # 4 of 5
        assert check(run, sources("white green red blue yellow")).matched != (run,)  # 4 of 6
        assert check("red green blue yellow", sources("blue red green")).matched == ("red green blue yellow",)  # 3 of 4
        assert check("red green yellow", sources("green red")).unmatched == ("yellow",)  # 2 of 3

    def test_node_ids_titles_of_neighbours_and_attributes_count_wherever_they_are_nested(self) -> None:
        attributes = {"request_schema": {"deep": [{"tenant": "purple"}]}, "aliases": ["orange", "pink"], "validated": True, "gone": None}
        material = Material("dec_1f", "red", "green", attributes, ("blue",))
        assert check("red green blue purple orange pink tenant aliases (dec_1f), validated is true", [material]).unmatched == ()


class TestEvidence:
    @pytest.mark.parametrize("negation", ["not", "no", "never", "without", "cannot", "nothing", "none of", "doesn't", "don’t", "neither"])
    def test_a_negation_on_one_side_only_is_told_with_its_sentence(self, negation: str) -> None:
        plain, negated = "Queues drop events on failure.", f"Queues {negation} drop events on failure."
        for answer, source in ((plain, negated), (negated, plain)):
            found = check(answer, sources("x", body=source))
            assert (found.grounded, found.score, found.negations_unmatched, found.unmatched) == (False, 1.0, 1, (answer,))
        assert check(negated, sources("x", body=negated)).grounded
        assert check(negated, sources("x", body="Never do queues drop events on failure.")).grounded

    def test_each_sentence_has_the_evidence_that_has_most_of_its_weight(self) -> None:
        body = "Queues never drop events. Peers drop connections."
        assert check("Peers drop connections. Queues never drop events.", sources("x", body=body)).grounded
        assert not check("Peers never drop connections. Queues drop events.", sources("x", body=body)).grounded

    def test_a_number_weighs_two_words_there_too(self) -> None:
        body = "Peers never wait long. Waits of 30 s end."
        assert check("Peers wait 30 s", sources("x", body=body)).grounded

    def test_at_equal_weight_the_earlier_sentence_wins(self) -> None:
        assert check("Queues drain", sources("Queues drain", body="Queues never drain.")).grounded
        assert not check("Queues drain", sources("Queues never drain", body="Queues drain.")).grounded
        assert check("Queues drain", sources("Queues drain", "Queues never drain")).grounded
        assert not check("Queues drain", sources("Queues never drain", "Queues drain")).grounded

    def test_a_negation_without_evidence_is_unmatched(self) -> None:
        assert check("Not queues", []).negations_unmatched == 1
        assert check("Queues", []).negations_unmatched == 0

    def test_a_sentence_without_anything_to_check_needs_no_evidence(self) -> None:
        assert check("No. Queues drain. That is not so.", sources("Queues drain")).grounded

    def test_abbreviations_and_single_letters_end_no_sentence(self) -> None:
        body = "Queues never drain, e.g. events. Peers wait."
        assert not check("Queues drain events", sources("x", body=body)).grounded
        assert not check("Queues drain events", sources("x", body="Queues of J. Doe never drain events")).grounded

    def test_lines_that_only_wrap_are_one_sentence_and_paragraphs_are_not(self) -> None:
        assert not check("Queues drain events", sources("x", body="Queues never\ndrain events")).grounded
        assert check("Queues drain events", sources("x", body="Never peers\n\nqueues drain events")).grounded
        assert check("Queues drain events", sources("x", body="- never peers\n- queues drain events")).grounded


class TestVerdict:
    @pytest.mark.parametrize(("found", "grounded"), [(7, True), (6, False)])
    def test_seven_tenths_are_enough(self, found: int, grounded: bool) -> None:
        words = [f"word{letter}" for letter in "abcdefghij"]
        answer, source = ", ".join(words), ", ".join(words[:found])
        assert (check(answer, sources(source)).score, check(answer, sources(source)).grounded) == (found / 10, grounded)

    @pytest.mark.parametrize("answer", ["", " \n\t", "It is what it is.", "...", "Was it not?", "[1]", "🙂"])
    def test_where_nothing_can_be_checked_nothing_is_grounded(self, answer: str) -> None:
        found = check(answer, sources("It is what it is. Not 1."))
        assert found == Grounding(grounded=False, score=0.0)

    def test_no_negation_is_a_stop_word(self) -> None:
        assert not STOP_WORDS & {"no", "not", "never", "without", "none", "cannot", "neither", "nor", "nothing"}


# Against a plain model. A sentence is a list of words of this vocabulary, so that it needs no rules to be read.

CONTENT = ("alpha", "beta", "gamma", "delta", "kappa")
NUMBERS = ("3s", "5s")
Sentence = list[str]

sentence = st.lists(st.sampled_from((*CONTENT, *CONTENT, *NUMBERS, "the", "not")), min_size=1, max_size=8)
answers = st.lists(sentence, min_size=1, max_size=4)
material = st.tuples(sentence, st.lists(sentence, max_size=3))
materials = st.lists(material, max_size=4)


def prose(sentences: Sequence[Sentence]) -> str:
    return " ".join(" ".join(words) + "." for words in sentences)


def built(given_: Sequence[tuple[Sentence, list[Sentence]]]) -> list[Material]:
    return [Material(f"dec_{n}", " ".join(title), prose(body)) for n, (title, body) in enumerate(given_)]


def weight(word: str) -> int:
    return 2 if word in NUMBERS else int(word in CONTENT)


def model(answer: Sequence[Sentence], given_: Sequence[tuple[Sentence, list[Sentence]]]) -> tuple[float, int, int]:
    """Score, numbers and negations unmatched, by the rules as they are written."""
    units = [s for title, body in given_ for s in (title, *body)]
    words = {w for unit in units for w in unit}
    matched = everything = numbers = negations = 0
    for said in answer:
        for in_run, group in groupby(said, key=lambda w: w in CONTENT):
            run = list(group)
            everything += sum(map(weight, run))
            if in_run:
                resembling = any(
                    Fraction(len(set(run) & content), len(set(run) | content)) >= Fraction(7, 10)
                    for content in ({w for w in unit if weight(w)} for unit in units)
                )
                matched += len(run) if resembling else sum(w in words for w in run)
            else:
                matched += sum(weight(w) for w in run if w in words)
                numbers += sum(w in NUMBERS and w not in words for w in run)
        if any(map(weight, said)):
            scores = [sum(weight(w) for w in said if w in unit) for unit in units]
            best = max(scores, default=0)
            evidence = units[scores.index(best)] if best else []
            negations += ("not" in said) != ("not" in evidence)
    return round(matched / everything, 4) if everything else 0.0, numbers, negations


@fixed(400)
@given(answers, materials)
def test_the_check_is_what_the_rules_say(answer: list[Sentence], given_: list[tuple[Sentence, list[Sentence]]]) -> None:
    found = check(prose(answer), built(given_))
    score, numbers, negations = model(answer, given_)
    assert (found.score, found.numbers_unmatched, found.negations_unmatched) == (score, numbers, negations)
    checkable = any(weight(w) for said in answer for w in said)
    assert found.grounded == (checkable and score >= GROUNDED_FROM and not numbers and not negations)


@fixed(200)
@given(answers, materials, material)
def test_one_source_more_never_lowers_the_score_nor_loses_a_number(
    answer: list[Sentence], given_: list[tuple[Sentence, list[Sentence]]], more: tuple[Sentence, list[Sentence]]
) -> None:
    before, after = check(prose(answer), built(given_)), check(prose(answer), built([*given_, more]))
    assert after.score >= before.score
    assert after.numbers_unmatched <= before.numbers_unmatched


@fixed(200)
@given(answers, st.permutations(range(4)), st.lists(material, min_size=4, max_size=4))
def test_the_order_of_the_sources_does_not_change_the_score(
    answer: list[Sentence], order: list[int], given_: list[tuple[Sentence, list[Sentence]]]
) -> None:
    one, other = check(prose(answer), built(given_)), check(prose(answer), built([given_[n] for n in order]))
    assert (one.score, one.numbers_unmatched) == (other.score, other.numbers_unmatched)


@fixed(200)
@given(sentence, materials)
def test_a_title_said_again_is_grounded_in_its_node(said: Sentence, others: list[tuple[Sentence, list[Sentence]]]) -> None:
    found = check(" ".join(said), built([(said, []), *others]))
    assert found.grounded == any(map(weight, said))
    assert found.unmatched == ()


@fixed(300)
@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_checked_and_gives_the_same_twice(answer: str, title: str, body: str) -> None:
    material_ = Material("dec_1", title, body, {"rationale": answer[:50]}, (body[:20],))
    found = check(answer, [material_])
    assert found == check(answer, [material_])
    assert 0.0 <= found.score <= 1.0
    assert found.grounded <= (found.score >= GROUNDED_FROM)
    assert len({*found.matched}) == len(found.matched)


_FULL = 32 * 1024


@pytest.mark.timeout(15)  # with a check whose time grows with the square of a text's length, one of them takes longer
@pytest.mark.parametrize(
    "sign",
    ["word ", "a. ", "e.g. ", " ", "\n ", "_", "__ ", "`", "`a", '"a', "' a", "x", "x! ", "1,", "5 %/%", "* ", "- \n", ").", "w1. "],
    ids=ascii,
)
def test_a_text_of_one_sign_is_checked_like_any_other(sign: str) -> None:
    said = sign * (_FULL // len(sign)) + " Slow peers."
    found = check(said, [Material("dec_1", "t", said)])
    assert found.score == 1.0
    assert found.grounded
    assert found.unmatched == ()


@pytest.mark.timeout(15)
def test_long_quotes_are_found_in_one_sentence_and_not_across_two() -> None:
    quotes = [" ".join(f"{letter}{n}" for letter in "abcdefghi") for n in range(700)]
    answer = " ".join(f'"{quote}".' for quote in quotes)
    body = " ".join(f"{quote}." for quote in quotes[:-1]) + " a699 b699 c699 d699. e699 f699 g699 h699 i699."
    assert check(answer, [Material("dec_1", "t", body)] * 20).unmatched == (quotes[-1],)


def test_words_without_an_end_are_not_kept_once_they_are_checked() -> None:
    def ask(number: int) -> None:
        check(f"x{number}" * 4_000, [Material("dec_1", "t", f"y{number}" * 4_000)])

    ask(0)
    tracemalloc.start()
    try:
        for number in range(1, 60):
            ask(number)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 200_000
