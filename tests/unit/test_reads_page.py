"""The page of the tools that read: its lists are the code's, its examples come true on the board of the demo, and it leaves no tool out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulse_kg.mcp.tools import all_tools
from pulse_kg.settings import default_model_dir
from tests.support.reads_page import PAGE, Worked, block, lists, steps, with_board, worked

ANEW = "run: python -m tests.support.reads_page"
OF_THE_MODEL = 2e-3
"""How far the model's figures of two processors may lie apart."""


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(lists()))
def test_a_list_of_the_page_is_the_codes_own(page: str, name: str) -> None:
    assert block(page, name) == lists()[name], ANEW


def test_every_tool_that_reads_a_board_is_on_the_page(page: str) -> None:
    reading = {tool.name for tool in all_tools() if tool.annotations.read_only and tool.name != "get_similar_nodes"}
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert {name for name in reading if not any(f"`{name}`" in row for row in rows)} == set()


@pytest.mark.slow
@pytest.mark.skipif(not (default_model_dir() / "model.onnx").exists(), reason="the embedding model is not built (make setup)")
class TestExamples:
    @pytest.fixture(scope="module")
    @staticmethod
    def computed(tmp_path_factory: pytest.TempPathFactory) -> Worked:
        return with_board(worked, tmp_path_factory.mktemp("reads"))

    @pytest.mark.parametrize("name", ["history", "similar", "natural", "grounding", "relevance"])
    def test_an_example_of_the_page_comes_true(self, page: str, computed: Worked, name: str) -> None:
        assert steps(page, name) == pytest.approx(dict(computed[name]), abs=OF_THE_MODEL), ANEW

    def test_the_steps_of_the_page_make_its_scores(self, page: str) -> None:
        similar = list(steps(page, "similar").values())
        semantic, _, central, recent, confidence, score = similar
        assert score == pytest.approx(0.5 * semantic + 0.2 * central + 0.2 * recent + 0.1 * confidence, abs=1e-4)
        similarity, _, _, title, best = steps(page, "history").values()
        assert best == max(similarity, title)
        best, neighbour, last_before, last = steps(page, "natural").values()
        assert neighbour == pytest.approx(best * 0.8 * 0.7, abs=1e-4)
        assert last_before < neighbour == last


def test_the_page_is_where_the_readme_says() -> None:
    assert f"(docs/{PAGE.name})" in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
