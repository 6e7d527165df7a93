"""The benchmark: its statistics and its judgement are right, and it runs. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import aims, cli, machine
from bench.judgement import Headers, Proposed, by_similarity_alone, changes, recall, tally
from bench.parts import NAMES, runner
from bench.parts.sessions import due
from bench.stats import Summary, percentile, ratio, repeated
from pulse_kg.cli.peps import Document


def document(pep: int, **more: object) -> Document:
    return Document.model_validate({"pep": pep, "title": f"Title {pep}", "status": "Final", "created": "2001-01-01T00:00:00Z", **more})


class TestStatistics:
    def test_a_percentile_lies_between_its_neighbours(self) -> None:
        assert percentile([4, 1, 3, 2], 50) == 2.5
        assert percentile([4, 1, 3, 2], 0) == 1
        assert percentile([4, 1, 3, 2], 100) == 4
        assert percentile([10, 20], 95) == pytest.approx(19.5)
        assert percentile([7], 95) == 7

    def test_a_percentile_of_nothing_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least one"):
            percentile([], 50)

    def test_a_summary_tells_the_spread(self) -> None:
        assert Summary.of([3, 1, 2]).as_dict() == {"n": 3, "min": 1, "p50": 2, "p95": 2.9, "max": 3}

    def test_a_ratio_to_nothing_is_none(self) -> None:
        assert ratio(3, 2) == 1.5
        assert ratio(3, 0) == 0

    def test_what_warms_up_does_not_count(self) -> None:
        runs: list[int] = []
        assert repeated(lambda: runs.append(1), times=4, warm_up=2).n == 4
        assert len(runs) == 6


def test_what_happens_now_and_then_is_evenly_spread() -> None:
    assert [n for n in range(60) if due(n, of=60, times=4)] == [14, 29, 44, 59]
    assert all(due(n, of=60, times=60) for n in range(60))
    assert sum(due(n, of=60, times=16) for n in range(60)) == 16


class TestJudgement:
    HEADERS = Headers([document(1), document(2, replaces=[1]), document(3, superseded_by=[4]), document(4)])

    def test_either_document_may_say_it(self) -> None:
        assert self.HEADERS.supersedes(2, 1)
        assert self.HEADERS.supersedes(4, 3)
        assert not self.HEADERS.supersedes(1, 2)
        assert self.HEADERS.predecessors(2) == {1}
        assert self.HEADERS.predecessors(1) == frozenset()

    def test_a_supersedence_has_a_direction(self) -> None:
        assert self.HEADERS.verdict(Proposed(2, "SUPERSEDE", 5, 1, 0.9)) == "right"
        assert self.HEADERS.verdict(Proposed(1, "SUPERSEDE", 5, 2, 0.9)) == "wrong"
        assert self.HEADERS.verdict(Proposed(4, "SUPERSEDE", 5, 1, 0.9)) == "wrong"

    def test_an_update_is_right_where_a_header_ties_the_two(self) -> None:
        assert self.HEADERS.verdict(Proposed(1, "UPDATE", 4, 2, 0.97)) == "right"
        assert self.HEADERS.verdict(Proposed(1, "NOOP", 1, 3)) == "wrong"

    def test_a_change_of_nothing_is_wrong(self) -> None:
        assert self.HEADERS.verdict(Proposed(2, "NOOP", 1)) == "wrong"

    def test_a_tally_counts_and_gives_the_precision(self) -> None:
        found = tally([Proposed(2, "SUPERSEDE", 5, 1), Proposed(4, "SUPERSEDE", 5, 1), Proposed(3, "SUPERSEDE", 5, 1)], self.HEADERS)
        assert found.as_dict() == {"right": 1, "wrong": 2, "precision": 0.333}
        assert tally([], self.HEADERS).precision is None

    def test_changes_are_the_hints_that_touch_a_node(self) -> None:
        proposals = [Proposed(1, "ADD", 6), Proposed(2, "NOOP", 1, 1), Proposed(3, "SUPERSEDE", 5, 1), Proposed(4, "ADD", 6, 3, 0.8)]
        assert [p.document for p in changes(proposals)] == [3, 2]
        assert [p.document for p in proposals if p.note] == [4]

    def test_similarity_alone_takes_every_near_target_for_superseded(self) -> None:
        proposals = [Proposed(2, "ADD", 6, 1, 0.86), Proposed(3, "ADD", 6, 1, 0.84), Proposed(4, "ADD", 6)]
        assert by_similarity_alone(proposals, 0.85) == [Proposed(2, "SUPERSEDE", 0, 1, 0.86)]

    def test_recall_asks_only_for_predecessors_that_came_before(self) -> None:
        place = {1: 0, 2: 1, 4: 2, 3: 3}  # 4 came before 3, which it supersedes
        found = recall(
            [Proposed(1, "ADD", 6), Proposed(2, "ADD", 6, 1, 0.8), Proposed(4, "ADD", 6), Proposed(3, "ADD", 6)], self.HEADERS, place
        )
        assert found.as_dict() == {"found": 1, "of": 1, "share": 1.0}
        missed = recall([Proposed(2, "ADD", 6, 4, 0.8)], self.HEADERS, place)
        assert missed.as_dict() == {"found": 0, "of": 1, "share": 0.0}
        assert recall([], self.HEADERS, place).share is None


class TestAims:
    def test_an_aim_is_met_or_missed(self) -> None:
        fast = {"start": {"call_ms": {"p50": 349.0}}}
        slow = {"start": {"call_ms": {"p50": 351.0}}}
        assert [a["met"] for a in aims.judged(fast)] == [True]
        assert [a["met"] for a in aims.judged(slow)] == [False]
        assert aims.judged({"sessions": {"50_candidates": {"100": {"nodes_per_second": 150.0}}}})[0]["met"]

    def test_what_was_not_measured_is_not_judged(self) -> None:
        assert aims.judged({"start": {"notes": []}}) == []


class TestRuns:
    def test_every_part_can_be_run(self) -> None:
        for name in NAMES:
            assert callable(runner(name))

    def test_help_tells_the_parts_by_example(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            cli.main(["--help"])
        assert ended.value.code == 0
        told = capsys.readouterr().out
        assert all(name in told for name in NAMES)
        assert "python -m bench --quick" in told

    def test_a_part_is_measured_and_its_report_written(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "report.json"
        assert cli.main(["--quick", "--only", "vectors", "--json", "--output", str(path)]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report == json.loads(path.read_text("utf-8"))
        assert set(report["parts"]) == {"vectors"}
        assert report["parts"]["vectors"]["1000"]["1_queries_ms"]["n"] > 0
        assert set(report["noise"]["vectors"]) == {"before", "after"}

    def test_a_part_without_its_data_is_skipped_with_the_reason(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "report.json"
        assert cli.main(["--quick", "--only", "quality", "--data", str(tmp_path), "--output", str(path)]) == 0
        assert "skipped" in capsys.readouterr().out
        assert list(json.loads(path.read_text("utf-8"))["skipped"]) == ["quality"]

    def test_the_facts_name_no_folder(self, tmp_path: Path) -> None:
        told = json.dumps(machine.facts(tmp_path))
        assert str(tmp_path) not in told
        assert str(Path.home()) not in told
