"""What was consolidated, from the command line: audit, nodes, sessions, verify, rebuild, export, health, call, ingest."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pulse_kg.adapters.embedding.model_files import GRAPH, MANIFEST, TOKENIZER, FileFacts, Manifest
from pulse_kg.cli.nodes import find_node
from pulse_kg.errors import InvalidArgument, NodeNotFound
from pulse_kg.mcp.tools import TOOL_NAMES
from pulse_kg.usecases.verify import Verification
from tests.support.cli import Shell
from tests.support.world import opened

SESSION = "kgs_01ARZ3NDEKTSV4RRFFQ69G5FAV"
NASTY = 'Use <b>&amp; "quotes" ]]> \ufffe\u2028 é 漢 😀\n\tnext line'


@dataclass
class Filled(Shell):
    """A store with one board of three nodes and two edges, in two commits, and an empty one."""

    key: str = ""
    agent_id: str = ""
    old: str = ""
    new: str = ""
    other: str = ""
    first_session: str = ""


@pytest.fixture
def shell(tmp_path: Path) -> Filled:
    made = Filled(tmp_path)
    with opened(made.store) as world:
        world.board("web")
        world.board("api")
        ann = world.agent("ann", boards=("web",))
        first = ann.begin(board_id="web")
        first.decide("Retry twice", NASTY, section="retry", rationale="[bold]because[/bold]", decided_at="2026-01-02")
        first.add("APIContract", "POST /orders", attributes={"request_schema": {"b": [1, None], "a": 1.5}})
        mapped = {entry["candidate_id"]: entry["node_id"] for entry in first.commit()["applied"]["added"]}
        second = ann.begin(version=2, board_id="web")
        newer = second.decide("Retry five times", section="retry")
        second.edge(newer, "supersedes", mapped["cand_001"])
        second.edge(newer, "relates_to", mapped["cand_002"], reason="the route that is retried")
        done = second.commit()
        made.key, made.agent_id, made.first_session = ann.api_key, ann.agent_id, first.session_id
        made.old, made.other, made.new = mapped["cand_001"], mapped["cand_002"], done["applied"]["added"][0]["node_id"]
    made.variables["PULSE_KG_API_KEY"] = made.key
    return made


# -------------------------------------------------------------------------------------------------------------- audit


def test_the_audit_log_has_a_row_for_each_commit_oldest_first(shell: Filled) -> None:
    shown = shell.done("audit", "web")
    assert shown["board_id"] == "web"
    assert [row["audit_row_id"] for row in shown["rows"]] == [1, 2]
    assert shell.done("audit", "api") == {"board_id": "api", "rows": []}


def test_a_row_is_found_by_its_number_and_whole(shell: Filled) -> None:
    rows = shell.done("audit", "web", "--seq", "1")["rows"]
    assert [row["session_id"] for row in rows] == [shell.first_session]
    assert rows[0]["candidates"]["nodes"][0]["title"] == "Retry twice"
    assert json.loads(shell.run("audit", "web", "--seq", "1").out) == rows[0]


def test_a_number_without_a_commit_is_refused_with_the_last_one(shell: Filled) -> None:
    ran = shell.run("audit", "web", "--seq", "3")
    assert ran.code == 1
    assert "its last is 2" in ran.err


def test_rows_are_found_by_session_and_by_node(shell: Filled) -> None:
    assert [r["audit_row_id"] for r in shell.done("audit", "web", "--session", shell.first_session)["rows"]] == [1]
    assert [r["audit_row_id"] for r in shell.done("audit", "web", "--node", shell.old)["rows"]] == [1, 2]
    assert [r["audit_row_id"] for r in shell.done("audit", "web", "--node", shell.new)["rows"]] == [2]
    assert shell.done("audit", "web", "--session", SESSION)["rows"] == []


def test_people_see_who_did_what(shell: Filled) -> None:
    lines = shell.run("audit", "web").out.splitlines()
    assert "ann" in lines[1]
    assert "spec:spec_007 v1: 2 added" in lines[1]
    assert "2 edges" in lines[2]
    assert re.search(r" \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", lines[1])


def test_people_can_tell_care_from_its_end(shell: Filled) -> None:
    shell.done("nodes", "curate", shell.new, "--reason", "agreed", "--boost", "0.1")
    shell.done("nodes", "curate", shell.new, "--off", "--reason", "open again")
    shell.done("nodes", "revoke", shell.new, "--reason", "wrong")
    on, off, revoked = shell.run("audit", "web").out.splitlines()[3:]
    assert f"curate (boost 0.1) {shell.new}: agreed" in on
    assert f"curate off {shell.new}: open again" in off
    assert f"revoke {shell.new}: wrong" in revoked


@pytest.mark.parametrize("command", ["audit", "sessions", "nodes"])
def test_on_80_columns_no_id_and_no_time_is_broken(shell: Filled, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    shell.run("call", "begin_consolidation", begin(shell, "a long name of an artifact " * 3))
    words = {"audit": ("audit", "web"), "sessions": ("sessions", "list"), "nodes": ("nodes", "show", shell.old)}[command]
    found = shell.done(*words)
    rows, ids, times = {
        "audit": (found.get("rows"), ("session_id",), ("committed_at",)),
        "sessions": (found.get("sessions"), ("session_id", "board_id"), ("expires_at",)),
        "nodes": ([found], ("node_id", "superseded_by", "source_session_id"), ("created_at", "superseded_at")),
    }[command]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("pulse_kg.cli.output.sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    shown = shell.run(*words).out
    for row in rows:
        assert all(row[name] in shown for name in ids), shown
        assert all(f"{row[name][:19]}Z" in shown for name in times), shown
        assert all(row[name] not in shown for name in times), shown
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80


# -------------------------------------------------------------------------------------------------------------- nodes


def test_a_node_is_shown_with_all_properties_and_its_edges(shell: Filled) -> None:
    shown = shell.done("nodes", "show", shell.old)
    edges = shown.pop("edges")
    assert (shown["board_id"], shown["type"], shown["title"], shown["body"]) == ("web", "Decision", "Retry twice", NASTY)
    assert (shown["superseded_by"], shown["status"]) == (shell.new, "superseded")
    assert [(e["src"], e["rel"], e["dst"]) for e in edges] == [(shell.new, "supersedes", shell.old)]
    assert shell.new in shell.run("nodes", "show", shell.old, "--board", "web").out


def test_a_node_of_another_board_is_not_found_there(shell: Filled) -> None:
    ran = shell.run("nodes", "show", shell.old, "--board", "api", "--json")
    assert (ran.code, ran.error["code"]) == (1, "node_not_found")


@pytest.mark.parametrize("node", ["dec_ffffffffffffffff", "not-a-node"])
def test_a_node_that_is_nowhere_is_refused(shell: Filled, node: str) -> None:
    assert shell.run("nodes", "show", node).code == 1


def test_an_id_on_two_boards_needs_the_board() -> None:
    def nodes(board: str, ids: list[str]) -> dict[str, Any]:
        return {i: SimpleNamespace(board_id=board, node_id=i) for i in ids if board != "c"}

    boards = SimpleNamespace(
        boards=lambda: [SimpleNamespace(board_id=b) for b in "abc"], board=lambda board: SimpleNamespace(board_id=board)
    )
    container: Any = SimpleNamespace(boards=boards, graph=SimpleNamespace(nodes=nodes))
    with pytest.raises(InvalidArgument, match="--board: a, b"):
        find_node("dec_1", None, container)
    assert find_node("dec_1", "b", container).board_id == "b"
    with pytest.raises(NodeNotFound):
        find_node("dec_1", "c", container)


def test_curating_is_a_commit_with_the_reason_in_its_audit_row(shell: Filled) -> None:
    done = shell.done("nodes", "curate", shell.new, "--reason", "agreed in the review", "--boost", "0.1")
    assert (done["board_id"], done["node_id"], done["action"], done["audit_row_id"]) == ("web", shell.new, "curate", 3)
    shown = shell.done("nodes", "show", shell.new)
    assert (shown["human_curated"], shown["priority_boost"]) == (True, 0.1)
    row = shell.done("audit", "web", "--node", shell.new)["rows"][-1]
    assert (row["kind"], row["action"], row["reason"]) == ("administration", "curate", "agreed in the review")
    assert "curate" in shell.run("audit", "web").out
    shell.done("nodes", "curate", shell.new, "--off", "--reason", "open again")
    assert shell.done("nodes", "show", shell.new)["human_curated"] is False


def test_revoking_takes_a_node_back(shell: Filled) -> None:
    shell.done("nodes", "revoke", shell.new, "--board", "web", "--reason", "was never agreed")
    shown = shell.done("nodes", "show", shell.new)
    assert (shown["revocation_reason"], shown["status"], shown["superseded_by"]) == ("was never agreed", "revoked", None)


@pytest.mark.parametrize("wrong", [("--reason", " "), ("--reason", "x", "--boost", "0.3")], ids=" ".join)
def test_a_change_without_a_reason_or_out_of_range_is_refused(shell: Filled, wrong: tuple[str, ...]) -> None:
    assert shell.run("nodes", "curate", shell.new, *wrong).code == 1
    assert len(shell.done("audit", "web")["rows"]) == 2


@pytest.mark.parametrize(
    ("reason", "fault"),
    [("a\udcffb", "a lone surrogate (U+DCFF)"), ("a\x1bb", "a control character (U+001B)"), ("x" * 4_001, "4,001 characters")],
    ids=["surrogate", "escape", "long"],
)
@pytest.mark.parametrize("change", ["curate", "revoke"])
def test_a_reason_that_no_text_may_be_is_refused(shell: Filled, change: str, reason: str, fault: str) -> None:
    ran = shell.run("nodes", change, shell.new, "--reason", reason, "--json")
    assert (ran.code, ran.error["code"]) == (1, "invalid_argument")
    assert fault in ran.error["message"]
    assert len(shell.done("audit", "web")["rows"]) == 2


def test_a_reason_may_have_4000_characters_and_several_lines(shell: Filled) -> None:
    shell.done("nodes", "revoke", shell.new, "--reason", "grüße\n\t" + "x" * 3_993)
    assert len(shell.done("audit", "web")["rows"]) == 3


@pytest.mark.parametrize(
    "command",
    [
        ("sessions", "abort", "\udcff"),
        ("sessions", "abort", "kgs_1"),
        ("sessions", "list", "--board", "\udcff"),
        ("audit", "\udcff"),
        ("audit", "web", "--seq", "99999999999999999999"),
        ("nodes", "show", "\udcff"),
        ("export", "\udcff", "--format", "jsonl", "--output", "/dev/null"),
    ],
    ids=repr,
)
def test_a_name_or_number_that_none_can_have_is_a_plain_refusal(shell: Filled, command: tuple[str, ...]) -> None:
    ran = shell.run(*command, "--json")
    assert (ran.code, ran.error["code"]) == (1, "invalid_argument")
    ran = shell.run(*command)
    assert ran.code == 1
    assert "went wrong" not in ran.err


# ------------------------------------------------------------------------------------------------- sessions and calls


def begin(shell: Filled, source_id: str = "s1", **more: Any) -> str:
    return json.dumps({"board_id": "web", "source_type": "spec", "source_id": source_id, "source_version": 1, **more})


def test_a_call_answers_with_what_the_tool_answers(shell: Filled) -> None:
    ran = shell.run("call", "begin_consolidation", begin(shell))
    assert ran.code == 0
    assert ran.json["nothing_changed"] is False
    assert ran.err == ""


@pytest.mark.parametrize("tool", ["begin_consolidation", "okto_pulse_kg_begin_consolidation"])
def test_a_call_takes_both_names_of_a_tool_and_arguments_from_standard_input(shell: Filled, tool: str) -> None:
    assert shell.run("call", tool, "-", stdin=begin(shell)).json["session_id"].startswith("kgs_")


def test_a_refused_call_is_the_envelope_and_exits_with_1(shell: Filled) -> None:
    ran = shell.run("call", "begin_consolidation", begin(shell, board_id="api"))
    assert (ran.code, ran.error["status"], ran.error["code"]) == (1, 403, "permission_denied")


def test_arguments_that_are_no_object_are_refused_by_the_tool(shell: Filled) -> None:
    ran = shell.run("call", "begin_consolidation", "[]")
    assert (ran.code, ran.error["status"]) == (1, 422)


@pytest.mark.parametrize("tool", ["begin_consolidaton", "okto_pulse_kg_begin_consolidaton"])
def test_an_unknown_tool_is_an_envelope_with_the_nearest_and_all(shell: Filled, tool: str) -> None:
    ran = shell.run("call", tool, PULSE_KG_API_KEY="")
    assert (ran.code, ran.error["code"], ran.error["status"]) == (1, "tool_not_found", 404)
    assert "'begin_consolidaton' (nearest: 'begin_consolidation')" in ran.error["message"]
    assert ran.error["message"].endswith(f"The tools are {', '.join(TOOL_NAMES)}.")
    assert "nearest" not in shell.run("call", "xyz").error["message"]


def test_the_help_lists_the_tools_and_its_examples_use_no_other(shell: Filled) -> None:
    shown = shell.bare("call", "--help").out
    assert "TOOL [JSON]" in shown
    assert all(name in shown for name in TOOL_NAMES)
    assert set(re.findall(r"pulse-kg call (\w+)", shown)) <= set(TOOL_NAMES)


def test_arguments_that_are_no_json_are_told_with_the_usual_mistake(shell: Filled) -> None:
    assert "single quotes" in shell.run("call", "begin_consolidation", "{board_id: web}").error["message"]
    assert "single quotes" not in shell.run("call", "begin_consolidation", "-", stdin="{").error["message"]


def test_the_key_comes_from_a_file_before_the_variable(shell: Filled) -> None:
    file = shell.folder / "ann.key"
    file.write_text(f"{shell.key}\n", encoding="ascii")
    assert shell.run("call", "begin_consolidation", begin(shell), "--key-file", str(file), PULSE_KG_API_KEY="pk_wrong").code == 0
    file.write_bytes(b"\xff\xfe")
    ran = shell.run("call", "begin_consolidation", begin(shell), "--key-file", str(file))
    assert (ran.code, ran.error["code"]) == (1, "unauthorized")
    assert (
        f"The key in the key file {file} is not valid: was it rotated, its agent revoked, or is it of another store?"
        in ran.error["message"]
    )
    file.write_bytes(b"\n")
    assert "is empty" in shell.run("call", "begin_consolidation", begin(shell), "--key-file", str(file)).error["message"]


def test_without_a_key_a_call_is_unauthorized_and_says_where_a_key_goes(shell: Filled) -> None:
    ran = shell.run("call", "begin_consolidation", begin(shell), PULSE_KG_API_KEY="")
    assert (ran.code, ran.error["status"], ran.error["code"]) == (1, 401, "unauthorized")
    assert ran.error["message"] == "No API key. Set PULSE_KG_API_KEY or name --key-file; 'pulse-kg agents create' makes one."


def test_a_key_that_was_rotated_is_told_as_such(shell: Filled) -> None:
    shell.done("keys", "rotate", "ann")
    ran = shell.run("call", "begin_consolidation", begin(shell))
    assert (ran.code, ran.error["code"]) == (1, "unauthorized")
    assert ran.error["message"].startswith(
        "The key in PULSE_KG_API_KEY is not valid: was it rotated, its agent revoked, or is it of another store?"
    )


def test_a_key_is_no_argument(shell: Filled) -> None:
    assert shell.run("call", "begin_consolidation", begin(shell), "--key", shell.key).code == 2


def test_open_sessions_are_listed_by_board_and_agent_and_can_be_aborted(shell: Filled) -> None:
    session = shell.run("call", "begin_consolidation", begin(shell)).json["session_id"]
    listed = shell.done("sessions", "list")["sessions"]
    assert [(s["session_id"], s["board_id"], s["agent_id"], s["state"]) for s in listed] == [(session, "web", shell.agent_id, "open")]
    assert shell.done("sessions", "list", "--board", "web", "--agent", "ann")["sessions"] == listed
    assert shell.done("sessions", "list", "--board", "api")["sessions"] == []
    assert "ann" in shell.run("sessions", "list").out
    assert shell.done("sessions", "abort", session) == {"session_id": session, "aborted": True}
    assert shell.done("sessions", "list")["sessions"] == []
    assert shell.run("sessions", "list").out == "No session is open.\n"


def test_a_committed_session_and_one_that_is_not_there_are_not_aborted(shell: Filled) -> None:
    unknown = shell.run("sessions", "abort", SESSION, "--json").error
    assert unknown["code"] == "session_not_found"
    assert unknown["message"] == f"There is no session {SESSION}. 'pulse-kg sessions list' shows the open ones."
    session = shell.run("call", "begin_consolidation", begin(shell)).json["session_id"]
    node = json.dumps({"session_id": session, "node_type": "Bug", "title": "It leaks"})
    assert shell.run("call", "add_node_candidate", node).code == 0
    assert shell.run("call", "commit_consolidation", json.dumps({"session_id": session})).code == 0
    assert shell.run("sessions", "abort", session, "--json").error["code"] == "session_already_committed"


# ----------------------------------------------------------------------------------------------- verify and rebuild


def test_verify_finds_a_sound_store_clean(shell: Filled) -> None:
    shown = shell.done("verify")
    assert shown["clean"] is True
    assert [(b["board_id"], b["commits"], b["nodes"], b["edges"], b["findings"]) for b in shown["boards"]] == [
        ("api", 0, 0, 0, []),
        ("web", 2, 3, 2, []),
    ]
    assert [b["board_id"] for b in shell.done("verify", "--board", "web")["boards"]] == ["web"]


def test_verify_prints_what_is_wrong_and_exits_with_1(shell: Filled) -> None:
    database = sqlite3.connect(shell.store)
    with database:
        database.execute("DELETE FROM edges")
    database.close()
    told, shown = shell.run("verify"), shell.run("verify", "--json")
    assert told.code == shown.code == 1
    assert "web: edge " in told.out
    assert told.out.splitlines()[-1] == (
        f"Restore a backup, or make the store anew: pulse-kg rebuild --from sqlite:{shell.store} --to sqlite:{shell.folder}/rebuilt.db"
    )
    assert shown.json["clean"] is False
    assert len(next(b for b in shown.json["boards"] if b["board_id"] == "web")["findings"]) >= 2


def test_of_many_findings_a_reader_sees_twenty(shell: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    many = Verification("web", 1, 1, 1, 1, tuple(f"finding {n}" for n in range(47)))
    monkeypatch.setattr("pulse_kg.usecases.verify.verify_board", lambda *_, **__: many)
    ran = shell.run("verify", "--board", "web")
    assert ran.code == 1
    told = ran.out.splitlines()[2:]
    assert told[:20] == [f"web: finding {n}" for n in range(20)]
    assert told[20] == "and 27 more; --json shows up to 200 of a board"
    assert len(told) == 22
    assert len(shell.run("verify", "--board", "web", "--json").json["boards"][0]["findings"]) == 47


def test_rebuild_makes_another_store_that_is_equal_but_for_agents(shell: Filled) -> None:
    copy = Shell(shell.folder / "copy")
    copy.folder.mkdir()
    done = shell.done("rebuild", "--from", f"sqlite:{shell.store}", "--to", f"sqlite:{copy.store}")
    assert done["boards"] == [{"board_id": "api", "commits_replayed": 0}, {"board_id": "web", "commits_replayed": 2}]
    assert copy.done("verify")["clean"] is True
    assert copy.done("audit", "web") == shell.done("audit", "web")
    assert copy.done("agents", "list") == {"agents": []}
    again = shell.done("rebuild", "--from", f"sqlite:{shell.store}", "--to", f"sqlite:{copy.store}")
    assert [b["commits_replayed"] for b in again["boards"]] == [0, 0]


def test_rebuild_from_nothing_makes_nothing(shell: Filled) -> None:
    ran = shell.run("rebuild", "--from", f"sqlite:{shell.folder}/no.db", "--to", f"sqlite:{shell.folder}/new.db")
    assert ran.code == 1
    assert not (shell.folder / "new.db").exists()


# ------------------------------------------------------------------------------------------------------------- export


def test_json_lines_hold_the_board_its_nodes_and_its_edges(shell: Filled) -> None:
    lines = [json.loads(line) for line in shell.run("export", "web", "--format", "jsonl").out.split("\n") if line]
    assert [line["kind"] for line in lines] == ["board", "node", "node", "node", "edge", "edge"]
    assert lines[0]["commit_seq"] == 2
    assert {line["node_id"] for line in lines[1:4]} == {shell.old, shell.new, shell.other}
    assert next(line for line in lines if line.get("node_id") == shell.old)["body"] == NASTY


def graphml(text: str) -> tuple[Any, dict[str, dict[str, str]]]:
    """The graph, and the values of each element by name, checked as a strict reader would."""
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ET.fromstring(text)  # noqa: S314 - what was just written
    assert root.tag == f"{space}graphml"
    keys = {key.attrib["id"]: key.attrib for key in root.iter(f"{space}key")}
    readers: Mapping[str, Callable[[str], object]] = {"boolean": ["false", "true"].index, "long": int, "double": float, "string": str}
    graph = root.find(f"{space}graph")
    assert graph is not None
    nodes = {node.attrib["id"] for node in graph.iter(f"{space}node")}
    values: dict[str, dict[str, str]] = {}
    for element in graph:
        kind = element.tag.removeprefix(space)
        if kind == "edge":
            assert {element.attrib["source"], element.attrib["target"]} <= nodes
        for data in element:
            declared = keys[data.attrib["key"]]
            assert declared["for"] == kind
            readers[declared["attr.type"]](data.text or "")
            values.setdefault(element.attrib["id"], {})[declared["attr.name"]] = data.text or ""
    return graph, values


def test_graphml_is_valid_for_a_strict_reader_whatever_the_texts_hold(shell: Filled) -> None:
    graph, values = graphml(shell.run("export", "web", "--format", "graphml").out)
    assert graph.attrib == {"id": "web", "edgedefault": "directed"}
    old = values[shell.old]
    assert old["title"] == "Retry twice"
    assert old["body"] == NASTY.replace("\ufffe", "\ufffd")
    assert old["attributes.rationale"] == "[bold]because[/bold]"
    assert old["superseded_by"] == shell.new
    assert values[shell.other]["attributes.request_schema"] == '{"a":1.5,"b":[1,null]}'
    relations = [v["rel"] for v in values.values() if "rel" in v]
    assert sorted(relations) == ["relates_to", "supersedes"]


def test_an_empty_board_is_valid_graphml_too(shell: Filled) -> None:
    graph, values = graphml(shell.run("export", "api", "--format", "graphml").out)
    assert len(graph) == 0
    assert values == {}


@pytest.mark.parametrize("form", ["jsonl", "graphml"])
def test_an_export_into_a_file_is_the_same_and_json_tells_of_it(shell: Filled, form: str) -> None:
    file = shell.folder / "out"
    done = shell.done("export", "web", "--format", form, "--output", str(file))
    assert (done["nodes"], done["edges"], done["commit_seq"], done["format"]) == (3, 2, 2, form)
    assert file.read_bytes().decode() == shell.run("export", "web", "--format", form).out


def test_an_export_is_for_its_owner_alone_and_a_file_that_is_there_keeps_its_permissions(shell: Filled) -> None:
    made, there = shell.folder / "made", shell.folder / "there"
    there.touch()
    there.chmod(0o644)
    for file in (made, there):
        shell.done("export", "web", "--format", "jsonl", "--output", str(file))
    assert [file.stat().st_mode & 0o777 for file in (made, there)] == [0o600, 0o644]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_export_that_finds_no_room_says_so(shell: Filled) -> None:
    ran = shell.run("export", "web", "--format", "jsonl", "--output", "/dev/full")
    assert ran.code == 1
    assert "not complete: /dev/full can't be written: No space left on device" in ran.err


# ------------------------------------------------------------------------------------------------------------- health


def test_health_shows_the_settings_and_no_secret(shell: Filled) -> None:
    ran = shell.run("health", "--json", PULSE_KG_CYPHER_PER_MINUTE="7")
    assert ran.code == 0
    shown = ran.json
    assert (shown["status"], shown["problems"]) == ("ok", [])
    address = {"address": f"sqlite:{shell.store}", "file": str(shell.store)}
    assert shown["store"] == {"state": "ok", **address, "boards": 2, "agents": 1}
    assert shown["settings"]["cypher_per_minute"] == 7
    assert shell.key[3:] not in ran.out
    assert "cypher_per_minute" in shell.run("health").out


def test_health_without_the_model_is_failing(shell: Filled) -> None:
    ran = shell.run("health", "--json", PULSE_KG_EMBEDDER="minilm", PULSE_KG_MODEL_DIR=str(shell.folder))
    assert ran.code == 1
    assert (ran.json["status"], ran.json["embedder"]) == ("failing", {"state": "missing"})
    assert "make setup" in ran.json["problems"][0]
    shown = shell.run("health", PULSE_KG_EMBEDDER="minilm", PULSE_KG_MODEL_DIR=str(shell.folder)).out
    assert re.search(r"^model +missing$", shown, re.MULTILINE)
    assert re.search(rf"^model_dir +{shell.folder}$", shown, re.MULTILINE)


def test_health_without_a_store_shows_the_rest(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told, shown = shell.run("health"), shell.run("health", "--json")
    assert told.code == shown.code == 1
    assert re.search(r"^store +none yet, 'pulse-kg boards create BOARD' makes it$", told.out, re.MULTILINE)
    assert re.search(r"^model +hashing-test-v1$", told.out, re.MULTILINE)
    assert "cypher_per_minute" in told.out
    assert f"Problem: There is no store at {shell.store}." in told.out
    assert (shown.json["status"], shown.json["store"]["state"], shown.json["embedder"]["state"]) == ("failing", "missing", "ok")
    assert not shell.store.exists()


def test_health_of_a_store_that_is_none_is_failing(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.store.write_bytes(b"something else " * 100)
    ran = shell.run("health", "--json")
    assert (ran.code, ran.json["store"]["state"]) == (1, "failing")
    assert str(shell.store) in ran.json["problems"][0]


def test_health_finds_a_model_that_is_damaged_and_one_that_is_whole(shell: Filled) -> None:
    folder = shell.folder / "model"
    folder.mkdir()
    facts = {}
    for name in (GRAPH, TOKENIZER):
        (folder / name).write_bytes(name.encode())
        facts[name] = FileFacts.of(folder / name)
    (folder / MANIFEST).write_text(Manifest(1, "some/model", 384, "sha256:0", {}, facts).as_json(), "utf-8")
    variables = {"PULSE_KG_EMBEDDER": "minilm", "PULSE_KG_MODEL_DIR": str(folder)}
    assert Shell(folder).run("health", "--json", **variables).json["embedder"]["files"] == "SHA-256 as built"
    (folder / GRAPH).write_bytes(GRAPH.upper().encode())
    ran = shell.run("health", "--json", **variables)
    assert (ran.code, ran.json["embedder"]) == (1, {"state": "damaged"})
    assert f"{GRAPH} is not as it was built" in ran.json["problems"][0]


def test_health_does_not_bind_an_empty_store_to_a_model(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.done("boards", "create", "web")
    before = shell.store.read_bytes()
    assert shell.done("health")["status"] == "ok"
    assert shell.store.read_bytes() == before


# ------------------------------------------------------------------------------------------------------------- ingest


def test_ingest_needs_a_board_and_a_file_that_is_there(shell: Filled) -> None:
    file = shell.folder / "empty.jsonl"
    file.write_bytes(b"")
    assert shell.run("ingest", str(file)).code == 2
    assert shell.run("ingest", str(shell.folder / "missing"), "--board", "web").code == 2
