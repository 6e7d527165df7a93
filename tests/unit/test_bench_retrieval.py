"""The benchmark of retrieval asks what has a known answer, the same in each run, and judges by hand-checked figures."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from bench.questions import BY_HAND, Question, questions
from bench.retrieval import Judge
from pulse_kg.cli.peps import Document, read_documents
from pulse_kg.domain.text import fold

SAMPLE = (files("pulse_kg.cli.data") / "packaging_peps.jsonl").read_bytes()


def documents(*changes: dict[str, Any]) -> list[Document]:
    made = [{"pep": n, "title": f"Subject {n}", "status": "Final", "created": f"20{n:02d}-01-01", **c} for n, c in enumerate(changes, 1)]
    return read_documents(b"\n".join(json.dumps(d).encode() for d in made))


class TestQuestions:
    def test_they_are_the_same_each_time_and_every_answer_is_a_document(self) -> None:
        told = read_documents(SAMPLE)
        asked = questions(told)
        assert asked == questions(told)
        assert {q.kind for q in asked} >= {"what replaced it", "what it replaced", "words of the title", "rare words of the text"}
        assert all(q.answers and q.answers <= {d.pep for d in told} for q in asked)

    def test_relations_are_asked_from_both_ends_and_a_cycle_is_left_out(self) -> None:
        told = documents({"title": "Old ways"}, {"title": "New ways", "replaces": [1]}, {"title": "Last ways", "replaces": [1]})
        by_relation = [q for q in questions(told) if "repl" in q.kind]
        assert by_relation == [
            Question("what replaced it", "What replaced Old ways?", frozenset({2, 3})),
            Question("what it replaced", "What did New ways replace?", frozenset({1})),
            Question("what it replaced", "What did Last ways replace?", frozenset({1})),
        ]
        turning = documents({"replaces": [2]}, {"replaces": [1]})
        assert len([q for q in questions(turning) if "repl" in q.kind]) == 2

    def test_words_of_a_title_come_backwards_without_the_first(self) -> None:
        (asked,) = [q for q in questions(documents({"title": "The wheel format of binary packages"})) if q.kind == "words of the title"]
        assert (asked.text, asked.answers) == ("packages binary format", frozenset({1}))

    def test_rare_words_are_none_of_the_title(self) -> None:
        told = {d.pep: d for d in read_documents(SAMPLE)}
        asked = [q for q in questions(list(told.values())) if q.kind == "rare words of the text"]
        assert asked
        for question in asked:
            (pep,) = question.answers
            assert not [w for w in question.text.split() if w in fold(told[pep].title)]

    def test_those_by_hand_are_asked_only_where_their_documents_are_there(self) -> None:
        assert [q for q in questions(documents({}, {})) if q.kind == "by hand"] == []
        assert len(BY_HAND) >= 20


class TestJudge:
    @pytest.mark.parametrize(
        ("answers", "ranked", "recall", "mrr"),
        [
            ({1}, "abc", 1.0, 1.0),
            ({3}, "abc", 1.0, 0.333),
            ({1, 3}, "xaxxxc", 0.5, 0.5),
            ({2}, "xxxxxb", 0.0, 0.167),
            ({2}, "xyz", 0.0, 0.0),
        ],
    )
    def test_recall_looks_at_five_and_the_reciprocal_rank_at_all(self, answers: set[int], ranked: str, recall: float, mrr: float) -> None:
        judge = Judge([Question("kind", "which?", frozenset(answers))], {1: "a", 2: "b", 3: "c"})
        found = judge.figures(lambda _, limit: list(ranked)[:limit])
        assert found["kind"] == found["all"] == {"questions": 1, "recall_at_5": recall, "mrr": mrr}

    def test_what_is_shown_counts_every_answer(self) -> None:
        judge = Judge([Question("kind", "which?", frozenset({1, 2}))], {1: "a", 2: "b"})
        assert judge.shown(lambda _: {"a", "z"}) == {"kind": 0.5}
