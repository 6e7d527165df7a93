"""The folders of the functions and their sample events: one of each for every function, all of one shape."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from pathlib import Path

import pytest

from infra.deploy.events import FOLDER, PLACEHOLDER, event_of
from pulse_kg.lambda_edge.shapes import is_http
from pulse_kg.mcp.tools import TOOL_NAMES
from tests.infra.template import ROOT, folder_of, functions

HANDLERS = sorted((ROOT / "functions").glob("*/handler.py"))
each_handler = pytest.mark.parametrize("path", HANDLERS, ids=lambda path: path.parent.name)


def test_folders_events_and_template_name_the_same_functions() -> None:
    folders = {path.parent.name for path in HANDLERS}
    assert folders == {path.stem for path in FOLDER.glob("*.json")}
    assert folders == {folder_of(properties) for properties in functions().values()}
    assert folders >= set(TOOL_NAMES)


@each_handler
def test_a_handler_is_a_docstring_and_one_call(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    docstring, imported, assigned = ast.parse(text).body
    assert isinstance(docstring, ast.Expr)
    assert isinstance(imported, ast.ImportFrom)
    assert isinstance(assigned, ast.Assign)
    assert text.startswith(f'"""{path.parent.name}: ')
    assert len(text.splitlines()) <= 60


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_a_tool_s_handler_runs_its_own_tool(tool: str) -> None:
    assert f'tool_function("{tool}")' in (ROOT / "functions" / tool / "handler.py").read_text(encoding="utf-8")


@each_handler
def test_every_handler_loads_without_stores_and_settings(path: Path) -> None:
    name = path.parent.name
    spec = importlib.util.spec_from_file_location(f"handler_of_{name}", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert callable(module.handler)


@pytest.mark.parametrize("tool", [*TOOL_NAMES, "mcp"])
def test_the_events_of_what_has_a_route_are_those_of_the_gateway(tool: str) -> None:
    event = event_of(tool)
    assert is_http(event)
    assert event["resource"] == ("/mcp" if tool == "mcp" else f"/tools/{tool}")
    assert json.loads(event["body"]) is not None


def test_no_event_holds_a_key() -> None:
    for path in FOLDER.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pk_[a-z2-7]{8}_", text)
    assert PLACEHOLDER in (FOLDER / "mcp.json").read_text(encoding="utf-8")


def test_the_key_is_put_in_where_the_placeholder_stands() -> None:
    event = event_of("mcp", "secret")
    assert event["headers"]["Authorization"] == "Bearer secret"
    assert event["multiValueHeaders"]["Authorization"] == ["Bearer secret"]
    assert PLACEHOLDER not in json.dumps(event)
