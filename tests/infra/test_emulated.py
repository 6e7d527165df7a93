"""Functions as Lambda runs them: AWS's emulator of its runtime around the built layers, and nothing else on the path.

The layers are built once into build/trial, some 40 MB to fetch. The functions have an embedded store here; with the served ones they run
in tests/integration/test_deployed_functions.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.deploy.emulator import Running, running
from infra.deploy.events import event_of
from infra.deploy.invoke import function_environment
from pulse_kg.adapters.embedding.hashing import HashingEmbedder
from pulse_kg.bootstrap import open_container
from pulse_kg.settings import Settings
from pulse_kg.usecases.boards import create_board
from pulse_kg.usecases.identity import create_agent
from tests.support.deployment import need_lambda, tool_layers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def layers() -> Path:
    need_lambda()
    return tool_layers()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str]:
    """A function's variables over an embedded store, and a key that opens it."""
    path = tmp_path_factory.mktemp("store") / "store.db"
    container = open_container(Settings(store=f"sqlite:{path}"), create=True, embedder=HashingEmbedder())
    now = container.clock.now()
    create_board("default", None, boards=container.boards, now=now)
    issued = create_agent(
        "ada", "Full Control", ["default"], (), identity=container.identity, boards=container.boards, ids=container.ids, now=now
    )
    container.close()
    variables = {
        "PULSE_KG_STORE": f"sqlite:{path}",
        "PULSE_KG_EMBEDDER": "lambda",
        "PULSE_KG_EMBED_FUNCTION": "none",
        "PULSE_KG_LOG_LEVEL": "INFO",
    }
    return variables, issued.api_key


def environment(function: str, variables: Mapping[str, str]) -> dict[str, str]:
    return function_environment(function, variables, stack_file=Path("none"))


def body(answer: Any) -> Any:
    return json.loads(answer["body"])


def test_a_tool_runs_from_its_layers(layers: Path, store: tuple[dict[str, str], str], tmp_path: Path) -> None:
    variables, key = store
    log = tmp_path / "log"
    with running("begin_consolidation", environment("begin_consolidation", variables), log=log, layers=layers) as function:
        first = function.invoke(event_of("begin_consolidation", key))
        second = function.invoke(event_of("begin_consolidation"))
    assert (first["statusCode"], second["statusCode"]) == (200, 401)
    assert body(first)["session_id"].startswith("kgs_")
    written = log.read_text(encoding="utf-8")
    assert key not in written
    calls = [json.loads(line) for line in written.splitlines() if line.startswith("{") and '"message":"call"' in line]
    assert [(call["code"], call["cold_start"]) for call in calls] == [("ok", True), ("unauthorized", False)]


def test_the_endpoint_lists_the_tools_from_its_layers(layers: Path, store: tuple[dict[str, str], str], tmp_path: Path) -> None:
    variables, key = store
    with running("mcp", environment("mcp", variables), log=tmp_path / "log", layers=layers) as function:
        assert len(body(function.invoke(event_of("mcp", key)))["result"]["tools"]) >= 7


def test_dead_letters_are_read_from_their_layers(layers: Path, tmp_path: Path) -> None:
    with running("dead_letters", environment("dead_letters", {}), log=tmp_path / "log", layers=layers) as function:
        assert function.invoke(event_of("dead_letters")) == {"batchItemFailures": []}


def test_a_store_that_is_not_there_is_told_in_the_answer(layers: Path, tmp_path: Path) -> None:
    variables = {"PULSE_KG_STORE": f"sqlite:{tmp_path}/none.db", "PULSE_KG_EMBEDDER": "lambda", "PULSE_KG_EMBED_FUNCTION": "none"}
    with running("mcp", environment("mcp", variables), log=tmp_path / "log", layers=layers) as function:
        answer = function.invoke(event_of("mcp", "pk_aaaaaaaa_" + "a" * 52))
    assert (answer["statusCode"], body(answer)["error"]["code"]) == (503, "store_unavailable")


def test_a_wrong_variable_of_the_deployment_is_no_fault_of_the_caller(layers: Path, tmp_path: Path) -> None:
    def answered(function: Running) -> Any:
        return function.invoke(event_of("mcp", "pk_aaaaaaaa_" + "a" * 52))

    with running("mcp", environment("mcp", {"PULSE_KG_SESSION_TTL_SECONDS": "soon"}), log=tmp_path / "log", layers=layers) as function:
        answer = answered(function)
    assert (answer["statusCode"], body(answer)["error"]["code"]) == (500, "internal_error")
    assert "PULSE_KG_SESSION_TTL_SECONDS" not in answer["body"]
    assert "PULSE_KG_SESSION_TTL_SECONDS" in (tmp_path / "log").read_text(encoding="utf-8")
