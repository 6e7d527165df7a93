"""The command line on the served stores: what an operator does there, from the first board to its erasure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pulse_kg.endpoints import Endpoints
from tests.support.cli import Ran, Shell
from tests.support.served import fresh_endpoints, opened_store

pytestmark = pytest.mark.served


@dataclass
class Served:
    """A shell whose store is the served one, on tables of its own."""

    shell: Shell
    endpoints: Endpoints

    def run(self, *arguments: str, **variables: str) -> Ran:
        return self.shell.bare("--store", "aws", *arguments, **variables)

    def done(self, *arguments: str, **variables: str) -> Any:
        ran = self.run(*arguments, "--json", **variables)
        assert ran.code == 0, (ran.out, ran.err)
        return ran.json

    def filled(self, board: str = "web") -> dict[str, Any]:
        """A board with one commit of two decisions; the answer of the commit."""
        self.done("boards", "create", board)
        key = self.done("agents", "create", f"ann_of_{board}", "--preset", "Spec", "--board", board)["api_key"]

        def call(tool: str, **arguments: Any) -> Any:
            import json

            return self.done("call", tool, json.dumps(arguments), PULSE_KG_API_KEY=key)

        begun = call("begin_consolidation", board_id=board, source_type="spec", source_id="spec_1", source_version=1)
        for title in ("Retry webhooks with jitter", "Keep logs for a year"):
            call("add_node_candidate", session_id=begun["session_id"], node_type="Decision", title=title)
        call("propose_reconciliation", session_id=begun["session_id"])
        answer: dict[str, Any] = call("commit_consolidation", session_id=begun["session_id"])
        return answer


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with fresh_endpoints() as endpoints:
        variables = {
            "AWS_ENDPOINT_URL": endpoints.aws_url,
            "AWS_ACCESS_KEY_ID": endpoints.access_key,
            "AWS_SECRET_ACCESS_KEY": endpoints.secret_key,
            "AWS_REGION": endpoints.region,
            "PULSE_KG_GREMLIN_URL": endpoints.gremlin_url,
            "PULSE_KG_OPENSEARCH_URL": endpoints.opensearch_url,
            "PULSE_KG_TABLE_PREFIX": endpoints.table_prefix,
        }
        yield Served(Shell(tmp_path, {name: str(value) for name, value in variables.items()}), endpoints)


def test_a_board_is_filled_looked_at_verified_and_erased(served: Served) -> None:
    committed = served.filled()

    assert [b["board_id"] for b in served.done("boards", "list")["boards"]] == ["web"]
    assert served.done("boards", "show", "web")["counts"] == {"nodes": 2, "live_nodes": 2, "edges": 0, "open_sessions": 0}
    assert [row["audit_row_id"] for row in served.done("audit", "web")["rows"]] == [1]
    node = committed["applied"]["added"][0]["node_id"]
    assert served.done("nodes", "revoke", node, "--reason", "It was a mistake.")["audit_row_id"] == 2
    verified = served.done("verify")
    assert (verified["clean"], verified["boards"][0]["commits"], verified["boards"][0]["vectors"]) == (True, 2, 2)
    erased = served.done("boards", "erase", "web", "--yes")
    assert set(erased["left"].values()) == {0}
    assert "point-in-time recovery" in erased["ages_out"]
    assert served.done("boards", "list")["boards"] == []
    taken = served.run("boards", "create", "web", "--json")
    assert (taken.code, taken.error["code"]) == (1, "invalid_argument")


def test_an_erasure_leaves_other_boards_as_they_were(served: Served) -> None:
    served.filled("web")
    served.filled("ops")
    before = served.run("export", "ops", "--format", "jsonl").out

    served.done("boards", "erase", "web", "--yes")

    assert served.run("export", "ops", "--format", "jsonl").out == before
    assert served.done("verify")["clean"] is True


def test_a_board_moves_from_the_embedded_store_to_the_served_one_and_back(served: Served, tmp_path: Path) -> None:
    served.filled()
    exported = served.run("export", "web", "--format", "jsonl").out
    there, back = f"sqlite:{tmp_path / 'there.db'}", f"sqlite:{tmp_path / 'back.db'}"

    served.done("rebuild", "--from", "aws", "--to", there)
    with fresh_endpoints() as others:
        more = {"PULSE_KG_TABLE_PREFIX": others.table_prefix}  # the graph was emptied for it
        served.done("rebuild", "--from", there, "--to", "aws", **more)
        assert served.done("verify", **more)["clean"] is True
        assert served.run("export", "web", "--format", "jsonl", **more).out == exported
        served.done("rebuild", "--from", "aws", "--to", back, **more)

    assert served.shell.bare("--store", back, "export", "web", "--format", "jsonl").out == exported


def test_vectors_that_were_lost_or_are_of_no_node_are_put_right_by_a_reindex(served: Served) -> None:
    lost, kept = (entry["node_id"] for entry in served.filled()["applied"]["added"])
    store = opened_store(served.endpoints)
    index = f"{served.endpoints.table_prefix}nodes"
    found = store.index_client.request("POST", "/_mget", {"docs": [{"_index": index, "_id": f"web:{kept}", "routing": "web"}]})
    stray = {**found["docs"][0]["_source"], "node_id": "dec_stray"}
    query = {"routing": "web", "refresh": "true"}
    of_its_commit = {"version": "1", "version_type": "external_gte"}
    store.index_client.request("DELETE", f"/{index}/_doc/web:{lost}", params={**query, **of_its_commit})
    store.index_client.request("PUT", f"/{index}/_doc/web:dec_stray", stray, params=query)
    store.close()
    wrong = served.run("verify", "--json")
    assert (wrong.code, len(wrong.json["boards"][0]["findings"])) == (1, 2)
    assert "pulse-kg reindex BOARD" in served.run("verify").out

    assert served.done("reindex", "web") == {"board_id": "web", "vectors": 2, "removed": 1}

    assert served.done("verify")["clean"] is True


def test_a_new_index_takes_the_place_of_the_old_one(served: Served) -> None:
    served.filled()

    done = served.done("reindex", "--all")

    name = f"{served.endpoints.table_prefix}nodes"
    assert (done["old_index"], done["index"]) == (f"{name}_1", f"{name}_2")
    assert served.done("verify")["clean"] is True
    store = opened_store(served.endpoints)
    store.index_client.request("DELETE", f"/{name}_2")
    store.close()


def test_the_relay_has_nothing_to_do_where_everything_is_done(served: Served) -> None:
    served.filled()
    report = served.done("relay")
    assert (report["applied"], report["failed"], report["left"]) == (0, {}, 0)


@pytest.mark.parametrize(
    ("variable", "address", "store"),
    [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", "sessions"),
        ("PULSE_KG_GREMLIN_URL", "ws://127.0.0.1:9/gremlin", "graph"),
        ("PULSE_KG_OPENSEARCH_URL", "http://127.0.0.1:9", "vectors"),
    ],
)
def test_a_server_that_is_away_is_a_problem_that_health_names(served: Served, variable: str, address: str, store: str) -> None:
    ran = served.run("health", "--json", **{variable: address})
    assert (ran.code, ran.json["status"], ran.json["store"]["state"]) == (1, "failing", "failing")
    assert store in ran.json["problems"][0]


def test_tables_that_are_missing_are_told_with_what_makes_them(served: Served) -> None:
    ran = served.run("boards", "list", "--json", PULSE_KG_TABLE_PREFIX="nothing_here_")
    assert (ran.code, ran.error["code"]) == (1, "store_unavailable")
    assert "pulse-kg up" in ran.error["message"]
