"""Boards, agents and keys from the command line: what is written for programs, and what for people."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pulse_kg.cli.agents import PRESETS_MEANING
from pulse_kg.domain.permissions import FLAGS, PRESETS, effective
from tests.support.cli import Shell

INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
KEY = re.compile(r"pk_[a-z2-7]{8}_[a-z2-7]{52}")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    made.done("boards", "create", "web", "--name", "Web team")
    made.done("boards", "create", "api")
    return made


def begin(shell: Shell, key: str, board: str = "web", source_id: str = "s1") -> int:
    arguments = f'{{"board_id": "{board}", "source_type": "spec", "source_id": "{source_id}", "source_version": 1}}'
    ran = shell.run("call", "begin_consolidation", arguments, PULSE_KG_API_KEY=key)
    return 200 if ran.code == 0 else int(ran.error["status"])


# ------------------------------------------------------------------------------------------------------------- boards


def test_create_makes_the_store_and_the_board(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    made = shell.done("boards", "create", "web", "--name", "Web team")
    assert (made["board_id"], made["name"], made["commit_seq"]) == ("web", "Web team", 0)
    assert INSTANT.fullmatch(made["created_at"])
    assert shell.store.exists()


def test_an_id_that_is_none_makes_no_store_either(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell.run("boards", "create", "Not-a-board").code == 1
    assert not shell.store.exists()


def test_a_store_in_no_folder_is_refused(tmp_path: Path) -> None:
    ran = Shell(tmp_path / "missing").run("boards", "create", "web")
    assert ran.code == 1
    assert "no folder" in ran.err


def test_create_refuses_a_board_that_is_there(shell: Shell) -> None:
    ran = shell.run("boards", "create", "web", "--json")
    assert ran.code == 1
    assert (ran.error["code"], ran.error["details"]["problems"][0]["path"]) == ("invalid_argument", "board")


def test_list_has_every_board_by_id(shell: Shell) -> None:
    assert [b["board_id"] for b in shell.done("boards", "list")["boards"]] == ["api", "web"]
    lines = shell.run("boards", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["board", "api", "web"]


def test_show_has_counts_last_commit_settings_and_added_attributes(shell: Shell) -> None:
    shell.done("boards", "schema", "web", "add", "Decision", "owner", "text")
    shown = shell.done("boards", "show", "web")
    assert shown["counts"] == {"nodes": 0, "live_nodes": 0, "edges": 0, "open_sessions": 0}
    assert shown["commit_seq"] == 0
    assert shown["settings"] == {"strict_attributes": False}
    assert shown["added_attributes"] == {"Decision": {"owner": "text"}}
    text = shell.run("boards", "show", "web").out
    assert "strict_attributes  false" in text
    assert re.search(r"Decision +owner +text", text)


def test_show_of_a_misspelt_board_names_the_nearest(shell: Shell) -> None:
    ran = shell.run("boards", "show", "wbe")
    assert (ran.code, ran.out) == (1, "")
    assert "nearest: 'web'" in ran.err


def test_set_changes_a_setting_and_answers_all(shell: Shell) -> None:
    assert shell.done("boards", "set", "web", "strict_attributes=true") == {"board_id": "web", "settings": {"strict_attributes": True}}
    assert shell.done("boards", "show", "web")["settings"]["strict_attributes"] is True
    assert shell.done("boards", "show", "api")["settings"]["strict_attributes"] is False


def test_set_refuses_unknown_settings_and_names_the_known(shell: Shell) -> None:
    ran = shell.run("boards", "set", "web", "strict=true")
    assert ran.code == 1
    assert "strict_attributes" in ran.err


def test_schema_add_widens_a_type_of_the_board(shell: Shell) -> None:
    added = shell.done("boards", "schema", "web", "add", "Bug", "estimate", "number")
    assert added == {
        "board_id": "web",
        "type": "Bug",
        "key": "estimate",
        "kind": "number",
        "added_attributes": {"estimate": "number"},
    }
    assert shell.run("boards", "schema", "web", "add", "Bug", "estimate", "number").code == 1


def test_erase_without_yes_says_what_it_would_remove_and_removes_nothing(shell: Shell) -> None:
    ran = shell.run("boards", "erase", "web")
    assert (ran.code, ran.out) == (2, "")
    assert "0 nodes" in ran.err
    assert "--yes" in ran.err
    assert shell.done("boards", "show", "web")["board_id"] == "web"


def test_erase_removes_the_board_and_bars_its_id(shell: Shell) -> None:
    erased = shell.done("boards", "erase", "web", "--yes")
    assert erased["erased"] is True
    assert not any(erased["left"].values())
    assert erased["ages_out"] == "Not touched, and yours to remove: backups of the file, exports."
    assert [b["board_id"] for b in shell.done("boards", "list")["boards"]] == ["api"]
    assert shell.run("boards", "create", "web").code == 1
    assert shell.done("boards", "erase", "web", "--yes") == erased  # again, as after an erasure that broke off
    assert shell.run("boards", "erase", "nosuch", "--yes").code == 1


# ------------------------------------------------------------------------------------------------------------- agents


@pytest.mark.parametrize("preset", PRESETS)
def test_create_makes_an_agent_of_every_preset_and_shows_its_key_once(shell: Shell, preset: str) -> None:
    made = shell.done("agents", "create", "ann", "--preset", preset, "--board", "web", "--board", "api", "--flag", "kg.admin.tick")
    assert list(made)[:3] == ["agent_id", "name", "api_key"]
    assert re.fullmatch(r"agt_[0-9A-HJKMNP-TV-Z]{26}", made["agent_id"])
    assert (made["name"], made["preset"], made["boards"]) == ("ann", preset, ["api", "web"])
    assert set(made["flags"]) == effective(preset, ["kg.admin.tick"])
    assert KEY.fullmatch(made["api_key"])
    assert made["api_key"][12:] not in shell.run("agents", "show", "ann", "--json").out


def test_the_presets_are_told_where_one_is_chosen_and_where_it_is_missing(shell: Shell) -> None:
    assert [name for name, _ in PRESETS_MEANING] == list(PRESETS)
    shown = shell.run("agents", "create", "--help").out
    missing = shell.run("agents", "create", "ann", "--board", "web")
    assert (missing.code, missing.out) == (2, "")
    for name in PRESETS:
        assert f"\n  {name}  " in shown
        assert f"\n  {name}  " in missing.err


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_told_of_a_preset_is_what_it_may_do(preset: str) -> None:
    meaning, held = dict(PRESETS_MEANING)[preset], effective(preset)
    assert ("everything" in meaning) == (held == set(FLAGS))
    assert ("the whole of a session" in meaning) == ("kg.session.commit" in held)
    assert ("no commit" in meaning) == ("kg.session.propose" in held and "kg.session.commit" not in held)
    assert ("dead letters" in meaning) == ({"kg.admin.dead_letters", "kg.admin.reprocess"} <= held != set(FLAGS))
    assert {"kg.admin.health", "kg.query.alternatives"} <= held


def test_the_text_says_that_the_key_is_shown_once(shell: Shell) -> None:
    text = shell.run("agents", "create", "ann", "--preset", "Spec", "--board", "web").out
    assert len(KEY.findall(text)) == 1
    assert "only time" in text


def test_create_refuses_boards_that_are_not_there_with_every_problem(shell: Shell) -> None:
    ran = shell.run("agents", "create", "ann", "--preset", "Spex", "--board", "wbe", "--flag", "kg.nope", "--json")
    assert ran.code == 1
    assert [p["path"] for p in ran.error["details"]["problems"]] == ["flag", "preset", "board"]
    assert shell.done("agents", "list") == {"agents": []}


def test_the_key_opens_the_tools_on_its_boards_alone(shell: Shell) -> None:
    key = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")["api_key"]
    assert begin(shell, key) == 200
    assert begin(shell, key, "api") == 403


def test_grant_and_deny_decide_which_boards_it_uses(shell: Shell) -> None:
    key = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")["api_key"]
    granted = shell.done("agents", "grant", "ann", "--board", "api")
    assert (granted["boards"], granted["denied"]) == (["api", "web"], [])
    assert begin(shell, key, "api") == 200
    denied = shell.done("agents", "deny", "ann", "--board", "api")
    assert denied["denied"] == ["api"]
    assert begin(shell, key, "api") == 403
    assert shell.done("agents", "grant", "ann", "--board", "api")["denied"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("ann", "+kg.power.cypher", "-kg.session.commit"),
        ("ann", "-kg.session.commit", "+kg.power.cypher"),
        ("+kg.power.cypher", "ann", "-kg.session.commit"),
        ("--", "ann", "-kg.session.commit", "+kg.power.cypher"),
    ],
    ids=" ".join,
)
def test_flags_are_added_and_removed_wherever_they_stand(shell: Shell, words: tuple[str, ...]) -> None:
    shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")
    ran = shell.run("--json", "agents", "flags", *words)
    assert ran.code == 0, ran.out
    changed = ran.json
    assert (changed["added_flags"], changed["removed_flags"]) == (["kg.power.cypher"], ["kg.session.commit"])
    assert set(changed["flags"]) == effective("Spec", ["kg.power.cypher"], ["kg.session.commit"])


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_can_be_taken_away_without_being_taken_for_an_option(shell: Shell, flag: str) -> None:
    shell.done("agents", "create", "ann", "--preset", "Full Control", "--board", "web")
    assert set(shell.done("agents", "flags", "ann", f"-{flag}")["flags"]) == set(FLAGS) - {flag}


def test_a_change_is_told_in_one_sentence_before_the_facts(shell: Shell) -> None:
    shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")
    for words, sentence in (
        (("grant", "ann", "--board", "api"), "Granted the board api to ann."),
        (("grant", "ann", "--board", "api"), "ann had the board api already."),
        (("deny", "ann", "--board", "api"), "Denied the board api to ann; 'pulse-kg agents grant' lifts it."),
        (("deny", "ann", "--board", "api"), "ann was denied the board api already."),
        (("grant", "ann", "--board", "api"), "Lifted the denial of the board api, which ann may use again."),
        (("flags", "ann", "+kg.power.cypher", "-kg.session.*"), "Permissions of ann: added kg.power.cypher and took away kg.session.*."),
    ):
        told = shell.run("agents", *words).out.splitlines()
        assert told[0] == sentence
        assert re.match(r"ann +Spec", told[1])
    shell.done("agents", "create", "eve", "--preset", "QA")
    shell.done("agents", "deny", "eve", "--board", "web")
    assert "Lifted the denial of the board web and granted it to eve.\n" in shell.run("agents", "grant", "eve", "--board", "web").out


def test_an_added_flag_that_a_removal_covers_is_told(shell: Shell) -> None:
    shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")
    shell.done("agents", "flags", "ann", "-kg.session.*")
    ran = shell.run("agents", "flags", "ann", "+kg.session.begin")
    assert ran.code == 0
    assert "kg.session.begin" in ran.err


def test_list_and_show_tell_everything_but_keys(shell: Shell) -> None:
    made = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")
    shown = shell.done("agents", "show", "ann")
    assert shown.pop("keys") == [{"public_id": made["api_key"][3:11], "created_at": shown["created_at"], "revoked_at": None}]
    assert shell.done("agents", "list") == {"agents": [shown]}
    assert "ann" in shell.run("agents", "list").out
    assert made["api_key"][3:11] in shell.run("agents", "show", "ann").out


def test_a_revoked_agent_s_key_opens_nothing(shell: Shell) -> None:
    key = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")["api_key"]
    revoked = shell.done("agents", "revoke", "ann")
    assert revoked["keys_revoked"] == 1
    assert INSTANT.fullmatch(revoked["revoked_at"])
    assert begin(shell, key) == 401
    assert shell.run("keys", "rotate", "ann").code == 1


# --------------------------------------------------------------------------------------------------------------- keys


def test_rotate_gives_a_new_key_and_ends_the_old_one_at_once(shell: Shell) -> None:
    old = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")["api_key"]
    rotated = shell.done("keys", "rotate", "ann")
    assert (rotated["name"], rotated["keys_revoked"]) == ("ann", 1)
    assert begin(shell, rotated["api_key"]) == 200
    assert begin(shell, old) == 401


def test_revoked_keys_open_nothing_until_a_new_one_is_made(shell: Shell) -> None:
    old = shell.done("agents", "create", "ann", "--preset", "Spec", "--board", "web")["api_key"]
    assert shell.done("keys", "revoke", "ann")["keys_revoked"] == 1
    assert begin(shell, old) == 401
    assert begin(shell, shell.done("keys", "rotate", "ann")["api_key"]) == 200
