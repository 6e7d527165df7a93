"""The local servers' start, stop and state, with small programs in their place; the real ones are in tests/integration."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pulse_kg.cli.stack_checks import HOST, check_gremlin, check_ministack, check_opensearch, port_is_free
from pulse_kg.cli.stack_fetch import Bundle, Tools, check_jars
from pulse_kg.cli.stack_places import Places, StackError, write_atomically
from pulse_kg.cli.stack_process import Detached, Identity, Record, identify, identify_by_ps, memory_bytes, stop
from pulse_kg.cli.stack_progress import Lines
from pulse_kg.cli.stack_run import Stack, State
from pulse_kg.cli.stack_servers import Launch, Server, local_servers
from pulse_kg.domain.model import Edge, Node
from pulse_kg.domain.schema import NODE_TYPES, REL_TYPES
from tests.support.cli import Shell

ROOT = Path(__file__).parents[2]
NAMES = ("ministack", "janusgraph", "opensearch")
ANSWERS = """
import socket, sys
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listening.accept()
    connection.sendall(b"ok")
    connection.close()
"""
FAILS = "import sys; print('no room for the data'); sys.exit(3)"
SILENT = "import time; time.sleep(60)"
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid, flush=True)
time.sleep(60)
"""


def free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def answers_ok(port: int) -> str | None:
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            return None if connection.recv(2) == b"ok" else "silence"
    except OSError as error:
        return type(error).__name__


def started(code: str, folder: Path, port: int = 0) -> tuple[Detached, Record]:
    process = Detached([sys.executable, "-c", code, str(port)], {}, folder / "log")
    return process, process.record(port)


