"""`pulse-kg demo`: the story plays to its end over the real server with the real model, and a lie in it is found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.bootstrap import Container, open_container
from pulse_kg.cli import demo
from pulse_kg.cli.client import Call, McpClient, ProtocolFailure
from pulse_kg.cli.demo_server import ServerFailed, serving
from pulse_kg.cli.demo_view import Silence
from pulse_kg.cli.story import AUTHOR, BOARD, documents
from pulse_kg.cli.story_ask import Asker
from pulse_kg.cli.story_run import Checks
from pulse_kg.cli.story_team import STATEMENTS, TEAM
from pulse_kg.domain.permissions import FLAGS, Caller
from pulse_kg.errors import InvalidArgument, PulseError, StoreUnavailable
from pulse_kg.mcp.host import ToolOutcome
from pulse_kg.mcp.tools import all_tools
from pulse_kg.settings import Settings, default_model_dir

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (default_model_dir() / "model.onnx").exists(), reason="the embedding model is not built (make setup)"),
]


def run(*arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pulse_kg.cli.main", "demo", *arguments]
    environment = {"COLUMNS": str(columns), "LC_ALL": "C.UTF-8", "PULSE_KG_EMBEDDER": "hashing"}  # the last one is not for the demo
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def hollow(value: Any) -> Any:
    """An answer of the same form that says nothing."""
    if isinstance(value, Mapping):
        return {name: hollow(part) for name, part in value.items()}
    return type(value)() if value is not None else None


@pytest.fixture(scope="module")
def text() -> str:
    ran = run()
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "kept.db"


@pytest.fixture(scope="module")
def document(kept: Path) -> Mapping[str, Any]:
    ran = run("--json", "--keep", str(kept))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("\n") == 1
    answer: Mapping[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.fixture(scope="module")
def container(kept: Path, document: Mapping[str, Any]) -> Iterator[Container]:
    assert document["ok"]
    with closing(open_container(Settings(store=f"sqlite:{kept}"))) as container:
        yield container


class TestText:
    def test_it_says_what_happens_and_that_all_of_it_was_checked(self, text: str) -> None:
        assert "protocol revision 2026-07-28" in text
        assert "122 of 122 checks hold" in text

    @pytest.mark.parametrize(
        "fact",
        [
            "SUPERSEDE  PEP 241 has the same reference",
            "override  ADD. PEP 426 was withdrawn",
            "unchanged  The hash",
            "conflict  The commit is refused (commit_conflict)",
            "NOOP  Already present and unchanged as PEP 621.",
            "abort  Nothing of it was ever visible",
            "supersedes PEP 345 Metadata for Python Software Packages 1.2",
            "row 6 of the audit log",
            "2017-12-01  PEP 566 Metadata for Python Software Packages 2.1; in force",
            "2001 PEP 241 ─▶ 2003 PEP 314 ─▶ 2005 PEP 345 and 2012 PEP 426 ─▶ 2017 PEP 566",
            "rejected  Why not",
            "settled  PEP 633",
            "open  Installing a package runs no code of that package ✗ A package",
            "◀─supersedes──  PEP 566",
            "from      spec installer-rules",
            "learned  Build in an empty folder",
            "PEP 751 A file format to record Python dependencies for installation",
            "critic  One pass of retrieval",
            "the team's board: Installing a package runs no code",
            "not found  Installers calculate what to install by dependency resolution",
            "not found  2.0",
            "twice  Why not infer the requirements from import statements? (PEP 722 and PEP",
            "vectors  Decision, Constraint, Requirement, Entity, Learning",
            "pulse-kg boards create web",
            "export PULSE_KG_API_KEY=pk_…",
        ],
    )
    def test_it_shows(self, text: str, fact: str) -> None:
        assert fact in text

    def test_the_next_steps_begin_with_the_path_where_the_program_is_not_on_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        venv = tmp_path / ".venv"
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "activate").touch()
        monkeypatch.setattr("pulse_kg.cli.demo.sys.prefix", str(venv))
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        assert demo._next_steps()[0][0] == ". .venv/bin/activate"
        monkeypatch.chdir(venv / "bin")
        assert demo._next_steps()[0][0] == f". {venv}/bin/activate"
        program = tmp_path / "pulse-kg"
        program.touch(mode=0o755)
        assert demo._next_steps()[0][0] == "pulse-kg boards create web"

    def test_it_fits_into_80_columns_without_control_codes(self, text: str) -> None:
        assert max(map(len, text.splitlines())) <= 80
        assert "\x1b" not in text


class TestDocument:
    def test_every_check_holds(self, document: Mapping[str, Any]) -> None:
        assert document["ok"] is True
        assert all(check["holds"] for check in document["checks"])

    def test_it_has_the_same_facts(self, document: Mapping[str, Any]) -> None:
        assert document["graph"]["counts"] == {
            "decisions": 28,
            "alternatives": 82,
            "supersedes": 9,
            "depends_on": 4,
            "contradicts": 1,
            "relates_to": 82,
        }
        assert document["audit_row"]["overrides"][0]["hint"] == "ADD"
        hints = {verdict["hint"] for session in document["sessions"] for verdict in session["verdicts"]}
        assert {"ADD", "SUPERSEDE", "NOOP", "override", "conflict", "nothing_changed", "abort"} <= hints

    def test_the_newest_decision_of_a_chain_carries_the_older_ones(self, document: Mapping[str, Any]) -> None:
        head = next(d for d in document["graph"]["decisions"] if d["name"] == "PEP 566")
        assert [d["name"] for d in head["supersedes"]] == ["PEP 426", "PEP 345"]
        assert head["supersedes"][1]["supersedes"][0]["supersedes"][0]["name"] == "PEP 241"

    def test_every_tool_that_reads_is_asked_and_its_whole_answer_is_there(self, document: Mapping[str, Any]) -> None:
        answers = document["answers"]
        assert {told["tool"] for told in answers} == set(demo._READ_TOOLS)
        assert all(told["question"] and told["answer"] and told["shown"] for told in answers)
        lock = [told["answer"]["grounded"] for told in answers if told["tool"] == "verify_grounding"]
        assert lock == [True, False, False]

    @pytest.mark.usefixtures("document")
    def test_a_kept_store_is_there_to_explore(self, kept: Path) -> None:
        container = open_container(Settings(store=f"sqlite:{kept}"))
        try:
            assert container.graph.counts(BOARD)["nodes"] == 110
        finally:
            container.close()

    @pytest.mark.usefixtures("document")
    def test_a_store_is_never_written_over(self, kept: Path) -> None:
        before = kept.read_bytes()
        with pytest.raises(InvalidArgument):
            demo.run_demo(as_json=True, keep=kept)
        assert kept.read_bytes() == before


class TestQuestions:
    """Over the tools in this process, on the store that a demo left."""

    def asked(self, container: Container, hollow_tool: str | None = None) -> Checks:
        tools = {tool.name: tool for tool in all_tools()}

        def asking_as(*boards: str) -> Call:
            caller = Caller("agt_0", "reader", frozenset(FLAGS), frozenset(boards))

            def ask(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
                try:
                    with container.services.one_call():
                        answer = tools[name](caller, arguments, container.services)
                except PulseError as refused:
                    return ToolOutcome({"error": {"code": refused.code}}, is_error=True)
                return ToolOutcome(hollow(answer) if name == hollow_tool else answer, is_error=False)

            return ask

        texts = documents()
        made = {node.title: node.node_id for board in (BOARD, TEAM) for node in container.graph.all_nodes(board)}
        checks = Checks()
        Asker(
            board=BOARD,
            team=TEAM,
            ask_as=asking_as(BOARD, TEAM),
            ask_as_guest=asking_as(BOARD),
            documents=texts,
            node_of={pep: made[text.title] for pep, text in texts.items() if text.title in made},
            statement_of={name: made[statement.title] for name, statement in STATEMENTS.items()},
            listener=Silence(),
            checks=checks,
        ).ask_all()
        return checks

    def test_honest_answers_pass(self, container: Container) -> None:
        assert self.asked(container).failures == []

    @pytest.mark.parametrize("tool", demo._READ_TOOLS)
    def test_a_tool_that_answers_with_nothing_is_found_out(self, container: Container, tool: str) -> None:
        assert self.asked(container, tool).failures != []


class TestFailure:
    def test_a_wrong_answer_makes_it_fail_and_say_what_was_wrong(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        honest = McpClient.call

        def lying(self: McpClient, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
            outcome = honest(self, name, arguments)
            if name == "commit_consolidation" and not outcome.is_error and outcome.body["audit_row_id"] == 9:
                return ToolOutcome({**outcome.body, "superseded_nodes": []}, is_error=False)
            return outcome

        monkeypatch.setattr(McpClient, "call", lying)
        assert demo.run_demo(as_json=True) == 1
        answer = json.loads(capsys.readouterr().out)
        assert answer["ok"] is False
        assert [c["check"] for c in answer["checks"] if not c["holds"]] == ["PEP 440 supersedes PEP 386. Found: {}"]

    def test_a_refused_tool_ends_it_with_a_message(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr(demo, "_PRESET", "QA")  # which may not commit
        assert demo.run_demo(as_json=False) == 1
        assert "commit_consolidation: permission_denied" in " ".join(capsys.readouterr().out.split())

    def test_without_the_model_nothing_begins(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable):
            demo.run_demo(as_json=True, settings=Settings(model_dir=tmp_path))


class TestServer:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return Settings(store=f"sqlite:{tmp_path / 'demo.db'}")

    def test_a_server_that_can_not_start_says_why(self, settings: Settings, tmp_path: Path) -> None:
        with pytest.raises(ServerFailed, match="did not start"), serving(settings, tmp_path / "log"):
            pass

    def test_a_key_that_is_none_is_refused(self, settings: Settings, tmp_path: Path) -> None:
        demo._prepare(settings)
        with serving(settings, tmp_path / "log") as server, pytest.raises(ProtocolFailure, match="401"):
            McpClient(server.url, "pk_wrong").tools()

    def test_a_tool_that_is_none_never_reaches_a_tool(self, settings: Settings, tmp_path: Path) -> None:
        key = demo._prepare(settings)[AUTHOR]
        with serving(settings, tmp_path / "log") as server, pytest.raises(ProtocolFailure, match="no tool"):
            McpClient(server.url, key).call("nothing", {})
