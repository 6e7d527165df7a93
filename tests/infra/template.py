"""template.yaml as plain values: each of CloudFormation's functions is a mapping of one name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
    """Knows the short forms."""


def _function(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        return {name: value.split(".", 1) if suffix == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _function)


def load() -> dict[str, Any]:
    """The template."""
    loaded: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe loader's child
    return loaded


TEMPLATE = load()
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """The properties of all resources of a type, by logical name."""
    return {name: resource["Properties"] for name, resource in RESOURCES.items() if resource["Type"] == kind}


def functions() -> dict[str, dict[str, Any]]:
    """The properties of all functions, by logical name."""
    return of_type("AWS::Serverless::Function") | of_type("AWS::Lambda::Function")


def folder_of(properties: dict[str, Any]) -> str:
    """The folder that a function is called after."""
    name: str = properties["FunctionName"]["Fn::Sub"]
    return name.removeprefix("${AWS::StackName}-")


def statements() -> list[tuple[str, dict[str, Any]]]:
    """Every statement of every policy, with the logical name of what holds it."""
    found = []
    for name, policy in of_type("AWS::IAM::ManagedPolicy").items():
        found += [(name, statement) for statement in policy["PolicyDocument"]["Statement"]]
    for name, role in of_type("AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            found += [(name, statement) for statement in policy["PolicyDocument"]["Statement"]]
    return found


def as_list(value: Any) -> list[Any]:
    """A value, or the values of a list."""
    return value if isinstance(value, list) else [value]


def texts(value: Any) -> list[str]:
    """Every string inside a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    return [text for part in value for text in texts(part)] if isinstance(value, list) else []
