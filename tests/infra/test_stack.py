"""What a local deployment tells the template, and where the API is found then."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.deploy.events import event_of
from infra.deploy.invoke import function_environment
from infra.deploy.layers import this_machine
from infra.deploy.stack import local_parameters, local_variables, overrides, url_of
from tests.infra.template import TEMPLATE

STACK_ENV = """\
# Made by a tool.
AWS_ENDPOINT_URL=http://127.0.0.1:4566
PULSE_KG_GREMLIN_URL=ws://127.0.0.1:8182/gremlin
PULSE_KG_OPENSEARCH_URL=http://127.0.0.1:9200
PULSE_KG_TABLE_PREFIX=pulse_kg_
"""


def test_a_local_deployment_gives_every_parameter_that_has_no_default_and_no_unknown_one() -> None:
    given = local_parameters(local_variables(STACK_ENV), this_machine(), tables_exist=False)
    declared = TEMPLATE["Parameters"]
    assert given.keys() <= declared.keys()
    assert {name for name, parameter in declared.items() if "Default" not in parameter} <= given.keys()
    assert given["TablePrefix"] == "pulse_kg_"
    for name, value in given.items():
        assert value in declared[name].get("AllowedValues", [value])


def test_tables_that_are_there_are_not_made_again() -> None:
    assert local_parameters(local_variables(STACK_ENV), this_machine(), tables_exist=True)["MakeTables"] == "false"


def test_parameters_are_quoted_as_the_cli_reads_them() -> None:
    assert overrides({"A": "b c"}) == ['ParameterKey=A,ParameterValue="b c"']


def test_the_url_is_the_emulator_s_for_a_rest_api() -> None:
    assert url_of("http://127.0.0.1:4566", "abc") == "http://127.0.0.1:4566/restapis/abc/v1/_user_request_/mcp"


def test_a_function_run_alone_gets_the_local_stores_and_never_the_caller_s_key(tmp_path: Path) -> None:
    file = tmp_path / "stack.env"
    file.write_text(STACK_ENV, encoding="utf-8")
    caller = {"PULSE_KG_API_KEY": "secret", "PULSE_KG_TABLE_PREFIX": "mine_", "AWS_PROFILE": "work", "EDITOR": "vi"}
    variables = function_environment("begin_consolidation", caller, stack_file=file)
    assert variables["PULSE_KG_GREMLIN_URL"] == "ws://127.0.0.1:8182/gremlin"
    assert variables["PULSE_KG_TABLE_PREFIX"] == "mine_"
    assert not {"PULSE_KG_API_KEY", "AWS_PROFILE", "EDITOR"} & variables.keys()


def test_an_event_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(SystemExit, match="begin_consolidation"):
        event_of("nothing")
