"""The program itself: exit codes, what goes to which stream, `--json` everywhere, help by example."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pulse_kg import __version__
from pulse_kg.adapters.sqlite.errors import translate
from pulse_kg.cli.app import App
from pulse_kg.cli.commands import benchmark_root
from pulse_kg.cli.main import cli
from tests.support.cli import Shell
from tests.support.world import opened

# Every command, with arguments that are right.
COMMANDS = [
    ("boards", "list"),
    ("boards", "show", "web"),
    ("boards", "set", "web", "strict_attributes=true"),
    ("boards", "schema", "web", "add", "Decision", "owner", "text"),
    ("boards", "erase", "web", "--yes"),
    ("agents", "create", "ann", "--preset", "QA", "--board", "web"),
    ("agents", "list"),
    ("agents", "show", "ann"),
    ("agents", "grant", "ann", "--board", "web"),
    ("agents", "deny", "ann", "--board", "web"),
    ("agents", "flags", "ann", "+kg.power.cypher"),
    ("agents", "revoke", "ann"),
    ("keys", "rotate", "ann"),
    ("keys", "revoke", "ann"),
    ("sessions", "list"),
    ("sessions", "abort", "kgs_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ("nodes", "show", "dec_0123456789abcdef"),
    ("nodes", "curate", "dec_0123456789abcdef", "--reason", "agreed"),
    ("nodes", "revoke", "dec_0123456789abcdef", "--reason", "wrong"),
    ("audit", "web"),
    ("verify",),
    ("export", "web", "--format", "jsonl", "--output", "/dev/null"),
    ("call", "begin_consolidation", "{}"),
    ("serve", "--port", "0"),
]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        return [path]
    context = click.Context(command, obj=App({}))
    found: list[tuple[str, ...]] = []
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        found += leaves(child, (*path, name))
    return found


ALL = leaves(cli)
HELPED = [path for path in ALL if path != ("bench",)]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_missing_store_is_refused_with_how_to_make_it(shell: Shell, command: tuple[str, ...]) -> None:
    ran = shell.run(*command)
    assert ran.code == 1
    assert f"There is no store at {shell.store}." in ran.err + ran.out
    assert "pulse-kg boards create" in ran.err + ran.out
    assert not shell.store.exists()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_refusal_with_json_is_one_envelope_on_standard_output(shell: Shell, command: tuple[str, ...]) -> None:
    ran = shell.run(*command, "--json")
    assert ran.code == 1
    assert ran.error["code"] == "store_unavailable"
    assert ran.error["retryable"] is False
    assert ran.err == ""


@pytest.mark.parametrize("path", HELPED, ids=" ".join)
def test_every_command_teaches_by_example(shell: Shell, path: tuple[str, ...]) -> None:
    words = [*path, "--help"] if path[:2] != ("boards", "schema") else ["boards", "schema", "web", "add", "--help"]
    ran = shell.bare(*words)
    assert ran.code == 0
    assert "Examples:" in ran.out
    assert f"  pulse-kg {path[0]}" in ran.out
    assert "--json" in ran.out


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = "import sys; from pulse_kg.cli.main import cli; cli.main(['--help'])"
    watched = f"import atexit, sys; atexit.register(lambda: print(sorted(m for m in sys.modules if m.startswith('pulse_kg')))); {code}"
    shown = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True, check=True).stdout
    assert "demo" in shown
    assert "pulse_kg.bootstrap" not in shown
    assert "pulse_kg.cli.agents" not in shown


def test_json_answers_import_neither_rich_nor_a_server_nor_the_model(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    arguments = ["--store", f"sqlite:{shell.store}", "boards", "list", "--json"]
    code = "import json, sys; from pulse_kg.cli.main import cli\n"
    code += f"try: cli.main({arguments!r})\nexcept SystemExit: json.dump(list(sys.modules), sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"rich", "starlette", "uvicorn", "onnxruntime", "tokenizers", "numpy", "pydantic"}
    assert json.loads(ran.stdout)["boards"][0]["board_id"] == "web"
    assert not heavy & set(json.loads(ran.stderr))


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("boards", "nonsense"),
        ("boards", "create"),
        ("agents", "create", "ann"),
        ("agents", "flags", "ann"),
        ("agents", "flags", "ann", "kg.power.cypher"),
        ("agents", "grant", "ann"),
        ("boards", "set", "web", "strict_attributes"),
        ("audit", "web", "--seq", "0"),
        ("audit", "web", "--seq", "1", "--node", "dec_1"),
        ("nodes", "revoke", "dec_1"),
        ("export", "web"),
        ("export", "web", "--format", "csv"),
        ("serve", "--port", "70000"),
        ("serve", "--stdio", "--port", "1"),
        ("call",),
        ("call", "schema_info", "{}", "--key-file", "/nonexistent"),
        ("rebuild", "--from", "sqlite:a", "--to", "sqlite:./a"),
        ("rebuild", "--from", "a", "--to", "sqlite:b"),
        ("--store", "postgres:x", "boards", "list"),
        ("boards", "list", "--colour"),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2_and_writes_no_answer(shell: Shell, arguments: tuple[str, ...]) -> None:
    ran = shell.run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("boards", "create", "--json"),
        ("nonsense", "--json"),
        ("export", "web", "--format", "jsonl", "--json"),
        ("serve", "--stdio", "--json"),
        ("call", "schema_info", "{not json"),
        ("call", "schema_info", "NaN"),
    ],
    ids=" ".join,
)
def test_wrong_usage_with_json_is_an_envelope_too(shell: Shell, arguments: tuple[str, ...]) -> None:
    ran = shell.run(*arguments)
    assert ran.code == 2
    assert (ran.error["code"], ran.error["status"]) == ("invalid_request", 400)
    assert ran.err == ""


def test_json_may_stand_before_the_command_and_between(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    after, before, between = (
        shell.run(*words).json for words in (("boards", "list", "--json"), ("--json", "boards", "list"), ("boards", "--json", "list"))
    )
    assert after == before == between


def test_the_option_wins_over_the_variable_and_the_variable_over_the_default(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.folder)
    assert shell.bare("boards", "create", "first", "--json").code == 0
    assert (shell.folder / "pulse-kg.db").exists()
    shell.bare("boards", "create", "second", PULSE_KG_STORE="sqlite:second.db")
    assert (shell.folder / "second.db").exists()
    shell.bare("--store", "sqlite:third.db", "boards", "create", "third", PULSE_KG_STORE="sqlite:second.db")
    assert (shell.folder / "third.db").exists()
    listed = shell.bare("boards", "list", "--json", PULSE_KG_STORE="sqlite:second.db").json
    assert [b["board_id"] for b in listed["boards"]] == ["second"]


def test_a_bad_setting_stops_the_start_with_its_name(shell: Shell) -> None:
    ran = shell.run("boards", "list", PULSE_KG_LOG_LEVEL="LOUD", PULSE_KG_SESSION_TTL_SECONDS="0")
    assert ran.code == 1
    assert "PULSE_KG_LOG_LEVEL" in ran.err
    assert "PULSE_KG_SESSION_TTL_SECONDS" in ran.err


def test_a_bad_setting_with_json_lists_all_problems(shell: Shell) -> None:
    ran = shell.run("boards", "list", "--json", PULSE_KG_LOG_LEVEL="LOUD", PULSE_KG_NONSENSE="1")
    assert ran.code == 1
    assert [p["path"] for p in ran.error["details"]["problems"]] == ["PULSE_KG_LOG_LEVEL", "PULSE_KG_NONSENSE"]


def test_aws_without_addresses_names_the_variables_and_what_sets_them(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse_kg.endpoints.LOCAL_FILE", Path("nowhere") / "stack.env")
    ran = shell.bare("--store", "aws", "boards", "list", PULSE_KG_GREMLIN_URL="ws://127.0.0.1:9/gremlin")
    assert ran.code == 1
    assert "PULSE_KG_OPENSEARCH_URL and PULSE_KG_TABLE_PREFIX" in ran.err
    assert "pulse-kg up" in ran.err


def test_a_failure_that_nobody_foresaw_is_told_safely(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.done("boards", "create", "web")

    def broken(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr("pulse_kg.bootstrap.open_container", broken)
    told, enveloped = shell.run("boards", "list"), shell.run("boards", "list", "--json")
    assert told.code == enveloped.code == 1
    assert "/secret" not in told.out + told.err + enveloped.out + enveloped.err
    assert enveloped.error["code"] == "internal_error"
    assert enveloped.error["correlation_id"]


def test_the_traceback_goes_to_standard_error_at_debug_only(shell: Shell) -> None:
    code = (
        "import pulse_kg.bootstrap\n"
        "def broken(*a, **k): raise RuntimeError('what happened')\n"
        "pulse_kg.bootstrap.open_container = broken\n"
        "from pulse_kg.cli.main import cli\n"
        f"cli.main(['--store', 'sqlite:{shell.store}', 'boards', 'create', 'web', '--json'])"
    )
    run = [sys.executable, "-c", code]
    quiet = subprocess.run(run, capture_output=True, text=True, check=False, env={"PULSE_KG_LOG_LEVEL": "ERROR"})
    loud = subprocess.run(run, capture_output=True, text=True, check=False, env={"PULSE_KG_LOG_LEVEL": "DEBUG"})
    assert quiet.returncode == loud.returncode == 1
    assert "what happened" not in quiet.stderr
    assert "what happened" in loud.stderr
    assert json.loads(loud.stdout)["error"]["correlation_id"] in loud.stderr


def test_the_version_is_told(shell: Shell) -> None:
    assert shell.bare("--version").out == f"pulse-kg {__version__}\n"


def test_no_colour_codes_go_into_a_pipe(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    run = [sys.executable, "-m", "pulse_kg.cli.main", "--store", f"sqlite:{shell.store}", "health"]
    ran = subprocess.run(run, capture_output=True, check=False, env={"FORCE_COLOR": "1", "PULSE_KG_EMBEDDER": "hashing"})
    assert b"\x1b" not in ran.stdout + ran.stderr
    assert ran.stdout.isascii()


def test_the_store_may_be_named_after_the_command_too(shell: Shell) -> None:
    shell.done("boards", "create", "web")
    named = ("--store", f"sqlite:{shell.store}")
    before, after, between = (
        shell.bare(*words).json
        for words in ((*named, "boards", "list", "--json"), ("boards", "list", "--json", *named), ("boards", *named, "list", "--json"))
    )
    assert before == after == between
    assert shell.bare("boards", "list", "--store", "postgres:x").code == 2


def test_a_relative_path_is_told_whole(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.folder)
    assert f"There is no store at {shell.folder}/pulse-kg.db." in shell.bare("boards", "list").err
    assert f"in the new store {shell.folder}/pulse-kg.db." in shell.bare("boards", "create", "web").out
    assert "new store" not in shell.bare("boards", "create", "api").out


def test_a_folder_is_no_store(shell: Shell) -> None:
    ran = shell.bare("--store", f"sqlite:{shell.folder}", "boards", "list")
    assert ran.code == 1
    assert f"{shell.folder} is a folder, and a store is a file" in ran.err


def test_a_store_that_may_not_be_read_is_told_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.done("boards", "create", "web")
    monkeypatch.setattr("pulse_kg.cli.app.os.access", lambda *_: False)  # root may read everything
    ran = shell.run("boards", "list", "--json")
    assert ran.error["message"].startswith(f"You may not read the store {shell.store}")
    assert ran.error["retryable"] is False


def test_a_folder_that_may_not_be_written_gets_no_store(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse_kg.cli.app.os.access", lambda *_: False)
    ran = shell.run("boards", "create", "web")
    assert ran.code == 1
    assert f"You may not make a file in the folder {shell.folder}" in ran.err


def test_a_store_behind_a_closed_folder_is_told_as_that(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.stat

    def closed(path: Path, **options: bool) -> object:
        if path == shell.store:
            raise PermissionError(13, "Permission denied")
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", closed)
    for command in (("boards", "list"), ("boards", "create", "web")):
        assert f"The store {shell.store} can't be reached: Permission denied." in shell.run(*command).err


def test_a_file_that_is_no_store_is_named_here_and_not_in_a_tool_s_envelope(shell: Shell) -> None:
    shell.store.write_bytes(b"something else " * 100)
    told, enveloped = shell.run("boards", "list"), shell.run("boards", "list", "--json")
    assert f"(Store: {shell.store})" in told.err
    assert f"(Store: {shell.store})" in enveloped.error["message"]
    with opened(shell.folder / "other.db") as world:
        world.board("web")
        caller = world.host.authenticate(world.agent("ann", boards=("web",)).api_key)
        world.container.close()
        outcome = world.host.call(caller, "abort_consolidation", {"session_id": "kgs_01ARZ3NDEKTSV4RRFFQ69G5FAV"}, correlation_id="c")
    assert (outcome.status, outcome.body["error"]["code"]) == (503, "store_unavailable")
    assert str(shell.folder) not in json.dumps(outcome.body)


def test_a_store_that_may_not_be_written_is_not_worth_another_try() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.Error) as read_only:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    refused = translate(read_only.value)
    assert refused is not None
    assert (refused.code, refused.retryable) == ("store_unavailable", False)
    assert "may not be written" in refused.message


@pytest.mark.parametrize(
    "words",
    [("boards", "list"), ("boards", "list", "--json"), ("--help",), ("export", "web", "--format", "jsonl"), ("nonsense", "--json")],
    ids=" ".join,
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_answer_that_can_not_be_written_is_one_message(shell: Shell, words: tuple[str, ...]) -> None:
    shell.done("boards", "create", "web")
    command = [sys.executable, "-m", "pulse_kg.cli.main", "--store", f"sqlite:{shell.store}", *words]
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode in (1, 2)
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith("Error: ")
    assert "tandard output can't be written: No space left on device" in ran.stderr


def test_a_closed_standard_output_is_told(shell: Shell) -> None:
    command = f"exec {sys.executable} -m pulse_kg.cli.main --store sqlite:{shell.store} boards create web >&-"
    ran = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr.splitlines()) == (
        1,
        ["Error: standard output is closed. Send it to /dev/null where no answer is wanted."],
    )
    assert not shell.store.exists()


def test_the_benchmark_is_listed_in_a_checkout_alone(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse_kg.cli.main.benchmark_root", lambda: shell.folder)
    assert "\n  bench " in shell.bare("--help").out
    monkeypatch.setattr("pulse_kg.cli.main.benchmark_root", lambda: None)
    assert "bench" not in shell.bare("--help").out


def test_outside_a_checkout_there_is_no_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse_kg.cli.commands.__file__", "/usr/lib/python3/site-packages/pulse_kg/cli/commands.py")
    assert benchmark_root() is None
    monkeypatch.setattr("pulse_kg.cli.commands.__file__", "/c.py")
    assert benchmark_root() is None
