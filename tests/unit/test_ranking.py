"""What is found gets a score that can be recomputed by hand, an order without chance, and a piece of text that shows why."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_kg.domain.chains import head_of, newest_to_oldest
from pulse_kg.domain.model import Node
from pulse_kg.domain.ranking import Components, Topic, best_first, components, one_hop, rounded
from pulse_kg.domain.snippets import MAX_SNIPPET, node_snippet, snippet
from pulse_kg.domain.words import content_words, words
from tests.property.profile import fixed
from tests.support.drafts import DAY, NOW

shares = st.floats(0, 1).map(rounded)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
prose = st.lists(
    st.sampled_from(["Retries", "wait", "with", "jitter.", "No", "queue!", "\n", "3.5", "seconds,", "“so”", "x" * 30, "x" * 300, "Émile?"]),
    max_size=90,
).map(" ".join)


def node(node_id: str = "dec_1", **more: Any) -> Node:
    made = Node(
        board_id="alpha",
        node_id=node_id,
        node_type="Decision",
        title="Retries wait with jitter",
        body="",
        attributes={},
        source_ref="spec:spec_007",
        artifact="spec:spec_007",
        artifact_version=1,
        source_session_id="kgs_1",
        created_seq=1,
        commit_seq=1,
        version=1,
        content_digest="sha256:0",
        created_at=NOW,
        updated_at=NOW,
        created_by="agt_ada",
    )
    return replace(made, **more)


class TestTopics:
    @pytest.mark.parametrize(
        ("topic", "title", "score"),
        [
            ("retry jitter", "Retry with jitter", 1.0),
            ("retry jitter", "Retries wait with jitter", None),  # half of the words, and 60 per cent are needed
            ("retry with jitter", "We RETRY  with jittered waits", 0.75),  # the phrase, by characters; one of two words
            ("the retry of webhook delivery", "Webhook retry", 0.8333),
            ("alpha bravo charlie delta echo", "echo charlie alpha", 0.8),
            ("alpha bravo charlie delta echo", "echo charlie", None),
            ("jitter jitter jitter", "Jitter", 1.0),
            ("Café", "the CAFE opens", 1.0),
            ("how is it", "This is how is it goes", 0.5),  # no content word, and yet the phrase
            ("how is it", "How it is", None),
        ],
    )
    def test_a_title_is_hit_by_the_phrase_or_by_six_words_of_ten(self, topic: str, title: str, score: float | None) -> None:
        assert Topic.of(topic).score(title) == score

    def test_words_of_other_texts_count_and_their_phrases_do_not(self) -> None:
        topic = Topic.of("webhook delivery")
        assert topic.score("Log raw latency", "Every delivery of a webhook is timed") == 1.0
        assert Topic.of("of a").score("Log raw latency", "Every delivery of a webhook") is None

    @fixed(200)
    @given(texts, texts)
    def test_a_score_is_between_a_half_and_one_and_never_comes_of_nothing(self, topic: str, title: str) -> None:
        asked = Topic.of(topic)
        score = asked.score(title)
        shared = asked.words & set(words(title))
        if score is None:
            assert len(shared) < 0.6 * len(asked.words) or not asked.words
        else:
            assert score == rounded(0.5 + 0.5 * (len(shared) / len(asked.words) if asked.words else 0))

    @fixed(100)
    @given(st.lists(st.sampled_from("alpha bravo charlie delta echo foxtrot".split()), unique=True, min_size=1))
    def test_all_words_in_any_order_are_a_full_hit(self, some: list[str]) -> None:
        assert Topic.of(" ".join(some)).score(" and ".join(reversed(some))) == 1.0

    @pytest.mark.parametrize(("count", "needed"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (10, 6), (15, 9), (20, 12), (25, 15)])
    def test_sixty_per_cent_are_counted_without_rounding_errors(self, count: int, needed: int) -> None:
        assert Topic("", frozenset(f"word{n}" for n in range(count))).needed == needed


class TestScores:
    def test_a_similar_decision_is_scored_as_the_formula_says(self) -> None:
        found = components(semantic=0.81, degree=9, created_at=NOW - 15 * DAY, confidence=0.8, now=NOW)
        assert found == Components(0.81, 0.5, 0.7071, 0.8)
        assert found.score == rounded(0.5 * 0.81 + 0.2 * 0.5 + 0.2 * 0.7071 + 0.1 * 0.8) == 0.7264

    def test_a_node_of_the_future_counts_as_new_and_a_hub_as_fully_central(self) -> None:
        found = components(semantic=1, degree=10**6, created_at=NOW + DAY, confidence=1, now=NOW)
        assert found == Components(1, 1, 1, 1)
        assert found.score == 1.0

    @fixed(200)
    @given(shares, st.integers(0, 10**7), st.integers(0, 10**12), st.floats(0, 1))
    def test_the_score_lies_between_its_components_and_is_made_of_what_is_shown(
        self, semantic: float, degree: int, age: int, confidence: float
    ) -> None:
        found = components(semantic=semantic, degree=degree, created_at=NOW - age, confidence=confidence, now=NOW)
        parts = (found.semantic, found.graph_centrality, found.recency, found.confidence)
        assert all(part == rounded(part) and 0 <= part <= 1 for part in parts)
        assert min(parts) - 1e-4 <= found.score <= max(parts) + 1e-4
        assert found.score == rounded(0.5 * parts[0] + 0.2 * parts[1] + 0.2 * parts[2] + 0.1 * parts[3])
        assert found.graph_centrality == rounded(min(1.0, math.log(1 + degree) / math.log(100)))

    @fixed(200)
    @given(shares, st.floats(0, 1))
    def test_a_neighbour_is_never_worth_more_than_four_fifths(self, score: float, confidence: float) -> None:
        assert 0 <= one_hop(score, confidence) <= rounded(0.8 * score)
        assert one_hop(0.84, 0.7) == 0.4704

    @pytest.mark.parametrize(("score", "shown"), [(0.12345, 0.1235), (0.5, 0.5), (0.00005, 0.0001), (0.03125, 0.0312), (0.09375, 0.0938)])
    def test_four_decimals_half_to_even(self, score: float, shown: float) -> None:
        # 0.03125 and 0.09375 are exact in binary: their halves go to the even digit. The others are what is nearest in binary.
        assert rounded(score) == shown

    @fixed(100)
    @given(st.permutations([(0.9, False, "a"), (0.9, True, "c"), (0.9, True, "b"), (0.8, True, "a"), (0.95, False, "z")]))
    def test_the_best_come_first_then_what_is_live_then_the_ids(self, found: list[tuple[float, bool, str]]) -> None:
        ranked = sorted(found, key=lambda f: best_first(*f))
        assert ranked == [(0.95, False, "z"), (0.9, True, "b"), (0.9, True, "c"), (0.9, False, "a"), (0.8, True, "a")]


class TestSnippets:
    def test_a_short_text_is_shown_whole_on_one_line(self) -> None:
        assert snippet("Fixed waits\n\n  herd.  Jitter   does not. ", {"jitter"}) == "Fixed waits herd. Jitter does not."
        assert snippet(" \n ", {"jitter"}) == ""

    def test_a_long_text_is_cut_between_words_around_the_sentence_that_fits_best(self) -> None:
        filler = "Nobody asked for this and yet it is a sentence of the text. " * 5
        shown = snippet(f"{filler}Jitter spreads the retries. {filler}", {"jitter", "retries"})
        assert shown.startswith("…Jitter spreads the retries. Nobody asked")
        assert shown.endswith("…")
        assert len(shown) <= MAX_SNIPPET

    def test_near_the_end_it_is_filled_with_what_comes_before(self) -> None:
        filler = "Nobody asked for this and yet it is a sentence of the text. " * 9
        shown = snippet(f"{filler}Jitter spreads the retries.", {"jitter"})
        assert shown.startswith("…")
        assert shown.endswith("of the text. Jitter spreads the retries.")
        assert len(shown) > 200

    def test_of_equal_sentences_the_first_is_shown_and_without_any_hit_the_beginning(self) -> None:
        text = "First jitter. " + "Nothing of it here at all. " * 20 + "Second jitter."
        assert snippet(text, {"jitter"}).startswith("First jitter.")
        assert snippet(text, set()).startswith("First jitter.")
        assert snippet(text, {"absent"}).startswith("First jitter.")

    def test_a_sentence_that_is_too_long_is_shown_from_its_first_hit(self) -> None:
        shown = snippet("word " * 100 + "jitter " + "word " * 100, {"jitter"})
        assert shown.startswith("…jitter word")
        assert len(shown) <= MAX_SNIPPET

    def test_a_single_endless_word_is_cut_itself(self) -> None:
        assert snippet("x" * 1_000, {"x"}) == "x" * (MAX_SNIPPET - 1) + "…"

    def test_prose_of_the_attributes_is_looked_at_and_a_bare_node_shows_its_title(self) -> None:
        assert node_snippet(node(attributes={"rationale": "Fixed waits herd."}), {"herd"}) == "Fixed waits herd."
        assert node_snippet(node(attributes={"status": "active"}), {"active"}) == "Retries wait with jitter"
        assert node_snippet(node(body="Clients wait.", attributes={"rationale": "It herds."}), set()) == "Clients wait. It herds."

    @fixed(300)
    @given(prose, st.frozensets(st.sampled_from("retries jitter queue seconds emile no".split())))
    def test_it_is_never_too_long_and_always_a_piece_of_the_text_between_words(self, text: str, wanted: frozenset[str]) -> None:
        shown, flat = snippet(text, wanted), " ".join(text.split())
        assert len(shown) <= MAX_SNIPPET
        assert shown == snippet(text, wanted)
        if len(flat) <= MAX_SNIPPET:
            assert shown == flat
            return
        piece = shown.removeprefix("…").removesuffix("…")
        assert piece in flat
        if max(map(len, flat.split())) < MAX_SNIPPET - 2:
            assert f" {piece} " in f" {flat} "
            assert len(shown) > MAX_SNIPPET // 2


class TestChains:
    def test_the_head_is_what_nothing_supersedes(self) -> None:
        nodes = {
            n.node_id: n for n in (node("a"), node("b", superseded_by="a"), node("c", superseded_by="b"), node("d", superseded_by="x"))
        }
        assert [head_of(n, nodes) for n in "abcd"] == ["a", "a", "a", "d"]

    def test_nothing_comes_before_what_supersedes_it_nor_twice_and_branches_come_newest_first(self) -> None:
        nodes = {n: node(n, created_at=at) for n, at in {"a": 9, "b": 5, "c": 7, "d": 5, "e": 1}.items()}
        older = {"a": ["b", "c", "d"], "b": ["e"], "c": ["e", "gone"], "e": ["a"]}
        assert newest_to_oldest("a", older, nodes) == ("a", "c", "b", "d", "e")


def test_content_words_are_what_topics_and_snippets_go_by() -> None:
    assert Topic.of("How should we handle out-of-order events?").words == set(content_words("handle out-of-order events"))
