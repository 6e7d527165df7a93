"""The real local servers, from start to stop: Java, Maven, a package index and some minutes are needed, so they run only when asked for.

PULSE_TEST_LOCAL_STACK=1 .venv/bin/python -m pytest tests/integration/test_local_stack.py
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.cli.stack_checks import HOST, ask_gremlin

pytestmark = [
    pytest.mark.local_stack,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(
        os.environ.get("PULSE_TEST_LOCAL_STACK") != "1",
        reason="starts real servers; to run it: PULSE_TEST_LOCAL_STACK=1 .venv/bin/python -m pytest tests/integration/test_local_stack.py",
    ),
]

NAMES = ("ministack", "janusgraph", "opensearch")
SIGNED = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=none"


def free_ports(count: int) -> list[int]:
    probes = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Local:
    """The three servers on free ports, with their data in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(NAMES, free_ports(3), strict=True))

    def run(self, command: str, *options: str, code: int = 0) -> dict[str, Any]:
        arguments = [sys.executable, "-m", "pulse_kg.cli.main", command, "--dir", str(self.folder), *options, "--json"]
        ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert ran.returncode == code, (ran.stdout, ran.stderr)
        document: dict[str, Any] = json.loads(ran.stdout)
        return document

    def up(self) -> dict[str, dict[str, Any]]:
        options = zip(("--aws-port", "--gremlin-port", "--opensearch-port"), self.ports.values(), strict=True)
        shown = self.run("up", *(word for option, port in options for word in (option, str(port))))
        return {server["name"]: server for server in shown["servers"]}

    def ask(self, name: str, method: str, path: str, body: object = None, **headers: str) -> Any:
        connection = http.client.HTTPConnection(HOST, self.ports[name], timeout=30)
        given = {"Content-Type": "application/json", **{key.replace("_", "-"): value for key, value in headers.items()}}
        connection.request(method, path, None if body is None else json.dumps(body), given)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        assert response.status in {200, 201}, answer
        return answer

    def aws(self, action: str, body: object) -> Any:
        target = f"DynamoDB_20120810.{action}"
        return self.ask(
            "ministack", "POST", "/", body, X_Amz_Target=target, Content_Type="application/x-amz-json-1.0", Authorization=SIGNED
        )

    def traverse(self, *steps: Sequence[object]) -> Any:
        answer = ask_gremlin(self.ports["janusgraph"], steps)
        assert answer["status"]["code"] in {200, 204}, answer["status"]["message"]
        return answer["result"]["data"]


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    local = Local(tmp_path / "stack")
    yield local
    local.run("down", "--wipe")


def listening_elsewhere(pid: int) -> list[str]:
    """The addresses beyond this machine at which a process listens, as Linux writes them."""
    inodes = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [row.split() for table in ("tcp", "tcp6") for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]
    assert listening
    own = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    return [address for address in listening if address.split(":")[0] not in own]


def test_the_servers_start_answer_survive_and_stop(local: Local) -> None:
    assert local.run("status", code=1)["status"] == "down"

    servers = local.up()
    assert local.run("status")["status"] == "up"
    assert [server["port"] for server in servers.values()] == list(local.ports.values())
    assert all(server["memory_mb"] > 10 for server in servers.values())
    if Path("/proc/self/net/tcp").exists():
        assert {name: listening_elsewhere(server["pid"]) for name, server in servers.items()} == {name: [] for name in NAMES}

    key = {"AttributeName": "pk", "AttributeType": "S"}
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
    local.aws("CreateTable", {"TableName": "kept", "KeySchema": schema, "AttributeDefinitions": [key], "BillingMode": "PAY_PER_REQUEST"})
    local.traverse(["addV", "Decision"], ["property", "nid", "web_dec_1"], ["property", "board_id", "web"])
    settings = {"index": {"knn": True, "number_of_replicas": 0}}
    vector = {"type": "knn_vector", "dimension": 2, "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}}
    local.ask("opensearch", "PUT", "/kept", {"settings": settings, "mappings": {"properties": {"vector": vector}}})
    local.ask("opensearch", "PUT", "/kept/_doc/1?refresh=true", {"vector": [1.0, 0.5]})

    again = local.up()
    assert {name: again[name]["pid"] for name in NAMES} == {name: servers[name]["pid"] for name in NAMES}

    os.kill(servers["janusgraph"]["pid"], signal.SIGKILL)
    time.sleep(1)
    shown = local.run("status", code=1)
    assert shown["status"] == "partial"
    assert [server["healthy"] for server in shown["servers"]] == [True, False, True]
    revived = local.up()
    assert [revived[name]["started"] for name in NAMES] == [False, True, False]

    assert sorted(local.run("down")["stopped"]) == sorted(NAMES)
    assert local.run("status", code=1)["status"] == "down"
    local.up()
    assert local.aws("ListTables", {})["TableNames"] == ["kept"]
    assert local.traverse(["V"], ["has", "nid", "web_dec_1"], ["count"])["@value"][0]["@value"]["value"]["@value"] == 1
    query = {"query": {"knn": {"vector": {"vector": [1.0, 0.5], "k": 1}}}}
    assert local.ask("opensearch", "POST", "/kept/_search", query)["hits"]["hits"][0]["_score"] == pytest.approx(1.0)