def eventually(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


class World:
    """A stack of three small programs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.places = Places(folder / "checkout", folder / "home")
        self.codes = dict.fromkeys(NAMES, ANSWERS)
        self.tools = Tools(sys.executable, None, None)
        self.servers = tuple(self.server(name) for name in NAMES)
        self.notes: list[str] = []

    def server(self, name: str) -> Server:
        bundle = Bundle(self.places.fetched / name, [], lambda tell: None, "nothing")
        bundle.fetch(lambda text: None)

        def launch(port: int) -> Launch:
            self.places.data(name).mkdir(parents=True, exist_ok=True)
            return Launch([sys.executable, "-c", self.codes[name], str(port)], {})

        return Server(name, name.title(), f"{name}-port", free_port(), bundle, launch, answers_ok, 20.0, 10.0, uses_java=False)

    def up(self, **ports: int) -> dict[str, State]:
        states = Stack(self.places, self.tools, self.servers).up(ports, Lines({n: n for n in NAMES}), self.notes.append)
        return {state.server.name: state for state in states}

    def refusal(self, **ports: int) -> str:
        with pytest.raises(StackError) as caught:
            self.up(**ports)
        return caught.value.message

    def down(self, *, wipe: bool = False) -> list[str]:
        progress = Lines({n: n for n in NAMES})
        return Stack(self.places, self.tools, self.servers).down(wipe=wipe, progress=progress, note=self.notes.append)

    def status(self) -> dict[str, str | None]:
        return {s.server.name: s.trouble for s in Stack(self.places, self.tools, self.servers).status()}

    def pid(self, name: str) -> int:
        record = Record.read(self.places.record(name))
        assert record is not None
        return record.pid


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.down()


# ------------------------------------------------------------------------------------------------------- processes


def test_a_process_is_known_by_its_start_and_its_command_line() -> None:
    mine = identify(os.getpid())
    assert mine is not None
    assert mine == identify(os.getpid())
    assert mine.command
    assert identify(2**22 + 1) is None
    assert (memory_bytes(os.getpid()) or 0) > 1_000_000


def test_without_proc_the_same_is_asked_of_ps() -> None:
    mine = identify_by_ps(os.getpid())
    if mine is None:
        pytest.skip("there is no ps here")
    assert mine == identify_by_ps(os.getpid())
    assert identify_by_ps(2**22 + 1) is None


def test_a_process_that_ended_does_not_run_even_before_its_parent_took_notice() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        eventually(lambda: identify(child.pid) is None)


def test_another_process_that_got_the_number_is_left_alone(tmp_path: Path) -> None:
    process, record = started(SILENT, tmp_path)
    for other in (replace(record, began="earlier"), replace(record, command="java -cp something")):
        assert not other.runs
        assert stop(other, grace_seconds=0.1)
        assert process.exit_code is None
    assert stop(record, grace_seconds=10)
    assert process.exit_code == -signal.SIGTERM


def test_what_does_not_end_when_asked_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    process, record = started(STUBBORN, tmp_path)
    eventually(lambda: (tmp_path / "log").read_text().endswith("\n"))
    child = int((tmp_path / "log").read_text())
    assert stop(record, grace_seconds=0.2)
    assert process.exit_code == -signal.SIGKILL
    eventually(lambda: identify(child) is None)


def test_a_process_that_is_ending_still_runs(tmp_path: Path) -> None:
    process, record = started(SILENT, tmp_path)
    assert replace(record, command="").runs is False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pulse_kg.cli.stack_process.identify", lambda pid: Identity(record.began, ""))
        assert record.runs
        assert not replace(record, began="earlier").runs
    assert stop(record, grace_seconds=10)
    assert process.exit_code == -signal.SIGTERM


def test_the_log_of_the_run_before_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "some.log"
    for text in ("first", "second"):
        process = Detached([sys.executable, "-c", f"print({text!r})"], {}, log)
        eventually(lambda process=process: process.exit_code is not None)  # type: ignore[misc]
    assert log.read_text() == "second\n"
    assert (tmp_path / "some.previous.log").read_text() == "first\n"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"pid": "x"}', "12"])
def test_a_damaged_record_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    assert Record.read(tmp_path / "r.json") is None


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    for text in ("one", "two"):
        write_atomically(tmp_path / "deep" / "file", text)
    assert [(p.name, p.read_text()) for p in (tmp_path / "deep").iterdir()] == [("file", "two")]


# ----------------------------------------------------------------------------------------------------- the stack


def test_up_starts_everything_once_and_down_stops_it(world: World) -> None:
    first = world.up()
    assert world.status() == dict.fromkeys(NAMES)
    pids = {name: world.pid(name) for name in NAMES}
    again = world.up()
    assert {name: world.pid(name) for name in NAMES} == pids
    assert all(state.seconds is not None for state in first.values())
    assert all(state.seconds is None for state in again.values())
    assert sorted(world.down()) == sorted(NAMES)
    assert world.down() == []
    assert set(world.status().values()) == {"not running"}
    assert all(identify(pid) is None for pid in pids.values())


def test_the_addresses_are_there_while_the_servers_are(world: World) -> None:
    world.up()
    kept = dict(line.split("=", 1) for line in world.places.env_file.read_text().splitlines() if not line.startswith("#"))
    ports = {server.name: server.port for server in world.servers}
    assert kept["AWS_ENDPOINT_URL"] == f"http://127.0.0.1:{ports['ministack']}"
    assert kept["PULSE_KG_GREMLIN_URL"] == f"ws://127.0.0.1:{ports['janusgraph']}/gremlin"
    assert kept["PULSE_KG_OPENSEARCH_URL"] == f"http://127.0.0.1:{ports['opensearch']}"
    assert {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "PULSE_KG_TABLE_PREFIX"} <= kept.keys()
    world.down()
    assert not world.places.env_file.exists()


def test_what_was_killed_comes_back_where_it_was(world: World) -> None:
    world.servers = tuple(replace(s, after_kill="its state is old") if s.name == "ministack" else s for s in world.servers)
    port = free_port()
    world.up(ministack=port)
    pids = {name: world.pid(name) for name in NAMES}
    os.kill(pids["ministack"], signal.SIGKILL)
    eventually(lambda: world.status()["ministack"] == "not running; it ended by itself or was killed")
    states = world.up()
    assert states["ministack"].port == port
    assert states["ministack"].seconds is not None
    assert [world.pid(n) == pids[n] for n in NAMES] == [False, True, True]
    assert world.notes == ["Ministack: its state is old"]


def test_a_record_whose_number_went_to_another_program_hinders_neither_up_nor_down(world: World) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", SILENT])
    try:
        Record(bystander.pid, world.servers[0].port, 0.0, "once", "python -m ministack").write(world.places.record("ministack"))
        assert world.down() == []
        Record(bystander.pid, world.servers[0].port, 0.0, "once", "python -m ministack").write(world.places.record("ministack"))
        world.up()
        assert world.pid("ministack") != bystander.pid
        world.down()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_port_in_use_is_told_before_anything_starts(world: World) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        assert not port_is_free(port)
        told = world.refusal(janusgraph=port, opensearch=port)
    assert f"Port {port}, for Janusgraph, is in use by another program" in told
    assert "--janusgraph-port" in told
    assert f"Opensearch can't have port {port}" in told
    assert not world.places.env_file.exists()
    assert set(world.status().values()) == {"not running"}


def test_what_runs_is_not_moved_to_another_port(world: World) -> None:
    world.up()
    told = world.refusal(ministack=free_port())
    assert f"runs already, on port {world.servers[0].port}" in told
    assert f"pulse-kg down --dir {world.places.home}" in told


def test_a_server_that_fails_shows_its_log_and_takes_no_other_with_it(world: World) -> None:
    world.codes["opensearch"] = FAILS
    told = world.refusal()
    assert "Opensearch is not up: it ended with exit code 3" in told
    assert str(world.places.log("opensearch")) in told
    assert "no room for the data" in told
    assert "Ministack and Janusgraph go on running" in told
    pids = {name: world.pid(name) for name in NAMES[:2]}
    world.codes["opensearch"] = ANSWERS
    world.up()
    assert {name: world.pid(name) for name in NAMES[:2]} == pids
    assert world.status() == dict.fromkeys(NAMES)


def test_a_server_that_never_answers_is_told_and_can_be_stopped(world: World) -> None:
    world.codes["janusgraph"] = SILENT
    world.servers = tuple(replace(server, start_seconds=1.0) for server in world.servers)
    told = world.refusal()
    assert f"it runs (pid {world.pid('janusgraph')}) but does not answer after 1 s: ConnectionRefusedError" in told
    assert world.status()["janusgraph"] == "ConnectionRefusedError"
    assert "janusgraph" in world.down()


def test_data_outlive_down_and_end_with_wipe(world: World) -> None:
    world.up()
    kept = world.places.data("janusgraph") / "kept"
    kept.write_text("kept")
    world.down()
    assert kept.exists()
    world.down(wipe=True)
    assert not world.places.all_data.exists()
    assert world.places.fetched.exists()


def test_two_at_once_start_everything_once(world: World) -> None:
    results: list[dict[str, State]] = []
    threads = [threading.Thread(target=lambda: results.append(world.up())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = results
    assert [first[n].record and first[n].record.pid for n in NAMES] == [second[n].record and second[n].record.pid for n in NAMES]  # type: ignore[union-attr]
    assert sum(first[n].seconds is not None for n in NAMES) + sum(second[n].seconds is not None for n in NAMES) == len(NAMES)


# ------------------------------------------------------------------------------------------------- fetching, tools


def is_complete(bundle: Bundle) -> bool:
    return bundle.complete


def test_a_bundle_is_fetched_once_and_again_when_its_sources_change(tmp_path: Path) -> None:
    source, made = tmp_path / "pom.xml", []
    source.write_text("1")
    bundle = Bundle(tmp_path / "jars", [source], lambda tell: made.append((tmp_path / "jars").exists()), "1 jar")
    assert not is_complete(bundle)
    bundle.fetch(lambda text: None)
    assert is_complete(bundle)
    source.write_text("2")
    assert not is_complete(bundle)
    (tmp_path / "jars" / "old.jar").touch()
    bundle.fetch(lambda text: None)
    assert is_complete(bundle)
    assert not (tmp_path / "jars" / "old.jar").exists()
    assert made == [True, True]
    assert not is_complete(replace(bundle, program=tmp_path / "python"))


def test_an_interrupted_fetch_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    def fails(tell: Callable[[str], None]) -> None:
        raise StackError("no network")

    bundle = Bundle(tmp_path / "jars", [], fails, "1 jar")
    with pytest.raises(StackError):
        bundle.fetch(lambda text: None)
    assert not is_complete(bundle)


def test_jars_must_be_those_of_the_list(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"good").hexdigest()
    (tmp_path / "list").write_text(f"{digest}  a.jar\n")
    (tmp_path / "a.jar").write_bytes(b"good")
    check_jars(tmp_path, tmp_path / "list")
    (tmp_path / "b.jar").write_bytes(b"more")
    with pytest.raises(StackError, match=r"b\.jar"):
        check_jars(tmp_path, tmp_path / "list")
    (tmp_path / "b.jar").unlink()
    (tmp_path / "a.jar").write_bytes(b"bad")
    with pytest.raises(StackError, match=r"a\.jar"):
        check_jars(tmp_path, tmp_path / "list")


def program(folder: Path, name: str, says: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    (folder / name).chmod(0o755)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert [m.split(" (")[0] for m in Tools(None, None, None).missing(to_fetch=True)] == ["Java 17 or later", "a JDK", "Maven"]
    program(tmp_path / "old", "java", 'openjdk version "1.8.0_402"')
    program(tmp_path / "jdk" / "bin", "java", 'openjdk version "21.0.2" 2024-01-16')
    assert "is Java 8" in Tools.find({"PATH": str(tmp_path / "old")}).missing(to_fetch=False)[0]
    by_home = {"PATH": str(tmp_path / "old"), "JAVA_HOME": str(tmp_path / "jdk")}
    assert Tools.find(by_home).missing(to_fetch=False) == []


def test_without_java_nothing_starts_and_the_embedded_store_is_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    ran = shell.bare("up", "--dir", str(tmp_path / "stack"), PATH=str(tmp_path), JAVA_HOME="")
    assert ran.code == 1
    assert "Java 17 or later" in ran.err
    assert "only the embedded store runs" in ran.err
    assert shell.bare("up", "--dir", str(tmp_path / "stack"), "--json", PATH=str(tmp_path), JAVA_HOME="").error["retryable"] is False


def test_status_and_down_where_nothing_runs(tmp_path: Path) -> None:
    shell, folder = Shell(tmp_path), str(tmp_path / "stack")
    ran = shell.bare("status", "--dir", folder, "--json")
    assert (ran.code, ran.json["status"], ran.json["env_file"]) == (1, "down", None)
    assert [(s["name"], s["port"], s["healthy"]) for s in ran.json["servers"]] == list(
        zip(NAMES, (4566, 8182, 9200), (False,) * 3, strict=True)
    )
    assert f"pulse-kg up --dir {folder}" in shell.bare("status", "--dir", folder).out
    assert shell.bare("down", "--dir", folder, "--json").json == {"status": "down", "dir": folder, "stopped": [], "wiped": False}


def test_a_folder_that_the_servers_can_t_use_is_refused(tmp_path: Path) -> None:
    ran = Shell(tmp_path).bare("status", "--dir", str(tmp_path / "a,b"))
    assert ran.code == 1
    assert "its name has ','" in ran.err


# -------------------------------------------------------------------------------------------------- infra/local


def test_every_server_listens_on_this_machine_only(tmp_path: Path) -> None:
    places = Places(ROOT, tmp_path / "with space")
    launches = {s.name: s.launch(12345) for s in local_servers(places, Tools("java", None, None), {"PATH": "/bin", "AWS_PROFILE": "prod"})}
    aws = launches["ministack"].environment
    assert (aws["BIND_HOST"], aws["GATEWAY_PORT"], aws["IOT_MTLS_ENABLED"], aws["PERSIST_STATE"]) == ("127.0.0.1", "12345", "0", "1")
    yaml = Path(launches["janusgraph"].command[-1]).read_text()
    assert "\nhost: 127.0.0.1\nport: 12345\n" in yaml
    assert "\ngremlinPool: 1\n" in yaml
    assert "\nevaluationTimeout: 0\n" in yaml
    assert f'graph: "{places.run("janusgraph")}/store.properties"' in yaml
    store = places.run("janusgraph") / "store.properties"
    assert f"storage.directory={places.data('janusgraph')}\n" in store.read_text()
    assert "isolation-level=REPEATABLE_READ" in store.read_text()
    assert launches["opensearch"].command[-1] == "12345"
    assert "network.host: 127.0.0.1" in (ROOT / "infra/local/opensearch/config/opensearch.yml").read_text()
    assert all("AWS_PROFILE" not in launch.environment for launch in launches.values())


def test_the_graph_s_schema_declares_what_the_domain_has() -> None:
    schema = json.loads((ROOT / "infra/local/janusgraph/schema.json").read_text())
    assert tuple(schema["vertex_labels"]) == NODE_TYPES
    assert tuple(schema["edge_labels"]) == REL_TYPES
    keys: dict[str, str] = schema["keys"]
    assert {f.name for f in fields(Node)} <= keys.keys()
    assert {f.name for f in fields(Edge)} - {"src", "dst", "rel_type"} <= keys.keys()
    assert not keys.keys() & {"id", "label", "key", "vertex", "element", "edge", "property", *REL_TYPES}
    assert set(keys.values()) <= {"string", "long", "double", "bool"}
    assert all(set(index["keys"]) <= keys.keys() for index in schema["indexes"].values())
    kinds = {"int": "long", "int | None": "long", "Instant": "long", "Instant | None": "long", "float": "double", "bool": "bool"}
    assert {f.name: keys[f.name] for f in fields(Node)} == {f.name: kinds.get(str(f.type), "string") for f in fields(Node)}


# -------------------------------------------------------------------------------------------------------- checks


@contextmanager
def http(status: int, body: object) -> Iterator[int]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *arguments: object) -> None: ...

    with HTTPServer((HOST, 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_check_says_what_is_wrong() -> None:
    assert check_opensearch(free_port()) == "nothing listens on its port"
    with http(200, {"status": "green"}) as port:
        assert check_opensearch(port) is None
        assert check_ministack(port) == "its health page answers 200"
        assert check_gremlin(port) == "no proper answer (HTTPException)"
    with http(408, {"status": "yellow"}) as port:
        assert "yellow" in (check_opensearch(port) or "")
    with http(200, {"services": {"dynamodb": "available", "sqs": "available"}}) as port:
        assert check_ministack(port) is None
        assert check_opensearch(port) == "its health page says nothing of the cluster"
    with http(200, {"services": {"sqs": "available"}}) as port:
        assert check_ministack(port) == "it does not offer dynamodb"
