"""`pulse-kg ingest`: a decision history through the tools, whatever comes in between."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.cli.ingest import run_ingest
from pulse_kg.cli.ingest_view import progress_on_stderr
from pulse_kg.cli.peps import Document, links_of, read_documents
from pulse_kg.errors import InvalidArgument
from pulse_kg.mcp.envelope import refusal
from pulse_kg.mcp.host import CallerHandle, ToolHost, ToolOutcome
from tests.support.cli import Shell
from tests.support.world import Agent, World, opened

SAMPLE = (files("pulse_kg.cli.data") / "packaging_peps.jsonl").read_bytes()
BESIDE = Path(__file__).parents[3] / "shared" / "data" / "peps.jsonl"
ALL_PEPS = Path(os.environ.get("PEPS_FILE", BESIDE))
"""A whole history: what the variable names, else what lies beside the checkout."""


@dataclass
class Meddler:
    """A tool host that lets a test step in before a call, or change what it answers."""

    host: ToolHost
    before: Callable[[str, int], ToolOutcome | None] = lambda _tool, _nth: None
    after: Callable[[str, dict[str, Any]], None] = lambda _tool, _body: None
    calls: dict[str, int] = field(default_factory=dict)

    def authenticate(self, api_key: str | None) -> CallerHandle:
        return self.host.authenticate(api_key)

    def tools(self) -> Any:
        return self.host.tools()

    def call(self, caller: CallerHandle, name: str, arguments: object, *, correlation_id: str) -> ToolOutcome:
        self.calls[name] = self.calls.get(name, 0) + 1
        instead = self.before(name, self.calls[name])
        if instead is not None:
            return instead
        outcome = self.host.call(caller, name, arguments, correlation_id=correlation_id)
        if not outcome.is_error:
            self.after(name, outcome.body)
        return outcome


@dataclass
class Loader:
    """Ingests files into the board alpha of a world."""

    world: World
    agent: Agent
    folder: Path
    capsys: pytest.CaptureFixture[str]
    slept: list[float] = field(default_factory=list)
    code: int = 0
    err: str = ""

    def load(self, data: bytes, *, host: ToolHost | None = None, as_json: bool = True, **options: Any) -> Any:
        """The JSON summary, or the text for a reader."""
        file = self.folder / "history.jsonl"
        file.write_bytes(data)
        self.capsys.readouterr()
        self.code = run_ingest(
            file,
            board_id="alpha",
            host=host or self.world.host,
            caller=self.world.host.authenticate(self.agent.api_key),
            as_json=as_json,
            **{"sleep": self.slept.append, **options},
        )
        out, self.err = self.capsys.readouterr()
        return json.loads(out) if as_json else out

    def counts(self) -> Mapping[str, int]:
        return self.world.container.graph.counts("alpha")

    def graph(self) -> tuple[dict[str, str | None], set[tuple[str, str, str]]]:
        """What the board says, free of ids: the successor of each node, and the edges, by source references."""
        nodes = {n.node_id: n for n in self.world.container.graph.all_nodes("alpha")}
        ref = {node_id: n.source_ref for node_id, n in nodes.items()}
        assert len(set(ref.values())) == len(ref), "a statement is there twice"
        successors = {n.source_ref: ref.get(n.superseded_by or "") for n in nodes.values()}
        return successors, {(ref[e.src], e.rel_type, ref[e.dst]) for e in self.world.container.graph.all_edges("alpha")}

    def open_sessions(self) -> int:
        return len(self.world.container.sessions.open_sessions(board_id="alpha", now=self.world.clock.now()))


@pytest.fixture
def loader(world: World, agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Loader:
    return Loader(world, agent, tmp_path, capsys)


def pep(number: int, **changes: Any) -> dict[str, Any]:
    made = {
        "pep": number,
        "title": f"Subject {number}",
        "status": "Final",
        "created": f"20{number:02d}-01-01",
        "abstract": f"Text {number}.",
    }
    return {**made, **changes}


def lines(*peps: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(p).encode() + b"\n" for p in peps)


def refused(code: str, status: int, *, retryable: bool = False, **details: Any) -> ToolOutcome:
    shown = refusal(code, status, "No.", correlation_id="c", details=details, retryable=retryable)
    return ToolOutcome(shown, is_error=True, status=status)


def decision(number: int) -> str:
    return f"spec:pep-{number:04d}#decision"


class TestLoading:
    def test_everything_that_the_file_states_is_on_the_board(self, loader: Loader) -> None:
        documents = read_documents(SAMPLE)
        links, foreign = links_of(documents)
        alternatives = sum(len(d.rejected) for d in documents)
        summary = loader.load(SAMPLE, session_size=8)
        assert loader.code == 0
        assert summary["decisions_added"] == len(documents) == 29
        assert summary["alternatives_added"] == alternatives
        assert summary["edges_added"] == alternatives + len(links)
        assert summary["sessions"] == summary["sessions_planned"] == 4
        assert [e["reason"] for e in summary["edges_skipped"]] == ["the file does not have the other document"] * len(foreign)
        assert summary["proposals_overridden"] == summary["changes_implied"] == summary["warnings"] == []
        successors, edges = loader.graph()
        for link in links:
            assert (decision(link.src), link.rel, decision(link.dst)) in edges
        assert successors[decision(386)] == decision(440)

    def test_a_rejected_document_is_a_revoked_decision_that_keeps_its_date(self, loader: Loader) -> None:
        loader.load(lines(pep(1, status="Rejected")))
        (node,) = loader.world.container.graph.all_nodes("alpha")
        assert (node.status, node.attributes["decided_at"], node.live) == ("revoked", "2001-01-01", True)

    @pytest.mark.parametrize("size", [1, 2, 7, 40])
    def test_the_size_of_the_sessions_changes_nothing(self, loader: Loader, tmp_path: Path, size: int) -> None:
        loader.load(SAMPLE, session_size=size)
        found = loader.graph()
        with opened() as other:
            other.board("alpha")
            whole = Loader(other, other.agent(), tmp_path, loader.capsys)
            whole.load(SAMPLE, session_size=500)
            assert found == whole.graph()

    def test_limits_of_the_tools_are_kept(self, loader: Loader) -> None:
        summary = loader.load(SAMPLE, node_limit=20, edge_limit=15)
        assert (loader.code, summary["decisions_added"]) == (0, 29)
        assert summary["sessions"] > 5

    def test_progress_goes_to_standard_error_as_lines(self, loader: Loader) -> None:
        loader.load(lines(pep(1), pep(2), pep(3)), session_size=2)
        assert loader.err.splitlines() == ["2 of 3 documents (session 1 of 2)", "3 of 3 documents (session 2 of 2)"]


class TestReplay:
    def test_the_same_file_again_opens_no_session(self, loader: Loader) -> None:
        loader.load(SAMPLE, session_size=8)
        before = loader.graph()
        summary = loader.load(SAMPLE, session_size=8)
        assert (summary["sessions"], summary["sessions_nothing_changed"]) == (0, 4)
        assert loader.graph() == before

    @pytest.mark.parametrize("size", [1, 5, 40])
    def test_in_other_sessions_all_of_it_is_there_already(self, loader: Loader, size: int) -> None:
        loader.load(SAMPLE, session_size=8)
        before = loader.graph()
        summary = loader.load(SAMPLE, session_size=size)
        assert loader.graph() == before
        assert summary["noops"] == loader.counts()["nodes"]
        assert summary["edges_added"] == summary["decisions_added"] == summary["alternatives_added"] == summary["nodes_superseded"] == 0

    def test_a_run_that_stopped_half_way_goes_on_without_any_lookup(self, loader: Loader, tmp_path: Path) -> None:
        def fail(tool: str, nth: int) -> ToolOutcome | None:
            return refused("internal_error", 500) if (tool, nth) == ("commit_consolidation", 5) else None

        summary = loader.load(SAMPLE, session_size=4, host=Meddler(loader.world.host, before=fail))
        assert (loader.code, summary["sessions"], summary["error"]["code"]) == (1, 4, "internal_error")
        assert loader.open_sessions() == 0
        summary = loader.load(SAMPLE, session_size=4)
        assert (loader.code, summary["sessions_nothing_changed"]) == (0, 4)
        found = loader.graph()
        with opened() as other:
            other.board("alpha")
            whole = Loader(other, other.agent(), tmp_path, loader.capsys)
            whole.load(SAMPLE, session_size=500)
            assert found == whole.graph()

    def test_a_document_that_changed_is_an_update_of_its_own_node_and_is_shown(self, loader: Loader) -> None:
        loader.load(lines(pep(1), pep(2)))
        summary = loader.load(lines(pep(1), pep(2, abstract="Another text.")))
        assert (summary["nodes_updated"], summary["noops"], loader.counts()["nodes"]) == (1, 1, 2)
        (change,) = summary["changes_implied"]
        assert (change["hint"], change["ref"]) == ("UPDATE", "pep-0002#decision")

    def test_an_edge_that_comes_later_is_added_to_what_is_there(self, loader: Loader) -> None:
        loader.load(lines(pep(1), pep(2)))
        summary = loader.load(lines(pep(1, superseded_by=[2]), pep(2)))
        assert (summary["edges_added"], summary["nodes_superseded"], summary["noops"]) == (1, 1, 2)
        assert loader.graph()[0][decision(1)] == decision(2)


class TestContradictions:
    TWO = lines(pep(1, replaces=[2]), pep(2, replaces=[1]), pep(3))
    THREE = lines(pep(1, replaces=[2]), pep(2, replaces=[3]), pep(3, replaces=[1]), pep(4))

    def test_two_documents_that_replace_each_other_lose_one_edge_and_nothing_else(self, loader: Loader) -> None:
        summary = loader.load(self.TWO)
        assert (loader.code, summary["decisions_added"], summary["edges_added"]) == (0, 3, 1)
        (skipped,) = summary["edges_skipped"]
        assert (skipped["src"], skipped["rel"], skipped["dst"]) == ("pep-0002", "supersedes", "pep-0001")
        assert "cycle" in skipped["reason"]

    def test_a_document_that_replaces_itself_loses_that_edge(self, loader: Loader) -> None:
        summary = loader.load(lines(pep(1, replaces=[1]), pep(2)))
        assert (summary["decisions_added"], summary["edges_added"], len(summary["edges_skipped"])) == (2, 0, 1)

    def test_a_cycle_across_sessions_is_found_too(self, loader: Loader) -> None:
        summary = loader.load(self.THREE, session_size=1)
        assert (loader.code, summary["decisions_added"], summary["edges_added"], len(summary["edges_skipped"])) == (0, 4, 2, 1)

    def test_a_cycle_that_only_the_commit_can_see_costs_that_edge_alone(self, loader: Loader) -> None:
        """Resumed, the ids of earlier ends are not known, and the cycle shows only when they are mapped to their nodes."""
        loader.load(lines(pep(1, replaces=[2]), pep(2, replaces=[3]), pep(3)), session_size=3)
        loader.load(self.THREE, session_size=1)
        assert loader.code == 0
        before = loader.graph()
        assert len(before[1]) == 2
        summary = loader.load(self.THREE, session_size=2)
        assert (loader.code, len(summary["edges_skipped"])) == (0, 1)
        assert loader.graph() == before
        assert loader.open_sessions() == 0


class TestRefusals:
    def test_a_rate_limit_is_waited_for_as_long_as_it_says(self, loader: Loader) -> None:
        def limited(tool: str, nth: int) -> ToolOutcome | None:
            busy = tool == "begin_consolidation" and nth <= 8
            return refused("rate_limit", 429, retryable=True, retry_after_seconds=nth) if busy else None

        summary = loader.load(lines(pep(1)), host=Meddler(loader.world.host, before=limited))
        assert (loader.code, summary["sessions"]) == (0, 1)
        assert loader.slept == [1, 2, 3, 4, 5, 6, 7, 8]
        assert "rate_limit: going on in 8 s" in loader.err

    def test_the_real_rate_limit_is_waited_for(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with opened(environment={"PULSE_KG_CONSOLIDATIONS_PER_MINUTE": "2"}) as world:
            world.board("alpha")
            loader = Loader(world, world.agent(), tmp_path, capsys)
            loader.load(lines(*map(pep, range(1, 6))), session_size=1, sleep=lambda s: world.clock.advance(seconds=s))
            assert (loader.code, loader.counts()["nodes"]) == (0, 5)

    def test_too_many_open_sessions_are_for_a_person_to_settle(self, loader: Loader) -> None:
        def full(tool: str, _nth: int) -> ToolOutcome | None:
            busy = tool == "begin_consolidation"
            return refused("rate_limit", 429, retryable=True, retry_after_seconds=30, open_sessions=[]) if busy else None

        loader.load(lines(pep(1)), host=Meddler(loader.world.host, before=full))
        assert (loader.code, loader.slept) == (1, [])

    def test_a_store_that_is_busy_is_tried_again_a_few_times(self, loader: Loader) -> None:
        def busy(tool: str, nth: int) -> ToolOutcome | None:
            return refused("store_unavailable", 503, retryable=True) if tool == "commit_consolidation" and nth <= 2 else None

        loader.load(lines(pep(1)), host=Meddler(loader.world.host, before=busy))
        assert (loader.code, loader.slept) == (0, [0.5, 1.0])

    def test_a_store_that_stays_away_ends_the_run_with_its_session_aborted(self, loader: Loader) -> None:
        def away(tool: str, _nth: int) -> ToolOutcome | None:
            return refused("store_unavailable", 503, retryable=True) if tool == "propose_reconciliation" else None

        summary = loader.load(lines(pep(1)), host=Meddler(loader.world.host, before=away))
        assert (loader.code, summary["error"]["code"], len(loader.slept)) == (1, "store_unavailable", 4)
        assert (loader.open_sessions(), loader.counts()["nodes"]) == (0, 0)

    def test_a_board_that_changes_under_a_session_is_proposed_against_again(self, loader: Loader) -> None:
        other = loader.world.agent("bob")

        def overtake(tool: str, nth: int) -> ToolOutcome | None:
            if (tool, nth) == ("commit_consolidation", 1):
                session = other.begin("elsewhere")
                session.decide("Subject 1", "Text 1.", spec="pep-0001", section="decision", decided_at="2001-01-01", status="active")
                session.commit()
            return None

        summary = loader.load(lines(pep(1), pep(2, requires=[1])), host=Meddler(loader.world.host, before=overtake))
        assert (loader.code, summary["conflicts"], summary["noops"], summary["decisions_added"]) == (0, 1, 1, 1)
        assert loader.counts()["nodes"] == 2

    def test_an_interrupt_leaves_nothing_half(self, loader: Loader) -> None:
        def interrupt(tool: str, nth: int) -> ToolOutcome | None:
            if (tool, nth) == ("propose_reconciliation", 2):
                raise KeyboardInterrupt
            return None

        with pytest.raises(KeyboardInterrupt, match=r"^Interrupted after session 1 of 2; run the same command again to go on\.$"):
            loader.load(lines(*map(pep, range(1, 5))), session_size=2, host=Meddler(loader.world.host, before=interrupt))
        assert (loader.open_sessions(), loader.counts()["nodes"]) == (0, 2)
        loader.load(lines(*map(pep, range(1, 5))), session_size=2)
        assert loader.counts()["nodes"] == 4

    def test_a_board_that_is_not_granted_ends_the_run(self, loader: Loader) -> None:
        stranger = Loader(loader.world, loader.world.agent("eve", boards=("beta",)), loader.folder, loader.capsys)
        summary = stranger.load(lines(pep(1)))
        assert (stranger.code, summary["error"]["code"]) == (1, "permission_denied")

    @pytest.mark.parametrize(
        ("code", "status", "retryable", "again"),
        [
            ("permission_denied", 403, False, False),
            ("internal_error", 500, False, False),
            ("embedding_model_mismatch", 503, False, False),
            ("commit_conflict", 409, False, True),
            ("store_unavailable", 503, True, True),
        ],
    )
    def test_a_reader_is_told_to_go_on_only_where_that_helps(
        self, loader: Loader, code: str, status: int, retryable: bool, again: bool
    ) -> None:
        def late(tool: str, nth: int) -> ToolOutcome | None:
            return refused(code, status, retryable=retryable) if tool == "commit_consolidation" and nth >= 2 else None

        out = loader.load(lines(pep(1), pep(2)), session_size=1, host=Meddler(loader.world.host, before=late), as_json=False)
        assert loader.code == 1
        assert "1 decision, 0 alternatives, 0 edges" in out
        told = loader.err.splitlines()
        assert f"Error: commit_consolidation answered {code}: No." in told
        assert told[-1] == "1 of 2 sessions are done." + " Run the same command again to go on." * again

    def test_where_nothing_was_done_a_reader_gets_the_error_alone(self, loader: Loader) -> None:
        stranger = Loader(loader.world, loader.world.agent("eve", boards=("beta",)), loader.folder, loader.capsys)
        assert stranger.load(lines(pep(1)), as_json=False) == ""
        assert len(stranger.err.splitlines()) == 1
        assert stranger.err.startswith("Error: begin_consolidation answered permission_denied: ")


class TestProposals:
    def meddled(self, hint: str, target: str) -> Callable[[str, dict[str, Any]], None]:
        """Turns every ADD for a Decision into another hint."""

        def change(tool: str, body: dict[str, Any]) -> None:
            if tool == "propose_reconciliation" and body["proposals"][0]["hint"] == "ADD":
                body["proposals"][0].update(hint=hint, target_node=target, rationale="It looks alike.")

        return change

    def test_a_supersedence_that_no_header_states_is_overridden_and_shown(self, loader: Loader) -> None:
        loader.load(lines(pep(1)))
        (first,) = loader.world.container.graph.all_nodes("alpha")
        meddler = Meddler(loader.world.host, after=self.meddled("SUPERSEDE", first.node_id))
        summary = loader.load(lines(pep(1), pep(2), pep(3)), session_size=1, host=meddler)
        assert [o["ref"] for o in summary["proposals_overridden"]] == ["pep-0002#decision", "pep-0003#decision"]
        assert loader.counts() == {"nodes": 3, "live_nodes": 3, "edges": 0}

    def test_an_update_of_a_node_that_this_run_has_not_seen_is_left_and_shown(self, loader: Loader) -> None:
        meddler = Meddler(loader.world.host, after=self.meddled("UPDATE", "dec_0000000000000000"))
        summary = loader.load(lines(pep(1)), host=meddler)
        assert summary["proposals_overridden"] == []
        (shown,) = summary["changes_implied"]
        assert (shown["ref"], shown["target"], shown["rationale"]) == ("pep-0001#decision", "dec_0000000000000000", "It looks alike.")

    def test_in_one_run_another_documents_node_is_known(self, loader: Loader) -> None:
        known: list[str] = []

        def mistake(tool: str, body: dict[str, Any]) -> None:
            if tool == "commit_consolidation":
                known.extend(n["node_id"] for n in body["applied"]["added"])
            elif tool == "propose_reconciliation" and known:
                body["proposals"][0].update(hint="UPDATE", target_node=known[0], rationale="It looks alike.")

        summary = loader.load(lines(pep(1), pep(2)), session_size=1, host=Meddler(loader.world.host, after=mistake))
        (shown,) = summary["proposals_overridden"]
        assert (shown["ref"], shown["title"], shown["target"]) == ("pep-0002#decision", "Subject 2", "pep-0001#decision")
        rows = list(loader.world.container.commits.audit_rows("alpha"))
        assert rows[-1]["overrides"] == [{"candidate_id": "cand_001", "hint": "ADD", "rationale": "another document"}]

    def test_a_supersedence_that_the_headers_state_is_not_overridden(self, loader: Loader) -> None:
        summary = loader.load(lines(pep(1), pep(2, replaces=[1])), session_size=1)
        assert (summary["nodes_superseded"], summary["proposals_overridden"]) == (1, [])


class TestProgram:
    @pytest.fixture
    def shell(self, tmp_path: Path) -> Shell:
        shell = Shell(tmp_path)
        shell.done("boards", "create", "alpha")
        key = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "alpha")["api_key"]
        shell.variables["PULSE_KG_API_KEY"] = key
        return shell

    def test_the_summary_is_one_document_on_standard_output(self, shell: Shell) -> None:
        file = shell.folder / "peps.jsonl"
        file.write_bytes(SAMPLE)
        summary = shell.done("ingest", str(file), "--board", "alpha")
        assert (summary["decisions_added"], summary["file"]) == (29, "peps.jsonl")
        assert shell.done("verify")["clean"] is True

    def test_the_summary_for_a_reader_names_what_was_left_out(self, shell: Shell) -> None:
        file = shell.folder / "peps.jsonl"
        file.write_bytes(SAMPLE)
        ran = shell.run("ingest", str(file), "--board", "alpha")
        assert ran.code == 0
        assert "29 decisions" in ran.out
        assert "pep-0600 supersedes pep-0513" in ran.out

    def test_bad_lines_are_told_in_one_message_and_nothing_is_written(self, shell: Shell) -> None:
        file = shell.folder / "peps.jsonl"
        file.write_bytes(lines(pep(1)) + b"{\n" + lines(pep(2, title="")))
        ran = shell.run("ingest", str(file), "--board", "alpha")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.splitlines()[0] == "Error: 2 lines of the file can't be read, and nothing was ingested."
        assert "line 2: is not JSON" in ran.err
        assert "line 3: decision.title" in ran.err
        assert shell.done("boards", "show", "alpha")["counts"]["nodes"] == 0

    def test_of_many_bad_lines_a_reader_sees_ten_and_how_many_more(self, shell: Shell) -> None:
        file = shell.folder / "peps.jsonl"
        file.write_bytes(b"{\n" * 25)
        told = shell.run("ingest", str(file), "--board", "alpha").err.splitlines()
        assert len(told) == 12
        assert told[0].startswith("Error: 25 lines")
        assert told[-1] == "  and 15 more"
        assert len(shell.run("ingest", str(file), "--board", "alpha", "--json").error["details"]["problems"]) == 25

    def test_what_is_missing_is_told_in_our_own_words(self, shell: Shell) -> None:
        file = shell.folder / "peps.jsonl"
        file.write_bytes(b'{"pep": "1", "title": 2, "requires": 3, "replaces": [-1], "rejected": [{}, 4]}\n[]\n')
        told = shell.run("ingest", str(file), "--board", "alpha", "--json").error["details"]["problems"]
        assert {p["path"].removeprefix("line "): p["problem"] for p in told} == {
            "1: pep": "must be a whole number",
            "1: title": "must be a text",
            "1: status": "is required",
            "1: created": "is required",
            "1: requires": "must be a list",
            "1: replaces.0": "must be 0 or more",
            "1: rejected.0.title": "is required",
            "1: rejected.1": "must be a JSON object",
            "2": "must be a JSON object",
        }

    def test_the_file_may_come_from_standard_input(self, shell: Shell) -> None:
        ran = shell.run("ingest", "-", "--board", "alpha", "--json", stdin=lines(pep(1)))
        assert (ran.code, ran.json["file"], ran.json["decisions_added"]) == (0, "stdin", 1)

    def test_the_help_says_what_a_line_holds(self, shell: Shell) -> None:
        shown = shell.bare("ingest", "--help").out
        for name, found in Document.model_fields.items():
            assert re.search(rf"^  {name} +(required: )?", shown, re.MULTILINE)
            assert (re.search(rf"^  {name} +required: ", shown, re.MULTILINE) is not None) == found.is_required(), name

    @pytest.mark.parametrize(
        ("key", "message"),
        [("", "No API key. Set PULSE_KG_API_KEY"), ("pk_wrong", "The key in PULSE_KG_API_KEY is not valid: was it rotated")],
    )
    def test_a_key_that_is_none_is_refused_with_what_to_do(self, shell: Shell, key: str, message: str) -> None:
        ran = shell.run("ingest", "-", "--board", "alpha", stdin=lines(pep(1)), PULSE_KG_API_KEY=key)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"Error: {message}")

    def test_an_interrupt_tells_how_far_it_came(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_arguments: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("pulse_kg.cli.ingest_run.Ingest.take", interrupted)
        ran = shell.run("ingest", "-", "--board", "alpha", stdin=lines(pep(1)))
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.strip() == "Interrupted after session 0 of 1; run the same command again to go on."

    def test_on_a_terminal_a_bar_goes_on_with_each_document(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shown: list[float] = []

        def update(_bar: object, _task: object, *, completed: float | None = None, **_more: object) -> None:
            shown.extend([] if completed is None else [completed])

        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setattr("rich.progress.Progress.update", update)
        with progress_on_stderr(3, as_json=False) as progress:
            progress.begin("session 1 of 2")
            progress.stated(1)
            progress.stated(2)
            progress.end(2)
            progress.begin("session 2 of 2")
            progress.stated(1)
            progress.end(1)
        assert shown == [1, 2, 2, 3, 3]


def test_documents_that_no_session_has_room_for_are_refused(loader: Loader) -> None:
    with pytest.raises(InvalidArgument):
        loader.load(SAMPLE, node_limit=5)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not ALL_PEPS.is_file(), reason="there is no ../shared/data/peps.jsonl, and PEPS_FILE names no other file")
def test_all_of_a_real_history_goes_in_once(loader: Loader) -> None:
    data = ALL_PEPS.read_bytes()
    documents = read_documents(data)
    links, _ = links_of(documents)
    alternatives = sum(len(d.rejected) for d in documents)
    summary = loader.load(data)
    assert (summary["decisions_added"], summary["edges_added"]) == (len(documents), alternatives + len(links))
    assert (summary["proposals_overridden"], summary["changes_implied"]) == ([], [])
    before = loader.graph()
    assert loader.load(data)["sessions"] == 0
    assert loader.load(data, session_size=25)["noops"] == len(documents) + alternatives
    assert loader.graph() == before
